"""Ctrl-C, SIGTERM and faults that nobody can wait out: stop at once with every child; whole files are kept."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from pathlib import Path

import psutil

from bandana.flows.running.processes import descendants, send
from bandana.flows.servers.prefect_health import ServerError, check_database

MESSAGE = "interrupted; finished work is kept; run the same command again to continue"
_LITTLE = 1 << 20
_stopping = threading.Lock()


def stop_at_once_on_interrupt(exit_code: int) -> None:
    """Makes SIGINT and SIGTERM end this process and its children, also in the middle of a flow.

    Prefect takes SIGTERM for itself while a flow runs, and waits for running blocks and for a server that is gone. The
    system's own note of a signal comes before any handler, so that a thread of ours acts on it first.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # noted below, and no exception in the middle of anything
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def wait() -> None:
        while os.read(reader, 1)[0] not in (signal.SIGINT, signal.SIGTERM):
            continue
        stop(MESSAGE, exit_code)

    threading.Thread(target=wait, name="interrupt", daemon=True).start()


def stop(message: str, exit_code: int) -> None:
    """Ends this process and all that it started, with one line; the first caller's line is the one that is said."""
    _stopping.acquire()
    for process in descendants():
        if not _clears_up(process):
            send(process, signal.SIGKILL)
    sys.stderr.write(f"\nerror: {message}\n")
    sys.stderr.flush()
    os._exit(exit_code)


def server_ended(words: str, home: Path) -> str:
    """Returns what to tell of a server that ended by itself, most often because its disk is full or its database damaged."""
    if shutil.disk_usage(home).free < _LITTLE:
        return f"the disk is full ({home}); finished work is kept: free some space and run the same command again"
    try:
        check_database(home / "prefect")
    except ServerError as error:
        return str(error)
    return f"{words}; finished work is kept; run the same command again to continue"


def _clears_up(process: psutil.Process) -> bool:
    """True if it is the process that removes the semaphores of the others once all have ended, and then ends itself."""
    try:
        return any("multiprocessing.resource_tracker" in word for word in process.cmdline())
    except psutil.Error:
        return False
