"""Writes the tables of docs/reproductions.md and docs/noise-laws.md from reports: `python docs/tables.py bandana_data`.

A table stands between `<!-- table: SUITE -->` and `<!-- end -->`; suites whose report is not there keep theirs. With
`<!-- table: SUITE: LABEL -->` it holds the cells on one environment. The pages of papers have the regrets of such a table
alone, by epsilon, after `<!-- numbers: SUITE -->` or `<!-- numbers: SUITE: LABEL -->`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from figures import interval

PAGES = [Path(__file__).parent / name for name in ("reproductions.md", "noise-laws.md")]
PAPERS = Path(__file__).parent / "papers"
_PLACE = re.compile(r"(<!-- table: ([\w-]+)(?:: ([\w-]+))? -->\n).*?(<!-- end -->)", re.S)
_NUMBERS = re.compile(r"(<!-- numbers: ([\w-]+(?:: [\w-]+)?) -->\n).*?(<!-- end -->)", re.S)
_CELL = re.compile(r"^\| (?!cell|--)([^|]+?) \| (-?[\d.]+ ± [\d.]+) \|", re.M)
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


def numbers_of(table: str) -> str:
    """The regrets of a table, an algorithm a row and an epsilon a column; cells without epsilon in a sentence.

    Raises:
      ValueError: the table has no cell.
    """
    cells = dict(_CELL.findall(table))
    private: dict[str, dict[float, str]] = {}
    for name, regret in cells.items():
        if level := re.search(r" eps=([\d.]+)", name):
            private.setdefault(name.replace(level[0], ""), {})[float(level[1])] = regret
    if not cells:
        raise ValueError("no cell to show in this table")
    levels = sorted({level for row in private.values() for level in row})
    lines = ["| regret at ε | " + " | ".join(f"{level:g}" for level in levels) + " |", "|---|" + "--:|" * len(levels)]
    lines += [f"| {name} | {' | '.join(row.get(level, '') for level in levels)} |" for name, row in private.items()]
    rest = [f"{name} {regret}" for name, regret in cells.items() if " eps=" not in name]
    return "\n".join(lines) + f"\n\nWithout privacy: {'; '.join(rest)}."


def with_numbers(page: str, reproductions: str) -> str:
    """The page of a paper with the numbers of the reproductions."""
    tables = {": ".join(part for part in place[1:3] if part): place[0] for place in _tables(reproductions)}
    return _NUMBERS.sub(lambda place: f"{place[1]}{numbers_of(tables[place[2]])}\n{place[3]}", page)


def _tables(page: str) -> list[tuple[str, str, str]]:
    return [(place.group(), place[2], place[3] or "") for place in _PLACE.finditer(page)]


def main(root: Path) -> None:
    """Fills the pages."""
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), root), encoding="utf-8")
    for page in PAPERS.glob("*.md"):
        page.write_text(with_numbers(page.read_text("utf-8"), PAGES[0].read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
