"""The optimistic choice against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_references import optimistic_actions_reference
from random_matrices import positive_definite

from bandana.algorithms.regression.optimism_numba import optimistic_actions
from bandana.algorithms.ties import TIE

shapes = st.tuples(st.sampled_from([1, 4, 63, 64, 130]), st.integers(2, 12), st.integers(1, 7), st.integers(0, 10**6))


def listed(contexts):
    """Actions in their own order."""
    return np.arange(contexts.shape[1])[None]


@given(shapes)
def test_optimistic_actions(shape):
    """Each replicate with actions of its own, and all with those of the first, which have a loop of their own."""
    n_reps, n_actions, d, seed = shape
    rng = np.random.default_rng(seed)
    inverse = positive_definite(rng, n_reps, d)
    theta, width = rng.standard_normal((n_reps, d)), rng.random(n_reps)
    contexts = rng.standard_normal((n_reps, n_actions, d))
    out = np.empty(n_reps, dtype=np.int64)
    optimistic_actions(theta, inverse, width, contexts, TIE, listed(contexts), out)
    assert np.array_equal(out, optimistic_actions_reference(theta, inverse, width, contexts))
    shared = np.broadcast_to(contexts[0], contexts.shape)
    optimistic_actions(theta, inverse, width, shared, TIE, listed(shared), out)
    assert np.array_equal(out, optimistic_actions_reference(theta, inverse, width, shared))


@pytest.mark.parametrize(("n_actions", "d"), [(300, 9), (129, 4), (128, 5)])
def test_optimistic_actions_among_many(n_actions, d):
    test_optimistic_actions.hypothesis.inner_test((3, n_actions, d, n_actions))


@pytest.mark.parametrize(("n_actions", "d"), [(4, 3), (20, 3), (7, 40), (127, 2), (200, 2)])
@pytest.mark.parametrize("n_orders", [1, 200])
def test_shared_actions_get_the_same_bounds_as_copies(n_actions, d, n_orders):
    """Bit for bit: of actions that differ in the last digit alone, rounding decides which is chosen without slack."""
    rng, n_reps = np.random.default_rng(0), 200
    theta, inverse, width = rng.standard_normal((n_reps, d)), positive_definite(rng, n_reps, d), rng.random(n_reps)
    actions = np.tile(rng.standard_normal(d), (n_actions, 1))
    actions = np.where(rng.random(actions.shape) < 0.5, actions, np.nextafter(actions, np.inf))
    shared = np.broadcast_to(actions, (n_reps, n_actions, d))
    order = np.argsort(rng.random((n_orders, n_actions)), axis=1)
    first, second = np.empty((2, n_reps), dtype=np.int64)
    optimistic_actions(theta, inverse, width, shared, 0.0, order, first)
    optimistic_actions(theta, inverse, width, shared.copy(), 0.0, order, second)
    assert np.array_equal(first, second)
    assert len(np.unique(first)) > 1


def test_ties_go_to_the_lowest_action():
    out = np.empty(1, dtype=np.int64)
    for n_actions in (3, 20):
        contexts = np.ones((1, n_actions, 2))
        contexts[0, 2] *= 1 + 1e-12  # equal but for rounding
        contexts[0, 0] *= 0.9
        optimistic_actions(np.zeros((1, 2)), np.eye(2)[None], np.ones(1), contexts, TIE, listed(contexts), out)
        assert out.tolist() == [1]
        backwards = listed(contexts)[:, ::-1]
        optimistic_actions(np.zeros((1, 2)), np.eye(2)[None], np.ones(1), contexts, TIE, backwards, out)
        assert out.tolist() == [n_actions - 1]
