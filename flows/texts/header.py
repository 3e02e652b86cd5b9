"""The first line of a user's table: names of actions, which reports show, and never a user's values."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from pathlib import Path

from bandana.flows.texts.mistakes import SpecError

_WORDS = {
    *("true", "false", "yes", "no", "on", "off", "y", "n", "t", "f"),
    *("na", "n/a", "nan", "null", "nil", "missing", "inf", "infinity"),
}
_CALENDAR = "|".join(filter(None, (*calendar.month_name, *calendar.month_abbr, *calendar.day_name, *calendar.day_abbr)))
_VALUES = re.compile(
    rf"\S+@\S+|[a-z]+://\S+|(?:{_CALENDAR})[.,]?[ -]*[0-9].*|(?:[a-z]{{2,3}})?[$€£¥] ?[0-9].*"
    r"|(?=.*[0-9])(?:[0-9a-f]{8,}|[0-9a-f]+(?:[:-][0-9a-f]+){2,})",
    re.I,
)
"""Mail and web addresses, dates that begin with a word, amounts such as US$5, and hashes, UUIDs and network addresses."""


def read_header(row: Sequence[str], where: Path, shows_values: bool) -> tuple[str, ...]:
    """Checks the names of actions, and returns them without the blanks around them.

    Args:
      row: the cells of the first line.
      where: the file, named in errors.
      shows_values: whether an error may repeat what the cell holds; without a header that is a user's value.

    Raises:
      SpecError: fewer than two names, or one that could be a value, is empty, not printable, or there twice.
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
        if name and _could_be_value(name):
            raise refuse(
                column,
                "could be a value, and reports show names",
                "put a line of names such as letter,call above it; write 'dose 10 mg' for 10 mg",
            )
    for column, name in enumerate(names):
        if not name:
            raise refuse(column, "is empty", "name the action, or remove the column")
        if not name.isprintable():
            raise refuse(column, "holds a line break or a control character", "name the action in one line of text")
        if name in names[:column]:
            raise refuse(column, f"is the same as column {names.index(name) + 1}", "each action needs a name of its own")
    return names


def _could_be_value(name: str) -> bool:
    """True if a name could be what a user gave, so that a file without a header would publish its first user.

    A name begins with a letter: numbers do not, with whatever sign, currency, percent or separator, nor do dates, times and
    telephone numbers, and neither does `10 mg`, which is an action's name as often as a value (`dose 10 mg` is one). Of
    what begins with a letter, words for truth and for missing values, addresses, hashes and written dates are no names;
    `none` is one, as many trials have an arm without treatment.
    """
    return not name[0].isalpha() or name.casefold() in _WORDS or _VALUES.fullmatch(name) is not None
