"""Kernels of upper confidence bounds on noisy means."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_kernel = njit(cache=True, nogil=True, error_model="numpy")


@_kernel
def optimistic_arms(mean, deviation, tail, arm, left, clock, confidence, more, out):  # type: ignore[no-untyped-def]
    """out[r] = arm[r] in the middle of an episode, else the arm with the largest mean + sampling width + noise width.

    The widths are sqrt(2 confidence (more + log t)) deviation and confidence log(t) tail, t = clock + 1 and at least 2.
    mean, deviation, tail: (n_reps, n_arms), deviation infinite for an arm without a sample, deviation^2 the variance factor
    of an estimate and tail its scale (that of Laplace noise); arm, left, clock, out: (n_reps,). Ties go to the lowest arm.
    """
    n_reps, n_arms = mean.shape
    last_clock, factor, level = np.int64(-1), 0.0, 0.0
    for r in range(n_reps):
        if left[r] > 0:
            out[r] = arm[r]
            continue
        if clock[r] != last_clock:
            last_clock = clock[r]
            logarithm = math.log(max(last_clock + 1, 2))
            factor, level = math.sqrt(2.0 * confidence * (more + logarithm)), confidence * logarithm
        best, best_index = 0, -math.inf
        for a in range(n_arms):
            index = mean[r, a] + factor * deviation[r, a] + level * tail[r, a]
            if index > best_index:
                best_index = index
                best = a
        out[r] = best


@_kernel
def largest_bernoulli_mean(p, budget):  # type: ignore[no-untyped-def]
    """The largest q in [p, 1] with kl(p, q) <= budget, for p in [0, 1] and budget >= 0, to a few units in the last place.

    Newton's method on kl(p, .), which is convex and increasing on [p, 1): from a point beyond the root it never passes it.
    Two such points are p + sqrt(budget / 2) (Pinsker) and 1 - exp(-(budget + h(p)) / (1 - p)), h the entropy, since
    kl(p, q) >= -h(p) - (1 - p) log(1 - q). The way is measured in 1 - q, which keeps its digits near 1.
    """
    if p >= 1.0 or budget <= 0.0:
        return min(p, 1.0)
    if p <= 0.0:
        return -math.expm1(-budget)
    other = 1.0 - p
    entropy = -p * math.log(p) - other * math.log1p(-p)
    rest = max(other - math.sqrt(0.5 * budget), math.exp(-(budget + entropy) / other))
    for _ in range(60):
        if rest <= 1e-300:
            return 1.0
        gain = other - rest  # q - p
        if gain <= 0.0:
            return p
        # Written so that little cancels for q near p, and for q near 1.
        last = math.log(rest / other) if rest < 0.5 * other else math.log1p(-gain / other)
        excess = -p * math.log1p(gain / p) - other * last - budget
        if excess <= 0.0:
            break
        step = excess * (1.0 - rest) * rest / gain
        rest += step
        if step <= 1e-15 * rest:
            break
    return max(1.0 - rest, p)


@_kernel
def laplace_sum_quantile(n_draws, level):  # type: ignore[no-untyped-def]
    r"""A y with P(L_1 + ... + L_m >= y) <= e^-level, for m = n_draws independent standard Laplace variables; 0 for none.

    Chernoff: log E exp(lambda L) = -log(1 - lambda^2), and the best lambda is (sqrt(m^2 + y^2) - m) / y, which gives

        P(L_1 + ... + L_m >= y) <= exp(-m (2u - 2 - log u)),      u = (sqrt(m^2 + y^2) / m + 1) / 2.

    Newton's method finds v = u - 1 with 2v - log(1 + v) = level / m; it comes from the right, where it never passes the
    root of a convex function: from v = level / m, as log(1 + v) <= v.
    """
    if n_draws == 0 or level <= 0.0:
        return 0.0
    c = level / n_draws
    v = c
    for _ in range(60):
        step = (2.0 * v - math.log1p(v) - c) * (1.0 + v) / (1.0 + 2.0 * v)
        v -= step
        if step <= 1e-15 * v:
            break
    return 2.0 * n_draws * math.sqrt(v * (1.0 + v))


@_kernel
def episodes_noise(n_episodes, level):  # type: ignore[no-untyped-def]
    """Quantile at `level` of the noise of so many episodes, of scale 1 each: of one Laplace variable, or of several."""
    return level if n_episodes <= 1 else laplace_sum_quantile(n_episodes, level)


@_kernel
def kl_optimistic_arms(  # type: ignore[no-untyped-def]
    mean, deviation, tail, pulls, arm, left, clock, confidence, low, width, pools, out
):
    """out[r] = arm[r] in the middle of an episode, else the arm with the largest Kullback-Leibler index.

    The index is max {q : n kl(p, q) <= confidence log t}, p the mean plus confidence log(t) tail, moved into [0, 1], where
    rewards are brought to [0, 1] from [low, low + width] and n = (width / deviation)^2 / 4 is the number of samples. If it
    `pools`, a mean has the noise of all m episodes of its arm, as many as `pulls` has binary digits, and p is the mean plus
    the quantile of m Laplace variables times tail.
    Shapes as in `optimistic_arms`. An arm whose Pinsker bound p + sqrt(confidence log(t) / (2 n)) is not above the
    best index so far is not looked at closer: its index is below that bound. Equal indices, of arms whose p is moved to an
    end of [0, 1], go by p before it is moved; then to the lowest arm.
    """
    n_reps, n_arms = mean.shape
    for r in range(n_reps):
        if left[r] > 0:
            out[r] = arm[r]
            continue
        level = confidence * math.log(max(clock[r] + 1, 2))
        noise = level
        best, best_index, best_uncut = 0, -math.inf, -math.inf
        for a in range(n_arms):
            if deviation[r, a] == math.inf:
                best = a
                break
            if pools and tail[r, a] > 0.0:
                n_episodes, rest = 0, pulls[r, a]
                while rest:
                    rest >>= 1
                    n_episodes += 1
                noise = episodes_noise(n_episodes, level)
            uncut = (mean[r, a] + noise * tail[r, a] - low) / width
            p = min(max(uncut, 0.0), 1.0)
            relative = deviation[r, a] / width
            budget = 4.0 * level * relative * relative
            if p + math.sqrt(0.5 * budget) < best_index:
                continue
            index = largest_bernoulli_mean(p, budget)
            if index > best_index or (index == best_index and uncut > best_uncut):
                best_index, best_uncut = index, uncut
                best = a
        out[r] = best


@_kernel
def laplace_estimate(mean, deviation, tail, reps, arm, noisy_sum, n, scale, width):  # type: ignore[no-untyped-def]
    """The last episode's mean takes the place of its arm's estimate; rows as in `episodes_numba.estimate`.

    deviation becomes width / (2 sqrt n), the root of Hoeffding's variance proxy; tail becomes the noise's scale / n.
    """
    for i in range(len(reps)):
        r, a = reps[i], arm[i]
        mean[r, a] = noisy_sum[i] / n[i]
        deviation[r, a] = 0.5 * width / math.sqrt(n[i])
        tail[r, a] = scale / n[i]


@_kernel
def pooled_estimate(mean, deviation, tail, reps, arm, noisy_sum, n, scale, width):  # type: ignore[no-untyped-def]
    """Adds each ended episode to its arm's pooled mean, of as many rewards before as the episode has, but for the first.

    deviation and tail are those of `laplace_estimate` for all rewards together; rows as in `episodes_numba.estimate`.
    """
    for i in range(len(reps)):
        r, a = reps[i], arm[i]
        before = 0.0 if deviation[r, a] == np.inf else float(n[i])
        total = before + n[i]
        mean[r, a] = (mean[r, a] * before + noisy_sum[i]) / total
        deviation[r, a] = 0.5 * width / math.sqrt(total)
        tail[r, a] = scale / total


@_kernel
def sub_gamma_estimate(mean, deviation, tail, reps, arm, noisy_sum, n, scale, width, combines):  # type: ignore[no-untyped-def]
    """Takes each ended episode's noisy sum into its arm's estimate, in place; rows as in `episodes_numba.estimate`.

    An episode's mean is sub-gamma with variance factor v = width^2 / (4n) + 2 scale^2 / n^2 and scale c = scale / n. If
    `combines`, episodes are weighted by 1/v: the factors add with squared weights, and the largest weighted scale stays.
    """
    for i in range(len(reps)):
        r, a = reps[i], arm[i]
        inverse = 1.0 / n[i]
        value, c = noisy_sum[i] * inverse, scale * inverse
        v = 0.25 * width * width * inverse + 2.0 * c * c
        if combines and deviation[r, a] < np.inf:
            before = deviation[r, a] * deviation[r, a]
            weight = before / (before + v)
            mean[r, a] += (value - mean[r, a]) * weight
            deviation[r, a] = math.sqrt(v * weight)
            tail[r, a] = max(tail[r, a] * (1.0 - weight), c * weight)
        else:
            mean[r, a] = value
            deviation[r, a] = math.sqrt(v)
            tail[r, a] = c


@_kernel
def separate_estimate(mean, deviation, tail, reps, arm, noisy_sum, n, scale, width):  # type: ignore[no-untyped-def]
    """`sub_gamma_estimate` on all episodes, with a deviation and a tail that bound rewards and noise separately.

    An arm's episodes have 1, 1, 2, 4, ..., n rewards, so that all weights follow from n. deviation becomes the root of the
    rewards' weighted variance proxies, plus that of the noise's variance factors where there are several episodes.
    """
    for i in range(len(reps)):
        r, a = reps[i], arm[i]
        is_first = deviation[r, a] == np.inf
        total, weight = 0.0, 0.0
        length = float(n[i])
        n_left = 1 if is_first else 2 + round(math.log2(n[i]))
        v_rewards, v_noise, c = 0.0, 0.0, 0.0
        for k in range(n_left):
            rewards, noise = 0.25 * width * width / length, 2.0 * (scale / length) ** 2
            precision = 1.0 / (rewards + noise)
            if k == 0:
                weight = precision
            total += precision
            v_rewards += precision * precision * rewards
            v_noise += precision * precision * noise
            c = max(c, precision * scale / length)
            if k < n_left - 2:
                length *= 0.5
        value = noisy_sum[i] / n[i]
        mean[r, a] = value if is_first else mean[r, a] + (value - mean[r, a]) * weight / total
        deviation[r, a] = (math.sqrt(v_rewards) + (0.0 if is_first else math.sqrt(v_noise))) / total
        tail[r, a] = c / total


@_kernel
def tree_optimistic_arms(total, pulls, clock, confidence, scale, width, out):  # type: ignore[no-untyped-def]
    """out[r] = argmax_a total / n + width sqrt(confidence log t / (2 n)) + scale q / n; an arm without a pull goes first.

    total: (n_reps, n_arms) noisy sums; pulls: (n_reps, n_arms), n; clock, out: (n_reps,), t = clock + 1 and at least 2; q
    the quantile at confidence log t of the sum of as many Laplace variables as the clock has binary digits 1, see
    `laplace_sum_quantile`. Ties go to the lowest arm.
    """
    n_reps, n_arms = total.shape
    last_clock, sampling, noise = np.int64(-1), 0.0, 0.0
    for r in range(n_reps):
        if clock[r] != last_clock:
            last_clock = clock[r]
            level = confidence * math.log(max(last_clock + 1, 2))
            n_draws, rest = 0, last_clock
            while rest:
                rest &= rest - 1
                n_draws += 1
            sampling = width * math.sqrt(0.5 * level)
            noise = scale * laplace_sum_quantile(n_draws, level)
        best, best_index = 0, -math.inf
        for a in range(n_arms):
            n = pulls[r, a]
            if n == 0:
                best = a
                break
            index = (total[r, a] + noise) / n + sampling / math.sqrt(n)
            if index > best_index:
                best_index = index
                best = a
        out[r] = best
