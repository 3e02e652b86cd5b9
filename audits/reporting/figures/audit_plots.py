"""Figures of audits: the epsilons, the trade-off curve, and the power curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bandana.audits.documents.audit import Audit, Role
from bandana.audits.documents.fields import present
from bandana.audits.reporting.document import has_ledger
from bandana.audits.reporting.figures import drawing
from bandana.audits.reporting.numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALL: Any = {"va": "center", "fontsize": 7}
_GAUSSIAN, _UNCONDITIONAL = "measured, if Gaussian DP", "measured, nothing assumed"


class _Mark(NamedTuple):
    """One mark of a row: its role, value, and name in the legend; hollow if nothing is assumed."""

    role: Role
    value: float | None
    name: str
    is_hollow: bool = False


def _marks(audit: Audit) -> list[_Mark]:
    three, measured = audit["epsilon"], audit["measured_epsilon"]
    promised = [_Mark("claimed", three["claimed"], "claimed"), _Mark("accounted", three["accounted"], "accounted")]
    gaussian = [] if measured["gaussian"] is None else [_Mark("measured", measured["gaussian"], _GAUSSIAN)]
    return [*promised, *gaussian, _Mark("measured", measured["unconditional"], _UNCONDITIONAL, is_hollow=True)]


@drawing.drawn_once
def epsilons(audits: Sequence[Audit]) -> str:
    """Claimed, accounted and measured epsilon, one row per audit; measured with and without an assumption.

    Args:
      audits: at least one, as in the document.

    Returns:
      SVG text. The axis is logarithmic when the numbers span more than a factor of 20; a measured 0 is then at its left end.
    """
    rows = [_marks(audit) for audit in audits]
    positive = [mark.value for marks in rows for mark in marks if mark.value is not None and mark.value > 0]
    promised = [mark.value for marks in rows for mark in marks if mark.role != "measured" and mark.value is not None]
    is_log = bool(positive) and max(positive) / min(positive) > 20 and all(value > 0 for value in promised)
    row, gap = 1.0, 0.175

    def draw(axes: Axes) -> None:
        if is_log:
            axes.set_xscale("log")
            axes.set_xlim(min(positive) / 1.6, max(positive) * 3.2)
            drawing.log_ticks(axes.xaxis)
        else:
            axes.set_xlim(0, (max(positive, default=1.0)) * 1.22)
            drawing.number_ticks(axes.xaxis)
        for index, (audit, marks) in enumerate(zip(audits, rows, strict=True)):
            y = index * row
            drawing.name_row(axes, y, audit["label"], 0.36)
            for offset, mark in enumerate(marks):
                _draw_mark(axes, mark, y + (offset - 0.85) * gap, has_ledger(audit))
        drawing.close_rows(axes, (len(audits) - 1) * row + 0.52, -0.52)
        deltas = {audit["delta"] for audit in audits}
        at = f" at δ = {number(deltas.pop())}" if len(deltas) == 1 else " at each audit's δ"
        axes.set_xlabel(f"ε{at}, in nats{' (log scale)' if is_log else ''}")
        style = {"markersize": 5, "linestyle": "-", "linewidth": 1.1}
        legend = {mark.name: mark for marks in rows for mark in marks}
        lines = [{**_look(mark), "label": name, **style} for name, mark in legend.items()]
        drawing.legend_above(axes, lines, columns=2)

    return drawing.svg_of(draw, 5.2, 0.85 + 0.54 * len(audits))


def _look(mark: _Mark) -> dict[str, Any]:
    color = drawing.ROLES[mark.role]
    return {"marker": drawing.MARKERS[mark.role], "color": color, "markerfacecolor": "white" if mark.is_hollow else color}


def _draw_mark(axes: Axes, mark: _Mark, height: float, has_accounts: bool) -> None:
    color = drawing.ROLES[mark.role]
    if mark.value is None:
        why = "none" if mark.role == "measured" else "no finite number"
        why = "no ledger" if mark.role == "accounted" and not has_accounts else why
        across = ("axes fraction", "data")
        drawing.write(axes, f"{mark.name}: {why}", (0, height), (10, 0), xycoords=across, color=color, **_SMALL)
        return
    start = axes.get_xlim()[0]
    place = max(mark.value, start)
    axes.plot([start, place], [height, height], color=color, linewidth=1.1, alpha=0.55)
    axes.plot([place], [height], markersize=5, clip_on=False, linestyle="none", **_look(mark))
    text = f"≥ {number(mark.value)}" if mark.role == "measured" else number(mark.value)
    drawing.write(axes, text, (place, height), (6, 0), color=color, **_SMALL)


@drawing.drawn_once
def tradeoff_curve(audit: Audit) -> str:
    """Trade-off curves of the two error rates, and below them their distance from the claim.

    Args:
      audit: one audit whose `tradeoff` is not null.

    Returns:
      SVG text. The upper axes are cut if all curves stay near the corner. The lower ones show the gap to the claim at every
      false-positive rate: how much larger than the claim's least false-negative rate those of the attack and of the lower
      bound are, in percentage points; below 0 the claim would be refuted.
    """
    curve = present(audit["tradeoff"])
    fpr, claimed = np.asarray(curve["fpr"], dtype=float), np.asarray(curve["claimed"], dtype=float)
    corner = max(
        float(fpr[np.argmin(np.abs(np.asarray(curve[key]) - fpr))]) for key in ("claimed", "measured", "lower_bound")
    )
    limit = 1.0 if corner >= 0.15 else 0.5 if corner >= 0.06 else 0.25
    dash = (0, (4, 2))

    def draw(axes: Axes, below: Axes) -> None:
        axes.fill_between(fpr, 0, claimed, color=drawing.ROLES["claimed"], alpha=0.07, linewidth=0)
        axes.plot([0, 1], [1, 0], color="#8c959f", linewidth=0.9, linestyle=(0, (1, 2)), label="no leak")
        axes.plot(fpr, curve["measured"], color=drawing.ROLES["measured"], linewidth=4, alpha=0.4, label="attack, measured")
        mu = curve["mu_lower"]
        bound = "lower bound" + ("" if mu is None else f", µ ≥ {number(mu)}")
        axes.plot(fpr, claimed, color=drawing.ROLES["claimed"], linewidth=1.2, label="limit of the claim")
        axes.plot(fpr, curve["lower_bound"], color=drawing.ROLES["measured"], linewidth=1.5, linestyle=dash, label=bound)
        axes.set_xlim(0, limit)
        axes.set_ylim(0, limit)
        drawing.number_ticks(axes.xaxis, 5)
        drawing.number_ticks(axes.yaxis, 5)
        axes.set_ylabel("false-negative rate")
        axes.legend(loc="upper right", borderaxespad=0.1, handlelength=1.7, labelspacing=0.3, fontsize=8)
        inner = slice(1, -1)  # at a rate of 0 or 1 a sample has one threshold, its largest or smallest score
        gaps = {key: 100 * (np.asarray(curve[key], dtype=float) - claimed)[inner] for key in ("measured", "lower_bound")}
        low, high = (pick(float(pick(gap)) for gap in gaps.values()) for pick in (min, max))
        room = max(high - low, 0.5)
        below.set_ylim(min(low, 0.0) - 0.15 * room, max(high, 0.0) + 0.15 * room)
        below.axhspan(below.get_ylim()[0], 0, color=drawing.ROLES["claimed"], alpha=0.07, linewidth=0)
        below.axhline(0, color=drawing.ROLES["claimed"], linewidth=1.2)
        below.plot(fpr[inner], gaps["measured"], color=drawing.ROLES["measured"], linewidth=3, alpha=0.4)
        below.plot(fpr[inner], gaps["lower_bound"], color=drawing.ROLES["measured"], linewidth=1.5, linestyle=dash)
        below.set_xlim(0, limit)
        drawing.number_ticks(below.xaxis, 5)
        drawing.number_ticks(below.yaxis, 3)
        below.set_xlabel("false-positive rate")
        below.set_ylabel("gap (points)")

    return drawing.svg_of_two(draw, 3.05, 3.9, (3.0, 1.25))


@drawing.drawn_once
def power_curve(audit: Audit) -> str:
    """Share of audits that catch a fault, against the factor by which it exceeds the claim.

    Args:
      audit: one audit whose `power` is not null.

    Returns:
      SVG text; the share of 95 % is a line, and the smallest factor that reaches it is marked.
    """
    curve, smallest = present(audit["power"]), audit["measurement"]["smallest_factor"]

    def draw(axes: Axes) -> None:
        color = drawing.ROLES["measured"]
        factors, caught = np.asarray(curve["factors"]), 100 * np.asarray(curve["caught"])
        axes.plot(factors, caught, color=color)
        axes.axhline(95, color=drawing.INK, linewidth=0.9, linestyle=(0, (4, 2)))
        drawing.write(axes, "95 %", (0, 95), (4, -9), xycoords=("axes fraction", "data"), fontsize=8)
        if smallest is not None:
            axes.plot([smallest], [95], drawing.MARKERS["claimed"], color=drawing.INK, markersize=4.5)
            drawing.write(axes, f"× {number(smallest)}", (smallest, 95), (7, -11), fontsize=8.5, fontweight="bold")
        axes.set_xlim(factors[0], factors[-1])
        axes.set_ylim(0, 104)
        axes.xaxis.set_major_locator(drawing.few_ticks(4))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.6g}")
        axes.yaxis.set_major_locator(drawing.few_ticks(5))
        axes.set_xlabel("true value / claimed value")
        axes.set_ylabel("audits that catch it (%)")

    return drawing.svg_of(draw, 3.05, 2.5)
