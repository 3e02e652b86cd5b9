"""A user's code runs in a fork first, so that code which ends, crashes or hangs its process is reported in one line.

The call proper follows, and decides about results and errors. The fork is made only where no other thread runs, since a lock
that another thread holds would stay locked in it.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from bandana.flows.own.code import OwnCodeError, OwnObject

SECONDS = 60.0
"""Time limit of one try."""
_CAME_BACK = 97
_PAUSE = 0.002
_LONGEST_PAUSE = 0.05


def load(text: str, context: Mapping[str, str | Path] | None) -> OwnObject:
    """Reads `FILE.py:NAME` in a field of a spec, and loads the object; a file that has not run here is tried out.

    Raises:
      OwnCodeError: the text is of another form, or the object cannot be loaded.
    """
    code = OwnObject.parse(text, context)
    if code.is_loaded():
        code.load()
    else:
        try_out(code.load, f"{code.path.name}, while it was loaded,")
    return code


def try_out(function: Callable[[], object], what: str) -> None:
    """Calls the function in a fork, whose result, errors and output are dropped, and then in this process.

    Raises:
      OwnCodeError: the fork did not come back; the message begins with `what`.
    """
    if threading.active_count() > 1:
        function()
        return
    pid = os.fork()
    if pid == 0:
        _be_child(function)
    end, pause, status = time.monotonic() + SECONDS, _PAUSE, 0
    try:
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > end:
                raise OwnCodeError(f"{what} did not end within {SECONDS:g} s")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        status = ended[1]
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    if os.WIFSIGNALED(status):
        raise OwnCodeError(f"{what} crashed its process ({signal.Signals(os.WTERMSIG(status)).name})")
    if (code := os.waitstatus_to_exitcode(status)) != _CAME_BACK:
        raise OwnCodeError(f"{what} ended its process with exit code {code}")
    function()


def _be_child(function: Callable[[], object]) -> None:
    """Runs as the fork, and never returns."""
    mine = os.getpid()
    faulthandler.disable()  # a crash is told in one line
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        for number in (1, 2):
            os.dup2(silent, number)
        with suppress(BaseException):
            function()
    finally:
        os._exit(_CAME_BACK if os.getpid() == mine else 0)
