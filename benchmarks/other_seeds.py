"""Holds the leaderboard's winners elsewhere: `python -m benchmarks.other_seeds DATA [--quick] [--only PROBLEM ...]`.

Plays the benchmark anew with other roots of all seeds, which draw other rewards, orders of actions and, where a problem
draws them, other instances. A winner has changed where it is not in the other board's confidence set. Prints each change,
and its share of the contests; a set leaves out a best row in at most 5 %. Stopped, it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

BENCHMARK = Path(__file__).parents[1] / "experiments" / "benchmark"


def moved(shift: int, folder: Path) -> Path:
    """A copy of the benchmark whose seeds are greater by the shift."""
    copy = folder / f"benchmark-{shift}"
    shutil.copytree(BENCHMARK, copy, dirs_exist_ok=True)
    for place in copy.glob("*.yaml"):
        tree = yaml.safe_load(place.read_text(encoding="utf-8"))
        place.write_text(yaml.safe_dump(tree | {"seed": tree["seed"] + shift}, sort_keys=False), encoding="utf-8")
    return copy


def played(folder: Path, data: Path, options: list[str]) -> dict[str, Any]:
    """The leaderboard of a benchmark's folder."""
    words = ["leaderboard", str(folder), "--data", str(data), "--yes", "--no-audit", "--json", *options]
    run = subprocess.run([sys.executable, "-m", "bandana", *words], check=True, stdout=subprocess.PIPE)
    document: dict[str, Any] = json.loads(run.stdout)
    return document


def contests(document: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Problem, trust model, level, guarantee, column -> contest that somebody has won."""
    fields = ("privacy_model", "mu", "guarantee", "column")
    every = ((problem["name"], best) for problem in document["problems"] for best in problem["best"])
    won = ((name, best) for name, best in every if best["label"] and not best["not_beaten"])
    return {(name, *(str(best[field]) for field in fields)): best for name, best in won}


def main() -> None:
    """Plays the boards, and compares each with the first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that keeps the results")
    parser.add_argument("--quick", action="store_true", help="the quick form")
    parser.add_argument("--seeds", type=int, default=2, help="how many other roots")
    parser.add_argument("--only", nargs="+", default=[], help="problems")
    given = parser.parse_args()
    options = [*(["--quick"] if given.quick else []), *(part for name in given.only for part in ("--only", name))]
    first = contests(played(BENCHMARK, given.data, options))
    for shift in range(1, given.seeds + 1):
        second = contests(played(moved(shift, given.data), given.data / f"seeds-{shift}", options))
        both = sorted({*first} & {*second})
        changed = [contest for contest in both if second[contest]["label"] not in first[contest]["best_set"]]
        for contest in changed:
            print(f"  {', '.join(contest)}: {first[contest]['label']}, then {second[contest]['label']}")
        alone = len({*first} ^ {*second})
        print(f"seeds + {shift}: {len(changed)} of {len(both)} winners left the set; {alone} contests are won in one only")


if __name__ == "__main__":
    main()
