"""The history of flow runs in the data folder: what of it is old, and how it is removed, by Prefect's own means.

It holds no result: reports, evidence, the diary of nights and MLflow's runs lie elsewhere. Open runs and schedules stay.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bandana.flows.folder.sqlite_file import compact
from bandana.flows.servers.prefect_health import DATABASE, check_database

_ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
_LEAST = 3601.0  # seconds; Prefect takes nothing shorter


@dataclass(frozen=True)
class History:
    """Old parts of Prefect's history.

    Attributes:
      flow_runs: that ended, with what they started, their tasks, logs and pages.
      events: of whatever happened.
      n_bytes: that the disk has again; 0 before anything was removed.
    """

    flow_runs: int
    events: int
    n_bytes: int = 0


def old_history(home: Path, keep: float) -> History | None:
    """History older than `keep` seconds; None where there is no history, or it is of another version of Prefect.

    Raises:
      ServerError: the database is damaged.
    """
    check_database(home)
    place = home / DATABASE
    if not place.exists() or not place.stat().st_size:
        return None
    before = datetime.fromtimestamp(time.time() - max(keep, _LEAST), UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    with closing(sqlite3.connect(place.absolute().as_uri() + "?mode=ro", uri=True, timeout=20)) as database:
        try:
            marks = ", ".join("?" * len(_ENDED))
            (runs,) = database.execute(
                f"SELECT count(*) FROM flow_run WHERE state_type IN ({marks}) AND end_time < ?", (*_ENDED, before)
            ).fetchone()
            (events,) = database.execute("SELECT count(*) FROM events WHERE occurred < ?", (before,)).fetchone()
        except sqlite3.OperationalError:
            return None
    return History(runs, events)


def remove_history(home: Path, keep: float) -> History | None:
    """Removes what `old_history` counts, and what it leaves without an owner; in a process that has not imported Prefect."""
    history = old_history(home, keep)
    if history is None or not (history.flow_runs or history.events):
        return history
    place = home / DATABASE
    size, seconds = place.stat().st_size, int(max(keep, _LEAST))
    os.environ.update({
        "PREFECT_HOME": str(home),
        "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{place}",
        "PREFECT_API_DATABASE_MIGRATE_ON_START": "false",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": str(seconds),
        "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": f"PT{seconds}S",
    })  # fmt: skip
    asyncio.run(_remove())
    left = old_history(home, keep) or History(0, 0)
    compact(place)
    return History(history.flow_runs - left.flow_runs, history.events - left.events, max(0, size - place.stat().st_size))


async def _remove() -> None:
    from prefect.server.database import provide_database_interface
    from prefect.server.services import db_vacuum

    db = provide_database_interface()
    await db_vacuum.vacuum_old_flow_runs(db=db)  # and what they had started, which is without a parent then
    await db_vacuum.vacuum_orphaned_logs(db=db)
    await db_vacuum.vacuum_orphaned_artifacts(db=db)
    await db_vacuum.vacuum_stale_artifact_collections(db=db)
    await db_vacuum.vacuum_old_events(db=db)
