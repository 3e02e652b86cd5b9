"""Durable store of live policies: a SQLite file, or tables of a PostgreSQL database.

`live_policies` and `live_releases` hold what anybody may read. `live_records` and `live_states` are sensitive: contexts,
rewards and exact sums in them are encrypted if the policy has a key. Every method of a `Session` belongs to one transaction,
alone on its policy, which is stored whole when it ends, or not at all.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, RowMapping
from sqlalchemy.exc import DatabaseError, SQLAlchemyError

from bandana.flows.texts.mistakes import BookError

FORMAT = 1
"""Version of the tables."""
PATIENCE = 30.0
"""Seconds to wait for other processes."""
_META = sa.MetaData()
_NAME = 120
POLICIES = sa.Table(
    "live_policies", _META,
    sa.Column("policy", sa.String(_NAME), primary_key=True), sa.Column("format", sa.Integer, nullable=False),
    sa.Column("identity", sa.String(40), nullable=False), sa.Column("settings", sa.Text, nullable=False),
    sa.Column("book", sa.Text), sa.Column("asked", sa.Integer, nullable=False),
    sa.Column("entered", sa.Integer, nullable=False), sa.Column("releases", sa.Integer, nullable=False),
    sa.Column("time", sa.Float, nullable=False), sa.Column("released", sa.LargeBinary, nullable=False),
)  # fmt: skip
STATES = sa.Table(
    "live_states", _META,
    sa.Column("policy", sa.String(_NAME), primary_key=True), sa.Column("sensitive", sa.LargeBinary, nullable=False),
    sa.Column("salt", sa.LargeBinary, nullable=False),
)  # fmt: skip
RECORDS = sa.Table(
    "live_records", _META,
    sa.Column("policy", sa.String(_NAME), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("id", sa.String(64), nullable=False), sa.Column("person", sa.String(64)),
    sa.Column("action", sa.Integer, nullable=False), sa.Column("asked", sa.Float, nullable=False),
    sa.Column("coins", sa.LargeBinary, nullable=False), sa.Column("context", sa.LargeBinary),
    sa.Column("reward", sa.LargeBinary), sa.Column("entered", sa.Boolean, nullable=False),
    sa.UniqueConstraint("policy", "id"), sa.Index("live_records_waiting", "policy", "entered", "action", "number"),
)  # fmt: skip
RELEASES = sa.Table(
    "live_releases", _META,
    sa.Column("policy", sa.String(_NAME), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("mechanism", sa.Text, nullable=False), sa.Column("cost", sa.Text, nullable=False),
    sa.Column("start", sa.Integer, nullable=False), sa.Column("stop", sa.Integer, nullable=False),
    sa.Column("arm", sa.Integer), sa.Column("scale", sa.Float, nullable=False), sa.Column("output", sa.Text, nullable=False),
)  # fmt: skip
TABLES = (POLICIES, STATES, RECORDS, RELEASES)
_OWN = "policy"


class StoreError(BookError):
    """A store that cannot be used; the message is one line, and nothing was stored."""


class Store:
    """A policy's place.

    Args:
      address: path of a SQLite file, or `postgresql://HOST/DATABASE#NAME`; its password comes from PGPASSWORD or `.pgpass`.
      is_durable: False leaves out waiting for the disk, for audits in a temporary folder.

    Raises:
      StoreError: the address names no policy, or holds a password.
    """

    def __init__(self, address: str, *, is_durable: bool = True) -> None:
        self.address, self._is_durable = address, is_durable
        self._path: Path | None = Path(address)
        self._url, self.policy = f"sqlite:///{address}", _OWN
        if "://" in address:
            self._path = None
            self._url, self.policy = urldefrag(address)
            if urlsplit(self._url).password is not None:
                raise StoreError(f"{self._url.split('@')[-1]}: leave the password out; give it in PGPASSWORD or ~/.pgpass")
            if not self.policy:
                raise StoreError(f"store {address}: the address must end with the policy's name, such as {address}#prompts")
        self._engine: Engine | None = None
        self._process, self._file = 0, (0, 0)

    def exists(self) -> bool:
        """True if the policy is there; a SQLite file that is missing is not created."""
        if self._path is not None and not self._path.exists():
            return False
        with self.session() as session:
            return session.policy() is not None

    def create(self) -> None:
        """Creates the file, readable by its owner alone, and the tables."""
        try:
            if self._path is not None and not self._path.exists():
                self._path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreError(f"store {self.address} cannot be created: {error.strerror}") from error
        with self.session() as session:
            session.create_tables()

    @contextmanager
    def session(self) -> Iterator[Session]:
        """One transaction, alone on the policy.

        Raises:
          StoreError: the database is lost, damaged, full, or locked by others; nothing was stored.
        """
        try:
            with self._connected().begin() as connection:
                if self._path is None:
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE:g}s'")
                    alone = "SELECT pg_advisory_xact_lock(hashtext(%s))"
                    connection.exec_driver_sql(alone, (f"bandana live {self.policy}",))
                yield Session(connection, self.policy)
                self._check_file()
        except (SQLAlchemyError, ModuleNotFoundError) as error:
            self.close()
            raise StoreError(f"store {self._shown}: {_words(error)}; nothing was stored") from error

    def close(self) -> None:
        """Closes all connections."""
        if self._engine is not None and self._process == os.getpid():
            self._engine.dispose()
        self._engine = None

    @property
    def _shown(self) -> str:
        return self._url if self._path is None else str(self._path)

    def _connected(self) -> Engine:
        """The engine of this process: connections do not survive a fork, nor a file its replacement."""
        if self._engine is None or self._process != os.getpid():
            self._engine, self._process = self._new_engine(), os.getpid()
            if self._path is not None:
                if not self._path.exists():
                    self._engine = None
                    raise StoreError(f"store {self._shown}: there is no such file; open it with settings to make one")
                status = self._path.stat()
                self._file = status.st_dev, status.st_ino
        self._check_file()
        return self._engine

    def _check_file(self) -> None:
        """Refuses a file that was removed or replaced: what is written to it would be lost without a word."""
        if self._path is None:
            return
        try:
            status = self._path.stat()
        except OSError as error:
            self.close()
            raise StoreError(f"store {self._shown}: the file is gone; nothing was stored: restore it") from error
        if (status.st_dev, status.st_ino) != self._file:
            self.close()
            raise StoreError(f"store {self._shown}: the file was replaced by another one while it was open; open it again")

    def _new_engine(self) -> Engine:
        if self._path is None:
            return sa.create_engine(self._url, pool_pre_ping=True)
        engine = sa.create_engine(self._url, connect_args={"timeout": PATIENCE, "check_same_thread": False})
        level = "FULL" if self._is_durable else "OFF"

        def prepare(connection: sa.PoolProxiedConnection, _: object) -> None:
            connection.isolation_level = None  # the driver begins transactions late
            # A call that makes a checkpoint waits for two more syncs: fewer than one in a hundred calls should.
            for pragma in ("journal_mode=WAL", f"synchronous={level}", "secure_delete=ON", "wal_autocheckpoint=4000"):
                connection.execute(f"PRAGMA {pragma}")

        sa.event.listen(engine, "connect", prepare)
        sa.event.listen(engine, "begin", lambda link: link.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine


# Statements are made once: SQLAlchemy takes longer to make one than a database to run it.
_OF = "policy_of"
_SELECTS = {table.name: sa.select(table).where(table.c.policy == sa.bindparam(_OF)) for table in TABLES}
_INSERTS = {table.name: sa.insert(table) for table in TABLES}
_RELEASED = _SELECTS[RELEASES.name].where(RELEASES.c.number > sa.bindparam("after")).order_by(RELEASES.c.number)
_BY_ID = _SELECTS[RECORDS.name].where(RECORDS.c.id == sa.bindparam("hashed"))
_ANY = (
    _SELECTS[RECORDS.name].where(
        RECORDS.c.entered.is_(False), RECORDS.c.number < sa.bindparam("before"), RECORDS.c.asked <= sa.bindparam("latest")
    ).order_by(RECORDS.c.number).limit(sa.bindparam("most"))
)  # fmt: skip
_WAITING = {False: _ANY, True: _ANY.where(RECORDS.c.action == sa.bindparam("arm"))}


@cache
def _update(table: sa.Table, names: tuple[str, ...], is_numbered: bool) -> sa.Update:
    chosen = sa.update(table).where(table.c.policy == sa.bindparam(_OF))
    if is_numbered:
        chosen = chosen.where(table.c.number == sa.bindparam("place"))
    return chosen.values({name: sa.bindparam(name) for name in names})


class Session:
    """One transaction on one policy."""

    def __init__(self, connection: Connection, policy: str) -> None:
        self._connection, self._policy = connection, policy

    def _rows(self, table: sa.Table) -> sa.CursorResult[tuple[object, ...]]:
        return self._connection.execute(_SELECTS[table.name], {_OF: self._policy})

    def create_tables(self) -> None:
        """Creates the tables where they are missing."""
        _META.create_all(self._connection)

    def policy(self) -> RowMapping | None:
        """The policy's public row; None if it was never opened here."""
        if not sa.inspect(self._connection).has_table(POLICIES.name):
            return None
        return self.status()

    def status(self) -> RowMapping | None:
        """The policy's public row, where the tables are known to be there."""
        return self._rows(POLICIES).mappings().first()

    def state(self) -> RowMapping:
        """The sensitive state and the salt."""
        return self._rows(STATES).mappings().one()

    def releases(self, after: int = 0) -> Sequence[RowMapping]:
        """Released rows beyond a number, in order."""
        chosen = self._connection.execute(_RELEASED, {_OF: self._policy, "after": after})
        rows: Sequence[RowMapping] = chosen.mappings().all()
        return rows

    def record(self, hashed: str) -> RowMapping | None:
        """A record by the hash of its id."""
        return self._connection.execute(_BY_ID, {_OF: self._policy, "hashed": hashed}).mappings().first()

    def waiting(self, arm: int | None, most: int, *, before: int, asked_by: float, or_told: bool) -> Sequence[RowMapping]:
        """Oldest records that have not entered.

        Args:
          arm: of this arm alone; None: of any action.
          most: how many.
          before: only asks with a smaller number.
          asked_by: only asks up to this time, in seconds.
          or_told: also later ones whose reward is there; of the oldest, then, as nobody overtakes.
        """
        wanted = {_OF: self._policy, "arm": arm, "most": most, "before": before, "latest": math.inf if or_told else asked_by}
        kept = []
        for row in self._connection.execute(_WAITING[arm is not None], wanted).mappings():
            if row["asked"] > asked_by and row["reward"] is None:
                break
            kept.append(row)
        return kept

    def insert(self, table: sa.Table, **values: object) -> None:
        """Adds a row of the policy."""
        self._connection.execute(_INSERTS[table.name], {"policy": self._policy, **values})

    def update(self, table: sa.Table, number: int | None = None, **values: object) -> None:
        """Changes the policy's row, or the numbered one."""
        changed = _update(table, tuple(values), number is not None)
        self._connection.execute(changed, {_OF: self._policy, "place": number, **values})

    def everything(self) -> dict[str, list[dict[str, object]]]:
        """All rows of the policy, by table."""
        return {table.name: [dict(row) for row in self._rows(table).mappings()] for table in TABLES}

    def put(self, rows: Mapping[str, list[dict[str, object]]]) -> None:
        """Adds all rows of a policy under the name that it has here."""
        for table in TABLES:
            for row in rows[table.name]:
                self._connection.execute(sa.insert(table).values({**row, "policy": self._policy}))


def _words(error: Exception) -> str:
    """The cause in one line."""
    line = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    if "disk is full" in line or "No space left" in line:
        return "the disk is full"
    if "locked" in line or "lock timeout" in line:
        return f"locked by another process for {PATIENCE:g} s"
    if isinstance(error, DatabaseError) and ("malformed" in line or "not a database" in line):
        return f"damaged ({line}); restore it from a snapshot"
    return f"the database cannot be used ({line})"
