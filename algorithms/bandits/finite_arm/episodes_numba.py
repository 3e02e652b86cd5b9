"""Kernel of index policies on finitely many arms: what a noisy episode adds to its arm's estimate."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# Without the NumPy error model every division tests for zero, which keeps loops from being vectorized.
_kernel = njit(cache=True, nogil=True, error_model="numpy")


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
