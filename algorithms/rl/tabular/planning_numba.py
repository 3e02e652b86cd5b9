"""Kernels of value iteration on noisy counts: what an episode adds, and optimistic values with the actions that attain them.

All arrays have a leading replicate axis, and each replicate is computed by itself. Rows of statistics are those of
`bandana.algorithms.rl.tabular.statistics`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_LANES = 16
"""Replicates that are planned side by side, so that the processor computes their roots and quotients together. Past the last
one stand old numbers, which nobody reads."""
_TIE = 1e-9
"""That of `bandana.algorithms.ties`: a compiled function that used it from there would outlive a change of it."""


@_kernel
def tally(states, actions, rewards, reward_center, count_weight, out):  # type: ignore[no-untyped-def]
    """Adds one episode a replicate to the rows it visits; rewards are moved into [0, 1].

    states: (n_reps, H + 1), actions, rewards: (n_reps, H), out: (n_reps, H, S, A, width).
    """
    n_states = out.shape[2]
    for r in range(actions.shape[0]):
        for h in range(actions.shape[1]):
            row = out[r, h, states[r, h], actions[r, h]]
            row[states[r, h + 1]] += 1.0
            row[n_states] += min(max(rewards[r, h], 0.0), 1.0) - reward_center
            if count_weight > 0.0:
                row[n_states + 1] += count_weight


@_kernel
def _decide(index, cap, preference, policy, values, r, h, s):  # type: ignore[no-untyped-def]
    """The largest index decides, of those that tie with it the first in preference[r]; the value is moved into [0, cap].

    index: (A, _LANES), those of replicates from r on; preference, policy, values: as in `plan`.
    """
    for lane in range(min(_LANES, len(policy) - r)):
        largest = index[0, lane]
        for a in range(1, len(index)):
            largest = max(largest, index[a, lane])
        values[r + lane, h, s] = min(max(largest, 0.0), cap)
        for place in range(len(index)):
            a = preference[r + lane, place]
            if index[a, lane] >= largest - _TIE * abs(largest):
                policy[r + lane, h, s] = a
                break


@_kernel
def _visits(row, count_weight, count_share, error, scale, total, visits, slack):  # type: ignore[no-untyped-def]
    """u, at least the number of visits of a row, and the slack of a mean of numbers in [-1, 1] that is divided by u.

    row: (width, _LANES), total, visits, slack: (_LANES,), filled in, the first with sums of counts.
    """
    total[:] = 0.0
    for t in range(len(row) - (2 if count_weight > 0.0 else 1)):
        for lane in range(_LANES):
            total[lane] += row[t, lane]
    for lane in range(_LANES):
        seen = (1.0 - count_share) * total[lane] + error
        if count_share > 0.0:
            seen += count_share * row[-1, lane] / count_weight
        visits[lane] = seen if seen >= 1.0 else 1.0
        slack[lane] = 2.0 * error if seen >= 1.0 else max(2.0 * error, scale)


@_kernel
def plan(  # type: ignore[no-untyped-def]
    noisy, center, count_weight, count_share, errors, caps, log, scale, preference, policy, values
):  # fmt: skip
    """Optimistic backward induction with widths from the range of values; formulas stand at `UCBVI`.

    noisy: (n_reps, H, S, A, width), center: what is subtracted from rewards, errors: (4,) those of `Errors`, caps: (H + 1,)
    largest values, the last one 0, preference: (n_reps, A), policy: (n_reps, H, S), values: (n_reps, H + 1, S) with zeros in
    the last row.
    """
    n_reps, length, n_states, n_actions, width = noisy.shape
    rows, after = np.zeros((n_states, n_actions, width, _LANES)), np.zeros((n_states, _LANES))
    index, reach = np.empty((n_actions, _LANES)), max(center, 1.0 - center)
    total, visits, slack, moved = np.empty((4, _LANES))
    error_count, error_reward, error_total = scale * errors[0], errors[1], errors[2]
    for r in range(0, n_reps, _LANES):
        for h in range(length - 1, -1, -1):
            n = min(_LANES, n_reps - r)
            rows[..., :n] = noisy[r : r + n, h].transpose(1, 2, 3, 0)
            after[:, :n] = values[r : r + n, h + 1].T
            cap = caps[h + 1]
            middle = 0.5 * cap
            for s in range(n_states):
                for a in range(n_actions):
                    row = rows[s, a]
                    _visits(row, count_weight, count_share, error_count, scale, total, visits, slack)
                    moved[:] = 0.0
                    for t in range(n_states):
                        for lane in range(_LANES):
                            moved[lane] += row[t, lane] * (after[t, lane] - middle)
                    for lane in range(_LANES):
                        chance = (1.0 + cap) * math.sqrt(0.5 * visits[lane] * log)
                        bonus = (reach + middle) * slack[lane] + scale * (error_reward + middle * error_total + chance)
                        index[a, lane] = center + middle + (row[n_states, lane] + moved[lane] + bonus) / visits[lane]
                _decide(index, caps[h], preference, policy, values, r, h, s)


@_kernel
def _future(row, high, low, span, cap, log, errors, total, scale, above, below):  # type: ignore[no-untyped-def]
    """Bounds on the mean of a function of the next state between `low` and `high`, (S, _LANES), in [0, cap], `span` apart.

    row: (width, _LANES), total: (_LANES,) sums of counts, above, below: (_LANES,), to which the bounds are added.
    """
    half, n_states = 0.5 * cap, len(high)
    for lane in range(_LANES):
        up, down = -half * total[lane], -half * total[lane]
        for t in range(n_states):
            count, top, bottom = row[t, lane], high[t, lane], low[t, lane]
            up += count * (top if count > 0.0 else bottom)
            down += count * (bottom if count > 0.0 else top)
        n, spread, largest = max(total[lane], 1.0), 0.0, 0.0
        middle = min(max(half + 0.5 * (up + down) / n, 0.0), cap)
        for t in range(n_states):
            square = max((high[t, lane] - middle) ** 2, (low[t, lane] - middle) ** 2)
            spread += row[t, lane] * square
            largest = max(largest, square)
        spread = max(spread + largest * errors[2], 0.0)
        width = math.sqrt(2.0 * spread * log) + 3.0 * cap * log + span[lane] * errors[3]
        width = scale * (width + half * max(1.0 - total[lane], 0.0))
        above[lane] += half + (up + width) / n
        below[lane] += half + (down - width) / n


@_kernel
def plan_bernstein(  # type: ignore[no-untyped-def]
    noisy, center, count_weight, count_share, errors, caps, log, scale, preference, policy, values, lower
):  # fmt: skip
    """Backward induction with widths from variances, and values of the best policy bounded on both sides; see `UCBVI`.

    Shapes are those of `plan`, and `lower` is like `values`.
    """
    n_reps, length, n_states, n_actions, width = noisy.shape
    rows, reach = np.zeros((n_states, n_actions, width, _LANES)), max(center, 1.0 - center)
    (high, low), (index, floor) = np.zeros((2, n_states, _LANES)), np.empty((2, n_actions, _LANES))
    total, visits, slack, span = np.zeros((4, _LANES))
    for r in range(0, n_reps, _LANES):
        for h in range(length - 1, -1, -1):
            n = min(_LANES, n_reps - r)
            rows[..., :n] = noisy[r : r + n, h].transpose(1, 2, 3, 0)
            high[:, :n], low[:, :n] = values[r : r + n, h + 1].T, lower[r : r + n, h + 1].T
            for lane in range(n):
                span[lane] = high[:, lane].max() - low[:, lane].min()
            cap = caps[h + 1]
            for s in range(n_states):
                for a in range(n_actions):
                    row = rows[s, a]
                    _visits(row, count_weight, count_share, scale * errors[0], scale, total, visits, slack)
                    for lane in range(_LANES):
                        mean, root = center + row[n_states, lane] / visits[lane], math.sqrt(0.5 * visits[lane] * log)
                        wide = (reach * slack[lane] + scale * (errors[1] + root)) / visits[lane]
                        index[a, lane], floor[a, lane] = mean + wide, mean - wide
                    if cap > 0.0:
                        _future(row, high, low, span, cap, log, errors, total, scale, index[a], floor[a])
                _decide(index, caps[h], preference, policy, values, r, h, s)
                for lane in range(n):
                    lower[r + lane, h, s] = min(max(floor[:, lane].max(), 0.0), caps[h])


@_kernel
def plan_published(noisy, error, log, scale, preference, policy, values):  # type: ignore[no-untyped-def]
    """Backward induction of PUCB, with its own bonus.

    With E = scale times `error`, a pair whose noisy visits n are below 2 E has the bonus H, and its index is 2 H; any other

        (sum r + sum m V) / n + scale (H + 1) sqrt(2 log / (n - E)) + (1 + S H) (3 E / n + 2 E^2 / n^2).

    Shapes are those of `plan`.
    """
    n_reps, length, n_states, n_actions = noisy.shape[:4]
    index, limit = np.empty((n_actions, _LANES)), scale * error
    for r in range(0, n_reps, _LANES):
        for h in range(length - 1, -1, -1):
            for s in range(n_states):
                for lane in range(min(_LANES, n_reps - r)):
                    after = values[r + lane, h + 1]
                    for a in range(n_actions):
                        row = noisy[r + lane, h, s, a]
                        visits = row[n_states + 1]
                        if visits < 2.0 * limit or visits <= 0.0:
                            index[a, lane] = 2.0 * length
                            continue
                        moved = row[n_states]
                        for t in range(n_states):
                            moved += row[t] * after[t]
                        chance = scale * (length + 1.0) * math.sqrt(2.0 * log / max(visits - limit, 1.0))
                        part = limit / visits
                        extra = (1.0 + n_states * length) * (3.0 * part + 2.0 * part * part)
                        index[a, lane] = moved / visits + chance + extra
                _decide(index, float(length), preference, policy, values, r, h, s)
