"""A real MLflow server with basic authentication: who may write, what happens when it dies, and that nothing is lost."""

from __future__ import annotations

import base64
import os
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from listening import listening
from typer.testing import CliRunner

from bandana.flows.cli import app
from bandana.flows.tracking.store.address import URI_VARIABLE
from bandana.flows.tracking.tracker import CellRecord, Tracker, TrackingError

pytest.importorskip("flask_wtf", reason='no authentication for the server: pip install "mlflow[auth]"')
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
PASSWORD = "c0rrect horse/battery"
QUOTED = "c0rrect%20horse%2Fbattery"


class Server:
    """The server of `mlflow/README.md`: the configuration of this repository, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copy(ROOT / "mlflow" / "basic_auth.ini", folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        settings = {
            "MLFLOW_BACKEND_STORE_URI": f"sqlite:///{self.folder}/mlflow.db",
            "MLFLOW_ARTIFACTS_DESTINATION": str(self.folder / "artifacts"),
            "MLFLOW_AUTH_CONFIG_PATH": str(self.folder / "basic_auth.ini"),
            "MLFLOW_FLASK_SERVER_SECRET_KEY": "0" * 64,
            "MLFLOW_AUTH_ADMIN_PASSWORD": PASSWORD,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }
        command = ["server", "--app-name", "basic-auth", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bandana.flows.tracking.team_server", *command], cwd=self.folder,
                stdout=log, stderr=log, env={**os.environ, **settings}, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 200
        while True:
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/health", timeout=2):
                return
            assert self._process.poll() is None, (self.folder / "server.log").read_text()
            assert time.monotonic() < deadline, (self.folder / "server.log").read_text()
            time.sleep(0.3)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def runs(self) -> list[tuple[str, str, str, str]]:
        """(key, run id, status, attempt) of every cell, also of those that were deleted, from the server's database."""
        query = (
            "SELECT k.value, r.run_uuid, r.status, a.value FROM runs r "
            "JOIN tags k ON k.run_uuid = r.run_uuid AND k.key = 'run_key' "
            "JOIN tags a ON a.run_uuid = r.run_uuid AND a.key = 'attempt' "
            "JOIN tags l ON l.run_uuid = r.run_uuid AND l.key = 'role' AND l.value = 'cell'"
        )
        with closing(sqlite3.connect(f"file:{self.folder}/mlflow.db?mode=ro", uri=True, timeout=20)) as database:
            return [tuple(row) for row in database.execute(query)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("server"))
    running.start()
    try:
        yield running
    finally:
        running.kill()


def start(spec: Path, data: Path, uri: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from bandana.flows.cli import main; main()", "run", str(spec), "--data", str(data)],
        env={**os.environ, URI_VARIABLE: uri}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_server_listens_on_loopback_alone(server: Server) -> None:
    assert listening(server._process.pid) == {("127.0.0.1", server.port)}


def test_a_server_lets_in_who_has_the_password(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(f"{server.url}/api/2.0/mlflow/experiments/search?max_results=1", timeout=10)
    assert error.value.code == 401
    with pytest.raises(TrackingError, match=r"denies access .*set MLFLOW_TRACKING_USERNAME"):
        Tracker(tmp_path, server.url)
    with pytest.raises(TrackingError, match="denies access") as refused:
        Tracker(tmp_path, f"http://admin:wr0ng-Secret@127.0.0.1:{server.port}")
    assert "wr0ng-Secret" not in f"{refused.value} {refused.value.__cause__}"
    tracker = Tracker(tmp_path, f"http://admin:{QUOTED}@127.0.0.1:{server.port}")
    assert tracker.experiment("allowed", "text")
    assert tracker.compare_url("allowed").startswith(f"{server.url}/#/experiments/")
    with pytest.raises(TrackingError, match="no second server is needed"):
        tracker.server_arguments()


def test_nobody_reaches_the_assistant_whose_tools_run_commands_on_the_server(server: Server) -> None:
    """Without a login as with one; MLflow itself lets every user in."""
    login = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
    for headers in ({}, {"Authorization": f"Basic {login}"}):
        for path in ("config", "providers", "message"):
            request = urllib.request.Request(f"{server.url}/ajax-api/3.0/mlflow/assistant/{path}", headers=headers)
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=20)
            assert refused.value.code == 404
    with urllib.request.urlopen(urllib.request.Request(server.url, headers=headers), timeout=20) as page:
        assert b"data-assistant-ui" in page.read()  # its button is hidden


@pytest.fixture
def log_in(monkeypatch: pytest.MonkeyPatch, server: Server) -> Any:
    """Makes this process somebody's: later calls have that login."""

    def become(user: str, password: str) -> None:
        monkeypatch.setenv(URI_VARIABLE, server.url)
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", user)
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", password)

    return become


def bandana(*words: str, typed: str = "") -> Any:
    return CliRunner().invoke(app, [*words], input=typed)


def test_who_lacks_a_grant_is_told_of_the_experiment_and_of_the_command(server: Server, tmp_path: Path, log_in: Any) -> None:
    """The owner runs the command as it is printed, and then the same call succeeds; also a reader may not write."""
    ann = "ann's-own-password-1"
    log_in("admin", PASSWORD)
    assert Tracker(tmp_path, server.url).experiment("shared", "text")
    assert bandana("account", "ann", typed=f"{ann}\n").output == "created: ann\n"
    for level in ("NOTHING", "READ"):
        if level == "READ":
            assert bandana("share", "shared", "ann").output == "ann may READ the experiment 'shared'\n"
        log_in("ann", ann)
        with pytest.raises(TrackingError, match="denies ann access to the experiment 'shared'") as refused:
            Tracker(tmp_path, server.url).experiment("shared", "text")
        message = str(refused.value)
        assert "EDIT is missing" in message
        assert "\n" not in message
        assert ann not in message
        log_in("admin", PASSWORD)
    prefix, _, command = message.partition("grants it with: ")[2].partition("bandana ")
    assert prefix == f"{URI_VARIABLE}={server.url} "
    assert bandana(*shlex.split(command)).output == "ann may EDIT the experiment 'shared'\n"
    log_in("ann", ann)
    assert Tracker(tmp_path, server.url).experiment("shared", "text")
    tracker = Tracker(tmp_path, server.url)
    run = tracker.log_cell("shared", CellRecord("of-ann", "a cell"))
    assert tracker._store.client.get_run(run).data.tags["mlflow.user"] == "ann"
    done = bandana("share", "shared", "admin", "--may", "READ")
    assert done.exit_code == 1
    assert "does not let ann share the experiment 'shared'" in done.stderr
    log_in("admin", PASSWORD)
    assert bandana("share", "shared", "ann", "--may", "NOTHING").output == "ann may NOTHING in the experiment 'shared'\n"
    log_in("ann", ann)
    with pytest.raises(TrackingError, match="denies ann access"):
        Tracker(tmp_path, server.url).experiment("shared", "text")


def test_accounts_are_made_changed_and_removed_by_who_may(server: Server, log_in: Any) -> None:
    first, second = "bob's first word", "bob's second word"
    log_in("admin", PASSWORD)
    assert bandana("account", "bob", typed=f"{first}\n").output == "created: bob\n"
    log_in("bob", first)
    assert bandana("account", "bob", typed=f"{second}\n").output == "changed: the password of bob\n"
    for words, typed, code, told in (
        (["account", "bob"], f"{first}\n", 1, "denies access to bob"),  # the password is another one by now
        (["account", "bob"], "short\n", 2, "must have at least 12 characters, got 5"),
    ):
        done = bandana(*words, typed=typed)
        assert (done.exit_code, told in done.stderr) == (code, True), done.output
    log_in("bob", second)
    for words, typed in (
        (["account", "eve"], f"{first}\n"),
        (["account", "admin"], f"{first}\n"),
        (["account", "--remove", "admin"], ""),
    ):
        done = bandana(*words, typed=typed)
        assert done.exit_code == 1
        assert "only an administrator can" in done.stderr
        assert first not in done.output
    log_in("admin", PASSWORD)
    assert bandana("account", "bob", "--remove").output == "removed: bob\n"
    done = bandana("account", "bob", "--remove")
    assert (done.exit_code, "bob" in done.stderr) == (1, True)
    done = bandana("share", "no such suite", "bob")
    assert (done.exit_code, "Traceback" in done.output) == (1, False)


@pytest.mark.parametrize("uri", ["", "sqlite:////tmp/a.db"])
def test_only_a_server_has_users(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URI_VARIABLE, uri)
    done = bandana("account", "ann", typed="a password of ann\n")
    assert done.exit_code == 2
    assert "only an MLflow server has users" in done.stderr


def test_a_server_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URI_VARIABLE, "http://127.0.0.1:9")
    done = bandana("share", "suite", "ann")
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert "does not answer" in done.stderr


@pytest.mark.nightly
def test_a_server_that_dies_in_the_middle_costs_nothing_that_was_finished(
    server: Server, write_spec: Any, tmp_path: Path
) -> None:
    """In `make test`: a server that is away for a moment or for good (`test_tracking_address`), and a run left RUNNING."""
    levels = [round(0.1 * k, 1) for k in range(1, 9)]
    spec = write_spec(
        horizon=100, replications=4, name="outage", twins=False, references=False, algorithms__1__privacy__epsilon=levels
    )
    data, uri = tmp_path / "data", f"http://admin:{QUOTED}@127.0.0.1:{server.port}"
    process = start(spec, data, uri)
    deadline = time.monotonic() + 300
    while sum(status == "FINISHED" for _, _, status, _ in server.runs()) < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    server.kill()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, (out, err)
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert f"the MLflow server {server.url} does not answer" in lines[0]
    assert "finished work is kept; run the same command again" in lines[0]
    assert "Traceback" not in err
    results = {path: path.stat().st_mtime_ns for path in (data / "results").rglob("*.npz")}
    assert len(results) == 1 + len(levels)
    kept = {key: (run_id, status) for key, run_id, status, _ in server.runs()}
    assert 3 <= len(kept) <= len(levels), "killed too late to show anything"
    server.start()
    out2, err2 = start(spec, data, uri).communicate(timeout=300)
    assert "report.html" in out2, (out2, err2)
    runs = server.runs()
    assert sorted(key for key, *_ in runs) == sorted({key for key, *_ in runs})
    assert len(runs) == 1 + len(levels)
    assert {status for _, _, status, _ in runs} == {"FINISHED"}
    for key, run_id, _, attempt in runs:
        if key in kept:
            assert run_id == kept[key][0]
            assert attempt == ("1" if kept[key][1] == "FINISHED" else "2")
    assert {path: path.stat().st_mtime_ns for path in (data / "results").rglob("*.npz")} == results
    for text in (out, err, out2, err2):
        assert PASSWORD not in text
        assert QUOTED not in text
