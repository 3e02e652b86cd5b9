"""Lines of a user's file that never ran: a leak behind a branch that no run takes cannot show, and the verdict says so."""

from __future__ import annotations

import inspect
import math
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

_MOST_SHOWN = 8
Tracer = Callable[[FrameType, str, Any], Any]
"""A function as `sys.settrace` takes it; it answers the function that sees the next event."""


class LinesRun:
    """Notes, while it is entered, which lines of one file run; a debugger that is at work already is left alone.

    Attributes:
      file: the file; None notes nothing.
    """

    def __init__(self, file: Path | None, seconds: float = math.inf) -> None:
        """Notes lines of a file, for some seconds at most: noting makes code slower."""
        self.file = None if file is None else file.resolve()
        self._seconds, self._end = seconds, math.inf
        self._ours: dict[CodeType, bool] = {}
        self._ran: set[int] = set()
        self._is_noting = False

    def __enter__(self) -> LinesRun:
        self._is_noting = self.file is not None and sys.gettrace() is None
        if self._is_noting:
            self._end = time.monotonic() + self._seconds
            sys.settrace(self._called)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._is_noting:
            sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: object) -> Tracer | None:
        code = frame.f_code
        if code not in self._ours:
            self._ours[code] = Path(code.co_filename).resolve() == self.file
        return self._line if self._ours[code] else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Tracer | None:
        self._ran.add(frame.f_lineno)
        if time.monotonic() > self._end:
            sys.settrace(None)
            return None
        return self._line

    @property
    def never(self) -> tuple[str, ...]:
        """The lines that never ran of functions that did, as stretches such as `mine.py:12-14`; the first eight of them."""
        entered = [code for code, is_ours in self._ours.items() if is_ours]
        first = {code.co_firstlineno for code in entered}
        known = {line for code in entered for _, _, line in code.co_lines() if line is not None} - first
        name = "" if self.file is None else self.file.name
        return tuple(f"{name}:{stretch}" for stretch in _stretches(sorted(known - self._ran))[:_MOST_SHOWN])


def _stretches(lines: Iterable[int]) -> list[str]:
    stretches: list[list[int]] = []
    for line in lines:
        if stretches and line == stretches[-1][1] + 1:
            stretches[-1][1] = line
        else:
            stretches.append([line, line])
    return [str(first) if first == last else f"{first}-{last}" for first, last in stretches]


def file_of(algorithm: object) -> Path | None:
    """The file that defines an algorithm's class; None for Bandana's own, and where there is none."""
    kind = type(algorithm)
    if kind.__module__.split(".")[0] == "bandana":
        return None
    try:
        file = inspect.getsourcefile(kind)
    except TypeError:
        return None
    return None if file is None else Path(file)
