"""Lines of a verification: what was stated, what was found instead, and whether both agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CLOSE = 1e-9
"""Relative difference up to which two numbers agree: processors round differently."""


@dataclass(frozen=True)
class Line:
    """One thing that was checked; `is_ok` is None where the file does not hold what a check needs."""

    what: str
    stated: str
    recomputed: str
    is_ok: bool | None


@dataclass(frozen=True)
class Verification:
    """What a recomputation says, line by line.

    Attributes:
      lines: all that was checked.
      verdict: recomputed, in capitals.
      claim: in words and as it is written.
      subject: what was audited.
    """

    lines: tuple[Line, ...]
    verdict: str = ""
    claim: str = ""
    subject: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_verified(self) -> bool:
        """Whether all lines agree."""
        return all(line.is_ok is not False for line in self.lines)

    @property
    def differences(self) -> tuple[Line, ...]:
        """The lines that differ."""
        return tuple(line for line in self.lines if line.is_ok is False)

    @property
    def n_checked(self) -> int:
        """How many lines were compared."""
        return sum(line.is_ok is not None for line in self.lines)


def compared(what: str, stated: Any, recomputed: Any) -> Line:
    """A line on two values; numbers agree up to rounding."""
    return Line(what, shown(stated), shown(recomputed), agree(stated, recomputed))


def agree(first: Any, second: Any) -> bool:
    """Whether two values are the same, numbers up to rounding."""
    if isinstance(first, float) and isinstance(second, float):
        return first == second or math.isclose(first, second, rel_tol=CLOSE, abs_tol=1e-12)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(agree(first[key], second[key]) for key in first)
    return bool(first == second)


def shown(value: Any) -> str:
    """A value as tables show it."""
    if value is None:
        return "none"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
