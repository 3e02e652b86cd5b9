"""The flows themselves, in processes of their own as a user starts them: end to end, killed and resumed, side by side."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from small_spec import SMALL

from audits.reporting import validate
from flows.plan import cells_of
from flows.specs import load_spec
from flows.store import Store
from flows.work import BENCHMARK

pytestmark = pytest.mark.slow


def _start(command, spec, data):
    return subprocess.Popen(
        [sys.executable, "-c", "from flows.cli import main; main()", command, str(spec), "--data", str(data)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def _finish(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def _numbers(spec, data):
    """Every regret curve of a suite, in the order of its cells and blocks."""
    store = Store(data / "results")
    blocks = [block for cell in cells_of(load_spec(spec)) for block in cell.blocks()]
    return [store.load(BENCHMARK, block.key) for block in blocks]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A benchmark and an audit of the small spec."""
    folder = tmp_path_factory.mktemp("suite")
    spec = folder / "small.yaml"
    spec.write_text(SMALL)
    outputs = {}
    for command in ("run", "audit"):
        outputs[command] = _finish(_start(command, spec, folder / "data"))
    return spec, folder / "data", outputs


def test_run_and_audit_end_with_the_report_and_the_way_to_the_pages(done):
    _, data, outputs = done
    for command, (code, out, err) in outputs.items():
        assert code == 0, (command, out, err)
        assert "report.html" in out
        assert " ui --data " in out
        assert "Traceback" not in err
    assert "PASS" in outputs["audit"][1]
    suite = data / "suites" / "small"
    document = json.loads((suite / "report.json").read_text())
    validate(document)
    assert [entry["verdict"] for entry in document["audits"]] == ["PASS"]
    assert [cell["label"] for cell in document["benchmark"]["cells"]] == ["ucb", "adar-ucb tight eps=1"]
    assert (suite / "report.pdf").read_bytes().startswith(b"%PDF")
    assert "adar-ucb" in (suite / "report.html").read_text()


def test_each_cell_is_one_flat_run_with_the_three_epsilons_side_by_side(done):
    from mlflow import MlflowClient

    _, data, _ = done
    client = MlflowClient(f"sqlite:///{data}/mlflow/mlflow.db")
    experiment = client.get_experiment_by_name("small")
    runs = client.search_runs([experiment.experiment_id], "tags.role = 'cell'")
    assert sorted(run.info.run_name for run in runs) == ["adar-ucb tight eps=1", "ucb"]
    by_name = {run.info.run_name: run.data for run in runs}
    private, twin = by_name["adar-ucb tight eps=1"], by_name["ucb"]
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


def test_a_repeated_run_changes_no_number_and_adds_no_run(done):
    from mlflow import MlflowClient

    spec, data, _ = done
    before = _numbers(spec, data)
    times = {path: path.stat().st_mtime_ns for path in (data / "results").rglob("*.npz")}
    assert _finish(_start("run", spec, data))[0] == 0
    assert {path: path.stat().st_mtime_ns for path in (data / "results").rglob("*.npz")} == times
    for (first, _), (second, _) in zip(before, _numbers(spec, data), strict=True):
        np.testing.assert_array_equal(first["regret"], second["regret"])
    client = MlflowClient(f"sqlite:///{data}/mlflow/mlflow.db")
    experiment = client.get_experiment_by_name("small")
    assert len(client.search_runs([experiment.experiment_id], "tags.role = 'cell'")) == 2


def test_a_killed_run_continues_and_ends_with_the_same_numbers(done, tmp_path, write_spec):
    """kill -9 once some blocks are finished; they are kept, and the rerun's numbers are the uninterrupted run's."""
    spec = write_spec(horizon=30_000, replications=40, name="killed")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert _finish(_start("run", spec, whole))[0] == 0
    process = _start("run", spec, broken)
    deadline = time.monotonic() + 200
    while not list((broken / "results").rglob("*.npz")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
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


def test_a_full_disk_ends_with_one_clear_line_and_keeps_what_was_finished(write_spec, tmp_path):
    """The failure is injected where block files are flushed; nothing half-written stays."""
    spec = write_spec(name="full")
    program = (
        "import errno, sys\n"
        "from flows import store\n"
        "def full(_): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "real = store.write_whole\n"
        "def write(path, content):\n"
        "    if path.suffix == '.npz': store.os.fsync = full\n"
        "    real(path, content)\n"
        "store.write_whole = write\n"
        "from flows.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "run", str(spec), "--data", str(tmp_path / "data")],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert not [path for path in (tmp_path / "data" / "results").rglob("*") if path.is_file()]


def test_an_interrupted_run_stops_at_once_with_one_line(write_spec, tmp_path):
    process = _start("run", write_spec(horizon=200_000, replications=40, name="stopped"), tmp_path / "data")
    deadline = time.monotonic() + 200
    while not list((tmp_path / "data" / "results").rglob("*.npz")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err.strip() == "error: interrupted; what was finished is kept, run the same command again to continue"
