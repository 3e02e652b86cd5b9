"""What the report of a comparison says: which audits, cells and settings differ between two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from bandana.audits.reporting import origin, regret_plots
from bandana.audits.reporting.blocks import (
    Block,
    badge,
    cell_of,
    code_block,
    column,
    fact_list,
    figure_block,
    lines_of,
    paragraph,
    span,
    table_block,
)
from bandana.audits.reporting.drawing import ROLES
from bandana.audits.reporting.numbers import NONE, number, symbol_of
from bandana.audits.reporting.power import factor_of

_TONES = {"new": "unsure", "gone": "unsure", "changed": "unsure", "same": "quiet"}
_STATUS = ("new", "gone", "changed", "same")
_FIGURE_ROWS = 12
_DIGITS = 16


def headline(document: dict[str, Any]) -> tuple[str, str]:
    """FAIL if a verdict became worse, else NONE; and one sentence that counts what changed."""
    worse = sum(audit["is_worse"] for audit in document["audits"])
    said = [f"{worse} verdict{'s' if worse != 1 else ''} became worse."] if worse else []
    for name in ("audits", "cells"):
        counts = Counter(item["status"] for item in document[name])
        if counts:
            shown = ", ".join(f"{counts[status]} {status}" for status in _STATUS if counts[status])
            said.append(f"{name.capitalize()}: {shown}.")
    compared = [cell["difference"] for cell in document["cells"] if cell["difference"] is not None]
    if compared:
        said.append(f"Final regret: {sum(d['is_resolved'] for d in compared)} of {len(compared)} differences resolved.")
    return "FAIL" if worse else "NONE", " ".join(said) or "Neither run holds an audit or a benchmark."


def sections(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The sections of a comparison, in the order in which they are read; see `content.sections`."""
    plan: list[tuple[str, str, Callable[[dict[str, Any]], list[Block]]]] = [
        ("glance", "The two runs", _runs),
        ("audits", "1  Audits", _audits),
        ("regret", "2  Final regret", _regret),
        ("settings", "3  Data, seeds, makers and commands", _settings),
        ("spec", "4  Specification", _spec),
        ("evidence", "5  Evidence", _evidence),
    ]
    return [{"id": key, "title": title, "blocks": write(document)} for key, title, write in plan]


def _runs(document: dict[str, Any]) -> list[Block]:
    runs = document["runs"]
    columns = [
        column("Run"),
        column("Title"),
        column("Suite"),
        column("Computed"),
        column("SHA-256 of all numbers, begins"),
    ]
    rows = [
        [
            cell_of(name),
            cell_of(run["title"]),
            cell_of(run["suite"]),
            cell_of(origin.time_of(run["created"]) if run["created"] else origin.NOT_RECORDED),
            cell_of(run["evidence"][:_DIGITS], "code"),
        ]
        for name, run in runs.items()
    ]
    same = runs["before"]["evidence"] == runs["after"]["evidence"]
    return [
        table_block("What is compared: the run named second (after) with the one named first (before).", columns, rows,
                    widths=[0.8, 2, 1.4, 1.6, 1.8]),
        *([paragraph("Both runs have the same evidence, whoever computed it and when.")] if same else []),
        fact_list(
            [
                ("new, gone", "Only in the run after, only in the run before."),
                (
                    "changed, same",
                    "In both, by the same label; some number or setting differs, or none does. Numbers that "
                    "agree to nine digits are the same.",
                ),
                (
                    "Measured",
                    "A lower bound from replays that chance moves: two of them may differ although the code is the same. "
                    "A smaller one is no sign of more privacy, nor a larger one, below the claim, of less.",
                ),
                (
                    "Resolved",
                    "The 95 % interval of the difference of final regret leaves 0 out. It takes the two runs as independent "
                    "and their means as normal; runs that share seeds are not independent, and the interval is then not "
                    "exactly of 95 %. Each interval holds by itself, not all together.",
                ),
            ]
        ),
    ]  # fmt: skip


def _audits(document: dict[str, Any]) -> list[Block]:
    audits = document["audits"]
    if not audits:
        return [paragraph("Neither run holds an audit.")]
    columns = [
        column("Audit"),
        column("Status"),
        column("Verdict"),
        *(column(role, right=True, role=role) for role in ROLES),
        column("Smallest fault seen", right=True),
        column("Faults caught", right=True),
    ]
    rows = []
    for audit in audits:
        before, after = audit["before"], audit["after"]
        verdict = _pair(before, after, lambda side: side["verdict"])
        rows.append(
            [
                cell_of(audit["label"]),
                badge(audit["status"], _TONES[audit["status"]]),
                badge(verdict, "bad") if audit["is_worse"] else cell_of(verdict),
                *(cell_of(_pair(before, after, partial(_main, role))) for role in ROLES),
                cell_of(_pair(before, after, lambda side: factor_of(side["smallest_factor"]))),
                cell_of(_pair(before, after, lambda side: f"{side['caught']}/{side['planted']}")),
            ]
        )  # fmt: skip
    blocks = [
        table_block(
            "Audits, before → after; one entry where both runs agree to the digits shown. The numbers are those that the "
            "claim is held against in the first place.",
            columns,
            rows,
            widths=[2.2, 1.2, 1.9, 1.4, 1.4, 1.8, 1.5, 1.1],
        )
    ]
    differing = [audit for audit in audits if audit["changes"]]
    if differing:
        blocks.append(
            table_block(
                "What differs in each audit that both runs hold.",
                [column("Audit"), column("What differs")],
                [[cell_of(audit["label"]), lines_of(audit["changes"])] for audit in differing],
                widths=[1, 3],
            )
        )
    return blocks


def _main(role: str, side: dict[str, Any]) -> str:
    value = side["main"][role]
    if value is None:
        return NONE
    return f"{symbol_of(side['quantity'])} {'≥' if role == 'measured' else '='} {number(value)}"


def _pair(before: Any, after: Any, words: Callable[[Any], str]) -> str:
    """A text "before → after", or one of them where they agree or only one is there."""
    told = [words(side) for side in (before, after) if side is not None]
    return " → ".join(dict.fromkeys(told))


def _regret(document: dict[str, Any]) -> list[Block]:
    cells = document["cells"]
    if not cells:
        return [paragraph("Neither run holds a benchmark.")]
    blocks = []
    compared = [cell for cell in cells if cell["difference"] is not None]
    for start in range(0, len(compared), _FIGURE_ROWS):
        part = compared[start : start + _FIGURE_ROWS]
        said = "; ".join(f"{cell['label']}: {_difference(cell)}" for cell in part)
        blocks.append(
            figure_block(
                "Final regret after, less that before, with its 95 % interval. Filled: resolved; hollow: not.",
                [(regret_plots.differences(part), f"Differences of final regret. {said}.")],
                size="medium",
            )
        )
    rows = [
        [
            cell_of(cell["label"]),
            badge(cell["status"], _TONES[cell["status"]]),
            cell_of(_final(cell["before"])),
            cell_of(_final(cell["after"])),
            cell_of(_difference(cell)),
            badge("resolved", "unsure") if cell["difference"] and cell["difference"]["is_resolved"]
            else cell_of("not resolved" if cell["difference"] else NONE),
            lines_of(cell["changes"] or [NONE]),
        ]
        for cell in cells
    ]  # fmt: skip
    columns = [
        column("Cell"),
        column("Status"),
        column("Before", right=True),
        column("After", right=True),
        column("Difference", right=True),
        column("Resolved"),
        column("What differs"),
    ]
    caption = "Final regret, in units of reward. Difference: after less before, with its 95 % interval."
    return [*blocks, table_block(caption, columns, rows, widths=[2, 1.1, 1, 1, 2, 1.4, 2.4])]


def _final(side: dict[str, Any] | None) -> str:
    if side is None:
        return NONE
    return "withheld" if side["final_mean"] is None else number(float(side["final_mean"]))


def _difference(cell: dict[str, Any]) -> str:
    found = cell["difference"]
    if found is None:
        return NONE
    return f"{number(float(found['mean']))} ({number(float(found['low']))} to {number(float(found['high']))})"


def _settings(document: dict[str, Any]) -> list[Block]:
    if not document["settings"]:
        return [paragraph("Nothing differs: the same data, seeds, software, machine, code and commands.")]
    rows = [[cell_of(row["name"]), *(_text(row[side]) for side in ("before", "after"))] for row in document["settings"]]
    columns = [column("What"), column("Before"), column("After")]
    return [table_block("What differs; what is not listed is the same.", columns, rows, widths=[1.2, 2, 2])]


def _text(value: str | None) -> dict[str, Any]:
    if value is None:
        return cell_of("none")
    return lines_of(value.splitlines()) if "\n" in value else {"spans": [span(value, "code")]}


def _spec(document: dict[str, Any]) -> list[Block]:
    if not document["spec_diff"]:
        return [paragraph("Both runs were made from the same text.")]
    return [
        paragraph("Lines of the run before begin with −, lines of the run after with +."),
        code_block(document["spec_diff"]),
    ]


def _evidence(document: dict[str, Any]) -> list[Block]:
    found = document["evidence"]
    files = "file of evidence says" if found["n_same"] == 1 else "files of evidence say"
    said = f"{number(found['n_same'])} {files} the same in both runs."
    if not found["files"]:
        return [paragraph(f"{said} No other file is listed.")]
    rows = [
        [cell_of(file["path"], "code"), *(cell_of((file[side] or NONE)[:_DIGITS], "code") for side in ("before", "after"))]
        for file in found["files"]
    ]
    caption = (
        "Files that differ. Results are named by the content of what they were computed from: a file in one run only was "
        "computed from other settings or by other code; a file in both with other hashes was computed twice, differently. "
        "The hashes leave out who computed a file and when. All digits stand in the JSON file of this report."
    )
    columns = [column("File"), column("SHA-256 before, begins"), column("SHA-256 after, begins")]
    return [paragraph(said), table_block(caption, columns, rows, widths=[2, 1, 1])]
