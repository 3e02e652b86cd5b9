"""Workers are forked from a process that has imported what they need, where a command asked for one."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from prefect import flow, task

from bandana.flows.commands import suites
from bandana.flows.running import warm_start
from bandana.flows.running.executors import Executor, Resources
from bandana.flows.running.process_pool import ProcessPool

_SCRIPT = """
import os, sys
from bandana.flows.running.warm_start import start_method, warm_up

if __name__ == "__main__" and {is_warm}:
    warm_up(["{module}"])

from prefect import flow, task
from bandana.flows.running.process_pool import ProcessPool

@task(persist_result=False)
def tell():
    return os.getpid(), os.getppid(), "{module}" in sys.modules

@flow(task_runner=ProcessPool(max_workers=1), persist_result=False)
def ask():
    return tell.submit().result()

if __name__ == "__main__":
    own, parent, is_there = ask()
    print(start_method(), own != os.getpid(), parent == os.getpid(), is_there)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are fresh interpreters")
@pytest.mark.parametrize(
    ("is_warm", "told"),
    [
        pytest.param(True, "forkserver True False True", id="warm"),
        pytest.param(False, "spawn True True False", id="cold", marks=pytest.mark.nightly),
    ],
)
def test_workers_come_from_the_warm_process_if_there_is_one(prefect_server, tmp_path, is_warm, told):
    """In `make test`: a warm process; and this one, which is cold, below."""
    script = tmp_path / "asks.py"
    script.write_text(_SCRIPT.format(module="this", is_warm=is_warm))
    env = {**os.environ, **prefect_server}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env, timeout=120)
    assert done.stdout.splitlines()[-1:] == [told], done.stderr


@task(persist_result=False)
def _double(x):
    return 2 * x


@flow(task_runner=ProcessPool(max_workers=1), persist_result=False)
def _doubled(x):
    return _double.submit(x).result()


def test_no_process_is_started_where_prefect_stands_already(prefect_server):
    warm_start.warm_up(["this"])
    assert warm_start.start_method() == "spawn"
    assert _doubled(21) == 42


@pytest.mark.parametrize("steps", [["benchmark"], ["benchmark", "audit", "report"]])
def test_what_a_command_warms_up_exists(steps, monkeypatch):
    """A module that does not exist would be left out, and every worker would import it again."""
    asked = []
    monkeypatch.setattr(warm_start, "warm_up", asked.extend)
    suites.warm_up([], steps, Resources(executor=Executor.PROCESSES))
    assert [find_spec(name).name for name in asked] == asked
    assert asked == ["bandana.flows.suites.step_flows", "bandana.flows.cells.own_replays"]
