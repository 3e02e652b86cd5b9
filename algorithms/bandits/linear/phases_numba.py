r"""Kernels of phased elimination: rounds dealt to the arms of a phase, and a noisy phase sum turned into eliminations.

And the tails of Laplace noise: a sum X of a v-sub-Gaussian variable and of independent Laplace variables of scales c_j has
log E e^(lambda X) <= lambda^2 v / 2 - sum_j log(1 - lambda^2 c_j^2) for lambda < 1 / max c_j, so for any such lambda

    P(X >= x) <= p   at   x = (lambda^2 v / 2 - sum_j log(1 - lambda^2 c_j^2) + log(1/p)) / lambda    (Chernoff).

All searches below are for a good lambda; whatever they find is valid.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from bandana.algorithms.protocol import FloatArray

_kernel = njit(cache=True, nogil=True, error_model="numpy")

_GOLDEN = (math.sqrt(5) - 1) / 2
_N_CUTS = 36


@_kernel
def advance(sums, stop, counts, slot, left, rewards, n_records, ended):  # type: ignore[no-untyped-def]
    """Plays `n_records` rounds of the slot under way; returns how many phases ended, and in `ended` which.

    sums, counts: (n_reps, n_slots), the rewards of each slot's arm so far and its rounds; the others (n_reps,): `stop` one
    past the last record, `slot` the one under way, `left` its rounds left. A phase ends with its last slot of any rounds.
    """
    n_slots = counts.shape[1]
    n_ended = 0
    for r in range(len(slot)):
        n = n_records[r]
        if n == 0:
            continue
        sums[r, slot[r]] += rewards[r]
        stop[r] += n
        left[r] -= n
        if left[r] > 0:
            continue
        slot[r] += 1
        if slot[r] == n_slots or counts[r, slot[r]] == 0:
            ended[n_ended] = r
            n_ended += 1
        else:
            left[r] = counts[r, slot[r]]
    return n_ended


@_kernel
def encode(sums, rows, matrix, out):  # type: ignore[no-untyped-def]
    """out[i] = sums[i] @ matrix for i in rows, in an order of additions that no batch changes.

    sums: (n_rows, n_slots); matrix: (n_slots, n_outputs); out: (n_rows, n_outputs).
    """
    n_slots, n_outputs = matrix.shape
    for i in rows:
        for p in range(n_outputs):
            total = 0.0
            for j in range(n_slots):
                total += sums[i, j] * matrix[j, p]
            out[i, p] = total


@_kernel
def eliminate(noisy, rows, reps, shift, predict, width, active, estimate):  # type: ignore[no-untyped-def]
    """Estimates of the active arms, and of these the ones that stay: upper end not below the largest lower end.

    noisy: (n_rows, n_outputs); reps: (n_rows,) the replicate of each row; rows: which to take. shift: (n_outputs,);
    predict: (n_arms, n_outputs), the estimate is predict @ (noisy - shift); width: (n_arms,). active (n_reps, n_arms) bool
    and estimate (n_reps, n_arms) are written; an arm that is out keeps its last estimate.
    """
    n_arms, n_outputs = predict.shape
    for i in rows:
        r = reps[i]
        best = -np.inf
        for a in range(n_arms):
            if active[r, a]:
                total = 0.0
                for p in range(n_outputs):
                    total += predict[a, p] * (noisy[i, p] - shift[p])
                estimate[r, a] = total
                best = max(best, total - width[a])
        for a in range(n_arms):
            active[r, a] = active[r, a] and estimate[r, a] + width[a] >= best


def eliminate_reference(
    noisy: FloatArray, shift: FloatArray, predict: FloatArray, width: FloatArray, active: np.ndarray
) -> tuple[FloatArray, np.ndarray]:
    """(n_rows, n_arms) estimates, and which arms stay, in NumPy."""
    estimates = (noisy - shift) @ predict.T
    best = np.where(active, estimates - width, -np.inf).max(axis=1)
    return estimates, active & (estimates + width >= best[:, None])


@_kernel
def _log_moment(rate, scales):  # type: ignore[no-untyped-def]
    """The Laplace variables' part, infinite where the product underflows: one logarithm for all of them."""
    product = 1.0
    for c in scales:
        product *= 1 - (rate * c) ** 2
    return -math.log(product) if product > 0 else np.inf


@_kernel
def _bound_at(rate, proxy, scales, log_term, target):  # type: ignore[no-untyped-def]
    """The width at this lambda for a target of 0, else the number of samples at this kappa."""
    tail = _log_moment(rate, scales) + log_term
    if target > 0:
        return tail / (rate * target - rate * rate * proxy / 2)
    return (rate * rate * proxy / 2 + tail) / rate


@_kernel
def _smallest(high, proxy, scales, log_term, target):  # type: ignore[no-untyped-def]
    """The smallest `_bound_at` over (0, high) and below 1 / max |scales|, by golden-section search."""
    largest = np.abs(scales).max()
    if largest * high > 1:
        high = 1 / largest
    low = 0.0
    left, right = high - _GOLDEN * high, _GOLDEN * high
    at_left = _bound_at(left, proxy, scales, log_term, target)
    at_right = _bound_at(right, proxy, scales, log_term, target)
    best = min(at_left, at_right)
    for _ in range(_N_CUTS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = _bound_at(left, proxy, scales, log_term, target)
            best = min(best, at_left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = _bound_at(right, proxy, scales, log_term, target)
            best = min(best, at_right)
    return best


@_kernel
def laplace_width(proxy, scales, log_term):  # type: ignore[no-untyped-def]
    """The x of the module's text, for log(1/p) = log_term, at the best lambda: proxy v > 0, scales (m,).

    Without Laplace variables the best lambda is sqrt(2 log_term / v); with them it is smaller.
    """
    return _smallest(1.001 * math.sqrt(2 * log_term / proxy), proxy, scales, log_term, 0.0)


@_kernel
def laplace_samples(proxy, scales, log_term, target):  # type: ignore[no-untyped-def]
    """The smallest n for which the width of proxy / n and scales / n is at most `target`.

    At lambda = n kappa the condition reads n >= (log_term - sum log(1 - kappa^2 c^2)) / (kappa target - kappa^2 v / 2): a
    convex function over a concave one, so quasi-convex in kappa; without Laplace variables the best kappa is target / v.
    """
    return _smallest(1.001 * target / proxy, proxy, scales, log_term, target)


def laplace_width_reference(proxy: float, scales: FloatArray, log_term: float, n_points: int = 20_001) -> float:
    """`laplace_width` by trying lambda on a grid (NumPy)."""
    high = min(math.sqrt(2 * log_term / proxy), 1 / max(float(np.abs(scales).max()), 1e-300))
    rate = np.linspace(0, high, n_points)[1:-1]
    moment = -np.log1p(-((rate[:, None] * scales) ** 2)).sum(axis=1)
    return float(((rate**2 * proxy / 2 + moment + log_term) / rate).min())


@_kernel
def laplace_widths(proxies, scales, log_term, out):  # type: ignore[no-untyped-def]
    """`laplace_width` of each row, 0 for a row that nothing is added to: proxies, out: (k,); scales: (k, m)."""
    for a in range(len(proxies)):
        out[a] = laplace_width(proxies[a], scales[a], log_term) if proxies[a] > 0 else 0.0


@_kernel
def most_laplace_samples(proxies, scales, log_term, target):  # type: ignore[no-untyped-def]
    """The largest `laplace_samples` of the rows: proxies (k,); scales (k, m)."""
    most = 0.0
    for a in range(len(proxies)):
        if proxies[a] > 0:
            most = max(most, laplace_samples(proxies[a], scales[a], log_term, target))
    return most
