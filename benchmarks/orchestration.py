"""What the orchestration costs: beside blocks of ten seconds, and where two hundred cells have nothing to compute."""

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import parse_spec
from benchmarks.result import Result

_BLOCK_SECONDS, _BLOCKS, _MORE_BLOCKS, _CELLS = 10.0, 12, 30, 200
_SPEC: dict[str, Any] = {
    "name": "orchestration",
    "seed": 1,
    "environment": {"kind": "bernoulli", "means": [0.8, 0.4]},
    "horizon": 10_000,
    "replications": _BLOCKS,
    "block_size": 1,
    "algorithms": [{"algorithm": "ucb"}],
}


def _run(spec: dict[str, Any], folder: Path, *options: str) -> tuple[float, list[dict[str, Any]]]:
    """Seconds of the whole command on an empty data folder, and its journal."""
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec))
    start = time.perf_counter()
    command = [sys.executable, "-m", "bandana", "run", str(path), *options, "--data", str(folder / "data")]
    subprocess.run(command, check=True, capture_output=True)
    seconds = time.perf_counter() - start
    journal = folder / "data" / "suites" / spec["name"] / "log.jsonl"
    return seconds, [json.loads(line) for line in journal.read_text().splitlines()]


def _when(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["time"]).timestamp()


def _horizon_of_long_blocks() -> int:
    """Rounds of a block that takes about ten seconds, from one that is short."""
    spec = parse_spec(yaml.safe_dump(_SPEC), "orchestration", Path())
    blocks = cells_of(spec)[0].blocks()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        benchmark_block(blocks[0], store)  # compiles
        start = time.perf_counter()
        benchmark_block(blocks[1], store)
        seconds = time.perf_counter() - start
    return int(spec.horizon * _BLOCK_SECONDS / seconds)


class Parts(NamedTuple):
    """Costs of a command with long blocks, in seconds except `share`.

    Attributes:
      share: of the wall time from the first submit to the last result, in which a worker computed no block.
      start: from the first submit to the first block, in which worker processes start.
      block: of a block, the mean.
      rest: the command beside its flow: its interpreter and imports, Prefect's server, tracking and the report.
    """

    share: float
    start: float
    block: float
    rest: float


def _with_long_blocks(executor: str, horizon: int, workers: int, n_blocks: int = _BLOCKS) -> Parts:
    with tempfile.TemporaryDirectory() as folder:
        options = ("--executor", executor, "--workers", str(workers))
        whole, journal = _run({**_SPEC, "horizon": horizon, "replications": n_blocks}, Path(folder), *options)
    blocks = [event for event in journal if event["event"] == "block done"]
    submitted = next(_when(event) for event in journal if event["event"] == "benchmark started")
    begun, last = min(_when(event) - event["seconds"] for event in blocks), max(map(_when, blocks))
    worked = sum(event["seconds"] for event in blocks)
    return Parts(
        1 - worked / workers / (last - submitted), begun - submitted, worked / len(blocks), whole - (last - submitted)
    )


def _many_cells() -> float:
    epsilons = [round(0.05 * (i + 1), 2) for i in range(_CELLS)]
    spec = {
        **_SPEC,
        "horizon": 50,
        "replications": 1,
        "algorithms": [{"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": epsilons}}],
    }
    with tempfile.TemporaryDirectory() as folder:
        seconds, journal = _run(spec, Path(folder))
    assert sum(event["event"] == "cell tracked" for event in journal) == _CELLS
    return seconds


def measure() -> list[Result]:
    workers = min(2, len(os.sched_getaffinity(0)))
    horizon = _horizon_of_long_blocks()
    local, pool = (_with_long_blocks(executor, horizon, workers) for executor in ("local", "processes"))
    longer = _with_long_blocks("processes", horizon, workers, _MORE_BLOCKS)
    beside = ((_BLOCKS, local, "threads"), (_BLOCKS, pool, "processes"), (_MORE_BLOCKS, longer, "processes"))
    return [
        *(
            Result(f"orchestration beside {n} blocks of {found.block:.0f} s, {where}", 100 * found.share, 5, "% of the flow")
            for n, found, where in beside
        ),
        Result(f"of each, the start of {workers} worker processes", pool.start, 30, "s"),
        Result("the rest of a command: imports, server, tracking, report", max(local.rest, pool.rest), 30, "s"),
        Result(f"{_CELLS} cells of trivial work, the whole command", _many_cells(), 30, "s"),
    ]
