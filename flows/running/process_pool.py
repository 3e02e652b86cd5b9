"""The adapter to private parts of Prefect's runner of processes and of the standard library's pool below it.

Prefect's runner starts fresh interpreters and has no option for another way; Python 3.11's pool waits forever for a worker
that starts while another one dies. Imported only when a pool is wanted: Prefect's settings must be set before its import.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, ParamSpec, Self, TypeVar

from prefect.task_runners import ProcessPoolTaskRunner

from bandana.flows.running import warm_start

P = ParamSpec("P")
T = TypeVar("T")
_BROKEN = "A worker process died, and the pool with it"


class WorkerPool(ProcessPoolExecutor):
    """The standard library's pool, which ends with `BrokenProcessPool` whenever one of its workers dies."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedules a call, as the standard library's pool does.

        Raises:
          BrokenProcessPool: a worker died, possibly before it had read its first task.
        """
        try:
            return super().submit(fn, *args, **kwargs)
        except BrokenPipeError as error:
            raise BrokenProcessPool(_BROKEN) from error

    def _start_executor_manager_thread(self) -> None:
        is_new = self._executor_manager_thread is None
        super()._start_executor_manager_thread()
        if is_new and sys.version_info < (3, 12):
            manager: Any = self._executor_manager_thread
            manager.terminate_broken = partial(_mark_and_terminate, manager, manager.terminate_broken)


def _mark_and_terminate(manager: Any, terminate: Callable[[object], None], cause: object) -> None:
    """Marks a pool as broken under the lock that `submit` holds while it starts a worker, then ends all workers.

    Python 3.11 marks it without the lock, so a worker that is being started escapes; later versions take the lock.
    """
    with manager.shutdown_lock:
        if (pool := manager.executor_reference()) is not None:
            pool._broken = _BROKEN
    terminate(cause)


class ProcessPool(ProcessPoolTaskRunner):
    """Prefect's task runner on a `WorkerPool`, whose workers are forked from the warm process if there is one."""

    def __enter__(self) -> Self:
        super().__enter__()
        theirs: Any = self._executor  # it has started no worker yet
        context = multiprocessing.get_context(warm_start.start_method())
        self._executor = WorkerPool(self._max_workers, context, theirs._initializer, theirs._initargs)
        theirs.shutdown(wait=False)
        # A worker that dies while it writes keeps this queue's lock: our last word to the queue would wait for it at exit.
        assert self._subprocess_message_queue is not None
        self._subprocess_message_queue.cancel_join_thread()
        return self

    def _resolve_futures_and_submit(self, *args: Any, **given: Any) -> Future[bytes]:
        """Sends no settings that stand in the environment, which workers inherit: to read them takes as long as a block."""
        if "PREFECT_API_URL" in os.environ:
            given["context"] = {**given["context"], "settings_context": {}}
        return super()._resolve_futures_and_submit(*args, **given)

    def cores_each(self, n_tasks: int) -> int:
        """Cores for each of `n_tasks` tasks that run side by side, at least one."""
        return max(1, self._max_workers // max(1, n_tasks))
