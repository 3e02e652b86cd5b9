"""What several test files and workers use: made once in a session, by whoever needs it first."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bandana.flows.servers.temporary_server import spawn


def session_folder(factory: pytest.TempPathFactory) -> Path:
    """One folder for all workers of this session of pytest."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def once(place: Path, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills, where no one has filled it yet; the others wait meanwhile."""
    place.mkdir(parents=True, exist_ok=True)
    with _locked(place.with_name(f"{place.name}.lock"), fcntl.LOCK_EX):
        done = place.with_name(f"{place.name}.done")
        if not done.exists():
            make(place)
            done.touch()
    return place


@contextmanager
def shared_server(folder: Path) -> Iterator[dict[str, str]]:
    """The settings of clients of one Prefect server for all workers; who started it ends it, after its last user.

    A copy of its tables, laid out and empty, is kept at `folder`/empty.db for the servers that tests start themselves.
    """
    folder.mkdir(parents=True, exist_ok=True)
    told, users, process = folder / "settings.json", folder / "users", None
    with _locked(folder / "starting", fcntl.LOCK_EX):
        using = users.open("a")
        fcntl.flock(using, fcntl.LOCK_SH)
        if not told.exists():
            process, settings = spawn(folder / "home")
            try:
                urllib.request.urlopen(f"{settings['PREFECT_API_URL']}/health", timeout=240).close()
                _copy(folder / "home" / "prefect.db", folder / "empty.db")
                told.write_text(json.dumps(settings))
            except BaseException:
                process.kill()
                raise
    try:
        yield json.loads(told.read_text())
    finally:
        using.close()
        if process is not None:
            with _locked(folder / "starting", fcntl.LOCK_EX), _locked(users, fcntl.LOCK_EX):
                told.unlink()
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


def _copy(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


@contextmanager
def _locked(path: Path, how: int) -> Iterator[Any]:
    with path.open("a") as lock:
        fcntl.flock(lock, how)
        yield lock
