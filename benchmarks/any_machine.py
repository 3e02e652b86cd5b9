"""Holds every verdict of docs/reproductions.md elsewhere: `python -m benchmarks.any_machine [SUITE...]`.

Each variant plays the suites anew with another root of all seeds, which also permutes the actions of every replication and
draws other instances, with another number of BLAS threads, and with the kernels that OpenBLAS has for another processor.
Exits 1 if a verdict changes. `--keep FOLDER` keeps the data folders, so that an interrupted run continues.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import yaml

from benchmarks import verdicts

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


class Variant(NamedTuple):
    """One way in which another user's run may differ."""

    name: str
    seed: int
    threads: int
    kernels: str | None


VARIANTS = (
    Variant("seed+1, one thread, Haswell", 1, 1, "Haswell"),
    Variant("seed+2, two threads, Zen", 2, 2, "Zen"),
    Variant("seed+3, four threads, SkylakeX", 3, 4, "SkylakeX"),
)


def play(variant: Variant, suite: str, folder: Path) -> None:
    """Runs one suite in one variant; finished blocks in the folder are kept."""
    tree = yaml.safe_load((EXPERIMENTS / f"{suite}.yaml").read_text(encoding="utf-8"))
    tree["seed"] += variant.seed
    tree["report"] = {"formats": ["json"]}
    if "tuning" in tree:
        tree["tuning"]["file"] = str(EXPERIMENTS / f"{suite}.tuned.json")
    place = folder / f"{suite}.yaml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(variant.threads)}
    if variant.kernels is not None:
        environment["OPENBLAS_CORETYPE"] = variant.kernels
    command = [sys.executable, "-m", "bandana", "run", str(place), "--data", str(folder / "data")]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    """Plays every variant and prints each verdict; 1 if one does not hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.any_machine", description=__doc__)
    parser.add_argument("suites", nargs="*", help="suites; all that the page speaks of if left out")
    parser.add_argument("--keep", type=Path, help="folder to keep the results in")
    parser.add_argument("--variants", type=int, default=len(VARIANTS), help="how many variants to play")
    chosen = parser.parse_args()
    suites = chosen.suites or list(dict.fromkeys(each.suite for each in verdicts.verdicts()))
    with tempfile.TemporaryDirectory() as temporary:
        failed = 0
        for i, variant in enumerate(VARIANTS[: chosen.variants]):
            folder = (chosen.keep or Path(temporary)) / f"variant-{i}"
            for suite in suites:
                play(variant, suite, folder)
            print(f"--- {variant.name}")
            failed += verdicts.main(folder / "data", suites)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
