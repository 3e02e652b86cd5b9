"""One writer a name: MLflow has no unique constraint, so whoever makes a run of a key must be alone with that key."""

from __future__ import annotations

import fcntl
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bandana.flows.tracking.store.address import TrackingAddress
from bandana.flows.tracking.store.errors import Patient

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_PATIENCE = "300s"  # of a writer for another one on PostgreSQL


class Locks:
    """Locks by name: of the database itself on PostgreSQL, so that they hold across machines; else files.

    An HTTP server offers no lock: there, files keep the processes of one data folder apart, and no more.

    Args:
      folder: where lock files lie; processes that share it exclude one another.
      address: the tracking store.
    """

    def __init__(self, folder: Path, address: TrackingAddress) -> None:
        self._folder, self._address = folder, address

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Waits until nobody else holds the name; a writer that dies lets go of it."""
        if self._address.kind == "postgresql":
            with self._advisory(name):
                yield
            return
        safe = re.sub(r"[^A-Za-z0-9._-]", "-", name)
        with open(self._folder / f"{safe}.lock", "w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _advisory(self, name: str) -> Iterator[None]:
        from sqlalchemy.exc import SQLAlchemyError

        key = int.from_bytes(hashlib.sha256(f"bandana {name}".encode()).digest()[:8], signed=True)
        connection = Patient(self).take(key)
        try:
            yield
        finally:
            try:
                connection.rollback()
            except SQLAlchemyError:  # the lock went with the connection
                connection.invalidate()
            connection.close()

    def take(self, key: int) -> Connection:
        """A connection that holds an advisory lock until its transaction ends. Only on PostgreSQL."""
        from sqlalchemy import text

        connection = self._engine.connect()
        try:
            # Of the transaction, not of the session: gone with the connection, and safe behind a pooler.
            connection.execute(text(f"SET LOCAL lock_timeout = '{_PATIENCE}'"))
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
        except BaseException:
            connection.close()
            raise
        return connection

    @cached_property
    def _engine(self) -> Engine:
        from sqlalchemy import create_engine

        return create_engine(self._address.uri, pool_pre_ping=True)

    def __reduce__(self) -> tuple[object, ...]:
        return Locks, (self._folder, self._address)  # connections stay in the process that opened them
