"""A child process for user code: if the code kills its process, ours reports that in one line and goes on.

The child is a fork, so nothing has to be pickled on the way in. It has limits of memory, and of time for one call; what it
prints to standard output is counted and kept away from ours.
"""

from __future__ import annotations

import faulthandler
import math
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import IO, Any, NoReturn, TypeVar, cast

from bandana.flows.texts.mistakes import SpecError

T = TypeVar("T")
Work = Callable[[], object]
_PATIENCE = 0.05
_MOST_SHOWN = 200
_LONGEST = 1e9  # seconds, 31 years: a timer takes no infinite time


@dataclass(frozen=True)
class Limits:
    """Limits on what own code may use.

    Attributes:
      seconds: for one call; a call that takes longer is taken for one that never ends.
      gigabytes: of memory; three quarters of this machine's unless given, or what a process may have, where that is less.
      total: seconds for everything; infinite unless given.
    """

    seconds: float = 120.0
    gigabytes: float = field(default_factory=lambda: min(_memory()))
    total: float = math.inf


def _memory() -> tuple[float, float]:
    """Gigabytes: three quarters of this machine's, and what a process may have at most, whatever it asks for."""
    pages, (_, most) = os.sysconf("SC_PHYS_PAGES"), resource.getrlimit(resource.RLIMIT_DATA)
    return round(0.75 * pages * os.sysconf("SC_PAGE_SIZE") / 2**30, 1), most / 2**30 if most >= 0 else 2.0**33 - 1


def limits(seconds: float | None, gigabytes: float | None, total: float = math.inf) -> Limits:
    """The limits that a user asked for, where they did.

    Raises:
      SpecError: one that is not positive, or more memory than a process may have.
    """
    amounts = {"seconds": ("timeout", seconds), "gigabytes": ("memory", gigabytes), "total": ("seconds", total)}
    for option, value in amounts.values():
        if value is not None and not value > 0:
            raise SpecError(f"--{option} must be above 0, got {value!r}")
    if gigabytes is not None and gigabytes > (most := _memory()[1]):
        raise SpecError(f"--memory must be at most {most:g}, what a process may have here (ulimit -Hd), got {gigabytes!r}")
    return Limits(**{name: value for name, (_, value) in amounts.items() if value is not None})


@dataclass(frozen=True)
class Returned:
    """Message that came back from a child.

    Attributes:
      value: what the function returned.
      printed: what it wrote to standard output, the first of it, in one line; empty if nothing.
    """

    value: Any
    printed: str


@dataclass
class _Child:
    """The state of the process that this is, while it is a child."""

    pid: int
    parent: Connection
    limits: Limits
    what: str


_this: _Child | None = None


@contextmanager
def one_call() -> Iterator[None]:
    """Around one call of own code: it must return in time, and in the process that it was called in.

    In a process that is no child of `run` this does nothing.
    """
    child = _this
    if child is None:
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, min(child.limits.seconds, _LONGEST))
    try:
        yield
    finally:
        if os.getpid() != child.pid:  # a fork of the child, which came back too
            child.parent.send(("forked", None))
            os._exit(0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def run(function: Work, limits: Limits, what: str = "own code", meanwhile: Work = int) -> Returned:
    """Calls the function in a child process.

    Args:
      function: returns something that can be pickled.
      limits: for own code that it calls within `one_call`.
      what: how to call own code in messages.
      meanwhile: called here while the child works, such as imports that are needed next.

    Raises:
      SpecError: own code ended its process, crashed, hung, forked, or used too much memory; the message is one line.
      Exception: what the function raised, if it can be pickled.
    """
    with tempfile.TemporaryFile() as printed:
        pid, here = _started(function, limits, what, printed)
        try:
            meanwhile()
            message, status = _wait(pid, here, time.monotonic() + limits.total)
        finally:
            _end(pid)
        kind, value = message
        if kind == "returned":
            return Returned(value, _first_line(printed))
    if kind == "raised":
        raise value
    raise SpecError(f"{what} {_ending(kind, status, limits)}")


def beside(function: Callable[[], T]) -> Callable[[], T]:
    """Starts a function in a process beside this one.

    Args:
      function: returns something that can be pickled; it need not be called here.

    Returns:
      what waits for its answer, and raises as `run` does. In a process that is no child of `run`, or on one core, it is the
      function itself, which works when it is asked.
    """
    this = _this
    if this is None or len(os.sched_getaffinity(0)) < 2:
        return function
    pid, here = _started(function, this.limits, this.what)

    def answer() -> T:
        (kind, value), status = _wait(pid, here, math.inf)
        if kind not in ("returned", "raised"):
            raise SpecError(f"{this.what} {_ending(kind, status, this.limits)}")
        os.waitpid(pid, 0)
        if kind == "raised":
            raise value
        return cast(T, value)

    return answer


def _started(function: Work, limits: Limits, what: str, printed: IO[bytes] | None = None) -> tuple[int, Connection]:
    """Forks a child, confined where it prints to a file of its own; returns its number, and where its answer comes."""
    sys.stdout.flush()
    sys.stderr.flush()
    here, there = multiprocessing.Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        here.close()
        _answer(function, limits, what, there, printed)
    there.close()
    return pid, here


def _confine(limits: Limits, printed: IO[bytes]) -> None:
    """Puts the child into a session of its own, with its limits."""
    os.setsid()
    os.dup2(printed.fileno(), 1)
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # the system ends a call that hangs, whatever it is doing
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ours is told, and ends this one
    signal.set_wakeup_fd(-1)
    faulthandler.disable()  # a crash is told in one line
    for kind, most in ((resource.RLIMIT_DATA, int(limits.gigabytes * 2**30)), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def _answer(function: Work, limits: Limits, what: str, parent: Connection, printed: IO[bytes] | None) -> NoReturn:
    """Sends what the function returns, and ends this process."""
    global _this
    try:
        if printed is not None:
            _confine(limits, printed)
        _this = _Child(os.getpid(), parent, limits, what)
        try:
            answer = ("returned", function())
        except MemoryError:
            answer = ("memory", None)
        except BaseException as error:
            answer = ("raised", _picklable(error))
        sys.stdout.flush()
        parent.send(answer if os.getpid() == _this.pid else ("forked", None))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(70)


def _picklable(error: BaseException) -> BaseException:
    """The error, or one that says the same and can be sent."""
    import pickle

    if isinstance(error, SystemExit):
        return SpecError(f"own code ended its process with exit code {error.code}")
    error.__cause__ = error.__context__ = None
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _wait(pid: int, here: Connection, deadline: float) -> tuple[tuple[str, Any], int]:
    """Message that the child sent, or that it ended without a word or not in time, and its status."""
    status = 0
    while time.monotonic() < deadline:
        if here.poll(_PATIENCE):
            with suppress(EOFError):
                return here.recv(), 0
            time.sleep(_PATIENCE)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            try:
                return (here.recv() if here.poll(0) else ("ended", None)), status
            except EOFError:
                return ("ended", None), status
    return ("late", None), status


def _end(pid: int) -> None:
    """Ends the child and all that it started in its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ChildProcessError):  # it was waited for
        os.waitpid(pid, 0)


def _ending(kind: str, status: int, limits: Limits) -> str:
    """Why nothing came back, in words."""
    if kind == "forked":
        return "forked, and both processes returned: one call must give one answer"
    if kind == "late":
        return f"was not done within {limits.total:g} s: allow more with --seconds"
    if kind == "memory":
        return f"needs more memory than the limit of {limits.gigabytes:g} GB: raise it with --memory"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGALRM:
            return f"did not answer within {limits.seconds:g} s: raise the limit for one call with --timeout"
        return f"crashed its process ({signal.Signals(number).name})"
    return f"ended its process with exit code {os.waitstatus_to_exitcode(status)} instead of returning"


def _first_line(printed: IO[bytes]) -> str:
    """Text that was printed, in one line."""
    if not (size := printed.seek(0, os.SEEK_END)):
        return ""
    printed.seek(0)
    first = printed.read(_MOST_SHOWN).decode("utf-8", "replace").strip().split("\n")[0]
    return f"printed {size} bytes to standard output, beginning with {first!r}: they are left out"
