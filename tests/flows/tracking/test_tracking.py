"""One run a cell, whatever happens: reruns, crashes, audits that come later, two writers at once."""

from __future__ import annotations

import base64
import json
import math
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bandana.flows.keys import provenance
from bandana.flows.keys.checkout import checkout
from bandana.flows.tracking.comparison_view import (
    VIEW_KEY,
    VIEW_TAG,
    compare_page,
    comparison_state,
    encode_view,
    run_color,
)
from bandana.flows.tracking.descriptions import NOTE
from bandana.flows.tracking.experiments import IS_NIGHT, NIGHTS
from bandana.flows.tracking.tracker import CellRecord, Tracker, TrackingError

TAG_LIMIT = 5000  # characters; older servers take no more in an experiment's tag
ROOT = Path(__file__).parents[3]
GRID = [1, 10, 100, 1000]
CELL = CellRecord(
    run_key="a" * 16,
    name="adar-ucb tight eps=1",
    params={"algorithm": "adar-ucb", "calibration": "tight", "epsilon": 1.0, "horizon": 1000},
    tags={"environment": "bernoulli"},
    metrics={"regret/final": 40.0, "privacy/epsilon_claimed": 2.5},
    curves={"regret/mean": (GRID, [1.0, 8.0, 20.0, 40.0]), "privacy/mu_spent": (GRID, [0.0, 0.2, 0.4, 1.0])},
    dataset={"name": "bernoulli", "digest": "d" * 50, "source": '{"means": [0.5, 0.4]}'},
)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with an empty database: laying one out takes seconds, copying it none."""
    folder = tmp_path_factory.mktemp("fresh")
    Tracker(folder)
    return folder


@pytest.fixture
def open_tracker(fresh: Path, tmp_path: Path) -> Callable[[], Tracker]:
    """Opens the same store anew, as a second process would."""
    shutil.copytree(fresh, tmp_path / "data")
    return lambda: Tracker(tmp_path / "data")


@pytest.fixture
def tracker(open_tracker: Callable[[], Tracker]) -> Tracker:
    return open_tracker()


def client_of(tracker: Tracker) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracker.address.uri)


def all_runs(tracker: Tracker) -> list[Any]:
    client = client_of(tracker)
    return list(client.search_runs([e.experiment_id for e in client.search_experiments()]))


def points(tracker: Tracker, run_id: str, key: str) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in client_of(tracker).get_metric_history(run_id, key)]


def names_of(tracker: Tracker, run_id: str) -> set[str]:
    return {item.path for item in client_of(tracker).list_artifacts(run_id)}


# --- one run a cell -------------------------------------------------------------------------------


def test_a_cell_is_one_flat_finished_run_with_everything_that_finds_it_again(tracker: Tracker) -> None:
    run_id = tracker.log_cell("demo", CELL)
    (run,) = all_runs(tracker)
    assert (run.info.run_id, run.info.status, run.info.run_name) == (run_id, "FINISHED", CELL.name)
    assert "mlflow.parentRunId" not in run.data.tags
    expected = {"suite": "demo", "role": "cell", "run_key": CELL.run_key, "attempt": "1"}
    assert run.data.tags["pid"] == str(os.getpid())
    assert expected.items() <= run.data.tags.items()
    assert {"host", "bandana.code", "environment", "mlflow.runColor"} <= set(run.data.tags)
    assert run.data.tags["mlflow.user"] == provenance.user()
    code = checkout()
    assert run.data.tags.get("mlflow.source.git.commit") == (None if code is None else code.commit)
    assert run.data.tags["current"] == "true"
    assert "benchmark" in run.data.tags["mlflow.note.content"]
    assert run.data.params == {k: str(v) for k, v in CELL.params.items()}
    assert points(tracker, run_id, "regret/mean") == list(zip(*CELL.curves["regret/mean"], strict=True))
    assert names_of(tracker, run_id) == {"curves.parquet"}
    (dataset,) = run.inputs.dataset_inputs
    assert (dataset.dataset.name, len(dataset.dataset.digest)) == ("bernoulli", 36)


MADE = {"made.benchmark.began": "2026-11-21T01:00:00+00:00", "made.benchmark.numpy": "2.4.6", "made.benchmark.user": "ann"}


def test_tags_say_how_the_numbers_came_to_be_as_it_is_stored(open_tracker: Callable[[], Tracker]) -> None:
    """Computed again, on another machine or without names: the tags are those of the numbers that are stored now."""
    run_id = open_tracker().log_cell("demo", replace(CELL, provenance=MADE))
    open_tracker().log_cell("demo", replace(CELL, curves={}, provenance={"made.audit.numpy": "2.4.6"}))
    again = {"made.benchmark.began": "2026-11-22T01:00:00+00:00", "made.benchmark.numpy": "2.3.5"}
    assert open_tracker().log_cell("demo", replace(CELL, provenance=again)) == run_id
    (run,) = all_runs(open_tracker())
    made = {key: value for key, value in run.data.tags.items() if key.startswith("made.")}
    assert made == again | {"made.audit.numpy": "2.4.6"}
    assert "bandana.version" not in run.data.tags, "what is installed where it is written made nothing"
    before = run.to_dictionary()
    open_tracker().log_cell("demo", replace(CELL, provenance=again))
    assert all_runs(open_tracker())[0].to_dictionary() == before


def test_a_runs_duration_is_that_of_its_computation(open_tracker: Callable[[], Tracker]) -> None:
    """Also of what an audit adds, and of a run that was killed while it was written."""
    made = {"made.benchmark.began": "2026-11-21T01:00:00+00:00", "made.benchmark.seconds": "90.5"}
    audited = {"made.audit.began": "2026-11-23T05:00:00+00:00", "made.audit.seconds": "9.5"}
    began = round(datetime(2026, 11, 21, 1, tzinfo=UTC).timestamp() * 1000)
    tracker = open_tracker()
    run_id = tracker.log_cell("demo", replace(CELL, provenance=made))
    info = client_of(tracker).get_run(run_id).info
    assert (info.start_time, info.end_time) == (began, began + 90_500)
    assert open_tracker().log_cell("demo", replace(CELL, curves={}, metrics={}, provenance=audited)) == run_id
    info = client_of(tracker).get_run(run_id).info
    assert (info.start_time, info.end_time, info.status) == (began, began + 100_000, "FINISHED")
    client_of(tracker).update_run(run_id, status="RUNNING")
    assert open_tracker().log_cell("demo", replace(CELL, provenance=made)) == run_id
    info = client_of(tracker).get_run(run_id).info
    assert (info.start_time, info.end_time, info.status) == (began, began + 100_000, "FINISHED")


def test_descriptions_link_the_view_the_report_and_the_audit_and_keep_a_readers_words(
    open_tracker: Callable[[], Tracker], tmp_path: Path
) -> None:
    tracker = open_tracker()
    number = tracker.experiment("demo", "What is compared.")
    run_id = tracker.log_cell("demo", CELL)
    client = client_of(tracker)
    compared = f"[all cells compared]({compare_page(number)})"
    assert client.get_run(run_id).data.tags[NOTE].endswith(f"\n\nOpen: {compared}")
    client.set_tag(run_id, NOTE, "My own words.\n\n" + client.get_run(run_id).data.tags[NOTE])
    files = [tmp_path / name for name in ("report.html", "report.pdf", "adar-ucb-tight-eps-1.html")]
    for path in files:
        path.write_text("x")
    for key in ("one", "two"):
        suite_run = open_tracker().log_suite("demo", key, {}, {}, files)
        report = f"[report of the suite](#/experiments/{number}/runs/{suite_run}/artifacts/report.html)"
        audit = f"[audit of this cell](#/experiments/{number}/runs/{suite_run}/artifacts/adar-ucb-tight-eps-1.html)"
        note = client.get_run(run_id).data.tags[NOTE]
        assert note.startswith("My own words.\n\nOne cell of the suite")
        assert note.endswith(f"\n\nOpen: {compared} · {report} · {audit}")
        assert note.count("Open: ") == 1
        assert client.get_run(suite_run).data.tags[NOTE].endswith(f"Open: {compared} · {report}")
        assert client.get_experiment(number).tags[NOTE] == f"What is compared.\n\nOpen: {compared} · {report}"
    open_tracker().experiment("demo", "New words.")
    assert client.get_experiment(number).tags[NOTE] == f"New words.\n\nOpen: {compared} · {report}"
    before = [run.to_dictionary() for run in all_runs(tracker)]
    open_tracker().log_cell("demo", CELL)
    assert [run.to_dictionary() for run in all_runs(tracker)] == before


def test_a_run_without_names_holds_neither_user_nor_host_and_is_still_found_dead(
    open_tracker: Callable[[], Tracker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "machine-of-ann")
    monkeypatch.setenv("BANDANA_ANONYMOUS", "1")
    tracker = open_tracker()
    run_id = tracker.log_cell("demo", CELL)
    tags = client_of(tracker).get_run(run_id).data.tags
    assert "machine-of-ann" not in str(tags)
    assert "mlflow.user" not in tags
    client = client_of(tracker)
    client.update_run(run_id, status="RUNNING")
    client.set_tag(run_id, "pid", "999999999")
    assert open_tracker().mark_dead_runs() == 1


def test_logging_again_changes_nothing(open_tracker: Callable[[], Tracker]) -> None:
    first = open_tracker().log_cell("demo", CELL)
    tracker = open_tracker()
    before = all_runs(tracker)[0].to_dictionary()
    assert tracker.log_cell("demo", CELL) == first
    (run,) = all_runs(tracker)
    assert run.to_dictionary() == before
    for key in ("regret/mean", "privacy/mu_spent"):
        assert len(points(tracker, first, key)) == len(GRID)
    assert len(points(tracker, first, "regret/final")) == 1


def test_an_audit_adds_its_numbers_to_the_run_of_the_benchmark(tracker: Tracker, tmp_path: Path) -> None:
    import pandas as pd

    first = tracker.log_cell("demo", CELL)
    evidence = tmp_path / "audit.npz"
    evidence.write_bytes(b"scores")
    audit = replace(
        CELL,
        metrics={**CELL.metrics, "audit/epsilon_measured": 0.9},
        curves={"audit/power": (GRID, [0.0, 0.1, 0.5, 1.0])},
        artifacts=[evidence],
        params={**CELL.params, "replays": 1000},
        tags={"verdict": "PASS"},
    )
    assert tracker.log_cell("demo", audit) == first
    assert tracker.log_cell("demo", audit) == first
    (run,) = all_runs(tracker)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["audit/epsilon_measured"] == 0.9
    assert run.data.metrics["regret/final"] == 40.0
    assert run.data.params["replays"] == "1000"
    assert run.data.tags["verdict"] == "PASS"
    assert run.data.tags["attempt"] == "1"
    for key in ("audit/power", "regret/mean"):
        assert len(points(tracker, first, key)) == len(GRID)
    assert names_of(tracker, first) == {"curves.parquet", "audit.npz"}
    table = pd.read_parquet(client_of(tracker).download_artifacts(first, "curves.parquet", str(tmp_path)))
    assert table.groupby("curve").size().to_dict() == dict.fromkeys([*CELL.curves, *audit.curves], len(GRID))


def test_a_finished_run_keeps_its_numbers_and_says_so(tracker: Tracker, caplog: pytest.LogCaptureFixture) -> None:
    first = tracker.log_cell("demo", CELL)
    tracker.log_cell("demo", replace(CELL, metrics={"regret/final": 41.0}, params={"horizon": 7}))
    assert points(tracker, first, "regret/final") == [(0, 40.0)]
    assert "keeps its earlier values of horizon, regret/final" in caplog.text


def test_a_metric_that_only_fills_gaps_gives_way_without_a_word(tracker: Tracker, caplog: pytest.LogCaptureFixture) -> None:
    audited = replace(CELL, metrics={"regret/final": 41.0, "privacy/mu_accounted": 0.9}, fills=("regret/final",))
    tracker.log_cell("demo", CELL)
    tracker.log_cell("demo", audited)
    (run,) = all_runs(tracker)
    assert {key: run.data.metrics[key] for key in ("regret/final", "privacy/mu_accounted")} == {
        "regret/final": 40.0, "privacy/mu_accounted": 0.9,
    }  # fmt: skip
    assert "keeps its earlier values" not in caplog.text


def test_two_writers_make_one_run(open_tracker: Callable[[], Tracker]) -> None:
    trackers = [open_tracker() for _ in range(3)]

    def write(tracker: Tracker) -> tuple[str, str]:
        return tracker.experiment("demo", "text"), tracker.log_cell("demo", CELL)

    with ThreadPoolExecutor(3) as pool:
        written = list(pool.map(write, trackers))
    assert len(set(written)) == 1
    assert len(points(trackers[0], written[0][1], "regret/mean")) == len(GRID)


def test_a_suite_run_holds_the_newest_report(tracker: Tracker, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text("old")
    first = tracker.log_suite("demo", CELL.run_key, {"seed": 1}, {"audit/pass": 6}, [report])
    report.write_text("new")
    assert tracker.log_suite("demo", CELL.run_key, {"seed": 1}, {"audit/pass": 6}, [report]) == first
    # A cell of the same key is another run.
    assert tracker.log_cell("demo", CELL) != first
    (run,) = [run for run in all_runs(tracker) if run.info.run_id == first]
    assert (run.data.tags["role"], run.data.metrics) == ("suite", {"audit/pass": 6.0})
    kept = client_of(tracker).download_artifacts(first, "report.html", str(tmp_path / "data"))
    assert Path(kept).read_text() == "new"


# --- what is current ------------------------------------------------------------------------------


def shown(tracker: Tracker, suite: str = "demo") -> set[str]:
    """Keys of the runs that the comparison page lists: its own filter."""
    client = client_of(tracker)
    experiment = client.get_experiment_by_name(suite)
    runs = client.search_runs([experiment.experiment_id], comparison_state()["searchFilter"])
    return {run.data.tags["run_key"] for run in runs}


def test_a_run_of_newer_code_supersedes_the_older_one_and_the_way_back_is_open(open_tracker: Callable[[], Tracker]) -> None:
    old = open_tracker().log_cell("demo", CELL)
    other = open_tracker().log_cell("demo", replace(CELL, run_key="other", name="ucb"))
    new = open_tracker().log_cell("demo", replace(CELL, run_key="newer", metrics={"regret/final": 30.0}))
    tags = {run.info.run_id: run.data.tags for run in all_runs(open_tracker())}
    assert len({old, other, new} & tags.keys()) == 3, "nothing is deleted"
    assert (tags[old]["current"], tags[old]["superseded_by"]) == ("false", new)
    assert shown(open_tracker()) == {"newer", "other"}
    # The older code again: its run is the current one, unchanged otherwise.
    assert open_tracker().log_cell("demo", CELL) == old
    tags = {run.info.run_id: run.data.tags for run in all_runs(open_tracker())}
    assert "superseded_by" not in tags[old]
    assert (tags[new]["current"], tags[new]["superseded_by"]) == ("false", old)
    assert shown(open_tracker()) == {CELL.run_key, "other"}
    assert (len(all_runs(open_tracker())), tags[old]["attempt"]) == (3, "1")


def test_the_baseline_is_tagged_and_a_later_one_takes_its_place(tracker: Tracker) -> None:
    assert tracker.mark_baseline("demo", {"one"}) == 0  # nothing was tracked yet
    for name in ("one", "two"):
        tracker.log_cell("demo", replace(CELL, run_key=name, name=name))
    for wanted, marked in (({"one", "gone"}, ["one"]), ({"two"}, ["two"])):
        assert tracker.mark_baseline("demo", wanted) == 1
        assert [run.info.run_name for run in all_runs(tracker) if run.data.tags.get("baseline") == "true"] == marked


def test_nights_have_an_experiment_of_their_own(open_tracker: Callable[[], Tracker]) -> None:
    by_hand = open_tracker()
    by_hand.experiment("demo", "text")
    by_hand.log_cell("demo", CELL)
    before = IS_NIGHT.set(True)
    try:
        at_night = open_tracker()
        at_night.experiment("demo", "text")
        at_night.log_cell("demo", CELL)
        assert at_night.keep_only("demo", {"another"}) == 1
    finally:
        IS_NIGHT.reset(before)
    experiments = {each.name: each for each in client_of(by_hand).search_experiments() if each.name != "Default"}
    assert sorted(experiments) == ["demo", f"demo{NIGHTS}"]
    for name, current in (("demo", "true"), (f"demo{NIGHTS}", "false")):
        number = experiments[name].experiment_id
        (run,) = client_of(by_hand).search_runs([number])
        assert (run.data.tags["current"], run.data.metrics["regret/final"]) == (current, 40.0)
        assert VIEW_TAG in experiments[name].tags
        assert f"/#/experiments/{number}/" in by_hand.compare_url(name)
    assert experiments[f"demo{NIGHTS}"].artifact_location.endswith("/demo.nights")
    assert names_of(by_hand, client_of(by_hand).search_runs([experiments[f"demo{NIGHTS}"].experiment_id])[0].info.run_id)


def test_a_baseline_is_marked_by_hand_and_at_night_whatever_the_run_is_called(tracker: Tracker) -> None:
    named = replace(CELL, name="adar-ucb tight rdp(2, 1)", tags={"cell": CELL.name})
    tracker.log_cell("demo", named)
    before = IS_NIGHT.set(True)
    tracker.log_cell("demo", named)
    IS_NIGHT.reset(before)
    assert tracker.mark_baseline("demo", {named.name}) == 0
    assert tracker.mark_baseline("demo", {CELL.name}) == 2
    assert [run.data.tags.get("baseline") for run in all_runs(tracker)] == ["true", "true"]
    assert tracker.mark_baseline("demo", {"gone"}) == 0
    assert [run.data.tags.get("baseline") for run in all_runs(tracker)] == [None, None]


def test_a_run_of_an_earlier_version_takes_the_new_name_of_its_cell(open_tracker: Callable[[], Tracker]) -> None:
    run_id = open_tracker().log_cell("demo", CELL)
    named = replace(CELL, name="adar-ucb tight rdp(2, 1)", params={**CELL.params, "promise": "rdp(2, 1)"})
    assert open_tracker().log_cell("demo", named) == run_id
    (run,) = all_runs(open_tracker())
    assert (run.info.run_name, run.data.params["promise"], run.info.status) == (named.name, "rdp(2, 1)", "FINISHED")
    assert run.data.metrics["regret/final"] == 40.0


def test_cells_that_a_spec_no_longer_names_leave_the_page_and_stay_stored(open_tracker: Callable[[], Tracker]) -> None:
    for key in ("one", "two", "three"):
        open_tracker().log_cell("demo", replace(CELL, run_key=key, name=key))
    assert open_tracker().keep_only("demo", {"one", "three"}) == 1
    assert open_tracker().keep_only("demo", {"one", "three"}) == 0
    assert shown(open_tracker()) == {"one", "three"}
    assert len(all_runs(open_tracker())) == 3
    open_tracker().log_cell("demo", replace(CELL, run_key="two", name="two"))
    assert shown(open_tracker()) == {"one", "two", "three"}


def test_a_rerun_asks_once_for_all_cells_and_writes_nothing(
    open_tracker: Callable[[], Tracker], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [replace(CELL, run_key=f"key{n}", name=f"cell {n}") for n in range(5)]
    first = [open_tracker().log_cell("demo", cell) for cell in cells]
    asked: list[str] = []
    tracker = open_tracker()
    client = tracker._store.impatient
    for name in ("search_runs", "log_batch", "log_artifact", "set_tag", "create_run", "get_run", "list_artifacts"):
        real = getattr(client, name)
        monkeypatch.setattr(client, name, lambda *a, _n=name, _r=real, **k: (asked.append(_n), _r(*a, **k))[1])
    assert [tracker.log_cell("demo", cell) for cell in cells] == first
    assert asked == ["search_runs"]


def test_of_two_runs_of_one_key_the_older_stays_current(tracker: Tracker, open_tracker: Callable[[], Tracker]) -> None:
    """What two machines on one server may leave behind: it has no lock to offer."""
    first = tracker.log_cell("demo", CELL)
    client = client_of(tracker)
    (run,) = all_runs(tracker)
    twin = client.create_run(run.info.experiment_id, tags=run.data.tags, run_name=CELL.name).info.run_id
    assert open_tracker().log_cell("demo", replace(CELL, metrics={"audit/epsilon_measured": 0.5})) == first
    tags = {one.info.run_id: one.data.tags for one in all_runs(tracker)}
    assert (tags[first]["current"], tags[twin]["current"]) == ("true", "false")
    assert tags[twin]["superseded_by"] == first


def test_the_dataset_tells_its_columns_and_only_the_facts_that_were_given(tracker: Tracker) -> None:
    data = {"name": "trial.csv", "digest": "abc", "source": "{}", "context": "audit",
            "columns": ["control", "treated"], "profile": {"rows": 40, "reward": [0, 1]}}  # fmt: skip
    tracker.log_cell("demo", replace(CELL, dataset=data))
    (used,) = all_runs(tracker)[0].inputs.dataset_inputs
    columns = json.loads(used.dataset.schema)["mlflow_colspec"]
    assert [column["name"] for column in columns] == ["control", "treated"]
    assert json.loads(used.dataset.profile) == {"rows": 40, "reward": [0, 1]}
    assert [(tag.key, tag.value) for tag in used.tags] == [("mlflow.data.context", "audit")]


# --- crashes --------------------------------------------------------------------------------------


def left_running(tracker: Tracker, pid: int) -> str:
    """A run as a killed process leaves it: some points written, never ended."""
    client = client_of(tracker)
    partial = replace(CELL, curves={"regret/mean": (GRID[:2], [1.0, 8.0])}, metrics={})
    run_id = tracker.log_cell("demo", partial)
    client.update_run(run_id, status="RUNNING")
    client.set_tag(run_id, "pid", str(pid))
    return run_id


def test_a_run_left_running_is_resumed_under_its_own_id(open_tracker: Callable[[], Tracker]) -> None:
    run_id = left_running(open_tracker(), pid=os.getpid())
    tracker = open_tracker()
    assert tracker.log_cell("demo", CELL) == run_id
    (run,) = all_runs(tracker)
    assert (run.info.status, run.data.tags["attempt"]) == ("FINISHED", "2")
    assert points(tracker, run_id, "regret/mean") == list(zip(*CELL.curves["regret/mean"], strict=True))
    assert run.data.metrics["regret/final"] == 40.0


def test_only_runs_of_dead_processes_of_this_host_are_marked(tracker: Tracker) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = left_running(tracker, pid=gone.pid)
    client = client_of(tracker)
    alive = tracker.log_cell("demo", replace(CELL, run_key="alive"))
    elsewhere = tracker.log_cell("demo", replace(CELL, run_key="elsewhere"))
    client.set_tag(elsewhere, "host", "another-machine")
    client.set_tag(elsewhere, "pid", str(gone.pid))
    for run_id in (alive, elsewhere):
        client.update_run(run_id, status="RUNNING")
    assert tracker.mark_dead_runs() == 1
    assert tracker.mark_dead_runs() == 0
    states = {run.info.run_id: run.info.status for run in all_runs(tracker)}
    assert states == {dead: "KILLED", alive: "RUNNING", elsewhere: "RUNNING"}


def test_a_failure_marks_the_run_failed_and_a_rerun_finishes_it(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("mlflow.store.artifact.local_artifact_repo.LocalArtifactRepository.log_artifact", full)
        with pytest.raises(TrackingError, match=r"disk .* is full: free some space"):
            tracker.log_cell("demo", CELL)
    (run,) = all_runs(tracker)
    assert run.info.status == "FAILED"
    assert tracker.log_cell("demo", CELL) == run.info.run_id
    (run,) = all_runs(tracker)
    assert (run.info.status, run.data.tags["attempt"]) == ("FINISHED", "2")
    assert len(points(tracker, run.info.run_id, "regret/mean")) == len(GRID)


# --- what is written ------------------------------------------------------------------------------


def test_nothing_infinite_is_logged(tracker: Tracker) -> None:
    cell = replace(
        CELL,
        params={"algorithm": "ucb", "epsilon": math.inf},
        metrics={
            "regret/final": 3.0,
            "privacy/epsilon_claimed": math.inf,
            "audit/epsilon_measured": math.nan,
        },
        curves={"regret/mean": (GRID, [1.0, math.nan, math.inf, 3.0])},
    )
    run_id = tracker.log_cell("demo", cell)
    (run,) = all_runs(tracker)
    assert set(run.data.metrics) == {"regret/final", "regret/mean"}
    assert run.data.params == {"algorithm": "ucb"}
    assert points(tracker, run_id, "regret/mean") == [(1, 1.0), (1000, 3.0)]


def test_many_curves_and_long_texts_fit(tracker: Tracker) -> None:
    curves = {f"regret/{n}": (range(1, 51), range(n, n + 50)) for n in range(30)}
    cell = replace(CELL, params={"note": "p" * 9000}, tags={"note": "t" * 9000}, curves=curves)
    run_id = tracker.log_cell("demo", cell)
    run = client_of(tracker).get_run(run_id)
    assert (len(run.data.params["note"]), len(run.data.tags["note"])) == (6000, 8000)
    for n in range(30):
        history = client_of(tracker).get_metric_history(run_id, f"regret/{n}")
        assert [(point.step, point.value) for point in history] == [(t, n + t - 1) for t in range(1, 51)]
        assert all(point.timestamp == run.info.start_time + point.step for point in history)


@pytest.mark.parametrize("n_points", [1, 49, 50, 51, 99, 100, 101, 2500])
def test_a_chart_gets_fifty_points_of_a_curve_and_its_last_and_the_table_all(tracker: Tracker, n_points: int) -> None:
    rounds = list(range(1, n_points + 1))
    run_id = tracker.log_cell("demo", replace(CELL, curves={"regret/mean": (rounds, rounds)}))
    shown = [step for step, _ in points(tracker, run_id, "regret/mean")]
    assert len(shown) == n_points if n_points <= 50 else 25 < len(shown) <= 50
    assert shown[-1] == n_points
    assert len({late - early for early, late in pairwise(shown)}) <= 1
    table = pd.read_parquet(client_of(tracker).download_artifacts(run_id, "curves.parquet"))
    assert table["round"].tolist() == rounds


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run_key": "it's"}, "run_key"),
        ({"metrics": {"regret@1": 1.0}}, "regret@1"),
        ({"metrics": {"regret/mean": 1.0}}, "both metrics and curves"),
        ({"curves": {"regret/mean": ([1, 2], [1.0])}}, "2 rounds, 1 values"),
        ({"artifacts": [Path("a/x.npz"), Path("b/x.npz")]}, "different file names"),
    ],
)
def test_a_record_that_mlflow_would_refuse_is_refused_at_once(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CELL, **change)


def test_a_missing_artifact_is_told_before_anything_is_written(tracker: Tracker, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.npz"):
        tracker.log_cell("demo", replace(CELL, artifacts=[tmp_path / "absent.npz"]))
    assert all_runs(tracker) == []


# --- the experiment and its page ------------------------------------------------------------------


def test_the_experiment_carries_its_description_and_the_comparison_page(tracker: Tracker) -> None:
    number = tracker.experiment("demo", "What is compared here.")
    tags = client_of(tracker).get_experiment(number).tags
    assert tracker.experiment("demo", "What is compared here.") == number
    assert client_of(tracker).get_experiment(number).tags == tags
    assert tags["mlflow.note.content"].startswith("What is compared here.\n\nOpen: [all cells compared](#/experiments/")
    assert decode_view(tags[VIEW_TAG]) == comparison_state()
    url = tracker.compare_url("demo", "http://127.0.0.1:5001/")
    assert url == (
        f"http://127.0.0.1:5001/#/experiments/{number}/runs"
        f"?workflowType=machine_learning&compareRunsMode=CHART&viewStateShareKey={VIEW_KEY}"
    )
    with pytest.raises(TrackingError, match="run the suite first"):
        tracker.compare_url("other")
    with pytest.raises(ValueError, match="without '/'"):
        tracker.experiment("a/b", "")


def decode_view(value: str) -> dict:
    """The state inside a saved view's tag, as MLflow's page reads it."""
    kind, _, packed = json.loads(value)["state"].partition(";")
    assert kind == "deflate"
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_the_page_holds_the_charts_and_the_encoding_goes_both_ways() -> None:
    state = comparison_state()
    value = encode_view(state, created_ms=7)
    assert decode_view(value) == state
    assert value == encode_view(comparison_state(), created_ms=7)
    assert len(value) <= TAG_LIMIT
    names = {section["uuid"]: section["name"] for section in state["compareRunSections"]}
    shown = [(names[c["metricSectionId"]], c["type"], c.get("metricKey")) for c in state["compareRunCharts"]]
    assert [chart for chart in shown if chart[0] != "Details"] == [
        ("Regret", "LINE", "regret/mean"),
        ("Regret", "BAR", "regret/final"),
        ("Privacy", "BAR", "privacy/epsilon_claimed"),
        ("Privacy", "BAR", "privacy/epsilon_accounted"),
        ("Privacy", "BAR", "audit/epsilon_measured"),
        ("Privacy", "SCATTER", None),
        ("Privacy", "LINE", "privacy/mu_spent"),
        ("Parameters and results", "PARALLEL", None),
    ]
    assert len({chart["uuid"] for chart in state["compareRunCharts"]}) == len(state["compareRunCharts"])
    assert state["searchFilter"] == "tags.role = 'cell' and tags.current = 'true'"
    assert state["runsHiddenMode"] == "SHOW_ALL"


def test_the_field_names_of_the_page_are_those_of_the_installed_mlflow() -> None:
    import mlflow

    folder = Path(mlflow.__file__).parent / "server" / "js" / "build" / "static" / "js"
    (main,) = folder.glob("main.*.js")
    shipped = main.read_text(encoding="utf-8")
    state = comparison_state()
    items = (state, *state["compareRunCharts"], *state["compareRunSections"])
    absent = {name for item in items for name in item if name not in shipped}
    for chunk in folder.glob("*.chunk.js"):
        if absent:
            text = chunk.read_text(encoding="utf-8")
            absent = {name for name in absent if name not in text}
    assert absent == set()
    assert '"mlflow.sharedViewState."' in shipped
    assert '"deflate;"' in shipped


def test_colors_tell_families_and_epsilons_apart(tracker: Tracker) -> None:
    colors = {run_color(family, epsilon) for family in range(10) for epsilon in (0.1, 1, 10)}
    assert len(colors) == 30
    for key, calibration in (("one", "tight"), ("two", "printed"), ("three", "tight")):
        params = {**CELL.params, "calibration": calibration}
        tracker.log_cell("demo", replace(CELL, run_key=key, params=params))
    shown = {run.data.tags["run_key"]: run.data.tags["mlflow.runColor"] for run in all_runs(tracker)}
    assert shown["one"] == shown["three"] != shown["two"]


def test_a_twin_is_pale_in_the_hue_of_its_cell_and_reference_rows_are_gray(tracker: Tracker) -> None:
    for role in ("reference", "algorithm", "twin"):
        tracker.log_cell("demo", replace(CELL, run_key=role, name=role, params={**CELL.params, "role": role}))
    shown = {run.data.tags["run_key"]: run.data.tags["mlflow.runColor"] for run in all_runs(tracker)}
    parts = {role: [int(color[i : i + 2], 16) for i in (1, 3, 5)] for role, color in shown.items()}
    assert len(set(parts["reference"])) == 1
    (cell, twin) = parts["algorithm"], parts["twin"]
    assert sorted(range(3), key=cell.__getitem__) == sorted(range(3), key=twin.__getitem__)
    assert 0 < max(twin) - min(twin) < (max(cell) - min(cell)) / 2
    assert shown["algorithm"] == run_color(0, CELL.params["epsilon"]), "a reference row takes no hue"


def test_the_server_of_the_store_listens_on_the_loopback_interface_only(tracker: Tracker) -> None:
    arguments, environment = tracker.server_arguments(5005), tracker.server_environment()
    assert arguments[:2] == ["-m", "bandana.flows.tracking.pages_server"]
    assert arguments[arguments.index("--host") + 1] == "127.0.0.1"
    # Not among the arguments: every user of the machine sees those, and an address may hold a password.
    assert tracker.address.uri not in " ".join(arguments)
    assert environment["MLFLOW_BACKEND_STORE_URI"] == tracker.address.uri
    assert environment["MLFLOW_DISABLE_TELEMETRY"] == "true"


# --- errors that help -----------------------------------------------------------------------------


def test_a_data_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(TrackingError, match=r"cannot be written .*: choose another data folder"):
        Tracker(tmp_path / "file")


def test_a_damaged_database_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "mlflow").mkdir()
    (tmp_path / "mlflow" / "mlflow.db").write_bytes(b"no database, yet longer than a header" * 9)
    with pytest.raises(TrackingError, match=r"is damaged .*: move it away"):
        Tracker(tmp_path)


def test_a_locked_database_is_a_clear_error(tracker: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bandana.flows.tracking.store.client._SQLITE_PATIENCE", 0.1)
    other = sqlite3.connect(tmp_path / "data" / "mlflow" / "mlflow.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(TrackingError, match="is locked by another program: wait"):
            Tracker(tmp_path / "data")
    finally:
        other.close()


def test_a_server_that_does_not_answer_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match=r"does not answer .*: start it"):
        Tracker(tmp_path, "http://127.0.0.1:9")


# --- the folder mlflow/ ---------------------------------------------------------------------------


def test_the_folder_mlflow_does_not_hide_the_library() -> None:
    assert not list((ROOT / "mlflow").rglob("__init__.py"))
    # What `import mlflow` takes in a process started at the root; a bare folder has no origin.
    code = "import importlib.util as u; print(u.find_spec('mlflow').origin)"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    origin = Path(found.stdout.strip())
    assert origin.name == "__init__.py"
    assert not origin.is_relative_to(ROOT / "mlflow")
    import mlflow

    assert Path(mlflow.__file__) == origin
