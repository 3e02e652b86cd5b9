"""How large the norm of a noise matrix or vector can be, but with a small probability: proved bounds, no asymptotics."""

from __future__ import annotations

import math

from scipy.optimize import minimize_scalar
from scipy.special import chdtri, gammainccinv

from privacy_core.checks import at_least, probability


def goe_norm(dimension: int, failure: float) -> float:
    r"""Of (Z + Z^T)/sqrt 2, Z of independent standard normal entries: 2 sqrt d + 2 sqrt(log(2 / failure)).

    The largest eigenvalue is sqrt 2-Lipschitz in Z, with a mean of at most 2 sqrt d (Slepian); and so is the smallest one.

    Args:
      dimension: d.
      failure: probability that the norm is larger.
    """
    at_least("dimension", dimension, 1)
    return 2 * math.sqrt(dimension) + 2 * math.sqrt(math.log(2 / probability("failure", failure)))


def normal_norm(dimension: int, failure: float) -> float:
    """Of d independent standard normal numbers: the exact quantile of chi with d degrees of freedom."""
    return math.sqrt(chdtri(at_least("dimension", dimension, 1), probability("failure", failure)))


def laplace_matrix_norm(dimension: int, n_summed: int, failure: float) -> float:
    r"""Of a symmetric matrix whose entries, up to symmetry, are independent sums of n Laplace numbers of scale 1.

    It is a sum of X A, one for each Laplace number, with A = E_ii or E_ij + E_ji, and A^2 a projection, so that E exp(t X A)
    = (1 - t^2)^-1 there. The logarithms add up to -n d log(1 - t^2) times the identity, as each row has d entries, and by
    the matrix Laplace transform (Tropp 2012, Theorem 3.6) the largest eigenvalue exceeds u with probability at most d
    exp(-t u - n d log(1 - t^2)), for every 0 < t < 1. The bound takes the best t, for both ends of the spectrum.

    Args:
      dimension: d.
      n_summed: n.
      failure: probability that the norm is larger.
    """
    terms = at_least("dimension", dimension, 1) * at_least("n_summed", n_summed, 1)
    log = math.log(2 * dimension / probability("failure", failure))
    found = minimize_scalar(lambda t: (log - terms * math.log1p(-t * t)) / t, bounds=(1e-6, 1 - 1e-9), method="bounded")
    return float(found.fun)


def laplace_norm(dimension: int, failure: float) -> float:
    """Of d independent Laplace numbers of scale 1: the smaller one of two bounds.

    Their L1 norm has a gamma law, whose quantile is exact; and each is at most log(d / failure), which gives sqrt d times
    that.
    """
    d = at_least("dimension", dimension, 1)
    by_sum = float(gammainccinv(d, probability("failure", failure)))
    return min(by_sum, math.sqrt(d) * math.log(d / failure))
