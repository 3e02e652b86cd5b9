"""Work side by side without a server: in this process, or in fresh processes that run nothing of the caller's script."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar

import cloudpickle
from threadpoolctl import threadpool_limits

from bandana.flows.running.processes import end_with_parent

T = TypeVar("T")
R = TypeVar("R")


def completed(work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[tuple[T, R]]:
    """Yields each item with the result of its work, as soon as it is done.

    Linear algebra runs in one thread everywhere, as under the commands: sums of many threads need not agree to the last bit.
    An exception, Ctrl-C among them, ends all workers.

    Args:
      work: a function of one item; it and the items are sent to workers by value.
      items: what to work on.
      workers: processes side by side; 1 works in this process.

    Raises:
      BrokenProcessPool: a worker was killed.
    """
    if min(workers, len(items)) <= 1:
        for item in items:
            yield item, _alone(work, item)
        return
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(workers, len(items)), multiprocessing.get_context("spawn"), _start)
    try:
        with _without_main():
            futures = {pool.submit(_call, cloudpickle.dumps((work, item))): item for item in items}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _alone(work: Callable[[T], R], item: T) -> R:
    with threadpool_limits(1):
        return work(item)


def _call(sent: bytes) -> Any:
    return _alone(*cloudpickle.loads(sent))


def _start() -> None:
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
