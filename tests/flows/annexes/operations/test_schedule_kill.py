"""`kill -9` of `bandana serve` in the middle of a night: within seconds nothing of it is left.

In `make test`: a process that ends with another one and takes its children along (`test_prefect_health`).
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from listening import beyond_loopback, family, listening

SECONDS = 10.0
"""Within which all must be gone; a run looks for its service every second, and a busy machine is slow."""


def _names(processes):
    return [" ".join(process.cmdline())[:120] for process in processes if process.is_running()]


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell of processes")
@pytest.mark.parametrize("step", ["benchmark", "audit"])
def test_nothing_outlives_a_killed_service(write_spec, data, free_port, step):
    """While a run's pool plays or audits: the server, the run, its workers and what keeps them."""
    long = {"horizon": 20_000, "replications": 4000, "block_size": 10} if step == "benchmark" else {"audit__replays": 10**7}
    spec = write_spec(**long)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    command = [
        sys.executable,
        "-m",
        "bandana",
        "serve",
        spec,
        "--audit",
        "--port",
        free_port,
        "--data",
        data,
        "--run",
        "small",
    ]
    with (data / "screen.log").open("wb") as screen:
        process = subprocess.Popen([*map(str, command)], stdout=screen, stderr=screen, env=kept, start_new_session=True)
    known = {}
    try:
        journal, deadline = data / "suites" / "small" / "log.jsonl", time.monotonic() + 200
        wanted = f"{step} started"
        while not (journal.exists() and wanted in journal.read_text()) or len(known) < 6:
            known |= {one.pid: one for one in family(process.pid)}
            assert process.poll() is None, (data / "screen.log").read_text()
            assert time.monotonic() < deadline, (journal.exists() and journal.read_text(), _names(known.values()))
            time.sleep(0.2)
        time.sleep(3)
        known |= {one.pid: one for one in family(process.pid)}
        found = listening(process.pid)
        assert found
        assert not beyond_loopback(found)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
        deadline = time.monotonic() + SECONDS
        while left := [one for one in known.values() if one.is_running() and one.status() != "zombie"]:
            assert time.monotonic() < deadline, _names(left)
            time.sleep(0.1)
    finally:
        for one in known.values():
            if one.is_running():
                one.kill()
