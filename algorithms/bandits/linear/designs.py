r"""Optimal experimental designs: how often to measure each of K known vectors to learn a linear function on all of them.

A design pi is a distribution on the vectors, V(pi) = sum_a pi(a) a a^T, and the leverage of a is a^T V(pi)^-1 a: the
variance of the least-squares estimate of <theta, a> after n measurements of variance 1 is leverage / n. The G-optimal
design has the smallest largest leverage. By Kiefer and Wolfowitz (1960) it maximizes det V(pi) too, its largest leverage is
the dimension d, and it can be supported on d(d+1)/2 vectors.

Leverages do not change under invertible linear maps, so all is computed in coordinates in which some of the vectors are the
unit vectors. These also take care of vectors that span less than the space: the design is that of their span.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.ties import TIE, first_largest

_kernel = njit(cache=True, nogil=True, error_model="numpy")

RANK_TOLERANCE = 1e-8
"""A direction in which no vector reaches further than this, relative to the longest, counts as not spanned."""
_SWEEP = 200
_MOST_SWEEPS = 500


class Design(NamedTuple):
    """A design on k vectors, and the coordinates in which it was found."""

    coordinates: FloatArray
    """(k, rank) of the vectors, in a basis of their span that is made of some of them."""
    weights: FloatArray
    """(k,) a distribution; at most rank (rank + 1) / 2 are above 0."""
    leverage: FloatArray
    """(k,) a^T V(pi)^-1 a, of every vector; its largest is at least the rank."""

    @property
    def rank(self) -> int:
        """Dimension of the span."""
        return int(self.coordinates.shape[1])

    @property
    def gap(self) -> float:
        """Distance of the largest leverage above the optimum, relative to it; at least 0 up to rounding."""
        return float(self.leverage.max()) / self.rank - 1


def optimal_design(features: FloatArray, tolerance: float = 1e-3) -> Design:
    """A G-optimal design, by Frank-Wolfe with away steps, reduced to at most rank (rank + 1) / 2 vectors.

    Args:
      features: (k, d), finite, not all 0.
      tolerance: the design's gap is at most this.

    Returns:
      the design, a function of the arguments alone.

    Raises:
      ValueError: all vectors are 0.
      RuntimeError: the gap was not reached; choose a larger tolerance.

    Source: Kiefer and Wolfowitz (1960); Todd, Minimum-Volume Ellipsoids (2016), chapter 3 (away steps, exact line search).
    """
    coordinates, chosen = spanning_coordinates(features)
    rank = coordinates.shape[1]
    weights = np.zeros(len(coordinates))
    weights[chosen] = 1 / rank
    for _ in range(_MOST_SWEEPS):
        inverse = inverse_of(coordinates, weights)
        leverage = leverages(coordinates, inverse)
        if leverage.max() <= rank * (1 + tolerance):
            break
        away_steps(coordinates, weights, inverse, leverage, tolerance, _SWEEP)
        weights /= weights.sum()
    else:
        raise RuntimeError(
            f"the design on {len(features)} vectors has a gap of {leverage.max() / rank - 1:.3g} after "
            f"{_SWEEP * _MOST_SWEEPS} steps; choose a larger tolerance than {tolerance!r}"
        )
    limit = rank * (rank + 1) // 2
    if np.count_nonzero(weights) > limit:
        weights = reduced_support(coordinates, weights, limit)
        leverage = leverages(coordinates, inverse_of(coordinates, weights))
    return Design(coordinates, weights, leverage)


def rank_of(features: FloatArray) -> int:
    """Dimension of the span of the rows (k, d)."""
    return len(_pivots(np.asarray(features, dtype=float)))


def spanning_coordinates(features: FloatArray) -> tuple[FloatArray, IntArray]:
    """Coordinates (k, rank) of the rows of features (k, d) in a basis of their span, and the (rank,) rows that form it.

    The basis is chosen greedily: each next row is the one farthest from the span of those before it (ties: the lowest).

    Raises:
      ValueError: all rows are 0.
    """
    chosen: IntArray = _pivots(np.asarray(features, dtype=float))
    if not len(chosen):
        raise ValueError("features must hold a vector other than 0")
    directions, _ = np.linalg.qr(features[chosen].T)
    along = features @ directions
    return np.ascontiguousarray(np.linalg.solve(along[chosen].T, along.T).T), chosen


@_kernel
def _pivots(features):  # type: ignore[no-untyped-def]
    """Rows (rank,) of features (k, d), each the farthest from the span of those before it."""
    k, d = features.shape
    left, square = features.copy(), np.empty(k)
    direction = np.empty(d)
    chosen = np.empty(min(k, d), dtype=np.int64)
    smallest = 0.0
    for n in range(len(chosen)):
        largest = 0.0
        for a in range(k):
            square[a] = 0.0
            for i in range(d):
                square[a] += left[a, i] * left[a, i]
            largest = max(largest, square[a])
        if largest <= smallest:
            return chosen[:n]
        # Among equals the lowest, also where rounding makes them differ: unit vectors are common.
        farthest = 0
        while square[farthest] < largest * (1 - 1e-9):
            farthest += 1
        if n == 0:
            smallest = largest * RANK_TOLERANCE**2
        for i in range(d):
            direction[i] = left[farthest, i] / math.sqrt(square[farthest])
        for a in range(k):
            along = 0.0
            for i in range(d):
                along += left[a, i] * direction[i]
            for i in range(d):
                left[a, i] -= along * direction[i]
        left[farthest] = 0.0
        chosen[n] = farthest
    return chosen


def inverse_of(coordinates: FloatArray, weights: FloatArray) -> FloatArray:
    """(d, d) V^-1 for V = sum of weights (k,) times x x^T over the rows x of coordinates (k, d)."""
    return np.asarray(np.linalg.inv(coordinates.T @ (weights[:, None] * coordinates)), dtype=np.float64)


def leverages(coordinates: FloatArray, inverse: FloatArray) -> FloatArray:
    """(k,) x^T V^-1 x for the rows of coordinates (k, d), inverse (d, d)."""
    return np.asarray(((coordinates @ inverse) * coordinates).sum(axis=1))


@_kernel
def away_steps(x, weights, inverse, leverage, tolerance, n_steps):  # type: ignore[no-untyped-def]
    """At most `n_steps` steps of Frank-Wolfe on -log det V, in place; stops at a gap of `tolerance`.

    x: (k, d); weights, leverage: (k,); inverse: (d, d) of V(weights). A step moves weight to the vector of the largest
    leverage, or takes it away from the supporting one of the smallest, whichever is farther from d, by the length that
    maximizes det V: (l - d) / (d (l - 1)) for a leverage of l, where that does not make a weight negative.
    """
    k, d = x.shape
    along = np.empty(d)
    for _ in range(n_steps):
        up, down = 0, -1
        for a in range(k):
            if leverage[a] > leverage[up]:
                up = a
            if weights[a] > 0 and (down < 0 or leverage[a] < leverage[down]):
                down = a
        if leverage[up] <= d * (1 + tolerance):
            return
        if leverage[up] - d >= d - leverage[down]:
            j = up
            step = (leverage[j] - d) / (d * (leverage[j] - 1))
        else:
            j = down
            step = -weights[j] / (1 - weights[j])
            if leverage[j] > 1:
                step = max(step, (leverage[j] - d) / (d * (leverage[j] - 1)))
        is_dropped = step < 0 and step <= -weights[j] / (1 - weights[j])
        shrink = 1 / (1 - step)
        fraction = step / (1 - step + step * leverage[j])
        for p in range(d):
            total = 0.0
            for q in range(d):
                total += inverse[p, q] * x[j, q]
            along[p] = total
        for a in range(k):
            weights[a] *= 1 - step
            cross = 0.0
            for p in range(d):
                cross += along[p] * x[a, p]
            leverage[a] = shrink * (leverage[a] - fraction * cross * cross)
        for p in range(d):
            for q in range(d):
                inverse[p, q] = shrink * (inverse[p, q] - fraction * along[p] * along[q])
        weights[j] = 0.0 if is_dropped else weights[j] + step


def reduced_support(coordinates: FloatArray, weights: FloatArray, limit: int) -> FloatArray:
    """Caratheodory: weights on at most `limit` = d(d+1)/2 of the vectors, with no leverage larger than before.

    More matrices x x^T than d(d+1)/2 are linearly dependent. Along a dependency V does not change; where the weights' sum
    does not grow, it is followed to the first weight that vanishes, and scaling the sum back to 1 can only enlarge V.

    There are many dependencies, and which one is followed decides which vectors stay. So each is that of one vector on a
    basis, which is unique; a basis of the null space is turned by last bits, and each processor would have its own design.
    """
    weights = weights.copy()
    support = np.flatnonzero(weights)
    x, mine = coordinates[support], weights[support]
    rows, columns = np.triu_indices(coordinates.shape[1])
    squares = (x[:, :, None] * x[:, None, :])[:, rows, columns]
    basis = _pivots(squares)
    # (rank, n): square j is the sum of parts[i, j] squares[basis[i]].
    parts = np.linalg.lstsq(squares[basis].T, squares.T)[0]
    for j in np.setdiff1d(np.arange(len(x)), basis):
        along = np.zeros(len(x))
        along[basis], along[j] = parts[:, j], -1.0
        along[np.abs(along) <= TIE * np.abs(along).max()] = 0.0
        if along.sum() > TIE * np.abs(along).sum():
            along = -along
        falling = np.flatnonzero(along < 0)
        ratios = mine[falling] / -along[falling]
        first = first_largest(-ratios)
        mine = np.maximum(mine + ratios[first] * along, 0.0)
        mine[falling[ratios <= ratios[first] * (1 + TIE)]] = 0.0
        if falling[first] != j:  # whatever leaves the basis makes room for the vector
            place = int(np.flatnonzero(basis == falling[first])[0])
            basis[place] = j
            row = parts[place] / parts[place, j]
            parts = parts - np.outer(parts[:, j], row)
            parts[place] = row
    weights[support] = mine / mine.sum()
    return weights
