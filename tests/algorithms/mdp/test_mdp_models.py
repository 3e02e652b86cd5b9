"""Models of linear structure: their norms, what they make of parameters, and what they refuse by step and state."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from bandana.algorithms.mdp import models
from bandana.algorithms.mdp.models import LinearModel, MixtureModel, checked_rewards, checked_transitions

RNG = np.random.default_rng(0)
H, S, A, D = 2, 3, 2, 2
KERNELS = RNG.dirichlet(np.ones(S), (D, S, A))
FEATURES = KERNELS.transpose(1, 2, 3, 0) / math.sqrt(D)
REWARDS = RNG.random((H, S, A))
MIXTURE = MixtureModel(FEATURES, REWARDS, math.sqrt(D))
SIMPLEX = RNG.dirichlet(np.ones(D), (S, A))
LINEAR = LinearModel(SIMPLEX, H)
LAWS = RNG.dirichlet(np.ones(S), (H, D)).transpose(0, 2, 1)


def put(array, place, value):
    changed = np.array(array, dtype=float)
    changed[place] = value
    return changed


def test_a_mixture_of_kernels_is_their_mean():
    shares = np.array([[0.25, 0.75], [1.0, 0.0]])
    found = MIXTURE.transitions(math.sqrt(D) * shares)
    assert found == pytest.approx(np.einsum("hi,isat->hsat", shares, KERNELS))
    assert (MIXTURE.n_states, MIXTURE.n_actions, MIXTURE.dimension, MIXTURE.horizon) == (S, A, D, H)
    with pytest.raises(ValueError, match="read-only"):
        MIXTURE.features[0, 0, 0, 0] = 1


def test_a_linear_process_mixes_the_laws_of_its_modes():
    found = LINEAR.transitions(LAWS)
    assert found == pytest.approx(np.einsum("sad,htd->hsat", SIMPLEX, LAWS))
    assert LINEAR.rewards([[1.0, 0.0], [0.5, 0.5]])[1] == pytest.approx(np.full((S, A), 0.5))


@pytest.mark.parametrize("n_states", [2, 5])
def test_the_norm_of_features_is_that_of_the_worst_function(n_states):
    """Against all functions with values 0 and 1, one by one; values between give no larger norm."""
    features = RNG.standard_normal((n_states, 2, n_states, 3))
    found = models._largest_norms(features)
    for state, action in itertools.product(range(n_states), range(2)):
        part = features[state, action]
        worst = max(np.linalg.norm(np.array(v) @ part) for v in itertools.product((0, 1), repeat=n_states))
        assert found[state, action] == pytest.approx(worst)
        assert np.linalg.norm(RNG.random((200, n_states)) @ part, axis=1).max() <= worst + 1e-12


def test_of_many_states_the_norm_is_bounded_from_above():
    few = RNG.standard_normal((4, 1, 4, 2))
    exact = models._largest_norms(few)
    padded = np.zeros((17, 1, 17, 2))
    padded[:4, :, :4] = few
    bound = models._largest_norms(padded)[:4]
    assert (bound >= exact - 1e-12).all()
    assert (bound <= math.sqrt(2) * exact + 1e-12).all(), "coordinates apart: off by sqrt d at most"


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: MixtureModel(2 * FEATURES, REWARDS, 1.0), r"features of state \d, action \d reach the norm"),
        (lambda: MixtureModel(FEATURES[:2], REWARDS, 1.0), "features must be of shape"),
        (lambda: MixtureModel(FEATURES[0], REWARDS, 1.0), "features must be an array of 4 axes"),
        (lambda: MixtureModel(put(FEATURES, (1, 0, 2, 1), np.nan), REWARDS, 1.0), r"features\[1, 0, 2, 1\] is .*nan"),
        (
            lambda: MixtureModel(FEATURES, put(REWARDS, (1, 2, 0), 1.25), 1.0),
            "the mean reward of step 2, state 2, action 0 is 1.25; it must lie in",
        ),
        (lambda: MixtureModel(FEATURES, REWARDS[:, :2], 1.0), r"rewards must be of shape .* = \(H, 3, 2\), got \(2, 2, 2\)"),
        (lambda: MixtureModel(FEATURES, REWARDS, 0.0), "parameter_bound must be a positive number, got 0.0"),
        (lambda: MixtureModel(FEATURES, REWARDS, math.inf), "parameter_bound must be a positive number, got inf"),
        (lambda: MIXTURE.transitions(np.ones((H, 3))), r"parameters must be of shape .* = \(2, 2\), got \(2, 3\)"),
        (lambda: MIXTURE.transitions([[1.0, 0.0], [1.5, 1.0]]), "the parameter of step 2 has norm 1.80278; it must"),
        (lambda: MIXTURE.transitions([[0.7, 0.7], [0.5, 0.5]]), r"at step \d the probabilities from state \d, action \d"),
        (lambda: LinearModel(2 * SIMPLEX, H), r"features of state \d, action \d have norm"),
        (lambda: LinearModel(SIMPLEX, 0), "horizon must be a whole number of at least 1, got 0"),
        (lambda: LinearModel(SIMPLEX, 2.0), "horizon must be a whole number of at least 1, got 2.0"),
        (lambda: LINEAR.transitions(LAWS[:1]), r"measures must be of shape \(horizon, n_states, d\) = \(2, 3, 2\), got"),
        (lambda: LINEAR.transitions(2 * LAWS), r"measures of step \d reach the norm .* at most sqrt\(d\) = 1.41421"),
        (lambda: LINEAR.transitions(0.5 * LAWS), "sum to 0.5, not to 1"),
        (lambda: LINEAR.rewards([[1.0, 0.0], [1.5, 0.0]]), "the reward parameter of step 2 has norm 1.5"),
        (lambda: LINEAR.rewards([[1.0, 0.0], [-0.1, 0.0]]), r"the mean reward of step 2, state \d, action \d is -0\.0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(build, told):
    with pytest.raises(ValueError, match=told):
        build()


def test_transitions_that_are_no_distributions_are_named_by_step_state_and_action():
    good = np.full((H, S, A, S), 1 / S)
    short, negative = put(good, (1, 2, 0, 1), 0.0), put(put(good, (0, 1, 1, 2), -0.25), (0, 1, 1, 0), 11 / 12)
    for bad, told in (
        (short, "at step 2 the probabilities from state 2, action 0 sum to 0.666667, not to 1"),
        (negative, "at step 1 state 1, action 1 leads to state 2 with probability -0.25"),
    ):
        with pytest.raises(ValueError, match=re.escape(told)):
            checked_transitions(bad)
    rounded = checked_transitions(put(put(good, (0, 0, 0, 0), -1e-12), (0, 0, 0, 1), 2 / S + 1e-12))
    assert rounded.min() >= 0
    assert np.abs(rounded.sum(axis=3) - 1).max() < 1e-15
    assert checked_rewards(np.full((1, S, A), 1 + 1e-12), (S, A)).max() == 1.0


def test_measures_are_held_to_the_worst_sign_and_not_to_the_sum_of_norms():
    """Signed measures whose norms sum to more than sqrt d may be fine: their worst signs do not."""
    model = LinearModel(np.tile([1.0, 0.0], (4, 2, 1)), 1)
    turned = np.array([[0.25, 0.5], [0.25, -0.5], [0.25, 0.5], [0.25, -0.5]])
    assert np.linalg.norm(turned, axis=1).sum() > math.sqrt(2) > 1
    with pytest.raises(ValueError, match="measures of step 1 reach the norm 2"):
        model.transitions(turned[None])
    milder = turned * [1.0, 0.6]
    assert np.linalg.norm(milder, axis=1).sum() > math.sqrt(2)
    worst = max(np.linalg.norm(np.array(v) @ milder) for v in itertools.product((-1, 1), repeat=4))
    assert worst <= math.sqrt(2)
    assert model.transitions(milder[None]) == pytest.approx(np.full((1, 4, 2, 4), 0.25))
