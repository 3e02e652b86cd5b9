"""The figure of a leaderboard: what is measured against the claimed mu, one line a family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bandana.audits.reporting.drawing import (
    FAMILIES,
    INK,
    TWIN,
    drawn_once,
    label_ends,
    log_ticks,
    number_ticks,
    short,
    svg_of,
)
from bandana.audits.reporting.numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = "osD^vP"
_DOTTED = (0, (1, 1.6))
_FAR = 20.0
"""Ratio of means from which the axis is logarithmic."""


@drawn_once
def measure_against_mu(
    families: Mapping[str, Sequence[dict[str, Any]]], others: Sequence[dict[str, Any]], measure: str
) -> str:
    """Means with intervals against the claimed mu, one line a family; rows that are not private as horizontal lines.

    Args:
      families: name -> private rows of a leaderboard; at least one.
      others: its other rows; references among them are dotted.
      measure: what means are of, in words.

    Returns:
      SVG text. mu is logarithmic; means too, where they span more than a factor of 20.
    """
    rows = [row for own in families.values() for row in own]
    drawn = [*rows, *others]
    bounds = [row["lower_bound"] for row in rows if row["lower_bound"]]
    low, high = min(row["low"] for row in drawn), max(row["high"] for row in drawn)
    is_log = low > 0 and high > _FAR * low

    def draw(axes: Axes) -> None:
        ends: list[tuple[float, str, str]] = []
        axes.set_xscale("log")
        for row in others:
            is_reference = row["role"] == "reference"
            axes.axhline(row["mean"], color=TWIN, linewidth=1.1, linestyle=_DOTTED if is_reference else (0, (4, 1.6)))
            ends.append((float(row["mean"]), short(row["label"], 30), TWIN if is_reference else INK))
        for index, (name, own) in enumerate(families.items()):
            color, mark = FAMILIES[index % len(FAMILIES)], _MARKS[index // len(FAMILIES) % len(_MARKS)]
            ordered = sorted(own, key=lambda row: float(row["mu_claimed"]))
            # Families stand beside each other where their levels are the same, so that intervals can be seen.
            x = [row["mu_claimed"] * 1.03 ** (index - (len(families) - 1) / 2) for row in ordered]
            y = [row["mean"] for row in ordered]
            reach = [[r["mean"] - r["low"] for r in ordered], [r["high"] - r["mean"] for r in ordered]]
            reach = [[max(0.0, value) for value in side] for side in reach]
            axes.errorbar(x, y, yerr=reach, color=color, capsize=2.5, elinewidth=0.9, linewidth=1.3)
            for at, row in zip(x, ordered, strict=True):
                fill = color if row["is_on_front"] else "white"
                axes.plot([at], [row["mean"]], mark, color=color, markerfacecolor=fill, markersize=5.5)
            least = [(at, row["lower_bound"]) for at, row in zip(x, ordered, strict=True) if row["lower_bound"]]
            if least:
                axes.plot(*zip(*least, strict=True), color=color, linewidth=0.9, linestyle=_DOTTED, marker=".", markersize=3)
            ends.append((float(y[-1]), short(name, 30), color))
        levels = sorted({row["mu_claimed"] for row in rows})
        places = sorted({float(f"{level:.2g}") for level in levels})
        axes.set_xlim(levels[0] / 1.5, levels[-1] * 1.5)
        if len(places) <= 8:
            axes.set_xticks(places, [number(place) for place in places])
            axes.minorticks_off()
        else:
            log_ticks(axes.xaxis)
        axes.set_xlabel("µ claimed (log scale)")
        axes.set_ylabel(measure + (" (log scale)" if is_log else ""))
        if is_log:
            axes.set_yscale("log")
            axes.set_ylim(max(min([low, *bounds]), high * 1e-6) / 1.4, high * 1.3)
            log_ticks(axes.yaxis)
        else:
            axes.set_ylim(min(0.0, low), high * 1.08 if high > 0 else 1.0)
            number_ticks(axes.yaxis, 6)
        label_ends(axes, axes.get_xlim()[1], ends)

    return svg_of(draw, 6.4, 3.6)
