"""SQLite files of MLflow and Prefect: giving the disk back what they no longer need."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path


def compact(place: Path) -> None:
    """Rewrites a file without its free pages; one that is in use, or for which the disk has no room, stays as it is."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(place, timeout=2, isolation_level=None)) as database:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
