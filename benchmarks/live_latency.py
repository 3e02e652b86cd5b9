"""How long `ask` and `tell` of a live policy take, with two processes on one SQLite file.

    python -m benchmarks.live_latency [SECONDS]

Each process asks and tells in turn as fast as it can. The time of one `fsync` on this disk is printed beside, as every
acknowledged call waits for one.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import bandana.live

SETTINGS: dict[str, Any] = {
    "algorithm": "dp-imed", "claim": "pure(epsilon=1, relation=reward)", "n_actions": 4, "deadline": 0, "wait": 20
}  # fmt: skip


def load(place: str, seconds: float, results: Any) -> None:
    """Asks and tells for so many seconds; puts (2, n) milliseconds, and the processor's for both calls, into the queue."""
    policy, times = bandana.live.open(place), []
    for _ in range(5):
        policy.tell(policy.ask().id, 1.0)
    end, cpu = time.perf_counter() + seconds, time.process_time()
    while (begun := time.perf_counter()) < end:
        choice = policy.ask()
        between = time.perf_counter()
        policy.tell(choice.id, 1.0)
        times.append((between - begun, time.perf_counter() - between))
    results.put((1e3 * np.array(times).T, 1e3 * (time.process_time() - cpu) / len(times)))


def fsync_time(folder: Path, n: int = 100) -> float:
    """Median milliseconds that one page takes to the disk."""
    file, times = os.open(folder / "page", os.O_CREAT | os.O_WRONLY), []
    for _ in range(n):
        begun = time.perf_counter()
        os.write(file, b"x" * 4096)
        os.fsync(file)
        times.append(time.perf_counter() - begun)
    os.close(file)
    return float(1e3 * np.median(times))


def main(seconds: float) -> None:
    """Prints percentiles and the number of asks a second."""
    context: Any = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        place, results = f"{name}/router.db", context.Queue()
        bandana.live.open(place, **SETTINGS)
        children = [context.Process(target=load, args=(place, seconds, results)) for _ in range(2)]
        for child in children:
            child.start()
        answers = [results.get() for _ in children]
        times = np.concatenate([answer[0] for answer in answers], axis=1)
        for child in children:
            child.join()
        print(f"fsync of one page: median {fsync_time(Path(name)):.1f} ms; load average {os.getloadavg()[0]:.1f}")
    for what, row in zip(("ask", "tell"), times, strict=True):
        median, high = np.percentile(row, [50, 99])
        print(f"{what}: median {median:.1f} ms, p99 {high:.1f} ms ({len(row)} calls)")
    print(f"processor time of an ask and a tell together: {np.mean([answer[1] for answer in answers]):.1f} ms")
    print(f"{times.shape[1] / seconds:.0f} asks and tells a second, two processes together")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
