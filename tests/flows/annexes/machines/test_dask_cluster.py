"""Time limits on a Dask worker: late work ends with its process, also in a call that never returns to Python."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from small_spec import SMALL

from bandana.flows.annexes.machines import dask_cluster
from bandana.flows.folder import scratch

ROOT = Path(__file__).parents[4]


@pytest.fixture
def worker(monkeypatch):
    """This process, taken for a Dask worker; sets the limit of the task that runs, and the run that it is of."""
    from prefect.context import TaskRunContext

    monkeypatch.setattr(dask_cluster, "_is_dask_worker", lambda: True)
    monkeypatch.setattr(dask_cluster, "GRACE", 0.1)

    def in_run(run, limit):
        found = SimpleNamespace(task=SimpleNamespace(timeout_seconds=limit), task_run=SimpleNamespace(flow_run_id=run))
        monkeypatch.setattr(TaskRunContext, "get", lambda: found)

    return in_run


def _hang(place):
    """The exit code of a process that hangs in one call, and the seconds until it has it."""
    start = time.monotonic()
    if (pid := os.fork()) == 0:
        with dask_cluster.kept(place):
            time.sleep(100)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), time.monotonic() - start


def test_a_late_task_ends_its_process_and_fails_when_it_is_started_again(worker, tmp_path):
    from prefect.task_engine import TaskRunTimeoutError

    place = tmp_path / "late" / "key.npz"
    worker("one", 0.2)
    code, seconds = _hang(place)
    assert (code, seconds < 20) == (1, True)
    (note,) = place.parent.iterdir()
    assert scratch.left_over([tmp_path]) == [note]  # of a dead process: the next command clears it away
    with pytest.raises(TaskRunTimeoutError, match=r"took longer than 0\.2 seconds"), dask_cluster.kept(place):
        raise AssertionError("it was started again")
    assert not list(place.parent.iterdir())


def test_what_was_late_in_another_run_is_tried(worker, tmp_path):
    place = tmp_path / "late" / "key.npz"
    worker("one", 0.2)
    _hang(place)
    worker("another", 100)
    with dask_cluster.kept(place):
        assert not list(place.parent.iterdir())
    with dask_cluster.kept(tmp_path / "late" / "other.npz"):
        pass


def test_who_is_in_time_goes_on(worker, tmp_path):
    worker("one", 0.1)
    with dask_cluster.kept(tmp_path / "late" / "key.npz"):
        pass
    time.sleep(0.4)
    worker("one", None)
    with dask_cluster.kept(tmp_path / "late" / "key.npz"):
        time.sleep(0.4)
    assert not list(tmp_path.iterdir())


SLOW = """
import ctypes
import multiprocessing
from dataclasses import dataclass

from own_bandit import EpisodicGreedy


@dataclass(frozen=True)
class Slow(EpisodicGreedy):
    def act(self, released, context, step, *coins):
        if multiprocessing.current_process().name.startswith("Dask"):
            ctypes.CDLL(None).sleep(3600)  # one call, that no exception reaches
        return super().act(released, context, step, *coins)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("step", ["block", "audit"])
def test_a_dask_cluster_keeps_the_limits_of_a_spec(tmp_path, step):
    """A block and an audit that hang in a call of the system, on two real workers of this machine."""
    pytest.importorskip("prefect_dask")
    shutil.copy(ROOT / "examples" / "own_bandit.py", tmp_path / "own_bandit.py")
    (tmp_path / "slow.py").write_text(SLOW)
    tree = yaml.safe_load(SMALL)
    tree["algorithms"] = [{"file": "slow.py:Slow", "claim": "gdp(mu=1, relation=reward)"}]
    tree |= {"execution": {f"{step}_timeout": 20}, "references": False, "twins": False}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(tree))
    command = {"block": ["run"], "audit": ["audit"]}[step]
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "bandana", *command, "spec.yaml", "--executor", "dask", "--workers", "2", "--data", "data"],
        capture_output=True, text=True, check=False, timeout=280, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "took longer than 20 seconds on a Dask worker" in done.stderr
    assert "raise block_timeout or audit_timeout" in done.stderr
    assert done.stderr.count("\n") <= 2
    assert time.monotonic() - start < 240
