"""The flows themselves, end to end: what a command leaves behind, again, canceled, and on a full disk.

`make test` plays them in one process. As a user starts them, each in a process of its own, they are killed in `test_kill`.
"""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from runs import PROCESSES, family, is_alive, killable, outcome, runs_of, start, workers
from small_spec import SMALL

from bandana.audits.reporting import validate
from bandana.flows.cells.play import BENCHMARK
from bandana.flows.folder import store
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan
from bandana.flows.spec.spec import load_spec

pytestmark = pytest.mark.slow
PLAYED = ["ucb", "adar-ucb tight eps=1", "adar-ucb tight eps=1 without noise", "uniform play", "greedy"]
TITLES = ["ucb", "adar-ucb tight rdp(2, 1)", "adar-ucb tight rdp(2, 1) without noise", "uniform play", "greedy"]
"""The same cells, as MLflow names their runs."""


def _start(command, spec, data, *options):
    return start(spec, data, *(options or ("--executor", "local")), command=command, audit=False)


def _wait_for_blocks(process, data):
    deadline = time.monotonic() + 200
    while not list((data / "results").rglob("*.npz")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def _finish(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def _numbers(spec, data):
    """Every regret curve of a suite, in the order of its cells and blocks."""
    store = Store(data / "results")
    blocks = [block for cell in Plan.of(load_spec(spec)).played for block in cell.blocks()]
    return [store.load(BENCHMARK, block.key) for block in blocks]


@pytest.fixture(scope="module")
def done(bandana, laid_out, tmp_path_factory):
    """A benchmark and an audit of the small spec."""
    folder = tmp_path_factory.mktemp("suite")
    spec, data = folder / "small.yaml", folder / "data"
    spec.write_text(SMALL)
    shutil.copytree(laid_out, data)
    outputs = {command: bandana(command, spec, "--executor", "local", "--data", data) for command in ("run", "audit")}
    return spec, data, outputs


def test_run_and_audit_end_with_the_report_and_the_way_to_the_pages(done):
    _, data, outputs = done
    for command, ended in outputs.items():
        assert ended.exit_code == 0, (command, ended.output)
        assert "report.html" in ended.stdout
        assert " ui --data " in ended.stdout
        assert "Traceback" not in ended.stderr
    assert "PASS" in outputs["audit"].stdout
    suite = data / "suites" / "small"
    document = json.loads((suite / "report.json").read_text())
    validate(document)
    assert [entry["verdict"] for entry in document["audits"]] == ["PASS"]
    assert [cell["label"] for cell in document["benchmark"]["cells"]] == PLAYED
    assert (suite / "report.pdf").read_bytes().startswith(b"%PDF")
    assert "adar-ucb" in (suite / "report.html").read_text()


def test_each_cell_is_one_flat_run_with_the_three_epsilons_side_by_side(done):
    from mlflow import MlflowClient

    _, data, _ = done
    client = MlflowClient(f"sqlite:///{data}/mlflow/mlflow.db")
    experiment = client.get_experiment_by_name("small")
    runs = client.search_runs([experiment.experiment_id], "tags.role = 'cell'")
    assert sorted((run.data.tags["cell"], run.info.run_name) for run in runs) == sorted(zip(PLAYED, TITLES, strict=True))
    assert {run.data.tags["current"] for run in runs} == {"true"}, "the audit leaves what the benchmark played on the page"
    by_name = {run.info.run_name: run.data for run in runs}
    private, twin = by_name["adar-ucb tight rdp(2, 1)"], by_name["ucb"]
    epsilons = [
        private.metrics[name] for name in ("privacy/epsilon_claimed", "privacy/epsilon_accounted", "audit/epsilon_measured")
    ]
    assert epsilons == sorted(epsilons, reverse=True)
    assert private.tags["verdict"] == "PASS"
    assert private.tags["suite"] == "small"
    assert not any("epsilon" in name for name in twin.metrics)
    steps = {point.step for run in runs for point in client.get_metric_history(run.info.run_id, "regret/mean")}
    assert max(steps) == 500
    assert len(client.search_runs([experiment.experiment_id], "tags.role = 'suite'")) >= 1


def test_a_repeated_run_changes_no_number_and_adds_no_run(bandana, done):
    from mlflow import MlflowClient

    spec, data, _ = done
    before = _numbers(spec, data)
    times = {path: path.stat().st_mtime_ns for path in (data / "results").rglob("*.npz")}
    assert bandana("run", spec, "--executor", "local", "--data", data).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (data / "results").rglob("*.npz")} == times
    for (first, _), (second, _) in zip(before, _numbers(spec, data), strict=True):
        np.testing.assert_array_equal(first["regret"], second["regret"])
    client = MlflowClient(f"sqlite:///{data}/mlflow/mlflow.db")
    experiment = client.get_experiment_by_name("small")
    assert len(client.search_runs([experiment.experiment_id], "tags.role = 'cell'")) == len(PLAYED)


@pytest.mark.nightly
def test_a_killed_run_continues_and_ends_with_the_same_numbers(tmp_path, write_spec):
    """kill -9 once some blocks are finished; they are kept, and the rerun's numbers are the uninterrupted run's.

    In `make test`: `test_kill`, whose one kill leaves blocks to keep and an audit to do.
    """
    spec = write_spec(horizon=30_000, replications=40, name="killed")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert _finish(_start("run", spec, whole))[0] == 0
    process = _start("run", spec, broken)
    _wait_for_blocks(process, broken)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = {path: path.stat().st_mtime_ns for path in (broken / "results").rglob("*.npz")}
    assert kept
    expected = _numbers(spec, whole)
    assert len(kept) < len(expected), "killed too late to show anything"
    assert _finish(_start("run", spec, broken))[0] == 0
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    for (first, _), (second, _) in zip(expected, _numbers(spec, broken), strict=True):
        np.testing.assert_array_equal(first["regret"], second["regret"])
        np.testing.assert_array_equal(first["mu_spent"], second["mu_spent"])


def test_a_full_disk_ends_with_one_clear_line_and_keeps_what_was_finished(bandana, write_spec, data, monkeypatch):
    """The failure is injected where block files are flushed; nothing half-written stays."""
    real = store.write_first

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def write(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            return real(*arguments)

    monkeypatch.setattr(store, "write_first", write)
    ended = bandana("run", write_spec(name="full"), "--executor", "local", "--data", data)
    assert ended.exit_code == 1, ended.output
    assert "the disk is full" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not [path for path in (data / "results").rglob("*") if path.is_file()]


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 192 MiB, and how to fill what is left of it."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=192m", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a file system of its own cannot be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def _fill(disk):
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"0" * (1 << 16)):
            continue
    return ballast


@pytest.mark.nightly
def test_a_disk_that_fills_up_keeps_what_was_finished_and_a_rerun_continues(small_disk, write_spec):
    """In `make test`: the same failure, injected; and what is told of a server whose disk is full."""
    spec = write_spec(horizon=30_000, replications=40, name="filled")
    data = small_disk / "data"
    process = _start("run", spec, data)
    _wait_for_blocks(process, data)
    ballast = _fill(small_disk)
    code, _, err = _finish(process)
    assert code == 1, err
    assert len(err.strip().splitlines()) == 1, err
    assert "the disk is full" in err
    assert "finished work is kept: free some space and run the same command again" in err
    kept = {path: path.stat().st_mtime_ns for path in (data / "results").rglob("*.npz")}
    expected = len(_numbers(spec, data))
    assert 0 < len(kept) < expected
    ballast.unlink()
    code, _, err = _finish(_start("run", spec, data))
    assert code == 0, err
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    assert len(list((data / "results").rglob("*"))) == 1 + expected
    assert outcome(data, "filled")["unfinished files"] == []


EXECUTORS = {"local": (), "processes": PROCESSES, "dask": ("--executor", "dask", "--workers", "2")}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="what a command started is found in /proc")
@pytest.mark.parametrize(
    ("sign", "executor"),
    [
        pytest.param(signal.SIGINT, "local", marks=pytest.mark.nightly),
        pytest.param(signal.SIGTERM, "local", marks=pytest.mark.nightly),
        pytest.param(signal.SIGINT, "processes", marks=pytest.mark.nightly),
        (signal.SIGTERM, "processes"),
        pytest.param(signal.SIGTERM, "dask", marks=pytest.mark.nightly),
    ],
)
def test_a_canceled_run_stops_at_once_with_all_that_it_started(write_spec, tmp_path, sign, executor):
    """In `make test`: the hardest, and `test_interrupt` with each signal."""
    if executor == "dask":
        pytest.importorskip("prefect_dask")
    data = tmp_path / "data"
    process = _start("run", write_spec(horizon=50_000, replications=160, name="stopped"), data, *EXECUTORS[executor])
    _wait_for_blocks(process, data)
    members = family(process.pid)
    while executor != "local" and len(workers(members)) < 2:  # a pool starts one for a task that finds no other idle
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
        members = family(process.pid)
    assert any("temporary_server" in member.command for member in members)
    process.send_signal(sign)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err.strip() == "error: interrupted; finished work is kept; run the same command again to continue"
    deadline = time.monotonic() + 30
    while left := [member for member in members if is_alive(member)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


@pytest.mark.nightly
def test_a_canceled_audit_goes_on_where_it_stood_and_leaves_no_run_behind(tmp_path):
    """Canceled while it writes to MLflow, in the worst moment: its run is RUNNING, and whole after the rerun.

    In `make test`: trackers that stop in the middle of a run, in `test_tracking`.
    """
    spec, data = killable(tmp_path), tmp_path / "data"
    program = (
        "import os, signal, time\n"
        "from mlflow import MlflowClient\n"
        "def stop(*_, **__):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(60)\n"
        "MlflowClient.set_terminated = stop\n"
        "from bandana.flows.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program, "run", str(spec), "--audit", "--data", str(data)]
    stopped = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert stopped.returncode == 1
    assert stopped.stderr.strip() == "error: interrupted; finished work is kept; run the same command again to continue"
    assert [run["status"] for run in runs_of(data)] == ["RUNNING"]
    process = start(spec, data)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, (out, err)
    assert {run["status"] for run in runs_of(data)} == {"FINISHED"}
    assert sorted(run["name"] for run in runs_of(data)) == sorted([*PLAYED, "suite small"])
