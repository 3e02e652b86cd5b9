"""Work side by side without a server: in this process, or in fresh processes that run nothing of the caller's script."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from types import ModuleType, TracebackType
from typing import Any, Self, TypeVar

import cloudpickle
from threadpoolctl import threadpool_limits

from bandana.audits.replays.replay import default_workers
from bandana.flows.running.memory import keep_freed
from bandana.flows.running.processes import end_with_parent

T = TypeVar("T")
R = TypeVar("R")


class Workers:
    """Processes that work side by side, started when there is work for more than one, and ended with the context.

    Linear algebra runs in one thread everywhere, as under the commands: sums of many threads need not agree to the last bit.

    Args:
      n_workers: at most so many; 1 works in this process.
    """

    def __init__(self, n_workers: int) -> None:
        self._n_workers = n_workers
        self._pool: ProcessPoolExecutor | None = None
        self._before = set(multiprocessing.active_children())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends the workers, at once after an exception, Ctrl-C among them."""
        if error is not None:
            for process in set(multiprocessing.active_children()) - self._before:
                process.kill()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def cores_each(self, n_items: int) -> int:
        """Number of cores that each of so many items has to itself; one where workers share them."""
        return default_workers() if min(self._n_workers, n_items) <= 1 else 1

    def completed(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R]]:
        """Yields each item with the result of its work, as soon as it is done.

        Args:
          work: a function of one item; it and the items are sent to workers by value.
          items: what to work on.

        Raises:
          BrokenProcessPool: a worker was killed.
        """
        if min(self._n_workers, len(items)) <= 1:
            for item in items:
                yield item, _alone(work, item)
            return
        pool = self._pool = self._pool or ProcessPoolExecutor(self._n_workers, multiprocessing.get_context("spawn"), _start)
        with _without_main():
            futures = {pool.submit(call, cloudpickle.dumps((work, item))): item for item in items}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _alone(work: Callable[[T], R], item: T) -> R:
    with threadpool_limits(1):
        return work(item)


def call(sent: bytes) -> Any:
    """Result of pickled work on a pickled item."""
    return _alone(*cloudpickle.loads(sent))


def _start() -> None:
    keep_freed()
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it, and ends us


@contextmanager
def _without_main() -> Iterator[None]:
    """While it lasts, new processes find no main module: a script without `if __name__ == "__main__"` runs once only."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
