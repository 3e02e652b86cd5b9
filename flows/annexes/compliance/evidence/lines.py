"""Lines of a verification: what was stated, what was found instead, and whether both agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

OTHER_CODE = "other code: not comparable; verify it with the version that made it"
"""The recomputed side of a line on code that is not the code here."""
CLOSE = 1e-9
"""Relative difference up to which two numbers agree: processors round differently."""


@dataclass(frozen=True)
class Line:
    """One statement of a file, beside what was found instead.

    Attributes:
      what: the statement's name.
      stated: its value in the file.
      recomputed: the value that was found.
      is_ok: whether both agree; None where they were not compared.
      part: the part of the file that it belongs to, which the conclusion lists.
      is_claimed: whether only the sender can know it, such as the time of a computation: no comparison could confirm it.
    """

    what: str
    stated: str
    recomputed: str
    is_ok: bool | None
    part: str = ""
    is_claimed: bool = False


def in_part(part: str, lines: Iterable[Line]) -> list[Line]:
    """The lines, each in this part of the file unless it belongs to another one already."""
    return [line if line.part else replace(line, part=part) for line in lines]


@dataclass(frozen=True)
class Verification:
    """Result of a recomputation, line by line.

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
    def is_refused(self) -> bool:
        """True if some line differs."""
        return any(line.is_ok is False for line in self.lines)

    @property
    def is_verified(self) -> bool:
        """True if all lines were compared and agree, but for those that only the sender can know."""
        return not self.is_refused and not self.not_compared

    @property
    def compared(self) -> tuple[str, ...]:
        """Parts of which every line was compared."""
        left = {line.part for line in self.lines if line.is_ok is None and not line.is_claimed}
        return tuple(dict.fromkeys(line.part for line in self.lines if line.is_ok is not None and line.part not in left))

    @property
    def not_compared(self) -> tuple[str, ...]:
        """Statements that were not compared, by part."""
        return _listed(line for line in self.lines if line.is_ok is None and not line.is_claimed)

    @property
    def claimed(self) -> tuple[str, ...]:
        """Statements that only the sender can know."""
        return _listed(line for line in self.lines if line.is_ok is None and line.is_claimed)

    @property
    def differences(self) -> tuple[Line, ...]:
        """The lines that differ."""
        return tuple(line for line in self.lines if line.is_ok is False)

    @property
    def n_checked(self) -> int:
        """Number of compared lines."""
        return sum(line.is_ok is not None for line in self.lines)


def _listed(lines: Iterable[Line]) -> tuple[str, ...]:
    """Parts of lines with the reason that they share."""
    parts: dict[str, list[str]] = {}
    for line in lines:
        mine = parts.setdefault(line.recomputed, [])
        mine += [line.part or line.what] if (line.part or line.what) not in mine else []
    return tuple(f"{', '.join(mine)} ({reason})" for reason, mine in parts.items())


def compared(what: str, stated: object, recomputed: object) -> Line:
    """A line on two values; numbers agree up to rounding."""
    return Line(what, shown(stated), shown(recomputed), agree(stated, recomputed))


def agree(first: object, second: object) -> bool:
    """True if two values are the same, numbers up to rounding."""
    if isinstance(first, float) and isinstance(second, float):
        return first == second or math.isclose(first, second, rel_tol=CLOSE, abs_tol=1e-12)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(agree(first[key], second[key]) for key in first)
    return bool(first == second)


def shown(value: object) -> str:
    """A value as tables show it."""
    if value is None:
        return "none"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


_WIDEST = 100


def shortly(value: object) -> str:
    """The first hundred characters of a value as tables show it."""
    text = shown(value)
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..."


def differences(stated: object, again: object, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Places at which two JSON values differ, numbers up to rounding: path, stated and recomputed value."""
    if isinstance(stated, dict) and isinstance(again, dict):
        for key in dict.fromkeys([*again, *stated]):
            if (key in stated) is not (key in again):
                yield f"{path}.{key}".lstrip("."), stated.get(key, "missing"), again.get(key, "no such field")
            else:
                yield from differences(stated[key], again[key], f"{path}.{key}".lstrip("."))
    elif isinstance(stated, list) and isinstance(again, list) and len(stated) == len(again):
        for index, (mine, theirs) in enumerate(zip(stated, again, strict=True)):
            yield from differences(mine, theirs, f"{path}[{index}]")
    elif not _is_same(stated, again):
        yield path, stated, again


def _is_same(stated: Any, again: Any) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (stated, again)]
    return agree(float(stated), float(again)) if all(numbers) else type(stated) is type(again) and stated == again
