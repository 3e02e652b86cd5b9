"""Kernels of successive elimination: which arms stay, and how long the next epoch is."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_kernel = njit(cache=True, nogil=True, error_model="numpy")

FOR_EVER = np.int64(1) << np.int64(60)
"""Rounds that no run reaches."""


@_kernel
def epoch_length(n_active, epoch, failure, noise, scale):  # type: ignore[no-untyped-def]
    """Pulls of each arm in epoch e: 1 + floor(scale max(32 log(8 S e^2 / failure) 4^e, 8 log(4 S e^2 / failure) noise 2^e)).

    S arms are active; `noise` is the Laplace scale on an arm's sum over the range's width. At most `FOR_EVER`.
    """
    arms = n_active * float(epoch) * epoch / failure
    wanted = scale * max(32.0 * math.log(8.0 * arms) * 4.0**epoch, 8.0 * math.log(4.0 * arms) * noise * 2.0**epoch)
    return FOR_EVER if wanted >= FOR_EVER else np.int64(wanted) + 1


@_kernel
def finish_pulls(  # type: ignore[no-untyped-def]
    reps, noisy_sum, n, mean, active, arm, left, epoch, failure, noise, width, scale
):
    """Takes in the sum of an arm's pulls, goes on to the next active arm, and after the last one ends the epoch, in place.

    reps, noisy_sum, n: (n_rows,), the replicates, their noisy sums and how many rewards each holds.
    mean: (n_reps, n_arms), of the epoch under way; active: (n_reps, n_arms) bool; arm, left, epoch: (n_reps,).
    At an epoch's end the active arms whose mean is below the largest one by more than

        2 width sqrt(log(8 S e^2 / failure) / (2 n)) + 2 width noise log(4 S e^2 / failure) / n

    are eliminated. A single arm is held for ever.
    """
    n_arms = mean.shape[1]
    for i in range(len(reps)):
        r = reps[i]
        mean[r, arm[r]] = noisy_sum[i] / n[i]
        following = arm[r] + 1
        while following < n_arms and not active[r, following]:
            following += 1
        if following < n_arms:
            arm[r], left[r] = following, n[i]
            continue
        n_active, largest = 0, -math.inf
        for a in range(n_arms):
            if active[r, a]:
                n_active += 1
                largest = max(largest, mean[r, a])
        arms = n_active * float(epoch[r]) * epoch[r] / failure
        sampling = math.sqrt(math.log(8.0 * arms) / (2.0 * n[i]))
        tail = noise * math.log(4.0 * arms) / n[i]
        lowest = largest - width * (2.0 * sampling + 2.0 * tail)
        n_active, first = 0, -1
        for a in range(n_arms):
            if active[r, a]:
                active[r, a] = mean[r, a] >= lowest
                if active[r, a]:
                    n_active += 1
                    if first < 0:
                        first = a
        epoch[r] += 1
        arm[r] = first
        left[r] = FOR_EVER if n_active == 1 else epoch_length(n_active, epoch[r], failure, noise, scale)
