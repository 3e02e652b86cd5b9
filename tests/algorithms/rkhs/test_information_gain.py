"""Information gain: in two ways, by hand, and greedy against every subset."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandana.algorithms.rkhs.features import exact_on, feature_map
from bandana.algorithms.rkhs.information_gain import (
    OPTIMUM_SHARE,
    gain_bounds,
    greedy_gain,
    information_gain,
    kernel_information_gain,
)
from bandana.algorithms.rkhs.kernels import Matern, SquaredExponential

seeds = st.integers(0, 10**6)


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
def test_greedy_is_the_gain_of_what_it_chose(seed):
    features = np.random.default_rng(seed).standard_normal((30, 4)) / 2
    found = greedy_gain(features, 25, 0.3)
    for n in (1, 7, 25):
        assert found.gains[n - 1] == pytest.approx(information_gain(features[found.chosen[:n]], 0.3), rel=1e-9)
    steps = np.diff(found.gains, prepend=0.0)
    assert (np.diff(steps) <= 1e-12).all()  # submodular: what is added falls


@given(seed=seeds)
def test_greedy_is_near_the_best_of_all_subsets(seed):
    features = np.random.default_rng(seed).standard_normal((7, 3))
    best = max(information_gain(features[list(chosen)], 0.5) for chosen in combinations_with_replacement(range(7), 3))
    assert OPTIMUM_SHARE * best <= greedy_gain(features, 3, 0.5).gains[-1] <= best + 1e-12


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: information_gain(np.eye(2), 0.0), "noise must be .* got 0.0"),
        (lambda: greedy_gain(np.eye(2), 0, 1.0), "n_rounds must be .* got 0"),
        (lambda: information_gain(np.zeros((0, 2)), 1.0), r"shape \(n, d\)"),
        (lambda: kernel_information_gain(SquaredExponential(1.0), np.array([[np.inf]]), 1.0), "must be finite"),
    ],
)
def test_what_does_not_fit_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


@given(seed=seeds, noise=st.sampled_from([0.05, 1.0, 3.0]))
def test_no_points_tell_more_than_the_bound_and_some_tell_nearly_as_much(seed, noise):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((12, 3)) / 3
    rounds = np.array([1, 2, 5, 20, 300])
    bounds = gain_bounds(features, rounds, noise)
    greedy = greedy_gain(features, 300, noise).gains[rounds - 1]
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
