r"""Rewards of logistic mean: the problem's public facts, and what is known of the link.

A user brings vectors x, |x| <= 1; a reward in [0, 1] has the mean sigma(<theta, x>), sigma(z) = 1 / (1 + e^-z), with an
unknown theta of norm at most S, `logit_bound`. A problem of this kind is one of users who bring vectors, on which algorithms
that assume linear means play too; what they prove does not hold there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.problem import Problem
from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core.checks import positive


@dataclass(frozen=True)
class LogisticProblem(Problem):
    """Public facts of a problem whose rewards, over the width of their range, have logistic means.

    Attributes: those of `Problem`, and
      logit_bound: S, of |theta|.
    """

    logit_bound: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("logit_bound", self.logit_bound)
        if self.dimension is None:
            raise ValueError("dimension must be given: logistic means are those of vectors that users bring")


def mean_of(logit: ArrayLike) -> FloatArray:
    """sigma(z), any shape; by the hyperbolic tangent, which neither overflows nor cancels."""
    return np.asarray((1 + np.tanh(np.asarray(logit, dtype=float) / 2)) / 2)


def slope_of(logit: ArrayLike) -> FloatArray:
    """sigma'(z) = sigma(z) sigma(-z) = 1 / (4 cosh(z / 2)^2), any shape."""
    return np.asarray(0.25 / np.cosh(np.asarray(logit, dtype=float) / 2) ** 2)


def chord_slope(logit: ArrayLike, bound: float) -> FloatArray:
    r"""The least slope of a chord of sigma from z to any v in [-S, S], any shape; S = `bound`, |z| <= S.

    It is (sigma(S) - sigma(|z|)) / (S - |z|), and sigma'(S) at |z| = S. By symmetry let z >= 0. Above 0 sigma is concave, so
    chords to v in [0, S] are least steep at v = S. With s = sigma - 1/2, odd and concave above 0, s(z) / z and s(a) / a are
    at least s(S) / S, and so is their mediant, the chord from z to -a; and s(S) / S is at least the chord from z to S.

    Computed as sinh(h) / h / (4 cosh(S / 2) cosh(z / 2)), h = (S - |z|) / 2: the same, without a difference.
    """
    z = np.abs(np.asarray(logit, dtype=float))
    half = (bound - z) / 2
    ratio = np.where(half > 1e-6, np.sinh(half) / np.maximum(half, 1e-6), 1.0)  # sinh(h) / h - 1 < h^2 / 6
    return np.asarray(ratio / (4 * np.cosh(bound / 2) * np.cosh(z / 2)))
