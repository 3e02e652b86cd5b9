"""Runs every benchmark and prints a table; exits 1 if a limit is missed."""

import argparse
import json
import sys

from rich.console import Console
from rich.table import Table

from benchmarks import (
    accounting,
    book_length,
    end_to_end,
    episodes,
    false_alarms,
    finite_arms,
    kernel_bandits,
    linear_bandits,
    linear_mdp,
    mixture_mdps,
    orchestration,
    projected_kernel_bandits,
    replays,
    tabular,
    tightness,
    tracking,
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print an array of results")
    parser.add_argument("--skip-demo", action="store_true", help="leave the whole demo out (it takes about a minute)")
    chosen = parser.parse_args()
    parts = [episodes, finite_arms, linear_bandits, kernel_bandits, projected_kernel_bandits, mixture_mdps, linear_mdp]
    parts += [tabular]
    parts += [replays, tightness, false_alarms, accounting, tracking, orchestration, book_length]
    parts += [] if chosen.skip_demo else [end_to_end]
    results = [result for part in parts for result in part.measure()]
    if chosen.json:
        print(json.dumps([{**result._asdict(), "is_met": result.is_met} for result in results], indent=1))
    else:
        table = Table("benchmark", "measured", "limit", "unit", "")
        for result in results:
            table.add_row(
                result.name, f"{result.measured:,.3g}", f"{result.relation} {result.limit:,.3g}", result.unit,
                "met" if result.is_met else "MISSED",
            )  # fmt: skip
        Console().print(table)
    return 0 if all(result.is_met for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
