"""Which store is chosen, what is refused before any work, that passwords stay out of sight, and that short outages pass."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest
from http_answers import answering
from typer.testing import CliRunner

from bandana.flows.cli import app
from bandana.flows.texts.mistakes import SpecError
from bandana.flows.tracking.store import errors
from bandana.flows.tracking.store.address import ARTIFACTS_VARIABLE, URI_VARIABLE, TrackingAddress
from bandana.flows.tracking.store.errors import Patient, advice, is_passing
from bandana.flows.tracking.tracker import Tracker, TrackingError

SECRET = "p@ss/w:rd %1"
QUOTED = "p%40ss%2Fw%3Ard%20%251"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (URI_VARIABLE, ARTIFACTS_VARIABLE, "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


# --- which store ----------------------------------------------------------------------------------


def test_the_default_is_sqlite_in_the_data_folder_whatever_other_projects_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://somewhere.example:5000")
    address = TrackingAddress.chosen(tmp_path)
    assert (address.kind, address.database) == ("sqlite", tmp_path / "mlflow" / "mlflow.db")
    assert address.artifacts == str(tmp_path / "mlflow" / "artifacts")
    monkeypatch.setenv(URI_VARIABLE, "http://127.0.0.1:5000/")
    address = TrackingAddress.chosen(tmp_path)
    assert (address.kind, address.uri, address.artifacts) == ("http", "http://127.0.0.1:5000", None)


def test_a_sqlite_file_of_ones_own_choice_is_used_and_locked_beside_itself(tmp_path: Path) -> None:
    database = tmp_path / "elsewhere" / "runs.db"
    one, two = (Tracker(tmp_path / name, f"sqlite:///{database}") for name in ("one", "two"))
    number = one.experiment("demo", "text")
    assert two.experiment("demo", "text") == number
    assert database.exists()
    # Two data folders, one database: their locks must be the same files.
    assert (database.parent / "locks" / "suite-demo.lock").exists()
    assert not (tmp_path / "one" / "mlflow" / "locks").exists()


def test_an_address_of_postgresql_keeps_its_options_and_never_waits_forever(tmp_path: Path) -> None:
    pytest.importorskip("psycopg2")
    address = TrackingAddress.parse(f"postgresql://me:{QUOTED}@db.example:5433/mlflow?sslmode=require", tmp_path)
    assert address.uri.startswith(f"postgresql+psycopg2://me:{QUOTED}@db.example:5433/mlflow?")
    assert "connect_timeout=10" in address.uri
    assert "sslmode=require" in address.uri
    assert address.shown == "postgresql://me@db.example:5433/mlflow?sslmode=require"


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("mysql://me:p%40ss@host/db", "unknown scheme 'mysql'"),
        ("postgres://me:p%40ss@host/db", "write postgresql://"),
        ("databricks", "unknown scheme ''"),
        ("./mlruns", "unknown scheme ''"),
        ("http://", "names no host"),
        ("https://me:p%40ss@host:5000/?x=1", "ends before"),
        ("postgresql://me:p%40ss@host", "names no database"),
        ("postgresql://me:p/p%40ss@host/db", "its host or port cannot be read"),
        ("http://host:port/", "its host or port cannot be read"),
        ("sqlite://", "sqlite:////absolute/path.db"),
        ("sqlite:///:memory:", "sqlite:////absolute/path.db"),
        ("postgresql+pg8000://me:p%40ss@host/db", "unknown scheme"),
    ],
)
def test_a_wrong_address_is_told_with_what_is_allowed_and_without_the_password(tmp_path: Path, uri: str, told: str) -> None:
    with pytest.raises(SpecError, match=told) as error:
        TrackingAddress.parse(uri, tmp_path)
    assert URI_VARIABLE in str(error.value)
    assert "p%40ss" not in str(error.value)


def test_a_missing_driver_is_told_with_the_way_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SpecError, match=r'needs the driver psycopg2: pip install "bandana-dp\[postgres\]"'):
        TrackingAddress.parse("postgresql://me@host/db", tmp_path)


def test_a_command_refuses_a_wrong_address_before_any_work(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from bandana.flows.cli import main; main()", "ui", "--data", str(tmp_path / "data")],
        env={**os.environ, URI_VARIABLE: f"mysql://me:{QUOTED}@host/db"}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {URI_VARIABLE}: unknown scheme 'mysql'")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("scheme", ["postgresql", "http"])
def test_a_store_that_does_not_answer_is_one_line_and_its_traceback_shows_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    if scheme == "postgresql":
        pytest.importorskip("psycopg2")
    monkeypatch.setenv(URI_VARIABLE, f"{scheme}://me:{QUOTED}@127.0.0.1:9/db")
    for options in ([], ["--debug"]):
        done = CliRunner().invoke(app, ["ui", "--data", str(tmp_path / "data"), *options])
        assert done.exit_code == 1, done.output
        # With --debug, Python prints the traceback.
        told = "".join(traceback.format_exception(done.exception)) if options else done.stderr
        assert "does not answer" in told
        assert isinstance(done.exception, TrackingError if options else SystemExit)
        if not options:
            assert len(told.splitlines()) == 1
        for secret in (SECRET, QUOTED):
            assert secret not in done.output + told


# --- passwords ------------------------------------------------------------------------------------


@pytest.mark.parametrize("uri", [f"postgresql://me:{QUOTED}@host/db", f"postgresql://me@host/db?password={QUOTED}",
                                 f"https://me:{QUOTED}@host"])  # fmt: skip
def test_a_password_is_in_nothing_that_is_shown(tmp_path: Path, uri: str) -> None:
    if uri.startswith("postgresql"):
        pytest.importorskip("psycopg2")
    address = TrackingAddress.parse(uri, tmp_path)
    for text in (repr(address), str(address), address.shown, address.mask(f"cannot reach {uri}: {SECRET} is wrong")):
        assert SECRET not in text
        assert QUOTED not in text
    assert "***" in address.mask(SECRET)
    # A traceback prints the causes, too.
    error = OSError(5, f"high: {uri}")
    error.__cause__ = RuntimeError(f"low: {SECRET}")
    address.clean(error)
    assert SECRET not in str(error)
    assert QUOTED not in str(error)
    assert str(error.__cause__) == "low: ***"


def test_the_credentials_of_a_server_come_from_its_address_or_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = TrackingAddress.parse(f"http://me:{QUOTED}@host:5000", tmp_path)
    assert (address.uri, address.user, address.password) == ("http://host:5000", "me", SECRET)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "you")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "other")
    address = TrackingAddress.parse("http://host:5000", tmp_path)
    assert (address.user, address.password) == ("you", "other")
    assert address.mask("other") == "***"


# --- outages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Max retries exceeded (Caused by ResponseError('too many 503 error responses'))", True),
        ("[Errno 111] Connection refused", True),
        ("server closed the connection unexpectedly", True),
        ("FATAL: the database system is starting up", True),
        ("database is locked", True),
        ("connection failed: FATAL: password authentication failed for user", False),
        ('FATAL: database "x" does not exist', False),
        ("failed with error code 401 != 200", False),
        ("PERMISSION_DENIED: Permission denied", False),
        ("INVALID_PARAMETER_VALUE: Changing param values is not allowed. run 403401", False),
        ("database or disk is full", False),
        ("[Errno 28] No space left on device", False),
    ],
)
def test_only_what_passes_by_itself_is_tried_again(text: str, expected: bool) -> None:
    assert is_passing(RuntimeError(text)) is expected


def test_a_call_is_tried_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "PAUSES", (0.0, 0.0))

    class Broken:
        calls = 0

        def call(self, error: Exception) -> None:
            self.calls += 1
            raise error

    for error, expected in ((ConnectionRefusedError(111, "Connection refused"), 3), (ValueError("yours"), 1)):
        broken = Broken()
        with pytest.raises(type(error)):
            Patient(broken).call(error)
        assert broken.calls == expected


class _Flaky(BaseHTTPRequestHandler):
    """Answers 503 as often as the list says, then as an empty MLflow."""

    failures: ClassVar[list[int]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        status = self.failures.pop() if self.failures and self.path != "/health" else 200
        body = json.dumps({"experiments": []} if status == 200 else {"error_code": "TEMPORARILY_UNAVAILABLE"}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def flaky() -> Iterator[str]:
    _Flaky.failures = []
    with answering(_Flaky) as url:
        yield url


def test_a_server_that_is_away_for_a_moment_is_waited_for(
    flaky: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "PAUSES", (0.05, 0.1))
    _Flaky.failures = [503, 502]
    tracker = Tracker(tmp_path, flaky)
    assert tracker.mark_dead_runs() == 0
    assert _Flaky.failures == []
    _Flaky.failures = [503] * 10
    with pytest.raises(TrackingError, match=r"does not answer \(too many 503 error responses\).*same command again"):
        tracker.mark_dead_runs()
    assert len(_Flaky.failures) == 7, "tried three times"
    _Flaky.failures = [400] * 10
    with pytest.raises(TrackingError, match="failed"):
        tracker.mark_dead_runs()
    assert len(_Flaky.failures) == 9, "a mistake is not tried again"


def test_a_tracker_travels_to_another_process_without_its_connections(tmp_path: Path) -> None:
    tracker = Tracker(tmp_path)
    number = tracker.experiment("demo", "text")
    copied = pickle.loads(pickle.dumps(tracker))
    assert "_opened" not in vars(copied._store)
    assert copied.experiment("demo", "text") == number


def test_a_full_disk_of_the_database_is_told_as_such(tmp_path: Path) -> None:
    address = TrackingAddress.parse(None, tmp_path)
    told = advice(RuntimeError("(sqlite3.OperationalError) database or disk is full"), address, tmp_path)
    assert told is not None
    assert told.startswith(f"the disk that holds {tmp_path} is full: free some space and run again")
