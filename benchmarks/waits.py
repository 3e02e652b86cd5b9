"""What a person waits for, beside its goal: `python -m benchmarks.waits FOLDER [--only WAIT ...] [--runs N]`.

Each command runs by itself, with a data folder of its own, and the median by the clock is shown. FOLDER keeps each run of
the same sources, so that a stopped command goes on and the long ones need not run with the others. It needs an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bandana.flows.keys import checkout

ROOT = Path(__file__).resolve().parents[1]
RUNS = 5
_SHOWN = 3000
_BANDANA = (sys.executable, "-m", "bandana")


class Wait(NamedTuple):
    """A command that somebody waits for.

    Attributes:
      what: it does, as the page calls it.
      command: its words, but for the data folder.
      seconds: the goal, by the clock.
      is_long: True if it runs once, where others run `RUNS` times.
    """

    what: str
    command: tuple[str, ...]
    seconds: float
    is_long: bool = False


WAITS: Mapping[str, Wait] = {
    "demo": Wait("`bandana demo`, after installation", (*_BANDANA, "demo"), 40),
    "quick": Wait("`make quick`", ("make", "--silent", "quick"), 60),
    "tests": Wait("`make test`", ("make", "--silent", "test"), 300, is_long=True),
    "quick-board": Wait("`bandana leaderboard --quick`", (*_BANDANA, "leaderboard", "--quick", "--yes"), 360, is_long=True),
    "board": Wait("`bandana leaderboard`", (*_BANDANA, "leaderboard", "--yes"), 3600, is_long=True),
}


def environment() -> dict[str, str]:
    """Variables of a command as a person runs it: with all cores, whatever a benchmark around it is limited to."""
    return {name: value for name, value in os.environ.items() if name not in ("BANDANA_WORKERS", "PYTHONDONTWRITEBYTECODE")}


def run(wait: Wait) -> float:
    """Seconds of a command in the checkout; what it writes goes to a data folder that is removed.

    Raises:
      SystemExit: it failed; the message has the end of what it said.
    """
    with tempfile.TemporaryDirectory() as data:
        words = [*wait.command, *(["--data", data] if wait.command[:3] == _BANDANA else [])]
        begun = time.perf_counter()
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=environment(), check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-_SHOWN:]}")
        return time.perf_counter() - begun


def measure(folder: Path, names: Iterable[str], n_runs: int = RUNS) -> dict[str, list[float]]:
    """Runs what the folder does not hold yet, and returns all runs of each command that it holds."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"waits-{checkout.sources()[:12]}.jsonl"
    kept: dict[str, list[float]] = {name: [] for name in WAITS}
    for name, seconds in map(json.loads, place.read_text(encoding="utf-8").splitlines() if place.exists() else ()):
        kept[name].append(seconds)
    for name in names:
        while len(kept[name]) < (1 if WAITS[name].is_long else n_runs):
            kept[name].append(run(WAITS[name]))
            with place.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, kept[name][-1]]) + "\n")
            print(f"{name}: {kept[name][-1]:.1f} s", file=sys.stderr, flush=True)
    return kept


def _pace(seed: int) -> tuple[float, float]:
    """The least seconds, of five, of 1e7 steps of an empty loop and of 1e7 normal numbers."""
    draws = np.random.default_rng(seed)
    loop = min(timeit.repeat("for _ in range(10**7): pass", number=1))
    return loop, min(timeit.repeat(lambda: draws.standard_normal(10**7), number=1))


def yardstick() -> str:
    """What tells one machine from another; all cores are busy, as cores may share what they compute with."""
    n_cores = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(n_cores) as pool:
        loop, normal = np.mean(list(pool.map(_pace, range(n_cores))), axis=0)
    return f"With all cores busy, 1e7 steps of an empty loop took {loop:.2f} s here, 1e7 normal numbers {normal:.2f} s."


def markdown(kept: Mapping[str, list[float]]) -> str:
    """The table of docs/speed.md: medians, of what was run."""
    lines = [f"| on {len(os.sched_getaffinity(0))} cores | seconds | goal | |", "|---|--:|--:|---|"]
    for name, runs in kept.items():
        if runs:
            seconds = statistics.median(runs)
            is_met = "met" if seconds <= WAITS[name].seconds else "**missed**"
            lines.append(f"| {WAITS[name].what} | {seconds:.0f} | {WAITS[name].seconds:g} | {is_met} |")
    return "\n".join([*lines, "", yardstick()])


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.waits", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where runs are kept")
    parser.add_argument("--only", nargs="+", choices=WAITS, default=[], metavar="WAIT", help="these, long ones too")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each short command")
    chosen = parser.parse_args()
    short = [name for name, wait in WAITS.items() if not wait.is_long]
    print(markdown(measure(chosen.folder, chosen.only or short, chosen.runs)))


if __name__ == "__main__":
    main()
