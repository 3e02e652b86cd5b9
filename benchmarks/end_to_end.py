"""The whole demo in processes of its own, on an empty data folder."""

import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

from benchmarks.result import Result

_MARK = "BANDANA_BENCHMARK"


def _memory_of(mark: str) -> int:
    """Bytes that all processes with the mark in their environment take together; shared pages count once."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() not in (folder / "environ").read_bytes():
                continue
            lines = (folder / "smaps_rollup").read_text().splitlines()
        except OSError:  # it ended, or belongs to another user
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def _watched(command: list[str]) -> tuple[float, int]:
    """Seconds that a command took, and the peak of its processes' memory, looked at twice a second."""
    mark = f"{_MARK}={uuid.uuid4()}"
    name, value = mark.split("=")
    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.5):
            peak = max(peak, _memory_of(mark))

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    try:
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, name: value})
    finally:
        done.set()
        watcher.join()
    return time.perf_counter() - start, peak


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", "from bandana.flows.cli import main; main()", "demo", "--data", folder]
        seconds, peak = _watched(command)
    return [
        Result("bandana demo, two cores", seconds, 60, "s"),
        Result("bandana demo, all processes together", peak / 2**30, 2, "GiB"),
    ]
