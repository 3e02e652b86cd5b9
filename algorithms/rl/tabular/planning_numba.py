"""Kernels of value iteration on noisy counts: what an episode adds, and optimistic values with the actions that attain them.

All arrays have a leading replicate axis, and each replicate is computed by itself. Rows of statistics are those of
`bandana.algorithms.rl.tabular.statistics`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_kernel = njit(cache=True, nogil=True, error_model="numpy")
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
    """The largest index decides, of those that tie with it the first in preference[r]; the value is moved into [0, cap]."""
    largest = index.max()
    values[r, h, s] = min(max(largest, 0.0), cap)
    for place in range(len(index)):
        a = preference[r, place]
        if index[a] >= largest - _TIE * abs(largest):
            policy[r, h, s] = a
            break


@_kernel
def _visits(row, count_weight, count_share, error, scale):  # type: ignore[no-untyped-def]
    """u, at least the number of visits of a row, and the slack of a mean of numbers in [-1, 1] that is divided by u."""
    total = row[: len(row) - (2 if count_weight > 0.0 else 1)].sum()
    visits = (1.0 - count_share) * total + error
    if count_share > 0.0:
        visits += count_share * row[-1] / count_weight
    if visits < 1.0:
        return 1.0, max(2.0 * error, scale), total
    return visits, 2.0 * error, total


@_kernel
def plan(  # type: ignore[no-untyped-def]
    noisy, center, count_weight, count_share, errors, caps, log, scale, preference, policy, values
):  # fmt: skip
    """Optimistic backward induction with widths from the range of values; formulas stand at `UCBVI`.

    noisy: (n_reps, H, S, A, width), center: what is subtracted from rewards, errors: (4,) those of `Errors`, caps: (H + 1,)
    largest values, the last one 0, preference: (n_reps, A), policy: (n_reps, H, S), values: (n_reps, H + 1, S) with zeros in
    the last row.
    """
    n_reps, length, n_states, n_actions = noisy.shape[:4]
    index, reach = np.empty(n_actions), max(center, 1.0 - center)
    error_count, error_reward, error_total = scale * errors[0], errors[1], errors[2]
    for r in range(n_reps):
        for h in range(length - 1, -1, -1):
            cap, after = caps[h + 1], values[r, h + 1]
            middle = 0.5 * cap
            for s in range(n_states):
                for a in range(n_actions):
                    row, moved = noisy[r, h, s, a], 0.0
                    for t in range(n_states):
                        moved += row[t] * (after[t] - middle)
                    visits, slack, _ = _visits(row, count_weight, count_share, error_count, scale)
                    chance = (1.0 + cap) * math.sqrt(0.5 * visits * log)
                    bonus = (reach + middle) * slack + scale * (error_reward + middle * error_total + chance)
                    index[a] = center + middle + (row[n_states] + moved + bonus) / visits
                _decide(index, caps[h], preference, policy, values, r, h, s)


@_kernel
def _future(row, high, low, span, cap, log, errors, total, scale):  # type: ignore[no-untyped-def]
    """Bounds on the mean of a function of the next state between `low` and `high`, (S,), in [0, cap], `span` apart."""
    half = 0.5 * cap
    above, below = -half * total, -half * total
    for t in range(len(high)):
        above += row[t] * (high[t] if row[t] > 0.0 else low[t])
        below += row[t] * (low[t] if row[t] > 0.0 else high[t])
    n, spread, largest = max(total, 1.0), 0.0, 0.0
    middle = min(max(half + 0.5 * (above + below) / n, 0.0), cap)
    for t in range(len(high)):
        square = max((high[t] - middle) ** 2, (low[t] - middle) ** 2)
        spread += row[t] * square
        largest = max(largest, square)
    spread = max(spread + largest * errors[2], 0.0)
    width = math.sqrt(2.0 * spread * log) + 3.0 * cap * log + span * errors[3]
    width = scale * (width + half * max(1.0 - total, 0.0))
    return half + (above + width) / n, half + (below - width) / n


@_kernel
def plan_bernstein(  # type: ignore[no-untyped-def]
    noisy, center, count_weight, count_share, errors, caps, log, scale, preference, policy, values, lower
):  # fmt: skip
    """Backward induction with widths from variances, and values of the best policy bounded on both sides; see `UCBVI`.

    Shapes are those of `plan`, and `lower` is like `values`.
    """
    n_reps, length, n_states, n_actions = noisy.shape[:4]
    index, floor, reach = np.empty(n_actions), np.empty(n_actions), max(center, 1.0 - center)
    for r in range(n_reps):
        for h in range(length - 1, -1, -1):
            cap, high, low = caps[h + 1], values[r, h + 1], lower[r, h + 1]
            span = high.max() - low.min()
            for s in range(n_states):
                for a in range(n_actions):
                    row = noisy[r, h, s, a]
                    visits, slack, total = _visits(row, count_weight, count_share, scale * errors[0], scale)
                    mean = center + row[n_states] / visits
                    width = (reach * slack + scale * (errors[1] + math.sqrt(0.5 * visits * log))) / visits
                    index[a], floor[a] = mean + width, mean - width
                    if cap > 0.0:
                        above, below = _future(row[:n_states], high, low, span, cap, log, errors, total, scale)
                        index[a], floor[a] = index[a] + above, floor[a] + below
                _decide(index, caps[h], preference, policy, values, r, h, s)
                lower[r, h, s] = min(max(floor.max(), 0.0), caps[h])


@_kernel
def plan_published(noisy, error, log, scale, preference, policy, values):  # type: ignore[no-untyped-def]
    """Backward induction of PUCB, with its own bonus.

    With E = scale times `error`, a pair whose noisy visits n are below 2 E has the bonus H, and its index is 2 H; any other

        (sum r + sum m V) / n + scale (H + 1) sqrt(2 log / (n - E)) + (1 + S H) (3 E / n + 2 E^2 / n^2).

    Shapes are those of `plan`.
    """
    n_reps, length, n_states, n_actions = noisy.shape[:4]
    index, limit = np.empty(n_actions), scale * error
    for r in range(n_reps):
        for h in range(length - 1, -1, -1):
            after = values[r, h + 1]
            for s in range(n_states):
                for a in range(n_actions):
                    row = noisy[r, h, s, a]
                    visits = row[n_states + 1]
                    if visits < 2.0 * limit or visits <= 0.0:
                        index[a] = 2.0 * length
                        continue
                    moved = row[n_states]
                    for t in range(n_states):
                        moved += row[t] * after[t]
                    chance = scale * (length + 1.0) * math.sqrt(2.0 * log / max(visits - limit, 1.0))
                    part = limit / visits
                    index[a] = moved / visits + chance + (1.0 + n_states * length) * (3.0 * part + 2.0 * part * part)
                _decide(index, float(length), preference, policy, values, r, h, s)
