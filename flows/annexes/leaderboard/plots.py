"""The figure of a leaderboard: what is measured against the claimed mu, one line a family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bandana.audits.documents.fields import present
from bandana.audits.reporting.figures import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bandana.flows.annexes.leaderboard.document import Row

_FAR = 20.0
"""Ratio of means from which the axis is logarithmic."""


@drawing.drawn_once
def measure_against_mu(families: Mapping[str, Sequence[Row]], others: Sequence[Row], measure: str) -> str:
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
            dash = drawing.DOTTED if is_reference else drawing.LONG_DASHED
            axes.axhline(row["mean"], color=drawing.TWIN, linewidth=1.1, linestyle=dash)
            ends.append((float(row["mean"]), drawing.short(row["label"], 30), drawing.TWIN if is_reference else drawing.INK))
        for index, (name, own) in enumerate(families.items()):
            cycle, place = divmod(index, len(drawing.FAMILIES))
            color, mark = drawing.FAMILIES[place], drawing.SHAPES[cycle % len(drawing.SHAPES)]
            ordered = sorted(own, key=lambda row: present(row["mu_claimed"]))
            # Families stand beside each other where their levels are the same, so that intervals can be seen.
            x = [present(row["mu_claimed"]) * 1.03 ** (index - (len(families) - 1) / 2) for row in ordered]
            _draw_family(axes, x, ordered, color, mark)
            ends.append((float(ordered[-1]["mean"]), drawing.short(name, 30), color))
        levels = sorted({present(row["mu_claimed"]) for row in rows})
        marked = sorted({float(f"{level:.2g}") for level in levels})
        drawing.limit_levels(axes, levels, 1.5, marked)
        axes.set_xlabel("µ claimed (log scale)")
        axes.set_ylabel(measure + (" (log scale)" if is_log else ""))
        if is_log:
            bottom, top = max(min([low, *bounds]), high * 1e-6) / 1.4, high * 1.3
        else:
            bottom, top = min(0.0, low), high * 1.08 if high > 0 else 1.0
        drawing.limit_regret(axes, bottom, top, is_log=is_log)
        drawing.label_ends(axes, axes.get_xlim()[1], ends)

    return drawing.svg_of(draw, 6.4, 3.6)


def _draw_family(axes: Axes, x: Sequence[float], rows: Sequence[Row], color: str, mark: str) -> None:
    """Intervals, marks and lower bounds of one family, whose rows lie at `x`."""
    intervals = [(row["low"], row["mean"], row["high"]) for row in rows]
    drawing.draw_family(axes, x, intervals, color=color, capsize=2.5, elinewidth=0.9, linewidth=1.3)
    for at, row in zip(x, rows, strict=True):
        fill = color if row["is_on_front"] else "white"
        axes.plot([at], [row["mean"]], mark, color=color, markerfacecolor=fill, markersize=5.5)
    if least := [(at, row["lower_bound"]) for at, row in zip(x, rows, strict=True) if row["lower_bound"]]:
        thin: dict[str, Any] = {"color": color, "linewidth": 0.9, "linestyle": drawing.DOTTED}
        axes.plot(*zip(*least, strict=True), marker=".", markersize=3, **thin)
