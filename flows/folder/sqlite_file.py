"""SQLite files of MLflow and Prefect: filled in one step, tried, and rewritten without what they no longer need."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

_PATIENCE = 60  # seconds that a writer waits for another one


def fill(place: Path, source: sqlite3.Connection) -> None:
    """Replaces all that a file holds by what another database holds, in one transaction.

    A kill leaves the one or the other, whole; programs that have the file open see the new tables.
    """
    with closing(sqlite3.connect(place, timeout=_PATIENCE)) as target:
        source.backup(target)


def refusal(place: Path, table: str) -> str | None:
    """Why the rows of a table cannot be read or written, in one line; None if they can. Nothing is changed."""
    uri = place.absolute().as_uri() + "?mode=rw"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=5, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            database.execute(f'SELECT * FROM "{table}"').fetchone()
            database.execute(f'UPDATE "{table}" SET "{columns[0]}" = "{columns[0]}"')
            database.execute("ROLLBACK")
    except sqlite3.Error as error:
        return " ".join(str(error).split())[:160]
    return None


def compact(place: Path) -> None:
    """Rewrites a file without its free pages; one that is in use, or for which the disk has no room, stays as it is."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(place, timeout=2, isolation_level=None)) as database:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
