"""The optimistic choice of linear bandits: the action of largest upper confidence bound, in each replicate."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_ABREAST = 64
"""Replicates that one vectorized loop runs over where all have the same actions: with fewer, loops are unrolled instead."""
_SHORT = 16
"""Coordinates up to which that is faster."""
_FEW = 8
"""Number of actions below which a loop over them is not worth vectorizing."""
_BLOCK = 128
"""Actions that one vectorized loop runs over, so that their coordinates stay in the cache."""


@_kernel
def _bounds(theta, inverse, width, x, scratch, index):  # type: ignore[no-untyped-def]
    """index[a] = <theta, x_a> + width sqrt(x_a^T inverse x_a), x_a the first columns of x, (d, `_BLOCK`).

    scratch: (3, `_BLOCK`), memory to work in.
    """
    d, n = len(x), len(index)
    mean, square, row = scratch[0], scratch[1], scratch[2]
    for a in range(n):
        mean[a] = square[a] = 0.0
    for i in range(d):
        own, slope, weight = x[i], theta[i], inverse[i, i]
        for a in range(n):
            mean[a] += slope * own[a]
            row[a] = weight * own[a]
        n_fours = (d - i - 1) // 4
        for k in range(n_fours):  # four at once, in the order of one after the other
            j = i + 1 + 4 * k
            x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
            w0, w1 = 2.0 * inverse[i, j], 2.0 * inverse[i, j + 1]
            w2, w3 = 2.0 * inverse[i, j + 2], 2.0 * inverse[i, j + 3]
            for a in range(n):
                row[a] = (((row[a] + w0 * x0[a]) + w1 * x1[a]) + w2 * x2[a]) + w3 * x3[a]
        for j in range(i + 1 + 4 * n_fours, d):
            other, weight = x[j], 2.0 * inverse[i, j]
            for a in range(n):
                row[a] += weight * other[a]
        for a in range(n):
            square[a] += own[a] * row[a]
    for a in range(n):
        index[a] = mean[a] + width * math.sqrt(max(square[a], 0.0))


@_kernel
def _bounds_abreast(theta, inverse, width, x, index):  # type: ignore[no-untyped-def]
    """The same for `_ABREAST` replicates that share their actions x, (n_actions, d): index, (n_actions, `_ABREAST`)."""
    n_actions, d = x.shape
    slope, weight = np.empty((d, _ABREAST)), np.empty((d * (d + 1) // 2, _ABREAST))
    mean, square, row = np.empty(_ABREAST), np.empty(_ABREAST), np.empty(_ABREAST)
    for k in range(_ABREAST):
        n = 0
        for i in range(d):
            slope[i, k] = theta[k, i]
            weight[n, k] = inverse[k, i, i]
            for j in range(i + 1, d):
                weight[n + j - i, k] = 2.0 * inverse[k, i, j]
            n += d - i
    for a in range(n_actions):
        mean[:] = 0.0
        square[:] = 0.0
        n = 0
        for i in range(d):
            own = x[a, i]
            for k in range(_ABREAST):
                mean[k] += slope[i, k] * own
                row[k] = weight[n, k] * own
            for j in range(1, d - i):
                other = x[a, i + j]
                for k in range(_ABREAST):
                    row[k] += weight[n + j, k] * other
            for k in range(_ABREAST):
                square[k] += own * row[k]
            n += d - i
        for k in range(_ABREAST):
            index[a, k] = mean[k] + width[k] * math.sqrt(max(square[k], 0.0))


@_kernel
def _first_of_the_largest(index, order, slack):  # type: ignore[no-untyped-def]
    """The first in the order of the actions that are equal up to the slack, relative to the largest."""
    largest = index[0]
    for a in range(1, len(index)):
        largest = max(largest, index[a])
    for a in order:
        if not index[a] < largest - slack * abs(largest):
            return a
    return order[-1]


@_kernel
def optimistic_actions(theta, inverse, width, contexts, slack, order, out):  # type: ignore[no-untyped-def]
    """out[r] = argmax_a <theta[r], x_a> + width[r] sqrt(x_a^T inverse[r] x_a), x_a = contexts[r, a].

    theta: (n_reps, d), inverse: (n_reps, d, d) symmetric, width, out: (n_reps,), contexts: (n_reps, n_actions, d). Of the
    inverse the upper triangle is read. Of actions that are equal up to the slack, relative to the largest, the first in
    order[r], or in order[0] where that is all; order: (n_reps or 1, n_actions).
    """
    n_reps, n_actions, d = contexts.shape
    # Blocks of actions with one row a coordinate, so that the inner loops run over actions and are vectorized.
    x = np.empty((1 + (n_actions - 1) // _BLOCK, d, _BLOCK))
    index, scratch = np.empty(n_actions), np.empty((3, _BLOCK))
    is_shared = contexts.strides[0] == 0
    n_abreast = n_reps - n_reps % _ABREAST if is_shared and d <= _SHORT else 0
    abreast = np.empty((n_actions, _ABREAST))
    for start in range(0, n_abreast, _ABREAST):
        some = slice(start, start + _ABREAST)
        _bounds_abreast(theta[some], inverse[some], width[some], contexts[0], abreast)
        for k in range(_ABREAST):
            r = start + k
            out[r] = _first_of_the_largest(abreast[:, k], order[r if len(order) > 1 else 0], slack)
    for r in range(n_abreast, n_reps):
        if n_actions < _FEW:  # the same sums, one by one
            for a in range(n_actions):
                slope_sum, square_sum = 0.0, 0.0
                for i in range(d):
                    xi = contexts[r, a, i]
                    slope_sum += theta[r, i] * xi
                    weighted = inverse[r, i, i] * xi
                    for j in range(i + 1, d):
                        weighted += 2.0 * inverse[r, i, j] * contexts[r, a, j]
                    square_sum += xi * weighted
                index[a] = slope_sum + width[r] * math.sqrt(max(square_sum, 0.0))
        else:
            if r == n_abreast or not is_shared:
                for a in range(n_actions):
                    for i in range(d):
                        x[a // _BLOCK, i, a % _BLOCK] = contexts[r, a, i]
            for k in range(len(x)):
                _bounds(theta[r], inverse[r], width[r], x[k], scratch, index[k * _BLOCK : (k + 1) * _BLOCK])
        out[r] = _first_of_the_largest(index, order[r if len(order) > 1 else 0], slack)
