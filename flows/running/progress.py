"""Progress bars on long work; silent where the output is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

console = Console(stderr=True)


@contextmanager
def bar(title: str, total: int, done: int = 0) -> Iterator[Callable[[str], None]]:
    """A bar of `total` pieces of work, some done already; yields a function to call with the name of each next one."""
    title_column, what_column = TextColumn("{task.description:<10}"), TextColumn("{task.fields[what]}")
    columns = (title_column, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), what_column)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(title, total=total, completed=done, what="")
        yield lambda what: progress.update(task, advance=1, what=what)
