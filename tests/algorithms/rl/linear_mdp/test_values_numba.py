"""The kernels of least-squares value iteration against NumPy, and the noise norms against draws."""

from __future__ import annotations

import math

import kernel_references
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandana.algorithms.regression.norms import goe_norm, laplace_matrix_norm, laplace_norm, normal_norm
from bandana.algorithms.rl.linear_mdp import values_numba as kernels
from bandana.algorithms.ties import TIE

sizes = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.integers(1, 4), st.integers(1, 6))
seeds = st.integers(0, 10**6)


def drawn(rng, shape):
    """Features, and an episode of states, actions and rewards for each replicate."""
    n_reps, length, n_states, n_actions, d = shape
    features = rng.standard_normal((n_states, n_actions, d))
    states = rng.integers(n_states, size=(n_reps, length + 1))
    return features, states, rng.integers(n_actions, size=(n_reps, length)), rng.random((n_reps, length)) * 3 - 1


@given(sizes, seeds)
def test_counts_and_sums(shape, seed):
    n_reps, length, n_states, n_actions, _ = shape
    rng = np.random.default_rng(seed)
    counts = np.zeros((n_reps, length, n_states, n_actions, n_states), dtype=np.int64)
    sums = np.zeros((n_reps, length, n_states, n_actions))
    expected, totals = counts.copy(), sums.copy()
    for _ in range(3):
        _, states, actions, rewards = drawn(rng, shape)
        kernels.tally(states, actions, rewards, counts, sums)
        for r in range(n_reps):
            for h in range(length):
                expected[r, h, states[r, h], actions[r, h], states[r, h + 1]] += 1
                totals[r, h, states[r, h], actions[r, h]] += np.clip(rewards[r, h], 0, 1)
    assert np.array_equal(counts, expected)
    np.testing.assert_allclose(sums, totals, rtol=1e-12)


@given(sizes, seeds)
def test_triangles_of_outer_products_and_back(shape, seed):
    n_reps, length, _, _, d = shape
    rng = np.random.default_rng(seed)
    features, states, actions, _ = drawn(rng, shape)
    triangles = np.zeros((n_reps, length, d * (d + 1) // 2))
    kernels.add_outer_products(states, actions, features, 0.5, triangles)
    phi = features[states[:, :-1], actions]
    square = phi[..., :, None] * phi[..., None, :]
    rows, columns = np.triu_indices(d)
    np.testing.assert_allclose(triangles, square[..., rows, columns] * np.where(rows == columns, 0.5, 1), rtol=1e-12)
    out = np.empty((n_reps * length, d, d))
    kernels.unfold(triangles.reshape(n_reps * length, -1), 0.5, 3.0, out)
    np.testing.assert_allclose(out, square.reshape(-1, d, d) + 3 * np.eye(d), rtol=1e-12, atol=1e-12)


@given(sizes, seeds)
def test_responses(shape, seed):
    n_reps, length, n_states, n_actions, d = shape
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n_states, n_actions, d))
    counts = rng.integers(3, size=(n_reps, length, n_states, n_actions, n_states))
    sums, rows = rng.random(counts.shape[:-1]), np.flatnonzero(rng.random(n_reps) < 0.7)
    sums *= counts.any(axis=-1)  # no reward where nobody was
    values, out = rng.random((len(rows), n_states)), np.empty((len(rows), d))
    kernels.responses(counts, sums, length - 1, rows, values, 0.7, features, out)
    expected = kernel_references.responses_reference(counts, sums, length - 1, rows, values, 0.7, features)
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-10)


@given(sizes, seeds)
def test_optimistic_values(shape, seed):
    n_reps, length, n_states, n_actions, d = shape
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n_states, n_actions, d))
    features[rng.random(features.shape) < 0.3] = 0.0
    rows = np.flatnonzero(rng.random(n_reps) < 0.7)
    x = rng.standard_normal((len(rows), 3 * d, d))
    inverse, vector = np.einsum("rni,rnj->rij", x, x), rng.standard_normal((len(rows), d))
    weights, policy = np.full((n_reps, length, d), 7.0), np.full((n_reps, length, n_states), 7)
    values = np.full((n_reps, length + 1, n_states), 7.0)
    order = rng.permuted(np.tile(np.arange(n_actions), (n_reps, 1)), axis=1)
    features[:, -1] = features[:, 0]  # a tie
    kernels.improve(inverse, vector, length - 1, rows, 0.4, 0.2, 3.0, features, order, weights, policy, values)
    w, actions, expected = kernel_references.improve_reference(inverse, vector, 0.4, 0.2, 3.0, features, order[rows])
    np.testing.assert_allclose(weights[rows, length - 1], w, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(values[rows, length - 1], expected, rtol=1e-10, atol=1e-10)
    assert np.array_equal(policy[rows, length - 1], actions)
    others = np.delete(np.arange(n_reps), rows)
    assert (policy[others] == 7).all()
    assert (values[others] == 7).all()
    assert (values[:, length] == 7).all()


def improved(vector, order):
    """Action and value of one state with two actions, where values are cut at 0 and 3."""
    weights, policy, values = np.zeros((1, 1, 2)), np.zeros((1, 1, 1), dtype=np.int64), np.zeros((1, 2, 1))
    rows, features, order = np.zeros(1, dtype=np.int64), np.eye(2)[None], np.array([order])
    kernels.improve(features, np.array([vector]), 0, rows, 0.0, 0.0, 3.0, features, order, weights, policy, values)
    return policy[0, 0, 0], values[0, 0, 0]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_ties_are_broken_by_what_was_cut_and_then_by_the_preference(order):
    assert improved([4.0, 5.0], order) == (1, 3.0)
    assert improved([4.0, 4.0], order) == (order[0], 3.0)
    assert improved([4.0, 4.0 * (1 + 1e-10)], order) == (order[0], 3.0), "the last bits choose nothing"
    assert improved([-5.0, -4.0], order) == (1, 0.0), "the lower end of the range cuts too"
    assert kernels._TIE == TIE


# --- norms -----------------------------------------------------------------------------------------------------------

N_DRAWS = 20_000


def share(norms, bound):
    return float((norms > bound).mean())


@pytest.mark.parametrize("d", [1, 3, 8])
def test_norms_of_normal_noise(d):
    """At failure 0.01 among 20000 draws: a bound that held with 2 % instead would pass with probability below 1e-20."""
    z = np.random.default_rng(d).standard_normal((N_DRAWS, d, d))
    matrices = (z + z.transpose(0, 2, 1)) / math.sqrt(2)
    assert share(np.linalg.norm(matrices, 2, axis=(1, 2)), goe_norm(d, 0.01)) <= 0.01
    vectors = np.linalg.norm(z[:, 0], axis=1)
    assert 0.006 < share(vectors, normal_norm(d, 0.01)) < 0.015, "this one is exact"


@pytest.mark.parametrize(("d", "n"), [(1, 1), (3, 1), (3, 4), (6, 2)])
def test_norms_of_laplace_noise(d, n):
    rng = np.random.default_rng(10 * d + n)
    upper = np.triu(rng.laplace(size=(N_DRAWS, n, d, d)).sum(axis=1))
    norms = np.linalg.norm(upper + np.triu(upper, 1).transpose(0, 2, 1), 2, axis=(1, 2))
    bound = laplace_matrix_norm(d, n, 0.01)
    assert share(norms, bound) <= 0.01
    assert share(norms, bound / 3) > 0.01, "it is not loose without limit"
    vectors = np.linalg.norm(rng.laplace(size=(N_DRAWS, d)), axis=1)
    assert share(vectors, laplace_norm(d, 0.01)) <= 0.012
    assert share(vectors, laplace_norm(d, 0.01) / 2) > 0.01


def test_norms_refuse_what_is_no_probability():
    for bound in (goe_norm, normal_norm, laplace_norm):
        with pytest.raises(ValueError, match="failure must"):
            bound(3, 0.0)
        with pytest.raises(ValueError, match="dimension must"):
            bound(0, 0.1)
