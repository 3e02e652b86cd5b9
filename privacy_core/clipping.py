"""Bounds on what one record may contribute."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bandana.privacy_core.arrays import FloatArray
from bandana.privacy_core.checks import positive

_WELL_INSIDE = 1 - 1e-6
"""Vectors whose squared norm, however it is rounded, is less than this share of the radius's are not shortened."""
_EXACT_SQUARE = 1e-290
"""Squares below it may have lost digits: nothing is decided by them."""
_TINY = np.finfo(float).tiny
_FEW = 8
"""Coordinates below which NumPy adds up one after the other on either axis, with the same rounding."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The declared range [low, high] of a scalar that one record contributes.

    Guarantee: after `clip`, replacing one record moves a sum of such scalars by at most `width`, whatever the records
    hold. The bound is enforced, not assumed: a value outside is moved to the nearest end, so a neighbor may hold
    anything. NaN has no nearest end and is refused.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a range needs finite ends, low < high; got [{self.low!r}, {self.high!r}]")

    @property
    def width(self) -> float:
        """High - low, the replace-one sensitivity of a sum."""
        return self.high - self.low

    def clip(self, values: ArrayLike) -> FloatArray:
        """`values`, any shape, each moved into the interval.

        Raises:
          ValueError: a value is NaN.
        """
        array = np.asarray(values, dtype=float)
        if np.isnan(array).any():
            raise ValueError(f"cannot clip NaN (first at index {tuple(int(i) for i in np.argwhere(np.isnan(array))[0])})")
        return np.asarray(np.clip(array, self.low, self.high))

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"


@dataclass(frozen=True, slots=True)
class Ball:
    """The declared bound on the L2 norm of a vector that one record contributes.

    Guarantee: after `clip` the norm is at most `radius` (to one part in 1e15), whatever the record holds: a longer vector is
    shortened, a non-finite one is refused.
    """

    radius: float

    def __post_init__(self) -> None:
        positive("radius", self.radius)

    def clip(self, vectors: ArrayLike) -> FloatArray:
        """`vectors`, (..., d), each shortened to the radius where it is longer.

        Raises:
          ValueError: an entry is NaN or infinite.
        """
        array = np.asarray(vectors, dtype=float)
        square = self.radius * self.radius
        limit = _WELL_INSIDE * square if square > _EXACT_SQUARE else 0.0
        is_inside = np.einsum("...d,...d->...", array, array) < limit  # what is no number is far
        n_inside = np.count_nonzero(is_inside)
        if n_inside == is_inside.size:
            return array.copy()
        if not np.isfinite(array).all():
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise ValueError(f"cannot clip a vector with the entry {float(array[place])!r} (at index {place})")
        if n_inside == 0:
            return _shortened(array, self.radius)
        clipped, is_far = array.copy(), ~is_inside
        clipped[is_far] = _shortened(array[is_far], self.radius)
        return clipped


def _shortened(vectors: FloatArray, radius: float) -> FloatArray:
    """Finite vectors (..., d) of a norm above 0, each of a norm of at most the radius; in new memory.

    Sums run over the longer axis side by side: over few coordinates, in the same order, many times as fast.
    """
    has_few = vectors.shape[-1] < _FEW
    array, axis = (np.ascontiguousarray(vectors.T), 0) if has_few else (vectors, -1)
    # Over the largest entry first: its square may be beyond the largest number.
    largest = np.maximum(np.abs(array).max(axis=axis, keepdims=True, initial=0.0), _TINY)
    share = array / largest
    norm = largest * np.sqrt(np.add.reduce(share * share, axis=axis, keepdims=True))
    clipped = array * (radius / np.maximum(norm, radius))
    return np.ascontiguousarray(clipped.T) if has_few else clipped
