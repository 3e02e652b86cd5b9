"""What grows with the number of cells and of rows: a suite of 500 cells, and a table of ten million rows."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.finite_arms import TableSpec, parse_table
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import SpecError
from benchmarks.result import Result

CELLS, ROWS = 500, 10_000_000
_SPEC: dict[str, Any] = {
    "name": "large",
    "seed": 1,
    "environment": {"kind": "bernoulli", "means": [0.8, 0.4]},
    "horizon": 50,
    "replications": 2,
    "block_size": 2,
    "twins": False,
    "references": False,
    "algorithms": [
        {"algorithm": "adar-ucb", "calibrations": "tight",
         "privacy": {"alpha": 2, "epsilon": [round(0.02 * (i + 1), 2) for i in range(CELLS)]}}
    ],
}  # fmt: skip


def _children() -> float:
    """Processor seconds of the processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _command(*words: str) -> float:
    """Processor seconds of a command, its server's included."""
    start = _children()
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "bandana", *words], check=True, capture_output=True, env=environment)
    return _children() - start


def suite() -> tuple[float, float, float]:
    """Processor seconds of the plan of 500 cells and of the command that reports them, and the page's size in MB."""
    text = yaml.safe_dump(_SPEC)
    start = time.process_time()
    cells = cells_of(parse_spec(text, "large", Path()))
    planned = time.process_time() - start
    assert len(cells) == CELLS
    with tempfile.TemporaryDirectory() as folder:
        path, data = Path(folder) / "large.yaml", str(Path(folder) / "data")
        path.write_text(text)
        _command("run", str(path), "--executor", "local", "--data", data)
        reported = _command("report", str(path), "--data", data)
        size = (Path(data) / "suites" / "large" / "report.html").stat().st_size
    return planned, reported, size / 1e6


def table(rows: int) -> float:
    """Processor seconds until a table of two arms is read, or refused."""
    content = np.full((rows, 4), ord(","), dtype=np.uint8)
    content[:, ::2] = ord("0") + np.random.Generator(np.random.SFC64(1)).integers(0, 2, (rows, 2))
    content[:, 3] = ord("\n")
    item = TableSpec(kind="table", path=Path("rows.csv"), public=["values"])
    start = time.process_time()
    try:
        parse_table(item, b"left,right\n" + content.tobytes())
    except SpecError as error:
        print(f"refused: {error}", file=sys.stderr)
    return time.process_time() - start


def measure() -> list[Result]:
    planned, reported, size = suite()
    return [
        Result(f"{CELLS} cells: plan", planned, 5, "s"),
        Result(f"{CELLS} cells: report", reported, 30, "s"),
        Result(f"{CELLS} cells: page", size, 10, "MB"),
        Result(f"{ROWS:,} rows: read or refused", table(ROWS), 5, "s"),
        Result("8,000,000 rows: read", table(8_000_000), 30, "s"),
    ]


if __name__ == "__main__":
    for result in measure():
        print(f"{result.name}: {result.measured:.3g} {result.unit}, at most {result.limit:g}")
