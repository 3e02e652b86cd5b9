"""Progress bars on long work; where the output is no terminal, a line now and then if that is asked for, else nothing."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

console = Console(stderr=True)


@contextmanager
def bar(
    title: str, total: int, done: int = 0, *, seconds_between_lines: float = math.inf
) -> Iterator[Callable[[str], None]]:
    """A bar of `total` pieces of work, some done already; yields a function to call with the name of each next one.

    Where the output is no terminal, as in a notebook, a line is written instead when so many seconds have passed.
    """
    if not sys.stderr.isatty():
        yield _lines(title, total, done, seconds_between_lines)
        return
    title_column, what_column = TextColumn("{task.description:<10}"), TextColumn("{task.fields[what]}")
    columns = (title_column, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), what_column)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=total, completed=done, what="")
        yield lambda what: progress.update(task, advance=1, what=what)


def _lines(title: str, total: int, done: int, seconds: float) -> Callable[[str], None]:
    last, n_done = time.monotonic(), done

    def advance(what: str) -> None:
        nonlocal last, n_done
        n_done += 1
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            print(f"{title}: {n_done} of {total} done, the last one {what}", file=sys.stderr, flush=True)

    return advance
