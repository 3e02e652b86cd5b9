"""The kernels of linear regression against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_matrices import positive_definite

from bandana.algorithms.regression import ridge_numba

shapes = st.tuples(st.integers(1, 4), st.integers(2, 12), st.integers(1, 7), st.integers(0, 10**6))


def test_features_of_the_chosen_actions_where_all_share_them():
    rng = np.random.default_rng(0)
    shared, chosen = np.broadcast_to(rng.standard_normal((4, 3)), (5, 4, 3)), rng.integers(0, 4, 5)
    x = np.empty((5, 3))
    ridge_numba.take(shared, chosen, x)
    assert np.array_equal(x, shared[np.arange(5), chosen])


def test_vectors_are_shortened_as_plain_numpy_does_and_those_inside_stay_as_they_are():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3, 4))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    inside = x * rng.random((40, 3, 1))
    found = np.empty_like(x)
    for vectors in (inside, x):
        assert ridge_numba.are_within(vectors, 1 + 1e-12)
        ridge_numba.shorten(vectors, 1 + 1e-12, found)
        assert np.array_equal(found, vectors)
    for length in (1 + 1e-9, 10.0, 1e200, 1e307):
        ridge_numba.shorten(length * x, 1 + 1e-12, found)
        np.testing.assert_allclose(found, x, rtol=1e-12, atol=1e-15)
        assert not ridge_numba.are_within(np.concatenate([inside, length * x[:1]]), 1 + 1e-12)
    for bad in (np.nan, np.inf, -np.inf):
        mixed = inside.copy()
        mixed[7, 1, 2] = bad
        assert not ridge_numba.are_within(mixed, 1 + 1e-12)
        ridge_numba.shorten(mixed, 1 + 1e-12, found)
        assert not found[7, 1].any()
        mixed[7, 1] = 0.0
        assert np.array_equal(found, mixed)


def test_normal_equations():
    rng = np.random.default_rng(0)
    x, weights, answers = rng.standard_normal((7, 3)), rng.random(7), rng.standard_normal(7)
    found = np.empty((7, 3, 4))
    ridge_numba.normal_equations(x, weights, answers, found)
    np.testing.assert_allclose(found[:, :, :3], np.einsum("r,ri,rj->rij", weights, x, x), rtol=1e-14)
    assert np.array_equal(found[:, :, 3], answers[:, None] * x)


@pytest.mark.parametrize(("d", "n_steps"), [(1, 10_000), (3, 10_000), (10, 3000), (40, 300)])
def test_rank_one_updates_over_many_rounds(d, n_steps):
    rng = np.random.default_rng(d)
    n_reps = 2
    gram, inverse, log_det = np.tile(np.eye(d), (n_reps, 1, 1)), np.tile(np.eye(d), (n_reps, 1, 1)), np.zeros(n_reps)
    for _ in range(n_steps):
        x = rng.standard_normal((n_reps, d))
        ridge_numba.add_rank_one(gram, inverse, log_det, x / np.linalg.norm(x, axis=1, keepdims=True))
    np.testing.assert_allclose(inverse, np.linalg.inv(gram), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(gram)[1], rtol=1e-12)
    before = gram.copy(), inverse.copy(), log_det.copy()
    ridge_numba.add_rank_one(gram, inverse, log_det, np.zeros((n_reps, d)))
    assert all(np.array_equal(a, b) for a, b in zip(before, (gram, inverse, log_det), strict=True))


@given(shapes)
def test_inverse_and_log_determinant(shape):
    n_reps, _, d, seed = shape
    rng = np.random.default_rng(seed)
    gram = positive_definite(rng, n_reps, d)
    inverse, log_det, is_positive = np.empty_like(gram), np.empty(n_reps), np.empty(n_reps, dtype=np.bool_)
    ridge_numba.factor(gram, inverse, log_det, is_positive)
    assert is_positive.all()
    np.testing.assert_allclose(inverse, np.linalg.inv(gram), rtol=1e-9, atol=1e-12)
    assert np.array_equal(inverse, inverse.transpose(0, 2, 1))
    np.testing.assert_allclose(log_det, np.linalg.slogdet(gram)[1], rtol=1e-9, atol=1e-11)


def test_a_matrix_that_is_not_positive_definite_is_told_and_left():
    gram = np.stack([np.eye(2), np.diag([1.0, -1.0]), np.ones((2, 2)), np.full((2, 2), np.nan)])
    inverse, log_det, is_positive = np.full_like(gram, 7.0), np.full(4, 7.0), np.empty(4, dtype=np.bool_)
    ridge_numba.factor(gram, inverse, log_det, is_positive)
    assert is_positive.tolist() == [True, False, False, False]
    assert (inverse[1:] == 7).all()
    assert log_det.tolist() == [0, 7, 7, 7]


@given(shapes, st.floats(0.0, 1e5))
def test_least_eigenvalues(shape, spread):
    n_reps, _, d, seed = shape
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_reps, d))
    matrix = positive_definite(rng, n_reps, d) + spread * x[:, :, None] * x[:, None, :]
    out = np.empty(n_reps)
    ridge_numba.least_eigenvalues(matrix, out)
    size = np.linalg.norm(matrix, axis=(1, 2))
    assert (np.abs(out - np.linalg.eigvalsh(matrix)[:, 0]) <= 1e-12 * size).all()


@pytest.mark.parametrize("d", [1, 3, 6, 30])
def test_a_replicates_least_eigenvalue_depends_on_no_other(d):
    rng = np.random.default_rng(d)
    matrix = positive_definite(rng, 37, d) * np.geomspace(1e-6, 1e6, 37)[:, None, None]
    matrix[::5] = np.eye(d)  # nothing to turn, beside what takes several sweeps
    whole, part = np.empty(37), np.empty(1)
    ridge_numba.least_eigenvalues(matrix, whole)
    for r in range(37):
        ridge_numba.least_eigenvalues(matrix[r : r + 1], part)
        assert part[0] == whole[r]


@pytest.mark.parametrize("d", [5, 40])
def test_least_squares_from_sums(d):
    """By a loop and, from 24 rows on, by LAPACK: the lower triangle alone is read, and both have one rule for pivots."""
    rng = np.random.default_rng(d)
    gram = positive_definite(rng, 4, d)
    gram[1] -= 100 * np.eye(d)
    gram[2, -1], gram[2, :, -1] = gram[2, 0], gram[2, 0]
    gram[2, -1, -1] = gram[2, 0, 0]  # two equal rows: a pivot of 0, but for rounding
    vector = rng.standard_normal((4, d))
    triangle = np.tril(gram - 3 * np.eye(d)) + np.triu(np.full((d, d), 9.0), 1)
    statistic = np.concatenate([triangle, vector[:, :, None]], axis=2)
    inverse, estimate, log_det = np.full((4, d, d), 7.0), np.full((4, d), 7.0), np.full(4, 7.0)
    is_positive = np.empty(4, dtype=np.bool_)
    ridge_numba.learn(statistic, np.full(4, 3.0), estimate, inverse, log_det, is_positive)
    assert is_positive.tolist() == [True, False, False, True]
    fine = [0, 3]
    np.testing.assert_allclose(inverse[fine], np.linalg.inv(gram[fine]), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(estimate[fine], np.linalg.solve(gram[fine], vector[fine, :, None])[:, :, 0], rtol=1e-8)
    np.testing.assert_allclose(log_det[fine], np.linalg.slogdet(gram[fine])[1], rtol=1e-10)
    assert np.array_equal(inverse[0], inverse[0].T)
    alone, one = np.empty((1, d, d)), np.empty((1, d))
    ridge_numba.learn(statistic[3:], np.full(1, 3.0), one, alone, np.empty(1), np.empty(1, dtype=np.bool_))
    assert np.array_equal(alone[0], inverse[3])
    assert np.array_equal(one[0], estimate[3])


@pytest.mark.parametrize("d", [1, 3, 6, 21])
def test_least_squares_side_by_side_are_those_of_each_alone(d):
    rng, n = np.random.default_rng(d), 37  # two rows of sixteen and five more
    statistic = np.concatenate([positive_definite(rng, n, d), rng.standard_normal((n, d, 1))], axis=2)
    statistic *= np.geomspace(1e-6, 1e6, n)[:, None, None]
    statistic[::5, 0, 0], statistic[7, d - 1, d - 1] = -1.0, np.nan  # beside others that are positive definite
    added = rng.uniform(0.0, 1e-9, n)
    estimate, inverse = np.full((n, d), 7.0), np.full((n, d, d), 7.0)
    log_det, is_positive = np.full(n, 7.0), np.empty(n, dtype=np.bool_)
    ridge_numba.learn(statistic, added, estimate, inverse, log_det, is_positive)
    assert np.flatnonzero(~is_positive).tolist() == sorted({*range(0, n, 5), 7})
    for r in range(n):
        one = np.full((1, d), 7.0), np.full((1, d, d), 7.0), np.full(1, 7.0), np.empty(1, dtype=np.bool_)
        ridge_numba.learn(statistic[r : r + 1], added[r : r + 1], *one)
        for of_one, of_all in zip(one, (estimate, inverse, log_det, is_positive), strict=True):
            assert np.array_equal(of_one[0], of_all[r])


def test_weigh():
    out = np.empty((2, 2))
    ridge_numba.weigh(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, -1.0]), out)
    assert out.tolist() == [[2.0, 4.0], [-3.0, -4.0]]


def test_normalize():
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    ridge_numba.normalize(rows)
    np.testing.assert_allclose(rows, [[0.6, 0.8], [1.0, 0.0], [0.0, -1.0]])


@pytest.mark.parametrize("is_two_point", [True, False])
def test_answers_have_their_mean_and_stay_in_the_range(is_two_point):
    n = 100_000
    rng = np.random.default_rng(0)
    contexts = np.broadcast_to(np.array([[0.6, 0.0], [-0.5, 0.5]]), (n, 2, 2))
    actions, out = np.tile([0, 1], n // 2), np.empty(n)
    ridge_numba.linear_answers(np.array([0.5, 0.2]), contexts, actions, rng.random(n), 0.5, 0.0, 0.0, 1.0, is_two_point, out)
    assert out.min() >= 0
    assert out.max() <= 1
    for action, mean in ((0, 0.8), (1, 0.35)):
        # Six standard deviations of at most 1/2 over sqrt(50000): false alarm below 1e-8.
        assert out[actions == action].mean() == pytest.approx(mean, abs=6 * 0.5 / np.sqrt(n / 2))
    assert set(np.unique(out)) <= {0.0, 1.0} or not is_two_point
