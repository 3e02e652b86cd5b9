"""The time of an audit: one deadline that all its stages share, held by the clock.

A stage asks how much is left, and what it begins within `enforced` is broken off when the deadline passes: what an audit
left out is named in its verdict.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn


class TimeIsUpError(Exception):
    """The deadline passed while something was under way."""


@dataclass(frozen=True)
class Deadline:
    """A moment at which something must have ended.

    Attributes:
      ends: the moment, in seconds of `time.monotonic`; infinite for none.
    """

    ends: float = math.inf

    @classmethod
    def within(cls, seconds: float) -> Deadline:
        """So many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self.ends - time.monotonic())

    def part(self, share: float) -> Deadline:
        """An earlier deadline, after this share of what is left."""
        return self if math.isinf(self.ends) else Deadline.within(share * self.left)

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Breaks off what is inside when the deadline passes; outside of the main thread only before it begins.

        Raises:
          TimeIsUpError: it has passed.
        """
        left = self.left
        if not left:
            raise TimeIsUpError
        if math.isinf(left) or threading.current_thread() is not threading.main_thread():
            yield
            return
        before, begun = signal.signal(signal.SIGALRM, _end), time.monotonic()
        outer, _ = signal.setitimer(signal.ITIMER_REAL, left)
        if 0 < outer < left:
            signal.setitimer(signal.ITIMER_REAL, outer)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, outer - (time.monotonic() - begun)) if outer else 0)
            signal.signal(signal.SIGALRM, before)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise TimeIsUpError


NEVER = Deadline()
