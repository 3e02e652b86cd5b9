"""Prefect's pool of processes, which ends when any of them dies at any moment.

Imported only when a pool is wanted: Prefect's settings must stand before Prefect is imported.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool, _ExecutorManagerThread
from typing import Any, Self

from prefect.task_runners import ProcessPoolTaskRunner

from bandana.flows.running import warm_start

_BROKEN = "A worker process died, and the pool with it"
_terminate_broken = _ExecutorManagerThread.terminate_broken


class ProcessPool(ProcessPoolTaskRunner):
    """Prefect's task runner, warm if there is a warm start, and without its waits for what a dead worker will never do."""

    def __enter__(self) -> Self:
        _ExecutorManagerThread.terminate_broken = mark_and_terminate_broken  # type: ignore[assignment]
        super().__enter__()
        self._executor = _started_as(warm_start.start_method(), self._executor)
        # A worker that dies while it writes keeps this queue's lock: our last word to the queue would wait for it at exit.
        assert self._subprocess_message_queue is not None
        self._subprocess_message_queue.cancel_join_thread()
        return self

    def cores_each(self, n_tasks: int) -> int:
        """How many cores each of so many tasks has to itself."""
        return max(1, self._max_workers // max(1, n_tasks))

    def _resolve_futures_and_submit(self, *args: Any, **kwargs: Any) -> Future[bytes]:
        try:
            return super()._resolve_futures_and_submit(*args, **kwargs)
        except BrokenPipeError as error:  # it died before it had read what it is to do
            raise BrokenProcessPool(_BROKEN) from error


def _started_as(method: str, pool: ProcessPoolExecutor | None) -> ProcessPoolExecutor:
    """The same pool, no worker of which was started yet, with workers that are started in the given way."""
    assert pool is not None
    old: Any = pool
    context = multiprocessing.get_context(method)
    found = ProcessPoolExecutor(old._max_workers, context, old._initializer, old._initargs)
    pool.shutdown(wait=False)
    return found


def mark_and_terminate_broken(manager: _ExecutorManagerThread, cause: Any) -> None:
    """What the standard library does with a broken pool, once nobody is submitting to it any more.

    Python 3.11 calls a pool broken without the lock that `submit` holds while it starts a worker: one that is started
    meanwhile is never terminated, and the pool waits for it forever. Later versions take the lock.
    """
    with manager.shutdown_lock:
        if (executor := manager.executor_reference()) is not None:
            executor._broken = _BROKEN
    _terminate_broken(manager, cause)
