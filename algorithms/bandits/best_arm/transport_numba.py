"""Kernels of transport costs: how surely one noisy estimate is of a larger mean than another."""

from __future__ import annotations

import math

from numba import njit

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_CUTS = 20
"""Lines that bound a minimum from below, at most; a few reach 0.1 %."""


@_kernel
def add_exponents(length, weight, means, tilts, out, slack):  # type: ignore[no-untyped-def]
    """Adds the exponents of sums of rewards, and how far each is above the chord between two neighboring means, at most.

    out[j, i] += sum over e of length[e] log(1 + means[j] (exp(tilts[i] weight[e]) - 1)); slack[j, i] += sum over e of
    length[e] s^2 / 8, s the growth of the logarithm's argument from means[j] to means[j + 1], over its first value: between
    1 and 1 + s the logarithm's second derivative is at most 1, so that its chord is at most s^2 / 8 below it.
    length, weight: (n,); means: (n_means,); tilts: (n_tilts,); out: (n_means, n_tilts); slack: (n_means - 1, n_tilts).
    """
    for e in range(len(length)):
        for i in range(len(tilts)):
            grown = math.expm1(tilts[i] * weight[e])
            for j in range(len(means)):
                out[j, i] += length[e] * math.log1p(means[j] * grown)
                if j + 1 < len(means):
                    growth = (means[j + 1] - means[j]) * grown / (1.0 + means[j] * grown)
                    slack[j, i] += length[e] * growth * growth / 8.0


@_kernel
def _told(x, left, right, slack, part, tilts, i):  # type: ignore[no-untyped-def]
    """Max over i of tilts[i] x - exponent[i], its slope in `part`, and its place, climbing from a guess of the place.

    The exponent is left + part (right - left) + slack, each (n_tilts,); whatever the place, it is valid.
    """
    last = len(tilts) - 1
    most = tilts[i] * x - (left[i] + part * (right[i] - left[i]) + slack[i])
    guess = i
    while i < last:
        value = tilts[i + 1] * x - (left[i + 1] + part * (right[i + 1] - left[i + 1]) + slack[i + 1])
        if value <= most:
            break
        most, i = value, i + 1
    while guess >= i > 0:
        value = tilts[i - 1] * x - (left[i - 1] + part * (right[i - 1] - left[i - 1]) + slack[i - 1])
        if value < most:
            break
        most, i = value, i - 1
    return most, left[i] - right[i], i


@_kernel
def _least_within(above, below, rising, rising_slack, falling, falling_slack, j, tilts, i, k):  # type: ignore[no-untyped-def]
    """A lower bound on the least value between points j and j + 1, by lines that are nowhere above; see `transport_cost`."""
    m = len(rising) - 2 - j
    first, down, i = _told(above, rising[j], rising[j + 1], rising_slack[j], 0.0, tilts, i)
    second, up, k = _told(below, falling[m], falling[m + 1], falling_slack[m], 1.0, tilts, k)
    left, falls = first + second, down - up
    first, down, i = _told(above, rising[j], rising[j + 1], rising_slack[j], 1.0, tilts, i)
    second, up, k = _told(below, falling[m], falling[m + 1], falling_slack[m], 0.0, tilts, k)
    right, rises = first + second, down - up
    if falls >= 0.0:
        return left
    if rises <= 0.0:
        return right
    # Lines left + falls u and right + rises (u - 1), which cross at the bound.
    right -= rises
    least = -math.inf
    for _ in range(_CUTS):
        u = min(max((right - left) / (falls - rises), 0.0), 1.0)
        least = left + falls * u
        first, down, i = _told(above, rising[j], rising[j + 1], rising_slack[j], u, tilts, i)
        second, up, k = _told(below, falling[m], falling[m + 1], falling_slack[m], 1.0 - u, tilts, k)
        value, slope = first + second, down - up
        if value - least <= 1e-3 * value:
            break
        if slope < 0.0:
            left, falls = value - slope * u, slope
        elif slope > 0.0:
            right, rises = value - slope * u, slope
        else:
            return value
    return least


@_kernel
def _at_point(x, exponent, tilts):  # type: ignore[no-untyped-def]
    """Max over i of tilts[i] x - exponent[i], which is concave in the tilt, and its place."""
    i, end = 0, len(tilts) - 1
    while i < end:
        middle = (i + end) // 2
        if (tilts[middle + 1] - tilts[middle]) * x > exponent[middle + 1] - exponent[middle]:
            i = middle + 1
        else:
            end = middle
    return tilts[i] * x - exponent[i], i


@_kernel
def transport_cost(high, high_k, low, low_k, table, slack, sizes, means, tilts):  # type: ignore[no-untyped-def]
    """A lower bound on the least f(u), u in [0, 1]: what tells that one arm's mean is above u, and another's below.

    f is convex: its least value lies between the neighbors of the point of `means` at which it is least. 0 where high <=
    low. high, low: estimates; high_k, low_k: numbers of episodes, from 0; table: (n, n_means, n_tilts), slack: (n, n_means -
    1, n_tilts), sizes: (n,), see `TransportRules`; means: (n_means,) with means[-1 - j] = 1 - means[j]; tilts: (n_tilts,)
    rising from 0.
    """
    if not high > low:
        return 0.0
    last = len(means) - 1
    rising, falling = table[high_k], table[low_k]
    above, below = sizes[high_k] * high, sizes[low_k] * (1.0 - low)
    j, end = 0, last
    while j < end:
        middle = (j + end) // 2
        here = _at_point(above, rising[middle], tilts)[0] + _at_point(below, falling[last - middle], tilts)[0]
        there = _at_point(above, rising[middle + 1], tilts)[0] + _at_point(below, falling[last - middle - 1], tilts)[0]
        if there < here:
            j = middle + 1
        else:
            end = middle
    i, k = _at_point(above, rising[j], tilts)[1], _at_point(below, falling[last - j], tilts)[1]
    least = math.inf
    if j > 0:
        least = _least_within(above, below, rising, slack[high_k], falling, slack[low_k], j - 1, tilts, i, k)
    if j < last:
        least = min(least, _least_within(above, below, rising, slack[high_k], falling, slack[low_k], j, tilts, i, k))
    return max(least, 0.0)


@_kernel
def transport_costs(mean, episodes, best, table, slack, sizes, means, tilts, out):  # type: ignore[no-untyped-def]
    """out[r, a] = `transport_cost` of arm best[r] over arm a, infinite for that arm itself.

    mean: (n_rows, n_arms); episodes: (n_rows, n_arms) numbers of episodes, from 0; best: (n_rows,); out: (n_rows, n_arms).
    """
    n_rows, n_arms = mean.shape
    for r in range(n_rows):
        high, high_k = mean[r, best[r]], episodes[r, best[r]]
        for a in range(n_arms):
            if a == best[r]:
                out[r, a] = math.inf
            else:
                out[r, a] = transport_cost(high, high_k, mean[r, a], episodes[r, a], table, slack, sizes, means, tilts)
