"""Prefect's server and its database: what is wrong with them, in one line, before a run and in the middle of one."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

DATABASE = "prefect.db"
_PAUSE, _PATIENCE, _TIMEOUT = 2.0, 30.0, 10.0
_MAGIC = b"SQLite format 3\x00"


class ServerError(RuntimeError):
    """Prefect's server, or its database, cannot be used; the message says what to do."""


def check_database(home: Path) -> None:
    """Refuses a damaged database of Prefect, which would only make its server fail.

    It holds the history of flow runs and nothing else. The whole file is read, some hundred megabytes a second.

    Raises:
      ServerError: it is damaged, or no SQLite file.
    """
    if (reason := damage(home / DATABASE)) is not None:
        raise ServerError(
            f"Prefect's database {home / DATABASE} is damaged ({reason}): move it away and run the command again; it holds "
            "only the history of flow runs, and results, reports and MLflow's runs are kept"
        )


def damage(path: Path) -> str | None:
    """Says what is wrong with an SQLite file; None if nothing is, if it is empty, or if there is none."""
    try:
        with path.open("rb") as file:
            begun = file.read(len(_MAGIC))
    except FileNotFoundError:
        return None
    except OSError as error:
        return error.strerror or str(error)
    if begun and begun != _MAGIC:
        return "it is no SQLite file"
    try:
        with closing(sqlite3.connect(path.absolute().as_uri() + "?mode=ro", uri=True, timeout=20)) as database:
            answer = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        return None if "locked" in str(error) or "readonly" in str(error) or "unable to open" in str(error) else str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if answer == "ok" else " ".join(answer.split())[:200]


def watch(ended: Callable[[str], None]) -> None:
    """Watches a server that the user named, from a thread; `ended` is called once if it is gone for half a minute.

    Prefect's own clients would wait for minutes, and fill the screen. A server that never answered is left to them.
    """
    address = os.environ.get("PREFECT_API_URL", "").rstrip("/")
    if not address:
        return

    def look() -> None:
        last, failures = None, 0
        while True:
            failure = unanswered(f"{address}/health")
            now = time.monotonic()
            if failure is None:
                last, failures = now, 0
            elif last is not None:
                failures += 1
                if failures > 2 and now - last > _PATIENCE:
                    ended(f"Prefect's server at {address} does not answer any more ({failure}): start it again")
                    return
            time.sleep(_PAUSE)

    threading.Thread(target=look, name="prefect-health", daemon=True).start()


def unanswered(address: str) -> str | None:
    """Why a server does not answer; None if it does, whatever it says."""
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT):
            return None
    except urllib.error.HTTPError:
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        return str(getattr(reason, "strerror", None) or reason)
