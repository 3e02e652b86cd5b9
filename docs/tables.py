"""Writes the tables of docs/reproductions.md and docs/noise-laws.md from reports: `python docs/tables.py bandana_data`.

A table stands between `<!-- table: SUITE -->` and `<!-- end -->`; suites whose report is not there keep theirs. With
`<!-- table: SUITE: LABEL -->` it holds the cells on one environment.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from figures import interval

PAGES = [Path(__file__).parent / name for name in ("reproductions.md", "noise-laws.md")]
_PLACE = re.compile(r"(<!-- table: ([\w-]+)(?:: ([\w-]+))? -->\n).*?(<!-- end -->)", re.S)
_KINDS = {"calibration": "against the first calibration", "noise": "cost of its noise"}


def table_of(document: dict[str, Any], environment: str | None = None) -> str:
    """Every cell of a report as Markdown: regret, and paired differences to its first calibration, twin and references.

    A difference is followed by its 95 % interval; `(?)` marks one that is not resolved. Of reference rows the outcome is
    shown: `better`, `worse`, or `?`.
    """
    benchmark = document["benchmark"]
    several = len(document["environments"]) > 1
    cells = [cell for cell in benchmark["cells"] if environment in (None, cell["environment"])]
    by_label = {cell["label"]: cell for cell in benchmark["cells"]}
    found: dict[tuple[str, str], str] = {}
    for each in benchmark["comparisons"]:
        if each["kind"] == "reference":
            outcome = "worse" if each["low"] > 0 else "better" if each["high"] < 0 else "?"
            found[each["cell"], f"than {by_label[each['other']]['algorithm']}"] = outcome
        else:
            found[each["cell"], _KINDS[each["kind"]]] = difference(each)
    shown = {cell["label"] for cell in cells}
    heads = list(dict.fromkeys([*_KINDS.values(), *(kind for label, kind in found if label in shown)]))
    heads = [head for head in heads if any(kind == head for label, kind in found if label in shown)]
    lines = [f"| cell | regret | {' | '.join(heads)} |", "|---|" + "--:|" * (1 + len(heads))]
    for cell in cells:
        if cell["role"] != "twin":
            name = cell["label"].removesuffix(f" on {cell['environment']}") if several and environment else cell["label"]
            columns = [found.get((cell["label"], head), "") for head in heads]
            lines.append(f"| {name} | {interval(cell)} | {' | '.join(columns)} |")
    return "\n".join(lines)


def difference(found: dict[str, Any]) -> str:
    """A paired difference with its interval, rounded as they deserve."""
    digits = 1 if max(abs(found["low"]), abs(found["high"])) < 1000 else 0
    mean, low, high = (f"{found[end]:+.{digits}f}" for end in ("mean", "low", "high"))
    return f"{mean} ({low} to {high})" + (" (?)" if found["low"] <= 0 <= found["high"] else "")


def filled(page: str, root: Path) -> str:
    """The page with the tables of all suites whose reports are there."""

    def fill(match: re.Match[str]) -> str:
        head, suite, environment, end = match.groups()
        place = root / "suites" / suite / "report.json"
        if not place.exists():
            return match.group()
        return f"{head}{table_of(json.loads(place.read_text(encoding='utf-8')), environment)}\n{end}"

    return _PLACE.sub(fill, page)


def main(root: Path) -> None:
    """Fills the pages."""
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), root), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
