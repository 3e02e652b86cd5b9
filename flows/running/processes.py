"""Processes that ours started, down to the last grandchild: a pool's workers outlive the run that was killed above them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from multiprocessing import connection
from pathlib import Path
from typing import NamedTuple

_LOOK = 1.0


class Process(NamedTuple):
    """A process that cannot be confused with a later one of the same number."""

    pid: int
    started: str


def descendants() -> list[Process]:
    """All that this process started and they started; none where the system does not tell."""
    found: list[Process] = []
    waiting = _children(os.getpid())
    while waiting:
        pid = waiting.pop()
        if (started := _start_of(pid)) is not None:
            found.append(Process(pid, started))
            waiting += _children(pid)
    return found


def end(processes: Sequence[Process], patience: float = 5.0) -> None:
    """Asks them to end, and makes those that do not within `patience` seconds."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            if _is_running(process):
                os.kill(process.pid, sign)
        deadline = time.monotonic() + patience
        while any(_is_running(process) for process in processes) and time.monotonic() < deadline:
            time.sleep(0.05)


def end_with_parent() -> None:
    """Makes a pool's worker end when the process that started it does, however that ends.

    Workers hold both ends of their queues and would wait for work forever.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


def end_with(parent: int) -> None:
    """Makes this process end, with all that it started, as soon as the process that started it is another than `parent`.

    Whoever was killed can tell nobody; the system then gives its children to another process.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        for process in descendants():
            if _is_running(process):
                os.kill(process.pid, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-service", daemon=True).start()


def _is_running(process: Process) -> bool:
    return _start_of(process.pid) == process.started


def _children(pid: int) -> list[int]:
    try:
        listed = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []  # it has ended
    return [int(child) for children in listed for child in children]


def _start_of(pid: int) -> str | None:
    """When it started, in ticks since the machine did; None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, ticks = fields[0], fields[19]
    return None if state in "ZX" else ticks
