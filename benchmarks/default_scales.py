"""Chooses the exploration of the leaderboard: one value for each family, and one for each cell, on development instances.

    python -m benchmarks.default_scales DATA [--workers 2] [--only PROBLEM ...]

Trials are kept in the data folder: a stopped search goes on where it stopped. The values of families go to
`experiments/benchmark/defaults.json` and, as `beta_scale`, into every problem of the benchmark, whose hashes the version
then lists; those of cells go to `experiments/benchmark/tuned`. With `--only`, trials of these problems are played, and no
value of a family is written. Raise the number of the version when a family's value changes.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import yaml

from bandana.flows.annexes.leaderboard.benchmark_folder import VERSION, Benchmark, digest, read
from bandana.flows.annexes.leaderboard.tuning import DEFAULTS, Defaults, defaults, tune
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.running.side_by_side import Workers

FOLDER = Path(__file__).parents[1] / "experiments" / "benchmark"
_GIVEN = re.compile(r"beta_scale: \{.*?\}")


def write_defaults(benchmark: Benchmark, chosen: Defaults) -> None:
    """Writes the values of families, and puts them into the problems that give any."""
    text = chosen.model_dump_json(indent=1) + "\n"
    (FOLDER / DEFAULTS).write_text(text, encoding="utf-8")
    for problem in benchmark.problems:
        path = FOLDER / f"{problem.name}.yaml"
        families = {cell.entry.family for cell in problem.plan.cells if "beta_scale" in cell.entry.parameters}
        given = ", ".join(f"{name}: {chosen.families[name].chosen:g}" for name in sorted(families & {*chosen.families}))
        path.write_text(_GIVEN.sub(f"beta_scale: {{{given}}}", path.read_text("utf-8")), encoding="utf-8")
    version = json.loads((FOLDER / VERSION).read_text("utf-8"))
    trees = {name: yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8")) for name in version["problems"]}
    version["problems"] = {name: digest(tree) for name, tree in trees.items()}
    (FOLDER / VERSION).write_text(json.dumps(version, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Plays what is missing, and writes what was chosen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="data folder, which keeps the trials")
    parser.add_argument("--workers", type=int, default=2, help="processes side by side")
    parser.add_argument("--only", nargs="+", help="problems")
    parser.add_argument("--families", action="store_true", help="values of families alone, which take a third of the time")
    given = parser.parse_args()
    given.data.mkdir(parents=True, exist_ok=True)
    store = Store(DataFolder.open(given.data).results)
    benchmark = read(FOLDER, only=given.only)
    with Workers(given.workers) as workers:
        chosen = defaults(benchmark, store, workers)
        for family, value in chosen.families.items():
            print(f"{family}: {value.chosen:g}, of {value.regret}, {value.cells} cells", flush=True)
        if given.only is None:
            write_defaults(benchmark, chosen)
        if not given.families:
            tune(benchmark, store, workers)


if __name__ == "__main__":
    main()
