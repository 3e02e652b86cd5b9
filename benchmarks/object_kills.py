"""Workers on one bucket are killed at random moments: the others, or the next ones, end with the bytes of one folder.

    python -m benchmarks.object_kills [KILLS]

Two processes of `bandana work`, each with a local folder of its own, share a suite. One is killed with SIGKILL once so many
results are there, and in every third suite both. Where both were killed, or in every second suite, the killed one starts
again, on what its local folder holds. In the end a machine that computed nothing reads every result from the bucket.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bandana.audits.contents import numbers_sha256
from bandana.flows.annexes.machines.object_files import files_at
from bandana.flows.cells.audits import AUDIT, AUDIT_PART
from bandana.flows.cells.play import BENCHMARK
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.shared import LOCAL
from bandana.flows.folder.store import Store
from benchmarks import folder_kills
from benchmarks.object_server import in_own_process, make_bucket

_KINDS = (BENCHMARK, AUDIT, AUDIT_PART)
SPEC: dict[str, Any] = {**folder_kills.SPEC, "horizon": 2000, "replications": 4, "block_size": 1}


def start(spec: Path, data: str, local: Path, number: int) -> subprocess.Popen[str]:
    """A worker in a process of its own, with a local folder of its own."""
    words = ["work", str(spec), "--audit", "--workers", "1", "--shard", f"{number}/2", "--data", data]
    return subprocess.Popen(
        [sys.executable, "-m", "bandana", *words], env={**os.environ, LOCAL: str(local)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def numbers_of(data: str | Path) -> dict[str, str]:
    """Hash of the numbers of every result of a store."""
    store = Store(DataFolder.open(data).results)
    return {f"{kind}/{key}": numbers_sha256(store.path(kind, key)) for kind in _KINDS for key in store.sizes(kind)}


def alone(spec: Path, folder: Path) -> dict[str, str]:
    """What one worker leaves in a folder."""
    if wrong := finished(start(spec, str(folder), folder, 1)):
        raise RuntimeError(wrong)
    return numbers_of(folder)


def finished(worker: subprocess.Popen[str]) -> str:
    """What went wrong with a worker; nothing if it ended well."""
    out, _ = worker.communicate()
    return "" if worker.returncode == 0 else f"FAILED: {out.strip()[-400:]}"


def suite(spec: Path, folder: Path, number: int, after: list[int], expected: dict[str, str]) -> tuple[int, str]:
    """Shares one suite, kills workers when so many results are there, and looks at the end: kills, and what was wrong."""
    os.environ[LOCAL] = str(folder / "reader")
    make_bucket(dict(os.environ), f"suite-{number}")
    data, victims = f"s3://suite-{number}/x", (1, 2) if number % 3 == 0 else (1 + number % 2,)
    store = Store(DataFolder.open(data).results)
    workers = {i: start(spec, data, folder / f"local-{i}", i) for i in (1, 2)}
    n_killed = 0
    for victim, n_results in zip(victims, sorted(after), strict=False):
        while sum(len(store.sizes(kind)) for kind in _KINDS) < n_results and workers[victim].poll() is None:
            time.sleep(0.02)
        if workers[victim].poll() is None:
            workers[victim].kill()
            workers[victim].communicate()
            n_killed += 1
            if len(victims) == 2 or number % 2 == 0:
                workers[victim] = start(spec, data, folder / f"local-{victim}", victim)
            else:
                del workers[victim]
    wrong = next(filter(None, map(finished, workers.values())), "")
    measured = numbers_of(data)
    if not wrong and measured != expected:
        wrong = f"DIFFERS: {sorted(measured.items() ^ expected.items())[:4]}"
    return n_killed, wrong


def main(n_kills: int, seed: int = 1) -> int:
    """Kills that many workers and prints what was seen; the exit code is 1 if a suite ended badly, or with other bytes."""
    generator, done, faults, number = np.random.Generator(np.random.SFC64(seed)), 0, 0, 0
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as name, in_own_process() as environment:
        os.environ.update(environment)
        try:
            folder = Path(name)
            spec = folder / "small.yaml"
            spec.write_text(yaml.safe_dump(SPEC))
            expected = alone(spec, folder / "alone")
            print(f"one worker alone leaves {len(expected)} results", flush=True)
            while done < n_kills:
                number += 1
                after = generator.integers(0, len(expected), 2).tolist()
                n_killed, wrong = suite(spec, folder / f"suite-{number}", number, after, expected)
                done, faults = done + n_killed, faults + bool(wrong)
                shown = f"{n_killed} killed at {sorted(after)[:n_killed]} of {len(expected)} results"
                print(f"suite {number:3}, {shown}: {wrong or 'the same bytes'}", flush=True)
        finally:
            os.environ.clear()
            os.environ.update(before)
            files_at.cache_clear()
    print(f"{done} workers killed; {faults} suites lost or with other bytes")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
