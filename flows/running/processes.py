"""Processes that ours started, down to the last grandchild: a pool's workers outlive the run that was killed above them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import connection

import psutil

_LOOK = 1.0


def descendants() -> list[psutil.Process]:
    """Processes that this one started and that they started in turn, those that have ended left out."""
    return [process for process in psutil.Process().children(recursive=True) if is_running(process)]


def is_running(process: psutil.Process) -> bool:
    """True while a process has not ended; a later one of the same number does not count."""
    try:
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def send(process: psutil.Process, sign: int) -> None:
    """Sends a signal to a process; one that has ended, or was replaced by a later one of its number, is left alone."""
    with suppress(psutil.NoSuchProcess):
        process.send_signal(sign)


def end(processes: Sequence[psutil.Process], patience: float = 5.0) -> None:
    """Asks processes to end, and kills those that run on; waits `patience` seconds for either."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for process in filter(is_running, processes):
            send(process, sign)
        deadline = time.monotonic() + patience
        while any(map(is_running, processes)) and time.monotonic() < deadline:
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
            send(process, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-service", daemon=True).start()
