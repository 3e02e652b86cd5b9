r"""Bounds on the noise of stacked sums of (x x^T, y x), which decide how far a regression is shifted and how wide it is.

All are for a block of share 1 with a vector ratio of 1 (`bandana.privacy_core.noise.stacked`), and scale with both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from bandana.algorithms.regression.norms import goe_norm, laplace_matrix_norm, laplace_sum_norm, normal_norm
from bandana.privacy_core.checks import probability


class NoiseNorms(Protocol):
    """Bounds on the noise of a sum after so many steps, in every block, with the probability that widths count on."""

    def bounds(self, sums: Any, step: int) -> tuple[float, float]:
        """Bounds on the spectral norm of the matrix's noise, and on the norm of the vector's."""
        ...


@dataclass(frozen=True)
class ConstantNorms:
    """Bounds that are the same after every step: published ones, or 0 for the non-private twin.

    Attributes:
      matrix: on the matrix's noise.
      vector: on the vector's.
    """

    matrix: float
    vector: float

    def bounds(self, sums: Any, step: int) -> tuple[float, float]:
        """The given bounds on matrix and vector, at every step."""
        return self.matrix, self.vector


@dataclass(frozen=True)
class _ProvedNorms:
    """Bounds that follow the noise.

    Attributes:
      dimension: d.
      failure: p, of either bound, in one block after one step.
    """

    dimension: int
    failure: float

    def __post_init__(self) -> None:
        probability("failure", self.failure)


class GaussianNorms(_ProvedNorms):
    """Gaussian noise of at most the GOE's diagonal: `goe_norm` and `normal_norm`, in units of the sum's deviation."""

    @cached_property
    def _units(self) -> tuple[float, float]:
        return goe_norm(self.dimension, self.failure), normal_norm(self.dimension, self.failure)

    def bounds(self, sums: Any, step: int) -> tuple[float, float]:
        """In units of the deviation that the sum states for the step."""
        matrix, vector = self._units
        deviation = sums.noise_deviation(step)
        return matrix * deviation, vector * deviation


class LaplaceNorms(_ProvedNorms):
    """Sums of Laplace noise: `laplace_matrix_norm` and `laplace_sum_norm`, in units of the sum's own scale."""

    def bounds(self, sums: Any, step: int) -> tuple[float, float]:
        """Bounds on the norms of matrix and vector, by the number of noises that the sum adds up."""
        d, b, n = self.dimension, sums.mechanism.scale, sums.noise_variance(step)
        return b * laplace_matrix_norm(d, n, self.failure), b * laplace_sum_norm(d, n, self.failure)
