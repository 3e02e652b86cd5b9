"""The whole demo in a process of its own, on an empty data folder."""

import resource
import subprocess
import sys
import tempfile
import time

from benchmarks.result import Result


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        command = [sys.executable, "-c", "from flows.cli import main; main()", "demo", "--data", folder]
        subprocess.run(command, check=True, capture_output=True)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return [
        Result("bandana demo, two cores", seconds, 120, "s"),
        Result("bandana demo, largest process", peak, 2, "GiB"),
    ]
