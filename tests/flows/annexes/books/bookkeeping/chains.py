"""Budget books that were edited by hand: entries with right numbers and hashes, whatever they hold."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

from bandana.flows.annexes.books.bookkeeping.chain import FIRST, Entry, seal


class Row(NamedTuple):
    """What an entry states; a body that is a text or a number is stored as it is."""

    time: Any
    kind: Any
    body: Any


Edit = Callable[[list[Row]], list[Row]]


def chain_of(rows: list[Row]) -> list[Entry]:
    """The rows as a chain whose hashes are right."""
    entries: list[Entry] = []
    for number, row in enumerate(rows, start=1):
        body = json.dumps(row.body, sort_keys=True, separators=(",", ":")) if isinstance(row.body, dict | list) else row.body
        fields = number, row.time, row.kind, body, entries[-1].hash if entries else FIRST
        entries.append(Entry(*fields, seal(*fields)))
    return entries


def rechain(place: str, edit: Edit) -> list[Entry]:
    """Edits a book in a SQLite file, and recomputes all its hashes."""
    with closing(sqlite3.connect(place)) as connection, connection:
        stored = connection.execute("SELECT time, kind, body FROM book_entries ORDER BY number").fetchall()
        entries = chain_of(edit([Row(time, kind, json.loads(body)) for time, kind, body in stored]))
        connection.execute("DROP INDEX IF EXISTS book_entries_seed")
        connection.execute("DROP INDEX IF EXISTS book_entries_entry")
        connection.execute("DROP TABLE book_entries")
        connection.execute("CREATE TABLE book_entries (book, number, time, kind, body, previous, hash)")  # of any type
        connection.executemany("INSERT INTO book_entries VALUES ('book', ?, ?, ?, ?, ?, ?)", entries)
    return entries


def changed(number: int, **fields: Any) -> Edit:
    """Replaces fields of the body of an entry; `...` removes one."""

    def edit(rows: list[Row]) -> list[Row]:
        body = {name: value for name, value in {**rows[number - 1].body, **fields}.items() if value is not ...}
        return replaced(number, body=body)(rows)

    return edit


def replaced(number: int, **fields: Any) -> Edit:
    """Replaces the time, the kind or the body of an entry."""
    return lambda rows: [*rows[: number - 1], rows[number - 1]._replace(**fields), *rows[number:]]
