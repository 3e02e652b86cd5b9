"""Information gain: in two ways, by hand, and greedy against every subset."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandana.algorithms.rkhs.features import exact_on, feature_map
from bandana.algorithms.rkhs.information_gain import OPTIMUM_SHARE, greedy_gain, information_gain, kernel_information_gain
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
