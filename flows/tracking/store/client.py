"""The MLflow client of a tracking store: opened once in each process, patient, and plain when a call fails."""

from __future__ import annotations

import logging
import os
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bandana.flows.folder.private_files import make_file
from bandana.flows.folder.sqlite_file import refusal
from bandana.flows.tracking.store.address import TrackingAddress, default_artifacts
from bandana.flows.tracking.store.errors import Patient, TrackingError, advice
from bandana.flows.tracking.store.layout import Tables, lay_out, tables_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.store.entities import PagedList
    from sqlalchemy import Connection

T = TypeVar("T")
TAG_LENGTH = 8000
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    # Who waits and tries again is `Patient`, the same for every kind of store; MLflow's own patience is four minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
_SQLITE_PATIENCE = 60  # seconds that a writer waits for another one


class TrackingStore:
    """A tracking store and its MLflow client, which is opened at the first call.

    Attributes:
      address: where the store is.
      root: the folder on this machine that holds the default store.
      folder: the folder of a SQLite store; else the same.
    """

    def __init__(self, address: TrackingAddress, data_dir: Path) -> None:
        self.address, self._data_dir = address, data_dir
        self.root = Path(data_dir).absolute() / "mlflow"
        self.folder = self.root if address.database is None else address.database.parent

    @property
    def client(self) -> MlflowClient:
        """MLflow's client, which waits out short outages."""
        return Patient(self.impatient)  # type: ignore[return-value]

    @cached_property
    def impatient(self) -> MlflowClient:
        """MLflow's client itself, whose calls fail at once."""
        self._set_environment()
        from mlflow import MlflowClient  # 2 seconds: not when `--help` is all that is asked

        logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # "Creating tables", tracebacks
        logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
        with default_artifacts(None if self.address.artifacts is None else self.artifact_location("")):
            return MlflowClient(tracking_uri=self.uri)

    def lay_out(self) -> None:
        """Gives a SQLite store its tables where they are missing; call while no other process of ours does."""
        if self.address.database is not None:
            self._set_environment()
            lay_out(self.address.database)

    def _set_environment(self) -> None:
        names = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
        for name, value in zip(names, (self.address.user, self.address.password), strict=True):
            if value:
                os.environ[name] = value
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)

    @property
    def uri(self) -> str:
        """The address as MLflow takes it; with PostgreSQL it may hold a password."""
        return f"{self.address.uri}?timeout={_SQLITE_PATIENCE}" if self.address.kind == "sqlite" else self.address.uri

    def artifact_location(self, suite: str) -> str:
        """Where a suite's artifacts lie, as a URI; the root of all of them for an empty name."""
        root = str(self.address.artifacts)
        location = root if "://" in root else Path(root).absolute().as_uri()
        return f"{location}/{suite}".rstrip("/")

    @contextmanager
    def explained(self, suite: str | None = None) -> Iterator[None]:
        """Turns what MLflow, its database and the disk say into one sentence with an advice, without any password.

        `suite` names the experiment that is asked for.
        """
        try:
            yield
        except (TrackingError, FileNotFoundError):
            raise
        except Exception as error:
            words = None if isinstance(error, ValueError) else advice(error, self.address, self.root, suite)
            self.address.clean(error)
            if words is None:
                raise
            raise TrackingError(words) from error

    def __reduce__(self) -> tuple[object, ...]:
        return TrackingStore, (self.address, self._data_dir)  # a client holds connections; each process opens its own


def touch(address: TrackingAddress) -> None:
    """Touches the store once: MLflow itself would try a broken one for minutes before it says so.

    Raises:
      TrackingError: an upgrade of a SQLite store was interrupted; MLflow can neither use nor upgrade it.
    """
    if address.kind == "http":
        try:
            with urllib.request.urlopen(f"{address.uri}/health", timeout=10):
                pass
        except urllib.error.HTTPError:
            pass  # it answers; what it thinks of us shows at the first call
    elif address.kind == "postgresql":
        with _connected(address):
            pass
    else:
        assert address.database is not None
        make_file(address.database)  # SQLite gives its journals the same mode
        with closing(sqlite3.connect(address.database, timeout=_SQLITE_PATIENCE, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            database.execute("ROLLBACK")
            # As durable as SQLite's default, at a third of its waits for the disk; and whoever reads keeps nobody waiting.
            with suppress(sqlite3.OperationalError):  # a file system that cannot: then as before
                database.execute("PRAGMA journal_mode = WAL")
        if tables_of(address.database) is Tables.TORN:
            raise TrackingError(
                f"{Tables.TORN.value} in {address.database}: put back the copy from before `mlflow db upgrade`, or move the "
                "file away; finished results are kept and logged anew"
            )


def probe(store: TrackingStore) -> str:
    """Reads a store, and writes to it in a transaction that is rolled back; returns which of it was done, in one line.

    Nothing is laid out.

    Raises:
      TrackingError: the store cannot be read or written, or a kill left a part of its tables.
    """
    address = store.address
    with store.explained():
        if address.database is not None:
            tables = tables_of(address.database)
            if tables is Tables.NONE:
                return f"{tables.value}; the next run lays them out"
            if tables is Tables.PART:
                raise TrackingError(f"{address.database}: {tables.value}; the next `bandana run` lays them out anew")
        touch(address)
        store.client.search_experiments(max_results=1)
        if address.kind == "http":
            return "its server answers and lists experiments; whether it takes runs shows when one is written"
        if address.database is not None:
            if (reason := refusal(address.database, "experiments")) is not None:
                raise TrackingError(f"{address.database} cannot be written ({reason}): check its permissions and its disk")
        else:
            from sqlalchemy import text

            with _connected(address) as connection:
                connection.execute(text("UPDATE experiments SET name = name WHERE experiment_id = 0"))
                connection.rollback()
    return "its store can be read and written"


@contextmanager
def _connected(address: TrackingAddress) -> Iterator[Connection]:
    from sqlalchemy import create_engine

    engine = create_engine(address.uri)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def pages(search: Callable[..., PagedList[T]], **arguments: object) -> list[T]:
    """All results of one of MLflow's searches, page after page."""
    items: list[T] = []
    token = None
    while True:
        page = search(**arguments, page_token=token)
        items += page
        if not (token := page.token):
            return items
