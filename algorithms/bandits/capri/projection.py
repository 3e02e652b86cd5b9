r"""Kernel ridge regression on the span of random points: what a private record of it may weigh, and how far it may be off.

Over a finite set of points with features phi(w), let S and R be lists of points drawn without the data, Q an orthonormal
basis of span phi(S), and

    C = Q^T Phi_R Phi_R^T Q + tau I,     v(w) = Q C^-1/2 Q^T phi(w)     (C^-1/2 the symmetric root),

so that the estimate of f at w from rewards y_t at points w_t is v(w)^T sum_t y_t v(w_t). With M = K_SR K_RS + tau K_SS and
k_S(w) the kernel's values, this is k_S(w)^T M^-1 K_SW y wherever M is regular; here S may repeat points, and then M is
singular. Any square root of C^-1 would do, and any basis. This v does not depend on Q, of which processors find different
ones (eigenvectors have either sign, and those of a repeated value are turned at will): a sum's noise is the same on all.

Source: Pavlovic, Salgia and Zhao, Differential Privacy in Kernelized Contextual Bandits via Random Projections, eqs. (4) and
(6).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core.checks import at_least

_TIE = 1e-9
"""`bandana.algorithms.ties.TIE`: a cached kernel must not read another module."""

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_RANK = 1e-10
"""A direction of span phi(S) counts if its eigenvalue is more than this part of the largest: so far above rounding, 1e-15 of
it, that the last bits, which differ between processors, practically never decide."""
_CHUNK = 512


def epoch_lengths(horizon: int) -> tuple[int, ...]:
    """ceil(sqrt T), then twice as many each time, until they cover the horizon; of the last epoch a part may be played."""
    first = math.isqrt(at_least("horizon", horizon, 1) - 1) + 1
    lengths = [first]
    while sum(lengths) < horizon:
        lengths.append(2 * lengths[-1])
    return tuple(lengths)


class Projection(NamedTuple):
    """The estimator of one epoch, on all points; public."""

    vectors: FloatArray
    """(n_points, n_features) v(w), in span phi(S)."""
    norm: FloatArray
    """(n_points,) |v(w)|, the paper's s(w)."""
    spread: FloatArray
    r"""(n_points,) sigma(w) of eq. (6): sigma^2 = |v|^2 + |phi - Q Q^T phi|^2 / tau."""


def project(features: FloatArray, basis: IntArray, counts: IntArray, ridge: float) -> Projection:
    """The estimator for given S and R.

    Args:
      features: (n_points, n_features) phi.
      basis: the points of S; repetitions change nothing.
      counts: (n_points,) how often each point is in R.
      ridge: tau.
    """
    spanning = features[np.unique(basis)]
    values, directions = np.linalg.eigh(spanning.T @ spanning)
    directions = directions[:, values > _RANK * values[-1]]
    coordinates = features @ directions
    drawn = np.flatnonzero(counts)
    gram = (coordinates[drawn].T * counts[drawn]) @ coordinates[drawn]
    gram[np.diag_indices(len(gram))] += ridge
    values, axes = np.linalg.eigh(gram)
    vectors = coordinates @ (axes / np.sqrt(values)) @ (directions @ axes).T
    square = np.einsum("wm,wm->w", vectors, vectors)
    missed = np.einsum("wm,wm->w", features, features) - np.einsum("wk,wk->w", coordinates, coordinates)
    return Projection(vectors, np.sqrt(square), np.sqrt(square + np.maximum(missed, 0.0) / ridge))


class Error(NamedTuple):
    """Bounds on how far the estimate is off without noise, where points are drawn from a known law; each (n_points,)."""

    bias: FloatArray
    """Part that the estimate's mean misses of a function of norm 1."""
    variance: FloatArray
    """Sum over the rounds of the mean square of a reward's weight: for |y| <= 1 no less than the estimate's variance."""
    weight: FloatArray
    """The largest weight of one reward."""


def error(features: FloatArray, vectors: FloatArray, rounds: FloatArray) -> Error:
    r"""The exact first two moments of v(w)^T sum_t y_t v(w_t), for w_t drawn independently.

    Its mean is sum_u rounds(u) a(w, u) f(u), a(w, u) = v(w)^T v(u): as an element of the function space f is multiplied by
    sum_u rounds(u) a(w, u) phi(u) where it should be by phi(w), so the mean is off by at most |f| times their distance.

    Args:
      features: (n_points, n_features) phi.
      vectors: (n_points, n_features) v.
      rounds: (n_points,) expected number of rounds at each point, T_r times its probability.
    """
    n_points = len(features)
    bias, variance, weight = (np.empty(n_points) for _ in range(3))
    there = np.flatnonzero(rounds)
    weighted = features[there] * rounds[there, None]
    for start in range(0, n_points, _CHUNK):
        rows = slice(start, start + _CHUNK)
        weights = vectors[rows] @ vectors[there].T
        bias[rows] = np.linalg.norm(features[rows] - weights @ weighted, axis=1)
        variance[rows] = weights**2 @ rounds[there]
        weight[rows] = np.abs(weights).max(axis=1)
    return Error(bias, variance, weight)


@_kernel
def assign(order, n_active, place, coin, out):  # type: ignore[no-untyped-def]
    """out[r] = the action of number floor(coin[r] k) among the k active ones of context place[r].

    order: (n_reps, n_contexts, n_actions) active actions first, n_active: (n_reps, n_contexts); others: (n_reps,).
    """
    for r in range(len(place)):
        c = place[r]
        k = n_active[r, c]
        out[r] = order[r, c, min(int(coin[r] * k), k - 1)]  # a coin near 1 must not round up


@_kernel
def encode(codes, which, place, actions, n_actions, rewards, n_records, middle, out):  # type: ignore[no-untyped-def]
    """out[r] = (rewards[r] - middle n_records[r]) codes[which[r], point], of the point (place[r], actions[r, 0]).

    codes: (n_plans, n_points, m), actions, rewards: (n_reps, 1), which, place, n_records: (n_reps,), out: (n_reps, m).
    """
    for r in range(len(place)):
        plan, point = which[r], place[r] * n_actions + actions[r, 0]
        y = rewards[r, 0] - middle * n_records[r]
        for i in range(codes.shape[2]):
            out[r, i] = y * codes[plan, point, i]


@_kernel
def decode(readers, factor, rows, noisy, out):  # type: ignore[no-untyped-def]
    """out[r, w] = factor <readers[w], noisy[r]> for r in rows; readers: (n_points, m), noisy: (n_reps, m)."""
    for r in rows:
        for w in range(readers.shape[0]):
            total = 0.0
            for i in range(readers.shape[1]):
                total += readers[w, i] * noisy[r, i]
            out[r, w] = factor * total


@_kernel
def eliminate(estimate, width, which, active):  # type: ignore[no-untyped-def]
    """Drops, in each context, the active actions whose upper end lies below the largest lower end, in place.

    estimate: (n_reps, n_points), width: (n_plans, n_points), active: (n_reps, n_contexts, n_actions); point (c, a) has the
    number c n_actions + a. The action with the largest lower end always stays, and so do those that touch it: ends closer
    than `_TIE`, relative to the larger, count as equal.
    """
    n_reps, n_contexts, n_actions = active.shape
    for r in range(n_reps):
        plan = which[r]
        for c in range(n_contexts):
            largest = -math.inf
            for a in range(n_actions):
                w = c * n_actions + a
                if active[r, c, a]:
                    largest = max(largest, estimate[r, w] - width[plan, w])
            for a in range(n_actions):
                w = c * n_actions + a
                upper = estimate[r, w] + width[plan, w]
                if active[r, c, a] and largest - upper > _TIE * max(abs(largest), abs(upper)):
                    active[r, c, a] = False
