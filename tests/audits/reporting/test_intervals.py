"""Intervals of means over replications: by hand, their coverage by simulation, and paired ones beside unpaired ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bandana.audits.reporting.intervals import (
    Mean,
    caution,
    holm,
    mean_interval,
    paired_interval,
    quantiles,
    simultaneous_intervals,
    unpaired_interval,
    words,
)


def test_few_replications_have_students_interval():
    found = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    half = stats.t.ppf(0.975, 4) * math.sqrt(2.5 / 5)
    assert found == pytest.approx((3.0, 3.0 - half, 3.0 + half))


def test_one_replication_has_no_interval():
    assert mean_interval([4.0]) == (4.0, 4.0, 4.0)
    assert words(1) == "one replication, without an interval"


def test_many_replications_have_bootstrap_percentiles_that_follow_the_skew():
    values = np.random.default_rng(0).exponential(size=400) ** 2
    found = mean_interval(values)
    assert found == mean_interval(values), "the same in every call"
    assert found.high - found.mean > found.mean - found.low
    normal = stats.norm.ppf(0.975) * values.std(ddof=1) / 20
    assert (found.high - found.low) / 2 == pytest.approx(normal, rel=0.15)


def test_equal_replications_have_an_interval_without_width():
    values = np.full((400, 2), 4468.123456789)
    values[:, 1] = np.arange(400)
    found = mean_interval(values)
    assert found.low[0] == found.mean[0] == found.high[0] == 4468.123456789
    assert found.low[1] < found.mean[1] < found.high[1]


def test_whole_curves_have_the_intervals_of_their_points():
    curves = np.random.default_rng(1).normal(size=(8, 3))
    whole = mean_interval(curves)
    for i in range(3):
        assert [end[i] for end in whole] == pytest.approx(mean_interval(curves[:, i]))


@pytest.mark.parametrize("n", [5, 10, 20, 200])
def test_coverage_on_normal_replications(n):
    """95 % of 4,000 intervals: a standard error is 0.34 %, five of them are allowed."""
    values = np.random.default_rng(n).normal(3.0, 2.0, (n, 4000))
    found = mean_interval(values)
    covered = ((found.low <= 3.0) & (found.high >= 3.0)).mean()
    assert abs(covered - 0.95) < 0.0175


def test_a_paired_interval_is_free_of_what_both_share():
    generator = np.random.default_rng(2)
    shared = generator.normal(0, 100, 20)
    one, other = shared + generator.normal(1.0, 0.1, 20), shared + generator.normal(0.0, 0.1, 20)
    paired = paired_interval(one, other)
    assert paired.low > 0
    unpaired = unpaired_interval(mean_interval(other), 20, mean_interval(one), 20)
    assert unpaired.low < 0 < unpaired.high
    assert unpaired.mean == pytest.approx(paired.mean)


def test_unpaired_means_have_welchs_interval():
    generator = np.random.default_rng(3)
    before, after = generator.normal(0, 1, 6), generator.normal(2, 5, 12)
    found = unpaired_interval(mean_interval(before), 6, mean_interval(after), 12)
    reference = stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high))
    assert unpaired_interval(Mean(1, 1, 1), 1, Mean(3, 3, 3), 1) == (2, 2, 2)


def test_samples_whose_interval_is_too_short_say_so():
    assert caution([1.0, 2.0, 3.0, 4.0]) is None
    assert caution([7.0, 7.0]) is None, "computed, or the same in every replication"
    assert "only 2 different values in 5 replications" in caution([7.0, 7.0, 7.0, 7.0, 9.0])
    assert "skewness" in caution([1.0, 1.1, 0.9, 1.2, 0.8, 1.05, 0.95, 1.15, 50.0])
    assert caution(np.random.default_rng(0).exponential(size=400) ** 4) is None, "bootstrap percentiles follow the skew"


def test_quantiles():
    assert quantiles(np.arange(11)) == pytest.approx([1, 5, 9])


def test_holm_s_adjustment_by_hand():
    """Sorted, 0.01, 0.03 and 0.04 are multiplied by 3, 2 and 1; the last is raised to the one before it."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == pytest.approx([1, 1])
    assert len(holm([])) == 0


def test_simultaneous_intervals_by_hand():
    """Two degrees of freedom: Student's quantile is (2 p - 1) / sqrt(2 p (1 - p)), and P(|T| > t) = 1 - t / sqrt(2 + t^2).

    Two differences: each interval has the level 0.975, so p = 0.9875. The first has mean 2 and standard error 1 / sqrt(3).
    """
    low, high, p = simultaneous_intervals([[1.0, 2.0, 3.0], [4.0, 4.0, 4.0]])
    half = 0.975 / math.sqrt(2 * 0.9875 * 0.0125) / math.sqrt(3)
    assert low == pytest.approx([2 - half, 4])
    assert high == pytest.approx([2 + half, 4])
    # The second p-value is 0: no spread. The first is then the larger of two, and stays as it is.
    assert p == pytest.approx([1 - math.sqrt(12) / math.sqrt(14), 0], abs=1e-12)
    low, high, p = simultaneous_intervals([[5.0], [0.0]])
    assert np.isnan([*low, *high]).all()
    assert p.tolist() == [1, 1]


def test_simultaneous_intervals_hold_together_where_single_ones_do_not():
    """At most 50 of 1,000 tables of ten dependent differences miss a mean in expectation; 90 have probability below 1e-7."""
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(1000, 10, 6)) + generator.normal(size=(1000, 1, 6))
    together = [simultaneous_intervals(each) for each in rows]
    assert sum(bool(((low > 0) | (high < 0)).any()) for low, high, _ in together) < 90
    assert sum(bool((p <= 0.05).any()) for *_, p in together) < 90
    single = mean_interval(np.moveaxis(rows, 2, 0))
    assert ((single.low > 0) | (single.high < 0)).any(axis=1).sum() > 200
