"""Where MLflow's runs are kept: SQLite in the data folder, or what BANDANA_TRACKING_URI names; no password is ever shown.

MLFLOW_TRACKING_URI is not read: shells have it set for other projects, and the runs of private data would go there.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, quote, quote_plus, unquote, urlencode, urlsplit

from bandana.flows.texts.mistakes import SpecError
from bandana.flows.tracking.store.mlflow_private import ARTIFACT_ROOT

URI_VARIABLE = "BANDANA_TRACKING_URI"
ARTIFACTS_VARIABLE = "BANDANA_ARTIFACT_ROOT"
_SECRET_FIELDS = ("password", "sslpassword")
_DRIVERS = ("psycopg2", "psycopg")  # the first that is installed; SQLAlchemy's own choice changed between its versions
_POSTGRESQL = ("postgresql", *(f"postgresql+{driver}" for driver in _DRIVERS))
_KNOWN = "http://, https://, postgresql:// and sqlite:////absolute/path.db"
_CONNECT_TIMEOUT = 10  # seconds; the driver's own patience has no end
_MASK = "***"


@dataclass(frozen=True)
class TrackingAddress:
    """Address of one MLflow tracking store.

    Attributes:
      kind: what answers there.
      uri: for MLflow; may hold a password, so it is neither shown nor part of `repr`.
      shown: the same without the password, for people.
      secrets: every spelling of the password.
      user: of an HTTP server, or None.
      password: of an HTTP server, or None.
      database: the file of a SQLite store, or None.
      artifacts: where files go: a folder or a URI; None where a server decides.
    """

    kind: Literal["sqlite", "postgresql", "http"]
    uri: str = field(repr=False)
    shown: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    database: Path | None = None
    artifacts: str | None = None

    @classmethod
    def chosen(cls, data_dir: Path) -> TrackingAddress:
        """Address that the environment names; without it, SQLite in the data folder.

        Raises:
          SpecError: BANDANA_TRACKING_URI cannot be used; the message shows no password.
        """
        return cls.parse(os.environ.get(URI_VARIABLE) or None, data_dir)

    @classmethod
    def parse(cls, uri: str | None, data_dir: Path) -> TrackingAddress:
        """Reads an address; None is SQLite in the data folder.

        Raises:
          SpecError: the scheme is unknown, a part is missing, or the driver is not installed.
        """
        root = Path(data_dir).absolute() / "mlflow"
        artifacts = os.environ.get(ARTIFACTS_VARIABLE) or str(root / "artifacts")
        if uri is None:
            return _sqlite(root / "mlflow.db", artifacts)
        try:
            parts = urlsplit(uri)
            _ = parts.port  # read late, and wrong ones are told late
        except ValueError:  # its text may hold a piece of the password
            raise SpecError(
                f"{URI_VARIABLE}: its host or port cannot be read (write / @ : in a password as %2F %40 %3A); "
                f"known are {_KNOWN}"
            ) from None
        if parts.scheme in ("http", "https"):
            return _http(parts)
        if parts.scheme in _POSTGRESQL:
            return _postgresql(parts, artifacts)
        if parts.scheme == "sqlite":
            # sqlite:////absolute and sqlite:///relative; as SQLAlchemy reads them.
            path = unquote(parts.path)[1:]
            if parts.netloc or not path or path == ":memory:" or parts.query:
                raise SpecError(f"{URI_VARIABLE}: a SQLite address is sqlite:////absolute/path.db, nothing else")
            return _sqlite(Path(path).absolute(), artifacts)
        scheme = parts.scheme if "://" in uri else ""
        hint = "; write postgresql://" if scheme == "postgres" else ""
        raise SpecError(f"{URI_VARIABLE}: unknown scheme {scheme!r}{hint}; known are {_KNOWN}")

    def mask(self, text: str) -> str:
        """The text without the password, however it is spelled there."""
        for secret in self.secrets:
            text = text.replace(secret, _MASK)
        return text

    def clean(self, error: BaseException) -> None:
        """Takes the password out of an error and all its causes: a traceback prints them."""
        seen: set[int] = set()
        pending: list[BaseException | None] = [error]
        while pending:
            link = pending.pop()
            if link is None or id(link) in seen:
                continue
            seen.add(id(link))
            link.args = tuple(self.mask(arg) if isinstance(arg, str) else arg for arg in link.args)
            for name in (*vars(link), *(("strerror",) if isinstance(link, OSError) else ())):
                if isinstance(value := getattr(link, name), str):
                    setattr(link, name, self.mask(value))
            pending += [link.__cause__, link.__context__]


@contextmanager
def default_artifacts(location: str | None) -> Iterator[None]:
    """While a client opens a new database: where the artifacts of MLflow's default experiment go.

    Nothing is ever put there. MLflow would write the working directory into a statement that it composes, which both kinds
    of quotes in the name of that directory break. The location is a URI without quotes, or None where a server decides.
    """
    if location is None:
        yield
        return
    before = os.environ.get(ARTIFACT_ROOT)
    os.environ[ARTIFACT_ROOT] = location
    try:
        yield
    finally:
        os.environ.pop(ARTIFACT_ROOT)
        if before is not None:
            os.environ[ARTIFACT_ROOT] = before


def _sqlite(database: Path, artifacts: str) -> TrackingAddress:
    if "?" in str(database):  # where the options of an address begin
        raise SpecError(f"--data: {str(database.parent)!r} holds a '?', which MLflow's database cannot have in its path")
    uri = f"sqlite:///{database}"
    return TrackingAddress("sqlite", uri, uri, database=database, artifacts=artifacts)


def _http(parts: SplitResult) -> TrackingAddress:
    if not parts.hostname:
        raise SpecError(f"{URI_VARIABLE}: names no host, such as http://127.0.0.1:5000")
    if parts.query or parts.fragment:
        raise SpecError(f"{URI_VARIABLE}: a server's address ends before '?' and '#', such as http://127.0.0.1:5000")
    # MLflow writes addresses into its messages: the password travels apart from them.
    uri = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
    user = unquote(parts.username) if parts.username else os.environ.get("MLFLOW_TRACKING_USERNAME")
    password = unquote(parts.password) if parts.password else os.environ.get("MLFLOW_TRACKING_PASSWORD")
    secrets = _spellings(password, parts.password)
    return TrackingAddress("http", uri, uri, secrets=secrets, user=user, password=password)


def _postgresql(parts: SplitResult, artifacts: str) -> TrackingAddress:
    wanted = parts.scheme.partition("+")[2]
    drivers = [name for name in ([wanted] if wanted else _DRIVERS) if importlib.util.find_spec(name) is not None]
    if not drivers:
        raise SpecError(
            f'{URI_VARIABLE}: PostgreSQL needs the driver {wanted or _DRIVERS[0]}: pip install "bandana-dp[postgres]"'
        )
    if not parts.path.strip("/"):
        raise SpecError(f"{URI_VARIABLE}: names no database, such as postgresql://user:password@host:5432/mlflow")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    hidden = [query[name] for name in _SECRET_FIELDS if name in query]
    secrets = _spellings(parts.password, unquote(parts.password or ""), *hidden)
    shown_query = urlencode({k: v for k, v in query.items() if k not in _SECRET_FIELDS})
    address, host = parts.netloc.rpartition("@")[0], parts.netloc.rpartition("@")[2]
    shown = parts._replace(netloc=f"{address.partition(':')[0]}@{host}" if address else host, query=shown_query)
    whole = parts._replace(
        scheme=f"postgresql+{drivers[0]}", query=urlencode({"connect_timeout": str(_CONNECT_TIMEOUT), **query})
    )
    return TrackingAddress("postgresql", whole.geturl(), shown.geturl(), secrets=secrets, artifacts=artifacts)


def _spellings(*secrets: str | None) -> tuple[str, ...]:
    forms = {form for secret in secrets if secret for form in (secret, quote(secret, safe=""), quote_plus(secret))}
    return tuple(sorted(forms, key=len, reverse=True))
