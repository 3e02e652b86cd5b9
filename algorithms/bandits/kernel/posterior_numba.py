"""The posterior of a function on a finite set of points, and the choice among them."""

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
            predicted, left = 0.0, gram[a, a]
            for i in range(k):
                b = active[i]
                entry = gram[a, b] * math.sqrt(weights[r, b])
                for m in range(i):
                    entry -= factor[i, m] * row[m]
                entry /= factor[i, i]
                row[i] = entry
                predicted += entry * solved[i]
                left -= entry * entry
            mean[r, a] = predicted
            deviation[r, a] = math.sqrt(max(left, 0.0) / ridge)


@njit(cache=True, nogil=True, error_model="numpy")
def observe(counts, known, products, log_det):  # type: ignore[no-untyped-def]
    r"""Brings H_ab = phi_a^T V^-1 phi_b up to date, V = ridge I + sum_a n_a phi_a phi_a^T, where counts have grown.

    With k more at point a: H -= k / (1 + k H_aa) H_a H_a^T (Sherman and Morrison 1950), log_det += log(1 + k H_aa).

    counts: (n_reps, n); filled: known (n_reps, n), the counts that V is made of, products (n_reps, n, n) H, which begins
    with the kernel's matrix over the ridge, log_det (n_reps,) of V / ridge.
    """
    n_reps, n = counts.shape
    row = np.empty(n)
    for r in range(n_reps):
        for a in range(n):
            more = counts[r, a] - known[r, a]
            if more == 0.0:
                continue
            known[r, a] = counts[r, a]
            row[:] = products[r, a]
            grown = 1.0 + more * row[a]
            log_det[r] += math.log(grown)
            for b in range(n):
                value, other = more / grown * row[b], products[r, b]
                if value != 0.0:
                    for c in range(n):
                        other[c] -= value * row[c]


@njit(cache=True, nogil=True, error_model="numpy")
def upper_bounds(counts, sums, products, width, on_sums, out):  # type: ignore[no-untyped-def]
    """out[r, a] = sum_b s_b H_ab + width sqrt(H_aa) + on_sums sum_b |H_ab|, sums over points b that were played.

    counts, sums: (n_reps, n), products: (n_reps, n, n) H, width: (n_reps,), on_sums: a number.
    """
    n_reps, n = counts.shape
    spread = np.empty(n)
    for r in range(n_reps):
        mean = out[r]
        mean[:] = 0.0
        spread[:] = 0.0
        for b in range(n):
            if counts[r, b] > 0.0:
                value, row = sums[r, b], products[r, b]
                for a in range(n):
                    mean[a] += value * row[a]
                    spread[a] += abs(row[a])
        for a in range(n):
            mean[a] += width[r] * math.sqrt(max(products[r, a, a], 0.0)) + on_sums * spread[a]


@njit(cache=True, nogil=True)
def first_of_the_largest(upper, place, n_actions, order, slack, out):  # type: ignore[no-untyped-def]
    """out[r] = the first action, in the order of order[r], whose bound is the largest of the context, up to the slack.

    upper: (n_reps, n_contexts n_actions), place: (n_reps,) contexts, order: (n_reps or 1, n_actions) permutations of the
    actions, slack: relative to the largest.
    """
    for r in range(len(place)):
        start = place[r] * n_actions
        largest = -math.inf
        for a in range(n_actions):
            largest = max(largest, upper[r, start + a])
        least = largest - slack * abs(largest)
        row = r if len(order) > 1 else 0
        for i in range(n_actions):
            out[r] = order[row, i]
            if upper[r, start + out[r]] >= least:
                break
