"""Where a book is kept: a SQLite file, or a table of a PostgreSQL database; one transaction appends one entry."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

from sqlalchemy import (
    Column,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    insert,
    inspect,
    select,
)
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from bandana.flows.books.chain import BookError, Entry

PATIENCE = 30.0
"""Seconds to wait for another process that writes."""
_TABLES = MetaData()
_ENTRIES = Table(
    "book_entries", _TABLES,
    Column("book", String(120), primary_key=True), Column("number", Integer, primary_key=True, autoincrement=False),
    Column("time", String(40), nullable=False), Column("kind", String(20), nullable=False),
    Column("body", Text, nullable=False), Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)  # fmt: skip
_SALTS = Table(
    "book_salts", _TABLES, Column("book", String(120), primary_key=True), Column("salt", LargeBinary, nullable=False)
)
_FILE = "book"


class Storage:
    """Entries of one book.

    Args:
      place: path of a SQLite file, or `postgresql://HOST/DATABASE#NAME`; its password comes from PGPASSWORD or `.pgpass`.

    Raises:
      BookError: the address names no book, or holds a password.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._url, self._book, self._path = f"sqlite:///{place}", _FILE, Path(place)
        if is_address(place):
            url, self._book = urldefrag(place)
            if urlsplit(url).password is not None:
                raise BookError(f"{self.name}: leave the password out of the address; give it in PGPASSWORD or ~/.pgpass")
            if not self._book:
                raise BookError(f"book {place}: the address must end with the book's name, such as {place}#trial-2026")
            self._url = url

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"book {self._book}" if is_address(self.place) else f"book {self._path.stem}"

    @property
    def _is_file(self) -> bool:
        return not is_address(self.place)

    def exists(self) -> bool:
        """Whether it has entries."""
        return not (self._is_file and not self._path.exists()) and bool(self.entries())

    def entries(self) -> list[Entry]:
        """All entries, in order; none if the book was never opened."""
        if self._is_file and not self._path.exists():
            return []
        with self._connected() as connection:
            return self._read(connection)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """One transaction, alone: it reads and appends, and is stored whole at its end, or not at all."""
        if self._is_file and not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        with self._connected(is_writer=True) as connection:
            _TABLES.create_all(connection)
            yield Writer(connection, self._book, self._read(connection))

    def _read(self, connection: Connection) -> list[Entry]:
        if not inspect(connection).has_table(_ENTRIES.name):
            return []
        columns = [_ENTRIES.c[name] for name in Entry._fields]
        found = connection.execute(select(*columns).where(_ENTRIES.c.book == self._book).order_by(_ENTRIES.c.number))
        return [Entry(*row) for row in found]

    @contextmanager
    def _connected(self, *, is_writer: bool = False) -> Iterator[Connection]:
        try:
            with self._engine(is_writer).begin() as connection:
                if is_writer and not self._is_file:
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE:g}s'")
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"bandana {self._book}",))
                yield connection
        except OperationalError as error:
            said = _line(error)
            if "lock" in said:
                raise BookError(
                    f"{self.name}: locked by another process for {PATIENCE:g} s; try again when it is done"
                ) from error
            raise BookError(f"{self.name}: {self._shown} cannot be used: {said}") from error
        except DatabaseError as error:
            raise BookError(f"{self.name}: {self._shown} is damaged: {_line(error)}; restore it from a copy") from error
        except (SQLAlchemyError, ModuleNotFoundError) as error:
            raise BookError(f"{self.name}: {self._shown} cannot be used: {_line(error)}") from error

    @property
    def _shown(self) -> str:
        return self._url if not self._is_file else str(self._path)

    def _engine(self, is_writer: bool) -> Engine:
        if not self._is_file:
            return create_engine(self._url, poolclass=NullPool)
        engine = create_engine(self._url, poolclass=NullPool, connect_args={"timeout": PATIENCE})

        # The driver begins transactions late; here a writer takes the lock before it reads what it decides from.
        event.listen(engine, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
        event.listen(engine, "begin", lambda found: found.exec_driver_sql("BEGIN IMMEDIATE" if is_writer else "BEGIN"))
        return engine


class Writer:
    """A transaction on a book.

    Attributes:
      entries: what the book holds.
    """

    def __init__(self, connection: Connection, book: str, entries: Sequence[Entry]) -> None:
        self._connection, self._book, self.entries = connection, book, list(entries)

    def append(self, entry: Entry) -> None:
        """Adds an entry."""
        self._connection.execute(insert(_ENTRIES).values(book=self._book, **entry._asdict()))
        self.entries.append(entry)

    def salt(self) -> bytes:
        """The book's own secret, with which it knows its data set; made with the book."""
        found = self._connection.execute(select(_SALTS.c.salt).where(_SALTS.c.book == self._book)).scalar()
        if found is None:
            if self.entries:
                raise BookError(
                    "its salt is gone, so that it cannot tell whether the data are its own; restore it from a copy"
                )
            found = secrets.token_bytes(32)
            self._connection.execute(insert(_SALTS).values(book=self._book, salt=found))
        return bytes(found)


def is_address(place: str) -> bool:
    """Whether a place is a database's URL, and no file."""
    return "://" in place


def _line(error: Exception) -> str:
    """The cause in one line."""
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]
