"""Checks of scalar parameters; each message names the argument, its value, and what is allowed."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")
LEAST_LEVEL, MOST_LEVEL, MOST_DELTA = 1e-9, 1e9, 0.1
"""Levels of privacy (epsilon, mu, rho) that users may ask for: beyond them none can be told from no privacy, or from no
release at all. A larger delta would allow one record in ten to be shown as it is."""
_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?\s*", re.I | re.ASCII)


def number(text: str) -> float:
    """Reads a finite number in the digits 0 to 9 with a decimal point, else raises ValueError.

    Python's `float` reads more: 1_0 as 10, digits of all scripts, 1e999 as infinity, nan.
    """
    if not _NUMBER.fullmatch(text) or math.isinf(value := float(text)):
        raise ValueError(f"must be a number such as 1000, 0.5 or 1e-5, got {text!r}")
    return value


def level(name: str, value: float) -> float:
    """Returns `value` if it is an epsilon, mu or rho that users may ask for, else raises ValueError."""
    if not LEAST_LEVEL <= value <= MOST_LEVEL:
        raise ValueError(f"{name} must lie between {LEAST_LEVEL:g} and {MOST_LEVEL:g}, got {value!r}")
    return float(value)


def small_delta(name: str, value: float) -> float:
    """Returns `value` if it is a delta that users may ask for, else raises ValueError."""
    if not 0 < value <= MOST_DELTA:
        raise ValueError(f"{name} must be above 0 and at most {MOST_DELTA:g}, got {value!r}")
    return float(value)


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


def suggestion(value: object, options: Iterable[str]) -> str:
    """`; did you mean 'x'?` with the option most like the value, in whatever case; empty where none is like it."""
    known = {option.casefold(): option for option in options}
    close = difflib.get_close_matches(str(value).casefold(), known, n=1)
    return f"; did you mean {known[close[0]]!r}?" if close else ""


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
