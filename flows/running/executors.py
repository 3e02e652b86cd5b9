"""Where blocks are computed: this process, a pool of processes or a Dask cluster; the numbers are the same, bit for bit.

A block's seeds come from its content alone, so that neither the executor nor the number of workers nor the order can
change a number. What is tried again after a fault is the same block with the same seeds.
"""

from __future__ import annotations

import errno
import gc
import os
import sqlite3
from concurrent.futures import BrokenExecutor
from contextlib import nullcontext, suppress
from enum import StrEnum
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from bandana.flows.annex import plugged, plugs_at
from bandana.flows.folder.settings import n_workers
from bandana.flows.running.memory import keep_freed
from bandana.flows.running.processes import end_with_parent
from bandana.flows.servers.loopback import is_loopback
from bandana.flows.texts.mistakes import SpecError

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State

_LASTING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
LATE = "late"  # kind of the notes of late tasks, beside those of results
_RETRY_DELAYS = [1.0, 5.0, 20.0]


class Executor(StrEnum):
    """Where blocks run."""

    LOCAL = "local"
    PROCESSES = "processes"
    DASK = "dask"


class Resources(BaseModel):
    """Resources that an experiment runs on; no number depends on it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    executor: Executor | None = Field(None, description="Where blocks run; None: in processes, except for small benchmarks.")
    workers: int | None = Field(None, ge=1, description="Blocks side by side; None: one per core, or one for `local`.")
    dask_address: str | None = Field(None, description="Address of a cluster's scheduler; None: a cluster on this machine.")
    insecure: bool = Field(False, description="Whether a scheduler of another machine may be spoken to without TLS.")

    def check(self) -> None:
        """Refuses what cannot work, before any work starts.

        Raises:
          SpecError: an address without Dask, one of another machine without TLS, or Dask without its packages.
        """
        if self.dask_address is not None and self.executor is not Executor.DASK:
            raise SpecError("--dask-address: only with --executor dask")
        if self.insecure and self.dask_address is None:
            raise SpecError("--insecure: only with --dask-address")
        if self.dask_address is not None and not self.insecure and not _is_protected(self.dask_address):
            raise SpecError(
                f"--dask-address: {self.dask_address[:200]!r} is beyond this machine and not encrypted; who reaches it runs "
                "code as you: give it certificates and write tls:// (docs/scale.md), or allow --insecure"
            )
        # Looked up and not imported: the settings of Prefect must stand before it is.
        if self.executor is Executor.DASK and not (plugs_at("runners") and find_spec("prefect_dask")):
            raise SpecError("--executor dask needs more packages: pip install 'bandana-dp[dask]'")


def _is_protected(address: str) -> bool:
    """True if only holders of a certificate, or only this machine, can answer at the address of a scheduler."""
    protocol, named, rest = address.strip().rpartition("://")
    if named and protocol in ("tls", "wss", "inproc"):
        return True
    host = rest.partition("/")[0].rpartition("@")[2]
    host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return is_loopback(host)


def task_runner(resources: Resources, default: Executor, module: str) -> Any:
    """A Prefect task runner.

    Args:
      resources: what the user chose.
      default: for a user who did not. Processes use every core, and take seconds to start; what is small is done in this
        one meanwhile. Threads are one by default: two that share the interpreter's lock took longer than one alone.
      module: where the tasks are defined; a worker imports it before it is asked for one.
    """
    from prefect.task_runners import ThreadPoolTaskRunner

    workers = resources.workers or n_workers()
    match resources.executor or default:
        case Executor.LOCAL:
            return ThreadPoolTaskRunner(max_workers=resources.workers or 1)
        case Executor.PROCESSES:
            from bandana.flows.running.process_pool import ProcessPool

            return ProcessPool(max_workers=workers, initializer=partial(_start_worker, module))
    return plugged("runners")[Executor.DASK](resources.dask_address, workers)


def held_to_limit(note: Path) -> Any:
    """A context that holds its task to the time limit also where Prefect cannot; it may leave a note if it is late."""
    return next(iter(plugged("limits").values()), nullcontext)(note)


def cores_each(n_tasks: int) -> int:
    """Number of cores that each of so many tasks of the running flow has to itself; one where others may be using them."""
    from prefect.context import FlowRunContext

    count = getattr(getattr(FlowRunContext.get(), "task_runner", None), "cores_each", None)
    return count(n_tasks) if count else 1


def _start_worker(module: str) -> None:
    keep_freed()
    end_with_parent()
    gc.disable()  # nothing of what is imported is garbage
    import_module(module)
    if "PREFECT_API_URL" in os.environ:  # one client for all tasks: to make one reads certificates
        with suppress(Exception):  # each task then makes its own, and says what is wrong
            import_module("prefect.context").SyncClientContext().__enter__()
    gc.freeze()
    gc.enable()


def patience(retries: int, timeout: float) -> dict[str, Any]:
    """Options of a Prefect task: it is tried again after a fault of the infrastructure, and never after a mistake."""
    delays = [_RETRY_DELAYS[min(i, len(_RETRY_DELAYS) - 1)] for i in range(retries)]
    return {
        "retries": retries,
        "retry_delay_seconds": delays or None,
        "retry_condition_fn": _may_pass,
        "timeout_seconds": timeout,
    }


def _may_pass(_task: object, _run: object, state: State[object]) -> bool:
    return is_infrastructure_fault(state.result(raise_on_failure=False))


def is_infrastructure_fault(error: object) -> bool:
    """True if the same work may succeed a moment later: a lost connection or worker, a busy database or file system.

    A full disk, a missing file or permission, a timeout of the work itself and every mistake in data or code come again.
    """
    from prefect.task_engine import TaskRunTimeoutError

    if isinstance(error, TaskRunTimeoutError | FileNotFoundError | PermissionError | NotADirectoryError | IsADirectoryError):
        return False
    if isinstance(error, OSError):
        return error.errno not in _LASTING
    if isinstance(error, sqlite3.OperationalError):
        return "locked" in str(error)
    return isinstance(error, BrokenExecutor | EOFError) or type(error).__name__ == "KilledWorker"
