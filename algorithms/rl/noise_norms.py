r"""Bounds on the noise of stacked sums of (x x^T, y x), which decide how far a regression is shifted and how wide it is.

All are for a block of share 1 with a vector ratio of 1 (`privacy_core.stacked`), and scale with both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from scipy.special import chdtri

from privacy_core.checks import probability


class NoiseNorms(Protocol):
    """With the probability that widths count on: how large noise can be after so many steps of a sum, in every block."""

    def bounds(self, sums: Any, step: int) -> tuple[float, float]:
        """Bounds on the spectral norm of the matrix's noise, and on the norm of the vector's."""
        ...


@dataclass(frozen=True)
class NoNoise:
    """The twin's."""

    def bounds(self, sums: Any, step: int) -> tuple[float, float]:
        """Zeros."""
        return 0.0, 0.0


@dataclass(frozen=True)
class ConstantNorms:
    """Published bounds that are the same after every step.

    Attributes:
      matrix: on the matrix's noise.
      vector: on the vector's.
    """

    matrix: float
    vector: float

    def bounds(self, sums: Any, step: int) -> tuple[float, float]:
        """As given."""
        return self.matrix, self.vector


@dataclass(frozen=True)
class GaussianNorms:
    r"""Gaussian noise of at most the GOE's diagonal: |N| <= s (2 sqrt d + 2 sqrt log(2/p)), |n| <= s chi_d(1 - p).

    The largest eigenvalue is sqrt 2 s-Lipschitz in the free entries over their deviations, with a mean of at most 2 s sqrt d
    (Slepian's inequality); the vector's quantile is exact.

    Attributes:
      dimension: d.
      failure: p, of either bound, in one block after one step.
    """

    dimension: int
    failure: float

    def __post_init__(self) -> None:
        probability("failure", self.failure)

    def bounds(self, sums: Any, step: int) -> tuple[float, float]:
        """In units of the deviation that the sum states for the step."""
        matrix = 2 * math.sqrt(self.dimension) + 2 * math.sqrt(math.log(2 / self.failure))
        deviation = sums.noise_deviation(step)
        return matrix * deviation, math.sqrt(chdtri(self.dimension, self.failure)) * deviation


@dataclass(frozen=True)
class LaplaceNorms:
    r"""Sums of n matrices of independent Laplace(b) entries: at most b (l + m log(1 + l/m)) sqrt((m + l)/l), m = n d.

    The moments of a Laplace variable Z are E exp(t Z) = 1 / (1 - t^2 b^2), and a matrix whose free entries each multiply an
    A_i, A_i = E_jk + E_kj or E_jj, has A_i^2 = a projection, which add up to d I. Tropp's bound on the largest eigenvalue is
    then d exp(-t q - n d log(1 - t^2 b^2)) at every t < 1/b; here t = sqrt(l / (m + l)) / b, l = log(2 d / p), which is the
    best one for many and for few noises. For the vector the same with E_0i + E_i0, in dimension d + 1.

    Attributes:
      dimension: d.
      failure: p, of either bound, in one block after one step.

    Source: Tropp (2012), User-friendly tail bounds for sums of random matrices, Theorem 3.6, with the moments of Laplace's
    law in place of bounded summands. Luyo and others, Claim 29, has 2 d + 2 sqrt(d l) + l for n = 1.
    """

    dimension: int
    failure: float

    def __post_init__(self) -> None:
        probability("failure", self.failure)

    def bounds(self, sums: Any, step: int) -> tuple[float, float]:
        """In units of the sum's own scale, by how many noises it adds up."""
        b, m = sums.mechanism.scale, sums.noise_variance(step) * self.dimension
        matrix, vector = (_chernoff(m, math.log(2 * size / self.failure)) for size in (self.dimension, self.dimension + 1))
        return b * matrix, b * vector


def _chernoff(m: float, log: float) -> float:
    return (log + m * math.log1p(log / m)) * math.sqrt((m + log) / log)
