"""Projected kernel regression: against the dense formulas of the paper, and the exact moments of its error."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bandana.algorithms.bandits.capri import projection
from bandana.algorithms.bandits.capri.projection import epoch_lengths, project
from bandana.algorithms.rkhs.features import exact_on
from bandana.algorithms.rkhs.kernels import Matern, SquaredExponential, gram
from bandana.algorithms.rkhs.lookup import locate

RNG = np.random.default_rng(7)
POINTS = RNG.uniform(-1, 1, (12, 2))
KERNELS = [SquaredExponential(0.4), Matern(1.5, 0.8)]


def rooted(matrix, power):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values**power) @ vectors.T


def dense(kernel, basis, copies, ridge):
    """k_S(w) for all w, and M, of lists of points without features."""
    s, r = POINTS[basis], POINTS[copies]
    k_sr = gram(kernel, s, r)
    return gram(kernel, s, POINTS), k_sr @ k_sr.T + ridge * gram(kernel, s, s)


def features_of(kernel):
    return exact_on(kernel, POINTS)(POINTS)


@pytest.mark.parametrize(("horizon", "first", "n"), [(1024, 32, 6), (10**4, 100, 7), (10**5, 317, 9), (10**6, 1000, 10)])
def test_epochs_double_from_the_root_of_the_horizon(horizon, first, n):
    lengths = epoch_lengths(horizon)
    assert (lengths[0], len(lengths)) == (first, n)
    assert all(later == 2 * earlier for earlier, later in itertools.pairwise(lengths))
    assert sum(lengths[:-1]) < horizon <= sum(lengths)


def test_the_shortest_horizons():
    assert [epoch_lengths(horizon) for horizon in (1, 2, 3, 4, 5)] == [(1,), (2,), (2, 4), (2, 4), (3, 6)]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("ridge", [0.3, 1.0])
def test_the_identities_between_features_and_kernels(kernel, ridge):
    """v(w)^T v(u) = k_S(w)^T M^-1 k_S(u), so s(w) = |M^-1/2 k_S(w)|; sigma^2 is eq. (6), s^2 plus what P misses over tau."""
    basis, copies = np.array([0, 3, 5, 8]), np.array([1, 3, 3, 9, 11])
    found = project(features_of(kernel), basis, np.bincount(copies, minlength=12), ridge)
    k_s, m = dense(kernel, basis, copies, ridge)
    np.testing.assert_allclose(found.vectors @ found.vectors.T, k_s.T @ np.linalg.solve(m, k_s), atol=1e-12)
    np.testing.assert_allclose(found.norm, np.linalg.norm(rooted(m, -0.5) @ k_s, axis=0), atol=1e-12)
    k_ss, k_sr = gram(kernel, POINTS[basis], POINTS[basis]), gram(kernel, POINTS[basis], POINTS[copies])
    a = np.linalg.solve(k_ss, k_sr)
    v = a @ np.linalg.solve(ridge * np.eye(len(copies)) + k_sr.T @ a, a.T)
    np.testing.assert_allclose(ridge * found.spread**2, 1 - np.einsum("sw,st,tw->w", k_s, v, k_s), atol=1e-12)
    missed = 1 - np.einsum("sw,sw->w", k_s, np.linalg.solve(k_ss, k_s))
    np.testing.assert_allclose(found.spread**2, found.norm**2 + missed / ridge, atol=1e-12)
    assert (found.spread >= found.norm).all()
    assert (found.spread > found.norm * 1.01).any(), "so that one cannot be taken for the other"


def test_repeated_points_of_the_basis_change_nothing():
    """Where the paper's matrices are singular."""
    kernel, counts = KERNELS[0], np.ones(12)
    once, again = (project(features_of(kernel), np.array(basis), counts, 1.0) for basis in ([2, 4, 7], [7, 4, 2, 4, 4, 2]))
    np.testing.assert_array_equal(once.vectors, again.vectors)
    _, m = dense(kernel, np.array([7, 4, 2, 4, 4, 2]), np.arange(12), 1.0)
    assert np.linalg.cond(m) > 1e15


def test_a_basis_that_spans_everything_misses_nothing():
    found = project(features_of(KERNELS[0]), np.arange(12), np.zeros(12), 0.5)
    np.testing.assert_allclose(found.norm, np.sqrt(2), atol=1e-6)
    np.testing.assert_allclose(found.spread, np.sqrt(2), atol=1e-6)


def test_the_error_has_the_stated_moments():
    features = features_of(KERNELS[1])
    found = project(features, np.array([0, 2, 5, 9]), RNG.integers(0, 3, 12), 1.0)
    rounds = np.where(np.arange(12) % 3, RNG.uniform(0, 5, 12), 0.0)
    error = projection.error(features, found.vectors, rounds)
    weights = found.vectors @ found.vectors.T
    for w in range(12):
        missed = features[w] - (weights[w] * rounds) @ features
        assert error.bias[w] == pytest.approx(np.linalg.norm(missed))
        worst = missed / np.linalg.norm(missed)  # of norm 1, and off by the whole bias
        f = features @ worst
        assert f[w] - (weights[w] * rounds) @ f == pytest.approx(error.bias[w])
        assert error.variance[w] == pytest.approx((weights[w] ** 2 * rounds).sum())
        assert error.weight[w] == pytest.approx(np.abs(weights[w, rounds > 0]).max())


def test_chunks_of_points_are_the_whole(monkeypatch):
    features = features_of(KERNELS[0])
    found = project(features, np.arange(5), np.ones(12), 1.0)
    whole = projection.error(features, found.vectors, np.ones(12))
    monkeypatch.setattr(projection, "_CHUNK", 5)
    for one, other in zip(whole, projection.error(features, found.vectors, np.ones(12)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_locate():
    known = POINTS.reshape(4, 3, 2)
    out = np.empty(3, dtype=np.int64)
    assert locate(known, known[[2, 0, 3]], out)
    assert out.tolist() == [2, 0, 3]
    strange = known[[1, 1, 1]].copy()
    strange[1, 2, 1] += 1e-9
    assert not locate(known, strange, out)
    assert out.tolist() == [1, -1, 1]


def test_assign_counts_among_the_active_ones():
    order = np.array([[[4, 1, 3, 0, 2]]])
    out = np.empty(1, dtype=np.int64)
    seen = []
    for coin in (0.0, 0.33, 0.34, 0.67, np.nextafter(1.0, 0.0)):
        projection.assign(order, np.array([[3]]), np.array([0]), np.array([coin]), out)
        seen.append(int(out[0]))
    assert seen == [4, 4, 1, 3, 3]


def test_encode_and_decode_against_numpy():
    codes, which = RNG.standard_normal((2, 12, 4)), np.array([1, 0, 1])
    place, actions, rewards = np.array([3, 0, 2]), np.array([[2], [1], [0]]), RNG.uniform(size=(3, 1))
    out = np.empty((3, 4))
    projection.encode(codes, which, place, actions, 3, rewards, np.ones(3, dtype=np.int64), 0.5, out)
    np.testing.assert_allclose(out, (rewards - 0.5) * codes[which, place * 3 + actions[:, 0]])
    noisy, found = RNG.standard_normal((3, 4)), np.full((3, 12), np.nan)
    projection.decode(codes[0], 2.0, np.array([0, 2]), noisy, found)
    np.testing.assert_allclose(found[[0, 2]], 2 * noisy[[0, 2]] @ codes[0].T)
    assert np.isnan(found[1]).all()


def test_elimination_by_hand():
    estimate = np.array([[0.0, 1.0, 2.0, 5.0, 5.0, 5.0]])
    width = np.array([[0.4, 0.4, 0.4, 0.1, 0.1, 0.1]])
    active = np.array([[[True, True, True], [True, True, False]]])
    projection.eliminate(estimate, width, np.zeros(1, dtype=np.int64), active)
    assert active.tolist() == [[[False, False, True], [True, True, False]]]
    # 0 reaches to 1.2, 2 down to 1.4; 1 touches it exactly, or but for rounding
    for touching in (0.4, 0.4 - 1e-12):
        wide = np.array([[1.2, touching, 0.6, 0.1, 0.1, 0.1]])
        active = np.ones((1, 2, 3), dtype=bool)
        projection.eliminate(estimate, wide, np.zeros(1, dtype=np.int64), active)
        assert active.tolist() == [[[False, True, True], [True, True, True]]]
