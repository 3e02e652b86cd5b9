r"""Kernels of indices under Gaussian noise: how surprising a noisy mean is, and which mean or arm that leaves.

A mean of rewards in [0, 1] with noise of variance v for each of them. For p <= q

    D_v(p, q) = min over r in [0, 1] of kl(r, q) + (r - p)^2 / (2 v)
              = max over s >= 0 of -s p - log(1 - q + q e^-s) - s^2 v / 2,

the rewards' share of the surprise and the noise's. At the optimum r = q e^-s / (1 - q + q e^-s) and s = (r - p) / v. p may
lie outside of [0, 1], as noise moves it there.
"""

from __future__ import annotations

import math

from numba import njit

_kernel = njit(cache=True, nogil=True, error_model="numpy")


@_kernel
def smoothed_divergence(p, q, v):  # type: ignore[no-untyped-def]
    """D_v(p, q) and the maximum's s, for q in [0, 1] and v > 0; both 0 for p >= q. Newton's method, kept in a bracket."""
    if p >= q:
        return 0.0, 0.0
    if q <= 0.0 or q >= 1.0:
        return (q - p) * (q - p) / (2.0 * v), (q - p) / v
    low, high = 0.0, (q - p) / v
    s = (q - p) / (v + q * (1.0 - q))
    for _ in range(100):
        share = q * math.exp(-s)
        r = share / (1.0 - q + share)
        slope = r - p - s * v
        if slope > 0.0:
            low = s
        else:
            high = s
        following = s + slope / (r * (1.0 - r) + v)
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - s) <= 1e-14 * s:
            break
        s = following
    return max(0.0, -s * p - math.log1p(q * math.expm1(-s)) - 0.5 * s * s * v), s


@_kernel
def largest_smoothed_mean(p, budget, v):  # type: ignore[no-untyped-def]
    """The largest q in [0, 1] with D_v(p, q) <= budget, v > 0, to 1e-12; 0 if there is none, and 1 within 1e-9 of 1.

    D_v(p, q) grows with q and is convex, with the slope (1 - e^-s) / (1 - q + q e^-s), and at least (q - p)^2 / (1/2 + 2 v)
    (Pinsker): Newton's method from there, with a bisection wherever it does not halve its step.
    """
    if smoothed_divergence(p, 1.0 - 1e-9, v)[0] <= budget:
        return 1.0
    low, high = max(p, 0.0), min(p + math.sqrt(budget * (0.5 + 2.0 * v)), 1.0)
    if high <= low:
        return low if p >= 0.0 else 0.0
    q = 0.5 * (low + high) if high == 1.0 else high
    step = high - low
    while high - low > 1e-12:
        divergence, s = smoothed_divergence(p, q, v)
        if divergence <= budget:
            low = q
        else:
            high = q
        fall = -math.expm1(-s)
        following = q - (divergence - budget) * (1.0 - q * fall) / fall if fall > 0.0 else q
        if not low < following < high or abs(following - q) > 0.5 * step:
            following = 0.5 * (low + high)
        step = abs(following - q)
        if step <= 1e-13:
            return following
        q = following
    return low


@_kernel
def optimistic_arms(total, size, noise, arm, left, clock, beta, variance, low, width, out):  # type: ignore[no-untyped-def]
    """out[r] = arm[r] in the middle of a batch, else the arm with the largest q, size D_v(p, q) <= beta log t.

    total, size, noise: (n_reps, n_arms); arm, left, clock, out: (n_reps,); t = clock + 1 and at least 2; p = total / size
    brought to the unit interval from [low, low + width], and v = variance noise / size, the variance that of one batch's
    noise over width^2. An arm without a batch goes first. Arms whose index is 1 go by p + sqrt(2 v beta log(t) / size), the
    index if rewards were constant; then the lowest.
    """
    n_reps, n_arms = total.shape
    for r in range(n_reps):
        if left[r] > 0:
            out[r] = arm[r]
            continue
        level = beta * math.log(max(clock[r] + 1, 2))
        best, best_index, best_tie = 0, -1.0, -math.inf
        for a in range(n_arms):
            if size[r, a] == 0.0:
                best = a
                break
            p, v = (total[r, a] / size[r, a] - low) / width, variance * noise[r, a] / size[r, a]
            budget = level / size[r, a]
            index = largest_smoothed_mean(p, budget, v)
            tie = p + math.sqrt(2.0 * v * budget)
            if index > best_index or (index == best_index and tie > best_tie):
                best, best_index, best_tie = a, index, tie
        out[r] = best


@_kernel
def least_divergent_arms(total, size, noise, arm, left, variance, low, width, out):  # type: ignore[no-untyped-def]
    """out[r] = arm[r] in the middle of a batch, else the arm with the least size D_v(p, max p) + log size.

    Shapes, p and v as in `optimistic_arms`; the largest p is moved into [0, 1]. An arm without a batch goes first; ties go
    to the lowest arm.
    """
    n_reps, n_arms = total.shape
    for r in range(n_reps):
        if left[r] > 0:
            out[r] = arm[r]
            continue
        first, largest = -1, 0.0
        for a in range(n_arms):
            if size[r, a] == 0.0:
                first = a
                break
            largest = max(largest, min((total[r, a] / size[r, a] - low) / width, 1.0))
        if first >= 0:
            out[r] = first
            continue
        best, best_index = 0, math.inf
        for a in range(n_arms):
            p, v = (total[r, a] / size[r, a] - low) / width, variance * noise[r, a] / size[r, a]
            index = size[r, a] * smoothed_divergence(p, largest, v)[0] + math.log(size[r, a])
            if index < best_index:
                best, best_index = a, index
        out[r] = best
