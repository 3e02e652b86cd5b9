"""Information gain: in two ways, by hand, and greedy against every subset."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandana.algorithms.rkhs.features import exact_on, feature_map
from bandana.algorithms.rkhs.information_gain import gain_bounds
from bandana.algorithms.rkhs.kernels import Matern, SquaredExponential, gram

seeds = st.integers(0, 10**6)


def kernel_information_gain(kernel, points, noise):
    """In nats, of rewards at `points` (n, d) whose noise has this variance, relative to that of the function."""
    return float(np.linalg.slogdet(np.eye(len(points)) + gram(kernel, points, points) / noise)[1] / 2)


def information_gain(features, noise):
    """The same, of points with the given features (n, m)."""
    return float(np.linalg.slogdet(np.eye(len(features)) + features @ features.T / noise)[1] / 2)


def greedy_gains(features, n_rounds, noise):
    """Gains of the first 1, 2, ... points, each the one that adds most, from a set with features (n, m)."""
    chosen, gains = [], []
    for _ in range(n_rounds):
        inverse = np.linalg.inv(noise * np.eye(features.shape[1]) + features[chosen].T @ features[chosen])
        widths = ((features @ inverse) * features).sum(axis=1)
        chosen.append(int(np.argmax(widths)))
        gains.append(np.log1p(widths.max()) / 2)
    return np.cumsum(gains)


@given(seed=seeds, noise=st.sampled_from([0.01, 1.0, 7.0]))
def test_features_and_kernel_agree(seed, noise):
    kernel, x = Matern(1.5, 0.5), np.random.default_rng(seed).uniform(-1, 1, (40, 2))
    exact = kernel_information_gain(kernel, x, noise)
    assert information_gain(exact_on(kernel, x)(x), noise) == pytest.approx(exact, rel=1e-8)
    smooth = SquaredExponential(1.0)
    near = information_gain(feature_map(smooth, 2, 100)(x), noise)
    assert near == pytest.approx(kernel_information_gain(smooth, x, noise), abs=40 * 1e-6 / noise)


def test_by_hand():
    e = np.eye(3)
    assert information_gain(e, 0.5) == pytest.approx(1.5 * np.log(3))
    assert information_gain(np.repeat(e[:1], 10, axis=0), 2.0) == pytest.approx(0.5 * np.log(6))


@given(seed=seeds)
def test_greedy_is_near_the_best_of_all_subsets(seed):
    features = np.random.default_rng(seed).standard_normal((7, 3))
    best = max(information_gain(features[list(chosen)], 0.5) for chosen in combinations_with_replacement(range(7), 3))
    assert (1 - math.exp(-1)) * best <= greedy_gains(features, 3, 0.5)[-1] <= best + 1e-12
    assert best <= float(gain_bounds(features, np.array(3), 0.5))


@pytest.mark.parametrize(
    ("features", "noise", "message"),
    [
        (np.eye(2), 0.0, "noise must be .* got 0.0"),
        (np.zeros((0, 2)), 1.0, r"shape \(n, d\)"),
        (np.array([[np.inf]]), 1.0, "must be finite"),
        (np.array([[1.0], [np.nan]]), 1.0, "must be finite"),
    ],
)
def test_features_or_noise_out_of_range_are_refused(features, noise, message):
    with pytest.raises(ValueError, match=message):
        gain_bounds(features, np.array([1.0]), noise)


@given(seed=seeds, noise=st.sampled_from([0.05, 1.0, 3.0]))
def test_no_points_tell_more_than_the_bound_and_some_tell_nearly_as_much(seed, noise):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((12, 3)) / 3
    rounds = np.array([1, 2, 5, 20, 300])
    bounds = gain_bounds(features, rounds, noise)
    greedy = greedy_gains(features, 300, noise)[rounds - 1]
    assert (greedy <= bounds * (1 + 1e-12)).all()
    for n, bound in zip(rounds[:3], bounds, strict=False):
        for chosen in rng.integers(0, 12, (20, n)):
            assert information_gain(features[chosen], noise) <= bound * (1 + 1e-12)
    assert bounds[-1] < 1.05 * greedy[-1], "many points come near the continuous optimum"
    assert (np.diff(bounds) >= 0).all()


def test_the_bound_of_many_points_is_that_of_every_subset():
    features = np.random.default_rng(3).standard_normal((5, 3)) / 2
    most = max(information_gain(features[list(c)], 0.5) for c in combinations_with_replacement(range(5), 4))
    assert most <= float(gain_bounds(features, np.array(4), 0.5)) < 1.3 * most


def test_the_bound_uses_the_dimension_where_points_are_everywhere():
    """One direction, of norm 1: log(1 + n / noise) / 2 exactly."""
    found = gain_bounds(np.ones((3, 1)), np.array([0, 4, 1000]), 2.0)
    np.testing.assert_allclose(found, np.log1p(np.array([0, 4, 1000]) / 2) / 2)
