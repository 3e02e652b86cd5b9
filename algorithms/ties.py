"""Chooses the largest of computed numbers, where the last bits of equal ones must not choose.

Numbers that are equal in exact arithmetic, as two directions of a symmetric problem or two arms with the same data are, come
out some last bits apart, and which is larger depends on the processor. Choosing between them by size would make
everything that follows differ from one machine to another.
"""

from __future__ import annotations

import math

import numpy as np

from bandana.algorithms.protocol import FloatArray

TIE = 1e-9
"""Numbers that are closer than this, relative to the larger, count as equal."""


def first_largest(values: FloatArray) -> int:
    """The first place whose value is the largest, or equal to it up to `TIE`.

    Args:
      values: (n,), at least one, no NaN; infinite ones are equal to none but themselves.
    """
    largest = float(values.max())
    return int(np.argmax(values >= (largest - TIE * abs(largest) if math.isfinite(largest) else largest)))


def is_larger(value: float, other: float) -> bool:
    """True if value is larger than the other by more than `TIE`, so that of equal ones the earlier is kept."""
    if not (math.isfinite(value) and math.isfinite(other)):
        return value > other
    return value - other > TIE * max(abs(value), abs(other))
