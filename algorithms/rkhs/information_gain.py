r"""How much rewards at given points tell of a function: log det(I + K / noise) / 2, and the most that n points can tell.

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
from bandana.privacy_core.checks import at_least, positive

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
    """What taking the best next point finds.

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


def _checked(array: FloatArray) -> FloatArray:
    rows = np.asarray(array, dtype=float)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"points or features must be of shape (n, d), n >= 1, got {rows.shape}")
    if not np.isfinite(rows).all():
        raise ValueError("points or features must be finite")
    return rows
