"""The tables of the comparison with public tools, as Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks.comparison_runs import (
    CASES,
    LEVEL,
    NAME,
    ORDER,
    OURS,
    OUTPUTS,
    PUBLIC,
    RATIO,
    RECORDED,
    STOPPED,
    TESTS,
    Case,
    Row,
)

BEGIN, END = "<!-- comparison: begin -->", "<!-- comparison: end -->"
_SURE = 1e-3
"""A tool whose bounds were false so often that a valid one would be with at most this probability is called invalid."""


GROUPS: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("Any mechanism; a tool sees scores and uses their order", lambda row: row.knows == ORDER and not row.is_gdp),
    ("GDP mechanisms; a tool sees scores and uses their order", lambda row: row.knows == ORDER and row.is_gdp),
    ("Any mechanism; the scores are known to be log-likelihood ratios", lambda row: row.knows == RATIO),
    ("Any mechanism; a tool sees raw outputs and nothing else", lambda row: row.knows == OUTPUTS),
)


def recorded_rows() -> tuple[str, list[dict[str, Any]]]:
    """Provenance and rows of the recorded values."""
    found = json.loads(RECORDED.read_text(encoding="utf-8"))
    return str(found["provenance"]), list(found["rows"])


def is_invalid(false: int, repeats: int) -> bool:
    """Whether so many false bounds of so many cannot come from bounds at the level."""
    return repeats > 0 and float(binom.sf(false - 1, repeats, LEVEL)) < _SURE


def _size(n: str | int) -> str:
    return f"{float(n):.0e}".replace("e+0", "e") if float(n) >= 1e4 else str(n)


def _time(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


class Page:
    """The tables of a result: every figure, and what follows from it.

    Args:
      result: of `measure`.

    Attributes:
      rows: those that have something to show; recorded ones only where the tool was not run.
      invalid: keys of rows whose bounds were above the truth too often, in a test or at a size.
    """

    def __init__(self, result: dict[str, Any]) -> None:
        self.result = result
        self.sizes = list(result["sizes"])
        self.recorded = {
            r["key"]: r
            for r in recorded_rows()[1]
            if r["key"] not in result["cells"] and any(n in sizes for sizes in r["cells"].values() for n in self.sizes[-1:])
        }
        self.rows = tuple(row for row in OURS + PUBLIC if row.key in result["cells"]) + tuple(
            Row(r["key"], r["tool"], r["method"], r["knows"], r["is_gdp"]) for r in self.recorded.values()
        )
        self.invalid = {row.key for row in self.rows if self._is_invalid(row)}

    def _is_invalid(self, row: Row) -> bool:
        counts = [(found["false"], found["repeats"]) for found in self.result["tests"].get(row.key, {}).values()]
        for case in CASES:
            for n in self.sizes:
                stated = self._cell(row, case, n).get("epsilon", [])
                counts.append((sum(epsilon > case.truth + 1e-9 for epsilon in stated), len(stated)))
        return any(is_invalid(*count) for count in counts)

    def _cell(self, row: Row, case: Case, n: str) -> dict[str, Any]:
        return dict(self.result["cells"].get(row.key, {}).get(case.name, {}).get(n, {}))

    def _value(self, row: Row, case: Case, n: str) -> float | None:
        if row.key in self.recorded:
            found = self.recorded[row.key]["cells"].get(case.name, {}).get(n)
            return None if found is None else float(found)
        stated = self._cell(row, case, n).get("epsilon")
        return float(np.median(stated)) if stated else None

    def _bound(self, row: Row, case: Case, n: str) -> float | None:
        """The median bound, unless the tool failed on some of the samples: the others are a selection."""
        return None if self._cell(row, case, n).get("error") not in (None, "", STOPPED) else self._value(row, case, n)

    def _seconds(self, row: Row) -> float | None:
        """The median over the repeats of the slowest case, at the largest size."""
        if row.key in self.recorded:
            return float(self.recorded[row.key]["seconds"])
        times = [self._cell(row, case, self.sizes[-1]).get("seconds") for case in CASES]
        return max((float(np.median(found)) for found in times if found), default=None)

    def _shown(self, row: Row, case: Case, n: str, best: float | None) -> str:
        value = self._value(row, case, n)
        if value is None:
            error = self._cell(row, case, n).get("error")
            return "" if not error else STOPPED if error == STOPPED else "fails"
        shown = f"{value:.3f}"
        if self._bound(row, case, n) is None:
            return f"({shown})"
        return f"**{shown}**" if best is not None and row.key not in self.invalid and shown == f"{best:.3f}" else shown

    def _name(self, row: Row) -> str:
        version = self.result["versions"].get(row.key, "")
        return f"{row.tool} {version}".strip() + "*" * (row.key in self.recorded) + "†" * (row.key in self.invalid)

    def render(self) -> str:
        """Markdown."""
        repeats = " and ".join(f"{repeats} repeats at N = {_size(n)}" for n, repeats in self.result["sizes"].items())
        lines = [
            f"Measured on {self.result['machine']}; 95 % confidence. Medians over {repeats}; fewer where a public tool was "
            f"stopped after {self.result['limit']:g} s. In brackets: it failed on some of the samples. Time is processor "
            "time, of the slowest case.",
            "",
        ]
        for title, is_in in GROUPS:
            lines += self._group(title, [row for row in self.rows if is_in(row)])
        if self.recorded:
            lines += [f"\\* {recorded_rows()[0]}; not run here: the tool was not there.", ""]
        if self.invalid:
            lines += ["† no lower confidence bound: it stated more than the truth more often than 5 % allow.", ""]
        return "\n".join(lines + self._validity()).rstrip() + "\n"

    def _group(self, title: str, group: list[Row]) -> list[str]:
        columns = [
            (case, n) for case in CASES for n in self.sizes if any(self._value(row, case, n) is not None for row in group)
        ]
        if not columns:
            return []
        valid = [row for row in group if row.key not in self.invalid]
        best = [
            max((v for row in valid if (v := self._bound(row, case, n)) is not None), default=None) for case, n in columns
        ]
        head = ["tool", "method", *(f"{case.name}, {_size(n)}" for case, n in columns), f"s at {_size(self.sizes[-1])}"]
        rows = [
            [
                self._name(row), row.method,
                *(self._shown(row, case, n, top) for (case, n), top in zip(columns, best, strict=True)),
                _time(self._seconds(row)),
            ]
            for row in group
        ]  # fmt: skip
        return [f"### {title}", "", *_table(head, rows), "", *self._standing(valid, columns), ""]

    def _standing(self, valid: list[Row], columns: list[tuple[Case, str]]) -> list[str]:
        """Where public tools that keep their confidence state more, or answer sooner, than our best."""
        ours, theirs = [row for row in valid if row.tool == NAME], [row for row in valid if row.tool != NAME]
        if not ours:
            return []
        if not theirs:
            return ["No public tool that keeps its confidence does this."]
        compared = []
        for case, n in columns:
            mine = [(v, row) for row in ours if (v := self._bound(row, case, n)) is not None]
            other = [(v, row) for row in theirs if (v := self._bound(row, case, n)) is not None]
            if mine and other:
                compared.append((case, n, max(mine, key=_first), max(other, key=_first)))
        if not compared:
            return []
        wins = [mine[1].key for _, _, mine, _ in compared]
        tightest = max(ours, key=lambda row: wins.count(row.key))
        takes = self._seconds(tightest)
        sooner = [
            f"{row.tool} ({row.method}; {_time(seconds)} s)"
            for row in theirs
            if takes is not None and (seconds := self._seconds(row)) is not None and seconds < takes
        ]
        behind = [
            f"on {case.name} at N = {_size(n)} {row.tool} ({row.method}) states {value:.3f}, our best row {mine[0]:.3f}"
            for case, n, mine, (value, row) in compared
            if value > mine[0]
        ]
        alone = [
            f"{case.name} at N = {_size(n)} ({'none' if own is None else f'{own:.3f}'} against {value:.3f})"
            for case, n, _, (value, _) in compared
            if (own := self._bound(tightest, case, n)) is None or value > own
        ]
        said = (
            f"Our best row is ahead of every public tool that keeps its confidence in {len(compared) - len(behind)} of "
            f"{len(compared)} columns{''.join(f'; {words}' for words in behind)}. "
            f'Whoever always takes "{tightest.method}" is behind the best of them on {", ".join(alone) or "none"}. '
            f"It takes {_time(takes)} s; sooner: {', '.join(sooner) or 'none'}."
        )
        return [said]

    def _validity(self) -> list[str]:
        if not self.result["tests"]:
            return []
        rows = []
        for row in self.rows:
            if row.key not in self.result["tests"]:
                continue
            cells = []
            for case in TESTS:
                found = self.result["tests"][row.key].get(case.name)
                if found is None or not found["repeats"]:
                    cells.append("" if found is None else STOPPED if found["error"] == STOPPED else "fails")
                    continue
                shown = f"{found['false']}/{found['repeats']}"
                cells.append(f"**{shown}**" if is_invalid(found["false"], found["repeats"]) else shown)
            claim = "GDP" if row.is_gdp else "pure" if row.is_pure else "any"
            rows.append([self._name(row), row.method, row.knows, claim, *cells])
        return [
            "### How often a bound is above the truth",
            "",
            f"N = {_size(self.result['n_test'])}, nominal 5 %: false bounds / repeats, bold where a bound at 5 % would be "
            f"false so often with probability below {_SURE}.",
            "",
            *_table(["tool", "method", "knows", "claim", *(case.name for case in TESTS)], rows),
        ]


def _first(pair: tuple[float, Row]) -> float:
    return pair[0]


def render(result: dict[str, Any]) -> str:
    """The tables as Markdown; see `Page`."""
    return Page(result).render()


def write(path: Path, shown: str, begin: str = BEGIN, end: str = END) -> None:
    """Puts the tables between the markers of a Markdown file.

    Raises:
      ValueError: the file has no such markers.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else f"{begin}\n{end}\n"
    start, stop = text.find(begin), text.find(end)
    if not 0 <= start < stop:
        raise ValueError(f"{path} must hold the lines {begin} and {end}, in this order; the tables go between them")
    path.write_text(f"{text[: start + len(begin)]}\n\n{shown}\n{text[stop:]}", encoding="utf-8")
