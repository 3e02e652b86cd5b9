"""The posterior of a function on a finite set of points, from weighted sums of what was seen at each."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def posterior(gram, weights, sums, ridge, mean, deviation, log_det):  # type: ignore[no-untyped-def]
    r"""Fills mean, deviation and log_det with those of ridge regression in the kernel's space.

    With features phi of the kernel, V = ridge I + sum_a D_a phi_a phi_a^T and b = sum_a s_a phi_a: mean[r, a] =
    <phi_a, V^-1 b>, deviation[r, a] = |phi_a| in the norm of V^-1, log_det[r] = log det(V / ridge). By Woodbury's identity,
    with h = sqrt D and M = ridge I + h K h over the points of positive weight,

        <phi_a, V^-1 b> = k_a^T h M^-1 (s / h),      phi_a^T V^-1 phi_a = (K_aa - k_a^T h M^-1 h k_a) / ridge,

    so that no features are needed, and points of weight 0, whose sums must be 0, cost nothing.

    gram: (n, n), weights (at least 0), sums, mean, deviation: (n_reps, n), log_det: (n_reps,).
    """
    n_reps, n = weights.shape
    factor, row = np.empty((n, n)), np.empty(n)
    active = np.empty(n, dtype=np.int64)
    solved = np.empty(n)
    for r in range(n_reps):
        k = 0
        for a in range(n):
            if weights[r, a] > 0.0:
                active[k] = a
                k += 1
        log = 0.0
        for i in range(k):
            a = active[i]
            root = math.sqrt(weights[r, a])
            for j in range(i + 1):
                b = active[j]
                entry = gram[a, b] * root * math.sqrt(weights[r, b]) + (ridge if i == j else 0.0)
                for m in range(j):
                    entry -= factor[i, m] * factor[j, m]
                if i == j:
                    entry = max(entry, ridge)  # of a positive matrix plus the ridge; below it by rounding only
                    factor[i, i] = math.sqrt(entry)
                    log += math.log(entry / ridge)
                else:
                    factor[i, j] = entry / factor[j, j]
            value = sums[r, a] / root
            for m in range(i):
                value -= factor[i, m] * solved[m]
            solved[i] = value / factor[i, i]
        log_det[r] = log
        for a in range(n):
            told, left = 0.0, gram[a, a]
            for i in range(k):
                b = active[i]
                entry = gram[a, b] * math.sqrt(weights[r, b])
                for m in range(i):
                    entry -= factor[i, m] * row[m]
                entry /= factor[i, i]
                row[i] = entry
                told += entry * solved[i]
                left -= entry * entry
            mean[r, a] = told
            deviation[r, a] = math.sqrt(max(left, 0.0) / ridge)
