"""Executors: the same numbers from each, bit for bit; what is tried again, what is not, and what is too slow."""

import errno
import json
import os
import sqlite3
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool

import pytest

from bandana.audits.contents import PROVENANCE, numbers_sha256, read_description
from bandana.flows.folder.settings import DataFolder
from bandana.flows.keys import provenance
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.running.executors import (
    Executor,
    Resources,
    is_infrastructure_fault,
    patience,
    task_runner,
)
from bandana.flows.spec.spec import load_spec
from bandana.flows.suites import steps
from bandana.flows.suites.step_flows import run_step
from bandana.flows.texts.mistakes import SpecError

PASSING = [
    ConnectionResetError(),
    OSError(errno.EIO, "input/output error"),
    OSError(errno.ESTALE, "stale file handle"),
    sqlite3.OperationalError("database is locked"),
    BrokenProcessPool(),
]
LASTING = [
    ValueError("horizon"),
    SpecError("horizon"),
    FileNotFoundError(),
    PermissionError(),
    OSError(errno.ENOSPC, "no space left on device"),
    sqlite3.OperationalError("no such table: runs"),
    MemoryError(),
    ZeroDivisionError(),
    "a result",
]


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_a_fault_of_the_infrastructure_is_tried_again(error):
    assert is_infrastructure_fault(error)


@pytest.mark.parametrize("error", LASTING, ids=repr)
def test_a_mistake_is_not(error):
    assert not is_infrastructure_fault(error)


def test_a_timeout_of_the_work_is_not_tried_again():
    from prefect.task_engine import TaskRunTimeoutError

    assert isinstance(TaskRunTimeoutError(), OSError)
    assert not is_infrastructure_fault(TaskRunTimeoutError())


def test_waits_between_tries_grow_and_the_last_one_stays():
    assert patience(0, 2.0)["retry_delay_seconds"] is None
    options = patience(5, 3.0)
    assert (options["retries"], options["timeout_seconds"]) == (5, 3.0)
    assert options["retry_delay_seconds"] == [1.0, 5.0, 20.0, 20.0, 20.0]


def test_an_address_without_dask_is_refused():
    with pytest.raises(SpecError, match="--dask-address: only with --executor dask"):
        Resources(executor=Executor.LOCAL, dask_address="tcp://127.0.0.1:1").check()


def _results(folder):
    """What each file holds but for its provenance."""
    return {path.name: numbers_sha256(path) for path in folder.rglob("*.npz")}


def _makers(folder):
    """Who made each file, but for times."""
    found = [provenance.read(read_description(path)[PROVENANCE]) for path in folder.rglob("*.npz")]
    assert all(made["began"] <= made["ended"] for made in found)
    return [{name: value for name, value in made.items() if name not in ("began", "ended")} for made in found]


def test_insecure_is_for_an_address():
    with pytest.raises(SpecError, match="--insecure: only with --dask-address"):
        Resources(executor=Executor.DASK, insecure=True).check()


@pytest.mark.nightly
def test_every_executor_gives_the_same_numbers(write_spec, tmp_path, monkeypatch):
    """Threads, a pool of processes, and a real Dask cluster of two processes, each in a process of its own.

    In `make test`: a pool and, after a kill, threads (`test_kill`); and which cluster Dask is asked for.
    """
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)  # as users have it
    spec = write_spec(replications=10, block_size=2)
    results, makers = {}, []
    for executor in Executor:
        data = tmp_path / executor
        done = subprocess.run(
            [sys.executable, "-m", "bandana", "run", str(spec), "--executor", executor, "--workers", "2", "--json",
             "--data", str(data)],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert json.loads(done.stdout)["suite"] == "small"
        results[executor] = _results(data / "results")
        makers += _makers(data / "results")
    n_blocks = sum(len(cell.blocks()) for cell in Plan.of(load_spec(spec)).played)
    assert len(results[Executor.LOCAL]) == n_blocks >= 10
    assert results[Executor.LOCAL] == results[Executor.PROCESSES] == results[Executor.DASK]
    assert len(makers) == 3 * n_blocks
    assert [made for made in makers if made != makers[0]] == []
    assert [item["threads"] for item in makers[0]["blas"]] == [1, 1], "one thread, whatever the executor"


@pytest.fixture
def play(prefect_server, write_spec, tmp_path, monkeypatch):
    """Runs the small benchmark in this process, on threads, with `work` in place of a block's work."""

    def start(work, **changes):
        monkeypatch.setattr(steps, "benchmark_block", work)
        monkeypatch.setattr("bandana.flows.running.executors._RETRY_DELAYS", [0.01])
        spec = load_spec(write_spec(**changes))
        DataFolder.open(tmp_path / "data")
        run_step("benchmark", [Plan.of(spec)], str(tmp_path / "data"))
        return spec

    return start


@pytest.mark.slow
def test_a_lost_connection_is_tried_again_and_the_numbers_are_the_same(play, tmp_path):
    from bandana.flows.cells.play import benchmark_block
    from bandana.flows.folder.store import Store

    failed = []

    def shaky(block, store):
        if block.key not in failed:
            failed.append(block.key)
            raise ConnectionResetError
        return benchmark_block(block, store)

    spec = play(shaky)
    blocks = [block for cell in Plan.of(spec).played for block in cell.blocks()]
    assert sorted(failed) == sorted(block.key for block in blocks)
    again = Store(tmp_path / "again")
    for block in blocks:
        benchmark_block(block, again)
    assert _results(tmp_path / "data") == _results(tmp_path / "again") != {}


@pytest.mark.slow
def test_a_mistake_is_tried_once_and_stops_the_rest(play):
    tried = []

    def broken(block, store):
        tried.append(block.key)
        time.sleep(0.2)
        raise ValueError("a mistake in the code")

    with pytest.raises(ValueError, match="a mistake in the code"):
        play(broken, replications=400, block_size=1)
    assert len(set(tried)) == len(tried) < 100


@pytest.mark.slow
def test_a_block_that_takes_too_long_fails_with_its_name(play):
    def endless(block, store):
        while True:
            time.sleep(0.01)

    with pytest.raises(TimeoutError):
        play(endless, execution={"block_timeout": 1, "retries": 2}, replications=1)


def test_a_cell_does_not_carry_its_data_to_the_workers(write_spec, tmp_path):
    import pickle

    (tmp_path / "people.csv").write_text("a,b\n" + "0.123456,1\n" * 5000)
    cell = cells_of(load_spec(write_spec(environment={"kind": "table", "path": "people.csv"}, horizon=5000)))[0]
    assert cell.environment.table.n_users == 5000
    carried = pickle.dumps(cell.blocks()[0])
    assert len(carried) < 20_000
    assert b"0.123456" not in carried
    assert pickle.loads(carried).key == cell.blocks()[0].key
    assert os.path.exists(cell.environment.item.path)


def test_a_worker_of_a_pool_imports_where_the_tasks_are_defined():
    """Before it is asked for one: the first tasks would wait for imports of seconds, each in its own worker."""
    runner = task_runner(
        Resources(executor=Executor.PROCESSES, workers=2), Executor.LOCAL, "bandana.flows.suites.step_flows"
    )
    assert runner._initializer.args == ("bandana.flows.suites.step_flows",)
