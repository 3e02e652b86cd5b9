"""A real MLflow server with basic authentication: who may write, what happens when it dies, and that nothing is lost."""

from __future__ import annotations

import os
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

from bandana.flows.tracking.address import URI_VARIABLE
from bandana.flows.tracking.tracker import Tracker, TrackingError

pytest.importorskip("flask_wtf", reason='no authentication for the server: pip install "mlflow[auth]"')
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
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
                [sys.executable, "-m", "mlflow", *command], cwd=self.folder, stdout=log, stderr=log,
                env={**os.environ, **settings}, start_new_session=True,
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


def test_who_lacks_a_grant_is_told_of_the_experiment_and_of_the_command(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner runs the command as it is printed, and then the same call succeeds."""
    from mlflow.server.auth.client import AuthServiceClient

    ann = "ann's-own-password-1"
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "admin")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    assert Tracker(tmp_path, server.url).experiment("shared", "text")
    AuthServiceClient(server.url).create_user("ann", ann)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ann")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", ann)
    with pytest.raises(TrackingError, match="denies ann access to the experiment 'shared'") as refused:
        Tracker(tmp_path, server.url).experiment("shared", "text")
    message = str(refused.value)
    assert "\n" not in message
    assert ann not in message
    command = message.partition("grants it with: ")[2]
    owner = {**os.environ, "MLFLOW_TRACKING_USERNAME": "admin", "MLFLOW_TRACKING_PASSWORD": PASSWORD}
    owner["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{owner['PATH']}"
    subprocess.run(["sh", "-c", command], env=owner, check=True, cwd=tmp_path)
    assert Tracker(tmp_path, server.url).experiment("shared", "text")


@pytest.mark.nightly
def test_a_server_that_dies_in_the_middle_costs_nothing_that_was_finished(
    server: Server, write_spec: Any, tmp_path: Path
) -> None:
    """In `make test`: a server that is away for a moment or for good (`test_tracking_address`), and a run left RUNNING."""
    levels = [round(0.1 * k, 1) for k in range(1, 9)]
    spec = write_spec(horizon=100, replications=4, name="outage", algorithms__1__privacy__epsilon=levels)
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
