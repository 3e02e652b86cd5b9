"""Confidence intervals of a mean over independent replications, of a paired difference, and quantiles beside them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

FloatArray = NDArray[np.float64]

LEVEL = 0.95
"""Confidence level of every interval."""
FEW = 200
"""Below this many replications an interval is Student's; from here on it is a bootstrap percentile interval."""
QUANTILES = (0.1, 0.5, 0.9)
_SKEWED = 2.0
_RESAMPLES = 2000
_SEED = 0


class Mean(NamedTuple):
    """A mean and the ends of its 95 % confidence interval, numbers or arrays of one shape."""

    mean: Any
    low: Any
    high: Any


def mean_interval(values: ArrayLike) -> Mean:
    """Mean over replications with its 95 % confidence interval.

    Below 200 replications it is Student's interval: with the normal quantile instead, five normal replications would be
    covered in 88 % of cases. From 200 on it is the percentile interval of 2000 bootstrap resamples, which follows the skew
    of a heavy tail. One replication has no interval: both ends are its value.

    Args:
      values: (n, ...), one row per replication; replications are independent.
    """
    rows = np.asarray(values, dtype=float)
    n, mean = len(rows), rows.mean(axis=0)
    if n == 1:
        return Mean(mean, mean, mean)
    if n >= FEW:
        flat = rows.reshape(n, -1)
        low, high = np.quantile(_resamples(n) @ flat, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        # Sums of equal values differ in their last bits: their interval is the value.
        is_one = np.ptp(flat, axis=0) == 0
        ends = (np.where(is_one, flat[0], end).reshape(mean.shape) for end in (mean.ravel(), low, high))
        return Mean(*ends)
    half = student_quantile(n - 1) * rows.std(axis=0, ddof=1) / math.sqrt(n)
    return Mean(mean, mean - half, mean + half)


def paired_interval(values: ArrayLike, others: ArrayLike) -> Mean:
    """Mean of values minus others, replication by replication, with its 95 % confidence interval.

    Both played on the same random numbers: what an easy or a hard replication does to both cancels.

    Args:
      values: (n,)
      others: (n,), replication i in the environment of replication i.
    """
    return mean_interval(np.asarray(values, dtype=float) - np.asarray(others, dtype=float))


def simultaneous_intervals(differences: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Intervals of m mean differences that hold all together with 95 %, and the p-values of Holm's method.

    Each is Student's at the level 1 - 0.05 / m. The probability that a given one misses its mean is then 0.05 / m, and that
    any of the m does is at most their sum, 0.05 (Bonferroni), however the differences depend on each other; cells on common
    random numbers do. Exact for normal differences. Bootstrap percentiles are not used: 2000 resamples have no such tails.

    Args:
      differences: (m, n_reps), paired by replication.

    Returns:
      (m,) lower ends, upper ends, and two-sided p-values that a mean is 0, adjusted by `holm`; NaN for one replication.
    """
    rows = np.asarray(differences, dtype=float)
    (m, n), mean = rows.shape, rows.mean(axis=1)
    error = np.where(np.ptp(rows, axis=1) > 0, rows.std(axis=1, ddof=min(1, n - 1)), 0.0) / math.sqrt(n)
    half = stdtrit(n - 1, 1 - (1 - LEVEL) / (2 * m)) * error if n > 1 else np.full(m, np.nan)
    return mean - half, mean + half, holm(np.minimum(1.0, 2 * np.minimum(p_values(rows), p_values(-rows))))


def holm(chances: ArrayLike) -> FloatArray:
    """P-values adjusted for (m,) tests together, by Holm's method (1979).

    The i-th smallest is multiplied by m - i + 1, and none is below a smaller one's. Rejecting where the result is at most
    0.05 rejects any true hypothesis with probability at most 0.05, however the tests depend on each other.
    """
    order = np.argsort(chances, kind="stable")
    adjusted = np.empty(len(order))
    steps = np.asarray(chances, dtype=float)[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def p_values(differences: FloatArray) -> FloatArray:
    """P-values of the one-sided t-tests that the mean of the differences is not below 0.

    One replication shows nothing: 1. Differences that are equal in all replications are taken as they are.

    Args:
      differences: (..., n_reps), of paired replications.

    Returns:
      (...).
    """
    from scipy.stats import ttest_1samp

    if differences.shape[-1] < 2:
        return np.ones(differences.shape[:-1])
    chances = np.array(np.where(differences[..., 0] < 0, 0.0, 1.0))
    has_spread = np.ptp(differences, axis=-1) > 0
    chances[has_spread] = ttest_1samp(differences[has_spread], 0.0, axis=-1, alternative="less").pvalue
    return chances


def share_interval(count: int, n: int) -> Mean:
    """Share of `count` among n independent replications, with its 95 % interval of Clopper and Pearson (1934)."""
    from scipy.stats import binomtest

    interval = binomtest(count, n).proportion_ci(LEVEL, "exact")
    return Mean(count / n, float(interval.low), float(interval.high))


def unpaired_interval(before: Mean, n_before: int, after: Mean, n_after: int) -> Mean:
    """Difference of two independent means, after minus before, with Welch's 95 % confidence interval.

    Args:
      before: the mean and its interval.
      n_before: replications behind it.
      after: the same.
      n_after: the same.
    """
    squares = [_square_error(*side) for side in ((before, n_before), (after, n_after))]
    difference = after.mean - before.mean
    total = sum(squares)
    if total == 0:
        return Mean(difference, difference, difference)
    counts = (n_before, n_after)
    weights = sum(square**2 / (n - 1) for square, n in zip(squares, counts, strict=True) if n > 1)
    half = student_quantile(total**2 / weights if weights > 0 else math.inf) * math.sqrt(total)
    return Mean(difference, difference - half, difference + half)


def quantiles(values: ArrayLike) -> list[float]:
    """The 10 %, 50 % and 90 % quantiles of (n,) replications: what a mean hides where the tail is heavy."""
    return [float(q) for q in np.quantile(np.asarray(values, dtype=float), QUANTILES)]


def caution(values: ArrayLike) -> str | None:
    """Why the interval of (n,) replications may cover its mean less often than stated; None where nothing speaks for it.

    Coverage was simulated on the regret of every family (`python -m benchmarks.interval_coverage`). Below 200 replications
    it falls short where most replications end with the same few values, as algorithms that play in phases do, because a rare
    other value is not in the sample, and where a few replications lose many times the rest.
    """
    rows = np.asarray(values, dtype=float)
    n = len(rows)
    if n < 2 or np.ptp(rows) == 0:
        return None
    if n < FEW and len(np.unique(rows)) <= n / 2:
        return f"only {len(np.unique(rows))} different values in {n} replications: the interval may be too short; run {FEW}"
    deviations = rows - rows.mean()
    skewness = float((deviations**3).mean() / (deviations**2).mean() ** 1.5)
    if n < FEW and abs(skewness) > _SKEWED:
        return f"skewness {skewness:.1f} in {n} replications: the interval may be too short; see the quantiles, or run {FEW}"
    return None


def words(replications: int) -> str:
    """Method of the interval over so many replications, in words."""
    if replications == 1:
        return "one replication, without an interval"
    how = "Student's t" if replications < FEW else "bootstrap percentiles"
    return f"95 % confidence interval of the mean over replications ({how})"


@lru_cache(maxsize=64)
def student_quantile(freedom: float) -> float:
    """Two-sided 95 % quantile of Student's distribution; infinite degrees of freedom: of the normal one."""
    return float(stdtrit(freedom, (1 + LEVEL) / 2))


@lru_cache(maxsize=4)
def _resamples(n: int) -> FloatArray:
    """(2000, n) shares of each replication in each resample; the same in every call, so that a report can be made again."""
    generator = np.random.Generator(np.random.SFC64(_SEED))
    drawn = generator.integers(0, n, (_RESAMPLES, n)) + n * np.arange(_RESAMPLES)[:, None]
    return np.bincount(drawn.ravel(), minlength=_RESAMPLES * n).reshape(_RESAMPLES, n) / n


def _square_error(side: Mean, n: int) -> float:
    """Square of the standard error that an interval implies."""
    quantile = student_quantile(n - 1) if 1 < n < FEW else student_quantile(math.inf)
    return float(((side.high - side.low) / 2 / quantile) ** 2)
