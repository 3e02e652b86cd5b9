"""Parts that all bounds share: scores that can be used, a ratio learned from them, and bins that hold what the tails say."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression
from scipy.special import expit, ndtri

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core.checks import probability

BINS = 1024
LARGEST = 40.0
"""Log ratios beyond this are taken for this: a difference between e^40 and more samples is nobody's to see."""
_NEAR = 0.02
"""Below this the bins of log ratios are equally wide, above their width is proportional to the ratio."""
_KNOTS: tuple[tuple[float, ...], ...] = ((), (-1.0, 1.0), (-1.5, -0.5, 0.5, 1.5))
"""Where a regression may bend, in normal quantiles."""
_RIDGE, _LARGEST_STEP = 1e-3, 5.0
RATIO_EDGES = _NEAR * np.sinh(np.linspace(-1, 1, BINS - 1) * math.asinh(LARGEST / _NEAR))
"""(BINS - 1,) cuts between log ratios that depend on no data."""


def checked_sides(
    data: ArrayLike, neighbor: ArrayLike, least: int = 100, *, is_paired: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Both sides' scores as float64, if a bound can be taken from them.

    Args:
      data: (n,) scores of replays of the data set.
      neighbor: (n,) the same of the neighbor.
      least: smallest number of scores on each side.
      is_paired: whether both sides must have equally many.

    Raises:
      ValueError: not one axis, NaN, too few, or unequal numbers. One and the same score everywhere is no error: it tells
        nothing apart, and every bound from it is 0.
    """
    sides = []
    for name, scores in (("data", data), ("neighbor", neighbor)):
        array = np.asarray(scores, dtype=float)
        if array.ndim != 1:
            raise ValueError(f"{name} must have one axis, the replays, got shape {array.shape}")
        if np.isnan(array).any():
            raise ValueError(f"{name} must hold no NaN, got {int(np.isnan(array).sum())} among {len(array)} scores")
        if len(array) < least:
            raise ValueError(f"{name} must hold at least {least} scores for this bound, got {len(array)}")
        sides.append(array)
    first, second = sides
    if is_paired and len(first) != len(second):
        raise ValueError(f"data and neighbor must hold equally many scores, got {len(first)} and {len(second)}")
    return first, second


def split(data: FloatArray, neighbor: FloatArray, share: float) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """((data, neighbor) to choose with, (data, neighbor) to bound with): the first `share` of each side, and the rest."""
    probability("train_share", share)
    first, second = math.ceil(share * len(data)), math.ceil(share * len(neighbor))
    return (data[:first], neighbor[:second]), (data[first:], neighbor[second:])


def count(edges: FloatArray, scores: FloatArray) -> IntArray:
    """(len(edges) + 1,) how many scores fall between the cuts; one on a cut falls above it."""
    return np.bincount(np.searchsorted(edges, scores, side="right"), minlength=len(edges) + 1)


def block_cuts(n: int) -> list[tuple[int, int]]:
    """Blocks (start, stop) of 0 .. n that grow geometrically: what is learned from the past changes less and less."""
    cuts = [0, min(n, max(64, math.ceil(0.025 * n)))]
    while cuts[-1] < n:
        cuts.append(min(n, math.ceil(cuts[-1] * 1.3)))
    return list(pairwise(cuts))


def ratio_middles() -> FloatArray:
    """(BINS,) the log ratio in the middle between two of `RATIO_EDGES`."""
    return np.asarray((np.append(RATIO_EDGES, LARGEST) + np.append(-LARGEST, RATIO_EDGES)) / 2)


def learn_ratio(data: ArrayLike, neighbor: ArrayLike) -> Callable[[ArrayLike], FloatArray]:
    """Learns the log-likelihood ratio of a score that is larger where the neighbor is likelier.

    See `log_odds`, over bins that hold few samples in both tails and many in the middle.

    Args:
      data: (n,) scores of the data set, of any scale, possibly infinite, not NaN.
      neighbor: (m,) the same of the neighbor.

    Returns:
      a function from scores, any shape, to log ratios of the same shape; it does not fall.

    Guarantee: none needed. What is learned here must be applied to other samples; then it only decides power.
    """
    first, second = checked_sides(data, neighbor, 2, is_paired=False)
    edges = edges_of(np.concatenate([first, second]))
    learned = log_odds(np.stack([count(edges, first), count(edges, second)]).astype(float))
    return lambda scores: np.asarray(learned[np.searchsorted(edges, np.asarray(scores, dtype=float), side="right")])


def edges_of(pooled: FloatArray) -> FloatArray:
    """Cuts between bins of a sample: all distinct values if few, else dense in the tails; a shared value stands alone."""
    ordered = np.sort(pooled)
    values = np.unique(ordered)
    if len(values) <= BINS:
        return np.asarray(values[1:])
    n = len(ordered)
    tail = np.unique(np.geomspace(8, n // 2, BINS // 4).astype(int))
    ranks = np.unique(np.concatenate([tail, n - tail, np.linspace(0, n - 1, BINS // 2).astype(int)]))
    picks = np.unique(ordered[ranks])
    after = np.searchsorted(ordered, picks, side="right")
    is_shared = (after - np.searchsorted(ordered, picks) > 1) & (after < n)
    return np.union1d(picks, ordered[after[is_shared]])


def log_odds(counts: FloatArray) -> FloatArray:
    """(bins,) log odds of the neighbor against the data, not falling along the bins.

    Isotonic regression forms blocks of bins, each with log odds of its own; the extreme ones are the luckiest, and bets on
    them as they are lose. So they are drawn toward the line that logistic regression puts through the scores' normal
    quantiles, or a bent line, if they agree with it within their errors (DerSimonian and Laird 1986), and then
    toward 0 by the standard error that is left. On a line lie shifts of Gaussian noise, and nearly all releases of many
    noisy numbers; where it does not fit, the blocks speak for themselves.

    Args:
      counts: (2, bins) of the data and of the neighbor, each side with some.
    """
    total = counts.sum(axis=0)
    shift = math.log((counts[1].sum() + 1) / (counts[0].sum() + 1))
    line = _logistic_curve(counts, np.asarray(ndtri((np.cumsum(total) - total / 2 + 0.5) / (total.sum() + 1))), shift)
    fit = isotonic_regression((counts[1] + 0.5) / (total + 1), weights=total + 1e-9).x
    starts = np.flatnonzero(np.diff(fit, prepend=-1.0))
    lengths = np.diff(np.append(starts, len(total)))
    blocks = np.add.reduceat(counts, starts, axis=1) + 0.5
    odds, error = np.log(blocks[1] / blocks[0]) - shift, (1 / blocks).sum(axis=0)
    expected = np.add.reduceat(line * (total + 1e-9), starts) / np.add.reduceat(total + 1e-9, starts)
    between = max(0.0, float((odds - expected) ** 2 @ (1 / error)) - len(odds)) / float((1 / error).sum())
    own = between / (between + error)
    shrunk = line + np.repeat(own, lengths) * (np.repeat(odds, lengths) - line)
    shrunk = np.sign(shrunk) * np.maximum(0.0, np.abs(shrunk) - np.repeat(np.sqrt(own * error), lengths))
    rising = np.maximum.accumulate(np.maximum(shrunk, 0.0))
    return np.asarray(rising + np.minimum.accumulate(np.minimum(shrunk, 0.0)[::-1])[::-1])


def _logistic_curve(counts: FloatArray, places: FloatArray, shift: float) -> FloatArray:
    """(bins,) log odds, less `shift`, of logistic regressions of the side on `places`: the one with the least BIC.

    A line, or one that may bend at some knots: the log odds of Laplace noise are flat in both tails.
    """
    best, best_odds = math.inf, np.zeros(len(places))
    for knots in _KNOTS:
        columns = np.stack([np.ones_like(places), places, *(np.maximum(places - knot, 0.0) for knot in knots)], axis=1)
        odds, loss = _logistic_fit(counts, columns, shift)
        loss += math.log(counts.sum()) * columns.shape[1] / 2
        if loss < best:
            best, best_odds = loss, odds
    return np.clip(best_odds, -LARGEST, LARGEST)


def _logistic_fit(counts: FloatArray, columns: FloatArray, shift: float) -> tuple[FloatArray, float]:
    """Log odds, less `shift`, and minus the log-likelihood, by Newton's method; a small ridge on all but the constant."""
    total, weights = counts.sum(axis=0), np.zeros(columns.shape[1])
    ridge = np.append(0.0, np.full(len(weights) - 1, _RIDGE))
    for _ in range(25):
        p = expit(shift + columns @ weights)
        curvature = (columns * (total * p * (1 - p))[:, None]).T @ columns + np.diag(ridge + 1e-9)
        step = np.linalg.solve(curvature, columns.T @ (counts[1] - total * p) - ridge * weights)
        largest = float(np.abs(step).max())
        weights = weights + step * min(1.0, _LARGEST_STEP / max(largest, 1e-300))  # else parted sides would run away
        if largest < 1e-9:
            break
    odds = columns @ weights
    return odds, float(counts[1] @ np.logaddexp(0, -odds - shift) + counts[0] @ np.logaddexp(0, odds + shift))
