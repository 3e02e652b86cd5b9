"""How long the audit of each entry of the catalog takes, alone on this machine: `python -m benchmarks.audit_waits FOLDER`.

Each is the whole audit as `bandana audit-catalog` makes it, one after the other on all cores: replays, bounds, searches and
planted faults, at the claimed and at the test budget. FOLDER keeps what was measured of the same sources, so that a stopped
run goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bandana.audits.replays.replay import in_threads
from bandana.audits.subjects import EFFORT, subjects
from bandana.flows.cells.replays import audit_of_subject
from bandana.flows.keys import checkout
from bandana.flows.keys.provenance import about_audits
from bandana.flows.running.memory import keep_freed

MOST, MEDIAN = 45, 15
"""Goals: seconds of the longest audit, and of the median one."""
SHOWN = 6


class Wait(NamedTuple):
    """One audit.

    Attributes:
      seconds: by the clock.
      processor: seconds of all threads.
      verdict: of the audit.
    """

    seconds: float
    processor: float
    verdict: str


def wait_of(label: str, replays: int) -> Wait:
    """Audits one entry of the catalog on all cores, with the options of `bandana audit-catalog`."""
    effort = replace(EFFORT, replays=replays)
    begun, spent = time.perf_counter(), time.process_time()
    with in_threads(len(os.sched_getaffinity(0))):
        outcome = audit_of_subject(subjects()[label](), effort, about_audits)
    return Wait(time.perf_counter() - begun, time.process_time() - spent, str(outcome.verdict))


def measure(folder: Path, labels: Sequence[str], replays: int = EFFORT.replays) -> dict[str, Wait]:
    """Audits what the folder does not hold yet."""
    folder.mkdir(parents=True, exist_ok=True)
    keep_freed()
    place = folder / f"audits-{checkout.sources()[:12]}-{replays}.jsonl"
    lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
    waits = {label: Wait(*measured) for label, *measured in map(json.loads, lines)}
    for label in labels:
        if label not in waits:
            waits[label] = wait_of(label, replays)
            with place.open("a", encoding="utf-8") as file:
                file.write(json.dumps([label, *waits[label]]) + "\n")
            print(f"{waits[label].seconds:7.1f} s  {waits[label].processor:7.1f} s  {label}", file=sys.stderr, flush=True)
    return waits


def markdown(waits: Mapping[str, Wait]) -> str:
    """The table of docs/speed.md: quartiles, and the longest audits by name."""
    seconds = [wait.seconds for wait in waits.values()]
    passed = sum(wait.verdict in ("PASS", "NOT REFUTED") for wait in waits.values())
    late = sum(each > MOST for each in seconds)
    low, median, high = np.percentile(seconds, [25, 50, 75])
    lines = [
        f"{len(waits)} audits, {passed} passed; quartiles {low:.0f}, {median:.0f}, {high:.0f} s (goal: median {MEDIAN}); "
        f"{late} above {MOST} s.",
        "", "| longest | seconds | of processors |", "|---|--:|--:|",
    ]  # fmt: skip
    longest = sorted(waits.items(), key=lambda item: -item[1].seconds)[:SHOWN]
    return "\n".join(lines + [f"| {label} | {wait.seconds:.0f} | {wait.processor:.0f} |" for label, wait in longest])


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit_waits", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where what was measured is kept")
    parser.add_argument("--only", nargs="+", metavar="LABEL", help="these entries alone")
    parser.add_argument("--replays", type=int, default=EFFORT.replays, help="on each side")
    chosen = parser.parse_args()
    print(markdown(measure(chosen.folder, chosen.only or list(subjects()), chosen.replays)))


if __name__ == "__main__":
    main()
