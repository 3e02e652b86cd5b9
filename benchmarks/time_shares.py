"""Where the time of `bandana run SPEC --audit` goes: playing, auditing, and everything else.

    python -m benchmarks.time_shares SPEC ... [--goal 5]

Runs the command on an empty data folder for each spec, and reads the suite's journal as `bandana explain-time` does,
with its beginning and end seen from outside. Modules are compiled before, as pip does when it installs them. The exit
code is 1 where the rest takes more than the goal.
"""

from __future__ import annotations

import argparse
import compileall
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from bandana.flows.annexes.operations.times import other_share, shares
from benchmarks.house import PRODUCT, ROOT
from benchmarks.waits import environment

GOAL = 5.0


def run(spec: Path) -> dict[str, float]:
    """Runs a spec with audits on an empty folder, its modules compiled as pip leaves them, and returns its shares."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bandana", "run", str(spec), "--audit", "--data", folder]
        for part in PRODUCT:
            compileall.compile_dir(ROOT / part, quiet=1)
        begun = time.time()
        subprocess.run(command, check=True, capture_output=True, env=environment())
        ended = time.time()
        (place,) = Path(folder).glob("suites/*/log.jsonl")
        return shares(begun, ended, map(json.loads, place.read_text(encoding="utf-8").splitlines()))


def measure(specs: Iterable[Path]) -> dict[str, dict[str, float]]:
    """Name of a spec -> its shares, one run after the other."""
    return {spec.stem: run(spec) for spec in specs}


def markdown(measured: Mapping[str, Mapping[str, float]]) -> str:
    """The table of docs/speed.md: seconds of each part, and their share of the whole, for each spec."""
    lines = [f"| part of the command, seconds | {' | '.join(measured)} |", "|---|" + "--:|" * len(measured)]
    for what in next(iter(measured.values())):
        cells = (f"{one[what]:.1f} ({one[what] / sum(one.values()):.0%})" for one in measured.values())
        lines.append(f"| {what} | {' | '.join(cells)} |")
    others = " | ".join(f"{other_share(one):.0f}%" for one in measured.values())
    return "\n".join([*lines, f"| **beside playing and auditing**, goal: {GOAL:g}% | {others} |"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.time_shares", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("specs", type=Path, nargs="+", metavar="SPEC")
    parser.add_argument("--goal", type=float, default=GOAL, help="most percent beside playing and auditing")
    chosen = parser.parse_args()
    measured = measure(chosen.specs)
    print(markdown(measured))
    return int(max(map(other_share, measured.values())) > chosen.goal)


if __name__ == "__main__":
    sys.exit(main())
