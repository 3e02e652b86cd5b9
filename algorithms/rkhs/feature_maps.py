"""Maps of points to features whose inner products are near a kernel."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.rkhs.kernels import Linear, moved_inside
from bandana.privacy_core.checks import at_least


class _Remembered(NamedTuple):
    points: FloatArray
    features: FloatArray


@dataclass(frozen=True, eq=False)
class FeatureMap(ABC):
    """A map of the points of a domain to vectors of norm at most 1 whose inner products are near a kernel.

    Attributes:
      dimension: d, of the points.
      n_features: dimension m of the vectors.
      error: the largest |k(x, y) - <phi(x), phi(y)>| over the domain, or a bound on it; 0 where it is exact.
      low: lower end of the domain [low, high]^d.
      high: its upper end.
    """

    dimension: int
    n_features: int
    error: float
    low: float
    high: float
    _last: list[_Remembered] = field(default_factory=list, repr=False, init=False)

    def __call__(self, points: FloatArray) -> FloatArray:
        """(..., n_features) features of the points (..., d), not to be written to.

        A point outside the domain has the features of the nearest one inside, and a coordinate that is NaN counts as 0: an
        error that depends on one user's point would be seen by others.

        Points that are shared by the replicates, (n_reps, ...) with stride 0, are mapped once, and the result is shared
        in the same way; the features of the last unchangeable points are remembered.

        Raises:
          ValueError: points of another dimension.
        """
        array = np.asarray(points, dtype=float)
        if array.ndim > 1 and array.shape[0] > 1 and array.strides[0] == 0:
            shared = self(array[0])
            return np.broadcast_to(shared, (array.shape[0], *shared.shape))
        if not _is_unchangeable(array):
            return self._mapped(array)
        for known in self._last:
            mine = known.points  # views of the same memory are equal: what is kept alive is not given away again
            if mine.ctypes.data == array.ctypes.data and mine.shape == array.shape and mine.strides == array.strides:
                return known.features
        features = self._mapped(array)
        features.setflags(write=False)
        self._last[:] = [_Remembered(array, features)]
        return features

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": []}

    def _mapped(self, points: FloatArray) -> FloatArray:
        array = moved_inside(points, self.dimension, self.low, self.high)
        rows = self._rows(array.reshape(-1, self.dimension))
        return rows.reshape(*array.shape[:-1], self.n_features)

    @abstractmethod
    def _rows(self, points: FloatArray) -> FloatArray:
        """(n, n_features) of the points (n, d) of the domain."""


def _is_unchangeable(array: FloatArray) -> bool:
    """True if nothing can write to it: neither it nor what it is a view of."""
    part: object = array
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return False
        part = part.base
    return part is None


def check_shape(dimension: int, n_features: int, low: float, high: float) -> None:
    """Refuses what no map has."""
    at_least("dimension", dimension, 1)
    at_least("n_features", n_features, 1)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"low must be below high, and both finite; got low = {low!r}, high = {high!r}")


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
