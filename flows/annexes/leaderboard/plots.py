"""Figures of a leaderboard: what is measured against the claimed mu, one line a family; and win rates over problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bandana.audits.documents.fields import present
from bandana.audits.reporting.figures import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bandana.flows.annexes.leaderboard.document import Duel, Row

_HALF = 0.5
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


@drawing.drawn_once
def win_matrix(duels: Sequence[Duel]) -> str:
    """Shares of problems on which the row's entry loses less than the column's, with intervals; one color a direction.

    Args:
      duels: of a leaderboard's win rates; at least one.

    Returns:
      SVG text. A cell is colored where its interval leaves out one half.
    """
    names = list(dict.fromkeys(name for duel in duels for name in (duel["first"], duel["second"])))
    better, worse = drawing.FAMILIES[0], drawing.FAMILIES[1]

    def draw(axes: Axes) -> None:
        from matplotlib.patches import Rectangle

        for duel in duels:
            share, low, high = duel["share"], duel["low"], duel["high"]
            if share is None or low is None or high is None:
                continue
            x, y = names.index(duel["second"]), names.index(duel["first"])
            color = better if low > _HALF else worse if high < _HALF else "white"
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=color, alpha=0.25, edgecolor="none"))
            axes.text(x, y - 0.12, f"{100 * share:.0f}", ha="center", va="center", fontweight="bold")
            axes.text(x, y + 0.24, f"{100 * low:.0f}–{100 * high:.0f}", ha="center", va="center", fontsize=7)
        shown = [drawing.short(name, 30) for name in names]
        axes.set_xticks(range(len(names)), shown, rotation=30, ha="left")
        axes.set_yticks(range(len(names)), shown)
        axes.xaxis.tick_top()
        axes.set_xlim(-0.5, len(names) - 0.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(False)
        axes.tick_params(length=0)
        axes.set_aspect("equal")

    return drawing.svg_of(draw, 2.6 + 0.55 * len(names), 1.4 + 0.55 * len(names))
