"""An environment that draws; each statistical test says how often it fails by chance."""

from __future__ import annotations

import numpy as np
import pytest

from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.privacy_core import Interval

MEANS = [0.1, 0.5, 0.9]


def arms(seed=0, n_users=10**6):
    return BernoulliArms(MEANS, n_users, np.random.SeedSequence(seed))


@pytest.mark.parametrize("n_records", [1, 2, 1000])
def test_mean_and_variance_of_a_phase(n_records):
    n_reps = 20_000
    for action, p in enumerate(MEANS):
        drawn = arms(action).respond(np.zeros(n_reps, dtype=int), np.full(n_reps, n_records), np.full(n_reps, action))
        assert drawn.min() >= 0
        assert drawn.max() <= n_records
        assert (drawn == np.round(drawn)).all()
        variance = n_records * p * (1 - p)
        # 8 standard errors: false alarm 1e-15.
        assert abs(drawn.mean() - n_records * p) < 8 * (variance / n_reps) ** 0.5
        # The kurtosis of a binomial is below 3 + 1 / variance.
        error = variance * ((2 + 1 / variance) / n_reps) ** 0.5
        assert abs(drawn.var() - variance) < 8 * error


@pytest.mark.parametrize("n_records", [[0, 1, 1, 0], [0, 3, 5, 0]])
def test_who_is_done_is_answered_zero(n_records):
    sure = BernoulliArms([1.0, 0.0], 10, np.random.SeedSequence(0))
    found = sure.respond(np.zeros(4, dtype=int), np.array(n_records), np.array([0, 0, 1, 0]))
    assert found.tolist() == [0.0, n_records[1], 0.0, 0.0]


def test_the_seed_decides():
    ask = np.zeros(100, dtype=int), np.full(100, 50), np.ones(100, dtype=int)
    assert np.array_equal(arms(1).respond(*ask), arms(1).respond(*ask))
    assert not np.array_equal(arms(1).respond(*ask), arms(2).respond(*ask))


def test_the_range_must_hold_0_and_1():
    environment = arms()
    assert environment.clipped(Interval(-1.0, 1.0)) is environment
    with pytest.raises(ValueError, match=r"not \[0, 0.9\]"):
        environment.clipped(Interval(0.0, 0.9))


@pytest.mark.parametrize(
    ("means", "message"),
    [
        ([0.5], r"at least 2 arms, got shape \(1,\)"),
        ([[0.5, 0.5]], r"got shape \(1, 2\)"),
        ([0.5, 1.5], r"means\[1\] is .*1\.5"),
        ([-0.1, 0.5], r"means\[0\] is .*-0\.1"),
        ([0.5, float("nan")], r"means\[1\] is .*nan"),
    ],
)
def test_bad_means(means, message):
    with pytest.raises(ValueError, match=message):
        BernoulliArms(means, 10, np.random.SeedSequence(0))


def test_bad_length():
    with pytest.raises(ValueError, match="n_users must be at least 1, got 0"):
        arms(n_users=0)
