"""What `bandana prune` removes from MLflow and from Prefect's history, and what it never does."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from mlflow import MlflowClient
from mlflow.entities import ViewType
from mlflow.exceptions import MlflowException
from typer.testing import CliRunner

from bandana.audits.evidence import seal
from bandana.flows.annexes.operations.prefect_history import History, old_history
from bandana.flows.annexes.operations.prune import prune_history, prune_runs
from bandana.flows.cli import app
from bandana.flows.folder.settings import DataFolder
from bandana.flows.servers.prefect_health import DATABASE
from bandana.flows.tracking.superseded import BASELINE, EVIDENCE, YOUNG
from bandana.flows.tracking.tracker import CellRecord, Tracker

DAY = 86400.0


def _record(key, name, *artifacts):
    return CellRecord(run_key=key, name=name, metrics={"regret/final": 1.0}, artifacts=list(artifacts))


@pytest.fixture
def tracked(data, tmp_path):
    """A suite whose cells were superseded, but for one; what their runs are called -> id."""
    tracker, evidence = Tracker(data), {}
    for name in ("listed", "nobodys"):
        evidence[name] = tmp_path / f"{name}.npz"
        evidence[name].write_bytes(seal({"name": name}, {}))
    plain = tmp_path / "notes.txt"
    plain.write_text("x" * 5000)
    runs = {
        "old": tracker.log_cell("demo", _record("old", "a", plain, evidence["nobodys"])),
        "listed": tracker.log_cell("demo", _record("listed", "b", evidence["listed"])),
        "baseline": tracker.log_cell("demo", _record("baseline", "c")),
        "young": tracker.log_cell("demo", _record("young", "d")),
        "report": tracker.log_suite("demo", "report", {}, {}, [plain]),
        "someone's": tracker.log_cell("demo", _record("someones", "e")),
    }
    tracker.mark_baseline("demo", {"c"})
    for name in "abcde":
        runs[f"new {name}"] = tracker.log_cell("demo", _record(f"new-{name}", name))
    runs["new report"] = tracker.log_suite("demo", "new-report", {}, {}, [plain])
    client, then = MlflowClient(tracking_uri=tracker.address.uri), int((time.time() - 40 * DAY) * 1000)
    for name, run_id in runs.items():
        if name != "young":
            client.set_terminated(run_id, end_time=then)
    client.delete_run(runs["someone's"])  # by hand, on MLflow's page
    sha256 = evidence["listed"].read_bytes()[-64:].decode()
    place = DataFolder(data).suite("demo")
    place.mkdir(parents=True)
    (place / "report.json").write_text(json.dumps({"evidence": {"files": [{"path": "evidence/b.npz", "sha256": sha256}]}}))
    return client, runs


def test_superseded_runs_that_nothing_stands_on_are_removed_for_good(data, tracked):
    client, runs = tracked
    folder = DataFolder(data)
    files = Path(client.get_run(runs["old"]).info.artifact_uri.removeprefix("file://"))
    assert len([*files.rglob("*.*")]) == 2
    tried = prune_runs(folder, 30 * DAY, is_dry=True)
    assert client.get_run(runs["old"]).info.lifecycle_stage == "active"
    found = prune_runs(folder, 30 * DAY)
    assert found == tried
    (removed,) = found.removed
    assert (removed.run_id, removed.suite, removed.name, found.is_purged) == (runs["old"], "demo", "a", True)
    assert removed.n_bytes > 5000
    assert found.kept == {YOUNG: 1, BASELINE: 1, EVIDENCE: 1}
    assert not files.parent.exists()
    with pytest.raises(MlflowException, match="not found"):
        client.get_run(runs["old"])
    experiments = [each.experiment_id for each in client.search_experiments()]
    everything = client.search_runs(experiments, run_view_type=ViewType.ALL)
    assert {run.info.run_id for run in everything} == {*runs.values()} - {runs["old"]}
    assert prune_runs(folder, 30 * DAY).removed == ()
    # The same cell again: its run is written anew.
    assert Tracker(data).log_cell("demo", _record("old", "a")) not in runs.values()


def test_a_run_that_became_current_again_stays(data, tracked):
    client, runs = tracked
    tracker = Tracker(data)
    found, _ = tracker.superseded.find((time.time() - 30 * DAY) * 1000, ())
    assert runs["old"] in {run.run_id for run in found}
    assert Tracker(data).log_cell("demo", _record("old", "a")) == runs["old"]
    tracker.superseded.remove([run for run in found if run.run_id == runs["old"]])
    assert client.get_run(runs["old"]).info.lifecycle_stage == "active"


def test_without_a_store_none_is_made(tmp_path):
    folder = DataFolder(tmp_path)
    assert prune_runs(folder, DAY).removed == ()
    assert prune_history(folder, DAY) is None
    assert not os.listdir(tmp_path)


def _insert(database, table, **values):
    """A row with what is given, and something wherever a column asks for a value."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    row = {}
    for _, name, kind, is_needed, default, _ in database.execute(f"PRAGMA table_info({table})"):
        if name in values:
            row[name] = values[name]
        elif is_needed and default is None:
            number = any(word in kind for word in ("INT", "FLOAT", "BOOL", "NUM"))
            row[name] = now if "TIME" in kind or "DATE" in kind else 0 if number else "{}" if "JSON" in kind else "x"
    names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
    database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [*row.values()])


@pytest.fixture
def history(data):
    """Flow runs that ended 40 days and one day ago and one that runs, one with a child, each with a log; and events."""
    place = data / "prefect" / DATABASE
    ids = {name: str(uuid4()) for name in ("flow", "old", "child", "young", "running")}
    with closing(sqlite3.connect(place)) as database:
        old, young = ((datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%d %H:%M:%S.%f") for days in (40, 1))
        _insert(database, "flow", id=ids["flow"], name="suite")
        for name, state, end in (
            ("old", "COMPLETED", old), ("child", "FAILED", old), ("young", "COMPLETED", young), ("running", "RUNNING", None),
        ):  # fmt: skip
            run = {"id": ids[name], "flow_id": ids["flow"], "name": name, "state_type": state, "end_time": end}
            task = str(uuid4())
            if name == "child":
                _insert(database, "task_run", id=ids["flow"], flow_run_id=ids["old"], task_key="t", dynamic_key="1")
                run["parent_task_run_id"] = ids["flow"]
            _insert(database, "flow_run", **run)
            _insert(database, "task_run", id=task, flow_run_id=ids[name], task_key="t", dynamic_key="0")
            _insert(database, "log", id=str(uuid4()), flow_run_id=ids[name], timestamp=old)
        for when in (old, old, young):
            _insert(database, "events", id=str(uuid4()), occurred=when)
        database.commit()
    return place


def _counts(place):
    with closing(sqlite3.connect(place)) as database:
        tables = ("flow_run", "task_run", "log", "events", "flow")
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        return {table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


def test_old_history_is_counted_and_stays_in_a_dry_run(data, history):
    before = _counts(history)
    assert old_history(history.parent, 30 * DAY) == History(flow_runs=2, events=2)
    assert old_history(history.parent, 50 * DAY) == History(0, 0)
    shown = CliRunner().invoke(app, ["prune", "--dry-run", "--data", str(data)])
    assert "Prefect, would be removed: 2 flow runs with their logs, 2 events\n" in shown.stdout, shown.output
    assert _counts(history) == before


@pytest.mark.nightly
def test_old_history_is_removed_by_prefects_own_means(data, history):
    command = [sys.executable, "-m", "bandana", "prune", "--keep", "30d", "--json", "--data", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)["prefect"]
    assert (found["flow_runs"], found["events"]) == (2, 2)
    assert _counts(history) == {"flow_run": 2, "task_run": 2, "log": 2, "events": 1, "flow": 1}
    assert old_history(history.parent, 30 * DAY) == History(0, 0)


def test_a_database_of_another_prefect_is_left_alone(tmp_path):
    home = tmp_path / "prefect"
    home.mkdir()
    with closing(sqlite3.connect(home / DATABASE)) as database:
        database.execute("CREATE TABLE flow_run (id TEXT)")
        database.commit()
    before = (home / DATABASE).read_bytes()
    assert prune_history(DataFolder(tmp_path), DAY) is None
    assert (home / DATABASE).read_bytes() == before
