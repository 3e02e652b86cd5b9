"""Every verdict of docs/reproductions.md, held against reports: `python -m benchmarks.verdicts bandana_data [SUITE...]`.

`docs/verdicts.yaml` lists what the page says: a cell, what it is compared with, and the outcome. Exits 1 where a report says
otherwise.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from bandana.audits.reporting.intervals import Mean, unpaired_interval

PLACE = Path(__file__).parents[1] / "docs" / "verdicts.yaml"
Outcome = Literal["better", "worse", "equal within 5 %", "equal within 10 %", "not resolved"]
_EQUAL: dict[str, float] = {"equal within 5 %": 0.05, "equal within 10 %": 0.1}


class Verdict(BaseModel):
    """One thing that the page says of some cells of a suite."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    suite: str
    says: str
    cells: list[str]
    against: str
    """`printed` or `as-known` (the first calibration), `without noise`, a reference row, or the label of another cell."""
    outcome: Outcome
    """`equal within 5 %`: the interval of the difference lies within 5 % of the other's regret, resolved or not."""


class Row(NamedTuple):
    """A verdict for one cell, as a report has it."""

    verdict: Verdict
    cell: str
    difference: Mean
    found: Outcome

    @property
    def holds(self) -> bool:
        """Whether the report says what the page says."""
        return self.found == self.verdict.outcome


def verdicts(place: Path = PLACE) -> list[Verdict]:
    """All that the page says, in its order."""
    return TypeAdapter(list[Verdict]).validate_python(yaml.safe_load(place.read_text(encoding="utf-8")))


def rows_of(root: Path, wanted: Sequence[Verdict]) -> Iterator[Row]:
    """Each verdict for each of its cells.

    Raises:
      ValueError: a report lacks a cell; the message names suite and cell.
    """
    for verdict in wanted:
        report = json.loads((root / "suites" / verdict.suite / "report.json").read_text(encoding="utf-8"))
        for cell in verdict.cells:
            difference, regret = _difference(report["benchmark"], cell, verdict)
            yield Row(verdict, cell, difference, _outcome(difference, regret, verdict.outcome))


def _outcome(difference: Mean, regret: float, wanted: Outcome) -> Outcome:
    slack = _EQUAL.get(wanted, 0.0) * regret
    if wanted in _EQUAL and -slack <= difference.low and difference.high <= slack:
        return wanted
    return "worse" if difference.low > 0 else "better" if difference.high < 0 else "not resolved"


def _difference(benchmark: dict[str, Any], label: str, verdict: Verdict) -> tuple[Mean, float]:
    """The difference of a verdict's cell, and the regret of what it is compared with."""
    cells = {cell["label"]: cell for cell in benchmark["cells"]}
    if label not in cells:
        raise ValueError(f"{verdict.suite} has no cell {label!r}; it has: {', '.join(cells)}")
    kind = {"printed": "calibration", "as-known": "calibration", "without noise": "noise"}.get(verdict.against, "reference")
    for each in benchmark["comparisons"]:
        is_other = kind != "reference" or cells[each["other"]]["algorithm"] == verdict.against
        if each["cell"] == label and each["kind"] == kind and is_other:
            return Mean(each["mean"], each["low"], each["high"]), cells[each["other"]]["final_mean"]
    if verdict.against not in cells:
        raise ValueError(f"{verdict.suite}: {label!r} is not compared with {verdict.against!r}")
    sides = [cells[verdict.against], cells[label]]
    other, own = (Mean(*(side[f"final_{end}"] for end in ("mean", "low", "high"))) for side in sides)
    return unpaired_interval(other, sides[0]["replications"], own, sides[1]["replications"]), other.mean


def main(root: Path, suites: Sequence[str] = ()) -> int:
    """Prints every verdict, and 1 if one does not hold."""
    missing = 0
    for row in rows_of(root, [each for each in verdicts() if not suites or each.suite in suites]):
        mean, low, high = (f"{end:,.1f}" for end in row.difference)
        mark = "holds" if row.holds else f"DOES NOT HOLD: the page says {row.verdict.outcome}"
        pair = f"{row.cell} against {row.verdict.against}"
        print(f"{row.verdict.suite}: {pair}: {mean} ({low} to {high}), {row.found}; {mark}")
        missing += not row.holds
    print(f"{missing} verdicts do not hold" if missing else "every verdict holds")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
