"""What one core does, and what that makes of 1e10 replays on many machines: `python -m benchmarks.scale`.

Counts the replays of one whole audit with its planted faults, times it on one thread, and carries the result on. Nothing is
assumed about other machines but that their cores are as fast; a plan for others starts with this command on one of them.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("BANDANA_WORKERS", "1")

from typing import Any
from unittest.mock import patch

import yaml

from bandana.audits.replays import measure
from bandana.audits.replays.replay import replay_both
from bandana.flows.cells.audits import audit_cell, evidence_of
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import parse_spec

GOAL = 10**10
MACHINES = ((1, 2), (4, 16), (16, 32), (64, 32))
_SPEC = {
    "name": "scale",
    "seed": 1,
    "environment": {"kind": "bernoulli", "means": [0.75, 0.625, 0.5, 0.375, 0.25]},
    "horizon": 100_000,
    "replications": 200,
    "block_size": 200,
    "algorithms": [{"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": 1}}],
    "audit": {"rounds": 64, "replays": 100_000, "examples": 200},
}


def one_core(replays: int) -> dict[str, float]:
    """Measured on one thread of this machine: one audit with its planted faults, and one block of a benchmark.

    Args:
      replays: on each side of each pair.
    """
    spec = parse_spec(yaml.safe_dump({**_SPEC, "audit": {**_SPEC["audit"], "replays": replays}}), "scale", Path())  # type: ignore[dict-item]
    cell = cells_of(spec)[0]
    counted = 0

    def counting(*arguments: Any, **more: Any) -> Any:
        nonlocal counted
        replays_of_both = replay_both(*arguments, **more)
        counted += sum(map(len, replays_of_both))
        return replays_of_both

    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        small = parse_spec(yaml.safe_dump({**_SPEC, "name": "warm", "seed": 2,
                                           "audit": {**_SPEC["audit"], "replays": 2000}}), "warm", Path())  # type: ignore[dict-item]  # fmt: skip
        audit_cell(cells_of(small)[0], store)  # compiles
        with patch.object(measure, "replay_both", counting):
            start = time.perf_counter()
            audit_cell(cell, store)
            audit_seconds = time.perf_counter() - start
        evidence = evidence_of(cell, store).stat().st_size
        start = time.perf_counter()
        benchmark_block(cell.blocks()[0], store)
        block_seconds = time.perf_counter() - start
    return {
        "replays_a_side": replays,
        "replays_of_an_audit": counted,
        "audit_seconds": audit_seconds,
        "replays_per_second": counted / audit_seconds,
        "evidence_bytes": evidence,
        "episodes_per_second": spec.block_size / block_seconds,
    }


def plan(measured: dict[str, float]) -> list[dict[str, float]]:
    """Hours that 1e10 replays take on so many machines, if their cores are as fast as this one."""
    core_hours = GOAL / measured["replays_per_second"] / 3600
    return [{"machines": machines, "cores": cores, "hours": core_hours / (machines * cores)} for machines, cores in MACHINES]


def markdown(measured: dict[str, float]) -> str:
    """The two tables of docs/speed.md."""
    rows = [
        ("replays of one audit, all pairs, sides, planted faults and budgets", f"{measured['replays_of_an_audit']:,.0f}"),
        ("seconds of one audit on one core", f"{measured['audit_seconds']:.1f}"),
        ("core hours", f"{GOAL / measured['replays_per_second'] / 3600:,.0f}"),
    ]
    told = ["| measured, or computed from it | |", "|---|--:|", *(f"| {name} | {value} |" for name, value in rows), ""]
    told += ["| machines | cores of each | hours for 1e10 replays |", "|--:|--:|--:|"]
    told += [f"| {row['machines']} | {row['cores']} | {row['hours']:.2g} |" for row in plan(measured)]
    return "\n".join(told)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--replays", type=int, default=100_000, help="on each side of each pair")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    measured = one_core(chosen.replays)
    print(json.dumps({**measured, "plan": plan(measured)}, indent=1) if chosen.json else markdown(measured))


if __name__ == "__main__":
    main()
