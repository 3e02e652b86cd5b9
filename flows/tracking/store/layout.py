"""The tables of MLflow's SQLite file, whole or not at all, although MLflow lays them out in seventy steps.

MLflow lays them out in memory, and the file takes all of them in one transaction. Called by one process at a time.
"""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from enum import Enum
from pathlib import Path

from bandana.flows.folder import sqlite_file
from bandana.flows.tracking.store.mlflow_private import create_tables

_LEFT = "_alembic_tmp_"
_OF_LAYOUT = ("alembic_version", "workspaces")
"""Tables that hold a row before anything is stored."""


class Tables(Enum):
    """State of a store's file: how much of a store it holds."""

    NONE = "it has no tables yet"
    PART = "the layout of its tables was interrupted, and it holds no runs"
    TORN = "an upgrade of its tables was interrupted"
    WHOLE = "whole"


def tables_of(place: Path) -> Tables:
    """Returns how much of a store a file holds; NONE where there is no file.

    A store is laid out once it has an experiment. Before that, or before any other row, a kill lost nothing.

    Raises:
      sqlite3.Error: the file cannot be read, or is no database.
    """
    if not place.exists():
        return Tables.NONE
    with closing(sqlite3.connect(place, timeout=20)) as database:
        names = _names(database)
        rows = (database.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in names if name not in _OF_LAYOUT)
        if any(row is not None for row in rows):
            return Tables.TORN if any(name.startswith(_LEFT) for name in names) else Tables.WHOLE
    return Tables.PART if names else Tables.NONE


def lay_out(place: Path) -> None:
    """Gives a file all tables of MLflow at once if it holds none, or a part of them without any row.

    A store that holds anything stays as it is, and so does a file with tables of others, to which MLflow adds its own.
    """
    if tables_of(place) not in (Tables.NONE, Tables.PART):
        return
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # "Creating tables"
    engine = create_engine("sqlite://", poolclass=StaticPool)
    try:
        create_tables(engine)
        with closing(engine.raw_connection()) as connection, closing(sqlite3.connect(place)) as database:
            source = connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            is_ours = all(name.startswith(_LEFT) or name in _names(source) for name in _names(database))
            if is_ours:
                sqlite_file.fill(place, source)
    finally:
        engine.dispose()


def _names(database: sqlite3.Connection) -> list[str]:
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return sorted(name for (name,) in rows)
