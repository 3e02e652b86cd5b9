"""The kernels of value-targeted regression against NumPy, and by hand."""

from __future__ import annotations

import kernel_references
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_models import mixture

from bandana.algorithms.mdp import planning
from bandana.algorithms.rl.mixture import value_targets_numba
from bandana.algorithms.rl.mixture.targets import centered_targets, printed_targets

shapes = st.tuples(
    st.integers(1, 3), st.integers(1, 5), st.integers(1, 4), st.integers(2, 4), st.integers(1, 4), st.integers(0, 10**6)
)
LOWEST = np.array([[0, 1, 2]])


def columns(targets):
    return [np.array(c) for c in (targets.center, targets.norm_bound, targets.value_bound)]


@settings(max_examples=60)
@given(shapes, st.booleans())
def test_planning_and_contributions(shape, is_printed):
    n_reps, n_states, n_actions, horizon, d, seed = shape
    model, _ = mixture(n_states, n_actions, horizon, d, seed, is_sparse=False)
    rng = np.random.default_rng(seed)
    try:
        targets = printed_targets(model) if is_printed else centered_targets(model)
    except ValueError:
        return
    n = targets.n_blocks
    x = rng.standard_normal((n_reps, n, 2 * d, d))
    inverse = np.einsum("rbni,rbnj->rbij", x, x)
    estimate, width = rng.standard_normal((n_reps, n, d)), rng.random((n_reps, n))
    center, norm, bound = columns(targets)
    low, high, block = np.array(targets.low), np.array(targets.high), targets.block_of_step(horizon)
    policy = np.empty((n_reps, horizon, n_states), dtype=np.int64)
    values = np.empty((n_reps, horizon + 1, n_states))
    by_state = value_targets_numba.by_next_state(model.features)
    flat = np.ascontiguousarray(model.rewards.reshape(horizon, -1))
    order = rng.permuted(np.tile(np.arange(n_actions), (n_reps, 1)), axis=1)
    value_targets_numba.plan(by_state, flat, block, center, low, high, order, estimate, inverse, width, policy, values)
    expected = kernel_references.plan_reference(
        model.features, model.rewards, block, center, low, high, order, estimate, inverse, width
    )  # fmt: skip
    np.testing.assert_allclose(values, expected[1], rtol=1e-9, atol=1e-9)
    assert np.array_equal(policy, expected[0])
    states = rng.integers(n_states, size=(n_reps, horizon + 1))
    actions = rng.integers(n_actions, size=(n_reps, horizon))
    out = np.empty((n_reps, n, d, d + 1))
    arguments = np.array(targets.steps), center, norm / 2, bound / 2, values, states, actions
    value_targets_numba.contribute(model.features, *arguments, out)
    np.testing.assert_allclose(
        out, kernel_references.contribute_reference(model.features, *arguments), rtol=1e-9, atol=1e-12
    )


def test_planning_with_the_true_parameters_and_no_width_is_backward_induction():
    model, parameters = mixture(4, 3, 5, 3, seed=2, is_sparse=False)
    targets = centered_targets(model)
    best = planning.plan(model.transitions(parameters), np.asarray(model.rewards))
    policy, values = np.empty((1, 5, 4), dtype=np.int64), np.empty((1, 6, 4))
    value_targets_numba.plan(
        value_targets_numba.by_next_state(model.features), model.rewards.reshape(5, -1).copy(), targets.block_of_step(5),
        np.array(targets.center), np.array(targets.low), np.array(targets.high), LOWEST,
        parameters[None, list(targets.steps)], np.zeros((1, 4, 3, 3)), np.ones((1, 4)), policy, values,
    )  # fmt: skip
    np.testing.assert_allclose(values[0], best.values, atol=1e-12)
    assert np.array_equal(policy[0], best.action_values.argmax(axis=2))


def planned(model, order, width=0.0):
    """Policy and values before anything is known."""
    targets = centered_targets(model)
    policy, values = np.full((1, 2, 2), 9), np.empty((1, 3, 2))
    value_targets_numba.plan(
        value_targets_numba.by_next_state(model.features), model.rewards.reshape(2, -1).copy(), targets.block_of_step(2),
        np.array(targets.center), np.array(targets.low), np.array(targets.high), np.array([order]), np.zeros((1, 1, 2)),
        np.eye(2)[None, None], np.array([[width]]), policy, values,
    )  # fmt: skip
    return policy[0], values[0]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_ties_go_to_the_first_action_in_the_preference(order):
    """Without a width, and with rewards of states alone, all actions are equally good in both steps."""
    model, _ = mixture(2, 3, 2, 2)
    policy, _ = planned(model, order)
    assert (policy == order[0]).all()


def test_actions_are_compared_before_values_are_cut():
    """Where all values exceed what can be earned, the largest one is taken, whatever the preference."""
    model, _ = mixture(2, 3, 2, 2, seed=1)
    targets = centered_targets(model)
    largest = np.linalg.norm(np.einsum("satd,t->sad", model.features, [0.5, -0.5]), axis=2).argmax(axis=1)
    assert set(largest.tolist()) != {0}
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        policy, values = planned(model, order, width=1e6)
        assert policy[0].tolist() == largest.tolist()
        assert values[0].tolist() == [targets.high[0]] * 2


class TestTargets:
    def test_printed_ones_are_the_papers_bounds(self):
        model, _ = mixture(3, 2, 4, 3, is_sparse=False)
        found = printed_targets(model)
        assert found.steps == (0, 1, 2)
        assert found.norm_bound == found.value_bound == (4.0,) * 3
        assert found.center == (0.0,) * 3
        assert found.high == (4.0, 4.0, 4.0, 4.0, 0.0)

    def test_centered_ones_know_what_can_still_be_earned(self):
        model, _ = mixture(3, 2, 4, 3)
        rewards = np.zeros((4, 3, 2))
        rewards[0] = np.arange(6).reshape(3, 2) / 5
        rewards[1] = 0.5
        rewards[3, 0, 1], rewards[3, 1] = 0.75, 0.25
        found = centered_targets(type(model)(model.features, rewards, model.parameter_bound))
        assert found.high == pytest.approx((2.25, 1.25, 0.75, 0.75, 0))
        assert found.low == pytest.approx((0.5, 0.5, 0, 0, 0))
        assert found.steps == (0, 1, 2)
        assert found.center == pytest.approx((0.875, 0.375, 0.375))
        assert found.value_bound == found.spread == pytest.approx((0.375,) * 3)
        assert found.norm_bound == pytest.approx(tuple(0.375 * value_targets_numba.reach(model.features) for _ in range(3)))

    def test_a_step_after_which_all_is_known_teaches_nothing(self):
        model, _ = mixture(3, 2, 4, 3)
        rewards = np.zeros((4, 3, 2))
        rewards[1, 0] = 1.0
        found = centered_targets(type(model)(model.features, rewards, 1.0))
        assert found.steps == (0,)
        assert found.block_of_step(4).tolist() == [0, -1, -1, -1]
        with pytest.raises(ValueError, match="nothing is learned"):
            centered_targets(type(model)(model.features, np.zeros((4, 3, 2)), 1.0))
        with pytest.raises(ValueError, match="horizon must be at least 2"):
            printed_targets(mixture(3, 2, 1, 3)[0])

    def test_the_reach_of_features(self):
        """Brute force over signs; mixtures of kernels reach 1; above 16 states an upper bound."""
        rng = np.random.default_rng(0)
        features = rng.standard_normal((4, 2, 4, 3))
        signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T
        brute = max(np.linalg.norm(signs @ part, axis=1).max() for row in features for part in row)
        assert value_targets_numba.reach(features) == pytest.approx(brute, rel=1e-12)
        assert value_targets_numba.reach(mixture(3, 2, 2, 4)[0].features) == pytest.approx(1.0)
        many = rng.standard_normal((17, 1, 17, 2))
        tried = rng.choice([-1.0, 1.0], (2000, 17))
        assert max(np.linalg.norm(tried @ part[0], axis=1).max() for part in many) <= value_targets_numba.reach(many)


def test_the_reach_of_many_states_is_that_of_the_worst_state_and_action():
    """Beyond sixteen states every coordinate has its own worst values: never less than any values reach, row by row."""
    features = np.random.default_rng(0).normal(size=(2, 3, 18, 4))
    features[1, 2] *= 3
    bound = value_targets_numba.reach(features)
    assert bound == pytest.approx(np.sqrt((np.abs(features[1, 2]).sum(axis=0) ** 2).sum()), rel=1e-12)
    values = np.random.default_rng(1).choice([-1.0, 1.0], (200, 18))
    reached = np.linalg.norm(np.einsum("vs,masd->vmad", values, features), axis=3)
    assert 0.3 * bound < reached.max() <= bound
