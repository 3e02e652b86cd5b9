"""Where the time of `bandana run SPEC --audit` goes: playing, auditing, and everything else.

    python -m benchmarks.time_shares SPEC [--goal 5]

Runs the command on an empty data folder and reads the suite's journal, which keeps when each block and each audit was done
and the seconds that it took. A moment counts as work while any worker plays or audits; what is left is the interpreter, the
plan, Prefect's server, tracking and the report. The exit code is 1 where that is more than the goal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

GOAL = 5.0
_WORK = {"block done": "playing", "audit done": "auditing"}


def shares(begun: float, ended: float, journal: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Seconds of a command by what was done in them; those in which nothing was played or audited by what came before.

    Args:
      begun: when the command began, in seconds since 1970.
      ended: when it ended.
      journal: events of the suite, with `time`, and `seconds` where something was worked on until then.
    """
    events = [(datetime.fromisoformat(event["time"]).timestamp(), event) for event in journal]
    stretches = sorted((at - event["seconds"], at, _WORK[event["event"]]) for at, event in events if event["event"] in _WORK)
    measured = dict.fromkeys(("before the first block", *_WORK.values(), "between", "after the last one"), 0.0)
    if not stretches:
        return measured | {"before the first block": ended - begun}
    last = begun
    for start, stop, what in stretches:
        idle = max(0.0, start - last)
        measured["before the first block" if last == begun else "between"] += idle
        measured[what] += max(0.0, stop - max(last, start))
        last = max(last, stop)
    return measured | {"after the last one": max(0.0, ended - last)}


def run(spec: Path) -> dict[str, float]:
    """Runs a spec with audits on an empty folder, and its shares."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bandana", "run", str(spec), "--audit", "--data", folder]
        begun = time.time()
        subprocess.run(command, check=True, capture_output=True)
        ended = time.time()
        (place,) = Path(folder).glob("suites/*/log.jsonl")
        return shares(begun, ended, map(json.loads, place.read_text(encoding="utf-8").splitlines()))


def other_share(measured: Mapping[str, float]) -> float:
    """Percent of the time in which nothing was played or audited."""
    return 100 * (1 - sum(measured[what] for what in _WORK.values()) / sum(measured.values()))


def markdown(measured: Mapping[str, float]) -> str:
    """The table of docs/speed.md."""
    whole = sum(measured.values())
    lines = ["| part of the command | seconds | share |", "|---|--:|--:|"]
    return "\n".join(lines + [f"| {what} | {seconds:.1f} | {seconds / whole:.0%} |" for what, seconds in measured.items()])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.time_shares", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("spec", type=Path)
    parser.add_argument("--goal", type=float, default=GOAL, help="most percent of the time beside playing and auditing")
    chosen = parser.parse_args()
    measured = run(chosen.spec)
    print(markdown(measured))
    share = other_share(measured)
    print(f"\n{share:.1f} % beside playing and auditing; goal: at most {chosen.goal:g} %")
    return int(share > chosen.goal)


if __name__ == "__main__":
    sys.exit(main())
