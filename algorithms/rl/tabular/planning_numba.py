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
def plan(  # type: ignore[no-untyped-def]
    noisy, count_weight, count_share, errors, caps, log, is_bernstein, scale, preference, policy, values
):  # fmt: skip
    """Optimistic backward induction with the proved widths; formulas stand at `UCBVI`.

    noisy: (n_reps, H, S, A, width), errors: (3,) of visits, rewards and next states, caps: (H + 1,) largest values, the last
    one 0, preference: (n_reps, A), policy: (n_reps, H, S), values: (n_reps, H + 1, S) with zeros in the last row.
    """
    n_reps, length, n_states, n_actions = noisy.shape[:4]
    index = np.empty(n_actions)
    error_count, error_reward, error_total = scale * errors[0], errors[1], errors[2]
    for r in range(n_reps):
        for h in range(length - 1, -1, -1):
            cap, after = caps[h + 1], values[r, h + 1]
            middle = 0.5 * cap
            for s in range(n_states):
                for a in range(n_actions):
                    row = noisy[r, h, s, a]
                    total, moved = 0.0, 0.0
                    for t in range(n_states):
                        total += row[t]
                        moved += row[t] * (after[t] - middle)
                    visits = (1.0 - count_share) * total
                    if count_share > 0.0:
                        visits += count_share * row[n_states + 1] / count_weight
                    visits += error_count
                    slack = 2.0 * error_count
                    if visits < 1.0:
                        visits = 1.0
                        slack = max(slack, scale)
                    if is_bernstein:
                        chance = math.sqrt(0.5 * visits * log)
                        if cap > 0.0:
                            mean = min(max(middle + moved / visits, 0.0), cap)
                            spread = 0.0
                            for t in range(n_states):
                                spread += row[t] * (after[t] - mean) ** 2
                            spread = max(spread, 0.0) + cap * cap * error_total
                            chance += max(3.0 * math.sqrt(spread * log), 9.0 * cap * log)
                    else:
                        chance = (1.0 + cap) * math.sqrt(0.5 * visits * log)
                    bonus = (0.5 + middle) * slack + scale * (error_reward + middle * error_total + chance)
                    index[a] = 0.5 + middle + (row[n_states] + moved + bonus) / visits
                _decide(index, caps[h], preference, policy, values, r, h, s)


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
