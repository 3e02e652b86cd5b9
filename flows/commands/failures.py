"""One line for each failure, and its exit code."""

from __future__ import annotations

import os
from concurrent.futures import BrokenExecutor

import typer

from bandana import layers
from bandana.flows.commands.options import FAILURE, FULL, USER_MISTAKE


class failures:  # noqa: N801  (read as: with failures(debug))
    """One line for each failure: exit code 2 for the user's mistakes, 1 for the rest; a traceback only if asked for."""

    def __init__(self, debug: bool) -> None:
        self._debug = debug

    def __enter__(self) -> None:
        for name in ("PREFECT_LOGGING_LEVEL", "MLFLOW_LOGGING_LEVEL") if self._debug else ():
            os.environ.setdefault(name, "WARNING")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, typer.Exit | SystemExit) or self._debug:
            return
        if isinstance(error, BrokenPipeError):
            print(flush=True)  # fails again where the reader has left, as `head` does: click then ends without a word
        from bandana.flows.texts.mistakes import fitted

        message, code = explain(error)
        typer.echo(f"error: {fitted(message)}", err=True)
        raise SystemExit(code) from error


def explain(error: BaseException) -> tuple[str, int]:
    """Returns what to tell the user of a failure, and the exit code."""
    from bandana.flows.keys.identity import OtherCodeError
    from bandana.flows.running.interrupt import MESSAGE
    from bandana.flows.servers.prefect_health import ServerError
    from bandana.flows.texts.mistakes import BookError, SpecError
    from bandana.flows.tracking.store.errors import TrackingError

    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    for link in chain:
        if isinstance(link, SpecError):
            return str(link), USER_MISTAKE
        if isinstance(link, ImportError) and (line := layers.advice(link.name)):
            return line, USER_MISTAKE
    if isinstance(error, KeyboardInterrupt):
        return MESSAGE, FAILURE
    for link in chain:
        if (isinstance(link, OSError) and link.errno in FULL) or "disk is full" in str(link):
            where = f" ({link.filename})" if isinstance(link, OSError) and link.filename else ""
            return f"the disk is full{where}; finished work is kept: free some space and run the same command again", FAILURE
    for link in chain:
        if isinstance(link, TrackingError | OtherCodeError | BookError | ServerError):
            return str(link), FAILURE
    if any(isinstance(link, BrokenExecutor) for link in chain):
        words = "a worker process was killed, by hand or for want of memory (fewer --workers need less of it)"
        return f"{words}; finished work is kept; run the same command again to continue", FAILURE
    if any(type(link).__name__ == "TaskRunTimeoutError" for link in chain):
        advice = "raise block_timeout or audit_timeout in the spec's field `execution`, or make block_size smaller"
        return f"{str(error).rstrip('.')}: finished work is kept; {advice}, and run the same command again", FAILURE
    if isinstance(error, PermissionError):
        return f"no permission: {error}; choose another folder with --data", FAILURE
    return f"{type(error).__name__}: {error} (run again with --debug for the traceback)", FAILURE
