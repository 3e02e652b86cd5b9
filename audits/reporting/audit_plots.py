"""Figures of audits: the three epsilons, the trade-off curve, and the power curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bandana.audits.reporting.document import has_ledger
from bandana.audits.reporting.drawing import (
    INK,
    MARKERS,
    ROLES,
    close_rows,
    drawn_once,
    few_ticks,
    legend_above,
    log_ticks,
    name_row,
    number_ticks,
    svg_of,
    write,
)
from bandana.audits.reporting.numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALL: Any = {"va": "center", "fontsize": 7.5}


@drawn_once
def three_epsilons(audits: Sequence[dict[str, Any]]) -> str:
    """Claimed, accounted and measured epsilon, one row per audit.

    Args:
      audits: at least one, as in the document.

    Returns:
      SVG text. The axis is logarithmic when the numbers span more than a factor of 20; a measured 0 is then at its left end.
    """
    positive = [v for a in audits for v in a["epsilon"].values() if v is not None and v > 0]
    promised = [v for a in audits for role, v in a["epsilon"].items() if role != "measured" and v is not None]
    is_log = bool(positive) and max(positive) / min(positive) > 20 and all(v > 0 for v in promised)
    row, gap = 1.0, 0.21

    def draw(axes: Axes) -> None:
        if is_log:
            axes.set_xscale("log")
            axes.set_xlim(min(positive) / 1.6, max(positive) * 3.2)
            log_ticks(axes.xaxis)
        else:
            axes.set_xlim(0, (max(positive, default=1.0)) * 1.22)
            number_ticks(axes.xaxis)
        for index, audit in enumerate(audits):
            y = index * row
            name_row(axes, y, audit["label"], 0.34)
            for offset, (role, color) in enumerate(ROLES.items()):
                height, value = y + (offset - 0.5) * gap, audit["epsilon"][role]
                if value is None:
                    why = "none" if role == "measured" else "no finite number"
                    why = "no ledger" if role == "accounted" and not has_ledger(audit) else why
                    across = ("axes fraction", "data")
                    write(axes, f"{role}: {why}", (0, height), (10, 0), xycoords=across, color=color, **_SMALL)
                    continue
                start = axes.get_xlim()[0]
                place = max(value, start)
                axes.plot([start, place], [height, height], color=color, linewidth=1.1, alpha=0.55)
                axes.plot([place], [height], MARKERS[role], color=color, markersize=5, clip_on=False)
                text = f"≥ {number(value)}" if role == "measured" else number(value)
                write(axes, text, (place, height), (6, 0), color=color, **_SMALL)
        close_rows(axes, (len(audits) - 1) * row + 0.52, -0.52)
        deltas = {audit["delta"] for audit in audits}
        at = f" at δ = {number(deltas.pop())}" if len(deltas) == 1 else " at each audit's δ"
        axes.set_xlabel(f"ε{at}, in nats{' (log scale)' if is_log else ''}")
        names = {"measured": "measured (at least)"}
        marks = {"markersize": 5, "linestyle": "-", "linewidth": 1.1}
        roles = ROLES.items()
        legend_above(axes, [{"marker": MARKERS[r], "color": c, "label": names.get(r, r), **marks} for r, c in roles])

    return svg_of(draw, 5.2, 0.85 + 0.62 * len(audits))


@drawn_once
def tradeoff_curve(audit: dict[str, Any]) -> str:
    """Trade-off curves of the two error rates: the claim's, the attack's, and that of the measured lower bound.

    Args:
      audit: one audit whose `tradeoff` is not null.

    Returns:
      SVG text. The axes are cut if all curves stay near the corner.
    """
    curve = audit["tradeoff"]
    fpr = np.asarray(curve["fpr"], dtype=float)
    corner = max(
        float(fpr[np.argmin(np.abs(np.asarray(curve[key]) - fpr))]) for key in ("claimed", "measured", "lower_bound")
    )
    limit = 1.0 if corner >= 0.15 else 0.5 if corner >= 0.06 else 0.25

    def draw(axes: Axes) -> None:
        axes.fill_between(fpr, 0, curve["claimed"], color=ROLES["claimed"], alpha=0.07, linewidth=0)
        axes.plot([0, 1], [1, 0], color="#8c959f", linewidth=0.9, linestyle=(0, (1, 2)), label="no leak")
        axes.plot(fpr, curve["measured"], color=ROLES["measured"], linewidth=4, alpha=0.4, label="attack, measured")
        mu = curve["mu_lower"]
        bound = "lower bound" + ("" if mu is None else f", µ ≥ {number(mu)}")
        dash = (0, (4, 2))
        axes.plot(fpr, curve["claimed"], color=ROLES["claimed"], linewidth=1.2, label="limit of the claim")
        axes.plot(fpr, curve["lower_bound"], color=ROLES["measured"], linewidth=1.5, linestyle=dash, label=bound)
        axes.set_xlim(0, limit)
        axes.set_ylim(0, limit)
        axes.set_aspect("equal")
        number_ticks(axes.xaxis, 5)
        number_ticks(axes.yaxis, 5)
        axes.set_xlabel("false-positive rate")
        axes.set_ylabel("false-negative rate")
        axes.legend(loc="upper right", borderaxespad=0.1, handlelength=1.7, labelspacing=0.3, fontsize=8)

    return svg_of(draw, 3.05, 2.9)


@drawn_once
def power_curve(audit: dict[str, Any]) -> str:
    """Share of audits that catch a fault, against the factor by which it exceeds the claim.

    Args:
      audit: one audit whose `power` is not null.

    Returns:
      SVG text; the share of 95 % is a line, and the smallest factor that reaches it is marked.
    """
    curve, smallest = audit["power"], audit["measurement"]["smallest_factor"]

    def draw(axes: Axes) -> None:
        color = ROLES["measured"]
        factors, caught = np.asarray(curve["factors"]), 100 * np.asarray(curve["caught"])
        axes.plot(factors, caught, color=color)
        axes.axhline(95, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        write(axes, "95 %", (0, 95), (4, -9), xycoords=("axes fraction", "data"), fontsize=8)
        if smallest is not None:
            axes.plot([smallest], [95], MARKERS["claimed"], color=INK, markersize=4.5)
            write(axes, f"× {number(smallest)}", (smallest, 95), (7, -11), fontsize=8.5, fontweight="bold")
        axes.set_xlim(factors[0], factors[-1])
        axes.set_ylim(0, 104)
        axes.xaxis.set_major_locator(few_ticks(4))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.6g}")
        axes.yaxis.set_major_locator(few_ticks(5))
        axes.set_xlabel("true value / claimed value")
        axes.set_ylabel("audits that catch it (%)")

    return svg_of(draw, 3.05, 2.5)
