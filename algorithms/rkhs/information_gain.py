r"""The most that rewards at n points can tell of a function, where n given ones tell log det(I + K / noise) / 2.

With features phi, K = Phi Phi^T and det(I_n + Phi Phi^T / noise) = det(I_m + Phi^T Phi / noise): O(n m^2) instead of O(n^3).
The gain is monotone and submodular in the set of points, so that taking the best next point n times finds at least 1 - 1/e
of the maximum gamma_n over a finite set, repetitions included (Srinivas, Krause, Kakade and Seeger 2010, section 4).
"""

from __future__ import annotations

import math

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.ties import first_largest
from bandana.privacy_core.checks import positive

_STEPS = 500


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
      noise: variance of a reward's noise, relative to that of the function (the paper's lambda, or tau).

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
