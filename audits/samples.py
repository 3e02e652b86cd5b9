"""What all bounds share: scores that can be used, a ratio learned from them, and bins that hold what the tails say."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from algorithms.protocol import FloatArray, IntArray
from privacy_core.checks import probability

BINS = 1024
LARGEST = 40.0
"""Log ratios beyond this are taken for this: a difference between e^40 and more samples is nobody's to see."""
_NEAR = 0.02
"""Below this the bins of log ratios are equally wide, above their width is proportional to the ratio."""
RATIO_EDGES = _NEAR * np.sinh(np.linspace(-1, 1, BINS - 1) * math.asinh(LARGEST / _NEAR))
"""(BINS - 1,) cuts between log ratios that depend on no data."""


def checked_sides(
    data: ArrayLike, neighbor: ArrayLike, least: int, *, is_paired: bool = True, may_tie: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Both sides' scores as float64, if a bound can be taken from them.

    Args:
      data: (n,) scores of replays of the data set.
      neighbor: (n,) the same of the neighbor.
      least: smallest number of scores on each side.
      is_paired: whether both sides must have equally many.
      may_tie: whether one and the same score everywhere is let through.

    Raises:
      ValueError: not one axis, NaN, too few, unequal numbers, or one and the same score everywhere.
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
    if may_tie:
        return first, second
    some = first[0] if len(first) else second[0] if len(second) else 0.0
    if (first == some).all() and (second == some).all():
        raise ValueError(f"data and neighbor must not all hold one score, got {some!r} everywhere: it tells nothing apart")
    return first, second


def split(data: FloatArray, neighbor: FloatArray, share: float) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """((data, neighbor) to choose with, (data, neighbor) to bound with): the first `share` of each side, and the rest."""
    probability("train_share", share)
    first, second = math.ceil(share * len(data)), math.ceil(share * len(neighbor))
    return (data[:first], neighbor[:second]), (data[first:], neighbor[second:])


def count(edges: FloatArray, scores: FloatArray) -> IntArray:
    """(len(edges) + 1,) how many scores fall between the cuts; one on a cut falls above it."""
    return np.bincount(np.searchsorted(edges, scores, side="right"), minlength=len(edges) + 1)


def block_cuts(n: int, first_share: float = 0.025, growth: float = 1.3) -> list[tuple[int, int]]:
    """Blocks (start, stop) of 0 .. n that grow geometrically: what is learned from the past changes less and less."""
    cuts = [0, min(n, max(64, math.ceil(first_share * n)))]
    while cuts[-1] < n:
        cuts.append(min(n, math.ceil(cuts[-1] * growth)))
    return list(pairwise(cuts))


def ratio_middles() -> FloatArray:
    """(BINS,) the log ratio in the middle between two of `RATIO_EDGES`."""
    return np.asarray((np.append(RATIO_EDGES, LARGEST) + np.append(-LARGEST, RATIO_EDGES)) / 2)


def learn_ratio(data: ArrayLike, neighbor: ArrayLike) -> Callable[[ArrayLike], FloatArray]:
    """Learns the log-likelihood ratio of a score that is larger where the neighbor is likelier.

    Isotonic regression of the side on the score, over bins that hold few samples in both tails and many in the middle,
    with half a count added to each side.

    Args:
      data: (n,) scores of the data set, of any scale, possibly infinite, not NaN.
      neighbor: (m,) the same of the neighbor.

    Returns:
      a function from scores, any shape, to log ratios of the same shape; it does not fall.

    Guarantee: none needed. What is learned here must be applied to other samples; then it only decides power.
    """
    first, second = checked_sides(data, neighbor, 2, is_paired=False)
    edges = edges_of(np.concatenate([first, second]))
    counts = np.stack(
        [np.bincount(np.searchsorted(edges, s, side="right"), minlength=len(edges) + 1) for s in (first, second)]
    )
    learned = isotonic_ratio(counts.astype(float))
    return lambda scores: np.asarray(learned[np.searchsorted(edges, np.asarray(scores, dtype=float), side="right")])


def edges_of(pooled: FloatArray) -> FloatArray:
    """Cuts between bins of a sample: all distinct values if few, else dense in the tails."""
    ordered = np.sort(pooled)
    values = np.unique(ordered)
    if len(values) <= BINS:
        return np.asarray(values[1:])
    n = len(ordered)
    tail = np.unique(np.geomspace(8, n // 2, BINS // 4).astype(int))
    ranks = np.unique(np.concatenate([tail, n - tail, np.linspace(0, n - 1, BINS // 2).astype(int)]))
    return np.unique(ordered[ranks[ranks > 0]])


def isotonic_ratio(counts: FloatArray) -> FloatArray:
    """(bins,) log odds of the neighbor from counts (2, bins), not falling, each one standard error closer to 0.

    The extreme blocks of an isotonic fit are the luckiest; bets on them as they are lose.
    """
    total = counts.sum(axis=0)
    fit = isotonic_regression((counts[1] + 0.5) / (total + 1), weights=total + 1e-9).x
    starts = np.flatnonzero(np.diff(fit, prepend=-1.0))
    blocks = np.add.reduceat(counts, starts, axis=1) + 0.5
    odds = np.log(blocks[1] / blocks[0]) - math.log((counts[1].sum() + 1) / (counts[0].sum() + 1))
    odds = np.sign(odds) * np.maximum(0.0, np.abs(odds) - np.sqrt((1 / blocks).sum(axis=0)))
    odds = np.repeat(odds, np.diff(np.append(starts, len(total))))
    rising = np.maximum.accumulate(np.maximum(odds, 0.0))
    return np.asarray(rising + np.minimum.accumulate(np.minimum(odds, 0.0)[::-1])[::-1])
