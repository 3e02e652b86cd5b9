"""Checks of scalar parameters; each message names the argument, its value, and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")


def positive(name: str, value: float) -> float:
    """Returns `value` if it is a finite number above 0, else raises ValueError."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    return float(value)


def non_negative(name: str, value: float) -> float:
    """Returns `value` if it is a finite number of at least 0, else raises ValueError."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def probability(name: str, value: float) -> float:
    """Returns `value` if it lies strictly between 0 and 1, else raises ValueError."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return float(value)


def order(name: str, value: float) -> float:
    """Returns `value` if it is a finite Renyi order above 1, else raises ValueError."""
    if not (math.isfinite(value) and value > 1):
        raise ValueError(f"{name} must be a finite Renyi order above 1, got {value!r}")
    return float(value)


def at_least(name: str, value: int, least: int) -> int:
    """Returns `value` if it is a whole number of at least `least`, else raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def one_of(name: str, value: T, options: Sequence[T]) -> T:
    """Returns `value` if it is one of the options, else raises ValueError."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(str, options))}, got {value!r}")
    return value


def failure_of(failure: float | None, horizon: int) -> float:
    """The failure probability of an algorithm's widths: the one that is given, or 1 / horizon, and 1/2 for a single round.

    Args:
      failure: None, or strictly between 0 and 1.
      horizon: rounds or episodes, at least 1.

    Raises:
      ValueError: either is out of its range.
    """
    least = 1 / max(at_least("horizon", horizon, 1), 2)
    return least if failure is None else probability("failure", failure)


def rates(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Returns `values` as an array if all lie in [0, 1], else raises ValueError."""
    array = np.asarray(values, dtype=float)
    if not ((array >= 0) & (array <= 1)).all():
        wrong = array[~((array >= 0) & (array <= 1))].flat[0]
        raise ValueError(f"{name} must lie in [0, 1], got {wrong!r}")
    return array
