"""Scores that are learned: what tells the replays of a data set from those of its neighbor, when no likelihood is known.

Whatever is learned here must be applied to other samples; then it decides power alone, and no bound rests on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.ties import first_largest, is_larger

Scorer = Callable[[Any], FloatArray]
Matrix = NDArray[np.floating[Any]]

TENTHS = np.linspace(0.1, 0.9, 9)
_TAILS = np.geomspace(0.0005, 0.08, 12)
FINE = np.concatenate([_TAILS, np.linspace(0.1, 0.9, 33), 1 - _TAILS[::-1]])
"""Quantiles to cut at, dense in both tails: what is rare may tell most."""
_FIRST_ACTIONS = 6


def learn_counts(data: IntArray, neighbor: IntArray) -> Scorer:
    """Log odds of each code, counted, with half a count added on either side.

    Args:
      data: (n,) whole numbers of at least 0, of the data set.
      neighbor: (m,) the same of the neighbor.

    Returns:
      a function from (n,) codes to (n,) log odds; a code that was never seen has those of a count of 0 on both sides.
    """
    size = int(max(data.max(initial=0), neighbor.max(initial=0))) + 2
    counts = [np.bincount(side, minlength=size) + 0.5 for side in (neighbor, data)]
    log_odds = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
    return lambda codes: np.asarray(log_odds[np.minimum(codes, size - 1)])


def features(actions: IntArray, record: int, n_arms: int) -> FloatArray:
    """(n_replays, n_features) what was played after the record: the first actions one by one, then shares of stretches.

    Stretches double in length. Only actions of other records count: those that the claim protects from.
    """
    later = actions[:, record + 1 :]
    columns = [later[:, [t]] == np.arange(n_arms - 1) for t in range(min(_FIRST_ACTIONS, later.shape[1]))]
    start = 0
    while start < later.shape[1]:
        stop = min(later.shape[1], max(start + 1, 2 * start))
        columns.append(np.stack([(later[:, start:stop] == arm).mean(axis=1) for arm in range(n_arms - 1)], axis=1))
        start = stop
    return np.concatenate([part.astype(float) for part in columns], axis=1)


def learn_logistic(x: Matrix, is_neighbor: ArrayLike, n_steps: int = 12, ridge: float = 1.0) -> Scorer:
    """Logistic regression by Newton's method, on standardized features with a small ridge.

    Args:
      x: (n, n_features)
      is_neighbor: (n,) 0 or 1.
      n_steps: Newton steps.
      ridge: weight of the squared coefficients, in units of one sample.

    Returns:
      a function from (n, n_features) to (n,) log odds of the neighbor.
    """
    side = np.asarray(is_neighbor, dtype=float)
    mean, deviation = x.mean(axis=0, dtype=float), x.std(axis=0, dtype=float)
    deviation = np.where(deviation > 1e-12, deviation, 1.0)
    columns = np.column_stack([np.ones(len(x)), (x - mean) / deviation])
    weights = np.zeros(columns.shape[1])
    for _ in range(n_steps):
        p = 1 / (1 + np.exp(-np.clip(columns @ weights, -30, 30)))
        curvature = (columns * (p * (1 - p))[:, None]).T @ columns + ridge * np.eye(len(weights))
        weights = weights + np.linalg.solve(curvature, columns.T @ (side - p) - ridge * weights)
    slopes = weights[1:] / deviation
    intercept = float(weights[0] - slopes @ mean)

    def scorer(raw: Matrix) -> FloatArray:
        total = np.full(len(raw), intercept)
        for column, slope in enumerate(slopes.tolist()):  # column by column: no copy of all in double precision
            total += slope * raw[:, column]
        return total

    return scorer


def learn_stumps(
    x: Matrix, is_neighbor: ArrayLike, n_rounds: int = 40, rate: float = 0.5, quantiles: FloatArray = TENTHS
) -> Scorer:
    """Boosted decision stumps for the logistic loss: each step adds the cut that explains the rest best.

    Args:
      x: (n, n_features), no NaN.
      is_neighbor: (n,) 0 or 1.
      n_rounds: number of stumps.
      rate: share of a step that is taken.
      quantiles: of each column, where it may be cut.

    Returns:
      a function from (n, n_features) to (n,) log odds of the neighbor; 0 where no column can be cut.
    """
    side = np.asarray(is_neighbor, dtype=float)
    cuts = [_cuts(column, quantiles) for column in x.T]
    usable = [c for c, at in enumerate(cuts) if len(at)]
    if not usable:
        return lambda raw: np.zeros(len(raw))
    bins = {c: np.searchsorted(cuts[c], x[:, c], side="left") for c in usable}
    gains = {c: np.zeros(len(cuts[c]) + 1) for c in usable}  # what each bin of a column adds to the score
    score = np.zeros(len(x))
    for _ in range(n_rounds):
        p = 1 / (1 + np.exp(-score))
        rest, weight = side - p, p * (1 - p)
        under, w_under = rest.sum(), weight.sum() + 1.0
        best = (-1.0, usable[0], 0, 0.0, 0.0)
        for c in usable:
            over, w_over = (np.cumsum(np.bincount(bins[c], by, len(gains[c]))[::-1])[::-1][1:] for by in (rest, weight))
            gain = over**2 / (w_over + 1.0) + (under - over) ** 2 / (w_under - w_over)
            i = first_largest(gain)
            if is_larger(float(gain[i]), best[0]):  # columns that say the same explain the same, but for rounding
                high, low = over[i] / (w_over[i] + 1.0), (under - over[i]) / (w_under - w_over[i])
                best = (float(gain[i]), c, i, rate * float(high), rate * float(low))
        _, c, i, high, low = best
        step = np.where(np.arange(len(gains[c])) > i, high, low)
        gains[c] += step
        score += step[bins[c]]

    def scorer(raw: Matrix) -> FloatArray:
        total = np.zeros(len(raw))
        for c in usable:
            total += gains[c][np.searchsorted(cuts[c], raw[:, c], side="left")]
        return total

    return scorer


def _cuts(column: Matrix, quantiles: FloatArray) -> Matrix:
    """Where a column can be cut in two: above a cut lie some rows, and below or on it others."""
    at = np.unique(np.quantile(column, quantiles, method="lower"))
    return np.asarray(at[at < column.max()])
