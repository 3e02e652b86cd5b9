"""Two reports side by side: read, compared, and written as a report of what changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bandana.audits.documents.comparison import CellChange, Comparison
from bandana.audits.documents.report import Report
from bandana.audits.reporting import compare, validate
from bandana.audits.reporting.changes import headline
from bandana.audits.reporting.document import REPORT
from bandana.audits.reporting.numbers import number
from bandana.flows.folder.settings import DataFolder
from bandana.flows.results.audit_report import write_document
from bandana.flows.texts.mistakes import SpecError

if TYPE_CHECKING:
    from rich.table import Table


def read_report(reference: str, folder: DataFolder) -> Report:
    """The document of a run.

    Args:
      reference: a report's JSON file, a folder that holds a `report.json`, or a suite of the data folder.
      folder: the data folder.

    Raises:
      SpecError: there is none, or it is not a report that this version reads; the message names the file.
    """
    given = Path(reference)
    place = given / "report.json" if given.is_dir() else given
    if not given.exists():
        if len(given.parts) != 1:
            raise SpecError(f"--compare: {reference} does not exist")
        place = folder.suite(reference) / "report.json"
        if not place.exists():
            raise SpecError(
                f"--compare: there is no file {reference}, and no suite {reference!r} with a report.json in {folder.root}; "
                "name a suite, its folder, or a report's JSON file (the spec's report.formats must hold json)"
            )
    elif not place.exists():
        raise SpecError(f"--compare: {reference} holds no report.json; does its spec's report.formats hold json?")
    try:
        document: Any = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise SpecError(f"--compare: {place} is not a report: {error}") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != REPORT:
        if isinstance(schema, str) and schema.startswith("bandana/report/"):
            raise SpecError(
                f"--compare: {place} was written by another version of Bandana ({schema}, this one reads {REPORT}); run "
                "`bandana report` on its spec again"
            )
        raise SpecError(f"--compare: {place} is not a report of a run: its schema is {schema!r}, not {REPORT!r}")
    try:
        validate(document)
    except ValueError as error:
        raise SpecError(f"--compare: {place} is not a valid report: {error}") from error
    report: Report = document
    return report


def compare_runs(before: str, after: str, folder: DataFolder) -> tuple[Comparison, dict[str, Path]]:
    """Compares two runs, see `read_report`, and writes what changed: the comparison's document, and its files by kind."""
    runs = read_report(before, folder), read_report(after, folder)
    comparison = compare(*runs)
    plain = (re.sub(r"[^A-Za-z0-9_-]+", "-", run["suite"])[:40].strip("-") or "run" for run in runs)
    names = [f"{name}-{run['evidence']['sha256'][:8]}" for name, run in zip(plain, runs, strict=True)]
    return comparison, write_document(comparison, folder.root / "comparisons" / "-to-".join(names))


def tables(comparison: Comparison) -> list[Table]:
    """Tables of the terminal: audits and cells that are not the same."""
    from rich.table import Table
    from rich.text import Text

    shown = []
    audits = [audit for audit in comparison["audits"] if audit["status"] != "same"]
    if audits:
        table = Table("audit", "status", "verdict", "what differs", title="Audits", title_justify="left")
        for audit in audits:
            verdicts = [side["verdict"] for side in (audit["before"], audit["after"]) if side is not None]
            words = (audit["label"], audit["status"], " → ".join(dict.fromkeys(verdicts)), "\n".join(audit["changes"]))
            table.add_row(*map(Text, words))
        shown.append(table)
    cells = [cell for cell in comparison["cells"] if cell["status"] != "same"]
    if cells:
        table = Table("cell", "status", "final regret", "difference (95 %)", title="Cells", title_justify="left")
        for cell in cells:
            table.add_row(*map(Text, (cell["label"], cell["status"], _finals(cell), _difference(cell))))
        shown.append(table)
    return shown


def conclude(comparison: Comparison) -> list[str]:
    """Summary of the changes, in a few lines."""
    lines = [headline(comparison)[1]]
    settings = [row["name"] for row in comparison["settings"]]
    if settings:
        lines.append(f"Also different: {', '.join(settings)}.")
    if comparison["spec_diff"]:
        lines.append("The specifications differ.")
    differing, same = len(comparison["evidence"]["files"]), comparison["evidence"]["n_same"]
    return [*lines, f"Evidence: {same} file{'' if same == 1 else 's'} the same, {differing} different."]


def _finals(cell: CellChange) -> str:
    finals = [side["final_mean"] for side in (cell["before"], cell["after"]) if side is not None]
    return " → ".join("withheld" if final is None else number(float(final)) for final in finals)


def _difference(cell: CellChange) -> str:
    change = cell["difference"]
    if change is None:
        return "\n".join(cell["changes"])
    interval = f"{number(float(change['mean']))} ({number(float(change['low']))} to {number(float(change['high']))})"
    return interval + (", resolved" if change["is_resolved"] else ", not resolved")
