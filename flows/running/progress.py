"""Progress bars on long work; silent where the output is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

console = Console(stderr=True)


class Bar:
    """One line of progress."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def advance(self, what: str = "") -> None:
        """One piece of work is done."""
        self._progress.update(self._task, advance=1, what=what)


@contextmanager
def bar(title: str, total: int, done: int = 0) -> Iterator[Bar]:
    """A bar of `total` pieces of work, some of them done already."""
    title_column, what_column = TextColumn("{task.description:<10}"), TextColumn("{task.fields[what]}")
    columns = (title_column, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), what_column)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as progress:
        yield Bar(progress, progress.add_task(title, total=total, completed=done, what=""))
