"""Tables of docs/reproductions.md, from the reports of a data folder: `python docs/tables.py bandana_data SUITE...`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from figures import interval

_KINDS = {"calibration": "against printed", "noise": "cost of its noise"}


def table_of(document: dict[str, Any]) -> str:
    """Every cell of a report as Markdown: regret, and paired differences to its first calibration, twin and references.

    A difference is followed by its 95 % interval; `(?)` marks one that is not resolved.
    """
    benchmark = document["benchmark"]
    cells, comparisons = benchmark["cells"], benchmark["comparisons"]
    by_label = {cell["label"]: cell for cell in cells}
    found: dict[tuple[str, str], str] = {}
    for each in comparisons:
        kind = f"against {by_label[each['other']]['algorithm']}" if each["kind"] == "reference" else _KINDS[each["kind"]]
        found[each["cell"], kind] = difference(each)
    heads = list(dict.fromkeys([*_KINDS.values(), *(kind for _, kind in found)]))
    heads = [head for head in heads if any(kind == head for _, kind in found)]
    lines = [f"| cell | regret | {' | '.join(heads)} |", "|---|" + "--:|" * (1 + len(heads))]
    for cell in cells:
        if cell["role"] != "twin":
            shown = [found.get((cell["label"], head), "") for head in heads]
            lines.append(f"| {cell['label']} | {interval(cell)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def difference(found: dict[str, Any]) -> str:
    """A paired difference with its interval, rounded as they deserve."""
    digits = 1 if max(abs(found["low"]), abs(found["high"])) < 1000 else 0
    mean, low, high = (f"{found[end]:+.{digits}f}" for end in ("mean", "low", "high"))
    return f"{mean} ({low} to {high})" + (" (?)" if found["low"] <= 0 <= found["high"] else "")


def document_of(root: Path, suite: str) -> dict[str, Any]:
    """The report of a suite."""
    found: dict[str, Any] = json.loads((root / "suites" / suite / "report.json").read_text(encoding="utf-8"))
    return found


def main(root: Path, suites: Sequence[str]) -> None:
    """Prints the table of each suite."""
    for suite in suites:
        print(f"{suite}\n", table_of(document_of(root, suite)), "", sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
