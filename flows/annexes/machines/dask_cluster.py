"""Dask: a cluster of processes or of machines, and the time limit of its tasks, where Prefect's own cannot stop work.

In a pool's process Prefect sets an alarm. A Dask worker runs tasks in a thread, into which Prefect can only throw an
exception between two steps of Python: a long call, of a compiled kernel or of the system, goes on. So a worker whose task is
late by a few seconds more ends its process. Dask starts another one and the task again, which finds a note of what happened,
and fails as late tasks do. Other tasks of that process are run again, with the same numbers.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bandana.flows.folder import scratch

GRACE = 5.0
"""Seconds in which a late task may still end by itself."""


def task_runner(address: str | None, n_workers: int) -> Any:
    """A Prefect task runner on a running cluster, or on one of so many processes of this machine."""
    from distributed.security import Security
    from prefect_dask.task_runners import DaskTaskRunner

    if address is not None:
        return DaskTaskRunner(address=address)
    security: Any = Security
    # Processes of this machine. Nothing listens beyond the loopback interface, and nobody connects without the certificate
    # that this process made and keeps in memory: a Dask scheduler calls any function that it is sent.
    cluster = {
        "n_workers": n_workers, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None,
        "security": security.temporary(),
        # Its status pages have no switch, and would take port 8787, or warn that another cluster has it.
        "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
    }  # fmt: skip
    return DaskTaskRunner(cluster_kwargs=cluster)


@contextmanager
def kept(place: Path) -> Iterator[None]:
    """Holds the task that runs here to its time limit; does nothing outside a Dask worker.

    Args:
      place: of what the task computes, in a folder for notes of late tasks that all workers share.

    Raises:
      TimeoutError: it was late before, in a process that ended for it; of the kind that Prefect takes for a late task.
    """
    if not _is_dask_worker():
        yield
        return
    from prefect.context import TaskRunContext
    from prefect.task_engine import TaskRunTimeoutError

    context = TaskRunContext.get()
    limit = None if context is None else context.task.timeout_seconds
    if context is None or limit is None:
        yield
        return
    run = str(context.task_run.flow_run_id)
    for note in [*place.parent.glob(f".{place.stem}.*{scratch.SUFFIX}")]:
        was_in_this_run = note.read_text(encoding="utf-8") == run
        note.unlink(missing_ok=True)
        if was_in_this_run:
            raise TaskRunTimeoutError(f"a block or an audit took longer than {limit:g} seconds on a Dask worker")
    timer = threading.Timer(limit + GRACE, _end, (place, run))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _is_dask_worker() -> bool:
    if (module := sys.modules.get("distributed.worker")) is None:
        return False
    try:
        module.get_worker()
    except ValueError:
        return False
    return True


def _end(place: Path, run: str) -> None:
    """Leaves a note, and ends this process; whoever is swept away with the note only waits for a limit once more."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.with_name(f"{scratch.prefix(place.stem)}{scratch.SUFFIX}").write_text(run, encoding="utf-8")
    finally:
        os._exit(1)
