r"""Kernels of DP-KLUCB and DP-IMED: how long batches are, what a noisy batch adds to its arm, and which arm comes next.

Episodes that double an arm's pulls are batches of growth 1, and rounds one by one batches of growth 0.

d_epsilon(p, q) = inf over r of epsilon |r - p| + kl(r, q) is `divergences.private_kl`. For p <= q the infimum over all r is
at r = expit(logit q - epsilon). Where r lies above p, that is q > q_p = expit(logit p + epsilon), it has the value

    d_epsilon(p, q) = -epsilon p - log(1 - q (1 - e^-epsilon)),

since kl(r, q) = log((1 - r) / (1 - q)) - epsilon r and (1 - r) / (1 - q) = 1 / (1 - q + q e^-epsilon); elsewhere it is kl(p,
q). So the largest q with d_epsilon(p, q) <= c has a closed form, or is that of kl.

Under Gaussian noise: a mean of rewards in [0, 1] with noise of variance v for each of them. For p <= q

    D_v(p, q) = min over r in [0, 1] of kl(r, q) + (r - p)^2 / (2 v)
              = max over s >= 0 of -s p - log(1 - q + q e^-s) - s^2 v / 2,

the rewards' share of the surprise and the noise's. At the optimum r = q e^-s / (1 - q + q e^-s) and s = (r - p) / v. p may
lie outside of [0, 1], as noise moves it there.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_APART = 1e-9
"""An index that is less than another by more than this, is less however both are rounded."""


@_kernel
def batch_length(pulls, growth):  # type: ignore[no-untyped-def]
    """Length of an arm's next batch: ceil(growth times its pulls), and 1 for the first; never shorter than the last one."""
    return np.int64(max(1.0, math.ceil(growth * pulls)))


@_kernel
def batch_lengths(pulls, left, actions, growth, out):  # type: ignore[no-untyped-def]
    """out[r] = what is left of the batch under way, or the length of the one that `actions[r]` opens."""
    for r in range(len(actions)):
        out[r] = left[r] if left[r] > 0 else batch_length(pulls[r, actions[r]], growth)


@_kernel
def advance(pulls, arm, left, clock, actions, n_records, growth, ended):  # type: ignore[no-untyped-def]
    """Plays `n_records` rounds of the batch under way, or of a new one; returns how many batches ended, and which.

    All are (n_reps,) but pulls (n_reps, n_arms); `ended` takes the indices of the replicates whose batch is complete.
    """
    n_ended = 0
    for r in range(len(actions)):
        n = n_records[r]
        if n == 0:
            continue
        a = actions[r]
        if left[r] == 0:
            arm[r] = a
            left[r] = batch_length(pulls[r, a], growth)
        left[r] -= n
        clock[r] += n
        pulls[r, a] += n
        if left[r] == 0:
            ended[n_ended] = r
            n_ended += 1
    return n_ended


@_kernel
def weight(length, epsilon):  # type: ignore[no-untyped-def]
    """Weight of a batch's sum that is inverse to the variance of its mean, 1/4 n + 2 / (epsilon n)^2, up to a constant."""
    return 1.0 / (0.25 + 2.0 / (epsilon * epsilon * length))


@_kernel
def accumulate(total, size, noise, length, reps, arm, noisy, n, epsilon, weighted):  # type: ignore[no-untyped-def]
    """Adds each ended batch to its arm's noisy sum, size and sum of squared weights, in place.

    total, size, noise, length: (n_reps, n_arms), size 0 for an arm without a batch, length that of the last batch; reps,
    arm, noisy, n: (n_rows,), a row the noisy sum of n rewards. If `weighted`, what is there is scaled down by the ratio of
    `weight` at the old and the new length, so that the last batch has weight 1 and no batch has more; epsilon may be
    infinite.
    """
    for i in range(len(reps)):
        r, a = reps[i], arm[i]
        keep = 1.0
        if weighted and size[r, a] > 0.0:
            keep = weight(length[r, a], epsilon) / weight(n[i], epsilon)
        total[r, a] = keep * total[r, a] + noisy[i]
        size[r, a] = keep * size[r, a] + n[i]
        noise[r, a] = keep * keep * noise[r, a] + 1.0
        length[r, a] = n[i]


@_kernel
def kl(p, q):  # type: ignore[no-untyped-def]
    """Divergence of Bernoulli variables."""
    divergence = 0.0
    if p > 0.0:
        divergence += p * math.log(p / q) if q > 0.0 else math.inf
    if p < 1.0:
        divergence += (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if q < 1.0 else math.inf
    return divergence


@_kernel
def divergence(p, q, epsilon):  # type: ignore[no-untyped-def]
    """d_epsilon(p, q) for 0 <= p <= q <= 1; epsilon may be infinite."""
    if p >= q:
        return 0.0
    if epsilon == math.inf:
        return kl(p, q)
    fall = -math.expm1(-epsilon)
    # q > expit(logit p + epsilon), without a division.
    if q * (1.0 - p) * (1.0 - fall) > p * (1.0 - q):
        return max(0.0, -epsilon * p - math.log1p(-q * fall))
    return kl(p, q)


@_kernel
def largest_mean(p, budget, epsilon):  # type: ignore[no-untyped-def]
    """The largest q in [p, 1] with d_epsilon(p, q) <= budget; that of kl by bisection, below Pinsker's bound on it."""
    if epsilon < math.inf:
        fall = -math.expm1(-epsilon)
        q = -math.expm1(-budget - epsilon * p) / fall
        if q >= 1.0:
            return 1.0
        if q * (1.0 - p) * (1.0 - fall) > p * (1.0 - q):
            return max(q, p)
    low, high = p, min(p + math.sqrt(0.5 * budget), 1.0)
    while True:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            return low if high < 1.0 or kl(p, 1.0) > budget else 1.0
        if kl(p, middle) <= budget:
            low = middle
        else:
            high = middle


@_kernel
def smoothed_divergence(p, q, v):  # type: ignore[no-untyped-def]
    """D_v(p, q) and the maximum's s, for q in [0, 1] and v > 0; both 0 for p >= q.

    Newton's method on r - p - s v, which falls with s, and is concave below logit q and convex above: from logit q, from its
    first step from 0 if that is less, and for q <= 1/2 from that step, all steps go the same way.
    """
    if p >= q:
        return 0.0, 0.0
    if q <= 0.0 or q >= 1.0:
        return (q - p) * (q - p) / (2.0 * v), (q - p) / v
    s, last = (q - p) / (v + q * (1.0 - q)), 0.0
    if q > 0.5:
        s = min(s, math.log(q / (1.0 - q)))
    for _ in range(100):
        share = q * math.exp(-s)
        r = share / (1.0 - q + share)
        step = (r - p - s * v) / (r * (1.0 - r) + v)
        if abs(step) <= 1e-14 * s or step * last < 0.0:
            break
        s += step
        last = step
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
def largest_index(p, budget, epsilon, v):  # type: ignore[no-untyped-def]
    """The largest q with d_epsilon(p, q) <= budget, p moved into [0, 1], or, where v > 0, with D_v(p, q) <= budget.

    Beside it, what decides between indices of 1: what one below 1 grows with, budget + epsilon p, or p + sqrt(2 v budget),
    the index if rewards were constant.
    """
    if v > 0.0:
        return largest_smoothed_mean(p, budget, v), p + math.sqrt(2.0 * v * budget)
    p = min(max(p, 0.0), 1.0)
    index = largest_mean(p, budget, epsilon)
    return index, budget + epsilon * p if index == 1.0 and epsilon < math.inf else -1.0


@_kernel
def _surprise(p, q, epsilon, v):  # type: ignore[no-untyped-def]
    """D_v(p, q) where v > 0, else d_epsilon(p, q), p moved into [0, 1]."""
    if v > 0.0:
        return smoothed_divergence(p, q, v)[0]
    return divergence(min(max(p, 0.0), 1.0), q, epsilon)


@_kernel
def optimistic_arms(  # type: ignore[no-untyped-def]
    total, size, noise, arm, left, clock, beta, epsilon, variance, low, width, out
):
    """out[r] = arm[r] in the middle of a batch, else the arm with the largest index at budget beta log(t) / size.

    total, size, noise: (n_reps, n_arms); arm, left, clock, out: (n_reps,); t = clock + 1 and at least 2; p = total / size
    brought to the unit interval from [low, low + width]; v = variance noise / size, `variance` that of one batch's Gaussian
    noise over width^2, or 0 where noise is that of epsilon. An arm without a batch goes first, and of equal ones the lowest.
    The index whose bound by Pinsker is largest is searched first, and another only where it is not shown to be less.
    """
    n_reps, n_arms = total.shape
    for r in range(n_reps):
        if left[r] > 0:
            out[r] = arm[r]
            continue
        level, first, highest = beta * math.log(max(clock[r] + 1, 2)), 0, -math.inf
        for a in range(n_arms):
            if size[r, a] == 0.0:
                first, highest = a, math.inf
                break
            p, v = (total[r, a] / size[r, a] - low) / width, variance * noise[r, a] / size[r, a]
            bound = p + math.sqrt(level / size[r, a] * (0.5 + 2.0 * v))
            if bound > highest:
                first, highest = a, bound
        best, best_index, best_tie = first, -1.0, -math.inf
        for place in range(n_arms if highest < math.inf else 0):
            a = first if place == 0 else place - 1 if place <= first else place
            p, v = (total[r, a] / size[r, a] - low) / width, variance * noise[r, a] / size[r, a]
            if best_index > _APART and _surprise(p, best_index - _APART, epsilon, v) > level / size[r, a]:
                continue  # its index is less: one divergence in place of a search
            index, tie = largest_index(p, level / size[r, a], epsilon, v)
            if index > best_index or (index == best_index and (tie > best_tie or (tie == best_tie and a < best))):
                best, best_index, best_tie = a, index, tie
        out[r] = best


@_kernel
def _new_or_largest(total, size, low, width):  # type: ignore[no-untyped-def]
    """The first arm without a batch, or -1 if all have one, and the largest mean of the others, moved into [0, 1]."""
    largest = 0.0
    for a in range(len(total)):
        if size[a] == 0.0:
            return a, largest
        largest = max(largest, min((total[a] / size[a] - low) / width, 1.0))
    return -1, largest


@_kernel
def least_divergent_arms(  # type: ignore[no-untyped-def]
    total, size, noise, arm, left, epsilon, variance, low, width, out
):
    """out[r] = arm[r] in the middle of a batch, else the arm with the least size d_epsilon(p, max p) + log size, or D_v.

    Shapes, p and v as in `optimistic_arms`; the largest p is moved into [0, 1], and without v each. An arm without a batch
    goes first; ties go to the lowest arm.
    """
    n_reps, n_arms = total.shape
    for r in range(n_reps):
        if left[r] > 0:
            out[r] = arm[r]
            continue
        first, largest = _new_or_largest(total[r], size[r], low, width)
        if first >= 0:
            out[r] = first
            continue
        best, best_index = 0, math.inf
        for a in range(n_arms):
            p, v = (total[r, a] / size[r, a] - low) / width, variance * noise[r, a] / size[r, a]
            index = size[r, a] * _surprise(p, largest, epsilon, v) + math.log(size[r, a])
            if index < best_index:
                best, best_index = a, index
        out[r] = best
