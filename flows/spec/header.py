"""The first line of a user's table: names of actions, which reports show, and never a user's values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bandana.flows.spec.mistakes import SpecError

PLAIN_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?\s*", re.I)
"""A number of a data file. Python reads more: 1_0 for 10, digits of all scripts."""


def read_header(row: Sequence[str], where: Path, shows_values: bool) -> tuple[str, ...]:
    """Checks the names of actions, and returns them without the blanks around them.

    Args:
      row: the cells of the first line.
      where: the file, named in errors.
      shows_values: whether an error may repeat what the cell holds; without a header that is a user's value.

    Raises:
      SpecError: fewer than two names, or one that is a number, empty, not printable, or there twice.
    """
    names = tuple(cell.strip().strip("\ufeff").strip() for cell in row)
    if len(names) < 2:
        raise SpecError(
            f"environment.path: {where} needs a header of at least 2 action names, separated by commas, and one row a user"
        )

    def refuse(column: int, is_wrong: str, advice: str) -> SpecError:
        shown = f" ({row[column]!r})" if shows_values else ""
        return SpecError(f"{where}:1: column {column + 1} of the header{shown} {is_wrong}: {advice}")

    for column, name in enumerate(names):
        if _is_number(name):
            raise refuse(
                column,
                "is a number, not the name of an action",
                "reports show these names, so that a file without a header would publish its first user: put a line "
                "of names above it, such as letter,call, or write 'dose 10' for 10",
            )
    for column, name in enumerate(names):
        if not name:
            raise refuse(column, "is empty", "name the action, or remove the column")
        if not name.isprintable():
            raise refuse(column, "holds a line break or a control character", "name the action in one line of text")
        if name in names[:column]:
            raise refuse(column, f"is the same as column {names.index(name) + 1}", "each action needs a name of its own")
    return names


def _is_number(name: str) -> bool:
    """Whether a cell could be a value: as Python reads it, or with a decimal comma."""
    for text in (name, name.replace(",", ".")):
        try:
            float(text)
        except ValueError:
            continue
        return True
    return False
