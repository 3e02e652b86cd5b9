"""A process that has imported what tests need from others, and forks for each job: seconds of imports are saved each time.

It runs in a copy of the checkout, reads one job a line from its input, and answers with one line. Modules of the checkout
are never imported here, only in the forked process: it gets the mutated ones.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

OWN = ("bandana", "tests")
TOKEN = "BANDANA_MUTATIONS_JOB"
"""A variable by which the processes that a job started are found after it, in whatever session they are."""
_MOST_BYTES = 12 << 30
"""A mutation must not take the machine's memory."""
_GRACE = 120.0
"""Seconds of wall time beyond all limits of a job's tests, for collection and imports."""


def preload(names: list[str]) -> None:
    """Imports what can be imported; a name that is missing is left to the tests."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    loaded = [module for module in sys.modules if module.partition(".")[0] in OWN]
    if loaded:
        raise RuntimeError(f"modules of the checkout must be imported after the fork, not before: {loaded}")
    gc.freeze()


def run_job(job: dict[str, Any]) -> None:
    """In the forked process: runs pytest, writes the result, and ends without cleaning up what the server owns."""
    os.setsid()
    folder = Path(job["folder"])
    with open(os.devnull, "rb") as nothing, open(folder / "log", "wb") as log:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
    os.environ.update(job.get("environment", {}))
    os.environ[TOKEN] = job["folder"]
    os.environ["TMPDIR"] = str(folder)
    if "NUMBA_CACHE_DIR" in job.get("environment", {}):
        importlib.import_module("numba").config.reload_config()
    code = 70
    try:
        import pytest

        from benchmarks.mutations import plugins

        if job["kind"] == "record":
            probes: Any = importlib.import_module("_reached") if job.get("is_instrumented") else None
            if probes is not None:
                probes.main_process = os.getpid()
            recorder = plugins.Recorder(probes)
            words = [word for word in plugins.arguments(job["files"], job["marker"], folder) if word != "-x"]
            code = int(pytest.main(words, plugins=[recorder]))
            plugins.write_json(folder / "result.json", {"code": code, "record": recorder.found})
        else:
            chosen = plugins.Chosen(job["limits"], folder / "progress")
            code = int(pytest.main(plugins.arguments(job["files"], "", folder), plugins=[chosen]))
            plugins.write_json(folder / "result.json", {"code": code, "failed": chosen.failed})
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def end_left_over(folder: str) -> None:
    """Ends what a job started in sessions of its own and left behind: servers, pools, commands that wait."""
    mark = f"{TOKEN}={folder}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)


def wait_for(child: int, wall: float, folder: str) -> dict[str, Any]:
    """Waits for a job, ends it after `wall` seconds, and ends what it started in either case."""
    deadline = time.monotonic() + wall
    ended, status, usage = 0, 0, None
    is_late = False
    while not ended:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if not ended:
            if time.monotonic() > deadline:
                is_late = True
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
            time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    cpu = usage.ru_utime + usage.ru_stime if usage else 0.0
    end_left_over(folder)
    by = "late" if is_late else signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else ""
    return {"code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1, "ended_by": by, "cpu": cpu}


def main() -> None:
    """Serves jobs until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what imports print is no answer
    preload(json.loads(sys.stdin.readline()))
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            answers.close()
            run_job(job)
        answers.write(json.dumps(wait_for(child, job["wall"] + _GRACE, job["folder"])) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
