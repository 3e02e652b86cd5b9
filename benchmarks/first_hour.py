"""What a newcomer waits for and reads in the first hour, each number beside its goal.

    python -m benchmarks.first_hour [--site] [--demo] [--repeat 5]

Start-up times are medians of several runs of a command, after one that is not counted. What is held against the goals are
processor seconds (user and system, of the command and its children): other work on the machine changes them less than the
wall's. `--demo` plays the demo in a new folder: its wall time has a goal for two idle cores, and its PDF one for its pages.
`--site` builds the documentation, and counts its pages and words.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import docs
from benchmarks.docs import ROOT
from benchmarks.result import Result

CLAIM = "gdp(mu=1, relation=reward)"
STARTS = (
    ("bandana list", ("list",), 1.0),
    ("bandana check of a small spec", ("check", str(ROOT / "experiments/smoke.yaml")), 2.0),
    ("bandana audit-own of the example", ("audit-own", f"{ROOT / 'examples/own_bandit.py'}:bandit", "--claim", CLAIM), 8.0),
)
"""What is started, by which words, and the most processor seconds."""
MOST_README_LINES = 120
MOST_PDF_PAGES = 4
MOST_DEMO_SECONDS = 60.0


class Seconds(NamedTuple):
    """How long something took."""

    processor: float
    """User and system, with all children that were waited for."""
    wall: float


def timed(words: Sequence[str], folder: Path) -> Seconds:
    """Runs the command once, in a folder.

    Raises:
      subprocess.CalledProcessError: it ended with another code than 0.
    """
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "bandana", *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Seconds(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, time.perf_counter() - begin)


def starts(repeat: int) -> Iterator[Result]:
    """Start-up times of three commands."""
    for name, words, goal in STARTS:
        with tempfile.TemporaryDirectory() as folder:
            runs = [timed(words, Path(folder)) for _ in range(repeat + 1)][1:]  # the first one compiles
        seconds = Seconds(*(median(column) for column in zip(*runs, strict=True)))
        yield Result(f"{name}, of processors ({seconds.wall:.2f} s of wall)", seconds.processor, goal, "s")


def pages_of(pdf: bytes) -> int:
    """Pages of a PDF of ours, by the count in the root of its page tree.

    Raises:
      ValueError: it has none that can be read.
    """
    counts = [int(count) for count in re.findall(rb"/Type\s*/Pages\s*/Count (\d+)", pdf)]
    if not counts:
        raise ValueError("no page tree in this PDF, or a packed one")
    return max(counts)


def demo() -> Iterator[Result]:
    """Wall time of the demo in a new folder, and pages of its PDF."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = timed(["demo"], Path(folder))
        pages = pages_of((Path(folder) / "bandana_data/suites/demo/report.pdf").read_bytes())
    yield Result(f"demo, of wall ({seconds.processor:.0f} s of processors)", seconds.wall, MOST_DEMO_SECONDS, "s")
    yield Result("pages of the demo's PDF", pages, MOST_PDF_PAGES, "")


def site() -> Iterator[Result]:
    """Pages and words of the documentation, built anew."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
        subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=True)
        yield from docs.sizes_of(docs.site(Path(folder)))


def main() -> int:
    """Prints each number beside its goal, and 1 if one is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_hour", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--site", action="store_true", help="build the documentation, and count its pages and words")
    parser.add_argument("--demo", action="store_true", help="play the demo, which takes a minute on two idle cores")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each command that starts")
    chosen = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; Python {sys.version.split()[0]}")
    readme = (ROOT / "README.md").read_text(encoding="utf-8").count("\n")
    rows = [*starts(chosen.repeat), Result("lines of README.md", readme, MOST_README_LINES, ""), *docs.eases()]
    rows += [*(demo() if chosen.demo else ()), *(site() if chosen.site else ())]
    for row in rows:
        print(row)
    for option in [name for name in ("demo", "site") if not getattr(chosen, name)]:
        print(f"not measured: give --{option}")
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
