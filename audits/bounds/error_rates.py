"""Lower confidence bounds on the privacy loss, computed from scores.

A test says "neighbor" where the score reaches a threshold. If a mechanism is f-DP, its false-positive and
false-negative rates obey fnr >= f(fpr). With upper confidence limits on both rates, a violated inequality refutes the
promise. The threshold must be chosen on other replays than those that the errors are counted on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.bounds.bound import ASSUMES_GDP, ASSUMES_NOTHING, REQUIRED, Bound, QuantityKind
from bandana.audits.bounds.samples import checked_sides, split
from bandana.privacy_core.checks import probability

_CANDIDATES = 512
_MOST_TABULATED = 2 * _CANDIDATES
"""Trials up to which the limits of all counts are kept: hardly more than one choice of a threshold asks for."""


def clopper_pearson_upper(successes: ArrayLike, n: int, level: float) -> FloatArray:
    """Exact upper confidence limit for a binomial proportion, one-sided.

    Args:
      successes: counts, any shape.
      n: number of trials, at least 1.
      level: probability with which the limit lies below the true proportion, at most.

    Returns:
      Same shape, in (0, 1].

    Guarantee: for every true proportion p, P(limit < p) <= level. Source: Clopper and Pearson (1934).
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}")
    probability("level", level)
    k = np.asarray(successes, dtype=float)
    return np.asarray(np.where(k >= n, 1.0, betaincinv(np.minimum(k, n - 1) + 1, n - np.minimum(k, n - 1), 1 - level)))


@lru_cache(maxsize=32)
def _every_upper(n: int, level: float) -> FloatArray:
    return clopper_pearson_upper(np.arange(n + 1), n, level)


def _upper(counts: IntArray, n: int, level: float) -> FloatArray:
    """`clopper_pearson_upper` of integer counts in [0, n]; small n share a table of all values."""
    return _every_upper(n, level)[counts] if n <= _MOST_TABULATED else clopper_pearson_upper(counts, n, level)


@dataclass(frozen=True)
class Errors:
    """Counts of errors of one test, on replays that it was not chosen on.

    Attributes:
      threshold: the test says "neighbor" where the score is at least this.
      false_positives: replays of the data set that it took for the neighbor.
      n_data: replays of the data set.
      false_negatives: replays of the neighbor that it took for the data set.
      n_neighbor: replays of the neighbor.
    """

    threshold: float
    false_positives: int
    n_data: int
    false_negatives: int
    n_neighbor: int

    @classmethod
    def count(cls, data: FloatArray, neighbor: FloatArray, threshold: float) -> Errors:
        """Counts the errors of "score >= threshold"."""
        return cls(
            float(threshold), int((data >= threshold).sum()), len(data),
            int((neighbor < threshold).sum()), len(neighbor),
        )  # fmt: skip

    def upper(self, level: float) -> tuple[float, float]:
        """Upper limits on the false-positive and false-negative rates; both hold with probability at least 1 - `level`."""
        return (
            float(clopper_pearson_upper(self.false_positives, self.n_data, level / 2)),
            float(clopper_pearson_upper(self.false_negatives, self.n_neighbor, level / 2)),
        )


def _mu(fpr: ArrayLike, fnr: ArrayLike) -> FloatArray:
    quantiles = [np.asarray(ndtri(np.asarray(rate, dtype=float)), dtype=float) for rate in (fpr, fnr)]
    return np.asarray(np.maximum(0.0, -quantiles[0] - quantiles[1]))


def _epsilon(fpr: ArrayLike, fnr: ArrayLike, delta: float) -> FloatArray:
    fpr, fnr = np.asarray(fpr), np.asarray(fnr)
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.log(np.maximum(0.0, 1 - delta - fpr) / fnr)
        other = np.log(np.maximum(0.0, 1 - delta - fnr) / fpr)
    return np.asarray(np.maximum(0.0, np.maximum(one, other)))


def mu_lower(errors: Errors, level: float) -> float:
    """Lower confidence bound on mu, for a mechanism that is mu-GDP for some mu.

    Guarantee: with probability at least 1 - level, every mu for which the mechanism is mu-GDP is at least this:
    mu >= Phi^-1(1 - fpr) - Phi^-1(fnr) holds for the true rates, and falls in both.
    Assumes: the promise tested is a GDP one. Source: Nasr et al. (2023), eq. 4; Dong, Roth, Su (2022), Theorem 2.4.
    """
    return float(_mu(*errors.upper(level)))


def epsilon_lower(errors: Errors, delta: float, level: float) -> float:
    """Lower confidence bound on epsilon at the given delta; assumes nothing about the mechanism.

    Guarantee: with probability at least 1 - level, the mechanism is not (epsilon, delta)-DP for any smaller epsilon:
    (epsilon, delta)-DP implies 1 - delta - fpr <= e^epsilon fnr, and the same with both rates exchanged.
    Source: Kairouz, Oh, Viswanath (2015), Theorem 2.1; Jagielski, Ullman, Oprea (2020) for the use with Clopper-Pearson.
    """
    probability("delta", delta)
    return float(_epsilon(*errors.upper(level), delta))


def choose_threshold(data: FloatArray, neighbor: FloatArray, level: float, delta: float | None = None) -> float:
    """The threshold that promises the largest bound, judged with the same confidence limits that the bound will use.

    Args:
      data: (n,) scores to choose on, n >= 1, of any sign and possibly infinite, never NaN.
      neighbor: the same of the neighbor.
      level: as for the bound.
      delta: choose for `epsilon_lower` at this delta; None chooses for `mu_lower`.

    Returns:
      a threshold among 512 quantiles of the scores and plus infinity.

    Raises:
      ValueError: no scores, or NaN among them.
    """
    for name, scores in (("data", data), ("neighbor", neighbor)):
        if not len(scores) or np.isnan(scores).any():
            raise ValueError(f"{name} must hold at least one score and no NaN, got {len(scores)} scores")
    sorted_data, sorted_neighbor = np.sort(data), np.sort(neighbor)
    picks = [
        scores[np.unique(np.linspace(0, len(scores) - 1, _CANDIDATES // 2).astype(int))]
        for scores in (sorted_data, sorted_neighbor)
    ]
    thresholds = np.unique(np.concatenate([*picks, [np.inf]]))
    false_positives = len(data) - np.searchsorted(sorted_data, thresholds, side="left")
    false_negatives = np.searchsorted(sorted_neighbor, thresholds, side="left")
    fpr = _upper(false_positives, len(data), level / 2)
    fnr = _upper(false_negatives, len(neighbor), level / 2)
    value = _mu(fpr, fnr) if delta is None else _epsilon(fpr, fnr, delta)
    return float(thresholds[int(np.argmax(value))])


def mu_lower_threshold(data: ArrayLike, neighbor: ArrayLike, level: float) -> float:
    """`mu_lower` at one threshold, chosen on the first half of each side, its errors counted on the rest."""
    data, neighbor = checked_sides(data, neighbor, is_paired=False)
    probability("level", level)
    train, test = split(data, neighbor, 0.5)
    return mu_lower(Errors.count(*test, choose_threshold(*train, level)), level)


def epsilon_lower_threshold(data: ArrayLike, neighbor: ArrayLike, delta: float, level: float) -> float:
    """`epsilon_lower` from one event, score >= t or score < t, chosen on the first half of each side.

    Where one rare event tells the sides apart and the rest of the scores says little, no other bound is sharper.
    """
    data, neighbor = checked_sides(data, neighbor, is_paired=False)
    probability("level", level)
    train, test = split(data, neighbor, 0.5)
    return epsilon_lower(Errors.count(*test, choose_threshold(*train, level, delta)), delta, level)


EPSILON_THRESHOLD = Bound(
    "epsilon-threshold",
    QuantityKind.EPSILON,
    epsilon_lower_threshold,
    {"delta": REQUIRED},
    theorem="Kairouz, Oh, Viswanath (2015), Theorem 2.1; Clopper and Pearson (1934)",
    assumption=ASSUMES_NOTHING,
    words="One threshold, chosen on other replays, and exact limits for its two error rates (Jagielski et al. 2020).",
)

MU_THRESHOLD = Bound(
    "mu-threshold",
    QuantityKind.MU,
    mu_lower_threshold,
    {},
    theorem="Nasr et al. (2023), eq. 4; Clopper and Pearson (1934)",
    assumption=ASSUMES_GDP,
    words="One threshold, chosen on other replays, and exact limits for its two error rates (Nasr et al. 2023).",
)
