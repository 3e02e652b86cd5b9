"""Processes that algorithms are compared on: valid kernels, norms in their bounds, and the best policies by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from bandana.algorithms.environments.mdp_instances import hypercube_chain, kernel_mixture, modes, one_hot, patients
from bandana.algorithms.mdp import models
from bandana.algorithms.mdp.planning import plan
from bandana.algorithms.problem import LINEAR_MDP, MIXTURE, Problem
from bandana.privacy_core import Interval

SEED = np.random.SeedSequence(3)
INSTANCES = {
    "hypercube": hypercube_chain(2, 2, 0.2),
    "hypercube, wide": hypercube_chain(4, 5, 0.15),
    "patients": patients(),
    "modes": modes(5, 3, 3, 2, SEED),
    "one-hot": one_hot(patients(3)),
}
each = pytest.mark.parametrize("name", list(INSTANCES))


@each
def test_an_instance_is_a_process_whose_policies_differ(name):
    found = INSTANCES[name]
    shape = (found.model.horizon, found.model.n_states, found.model.n_actions)
    assert found.transitions.shape == (*shape, shape[1])
    assert found.rewards.shape == shape
    assert np.abs(found.transitions.sum(axis=3) - 1).max() < 1e-12
    assert found.best.gaps.max() > 0.05, "a wrong action costs something"
    assert found.start.sum() == pytest.approx(1.0)
    assert len(found.state_names) == shape[1]
    stream = found.stream(7, SEED)
    assert (stream.n_users, stream.names) == (7, found.action_names)
    kind = Problem(shape[2], Interval(0.0, 1.0), 10, model=found.model).kind
    assert kind == (LINEAR_MDP if name in ("modes", "one-hot") else MIXTURE)


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("gap", [0.05, 0.3])
def test_the_hypercube_is_the_one_of_the_lower_bound(d, gap):
    """Norms are reached, not only kept: a smaller bound would be false."""
    horizon, base = 3, 0.4
    found = hypercube_chain(d, horizon, gap, base)
    model = found.model
    assert models._largest_norms(model.features).max() <= 1 + 1e-12
    assert model.parameter_bound == 1 + gap
    actions = list(itertools.product((-1, 1), repeat=d - 1))
    for h in range(horizon):
        sign = [(-1) ** (h + i) for i in range(d - 1)]
        for a, action in enumerate(actions):
            up = base + gap / (d - 1) * sum(s * x for s, x in zip(sign, action, strict=True))
            assert found.transitions[h, h, a, -1] == pytest.approx(up)
            assert found.transitions[h, h, a, h + 1] == pytest.approx(1 - up)
        best = plan(found.transitions, found.rewards).action_values[h, h].argmax()
        assert h == horizon - 1 or actions[best] == tuple(sign), "the last step's action earns nothing any more"
    assert found.transitions[0, horizon, 0, horizon] == found.transitions[0, -1, 0, -1] == 1.0
    assert (found.rewards[:, :-1] == 0).all()
    assert (found.rewards[:, -1] == 1).all()


def test_the_hypercubes_value_by_hand():
    """Two steps: the good state is reached at once with chance base + gap, and pays in the second step."""
    found = hypercube_chain(2, 2, 0.2)
    assert found.best.values[0, 0] == pytest.approx(0.7)
    assert found.best.gaps[0, 0].tolist() == pytest.approx([0.4, 0.0])


@pytest.mark.parametrize("gap", [0.0, -0.1, 0.41, math.nan])
def test_a_gap_that_is_no_chance(gap):
    with pytest.raises(ValueError, match=r"gap must be above 0 and at most base and 1 - base, with base = 0\.4; got"):
        hypercube_chain(2, 3, gap, 0.4)


def test_patients_are_best_served_by_the_drug_that_most_respond_to():
    for shares, best in (((0.2, 0.2, 0.6), "drug B"), ((0.2, 0.6, 0.2), "drug A"), ((0.98, 0.01, 0.01), "wait")):
        found = patients(4, shares)
        severe = found.best.action_values[0, 2].argmax()
        assert found.action_names[severe] == best
    found = patients()
    assert (found.transitions[:, 0, :, 0] == 1).all(), "who has recovered stays well"
    assert found.transitions[0, 3, 2, 2] == pytest.approx(0.2 * 0.55 + 0.2 * 0.15 + 0.6 * 0.80)
    assert found.transitions[0, 2, 1, 3] == pytest.approx(0.2 * 0.10 + 0.2 * 0.02 + 0.6 * 0.35)
    assert found.rewards[0, 1].tolist() == pytest.approx([0.7, 0.62, 0.62])
    assert found.start.tolist() == [0.0, 0.0, 0.5, 0.5]


def test_sharper_modes_make_actions_differ_more():
    gaps = [modes(5, 3, 3, 3, SEED, sharpness).best.gaps.mean() for sharpness in (0.1, 1.0, 8.0)]
    assert gaps == sorted(gaps)
    assert gaps[0] < 0.1 * gaps[2]
    with pytest.raises(ValueError, match="sharpness must be a positive number, got 0"):
        modes(5, 3, 3, 3, SEED, 0)
    with pytest.raises(ValueError, match="n_states must be a whole number of at least 2, got 1"):
        modes(1, 3, 3, 3, SEED)


def test_a_feature_for_each_entry_changes_nothing():
    plain, linear = patients(3), one_hot(patients(3))
    assert linear.transitions == pytest.approx(plain.transitions)
    assert linear.rewards == pytest.approx(plain.rewards)
    assert linear.model.dimension == 12
    assert linear.start.tolist() == plain.start.tolist()


def test_kernels_that_are_no_distributions_are_named():
    stays = np.eye(2)[:, None, :].repeat(2, axis=1)
    bad = stays.copy()
    bad[1, 0] = (0.5, 0.6)
    with pytest.raises(
        ValueError, match=r"kernel 1 leads from state 1, action 0 to next states with the chances \[0.5, 0.6\]"
    ):
        kernel_mixture([stays, bad], [0.5, 0.5], np.zeros((1, 2, 2)))
    with pytest.raises(ValueError, match="weights must be 1 distributions over the 2 kernels"):
        kernel_mixture([stays, stays], [0.5, math.nan], np.zeros((1, 2, 2)))
    with pytest.raises(ValueError, match=r"kernels must be of shape \(d, n_states, n_actions, n_states\), got \(2, 2, 2\)"):
        kernel_mixture(stays, [1.0], np.zeros((1, 2, 2)))
    found = kernel_mixture([stays, stays[::-1]], [[0.25, 0.75], [1.0, 0.0]], np.ones((2, 2, 2)))
    assert found.transitions[0, 0, 0].tolist() == pytest.approx([0.25, 0.75])
    assert found.transitions[1, 0, 0].tolist() == pytest.approx([1.0, 0.0])
