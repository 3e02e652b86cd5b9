"""Tables, figure and file of docs/refutations.md: `python docs/refutations_table.py`, after `bandana refute --record`."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import IMAGES
from slim import slim

from bandana.audits.reporting.figures.drawing import MARKERS, ROLES, close_rows, legend_above, svg_of
from bandana.flows.annexes.anything.refutations.campaign import confidence_of_each, coverage_of
from bandana.flows.annexes.anything.refutations.case import MEASURED, Case, read_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGE = Path(__file__).parent / "refutations.md"
SEARCHED = PAGE.with_name("refutations-searched.csv")
FIGURE = IMAGES / "refutations.svg"
CAMPAIGN = Path(__file__).parents[1] / "experiments" / "refutations"
Document = Mapping[str, Any]
_LINK = re.compile(r"https://github\.com/([^/]+/[^/]+)(?:/(?:issues|pull)/(\d+)|/blob/.*)?")


def documents() -> dict[str, Document]:
    """The recorded results of all cases, by name."""
    return {name: json.loads((CAMPAIGN / name / MEASURED).read_text(encoding="utf-8")) for name in read_all(CAMPAIGN)}


def summary(found: Mapping[str, Document]) -> str:
    """How many mechanisms were audited, how many refuted, and at which confidence."""
    n = next(iter(found.values()))["n_audits"]
    n_defects = sum(any(entry["role"] == "defect" for entry in document["audits"]) for document in found.values())
    return (
        f"{coverage_of(found.values())}. {n_defects} defects are shown by {n} audits, whose bounds all hold together with "
        f"probability 95 % at least: each is taken at confidence {confidence_of_each(n):.6f}."
    )


def _number(value: float) -> str:
    return f"{value:.3g}"


def _links(case: Case) -> str:
    """The issues and pull requests of a case."""
    found = [(link, _LINK.fullmatch(link)) for link in case.reported]
    return ", ".join(
        f"[{match[1].split('/')[1]}{f'#{match[2]}' if match[2] else ''}]({link})" for link, match in found if match
    )


def _worst(document: Document, role: str) -> Mapping[str, Any] | None:
    """The audit of a role that exceeds its claim most, or comes closest to it."""
    own = [entry for entry in document["audits"] if entry["role"] == role]
    return max(own, key=lambda entry: entry["measured"] / entry["claimed"], default=None)


def defects(cases: Mapping[str, Case], found: Mapping[str, Document]) -> str:
    """A row for each defect: claimed and measured, before the fix and after it."""
    lines = ["| case | defect | claimed | measured | after the fix | reported |", "|---|---|---|---|---|---|"]
    for name, case in cases.items():
        before, after = _worst(found[name], "defect"), _worst(found[name], "fixed")
        if before is None:
            continue
        fixed = "" if after is None else f"{_number(after['claimed'])} ≥ {_number(after['measured'])}"
        version = ", ".join(dict.fromkeys(one.packages for one in case.planned if one.role == "defect"))
        where = case.library if version == "numpy" else f"{case.library} {version}"
        lines.append(
            f"| `{name}` | {case.title} ({where}) | {before['quantity']} {_number(before['claimed'])} "
            f"| **≥ {_number(before['measured'])}** | {fixed} | {_links(case) or 'here'} |"
        )
    return "\n".join(lines)


def searched(cases: Mapping[str, Case], found: Mapping[str, Document]) -> list[tuple[str, ...]]:
    """A row for each mechanism that was searched: how often it was audited, and how close the strongest audit came."""
    rows = [("library", "mechanism", "audits", "quantity", "claimed", "measured", "verdict")]
    for name, case in cases.items():
        for mechanism in dict.fromkeys(one.mechanism for one in case.planned if one.role == "search"):
            own = [entry for entry in found[name]["audits"] if entry["mechanism"] == mechanism]
            made = [entry for entry in own if entry.get("measured") is not None]
            best = max(made, key=lambda entry: entry["measured"] / entry["claimed"])
            verdict = "; ".join(dict.fromkeys(entry["verdict"].lower() for entry in own))
            numbers = (best["quantity"], _number(best["claimed"]), _number(best["measured"]))
            rows.append((case.library, mechanism.removeprefix("measurements: "), str(len(own)), *numbers, verdict))
    return rows


def others(cases: Mapping[str, Case], found: Mapping[str, Document]) -> str:
    """A row for each library: its searched mechanisms, their verdicts, and the one that came closest to its claim."""
    lines = ["| library | mechanisms | verdicts | closest to its claim |", "|---|--:|---|---|"]
    rows = searched(cases, found)[1:]
    for library in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == library]
        closest = max(own, key=lambda row: float(row[5]) / float(row[4]))
        verdicts = ", ".join(f"{n} {verdict}" for verdict, n in Counter(row[6] for row in own).items())
        lines.append(f"| {library} | {len(own)} | {verdicts} | `{closest[1]}`, {closest[5]} of {closest[4]} |")
    return "\n".join(lines)


def text_of(rows: list[tuple[str, ...]]) -> str:
    """Rows as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def figure(cases: Mapping[str, Case], found: Mapping[str, Document]) -> str:
    """Measured against claimed, in units of the claim, a row a defect, with the version after the fix below it."""
    rows = [(name, _worst(found[name], "defect"), _worst(found[name], "fixed")) for name in cases]
    shown = sorted(
        ((name, before, after) for name, before, after in rows if before is not None),
        key=lambda row: row[1]["measured"] / row[1]["claimed"],
    )

    def draw(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.axvline(1.0, color=ROLES["claimed"], linewidth=1.2)
        for place, (_, before, after) in enumerate(shown):
            factor = before["measured"] / before["claimed"]
            axes.plot([1, factor], [place, place], color=ROLES["measured"], linewidth=1.2)
            axes.plot([factor], [place], MARKERS["measured"], color=ROLES["measured"], markersize=5)
            axes.annotate(
                f"{float(f'{factor:.2g}'):g}", (factor, place), xytext=(6, -3), textcoords="offset points", fontsize=8
            )
            if after is not None and after["measured"] > 0:
                axes.plot([after["measured"] / after["claimed"]], [place], "o", color=ROLES["accounted"], markersize=4)
        axes.set_xlim(0.01, 600)
        axes.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
        axes.set_xlabel("measured lower bound, in units of the claim (95 % together)")
        close_rows(axes, -0.6, len(shown) - 0.4)
        axes.set_yticks(range(len(shown)), [name for name, _, _ in shown])
        legend_above(axes, [
            {"color": ROLES["claimed"], "label": "the claim"},
            {"color": ROLES["measured"], "marker": MARKERS["measured"], "label": "measured"},
            {"color": ROLES["accounted"], "marker": "o", "linestyle": "none", "label": "measured after the fix"},
        ])  # fmt: skip

    return svg_of(draw, 7.4, 0.28 * len(shown) + 1.1)


def filled(page: str) -> str:
    """The page with the recorded results."""
    cases, found = read_all(CAMPAIGN), documents()
    parts: dict[str, Callable[[], str]] = {
        "summary": lambda: summary(found),
        "defects": lambda: defects(cases, found),
        "others": lambda: others(cases, found),
    }
    for mark, part in parts.items():
        page = re.sub(
            rf"(<!-- {mark} -->\n).*?(<!-- end -->)",
            lambda match, part=part: f"{match[1]}{part()}\n{match[2]}",
            page,
            flags=re.S,
        )
    return page


if __name__ == "__main__":
    FIGURE.write_text(slim(figure(read_all(CAMPAIGN), documents())), encoding="utf-8")
    SEARCHED.write_text(text_of(searched(read_all(CAMPAIGN), documents())), encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
