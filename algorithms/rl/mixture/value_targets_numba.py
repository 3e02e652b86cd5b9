r"""Value-targeted regression: optimistic planning in a linear-mixture MDP, and what an episode tells of its parameters.

With p_h(s'|s, a) = <phi(s'|s, a), w_h>, the mean of any function u of the next state is <x, w_h> for x = phi_u(s, a) =
sum_s' phi(s'|s, a) u(s'): a regression of u(s') on x learns w_h where it matters for u. All arrays have a leading replicate
axis, and each replicate is computed by itself: a replicate of a batch gets the same numbers as alone.

Steps of an episode count from 0. A *block* is one regression, that of one step; steps after which nothing is open have none.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from bandana.algorithms.protocol import FloatArray

_TIE = 1e-9
"""`bandana.algorithms.ties.TIE`: a cached kernel must not read another module."""

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_MOST_ENUMERATED = 16
"""States up to which all functions with values -1 and 1 are tried."""


def by_next_state(features: FloatArray) -> FloatArray:
    """(n_states, d, n_states * n_actions), phi(s'|s, a) for `plan`: [s', i, s * n_actions + a]; features as of the model."""
    n_states, n_actions, _, d = features.shape
    return np.ascontiguousarray(features.transpose(2, 3, 0, 1).reshape(n_states, d, n_states * n_actions))


def reach(features: FloatArray) -> float:
    """The largest |sum_s' phi(s'|s, a) v(s')| over s, a and v with values in [-1, 1]; above 16 states an upper bound.

    The norm is convex in v, so that it is largest where every v(s') is -1 or 1. The bound takes each coordinate's worst v.

    Args:
      features: (n_states, n_actions, n_states, d)
    """
    n_states = features.shape[2]
    if n_states > _MOST_ENUMERATED:
        return float(np.linalg.norm(np.abs(features).sum(axis=2), axis=2).max())
    corners = ((np.arange(1 << (n_states - 1))[:, None] >> np.arange(n_states)) & 1) * 2.0 - 1  # v and -v are alike
    return max(float(np.linalg.norm(corners @ part, axis=1).max()) for row in features for part in row)


@_kernel
def plan(  # type: ignore[no-untyped-def]
    features, rewards, block, center, low, high, preference, estimate, inverse, width, policy, values
):  # fmt: skip
    """Optimistic backward induction in every replicate.

    From V_H = 0, with c the center of step h's block and x = phi_(V_(h+1) - c)(s, a),

        Q_h(s, a) = r_h(s, a) + c + <x, w> + width sqrt(x^T inverse x),

    V_h(s) = max_a Q_h(s, a), moved into [low_h, high_h]. The policy takes the largest Q_h before it is moved, as where all
    exceed what can be earned the moved ones are equal; of those that are equal up to `_TIE`, the first in `preference`.
    Without a block V_(h+1) is known, high_h+1.

    features: as of `by_next_state`; rewards: (horizon, n_states * n_actions); block: (horizon,) index, -1 for none; center:
    (n_blocks,), low, high: (horizon + 1,); preference: (n_reps, n_actions) permutations of the actions; estimate: (n_reps,
    n_blocks, d), inverse: (n_reps, n_blocks, d, d) symmetric, of which the upper triangle is read, width: (n_reps,
    n_blocks). Filled: policy (n_reps, horizon, n_states), values (n_reps, horizon + 1, n_states).
    """
    n_reps, horizon, n_states = policy.shape
    d, n_pairs = features.shape[1], features.shape[2]
    n_actions = n_pairs // n_states
    x = np.empty((d, n_pairs))
    q, square, row = np.empty(n_pairs), np.empty(n_pairs), np.empty(n_pairs)
    for r in range(n_reps):
        for s in range(n_states):
            values[r, horizon, s] = high[horizon]
        for h in range(horizon - 1, -1, -1):
            b = block[h]
            if b < 0:
                for p in range(n_pairs):
                    q[p] = rewards[h, p] + high[h + 1]
            else:
                for i in range(d):
                    for p in range(n_pairs):
                        x[i, p] = 0.0
                for after in range(n_states):
                    value = values[r, h + 1, after] - center[b]
                    for i in range(d):
                        for p in range(n_pairs):
                            x[i, p] += value * features[after, i, p]
                for p in range(n_pairs):
                    q[p] = rewards[h, p] + center[b]
                    square[p] = 0.0
                for i in range(d):
                    slope, weight = estimate[r, b, i], inverse[r, b, i, i]
                    for p in range(n_pairs):
                        q[p] += slope * x[i, p]
                        row[p] = weight * x[i, p]
                    for j in range(i + 1, d):
                        weight = 2.0 * inverse[r, b, i, j]
                        for p in range(n_pairs):
                            row[p] += weight * x[j, p]
                    for p in range(n_pairs):
                        square[p] += x[i, p] * row[p]
                scale = width[r, b]
                for p in range(n_pairs):
                    q[p] += scale * math.sqrt(max(square[p], 0.0))
            for s in range(n_states):
                largest = -math.inf
                for a in range(n_actions):
                    largest = max(largest, q[s * n_actions + a])
                least = largest - _TIE * abs(largest)
                for place in range(n_actions):
                    best = preference[r, place]
                    if q[s * n_actions + best] >= least:
                        break
                policy[r, h, s] = best
                values[r, h, s] = min(max(largest, low[h]), high[h])


@_kernel
def contribute(features, steps, center, norm_bound, value_bound, values, states, actions, out):  # type: ignore[no-untyped-def]
    """out[r, b] = (x x^T, y x) of one episode at the step of block b: x = phi_(V - c)(s_h, a_h), y = V(s_(h+1)) - c.

    V is the episode's own V_(h+1); x is shortened to the norm bound and y moved into [-value_bound, value_bound], which
    changes nothing where model and values keep their word.

    features: (n_states, n_actions, n_states, d); steps, center, norm_bound, value_bound: (n_blocks,); values: (n_reps,
    horizon + 1, n_states), states: (n_reps, horizon + 1), actions: (n_reps, horizon), out: (n_reps, n_blocks, d, d + 1).
    """
    n_states, d = features.shape[2], features.shape[3]
    x = np.empty(d)
    for r in range(out.shape[0]):
        for b in range(len(steps)):
            h = steps[b]
            regressor(features[states[r, h], actions[r, h]], values[r, h + 1], center[b], norm_bound[b], n_states, x)
            y = values[r, h + 1, states[r, h + 1]] - center[b]
            y = min(max(y, -value_bound[b]), value_bound[b])
            for i in range(d):
                for j in range(d):
                    out[r, b, i, j] = x[i] * x[j]
                out[r, b, i, d] = y * x[i]


@_kernel
def regressor(features, value, center, norm_bound, n_states, x):  # type: ignore[no-untyped-def]
    """Fills x (d,) with sum_s' features[s'] (value[s'] - center), shortened; features: (n_states, d), value: (n_states,)."""
    d, square = features.shape[1], 0.0
    for i in range(d):
        x[i] = 0.0
    for after in range(n_states):
        weight = value[after] - center
        for i in range(d):
            x[i] += weight * features[after, i]
    for i in range(d):
        square += x[i] * x[i]
    if square > norm_bound * norm_bound:
        factor = norm_bound / math.sqrt(square)
        for i in range(d):
            x[i] *= factor


@_kernel
def proxy(variance, spread):  # type: ignore[no-untyped-def]
    r"""The v for which a variable is sqrt v sub-Gaussian, by its variance and the half S of its range: S^2 w / artanh w.

    w = sqrt(1 - variance / S^2). Of all variables with mean 0 that are at most b and have this variance or less, the one
    with the values b and -variance / b has the largest E exp(t X), t > 0 (Bennett 1962), and they are at most 2 S apart. A
    variable with two values at a distance of 2 L is sub-Gaussian with L^2 w / artanh w, w = sqrt(1 - variance / L^2) (Kearns
    and Saul 1998), which grows with L: it is variance times w / ((1 - w^2) artanh w), and the logarithm of that has the
    derivative (1 / w + w - 1 / artanh w) / (1 - w^2) > 0, as artanh w > w. It grows with the variance too, from 0 to S^2.
    """
    w = math.sqrt(max(1.0 - max(variance, 0.0) / (spread * spread), 0.0))
    if w < 1e-4:  # 1 - w^2 / 3
        return spread * spread
    return spread * spread * w / math.atanh(w) if w < 1.0 else 0.0


@_kernel
def contribute_weighted(  # type: ignore[no-untyped-def]
    features, aims, levels, estimate, inverse, check_width, square_width, values, states, actions, out
):  # fmt: skip
    """One episode's pairs of UCRL-VTR+: of step b, (x x^T, y x) / s^2 to block b, (z z^T, u z) to block n + b.

    Here x, y are those of `contribute`; z = phi_((V - c)^2 - c2)(s_h, a_h), u = (V(s_(h+1)) - c)^2 - c2; and s^2, which is
    to bound the variance of y from above, is with m = `value_bound`

        var = <z, w_(n+b)> + c2, moved into [0, m^2], less the square of <x, w_b>, moved into [-m, m],
        s^2 = var + min(m^2, 2 m check |x|) + min(m^2, square |z|),       moved into [floor, top],

    norms in the inverses, widths `check` and `square`. Bounds cut as there. Where `spread` S is above 0, the `proxy` of this
    bound on the variance is moved there in its place.

    features: (n_states, n_actions, n_states, d); aims: (n,) steps, c, bounds of |x| and m; levels: (n,) c2, bounds of |z|
    and |u|, floor, top, S; estimate: (n_reps, 2 n, d), inverse: (n_reps, 2 n, d, d), check_width, square_width: (n_reps,
    n); values, states, actions as of `contribute`; out: (n_reps, 2 n, d, d + 1).
    """
    steps, center, norm_bound, value_bound = aims
    square_center, square_norm, square_value, floor, top, spread = levels
    n_states, d, n = features.shape[2], features.shape[3], len(steps)
    x, z, squares = np.empty(d), np.empty(d), np.empty(n_states)
    for r in range(out.shape[0]):
        for b in range(n):
            h = steps[b]
            row = features[states[r, h], actions[r, h]]
            for after in range(n_states):
                squares[after] = (values[r, h + 1, after] - center[b]) ** 2
            regressor(row, values[r, h + 1], center[b], norm_bound[b], n_states, x)
            regressor(row, squares, square_center[b], square_norm[b], n_states, z)
            y = values[r, h + 1, states[r, h + 1]] - center[b]
            u = y * y - square_center[b]
            y = min(max(y, -value_bound[b]), value_bound[b])
            u = min(max(u, -square_value[b]), square_value[b])
            mean, square, x_norm, z_norm = 0.0, square_center[b], 0.0, 0.0
            for i in range(d):
                mean += x[i] * estimate[r, b, i]
                square += z[i] * estimate[r, n + b, i]
                for j in range(d):
                    x_norm += x[i] * inverse[r, b, i, j] * x[j]
                    z_norm += z[i] * inverse[r, n + b, i, j] * z[j]
            m = value_bound[b]
            mean, square = min(max(mean, -m), m), min(max(square, 0.0), m * m)
            variance = square - mean * mean
            variance += min(m * m, 2.0 * m * check_width[r, b] * math.sqrt(max(x_norm, 0.0)))
            variance += min(m * m, square_width[r, b] * math.sqrt(max(z_norm, 0.0)))
            if spread[b] > 0.0:
                variance = proxy(variance, spread[b])
            weight = 1.0 / min(max(variance, floor[b]), top[b])
            for i in range(d):
                for j in range(d):
                    out[r, b, i, j] = weight * x[i] * x[j]
                    out[r, n + b, i, j] = z[i] * z[j]
                out[r, b, i, d] = weight * y * x[i]
                out[r, n + b, i, d] = u * z[i]
