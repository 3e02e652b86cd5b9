"""Ctrl-C: stop at once, with Prefect's temporary server; what was finished lies in whole files and is kept."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType

MESSAGE = "interrupted; what was finished is kept, run the same command again to continue"


def stop_at_once_on_interrupt(exit_code: int) -> None:
    """Makes SIGINT end this process and its children; without, the client would wait minutes for a server that is gone."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for child in _children():
            try:
                os.kill(child, signal.SIGTERM)
            except ProcessLookupError:
                continue  # it was quicker
        sys.stderr.write(f"\nerror: {MESSAGE}\n")
        sys.stderr.flush()
        os._exit(exit_code)

    signal.signal(signal.SIGINT, stop)


def _children() -> list[int]:
    """Process ids of the children of all our threads; none where the system does not tell."""
    listed = [path.read_text().split() for path in Path("/proc/self/task").glob("*/children")]
    return [int(pid) for pids in listed for pid in pids]
