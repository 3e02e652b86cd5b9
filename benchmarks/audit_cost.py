"""How long audits took beside what was foretold: `python -m benchmarks.audit_cost DATA [--quick]`.

DATA holds what `bandana leaderboard` left, with `--quick` of its quick form. Prints, for each audit, its seconds, those of a
run of it and how many runs that is a replay.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from bandana.flows.annexes.leaderboard.benchmark_folder import audited, read
from bandana.flows.plan.plan import cells_of
from bandana.flows.queries.cost import replay_seconds, seconds_of_audit
from bandana.flows.running.memory import keep_freed

FOLDER = Path(__file__).parents[1] / "experiments" / "benchmark"


def main() -> None:
    """Prints the table and its quartiles."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit_cost", description=__doc__)
    parser.add_argument("data", type=Path, help="data folder of a leaderboard")
    parser.add_argument("--quick", action="store_true", help="of its quick form")
    given = parser.parse_args()
    keep_freed()
    runs, ratios = [], []
    for problem in read(FOLDER, is_quick=given.quick).problems:
        spec = audited(problem, set(), is_quick=given.quick)
        journal = given.data / "suites" / spec.name / "log.jsonl" if spec is not None else Path()
        if spec is None or not journal.exists():
            continue
        events = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
        took = {event["cell"]: event["seconds"] for event in events if event["event"] == "audit done"}
        for cell in (cell for cell in cells_of(spec) if cell.is_private and cell.name in took):
            pace, seconds = replay_seconds(cell), took[cell.name]
            runs.append(seconds / (cell.audit.replays * pace))
            ratios.append(seconds_of_audit(cell.audit.replays, cell.audit.examples, pace) / seconds)
            line = f"{cell.name:50} {seconds:6.0f} s  {pace * 1e6:7.1f} us a run  {runs[-1]:6.0f} runs a replay"
            print(f"{line}  {ratios[-1]:5.2f} foretold over taken")
    for name, found in (("runs a replay", runs), ("foretold over taken", ratios)):
        quartiles = ", ".join(f"{value:.3g}" for value in np.percentile(found, [0, 25, 50, 75, 100]))
        print(f"{name}: least, quartiles and most {quartiles}")


if __name__ == "__main__":
    main()
