"""Kernels of index policies on finitely many arms, with episodes of each replicate's own length."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# Without the NumPy error model every division tests for zero, which keeps loops from being vectorized.
_kernel = njit(cache=True, nogil=True, error_model="numpy")


@_kernel
def episode_lengths(pulls, left, actions, doubling, out):  # type: ignore[no-untyped-def]
    """out[r] = what is left of the episode under way, or the length of the one that `actions[r]` opens.

    An episode doubles the arm's pulls (1 for an arm without any); without `doubling` it is one round.
    """
    for r in range(len(actions)):
        if left[r] > 0:
            out[r] = left[r]
        elif doubling:
            out[r] = max(pulls[r, actions[r]], 1)
        else:
            out[r] = 1


@_kernel
def advance(pulls, arm, left, clock, actions, n_records, doubling, ended):  # type: ignore[no-untyped-def]
    """Plays `n_records` rounds of the episode under way, or of a new one; returns how many episodes ended, and which.

    All are (n_reps,) but pulls (n_reps, n_arms); `ended` takes the indices of the replicates whose episode is complete.
    """
    n_ended = 0
    for r in range(len(actions)):
        n = n_records[r]
        if n == 0:
            continue
        a = actions[r]
        if left[r] == 0:
            arm[r] = a
            left[r] = max(pulls[r, a], 1) if doubling else 1
        left[r] -= n
        clock[r] += n
        pulls[r, a] += n
        if left[r] == 0:
            ended[n_ended] = r
            n_ended += 1
    return n_ended


@_kernel
def estimate(mean, deviation, reps, arm, noisy_sum, n, share, noise_variance, width, combines):  # type: ignore[no-untyped-def]
    """Takes each ended episode's noisy sum into its arm's estimate, in place.

    mean, deviation: (n_reps, n_arms), deviation infinite for an arm without a sample.
    reps, arm, noisy_sum, n: (n_rows,), a row the sum of n rewards in a range of the given width, plus noise of variance
    `noise_variance`. The episode's mean has the sub-Gaussian variance proxy v = width^2 / (4 share n) + noise_variance / n^2
    (Hoeffding's lemma; Gaussian noise); `share` is the part of the samples that the bonus counts, 1 but in a printed
    first pull. If `combines`, episodes are weighted by 1/v, the inverse-variance estimate, whose variance is 1 / sum 1/v;
    else the last one alone counts.
    """
    for i in range(len(reps)):
        r = reps[i]
        a = arm[i]
        inverse = 1.0 / n[i]
        value = noisy_sum[i] * inverse
        variance = (0.25 * width * width / share + noise_variance * inverse) * inverse
        if combines and deviation[r, a] < np.inf:
            before = deviation[r, a] * deviation[r, a]
            weight = before / (before + variance)
            mean[r, a] += (value - mean[r, a]) * weight
            deviation[r, a] = math.sqrt(variance * weight)
        else:
            mean[r, a] = value
            deviation[r, a] = math.sqrt(variance)
