"""Heads that a data folder has seen of a data set's book: a book that was cut, replaced or left out is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from bandana.flows.annexes.books.bookkeeping.chain import Entry
from bandana.flows.folder.store import write_whole
from bandana.flows.texts.mistakes import BookError

FOLDER = "books/heads"
"""Place in a data folder, one file for each data set."""


class Seen(NamedTuple):
    """The last entry that was seen."""

    place: str
    """Where the book is."""
    first: str
    """Hash of its first entry, which no other book has."""
    number: int
    hash: str


def place_from(heads: Path | None, place: str) -> str:
    """The place of a book as a data folder names it: within the folder relative to it, so that it may be moved."""
    root = None if heads is None else heads.parents[1]
    return str(Path(place).relative_to(root)) if root is not None and Path(place).is_relative_to(root) else place


def read(heads: Path, digest: str) -> Seen | None:
    """Reads what was seen of the book of a data set; None if nothing was.

    Args:
      heads: the folder of these notes.
      digest: what the data folder knows the data set by.

    Raises:
      BookError: the file is damaged.
    """
    path = heads / f"{digest}.json"
    try:
        return Seen(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise BookError(f"{path}: what this data folder saw of a budget book cannot be read: {error}; restore it") from error


def of_book(heads: Path | None, place: str) -> list[Seen]:
    """All that was seen of the book at a place, one note for each state of its data set."""
    entries = [] if heads is None else [read(heads, path.stem) for path in sorted(heads.glob("*.json"))]
    return [seen for seen in entries if seen is not None and seen.place == place_from(heads, place)]


def note(heads: Path, digest: str, place: str, first: str, entry: Entry) -> None:
    """Keeps the last entry; of two processes at once either may win, since both entries are in the book."""
    heads.mkdir(parents=True, exist_ok=True)
    seen = Seen(place_from(heads, place), first, entry.number, entry.hash)
    write_whole(heads / f"{digest}.json", json.dumps(seen._asdict()).encode())
