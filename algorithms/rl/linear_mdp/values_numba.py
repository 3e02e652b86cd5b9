"""Kernels of least-squares value iteration in finite state spaces: counts of transitions, their sums, optimistic values.

All arrays have a leading replicate axis, and each replicate is computed by itself. H steps, S states, A actions, features
of dimension d. Of past episodes nothing is kept but how often each step led from where to where, and the sums of rewards
there: the targets of all episodes are evaluated anew from these, exactly, whatever the values are by then.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from bandana.algorithms.protocol import FloatArray, IntArray

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_TIE = 1e-9
"""That of `bandana.algorithms.ties`: a compiled function that used it from there would outlive a change of it."""


@_kernel
def tally(states, actions, rewards, counts, sums):  # type: ignore[no-untyped-def]
    """Adds one episode a replicate: counts[r, h, s, a, s'] += 1, sums[r, h, s, a] += the reward, moved into [0, 1].

    states: (n_reps, H + 1), actions, rewards: (n_reps, H), counts: (n_reps, H, S, A, S), sums: (n_reps, H, S, A).
    """
    for r in range(actions.shape[0]):
        for h in range(actions.shape[1]):
            s, a = states[r, h], actions[r, h]
            counts[r, h, s, a, states[r, h + 1]] += 1
            sums[r, h, s, a] += min(max(rewards[r, h], 0.0), 1.0)


@_kernel
def add_outer_products(states, actions, features, weight, out):  # type: ignore[no-untyped-def]
    """out[r, h] += upper triangle of phi phi^T, phi = features[s_h, a_h], row by row; diagonal entries times `weight`.

    states: (n_reps, H + 1), actions: (n_reps, H), features: (S, A, d), out: (n_reps, H, d (d + 1) / 2).
    """
    d = features.shape[2]
    for r in range(actions.shape[0]):
        for h in range(actions.shape[1]):
            phi, k = features[states[r, h], actions[r, h]], 0
            for i in range(d):
                out[r, h, k] += weight * phi[i] * phi[i]
                k += 1
                for j in range(i + 1, d):
                    out[r, h, k] += phi[i] * phi[j]
                    k += 1


@_kernel
def unfold(triangles, weight, added, out):  # type: ignore[no-untyped-def]
    """out[n] = the symmetric matrix of a triangle as `add_outer_products` packs it, plus `added` on the diagonal.

    triangles: (n, d (d + 1) / 2), out: (n, d, d).
    """
    d = out.shape[1]
    for n in range(out.shape[0]):
        k = 0
        for i in range(d):
            out[n, i, i] = triangles[n, k] / weight + added
            k += 1
            for j in range(i + 1, d):
                out[n, i, j] = triangles[n, k]
                out[n, j, i] = triangles[n, k]
                k += 1


@_kernel
def responses(counts, sums, step, rows, values, center, features, out):  # type: ignore[no-untyped-def]
    """out[n] = sum over all episodes of phi (reward + value of the next state - center), at one step.

    counts: (n_reps, H, S, A, S), sums: (n_reps, H, S, A), rows: (n_rows,) replicates, values: (n_rows, S) of the next
    state, features: (S, A, d), out: (n_rows, d).
    """
    n_states, n_actions, d = features.shape
    for n in range(len(rows)):
        r = rows[n]
        for i in range(d):
            out[n, i] = 0.0
        for s in range(n_states):
            for a in range(n_actions):
                visits, total = 0, sums[r, step, s, a]
                for after in range(n_states):
                    count = counts[r, step, s, a, after]
                    if count:
                        visits += count
                        total += count * values[n, after]
                if visits:
                    total -= visits * center
                    for i in range(d):
                        out[n, i] += total * features[s, a, i]


def responses_reference(
    counts: IntArray, sums: FloatArray, step: int, rows: IntArray, values: FloatArray, center: float, features: FloatArray
) -> FloatArray:
    """`responses` in plain NumPy, for tests."""
    visits = counts[rows, step].astype(float)
    totals = sums[rows, step] + np.einsum("nsat,nt->nsa", visits, values) - center * visits.sum(axis=3)
    return np.asarray(np.einsum("nsa,sad->nd", totals, features))


@_kernel
def improve(inverse, vector, step, rows, width, center, cap, features, preference, weights, policy, values):  # type: ignore[no-untyped-def]
    """Least squares at one step, its optimistic values, and the actions that attain them.

    weights[r, step] = w = inverse[n] vector[n] for r = rows[n], and in every state the largest over actions of

        index = center + <w, phi> + width |phi|, the norm that of inverse[n],

    decides: its action is policy[r, step], and it is moved into [0, cap] to be values[r, step]. Actions whose moved indices
    tie are ordered by the indices themselves; of those that tie there too, up to `_TIE` relative to the largest, the first
    one in preference[r] is taken.

    inverse: (n_rows, d, d) symmetric, vector: (n_rows, d), features: (S, A, d), preference: (n_reps, A) permutations of the
    actions, weights: (n_reps, H, d), policy: (n_reps, H, S), values: (n_reps, H + 1, S).
    """
    n_states, n_actions, d = features.shape
    w, index = np.empty(d), np.empty(n_actions)
    for n in range(len(rows)):
        r = rows[n]
        for i in range(d):
            sum_ = 0.0
            for j in range(d):
                sum_ += inverse[n, i, j] * vector[n, j]
            w[i] = sum_
            weights[r, step, i] = sum_
        for s in range(n_states):
            for a in range(n_actions):
                mean, square = 0.0, 0.0
                for i in range(d):
                    phi = features[s, a, i]
                    if phi == 0.0:
                        continue
                    mean += w[i] * phi
                    weighted = inverse[n, i, i] * phi
                    for j in range(i + 1, d):
                        weighted += 2.0 * inverse[n, i, j] * features[s, a, j]
                    square += phi * weighted
                index[a] = center + mean + width * math.sqrt(max(square, 0.0))
            largest = index.max()
            values[r, step, s] = min(max(largest, 0.0), cap)
            for place in range(n_actions):
                a = preference[r, place]
                if index[a] >= largest - _TIE * abs(largest):
                    policy[r, step, s] = a
                    break


def improve_reference(
    inverse: FloatArray,
    vector: FloatArray,
    width: float,
    center: float,
    cap: float,
    features: FloatArray,
    preference: IntArray,
) -> tuple[FloatArray, IntArray, FloatArray]:
    """In NumPy, with preferences (n_rows, A): w (n_rows, d), the actions (n_rows, S) and the values (n_rows, S)."""
    w = np.einsum("nij,nj->ni", inverse, vector)
    square = np.einsum("sai,nij,saj->nsa", features, inverse, features)
    index = center + np.einsum("sad,nd->nsa", features, w) + width * np.sqrt(np.maximum(square, 0.0))
    largest = index.max(axis=2)
    preferred = np.take_along_axis(index, preference[:, None, :], axis=2) >= (largest - _TIE * np.abs(largest))[..., None]
    actions = np.take_along_axis(preference, preferred.argmax(axis=2), axis=1)
    return w, np.asarray(actions), np.clip(largest, 0.0, cap)
