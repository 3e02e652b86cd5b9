"""Bounds on the norm of a noise matrix or vector that fail with a small probability only: proved, no asymptotics."""

from __future__ import annotations

import math

from scipy.special import chdtri, gammainccinv

from bandana.privacy_core import Interval
from bandana.privacy_core.checks import at_least, failure_of, positive, probability


class Bounded:
    """Base of settings with a horizon, a declared range of rewards, and a probability with which their bounds may fail."""

    horizon: int
    reward_range: Interval
    failure: float | None

    @property
    def _half(self) -> float:
        return self.reward_range.width / 2

    @property
    def _failure(self) -> float:
        return failure_of(self.failure, self.horizon)


def goe_norm(dimension: int, failure: float) -> float:
    r"""Norm bound of (Z + Z^T)/sqrt 2, Z of independent standard normal entries: 2 sqrt d + 2 sqrt(log(2 / failure)).

    The largest eigenvalue is sqrt 2-Lipschitz in Z, with a mean of at most 2 sqrt d (Slepian); and so is the smallest one.

    Args:
      dimension: d.
      failure: probability that the norm is larger.
    """
    at_least("dimension", dimension, 1)
    return 2 * math.sqrt(dimension) + 2 * math.sqrt(math.log(2 / probability("failure", failure)))


def normal_norm(dimension: int, failure: float) -> float:
    """Norm bound of d independent standard normal numbers: the exact quantile of chi with d degrees of freedom."""
    return math.sqrt(chdtri(at_least("dimension", dimension, 1), probability("failure", failure)))


def laplace_matrix_norm(dimension: int, n_summed: float, failure: float) -> float:
    """Norm bound of a symmetric matrix whose entries are, up to symmetry, independent sums of n Laplace(1) numbers.

    Its entries' patterns are E_ii and E_ij + E_ji, whose squares add up to d I: `laplace_series_norm`. (Luyo and others,
    Claim 29, has 2 d + 2 sqrt(d l) + l for n = 1, l = log(2 d / failure).)

    Args:
      dimension: d.
      n_summed: n; of numbers with weights w <= 1 the sum of w^2, as -log(1 - w^2 t^2) <= -w^2 log(1 - t^2).
      failure: probability that the norm is larger.
    """
    return laplace_series_norm(at_least("dimension", dimension, 1) * positive("n_summed", n_summed), dimension, failure)


def laplace_sum_norm(dimension: int, n_summed: float, failure: float) -> float:
    """Norm bound of d independent sums of n Laplace numbers of scale 1.

    The norm of a vector is that of its dilation, a matrix of size d + 1 with patterns E_0i + E_i0: `laplace_series_norm`.
    For n = 1, `laplace_norm` is smaller.

    Args: as of `laplace_matrix_norm`.
    """
    return laplace_series_norm(at_least("dimension", dimension, 1) * positive("n_summed", n_summed), dimension + 1, failure)


def laplace_series_norm(most: float, size: int, failure: float) -> float:
    r"""Norm bound of sum_i X_i A_i, X_i independent Laplace(1) numbers: (l + m log(1 + l/m)) sqrt((m + l)/l).

    The A_i are symmetric, of a common size, with projections as squares, which add up to at most m I; l = log(2 size /
    failure). E exp(t X_i A_i) = (1 - t^2)^-1 on the projection, so that by the matrix Laplace transform the largest
    eigenvalue exceeds u with probability at most size exp(-t u - m log(1 - t^2)) for every 0 < t < 1, and so does the
    smallest one. Here t = sqrt(l / (m + l)), which is the best one for many and for few numbers, and costs at most 1 %
    between.

    Args:
      most: m.
      size: of the matrices.
      failure: probability that the norm is larger.

    Source: Tropp (2012), User-friendly tail bounds for sums of random matrices, Theorem 3.6, with the moments of Laplace's
    law in place of bounded summands.
    """
    log = math.log(2 * size / probability("failure", failure))
    return (log + most * math.log1p(log / most)) * math.sqrt((most + log) / log)


def laplace_norm(dimension: int, failure: float) -> float:
    """Norm bound of d independent Laplace numbers of scale 1: the smaller one of two bounds.

    Their L1 norm has a gamma law, whose quantile is exact; and each is at most log(d / failure), which gives sqrt d times
    that.
    """
    d = at_least("dimension", dimension, 1)
    by_sum = float(gammainccinv(d, probability("failure", failure)))
    return min(by_sum, math.sqrt(d) * math.log(d / failure))
