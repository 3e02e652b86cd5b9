r"""Information of rewards at given points about a function: log det(I + K / noise) / 2, and the most that n points can tell.

With features phi, K = Phi Phi^T and det(I_n + Phi Phi^T / noise) = det(I_m + Phi^T Phi / noise): O(n m^2) instead of O(n^3).
The gain is monotone and submodular in the set of points, so that taking the best next point n times finds at least 1 - 1/e
of the maximum gamma_n over a finite set, repetitions included (Srinivas, Krause, Kakade and Seeger 2010, section 4).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.rkhs.kernels import Kernel, gram
from bandana.algorithms.ties import first_largest
from bandana.privacy_core.checks import at_least, positive

_STEPS = 500
OPTIMUM_SHARE = 1 - math.exp(-1.0)
"""The greedy gain is at least this share of gamma_n."""


def information_gain(features: FloatArray, noise: float) -> float:
    """In nats, of rewards at points with the given features.

    Args:
      features: (n, m)
      noise: variance of a reward's noise, relative to that of the function (the paper's lambda, or tau).
    """
    array, ridge = _checked(features), positive("noise", noise)
    small = array.T @ array if array.shape[1] < len(array) else array @ array.T
    return float(np.linalg.slogdet(np.eye(len(small)) + small / ridge)[1] / 2)


def kernel_information_gain(kernel: Kernel, points: FloatArray, noise: float) -> float:
    """The same of a kernel itself, in O(n^3); points: (n, d)."""
    array, ridge = _checked(points), positive("noise", noise)
    return float(np.linalg.slogdet(np.eye(len(array)) + gram(kernel, array, array) / ridge)[1] / 2)


class GreedyGain(NamedTuple):
    """Points that greedy choice takes, each the best next one.

    Attributes:
      gains: (n_rounds,) the gain of the first 1, 2, ... points: at most gamma, and at least `OPTIMUM_SHARE` of it.
      chosen: (n_rounds,) which points.
    """

    gains: FloatArray
    chosen: IntArray


def greedy_gain(features: FloatArray, n_rounds: int, noise: float) -> GreedyGain:
    r"""The best next point n times, from a finite set, with repetition; O(n_rounds n m).

    A point adds log(1 + s^2 / noise) / 2, s^2 / noise = phi^T (noise I + sum phi phi^T)^{-1} phi; the first of equal ones.

    Args:
      features: (n, m) of the set.
      n_rounds: how many points.
      noise: see `information_gain`.
    """
    array, ridge = _checked(features), positive("noise", noise)
    n_rounds = at_least("n_rounds", n_rounds, 1)
    inverse = np.eye(array.shape[1]) / ridge
    widths = (array**2).sum(axis=1) / ridge
    added, chosen = np.empty(n_rounds), np.empty(n_rounds, dtype=np.int64)
    for i in range(n_rounds):
        best = int(np.argmax(widths))
        chosen[i], added[i] = best, np.log1p(widths[best]) / 2
        turned = inverse @ array[best]
        scale = 1 / (1 + array[best] @ turned)
        inverse -= scale * np.outer(turned, turned)
        widths = np.maximum(widths - scale * (array @ turned) ** 2, 0.0)
    return GreedyGain(np.cumsum(added), chosen)


def gain_bounds(features: FloatArray, rounds: FloatArray, noise: float) -> FloatArray:
    r"""Proved bounds on gamma_n of a finite set from above, for any n.

    With counts c >= 0, which need not be whole, the gain F(c) = log det(I + sum c_a phi_a phi_a^T / noise) / 2 is concave,
    and its derivative along c_a is u_a^2 / 2, u_a^2 = phi_a^T (noise I + sum c_a phi_a phi_a^T)^-1 phi_a. So for every c

        gamma_n <= F(c) + (n max_a u_a^2 - sum c_a u_a^2) / 2.

    The c are those of the greedy choice, in steps of at most 1/500 of what was taken before, and the bound is the least of
    all. It is also at most m log(1 + n s / (noise m)) / 2, s the largest squared norm of phi: the determinant of a matrix of
    this trace.

    Args:
      features: (n, m) of the set.
      rounds: numbers n of rewards, any shape.
      noise: see `information_gain`.

    Source: the dual of D-optimal design (Kiefer and Wolfowitz 1960), with a ridge.
    """
    array, ridge, n_rounds = _checked(features), positive("noise", noise), np.asarray(rounds, dtype=float)
    m, most, mass, gain = array.shape[1], float(n_rounds.max(initial=0.0)), 0.0, 0.0
    inverse, squares = np.eye(m) / ridge, (array**2).sum(axis=1) / ridge
    counts = np.zeros(len(array))
    bounds = m * np.log1p(n_rounds * squares.max() / m) / 2
    while mass < most:
        best = first_largest(squares)
        bounds = np.minimum(bounds, gain + (n_rounds * squares.max() - counts @ squares) / 2)
        more = max(1.0, mass / _STEPS)
        turned = inverse @ array[best]
        grown = 1 + more * float(array[best] @ turned)
        inverse -= (more / grown) * np.outer(turned, turned)
        squares = np.maximum(squares - (more / grown) * (array @ turned) ** 2, 0.0)
        counts[best] += more
        mass, gain = mass + more, gain + math.log(grown) / 2
    return np.asarray(np.minimum(bounds, gain + (n_rounds * squares.max() - counts @ squares) / 2))


def _checked(array: FloatArray) -> FloatArray:
    rows = np.asarray(array, dtype=float)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"points or features must be of shape (n, d), n >= 1, got {rows.shape}")
    if not np.isfinite(rows).all():
        raise ValueError("points or features must be finite")
    return rows
