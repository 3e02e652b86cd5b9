"""Whole runs are killed at random moments: the next command must work, and end with what an undisturbed run ends with.

    python -m benchmarks.folder_kills [KILLS]

Half of the kills fall between the moment when MLflow's file appears in a new data folder and the first event of
`bandana run`, while tables are laid out; the others anywhere in the life of `bandana run --audit`, on a new folder or on one
whose tables are there. In every fifth kill the run has a Prefect server of its own, which lays out its
tables too; else all runs share one, which takes seconds off each.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from bandana.audits.contents import numbers_sha256
from bandana.flows.folder.journal import Journal
from bandana.flows.folder.scratch import SUFFIX
from bandana.flows.folder.settings import DataFolder
from bandana.flows.servers import temporary_server
from bandana.flows.tracking.store.layout import tables_of
from bandana.flows.tracking.tracker import Tracker

SPEC: dict[str, Any] = {
    "name": "small", "seed": 7, "horizon": 500, "replications": 4, "block_size": 2,
    "environment": {"kind": "bernoulli", "means": [0.8, 0.4]},
    "algorithms": [
        {"algorithm": "ucb"},
        {"algorithm": "adar-ucb", "calibrations": ["tight"], "privacy": {"alpha": 2, "epsilon": [1]}},
    ],
    "audit": {"rounds": 8, "replays": 1000, "examples": 2},
    "report": {"formats": ["json"]},
}  # fmt: skip
_SUITE = SPEC["name"]


class Times(NamedTuple):
    """Seconds of an undisturbed run on a new folder."""

    layout: float
    """From its start until MLflow's file is there."""
    begun: float
    """Until its first event."""
    whole: float
    """Until its end."""


def database_of(data: Path) -> Path:
    """MLflow's file in a data folder."""
    return data / "mlflow" / "mlflow.db"


def start(spec: Path, data: Path, server: Mapping[str, str] | None, *, is_audited: bool) -> subprocess.Popen[str]:
    """A run in a process of its own; with a Prefect server of its own unless there is one."""
    words = ["run", str(spec), *(["--audit"] if is_audited else []), "--executor", "local", "--data", str(data)]
    return subprocess.Popen(
        [sys.executable, "-m", "bandana", *words],
        env={**os.environ, **(server or {})}, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def numbers_of(data: Path) -> dict[str, Any]:
    """All numbers that a run ends with: those of every stored result, and those of every run of MLflow by its key."""
    results = {
        str(path.relative_to(data)): numbers_sha256(path) for path in sorted((data / "results").rglob("*")) if path.is_file()
    }
    with closing(sqlite3.connect(database_of(data))) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        keys = database.execute(
            "SELECT k.value, r.status, r.run_uuid FROM runs r JOIN tags k ON k.run_uuid = r.run_uuid AND k.key = 'run_key' "
            "JOIN tags l ON l.run_uuid = r.run_uuid AND l.key = 'role' AND l.value = 'cell' ORDER BY k.value, r.status"
        ).fetchall()
        points = "SELECT key, step, value, is_nan FROM metrics WHERE run_uuid = ? ORDER BY key, step, value"
        runs = [(key, status, database.execute(points, (run,)).fetchall()) for key, status, run in keys]
    unfinished = sorted(str(path.relative_to(data)) for path in data.rglob(f"*{SUFFIX}"))
    audits = json.loads((data / "suites" / _SUITE / "report.json").read_text())["audits"]
    return {"results": results, "runs": runs, "unfinished": unfinished, "verdicts": [each["verdict"] for each in audits]}


def stage_of(data: Path) -> str:
    """How far a killed run came, by what it left."""
    events = [event["event"] for event in Journal(DataFolder(data).journal(_SUITE)).read()]
    if events:
        return f"after {events[-1]!r}"
    return f"MLflow: {tables_of(database_of(data)).name.lower()}" if database_of(data).exists() else "before any table"


def timed(spec: Path, data: Path, server: Mapping[str, str], *, is_audited: bool) -> Times:
    """Runs once, undisturbed, and times it; RuntimeError if it fails."""
    process, begun = start(spec, data, server, is_audited=is_audited), time.monotonic()
    seen: list[float] = []
    for place in (database_of(data), DataFolder(data).journal(_SUITE)):
        while not place.exists() and process.poll() is None:
            time.sleep(0.01)
        seen.append(time.monotonic() - begun)
    out, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(out)
    return Times(seen[0], seen[1], time.monotonic() - begun)


def kill(process: subprocess.Popen[str], data: Path, seconds: float, *, is_layout: bool) -> bool:
    """Kills a run that long after its start, or after MLflow's file appeared; returns whether it was still running."""
    while is_layout and not database_of(data).exists() and process.poll() is None:
        time.sleep(0.002)
    time.sleep(seconds)
    was_running = process.poll() is None
    process.kill()
    process.communicate()
    return was_running


def main(n_kills: int, seed: int = 1) -> int:
    """Kills that many runs and prints what was seen; the exit code is 1 if a folder was lost or a number differs."""
    generator, stages, faults, done = np.random.Generator(np.random.SFC64(seed)), Counter[str](), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec = folder / "small.yaml"
        spec.write_text(yaml.safe_dump(SPEC))
        DataFolder.open(folder / "server").set_environment()
        os.environ.pop("PREFECT_HOME")  # of the server alone: each run has the one of its data folder
        keeper, server = temporary_server.spawn(folder / "server" / "prefect")
        try:
            urllib.request.urlopen(f"{server['PREFECT_API_URL']}/health", timeout=240).close()
            timed(spec, folder / "benchmark", server, is_audited=False)  # also compiles what the runs need
            times = timed(spec, folder / "audited", server, is_audited=True)
            Tracker(DataFolder.open(folder / "laid-out").root)
            undisturbed = {True: numbers_of(folder / "audited"), False: numbers_of(folder / "benchmark")}
            print(f"undisturbed: {times}", flush=True)
            number, options = 0, dict[str, Any]()
            while done < n_kills:
                data, number = folder / f"data-{number}", number + 1
                is_layout, own_server = number % 2 == 1, number % 5 == 0
                if not is_layout and number % 4 == 0:
                    shutil.copytree(folder / "laid-out", data)
                longest = times.begun - times.layout if is_layout else times.whole
                options = {"server": None if own_server else server, "is_audited": not is_layout}
                process = start(spec, data, **options)
                if not kill(process, data, float(generator.uniform(0.0, longest)), is_layout=is_layout):
                    continue
                done += 1
                stage = stage_of(data)
                stages[stage] += 1
                again = start(spec, data, **options)
                out, _ = again.communicate()
                if again.returncode != 0:
                    said = f"FAILED: {out.strip()[-500:]}"
                else:
                    found, expected = numbers_of(data), undisturbed[not is_layout]
                    wrong = [part for part in expected if found[part] != expected[part]]
                    said = f"DIFFERS: {', '.join(wrong)}" if wrong else "the same"
                faults += said != "the same"
                print(f"{done:4} killed {stage}: {said}", flush=True)
                shutil.rmtree(data)
        finally:
            keeper.kill()
    for stage, count in stages.most_common():
        print(f"{count:5} {stage}")
    print(f"{done} runs killed; {faults} folders lost or with other numbers")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
