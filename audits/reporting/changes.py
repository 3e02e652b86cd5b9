"""Content of a comparison report: audits, cells and settings that differ between two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from bandana.audits.documents.audit import Role
from bandana.audits.documents.comparison import AuditChange, CellChange, ComparedAudit, ComparedCell, Comparison, Status
from bandana.audits.reporting import origin
from bandana.audits.reporting.blocks import (
    Block,
    Cell,
    Section,
    badge,
    code_block,
    code_cell,
    fact_list,
    figure_block,
    lines_of,
    paragraph,
    right,
    span,
    table_block,
)
from bandana.audits.reporting.figures import regret_plots
from bandana.audits.reporting.figures.drawing import ROLES
from bandana.audits.reporting.kinds import KINDS, Kind
from bandana.audits.reporting.numbers import NONE, number, symbol_of
from bandana.audits.reporting.sections.power import factor_of

_TONES = {"new": "unsure", "gone": "unsure", "changed": "unsure", "same": "quiet"}
_STATUS: tuple[Status, ...] = ("new", "gone", "changed", "same")
_FIGURE_ROWS = 12
_DIGITS = 16

_GLOSSARY = {
    "new, gone": "New: only in the second run. Gone: only in the first run.",
    "changed, same": "In both runs. Changed: some number or setting differs. Same: none does; numbers that agree to nine "
    "digits count as the same.",
    "Measured": "A lower bound from random replays: two of them may differ although the code is the same. Below the claim, "
    "a smaller bound does not indicate more privacy, nor a larger one less.",
    "Resolved": "The 95 % interval of the difference of final regret does not contain 0. It assumes that the runs are "
    "independent and their means normal; for runs that share seeds the confidence is not exactly 95 %. Each interval holds "
    "by itself, not all together.",
}
"""Terms of a comparison, each with its meaning."""


def headline(document: Comparison) -> tuple[str, str]:
    """Tone of a comparison's head, bad if a verdict became worse; and one sentence that counts the changes."""
    worse = sum(audit["is_worse"] for audit in document["audits"])
    sentences = [f"{worse} verdict{'s' if worse != 1 else ''} became worse."] if worse else []
    items: tuple[tuple[str, Sequence[AuditChange | CellChange]], ...]
    items = ("Audits", document["audits"]), ("Cells", document["cells"])
    for name, changes in items:
        counts = Counter(change["status"] for change in changes)
        if counts:
            shown = ", ".join(f"{counts[status]} {status}" for status in _STATUS if counts[status])
            sentences.append(f"{name}: {shown}.")
    compared = [cell["difference"] for cell in document["cells"] if cell["difference"] is not None]
    if compared:
        sentences.append(f"Final regret: {sum(d['is_resolved'] for d in compared)} of {len(compared)} differences resolved.")
    return "bad" if worse else "quiet", " ".join(sentences) or "Neither run has an audit or a benchmark."


def sections(document: Comparison) -> list[Section]:
    """Sections of a comparison, in reading order; see `content.sections`."""
    plan: list[tuple[str, str, Callable[[Comparison], list[Block]]]] = [
        ("glance", "The two runs", _runs),
        ("audits", "1  Audits", _audits),
        ("regret", "2  Final regret", _regret),
        ("settings", "3  Data, seeds, provenance and commands", _settings),
        ("spec", "4  Specification", _spec),
        ("evidence", "5  Evidence", _evidence),
    ]
    return [{"id": key, "part": "main", "title": title, "blocks": write(document)} for key, title, write in plan]


def _runs(document: Comparison) -> list[Block]:
    runs = document["runs"]
    sides = ("before", runs["before"]), ("after", runs["after"])
    columns = ["Run", "Title", "Suite", "Computed", "SHA-256 of all numbers, begins"]
    rows: list[list[Cell]] = [
        [
            name,
            run["title"],
            run["suite"],
            origin.time_of(run["created"]) if run["created"] else origin.NOT_RECORDED,
            code_cell(run["evidence"][:_DIGITS]),
        ]
        for name, run in sides
    ]
    same = runs["before"]["evidence"] == runs["after"]["evidence"]
    return [
        table_block("Runs compared: the second (after) with the first (before).", columns, rows,
                    widths=[0.8, 2, 1.4, 1.6, 1.8]),
        *([paragraph("Both runs have the same evidence, apart from who computed it and when.")] if same else []),
        fact_list(list(_GLOSSARY.items())),
    ]  # fmt: skip


def _audits(document: Comparison) -> list[Block]:
    audits = document["audits"]
    if not audits:
        return [paragraph("Neither run has an audit.")]
    columns = ["Audit", "Status", "Verdict", *(right(role, role) for role in ROLES)]
    columns += [right("Smallest detectable fault"), right("Faults caught")]
    rows = []
    for audit in audits:
        before, after = audit["before"], audit["after"]
        verdict = _pair(before, after, lambda side: side["verdict"])
        rows.append(
            [
                audit["label"],
                badge(audit["status"], _TONES[audit["status"]]),
                badge(verdict, "bad") if audit["is_worse"] else verdict,
                *(_pair(before, after, partial(_main, role)) for role in ROLES),
                _pair(before, after, lambda side: factor_of(side["smallest_factor"])),
                _pair(before, after, lambda side: f"{side['caught']}/{side['planted']}"),
            ]
        )  # fmt: skip
    blocks = [
        table_block(
            "Audits, before → after; one entry if both runs agree to the digits shown. The numbers are in the main "
            "quantity of each claim.",
            columns,
            rows,
            widths=[2.2, 1.2, 1.9, 1.4, 1.4, 1.8, 1.5, 1.1],
        )
    ]
    differing = [audit for audit in audits if audit["changes"]]
    if differing:
        blocks.append(
            table_block(
                "Differences in audits that both runs have",
                ["Audit", "Differences"],
                [[audit["label"], lines_of(audit["changes"])] for audit in differing],
                widths=[1, 3],
            )
        )
    return blocks


def _main(role: Role, side: ComparedAudit) -> str:
    value = side["main"][role]
    if value is None:
        return NONE
    return f"{symbol_of(side['quantity'])} {'≥' if role == 'measured' else '='} {number(value)}"


def _pair(before: ComparedAudit | None, after: ComparedAudit | None, words: Callable[[ComparedAudit], str]) -> str:
    """Text "before → after", or one value if both agree or only one exists."""
    sides = [words(side) for side in (before, after) if side is not None]
    return " → ".join(dict.fromkeys(sides))


def _regret(document: Comparison) -> list[Block]:
    cells = document["cells"]
    if not cells:
        return [paragraph("Neither run has a benchmark.")]
    blocks = []
    compared = [cell for cell in cells if cell["difference"] is not None]
    for start in range(0, len(compared), _FIGURE_ROWS):
        part = compared[start : start + _FIGURE_ROWS]
        words = "; ".join(f"{cell['label']}: {_difference(cell)}" for cell in part)
        blocks.append(
            figure_block(
                "difference of final regret",
                "Difference of final regret, after minus before, with its 95 % interval. Filled: resolved; hollow: not "
                "resolved.",
                [(regret_plots.differences(part), f"Differences of final regret. {words}.")],
                size="medium",
            )
        )
    rows = [
        [
            cell["label"],
            badge(cell["status"], _TONES[cell["status"]]),
            _final(cell["before"]),
            _final(cell["after"]),
            _difference(cell),
            badge("resolved", "unsure") if cell["difference"] and cell["difference"]["is_resolved"]
            else "not resolved" if cell["difference"] else NONE,
            lines_of(cell["changes"] or [NONE]),
        ]
        for cell in cells
    ]  # fmt: skip
    columns = ["Cell", "Status", right("Before"), right("After"), right("Difference"), "Resolved", "Differences"]
    caption = "Final regret, in units of reward. Difference: after minus before, with its 95 % interval."
    return [*blocks, table_block(caption, columns, rows, widths=[2, 1.1, 1, 1, 2, 1.4, 2.4])]


def _final(side: ComparedCell | None) -> str:
    if side is None:
        return NONE
    return "withheld" if side["final_mean"] is None else number(float(side["final_mean"]))


def _difference(cell: CellChange) -> str:
    change = cell["difference"]
    if change is None:
        return NONE
    return f"{number(float(change['mean']))} ({number(float(change['low']))} to {number(float(change['high']))})"


def _settings(document: Comparison) -> list[Block]:
    if not document["settings"]:
        return [paragraph("No differences: the same data, seeds, software, machine, code and commands.")]
    rows = [[row["name"], *map(_text, (row["before"], row["after"]))] for row in document["settings"]]
    columns = ["Setting", "Before", "After"]
    return [table_block("Settings that differ; all others are the same.", columns, rows, widths=[1.2, 2, 2])]


def _text(value: str | None) -> Cell:
    if value is None:
        return "none"
    return lines_of(value.splitlines()) if "\n" in value else {"spans": [span(value, "code")]}


def _spec(document: Comparison) -> list[Block]:
    if not document["spec_diff"]:
        return [paragraph("Both runs have the same specification.")]
    return [paragraph("Lines of the first run begin with −, lines of the second with +."), code_block(document["spec_diff"])]


def _evidence(document: Comparison) -> list[Block]:
    evidence = document["evidence"]
    files = "evidence file is" if evidence["n_same"] == 1 else "evidence files are"
    count = f"{number(evidence['n_same'])} {files} the same in both runs."
    if not evidence["files"]:
        return [paragraph(f"{count} No other file is listed.")]
    rows = [
        [code_cell(file["path"]), *(code_cell((sha256 or NONE)[:_DIGITS]) for sha256 in (file["before"], file["after"]))]
        for file in evidence["files"]
    ]
    caption = (
        "Files that differ. Results are named by the content that they were computed from. A file in one run only was "
        "computed from other settings or by other code. A file in both with different hashes was computed twice, with "
        "different results. The hashes omit who computed a file and when. The JSON file of this report has all digits."
    )
    columns = ["File", "SHA-256 before, begins", "SHA-256 after, begins"]
    return [paragraph(count), table_block(caption, columns, rows, widths=[2, 1, 1])]


def _times(document: Comparison) -> list[tuple[str, str | None]]:
    runs = document["runs"]
    return [("$.runs.before.created", runs["before"]["created"]), ("$.runs.after.created", runs["after"]["created"])]


COMPARISON = "bandana/comparison/2"
KINDS["comparison"] = Kind(
    COMPARISON, Comparison, {"comparison": "Comparison of two runs"}, headline, sections, times=_times
)
