"""The compiled kernels' mathematics in plain Python and NumPy: what tests compare the kernels with."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import lambertw, rel_entr

from bandana.algorithms.bandits.finite_arm.elimination_numba import FOR_EVER
from bandana.algorithms.bandits.linear.designs import inverse_of, leverages
from bandana.algorithms.lower_bounds.divergences import bernoulli_kl, private_kl
from bandana.algorithms.rl.mixture.value_targets_numba import proxy
from bandana.algorithms.ties import TIE, first_largest


def largest_mean_reference(p, budget, epsilon):
    """`largest_mean` by a bracketing root finder on the infimum."""

    def excess(q):
        return float(bernoulli_kl(p, q) if math.isinf(epsilon) else private_kl(p, q, epsilon)) - budget

    highest = math.nextafter(1.0, 0.0)
    if p >= 1 or excess(highest) <= 0:
        return 1.0
    return float(brentq(excess, p, highest, xtol=1e-15, rtol=4 * np.finfo(float).eps))


def index_reference(total, size, clock, beta, epsilon, low, width):
    """(n_reps, n_arms) indices of DP-KLUCB and of DP-IMED, where every arm has a batch."""
    p = np.clip((total / size - low) / width, 0.0, 1.0)
    budget = beta * np.log(np.maximum(clock + 1, 2))[:, None] / size
    largest = [
        [largest_mean_reference(x, c, epsilon) for x, c in zip(*row, strict=True)] for row in zip(p, budget, strict=True)
    ]
    best = p.max(axis=1, keepdims=True)
    apart = np.where(p == best, 0.0, bernoulli_kl(p, best) if math.isinf(epsilon) else private_kl(p, best, epsilon))
    return np.array(largest), size * apart + np.log(size)


def epoch_length_reference(n_active, epoch, failure, noise, scale):
    """`epoch_length`, where it is at most `FOR_EVER`."""
    gap = 2.0**-epoch
    arms = n_active * epoch**2 / failure
    wanted = scale * max(32 * math.log(8 * arms) / gap**2, 8 * math.log(4 * arms) * noise / gap)
    return min(math.floor(wanted) + 1, int(FOR_EVER))


def stay_active_reference(mean, active, epoch, n, failure, noise, width):
    """(n_reps, n_arms) mask of the arms that stay after an epoch of n (n_reps,) pulls of each."""
    arms = active.sum(axis=1) * epoch**2 / failure
    radius = np.sqrt(np.log(8 * arms) / (2 * n)) + noise * np.log(4 * arms) / n
    largest = np.max(mean, axis=1, where=active, initial=-np.inf)
    return np.asarray(active & (mean >= (largest - 2 * width * radius)[:, None]))


def estimate_reference(mean, deviation, value, variance, combines):
    """One arm's new mean and deviation: (n_reps,) each, for an episode mean `value` of proxy `variance`."""
    if not combines:
        return value, np.sqrt(variance)
    precision = 1 / deviation**2  # 0 before the first sample
    total = precision + 1 / variance
    return (precision * mean + value / variance) / total, 1 / np.sqrt(total)


def optimistic_arms_reference(mean, deviation, tail, arm, left, clock, confidence, more):
    """`optimistic_arms` without a loop."""
    logarithm = np.log(np.maximum(clock + 1, 2))
    factor = np.sqrt(2.0 * confidence * (more + logarithm))
    index = mean + factor[:, None] * deviation + (confidence * logarithm)[:, None] * tail
    return np.where(left > 0, arm, np.argmax(index, axis=1))


def largest_bernoulli_mean_reference(p, budget):
    """`largest_bernoulli_mean` by a bracketing root finder."""
    if p >= 1:
        return 1.0

    def excess(q):
        return float(rel_entr(p, q) + rel_entr(1 - p, 1 - q)) - budget

    highest = math.nextafter(1.0, 0.0)
    if excess(highest) <= 0:
        return 1.0
    return p if budget == 0 else float(brentq(excess, p, highest, xtol=1e-15, rtol=4 * np.finfo(float).eps))


def laplace_sum_quantile_reference(n_draws, level):
    """`laplace_sum_quantile` by Lambert's function: u = -W_{-1}(-2 e^(-2 - level / m)) / 2."""
    if n_draws == 0 or level <= 0:
        return 0.0
    u = float(-lambertw(-2 * math.exp(-2 - level / n_draws), k=-1).real / 2)
    return 2 * n_draws * math.sqrt(u * (u - 1))


def kl_optimistic_arms_reference(mean, deviation, tail, pulls, arm, left, clock, confidence, low, width, pools):
    """`kl_optimistic_arms` without the short cut."""
    level = (confidence * np.log(np.maximum(clock + 1, 2)))[:, None]
    noise = np.broadcast_to(level, mean.shape)
    if pools:
        several = [
            [laplace_sum_quantile_reference(n.bit_length(), x) if n > 1 else x for n in row]
            for row, (x,) in zip(pulls.tolist(), level.tolist(), strict=True)
        ]
        noise = np.array(several)
    uncut = (mean + noise * tail - low) / width
    p = np.clip(uncut, 0.0, 1.0)
    budget = np.where(np.isinf(deviation), np.inf, 4 * level * (deviation / width) ** 2)
    index = [
        [np.inf if np.isinf(c) else largest_bernoulli_mean_reference(x, c) for x, c in zip(*row, strict=True)]
        for row in zip(p.tolist(), budget.tolist(), strict=True)
    ]
    is_best = np.array(index) == np.max(index, axis=1, keepdims=True)
    uncut[np.isinf(deviation)] = np.inf
    return np.where(left > 0, arm, np.argmax(np.where(is_best, uncut, -np.inf), axis=1))


def tree_optimistic_arms_reference(total, pulls, clock, confidence, scale, width):
    """`tree_optimistic_arms` without a loop over arms."""
    level = confidence * np.log(np.maximum(clock + 1, 2))
    noise = [
        scale * laplace_sum_quantile_reference(int(t).bit_count(), x)
        for t, x in zip(clock.tolist(), level.tolist(), strict=True)
    ]
    n = np.maximum(pulls, 1)
    index = (total + np.array(noise)[:, None]) / n + width * np.sqrt(level[:, None] / (2 * n))
    return np.asarray(np.argmax(np.where(pulls == 0, np.inf, index), axis=1))


def multiplicative_reference(coordinates, n_steps):
    """(k,) weights after `n_steps` of pi(a) <- pi(a) leverage(a) / d, which climbs to the same optimum, slowly.

    Source: Silvey, Titterington and Torsney (1978).
    """
    k, d = coordinates.shape
    weights = np.full(k, 1 / k)
    for _ in range(n_steps):
        weights = weights * leverages(coordinates, inverse_of(coordinates, weights)) / d
    return weights


def eliminate_reference(noisy, shift, predict, width, active):
    """(n_rows, n_arms) estimates, and the mask of the arms that stay."""
    found = (noisy - shift) @ predict.T
    best = np.where(active, found - width, -np.inf).max(axis=1)
    return found, active & (found + width >= best[:, None])


def laplace_width_reference(proxy, scales, log_term, n_points=20_001):
    """`laplace_width` by trying lambda on a grid."""
    high = min(math.sqrt(2 * log_term / proxy), 1 / max(float(np.abs(scales).max()), 1e-300))
    rate = np.linspace(0, high, n_points)[1:-1]
    moment = -np.log1p(-((rate[:, None] * scales) ** 2)).sum(axis=1)
    return float(((rate**2 * proxy / 2 + moment + log_term) / rate).min())


def optimistic_actions_reference(theta, inverse, width, contexts):
    """`optimistic_actions` by `einsum`."""
    mean = np.einsum("ri,rai->ra", theta, contexts)
    square = np.einsum("rai,rij,raj->ra", contexts, inverse, contexts)
    index = mean + width[:, None] * np.sqrt(np.maximum(square, 0.0))
    return np.array([first_largest(row) for row in index])


def responses_reference(counts, sums, step, rows, values, center, features):
    """`responses` by `einsum`."""
    found = counts[rows, step].astype(float)
    totals = sums[rows, step] + np.einsum("nsat,nt->nsa", found, values) - center * found.sum(axis=3)
    return np.asarray(np.einsum("nsa,sad->nd", totals, features))


def improve_reference(inverse, vector, width, center, cap, features, preference):
    """`improve` with preferences (n_rows, A): w (n_rows, d), the actions (n_rows, S) and the values (n_rows, S)."""
    w = np.einsum("nij,nj->ni", inverse, vector)
    square = np.einsum("sai,nij,saj->nsa", features, inverse, features)
    index = center + np.einsum("sad,nd->nsa", features, w) + width * np.sqrt(np.maximum(square, 0.0))
    largest = index.max(axis=2)
    preferred = np.take_along_axis(index, preference[:, None, :], axis=2) >= (largest - TIE * np.abs(largest))[..., None]
    actions = np.take_along_axis(preference, preferred.argmax(axis=2), axis=1)
    return w, np.asarray(actions), np.clip(largest, 0.0, cap)


def plan_reference(features, rewards, block, center, low, high, preference, estimate, inverse, width):
    """Policy and values of `plan`; features (n_states, n_actions, n_states, d), rewards (horizon, ., .)."""
    horizon, n_states, _ = rewards.shape
    n_reps = len(estimate)
    policy = np.empty((n_reps, horizon, n_states), dtype=np.int64)
    values = np.empty((n_reps, horizon + 1, n_states))
    values[:, horizon] = high[horizon]
    for h in range(horizon - 1, -1, -1):
        b = block[h]
        if b < 0:
            q = np.broadcast_to(rewards[h] + high[h + 1], (n_reps, *rewards[h].shape))
        else:
            x = np.einsum("satd,rt->rsad", features, values[:, h + 1] - center[b])
            square = np.einsum("rsai,rij,rsaj->rsa", x, inverse[:, b], x)
            q = rewards[h] + center[b] + np.einsum("rsad,rd->rsa", x, estimate[:, b])
            q = q + width[:, b, None, None] * np.sqrt(np.maximum(square, 0.0))
        largest = q.max(axis=2)
        is_best = q >= (largest - TIE * np.abs(largest))[:, :, None]
        order = np.broadcast_to(preference[:, None], q.shape)
        first = np.take_along_axis(is_best, order, axis=2).argmax(axis=2)
        policy[:, h] = np.take_along_axis(order, first[:, :, None], axis=2)[:, :, 0]
        values[:, h] = np.clip(largest, low[h], high[h])
    return policy, values


def contribute_reference(features, steps, center, norm_bound, value_bound, values, states, actions):
    """(n_reps, n_blocks, d, d + 1) what `contribute` adds."""
    found = []
    for b, h in enumerate(steps):
        after = values[:, h + 1] - center[b]
        x = np.einsum("rtd,rt->rd", features[states[:, h], actions[:, h]], after)
        norm = np.linalg.norm(x, axis=1, keepdims=True)
        x = x * np.minimum(1.0, norm_bound[b] / np.maximum(norm, 1e-300))
        y = np.clip(after[np.arange(len(x)), states[:, h + 1]], -value_bound[b], value_bound[b])
        found.append(x[:, :, None] * np.concatenate([x, y[:, None]], axis=1)[:, None, :])
    return np.stack(found, axis=1)


def weights_reference(
    features,
    steps,
    center,
    square_center,
    most,
    floor,
    top,
    spread,
    estimate,
    inverse,
    check_width,
    square_width,
    values,
    states,
    actions,
):
    """(n_reps, n) the 1 / s^2 of `contribute_weighted`, where no bound cuts."""
    n, found = len(steps), []
    for b, h in enumerate(steps):
        rows = features[states[:, h], actions[:, h]]
        centered = values[:, h + 1] - center[b]
        x = np.einsum("rtd,rt->rd", rows, centered)
        z = np.einsum("rtd,rt->rd", rows, centered**2 - square_center[b])
        x_norm, z_norm = (
            np.sqrt(np.maximum(np.einsum("ri,rij,rj->r", v, inverse[:, i], v), 0.0)) for v, i in ((x, b), (z, n + b))
        )
        mean = np.clip((x * estimate[:, b]).sum(axis=1), -most[b], most[b])
        square = np.clip((z * estimate[:, n + b]).sum(axis=1) + square_center[b], 0.0, most[b] ** 2)
        error = np.minimum(most[b] ** 2, 2 * most[b] * check_width[:, b] * x_norm)
        error += np.minimum(most[b] ** 2, square_width[:, b] * z_norm)
        variance = square - mean**2 + error
        if spread[b] > 0:
            variance = np.array([proxy(each, spread[b]) for each in variance])
        found.append(1 / np.clip(variance, floor[b], top[b]))
    return np.stack(found, axis=1)
