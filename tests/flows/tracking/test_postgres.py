"""PostgreSQL as the tracking store, on a server of its own: the same runs as on SQLite, also from several machines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from postgres_server import PASSWORD, QUOTED, PostgresServer, why_not

from bandana.flows.tracking.store.address import URI_VARIABLE
from bandana.flows.tracking.tracker import CellRecord, Tracker, TrackingError

pytest.importorskip("psycopg2", reason='no PostgreSQL driver: pip install "bandana-dp[postgres]"')
pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

GRID = [1, 10, 100]
CELL = CellRecord(
    run_key="c" * 16,
    name="adar-ucb tight eps=1",
    params={"algorithm": "adar-ucb", "calibration": "tight", "epsilon": 1.0},
    tags={"environment": "bernoulli"},
    metrics={"regret/final": 9.0, "privacy/epsilon_accounted": 0.8},
    curves={"regret/mean": (GRID, [1.0, 4.0, 9.0])},
    dataset={"name": "bernoulli", "digest": "d1", "source": "{}", "columns": ["a", "b"], "profile": {"rows": 100}},
)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    running.start()
    try:
        running.execute("CREATE DATABASE fresh")
        yield running
    finally:
        running.stop()
        running.remove()


@pytest.fixture(scope="module")
def fresh(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database that MLflow has laid out; the others are copies of it."""
    address = f"{server.uri('fresh')}?application_name=layout"
    place = str(tmp_path_factory.mktemp("layout"))
    program = f"from bandana.flows.tracking.tracker import Tracker; Tracker({place!r}, {address!r})"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)  # its connections end with it
    return "fresh"


@pytest.fixture
def database(server: PostgresServer, fresh: str, request: pytest.FixtureRequest) -> str:
    name = f"t{abs(hash(request.node.name)) % 10**8}"
    server.execute(f"CREATE DATABASE {name} TEMPLATE {fresh}")
    return name


@pytest.fixture
def open_tracker(server: PostgresServer, database: str, tmp_path: Path) -> Callable[[str], Tracker]:
    """A tracker as another machine has it: the same database, a data folder of its own."""
    return lambda machine: Tracker(tmp_path / machine, server.uri(database))


def client_of(tracker: Tracker) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracker.address.uri)


def all_runs(tracker: Tracker) -> list[Any]:
    client = client_of(tracker)
    return list(client.search_runs([e.experiment_id for e in client.search_experiments()]))


def test_a_cell_is_the_same_on_postgresql(open_tracker: Callable[[str], Tracker], tmp_path: Path) -> None:
    tracker = open_tracker("one")
    run_id = tracker.log_cell("demo", CELL)
    assert open_tracker("two").log_cell("demo", CELL) == run_id
    (run,) = all_runs(tracker)
    assert run.info.status == "FINISHED"
    assert run.data.params == {key: str(value) for key, value in CELL.params.items()}
    assert run.data.metrics == {**CELL.metrics, "regret/mean": 9.0}
    assert {"suite": "demo", "role": "cell", "environment": "bernoulli", "attempt": "1"}.items() <= run.data.tags.items()
    history = client_of(tracker).get_metric_history(run_id, "regret/mean")
    assert [(point.step, point.value) for point in history] == [(1, 1.0), (10, 4.0), (100, 9.0)]
    (used,) = run.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest, used.dataset.profile) == ("bernoulli", "d1", '{"rows": 100}')
    # Where files go does not depend on the working directory.
    assert run.info.artifact_uri.startswith((tmp_path / "one" / "mlflow" / "artifacts" / "demo").as_uri())
    found = client_of(tracker).search_runs(
        [run.info.experiment_id], "params.algorithm = 'adar-ucb' and metrics.\"privacy/epsilon_accounted\" < 1"
    )
    assert [one.info.run_id for one in found] == [run_id]


def test_machines_that_write_one_cell_at_once_make_one_run(open_tracker: Callable[[str], Tracker]) -> None:
    trackers = [open_tracker(f"machine {number}") for number in range(4)]
    barrier = threading.Barrier(len(trackers))

    def write(tracker: Tracker) -> list[str]:
        barrier.wait()
        return [tracker.log_cell("demo", replace(CELL, run_key=f"key{n}", name=f"cell {n}")) for n in range(5)]

    with ThreadPoolExecutor(len(trackers)) as pool:
        written = list(pool.map(write, trackers))
    assert len({tuple(ids) for ids in written}) == 1
    runs = all_runs(trackers[0])
    assert len(runs) == 5
    for run in runs:
        assert len(client_of(trackers[0]).get_metric_history(run.info.run_id, "regret/mean")) == len(GRID)
        assert len(run.inputs.dataset_inputs) == 1


def test_a_lock_excludes_another_machine_and_goes_with_its_holder(
    open_tracker: Callable[[str], Tracker], server: PostgresServer, database: str
) -> None:
    one, two = open_tracker("one"), open_tracker("two")
    order = []

    def wait() -> None:
        with two._locks.hold("key"):
            order.append("two")

    waiter = threading.Thread(target=wait)
    with one._locks.hold("key"):
        waiter.start()
        time.sleep(0.5)
        order.append("one")
    waiter.join(20)
    assert order == ["one", "two"]
    # A holder whose connection is cut holds nothing: another may enter at once.
    with one._locks.hold("key"):
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
            f"AND database = (SELECT oid FROM pg_database WHERE datname = '{database}')"
        )
        with two._locks.hold("key"):
            order.append("again")
    assert order[-1] == "again"


def test_a_database_that_stops_and_comes_back(
    open_tracker: Callable[[str], Tracker], server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = open_tracker("one")
    first = tracker.log_cell("demo", CELL)
    monkeypatch.setattr("bandana.flows.tracking.store.errors.PAUSES", (0.1, 0.2))
    server.stop()
    try:
        with pytest.raises(TrackingError, match=r"does not answer .*start it.*the same command again") as told:
            tracker.log_cell("demo", replace(CELL, run_key="other"))
        with pytest.raises(TrackingError, match="does not answer"):
            open_tracker("two")
        assert PASSWORD not in str(told.value)
    finally:
        server.start()
    # The same tracker goes on; nothing is lost and nothing is double.
    second = tracker.log_cell("demo", replace(CELL, run_key="other", name="other"))
    assert {run.info.run_id for run in all_runs(tracker)} == {first, second}
    # A short outage is waited out: the call sees none of it.
    monkeypatch.setattr("bandana.flows.tracking.store.errors.PAUSES", (1.0, 4.0, 10.0))
    server.stop()
    restart = threading.Timer(1.5, server.start)
    restart.start()
    try:
        third = tracker.experiment("demo", "changed while the database was away")
    finally:
        restart.join()
    assert client_of(tracker).get_experiment(third).tags["mlflow.note.content"].startswith("changed")


@pytest.mark.parametrize(("change", "told"), [("password", "password authentication"), ("database", "does not exist")])
def test_a_database_that_refuses_is_told_without_the_password(
    server: PostgresServer, tmp_path: Path, change: str, told: str
) -> None:
    uri = server.uri("postgres", "wr0ng-Secret") if change == "password" else server.uri("absent")
    with pytest.raises(TrackingError, match=rf"denies access .*{told}.*check user, password and database") as error:
        Tracker(tmp_path, uri)
    links: list[BaseException | None] = [error.value, error.value.__cause__, error.value.__context__]
    assert not any(secret in str(link) for link in links for secret in ("wr0ng-Secret", PASSWORD, QUOTED))


def start(spec: Path, data: Path, uri: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from bandana.flows.cli import main; main()", "run", str(spec), "--data", str(data)],
        env={**os.environ, URI_VARIABLE: uri}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, (out, err)
    for secret in (PASSWORD, QUOTED):
        assert secret not in out + err
    return out


def test_a_run_left_running_is_resumed_on_postgresql(open_tracker: Callable[[str], Tracker]) -> None:
    run_id = open_tracker("one").log_cell("demo", CELL)
    client_of(open_tracker("one")).update_run(run_id, status="RUNNING")
    assert open_tracker("two").log_cell("demo", CELL) == run_id
    (run,) = all_runs(open_tracker("two"))
    assert (run.info.status, run.data.tags["attempt"]) == ("FINISHED", "2")


@pytest.mark.nightly
def test_a_run_that_is_killed_is_resumed_and_a_rerun_adds_nothing(
    server: PostgresServer, database: str, open_tracker: Callable[[str], Tracker], write_spec: Any, tmp_path: Path
) -> None:
    """In `make test`: a run that is left RUNNING, above; what a killed command leaves is `test_kill`'s."""
    levels = [round(0.1 * k, 1) for k in range(1, 25)]
    spec = write_spec(
        horizon=100, replications=4, name="killed", twins=False, references=False, algorithms__1__privacy__epsilon=levels
    )
    data = tmp_path / "data"
    process = start(spec, data, server.uri(database))
    finished = "SELECT count(*) FROM runs WHERE status = 'FINISHED'"
    deadline = time.monotonic() + 200
    while server.execute(finished, database)[0][0] < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = {run.data.tags["run_key"]: run for run in all_runs(open_tracker("looking"))}
    done = {key for key, run in kept.items() if run.info.status == "FINISHED"}
    assert 3 <= len(done) <= len(levels), "killed too late to show anything"
    out = finish(start(spec, data, server.uri(database)))
    assert "report.html" in out
    tracker = open_tracker("looking")
    cells = [run for run in all_runs(tracker) if run.data.tags["role"] == "cell"]
    assert sorted(run.info.run_name for run in cells) == sorted(["ucb", *(f"adar-ucb tight eps={x:g}" for x in levels)])
    assert {run.info.status for run in cells} == {"FINISHED"}
    by_key = {run.data.tags["run_key"]: run for run in cells}
    for key in kept:
        assert by_key[key].info.run_id == kept[key].info.run_id
        assert by_key[key].data.tags["attempt"] == ("1" if key in done else "2")
    before = {run.info.run_id: run.to_dictionary() for run in all_runs(tracker)}
    finish(start(spec, data, server.uri(database)))
    assert {run.info.run_id: run.to_dictionary() for run in all_runs(tracker)} == before
    # Nothing went to the default store, and the password to no file.
    assert not (data / "mlflow" / "mlflow.db").exists()
    for path in data.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert PASSWORD.encode() not in content, path
            assert QUOTED.encode() not in content, path
