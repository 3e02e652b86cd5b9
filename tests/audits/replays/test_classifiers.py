"""Learned scores: by hand, on planted signals, and on the outputs of mechanisms that nobody looks into."""

import numpy as np
import pytest

from bandana.audits.bounds.divergence_bounds import pure_epsilon_lower
from bandana.audits.replays.classifiers import (
    FINE,
    TENTHS,
    learn_counts,
    learn_logistic,
    learn_stumps,
)
from benchmarks.raw_outputs import low_order_bits, low_order_names, score_outputs


def test_counts_by_hand():
    """Codes 0, 1, 2 and others: (1.5, 2.5, 0.5, 0.5) of 5 on the neighbor, (2.5, 0.5, 1.5, 0.5) of 5 on the data."""
    scorer = learn_counts(np.array([0, 0, 2]), np.array([0, 1, 1]))
    expected = np.log([1.5 / 2.5, 2.5 / 0.5, 0.5 / 1.5, 1, 1])
    assert scorer(np.array([0, 1, 2, 3, 99])) == pytest.approx(expected)


def test_logistic_regression_finds_the_log_odds():
    """x is N(side, 1): the log odds are x - 1/2."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(side, 1, (40_000, 1)) for side in (0, 1)])
    side = np.repeat([0, 1], 40_000)
    for dtype in (np.float64, np.float32):
        scorer = learn_logistic(np.column_stack([x, np.ones(80_000)]).astype(dtype), side)
        at = np.array([[-1.0, 1.0], [0.5, 1.0], [2.0, 1.0]])
        assert scorer(at) == pytest.approx([-1.5, 0, 1.5], abs=0.06)


def test_stumps_find_log_odds_that_rise_and_fall():
    """x is uniform on one side; on the other its density is 1.5 in the middle half and 0.5 outside."""
    rng = np.random.default_rng(1)
    inner = np.where(rng.random(40_000) < 0.75, rng.uniform(0.25, 0.75, 40_000), rng.uniform(-0.25, 0.25, 40_000) % 1)
    x = np.concatenate([rng.random(40_000), inner])[:, None]
    scorer = learn_stumps(x, np.repeat([0, 1], 40_000), quantiles=FINE)
    at = np.array([[0.05], [0.15], [0.4], [0.6], [0.85], [0.95]])
    assert scorer(at) == pytest.approx(np.log([0.5, 0.5, 1.5, 1.5, 0.5, 0.5]), abs=0.15)


def test_one_stump_by_hand():
    """Ten of each, told apart but for two: residuals 1/2, weights 1/4 each, and a prior weight of 1."""
    x = np.repeat([0.0, 1.0, 0.0, 1.0], [9, 1, 1, 9])[:, None]
    scorer = learn_stumps(x, np.repeat([0, 1], 10), n_rounds=1, rate=1.0)
    step = (9 - 1) * 0.5 / (10 * 0.25 + 1)
    assert scorer(np.array([[0.0], [1.0]])) == pytest.approx([-step, step])


def test_the_first_of_columns_that_say_the_same_is_cut():
    """The second is the first one mirrored, where sums run the other way and round otherwise."""
    generator = np.random.default_rng(3)
    side = np.repeat([0, 1], 300)
    for _ in range(20):
        x = generator.integers(0, 7, 600) + 2.0 * side
        scorer = learn_stumps(np.stack([x, -x], axis=1), side, quantiles=FINE)
        unseen = np.stack([np.full(11, 3.0), -np.arange(11.0)], axis=1)
        assert np.ptp(scorer(unseen)) == 0.0


def test_nothing_to_cut_is_nothing_learned():
    scorer = learn_stumps(np.ones((10, 2)), np.repeat([0, 1], 5))
    assert (scorer(np.zeros((3, 2))) == 0).all()
    assert TENTHS.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])


# --- outputs of any mechanism ----------------------------------------------------------------------------------------


def _laplace(value, n, seed):
    return np.random.default_rng(seed).laplace(value, 1.0, n)


def _certified(mechanism, n=100_000, seed=0, level=0.05, **options):
    """The honest split: a quarter teaches; the rest is for the bound, which holds out what it searches."""
    sides = [mechanism(float(value), n, 2 * seed + value) for value in (0, 1)]
    scorer = score_outputs(*(side[: n // 4] for side in sides), **options)
    return pure_epsilon_lower(*(scorer(side[n // 4 :]) for side in sides), level)


def test_a_learned_score_certifies_most_of_a_laplace_epsilon():
    """Epsilon is 1; a bound above has a probability of 5 % each, stated for these seeds. DP-Sniper certifies 0.86."""
    found = [_certified(_laplace, seed=seed) for seed in range(3)]
    assert min(found) > 0.85
    assert max(found) <= 1


def test_several_coordinates_are_taken_together():
    """The L1 distance is 1 in all: each coordinate by itself shows epsilon 1/4."""
    found = _certified(lambda value, n, seed: np.random.default_rng(seed).laplace(value / 4, 1.0, (n, 4)))
    assert 0.6 < found <= 1


def test_what_is_no_number_tells_too():
    def lost(value, n, seed):
        rng = np.random.default_rng(seed)
        return np.where(rng.random(n) < 0.05 + 0.5 * value, np.nan, rng.normal(size=n))

    assert 2 < _certified(lost, n=20_000) <= np.log(11)


def test_equal_laws_show_nothing():
    """At 95 % each: more than 6 of 40 above 0 have a probability below 1e-2, and the seeds are fixed."""
    found = [_certified(lambda value, n, seed: np.random.default_rng(seed).normal(size=n), 2000, seed) for seed in range(40)]
    assert sum(bound > 0 for bound in found) <= 6


def test_low_order_bits_by_hand():
    """1.5 = 3/2; 2^-60 is lost when 1 is taken away and given back; 0 has no lowest bit."""
    found = low_order_bits(np.array([1.5, 2.0**-60, 0.0, -4.0, np.inf]), (0.0, 1.0))
    assert found[:, 0].tolist() == [-1, -60, 1024, 2, 1024]  # lowest bit of x
    assert found[:, 1].tolist() == [51, 52, 53, 52, 53]  # trailing zeros of 53
    assert np.array_equal(found[:, 2], found[:, 0])  # x - 0
    assert found[:, 3].tolist() == [1, 1, 1, 1, 1]
    assert found[:, 4].tolist() == [-1, 0, 0, 0, 0]  # x - 1: 1/2, -1, -1, -5, -1
    assert found[:, 5].tolist() == [1, 0, 1, 1, 1]
    assert low_order_names(1, 2)[5] == "whether (x - w) + w = x"
    assert len(low_order_names(1, 2)) == found.shape[1]
    many = low_order_bits(np.ones((3, 4)), ((0.0,) * 4, (1.0,) * 4))
    assert many.shape == (3, len(low_order_names(4, 2)))
    assert low_order_names(4, 2)[5] == "the trailing zeros of x, coordinate 1"
    assert low_order_names(1, 3)[-1] == "whether (x - v2) + v2 = x"
