"""How a suite scales over many workers: a queue simulated from measured costs, and 1, 2 and 4 real processes on one bucket.

    python -m benchmarks.many_workers [--quick]

Measured here: processor seconds of blocks and of what a Prefect run spends on a task, which other work on the machine
does not lengthen, and seconds of what a worker asks of the store for a piece. Then 10,000 pieces with those costs are worked
on by 1 to 1,000 workers, once handed out by one coordinator, once shared as `bandana work` does (`Shard.ordered`), where a
request to the store takes 30 ms.
"""

from __future__ import annotations

import heapq
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import yaml

from bandana.flows.annexes.machines.sharing import Shard
from bandana.flows.cells.play import BENCHMARK, benchmark_block
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.shared import LOCAL
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan
from bandana.flows.spec.spec import parse_spec
from benchmarks.object_server import in_own_process, make_bucket

N_PIECES = 10_000
WORKERS = (1, 10, 100, 200, 500, 1000)
REQUEST, REQUESTS = 0.03, 4
"""Seconds of a request to a store of another place, and requests of a piece: that it begins, two reads, and the result."""
_SPEC: dict[str, Any] = {
    "name": "queue", "seed": 1, "horizon": 100_000, "replications": 48, "block_size": 8,
    "environment": {"kind": "bernoulli", "means": [0.75, 0.625, 0.5, 0.375, 0.25]},
    "algorithms": [
        {"algorithm": "ucb"},
        {"algorithm": "dp-imed", "privacy": {"epsilon": [0.25, 1]}},
        {"algorithm": "adar-ucb", "calibrations": ["tight"], "privacy": {"alpha": 2, "epsilon": [1]}},
    ],
}  # fmt: skip


class Simulated(NamedTuple):
    """A queue that was worked on.

    Attributes:
      seconds: until the last piece was done.
      twice: share of all work that two workers did at once.
    """

    seconds: float
    twice: float


def coordinated(costs: Sequence[float], n_workers: int, dispatch: float) -> Simulated:
    """One coordinator hands out the pieces in order, and spends `dispatch` seconds on each; idle workers wait in a line."""
    free, ready, last = [0.0] * n_workers, 0.0, 0.0
    for cost in costs:
        ready = max(ready, heapq.heappop(free)) + dispatch
        heapq.heappush(free, ready + cost)
        last = max(last, ready + cost)
    return Simulated(last, 0.0)


def shared(costs: Sequence[float], n_workers: int, overhead: float) -> Simulated:
    """Workers begin with their shards and help each other; each piece takes `overhead` seconds of requests more."""
    keys = [f"{i:x}" for i in range(len(costs))]
    place = {key: i for i, key in enumerate(keys)}
    orders = [iter(Shard(i + 1, n_workers).ordered(keys)) for i in range(n_workers)]
    done = np.full(len(costs), np.inf)
    later: list[list[int]] = [[] for _ in range(n_workers)]
    events, worked = [(0.0, i) for i in range(n_workers)], 0.0
    while events:
        now, worker = heapq.heappop(events)
        if (piece := _next(orders[worker], later[worker], place, done, now)) is not None:
            ends = now + costs[piece] + overhead
            done[piece] = min(done[piece], ends)
            worked += ends - now
            heapq.heappush(events, (ends, worker))
    needed = sum(costs) + overhead * len(costs)
    return Simulated(float(done.max()), worked / needed - 1)


def _next(order: Iterator[str], later: list[int], place: dict[str, int], done: np.ndarray, now: float) -> int | None:
    """The next piece that nobody began; once there is none, one that nobody finished."""
    for key in order:
        if done[place[key]] == np.inf:
            return place[key]
        if done[place[key]] > now:
            later.append(place[key])
    while later:
        if done[piece := later.pop(0)] > now:
            return piece
    return None


def block_costs() -> list[float]:
    """Processor seconds of each block of the spec; the first of two passes compiles."""
    blocks = Plan.of(parse_spec(yaml.safe_dump(_SPEC), "queue", Path())).blocks()
    costs: list[float] = []
    for _ in range(2):
        costs = []
        with tempfile.TemporaryDirectory() as folder:
            for block in blocks:
                begun = time.process_time()
                benchmark_block(block, Store(Path(folder)))
                costs.append(time.process_time() - begun)
    return costs


def _run(folder: Path, n_blocks: int) -> float:
    """Processor seconds of a whole run with so many trivial blocks, server and workers included."""
    spec = {
        **_SPEC,
        "name": f"n{n_blocks}",
        "horizon": 20,
        "replications": n_blocks,
        "block_size": 1,
        "algorithms": [{"algorithm": "ucb"}],
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["run", str(folder / "spec.yaml"), "--executor", "local", "--data", str(folder / "data")]
    subprocess.run([sys.executable, "-m", "bandana", *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def dispatch_seconds(n_blocks: int) -> float:
    """Processor seconds that a coordinator spends on one task: what a run with more trivial blocks takes longer."""
    with tempfile.TemporaryDirectory() as name:
        _run(Path(name), 2)  # lays out the tables
        return (_run(Path(name), n_blocks + 4) - _run(Path(name), 4)) / n_blocks


def store_seconds(n_pieces: int) -> float:
    """Seconds of a piece's requests on the loopback interface, the server's part included."""
    store = Store(DataFolder.open("s3://queue/store").results)
    begun = time.perf_counter()
    for i in range(n_pieces):
        assert store.load(BENCHMARK, f"{i}") is None
        store.save(BENCHMARK, f"{i}", {"x": np.zeros(100)}, {})
    return (time.perf_counter() - begun) / n_pieces


def processes(n_workers: int, folder: Path) -> dict[str, float]:
    """Real workers on one bucket: seconds of all, and how many blocks they computed together beside those of the suite."""
    spec, data = folder / "spec.yaml", f"s3://queue/{n_workers}"
    spec.write_text(yaml.safe_dump({**_SPEC, "horizon": 400_000}))
    begun = time.monotonic()
    words = [sys.executable, "-m", "bandana", "work", str(spec), "--workers", "1", "--json", "--data", data]
    workers = [
        subprocess.Popen(
            [*words, "--shard", f"{i + 1}/{n_workers}"], env={**os.environ, LOCAL: str(folder / f"local-{n_workers}-{i}")},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for i in range(n_workers)
    ]  # fmt: skip
    done = [json.loads(worker.communicate()[0])["blocks"] for worker in workers]
    return {
        "workers": n_workers, "seconds": time.monotonic() - begun,
        "computed": sum(one["here"] for one in done), "blocks": done[0]["total"],
    }  # fmt: skip


def markdown(costs: Sequence[float], dispatch: float, requests: float, real: list[dict[str, float]]) -> str:
    """The tables of docs/speed.md."""
    drawn = np.random.Generator(np.random.SFC64(1)).choice(np.asarray(costs), N_PIECES)
    ten = drawn * (10.0 / drawn.mean())  # blocks of the advised size, of the same spread
    lines = [
        f"A block took {np.mean(costs):.2f} s ({min(costs):.2f} to {max(costs):.2f}), a task {1000 * dispatch:.0f} ms of "
        f"Prefect's coordinator, requests on loopback {1000 * requests:.0f} ms. Simulated: {N_PIECES:,} blocks of ten "
        f"seconds, {1000 * REQUEST:.0f} ms a request.",
        "", "| workers | shared: hours | efficiency | twice | coordinated: hours | efficiency |",
        "|--:|--:|--:|--:|--:|--:|",
    ]  # fmt: skip
    for n in WORKERS:
        by_all, by_one = shared(ten, n, REQUEST * REQUESTS), coordinated(ten, n, dispatch)
        share = [ten.sum() / n / one.seconds for one in (by_all, by_one)]
        shown = [f"{n:,}", f"{by_all.seconds / 3600:.2f}", f"{share[0]:.0%}", f"{max(0.0, by_all.twice):.0%}"]
        lines.append(f"| {' | '.join(shown)} | {by_one.seconds / 3600:.2f} | {share[1]:.0%} |")
    lines += ["", f"A coordinator is busy all the time from {ten.mean() / dispatch:,.0f} workers on.", ""]
    lines += [f"| processes, on {len(os.sched_getaffinity(0))} cores | seconds | blocks computed |", "|--:|--:|--:|"]
    lines += [f"| {one['workers']} | {one['seconds']:.0f} | {one['computed']} of {one['blocks']} |" for one in real]
    return "\n".join(lines)


def main() -> None:
    """Measures, simulates and prints."""
    is_quick, before = "--quick" in sys.argv[1:], dict(os.environ)
    costs, dispatch = block_costs(), dispatch_seconds(20 if is_quick else 200)
    with tempfile.TemporaryDirectory() as name, in_own_process() as environment:
        os.environ.update(environment | {LOCAL: name})
        make_bucket(environment, "queue")
        try:
            requests = store_seconds(20 if is_quick else 200)
            real = [processes(n, Path(name)) for n in ((1, 2) if is_quick else (1, 2, 4))]
        finally:
            os.environ.clear()
            os.environ.update(before)
    print(markdown(costs, dispatch, requests, real))


if __name__ == "__main__":
    main()
