"""Figures of audits: the epsilons, the trade-off curve, and the power curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bandana.audits.documents.audit import Audit
from bandana.audits.documents.fields import present
from bandana.audits.reporting.figures import drawing
from bandana.audits.reporting.numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@drawing.drawn_once
def epsilons(audits: Sequence[Audit]) -> str:
    """Claimed, accounted and measured epsilon, one row per audit.

    Args:
      audits: at least one, as in the document.

    Returns:
      SVG text. The axis is logarithmic when the numbers span more than a factor of 20; a measured 0 is then at its left end.
    """
    positive = [value for audit in audits for role in drawing.ROLES if (value := audit["epsilon"][role])]
    is_log = bool(positive) and max(positive) / min(positive) > 20

    def draw(axes: Axes) -> None:
        if is_log:
            axes.set_xscale("log")
            drawing.log_ticks(axes.xaxis)
        else:
            drawing.number_ticks(axes.xaxis)
        start = min(positive) / 1.6 if is_log else 0.0
        axes.set_xlim(start, max(positive, default=1.0) * (1.6 if is_log else 1.1))
        for row, audit in enumerate(audits):
            drawing.name_row(axes, row, audit["label"], 0.28)
            for role in drawing.ROLES:
                if (value := audit["epsilon"][role]) is not None:
                    axes.plot([max(value, start)], [row + 0.15], clip_on=False, **drawing.mark_of(role))
        drawing.close_rows(axes, len(audits) - 0.48, -0.52)
        deltas = {audit["delta"] for audit in audits}
        at = f" at δ = {number(deltas.pop())}" if len(deltas) == 1 else " at each audit's δ"
        axes.set_xlabel(f"ε{at}, in nats{' (log scale)' if is_log else ''}")
        drawing.legend_above(axes, [{**drawing.mark_of(role), "label": role} for role in drawing.ROLES])

    return drawing.svg_of(draw, 5.2, 0.85 + 0.42 * len(audits))


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
