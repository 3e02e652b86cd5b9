"""Where a book is kept: a SQLite file, or a table of a PostgreSQL database; one transaction appends one entry."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from bandana.flows.annexes.books.bookkeeping.chain import CHECKPOINT, Entry, check_seal
from bandana.flows.texts.mistakes import BookError

PATIENCE = 30.0
"""Seconds to wait for another process that writes."""
_TABLES = sa.MetaData()
_ENTRIES = sa.Table(
    "book_entries", _TABLES,
    sa.Column("book", sa.String(120), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("time", sa.String(40), nullable=False), sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("body", sa.Text, nullable=False), sa.Column("previous", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
)  # fmt: skip
_SALTS = sa.Table(
    "book_salts",
    _TABLES,
    sa.Column("book", sa.String(120), primary_key=True),
    sa.Column("salt", sa.LargeBinary, nullable=False),
)
_FILE = "book"
_INDEXED = ("seed", "entry")
"""Fields of bodies by which entries are looked up, with an index that the database itself keeps."""
_AT_ONCE = 500
"""Values in one query."""


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
        """Name of it in messages."""
        return f"book {self._book}" if is_address(self.place) else f"book {self._path.stem}"

    @property
    def _is_file(self) -> bool:
        return not is_address(self.place)

    def exists(self) -> bool:
        """True if it has entries."""
        return not (self._is_file and not self._path.exists()) and bool(self.entries())

    def entries(self) -> list[Entry]:
        """All entries, in order; none if the book was never opened."""
        if self._is_file and not self._path.exists():
            return []
        with self._connected() as connection:
            return _rows(connection, self._book) if sa.inspect(connection).has_table(_ENTRIES.name) else []

    @contextmanager
    def writing(self, *, is_whole: bool = False) -> Iterator[Writer]:
        """One transaction, alone: it reads and appends, and is stored whole at its end, or not at all.

        Args:
          is_whole: read all entries, not only those from the last checkpoint on.
        """
        if self._is_file and not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        with self._connected(is_writer=True) as connection:
            _TABLES.create_all(connection)
            _index(connection)
            of_kind = sa.select(_ENTRIES.c.number).where(_ENTRIES.c.book == self._book, _ENTRIES.c.kind == CHECKPOINT)
            last: int | None = connection.execute(of_kind.order_by(_ENTRIES.c.number.desc()).limit(1)).scalar()
            yield Writer(connection, self._book, None if is_whole else last)

    @contextmanager
    def _connected(self, *, is_writer: bool = False) -> Iterator[Connection]:
        try:
            with _engine(self._url, self._is_file, is_writer).begin() as connection:
                if is_writer and not self._is_file:
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE:g}s'")
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"bandana {self._book}",))
                yield connection
        except OperationalError as error:
            line = _line(error)
            if "lock" in line:
                raise BookError(
                    f"{self.name}: locked by another process for {PATIENCE:g} s; try again when it is done"
                ) from error
            raise BookError(f"{self.name}: {self._shown} cannot be used: {line}") from error
        except DatabaseError as error:
            raise BookError(f"{self.name}: {self._shown} is damaged: {_line(error)}; restore it from a copy") from error
        except (SQLAlchemyError, ModuleNotFoundError) as error:
            raise BookError(f"{self.name}: {self._shown} cannot be used: {_line(error)}") from error

    @property
    def _shown(self) -> str:
        return self._url if not self._is_file else str(self._path)


@lru_cache(maxsize=16)  # an engine keeps no connection here, but the statements that it has compiled
def _engine(url: str, is_file: bool, is_writer: bool) -> Engine:
    engine = sa.create_engine(url, poolclass=NullPool, connect_args={"timeout": PATIENCE} if is_file else {})
    if is_file:  # the driver begins transactions late; here a writer takes the lock before it reads what it decides from
        sa.event.listen(engine, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
        sa.event.listen(engine, "begin", lambda link: link.exec_driver_sql("BEGIN IMMEDIATE" if is_writer else "BEGIN"))
    return engine


class Writer:
    """A transaction on a book.

    Attributes:
      entries: by rising number: all from the last checkpoint on, and those before it that were fetched.
      since: number of that checkpoint; 1: there is none, and all entries are read.
    """

    def __init__(self, connection: Connection, book: str, checkpoint: int | None) -> None:
        self._connection, self._book, self.since = connection, book, checkpoint or 1
        self.entries = _rows(connection, book, *([_ENTRIES.c.number >= checkpoint] if checkpoint else []))

    def fetch(self, numbers: Iterable[int]) -> None:
        """Adds entries before the checkpoint; numbers of later ones are left out.

        Raises:
          BookError: one is missing, or was changed.
        """
        early = sorted({number for number in numbers if number < self.since} - {entry.number for entry in self.entries})
        fetched = [
            entry
            for first in range(0, len(early), _AT_ONCE)
            for entry in _rows(self._connection, self._book, _ENTRIES.c.number.in_(early[first : first + _AT_ONCE]))
        ]
        for entry in fetched:
            check_seal(entry)
        if gone := set(early) - {entry.number for entry in fetched}:
            raise BookError(f"entry {min(gone)} is missing or out of order: the book was changed; restore it from a copy")
        self.entries = sorted([*fetched, *self.entries])

    def with_field(self, kind: str, name: str, values: Iterable[str]) -> list[Entry]:
        """All entries of a kind whose body has one of the values, as text, in a field.

        Raises:
          BookError: one was changed.
        """
        wanted = sorted(set(values))
        of_kind, is_one = _ENTRIES.c.kind == kind, sa.text(f"{_expression(self._connection, name)} IN :values")
        entries = [
            entry
            for first in range(0, len(wanted), _AT_ONCE)
            for entry in _rows(
                self._connection, self._book, of_kind,
                is_one.bindparams(sa.bindparam("values", wanted[first : first + _AT_ONCE], expanding=True)),
            )
        ]  # fmt: skip
        for entry in entries:
            check_seal(entry)
        return sorted(entries)

    def append(self, entry: Entry) -> None:
        """Adds an entry."""
        self._connection.execute(sa.insert(_ENTRIES).values(book=self._book, **entry._asdict()))
        self.entries.append(entry)

    def salt(self) -> bytes:
        """The book's own secret, with which it knows its data set; made with the book."""
        salt = self._connection.execute(sa.select(_SALTS.c.salt).where(_SALTS.c.book == self._book)).scalar()
        if salt is None:
            if self.entries:
                raise BookError(
                    "its salt is gone, so that it cannot tell whether the data are its own; restore it from a copy"
                )
            salt = secrets.token_bytes(32)
            self._connection.execute(sa.insert(_SALTS).values(book=self._book, salt=salt))
        if not isinstance(salt, bytes | memoryview):
            raise BookError("its salt is no bytes: the book was changed; restore it from a copy")
        return bytes(salt)


def _rows(connection: Connection, book: str, *conditions: sa.ColumnElement[bool] | sa.TextClause) -> list[Entry]:
    """Entries in order."""
    columns = [_ENTRIES.c[name] for name in Entry._fields]
    wanted = sa.select(*columns).where(_ENTRIES.c.book == book, *conditions)
    if not any(isinstance(condition, sa.TextClause) for condition in conditions):  # SQLite would order by a slower index
        wanted = wanted.order_by(_ENTRIES.c.number)
    return [Entry(*row) for row in connection.execute(wanted)]


def _expression(connection: Connection, name: str) -> str:
    """SQL of a field of the body, as text."""
    is_file = connection.dialect.name == "sqlite"
    return f"CAST(json_extract(body, '$.{name}') AS TEXT)" if is_file else f"(CAST(body AS jsonb) ->> '{name}')"


def _index(connection: Connection) -> None:
    """Indexes the fields that are looked up; where they cannot be made, a lookup takes longer and finds the same."""
    known = set() if connection.dialect.name == "sqlite" else {
        index["name"] for index in sa.inspect(connection).get_indexes(_ENTRIES.name)
    }  # fmt: skip
    for name in _INDEXED:
        if f"book_entries_{name}" in known:
            continue
        with suppress(DatabaseError), connection.begin_nested():
            connection.execute(sa.text(
                f"CREATE INDEX IF NOT EXISTS book_entries_{name} ON {_ENTRIES.name} (book, {_expression(connection, name)})"
            ))  # fmt: skip


def is_address(place: str) -> bool:
    """True if a place is a database's URL, and no file."""
    return "://" in place


def _line(error: Exception) -> str:
    """The cause in one line."""
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]
