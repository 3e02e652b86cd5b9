"""Progress of long work: a bar on a terminal; elsewhere a line every half a minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

PAUSE = 30.0
"""Seconds between two lines, where standard error is no terminal. Shorter work writes none."""


@contextmanager
def bar(title: str, total: int, done: int = 0) -> Iterator[Callable[[str], None]]:
    """A bar of `total` pieces of work, some done already; yields a function to call with the name of each next one."""
    if not sys.stderr.isatty():
        with _lines(title, total, done) as advance:
            yield advance
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = ("{task.description:<10}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), "{task.fields[what]}")
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=total, completed=done, what="")
        yield lambda what: progress.update(task, advance=1, what=what)


@contextmanager
def _lines(title: str, total: int, done: int) -> Iterator[Callable[[str], None]]:
    start, ended, names = time.monotonic(), Event(), list[str]()

    def write() -> None:
        print(line(title, total, done, names, time.monotonic() - start), file=sys.stderr, flush=True)

    def write_now_and_then() -> None:
        while not ended.wait(PAUSE):
            write()

    writer = Thread(target=write_now_and_then, daemon=True)
    writer.start()
    try:
        yield names.append
    finally:
        ended.set()
        writer.join()
        if time.monotonic() - start > PAUSE:
            write()


def line(title: str, total: int, done: int, names: list[str], seconds: float) -> str:
    """Progress in words: share, the last piece of work, time so far, and time left at the pace so far.

    >>> line("smoke: audit", 4, 1, ["ucb: PASS"], 90.0)
    'smoke: audit: 2 of 4 done (50 %), last ucb: PASS; 90 s so far, about 3 min left'
    """
    n = done + len(names)
    last = f", last {names[-1]}" if names else ""
    left = f", about {duration(seconds / len(names) * (total - n))} left" if names and n < total else ""
    return f"{title}: {n} of {total} done ({100 * n / max(1, total):.0f} %){last}; {duration(seconds)} so far{left}"


def duration(seconds: float) -> str:
    """A number of seconds in words for people."""
    if seconds < 120:
        return "< 1 s" if 0 < seconds < 1 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
