r"""Terms that a record of logistic mean adds to a linear regression, and Gaussian noise for just these.

A record (x, y), |x| <= 1, y in [0, 1] of mean sigma(<theta, x>), |theta| <= S, enters once, linearized at a public pivot p:
with z = <p, x> moved into [-S, S],

    w = the least slope of a chord of sigma from z to a point of [-S, S]        (`chord_slope`)
    c = y - sigma(z) + w z                                                      the intercept of that chord, from y

and the record's statistic is (w x x^T, c x): the normal equations of the quadratic that touches the logistic loss at p and
lies below it on all of [-S, S]. Its gradient at theta has the mean (alpha - w)(<theta, x> - z) x, where alpha >= w is the
slope of the chord from z to <theta, x>.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bandana.algorithms.logistic import chord_slope, mean_of, slope_of
from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.regression.ridge_numba import normal_equations
from bandana.privacy_core import JointGaussian
from bandana.privacy_core.checks import positive


def linearized(x: FloatArray, y: FloatArray, pivot: FloatArray, bound: float) -> FloatArray:
    """One record's contribution.

    Args:
      x: (n_rows, d), norm at most 1.
      y: (n_rows,), in [0, 1].
      pivot: (n_rows, d) the public p.
      bound: S.

    Returns:
      (n_rows, d, d + 1): w x x^T, and c x as its last column.
    """
    z = np.clip(np.einsum("ri,ri->r", pivot, x), -bound, bound)
    w = chord_slope(z, bound)
    c = y - mean_of(z) + w * z
    equations = np.empty((*x.shape, x.shape[1] + 1))
    normal_equations(x, w, c, equations)
    return equations


@dataclass(frozen=True)
class Weights:
    """Bounds that S implies on every record's w and c.

    Attributes:
      bound: S.
    """

    bound: float

    def __post_init__(self) -> None:
        positive("logit_bound", self.bound)

    @property
    def least(self) -> float:
        """M = sigma'(S), the least w; 1 / m is what papers call kappa."""
        return float(slope_of(self.bound))

    @property
    def largest(self) -> float:
        """W at z = 0: (sigma(S) - 1/2) / S."""
        return float(chord_slope(0.0, self.bound))

    @property
    def intercept(self) -> float:
        """C = sigma(S) - S sigma'(S), between 1/2 and 1: |c| is at most that."""
        return float(mean_of(self.bound)) - self.bound * self.least

    @property
    def vector_ratio(self) -> float:
        """Deviation of the vector's noise over the matrix's at which the largest c x - c' x' and w x x^T cost alike."""
        return 2 * self.intercept / self.largest


@lru_cache(maxsize=64)
def _sensitivity(bound: float, vector_ratio: float) -> float:
    weights = Weights(bound)
    steep, flat, most = weights.largest, weights.least, weights.intercept
    corners = ((0.0, 0.0), (0.0, most), (flat, most), (steep, 0.5), (steep, 0.0))
    largest = 0.0
    for w, c in corners:
        for u, b in corners:
            cross, both = w * u, c * b / vector_ratio**2
            t = 1.0 if both >= cross else both / cross
            square = (w * w + u * u - 2 * cross * t * t) / 2 + (c * c + b * b) / vector_ratio**2 + 2 * both * t
            largest = max(largest, square)
    return math.sqrt(largest)


@dataclass(frozen=True)
class LinearizedGaussian(JointGaussian):
    r"""The pair (sum of w x x^T, sum of c x) of linearized records in a release: exactly mu-GDP, mu = 1 / noise_multiplier.

    Sensitivity, with v the vector's deviation over that of an entry off the diagonal, noise of the GOE: replacing (x, y) by
    (x', y') at one pivot moves the pair, for t = |<x, x'>| of unit vectors, by at most the root of

        (w^2 + w'^2 - 2 w w' t^2) / 2 + (c^2 + c'^2 + 2 |c c'| t) / v^2.

    As c is the chord's intercept, |c| <= sigma(S) - S w wherever |c| >= 1/2: for y = 1 and z = -a the chord of sigma from a
    to S has the slope w and at 0 the value c; between y = 0 and y = 1, |c| is less, and on the other side of 0 it is below
    1/2. So (w, |c|) lies below the line from (sigma'(S), C) to (w(0), 1/2), C = `Weights.intercept`; a shorter x, of norm
    r, has (r^2 w, r |c|), which lies in the polygon of (0, 0), (0, C), (sigma'(S), C), (w(0), 1/2), (w(0), 0) too. The
    formula is convex in (w, |c|) and (w', |c'|) together, and its maximum is at two
    corners, at the t that each pair of corners has as its best: min(1, (c c' / v^2) / (w w')). All 25 pairs are tried.

    Where x = x' the pivot gives both one z, and only y changes c, by at most 1: that is far less. The bound is approached by
    long pivots, to which x and x' are nearly orthogonal.

    Of the fields that it shares with `JointGaussian`, `norm_bound` is the root of the largest w, and `norm_bound` times
    `value_bound` is C.

    Attributes:
      logit_bound: S.
    """

    logit_bound: float = 1.0

    @property
    def sensitivity(self) -> float:
        """The largest change in the mechanism's norm, rounded up by one part in 1e12."""
        return _sensitivity(self.logit_bound, self.vector_ratio) * (1 + 1e-12)

    @classmethod
    def of(cls, logit_bound: float, noise_multiplier: float) -> LinearizedGaussian:
        """The mechanism for records linearized within the bound, with the ratio of `Weights`."""
        weights = Weights(logit_bound)
        norm = math.sqrt(weights.largest)
        return cls(norm, weights.intercept / norm, noise_multiplier, weights.vector_ratio, logit_bound=logit_bound)
