"""The features of the linear kernel: the points themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.rkhs.feature_maps import FeatureMap, check_shape
from bandana.algorithms.rkhs.kernels import Linear


@dataclass(frozen=True, eq=False)
class LinearMap(FeatureMap):
    """The points over the lengthscale: exact.

    Attributes:
      lengthscale: what they are divided by.
    """

    lengthscale: float

    def _rows(self, points: FloatArray) -> FloatArray:
        return points / self.lengthscale


def linear(kernel: Linear, dimension: int, low: float = -1.0, high: float = 1.0) -> LinearMap:
    """The features of the linear kernel.

    Raises:
      ValueError: a point of the domain has features of norm above 1.
    """
    check_shape(dimension, dimension, low, high)
    longest = math.sqrt(dimension) * max(abs(low), abs(high))
    if longest > kernel.lengthscale * (1 + 1e-12):
        raise ValueError(
            f"lengthscale of a linear kernel must be at least {longest:.6g}, the norm of the farthest corner of [{low:g}, "
            f"{high:g}]^{dimension}, so that features have norm at most 1; got {kernel.lengthscale:g}"
        )
    return LinearMap(dimension, dimension, 0.0, low, high, kernel.lengthscale)
