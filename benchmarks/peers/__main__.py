"""Plays the same work in public libraries and in ours, and prints how many times the processor time of ours they take.

    python -m benchmarks.peers FOLDER [--json FILE]

FOLDER is a virtual environment of the libraries, which is made where it is not there. Both sides answer from processes of
their own, one thread each, turn by turn: a ratio is that of two neighboring runs, and its median is shown with the range of
all runs. With seven runs the range holds the median of the law with probability 1 - 2 / 2^7 = 98 %. The exit code is 1 where
two sides that should have done the same did not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import rows
from benchmarks.peers.installation import ROOT, install, python_of, requirements

RUNS = 7
_ALONE = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class Side:
    """A process that answers requests."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
            env={**os.environ, **_ALONE, "JAX_PLATFORMS": "cpu"},
        )  # fmt: skip

    def ask(self, task: str, replications: int, seed: int) -> dict[str, Any]:
        """Its answer, see `answering`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"task": task, "replications": replications, "seed": seed}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


def measure(folder: Path, runs: int = RUNS) -> dict[str, Any]:
    """All works, compared in one run.

    Args:
      folder: the virtual environment of the libraries.
      runs: of every row, turn by turn; at least 5.
    """

    def say(words: str) -> None:
        print(words, file=sys.stderr, flush=True)

    missing = install(folder, say)
    ours = Side([sys.executable, "-m", "benchmarks.peers.ours"])
    theirs = Side([str(python_of(folder)), str(Path(__file__).with_name("theirs.py"))])
    kept: dict[str, list[Any]] = {}
    for seed in range(1, runs + 1):
        say(f"run {seed} of {runs}")
        kept.setdefault("limits", []).append(ours.ask("limits", 1, seed)["values"])
        for work in rows.WORKS:
            for row in work.rows:
                kept.setdefault(f"{work.name}: {row.task}", []).append(
                    (ours.ask(work.task, work.replications, seed), theirs.ask(row.task, row.replications, seed), seed)
                )
    ours.close()
    theirs.close()
    uniform, byte = np.median(np.array(kept["limits"]), axis=0)
    return {
        "runs": runs, "missing": missing, "versions": requirements(), "uniform_ns": uniform, "byte_ns": byte,
        "works": [_summary(work, kept, uniform * work.uniforms + byte * work.n_bytes) for work in rows.WORKS],
    }  # fmt: skip


def _summary(work: rows.Work, kept: dict[str, list[Any]], limit: float) -> dict[str, Any]:
    """Times, ratios and agreement of one work; `limit` in nanoseconds."""
    own = [_per_unit(mine) for row in work.rows for mine, _, _ in kept[f"{work.name}: {row.task}"]]
    return {
        "name": work.name, "unit": work.unit, "limit": work.limit, "limit_ns": limit,
        "ours_ns": [float(value) * 1e9 for value in (np.median(own), min(own), max(own))],
        "rows": [_row(row, kept[f"{work.name}: {row.task}"]) for row in work.rows],
    }  # fmt: skip


def _per_unit(answer: dict[str, Any]) -> float:
    return float(answer["seconds"]) / int(answer["units"])


def _row(row: rows.Row, kept: list[Any]) -> dict[str, Any]:
    failed = next((other["error"] for _, other, _ in kept if "error" in other), None)
    if failed is not None:
        return {"library": row.library, "error": failed, "agrees": False}
    ratios = [_per_unit(theirs) / _per_unit(ours) for ours, theirs, _ in kept]
    mine: list[Any] = []
    other: list[Any] = []
    for ours, theirs, seed in kept:
        one_by_one = row.check in ("same", "pulls", "epsilon")
        values = ours["values"][: len(theirs["values"])] if one_by_one else rows.regrets_of(row.task, ours["values"], seed)
        mine += values
        other += theirs["values"] if one_by_one else rows.regrets_of(row.task, theirs["values"], seed)
    agrees, words = rows.agreement(row, mine, other)
    spread = [float(np.median(ratios)), min(ratios), max(ratios)]
    return {"library": row.library, "ratio": spread, "agrees": agrees, "words": words}


def markdown(measured: dict[str, Any]) -> str:
    """The table of docs/speed.md, and what did not install or agree."""
    lines = [
        "| work: unit | ours | at least | library | its time / ours | same? ours / theirs |",
        "|---|--:|--:|---|--:|---|",
    ]
    for work in measured["works"]:
        head = f"{work['name']}: {work['unit']}", time_of(work["ours_ns"][0]), _least(work)
        for number, row in enumerate(work["rows"]):
            name, own, least = head if number == 0 else ("", "", "")
            ratio = row["error"] if "error" in row else "{} ({} to {})".format(*map(rounded, row["ratio"]))
            same = ("" if row["agrees"] else "**no** ") + row.get("words", "")
            lines.append(f"| {name} | {own} | {least} | {row['library']} | {ratio} | {same} |")
    lines += [f"\nNot installed: {name}: {why}" for name, why in measured["missing"].items()]
    return "\n".join(lines)


def _least(work: dict[str, Any]) -> str:
    return str(work["limit"]) + (f": {time_of(work['limit_ns'])}" if work["limit_ns"] else "")


def rounded(value: float) -> str:
    """Two significant digits, without exponents."""
    return f"{float(f'{value:.2g}'):,.10g}"


def time_of(nanoseconds: float) -> str:
    """A time in the unit that suits it."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= size:
            return f"{rounded(nanoseconds / size)} {unit}"
    return f"{rounded(nanoseconds)} ns"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="virtual environment of the libraries, made where it is not there")
    parser.add_argument("--runs", type=int, default=RUNS, help="of every row, turn by turn; at least 5")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where every number is written")
    chosen = parser.parse_args()
    if chosen.runs < 5:
        parser.error(f"--runs must be at least 5, got {chosen.runs}: fewer say nothing of the spread")
    measured = measure(chosen.folder.resolve(), chosen.runs)
    if chosen.json:
        chosen.json.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    print(markdown(measured))
    return 0 if all(row["agrees"] for work in measured["works"] for row in work["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
