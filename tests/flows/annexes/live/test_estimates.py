"""Intervals of arms' means hold at all times at once, and shrink."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bandana.flows.annexes.live import estimates


def rows_of(sums, sizes, arm, mechanism, scale, start=0):
    rows = []
    for total, size in zip(sums, sizes, strict=True):
        rows.append({"output": json.dumps(float(total)), "start": start, "stop": start + size, "arm": arm, "mechanism": mechanism, "scale": scale})  # noqa: E501
        start += size
    return rows


@pytest.mark.parametrize("mechanism", ["Laplace", "Gaussian"])
def test_intervals_hold_at_all_times_and_shrink(mechanism):
    """At level 0.1 at most 30 of 300 arms are expected to fail ever; 60 come by chance with probability below 1e-7."""
    draws, sizes, failed, widths = np.random.default_rng(8), [2**k for k in range(10)], 0, []
    for _ in range(300):
        noise = draws.laplace(scale=3.0, size=10) if mechanism == "Laplace" else draws.normal(scale=3.0, size=10)
        sums = draws.binomial(sizes, 0.3) + noise
        means = [
            estimates._mean_of(rows_of(sums[:k], sizes[:k], 1, mechanism, 3.0), 1, 0.0, 1.0, 0.1) for k in range(1, 11)
        ]
        failed += any(not mean.low <= 0.3 <= mean.high for mean in means)
        widths.append(means[-1].high - means[-1].low)
    assert failed < 60
    assert 0.05 < max(widths) < 0.25
    assert means[-1].n_rewards == 1023


def test_records_count_once_and_other_rows_not_at_all():
    rows = rows_of([5.0], [10], 0, "Laplace", 1.0) + rows_of([9.0], [12], 0, "Laplace", 1.0)
    rows += [{**rows[0], "arm": None, "start": 40, "stop": 50}, {**rows[0], "output": "[1.0, 2.0]", "start": 60, "stop": 61}]
    mean = estimates._mean_of(rows, 0, 0.0, 1.0, 0.05)
    assert (mean.n_rewards, mean.mean) == (10, 0.5)
    nothing = estimates._mean_of(rows, 1, 0.0, 1.0, 0.05)
    assert math.isnan(nothing.mean)
    assert (nothing.low, nothing.high) == (0.0, 1.0)


def test_width_by_hand():
    """One release of n rewards with hardly any noise: at least the width of a single best lambda of Hoeffding's bound."""
    mean = estimates._mean_of(rows_of([500.0], [1000], 0, "Gaussian", 1e-9), 0, 0.0, 1.0, 0.05)
    hoeffding = math.sqrt(math.log(2 / 0.05) / 2000)
    assert hoeffding < mean.high - 0.5 < 2 * hoeffding
