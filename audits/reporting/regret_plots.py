"""Figures on the cost of privacy: regret and budget over rounds, and regret against epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bandana.audits.reporting.drawing import (
    FAMILIES,
    INK,
    TWIN,
    close_rows,
    drawn_once,
    label_ends,
    legend_above,
    log_ticks,
    name_row,
    number_ticks,
    short,
    svg_of,
    write,
)
from bandana.audits.reporting.numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_DASHED, _DASH_DOTTED, _DOTTED = (0, (3.2, 2.2)), (0, (6, 1.6, 1.2, 1.6)), (0, (1, 1.6))
_ROOM = 1.05
"""Room above the largest regret on linear axes."""


@drawn_once
def regret_curves(
    grid: Sequence[int],
    cells: Sequence[dict[str, Any]],
    colors: dict[float, str],
    *,
    is_log: bool,
    top: float,
    ceiling: float = 0.0,
    unit: str = "rounds",
) -> str:
    """Mean regret against rounds with its band, one line per cell; on logarithmic axes also the bounds, dashed.

    A twin is a thin line in the color of the cell that it is without noise. Reference policies are thin dotted lines; on
    linear axes one leaves the figure where it exceeds all that is compared, and has its name there.

    Args:
      grid: rounds, increasing.
      cells: the cells to draw together, as in the document.
      colors: epsilon -> color, from `level_colors`.
      is_log: both axes logarithmic, or both linear.
      top: the largest regret of all panels that are compared, in units of reward.
      ceiling: the largest bound or reference of all panels; logarithmic axes reach to it.
      unit: rounds or episodes.

    Returns:
      SVG text.
    """
    bounded = [cell for cell in cells if is_log and cell["bound"] is not None]
    least = [cell for cell in cells if is_log and cell["lower_bound"] is not None]
    owners = {cell["label"]: cell["epsilon"] for cell in cells}

    def draw(axes: Axes) -> None:
        x = np.asarray(grid, dtype=float)
        floor = max(top, 1e-12) * 1e-5 if is_log else -math.inf
        ends, leaving = [], []
        for cell in cells:
            epsilon = cell["epsilon"] if cell["twin_of"] is None else owners.get(cell["twin_of"])
            is_reference, is_twin = cell["role"] == "reference", cell["twin_of"] is not None
            color = INK if is_reference else TWIN if epsilon is None else colors[epsilon]
            mean, low, high = (np.maximum(np.asarray(cell[key], dtype=float), floor) for key in ("mean", "low", "high"))
            axes.fill_between(x, low, high, color=color, alpha=0.07 if is_reference else 0.18, linewidth=0)
            style = _DOTTED if is_reference else _DASH_DOTTED if cell["epsilon"] is None else "-"
            axes.plot(x, mean, color=color, linestyle=style, linewidth=1.0 if is_reference or is_twin else None)
            if not is_log and mean[-1] > top * _ROOM:
                leaving.append((float(x[np.argmax(mean > top * _ROOM)]), short(curve_name(cell, cells), 22)))
            elif not is_twin:
                ends.append((float(mean[-1]), short(curve_name(cell, cells), 22), color))
            if cell in least:
                axes.plot(x, np.maximum(cell["lower_bound"], floor), color=color, linewidth=1.0, linestyle=_DOTTED)
            if cell in bounded:
                axes.plot(x, np.maximum(cell["bound"], floor), color=color, linewidth=1.0, linestyle=_DASHED)
        axes.set_xlabel(unit.removesuffix("s") + (" (log scale)" if is_log else ""))
        axes.set_ylabel("regret (units of reward)")
        if is_log:
            axes.set_xscale("log")
            axes.set_yscale("log")
            starts = [v for cell in cells for v in cell["mean"][: max(1, len(grid) // 20)] if v > 0]
            axes.set_ylim(max(floor, min(starts, default=floor) * 0.7), max(top, ceiling, 1e-9) * 1.5)
            log_ticks(axes.xaxis)
            log_ticks(axes.yaxis)
        else:
            axes.set_ylim(min(0.0, *(min(cell["low"]) for cell in cells)), (top or 1.0) * _ROOM)
            axes.set_xlim(left=0)
            number_ticks(axes.xaxis, 3)
            number_ticks(axes.yaxis, 6)
        styles = {"without noise": _DASH_DOTTED, "upper bound": _DASHED, "lower bound": _DOTTED}
        drawn = (any(cell["twin_of"] is not None for cell in cells), bool(bounded), bool(least))
        if is_log and any(drawn):
            keys = zip(styles.items(), drawn, strict=True)
            legend_above(
                axes,
                [
                    {"color": INK, "linewidth": 1.0, "linestyle": style, "label": name}
                    for (name, style), is_in in keys
                    if is_in
                ],
            )
        label_ends(axes, float(x[-1]), ends)
        _label_leaving(axes, leaving)

    return svg_of(draw, 4.3, 3.1)


@drawn_once
def overlay(grid: Sequence[int], lines: Sequence[dict[str, Any]], *, top: float, unit: str = "rounds") -> str:
    """Mean regret of several algorithms against rounds on linear axes, each with its band and its name.

    Args:
      grid: rounds, increasing.
      lines: at least one; name, color, `is_reference`, and mean, low and high on the grid, in units of reward.
      top: the largest regret of all panels that are compared.
      unit: rounds or episodes.

    Returns:
      SVG text.
    """

    def draw(axes: Axes) -> None:
        x, ends = np.asarray(grid, dtype=float), []
        for line in lines:
            mean, low, high = (np.asarray(line[key], dtype=float) for key in ("mean", "low", "high"))
            gray = line["color"] == TWIN
            style = _DOTTED if line["is_reference"] else _DASHED if gray else "-"
            axes.fill_between(x, low, high, color=line["color"], alpha=0.16, linewidth=0)
            axes.plot(x, mean, color=line["color"], linestyle=style, linewidth=1.1 if line["is_reference"] else None)
            ends.append((float(mean[-1]), short(line["name"], 22), line["color"]))
        axes.set_xlim(left=0)
        axes.set_ylim(min(0.0, *(min(line["low"]) for line in lines)), (top or 1.0) * _ROOM)
        axes.set_xlabel(unit.removesuffix("s"))
        axes.set_ylabel("regret (units of reward)")
        number_ticks(axes.xaxis, 3)
        number_ticks(axes.yaxis, 6)
        label_ends(axes, float(x[-1]), ends)

    return svg_of(draw, 4.3, 2.5)


def _label_leaving(axes: Axes, leaving: list[tuple[float, str]]) -> None:
    """Names lines above the place where they leave linear axes; names that would overlap share one place."""
    right = axes.get_xlim()[1]
    groups: list[list[tuple[float, str]]] = []
    for x, name in sorted(leaving):
        if groups and x - groups[-1][0][0] < 0.3 * right:
            groups[-1].append((x, name))
        else:
            groups.append([(x, name)])
    for group in groups:
        names = ", ".join(name for _, name in group)
        at = (min(max(group[0][0] / right, 0.12), 0.85), 1.0)
        write(axes, names, at, (0, 3), xycoords="axes fraction", ha="center", va="bottom", fontsize=8.5, color=INK)


def curve_name(cell: dict[str, Any], among: Sequence[dict[str, Any]]) -> str:
    """Short name of a cell's line: its privacy level if that is unique."""
    if cell["role"] == "reference":
        return str(cell["algorithm"])
    if (owner := next((other for other in among if other["label"] == cell["twin_of"]), None)) is not None:
        return f"{curve_name(owner, among)}, no noise"
    among = [other for other in among if other["role"] == "algorithm"]
    if sum(other["epsilon"] == cell["epsilon"] for other in among) > 1:
        return str(cell["label"])
    return "not private" if cell["epsilon"] is None else f"ε = {number(cell['epsilon'])}"


@drawn_once
def budget_over_time(
    grid: Sequence[int], cells: Sequence[dict[str, Any]], colors: dict[float, str], unit: str = "rounds"
) -> str:
    """Budget spent by the worst record before each round, one line per cell, with the claim as a horizontal line.

    Args:
      grid: rounds, increasing.
      cells: cells whose `mu_spent` is not null.
      colors: epsilon -> color, from `level_colors`.
      unit: rounds or episodes.

    Returns:
      SVG text. Rounds are logarithmic; the budget too, where the cells' levels span more than a factor of 10.
    """
    claims = [cell["mu_claimed"] for cell in cells if cell["mu_claimed"]]
    spent = [float(cell["mu_spent"][-1]) for cell in cells]
    top = max([*claims, *spent, 1e-12])
    levels = [value for value in (*claims, *spent) if value > 0]
    is_log = bool(levels) and max(levels) > 10 * min(levels)

    def draw(axes: Axes) -> None:
        x = np.asarray(grid, dtype=float)
        ends = []
        lowest = min(levels, default=top) / 3
        for cell in cells:
            color = TWIN if cell["epsilon"] is None else colors[cell["epsilon"]]
            y = np.asarray(cell["mu_spent"], dtype=float)
            axes.plot(x, np.maximum(y, lowest) if is_log else y, color=color, drawstyle="steps-post", clip_on=False)
            if cell["mu_claimed"] is not None:
                axes.axhline(cell["mu_claimed"], color=color, linewidth=1.1, linestyle=(0, (1, 1.6)))
            ends.append((max(float(y[-1]), lowest if is_log else 0.0), short(curve_name(cell, cells), 22), color))
        axes.set_xscale("log")
        log_ticks(axes.xaxis)
        if is_log:
            axes.set_yscale("log")
            axes.set_ylim(lowest, top * 1.5)
            log_ticks(axes.yaxis)
        else:
            axes.set_ylim(0, top * 1.12)
            number_ticks(axes.yaxis, 6)
        axes.set_xlabel(f"{unit.removesuffix('s')} (log scale)")
        axes.set_ylabel("budget, as µ" + (" (log scale)" if is_log else ""))
        claimed = {"linewidth": 1.1, "linestyle": (0, (1, 1.6)), "label": "claimed"}
        legend_above(axes, [{"color": INK, "label": "spent"}, {"color": INK, **claimed}])
        label_ends(axes, float(x[-1]), ends)

    return svg_of(draw, 4.3, 3.1)


@drawn_once
def frontier(
    families: Mapping[str, Sequence[dict[str, Any]]],
    twins: Sequence[dict[str, Any]],
    noiseless: Mapping[str, dict[str, Any]],
) -> str:
    """Final regret with its interval against epsilon, one line per family, and the twins as horizontal bands.

    Args:
      families: name -> cells, epsilon increasing, with their regret.
      twins: cells that are not private, with their regret; reference rows among them are dotted.
      noiseless: label of a cell -> the same cell without its noise; drawn as thin lines.

    Returns:
      SVG text. Epsilon is logarithmic; regret too, where it spans more than a factor of 20.
    """
    drawn = [cell for cells in families.values() for cell in cells] + [*twins, *noiseless.values()]
    low, high = min(cell["final_low"] for cell in drawn), max(cell["final_high"] for cell in drawn)
    is_log = low > 0 and high > 20 * low

    def draw(axes: Axes) -> None:
        ends = []
        axes.set_xscale("log")
        for twin in twins:
            axes.axhspan(twin["final_low"], twin["final_high"], color=TWIN, alpha=0.22, linewidth=0)
            style, color = ((0, (4, 1.6)), TWIN) if twin["role"] == "algorithm" else (_DOTTED, INK)
            axes.axhline(twin["final_mean"], color=color, linewidth=1.2, linestyle=style)
            name = f"{twin['algorithm']}, not private" if twin["role"] == "algorithm" else twin["algorithm"]
            ends.append((float(twin["final_mean"]), short(name, 30), color))
        for index, (name, cells) in enumerate(families.items()):
            color, marker = FAMILIES[index % len(FAMILIES)], "osD^vP"[index % 6]
            x = [cell["epsilon"] for cell in cells]
            y = [cell["final_mean"] for cell in cells]
            reach = [
                [max(0.0, cell["final_mean"] - cell["final_low"]) for cell in cells],
                [max(0.0, cell["final_high"] - cell["final_mean"]) for cell in cells],
            ]
            axes.errorbar(x, y, yerr=reach, color=color, marker=marker, markersize=4.5, capsize=3, elinewidth=1)
            silent = [(c["epsilon"], noiseless[c["label"]]["final_mean"]) for c in cells if c["label"] in noiseless]
            axes.plot([e for e, _ in silent], [m for _, m in silent], color=color, linewidth=0.9, linestyle=_DASH_DOTTED)
            ends.append((float(y[-1]), short(name, 30), color))
        levels = sorted({cell["epsilon"] for cells in families.values() for cell in cells})
        axes.set_xlim(levels[0] / 1.25, levels[-1] * 1.25)
        if len(levels) <= 8:
            axes.set_xticks(levels, [number(level) for level in levels])
            axes.minorticks_off()
        else:
            log_ticks(axes.xaxis)
        axes.set_xlabel("ε, in nats (log scale)")
        axes.set_ylabel("final regret" + (" (log scale)" if is_log else ""))
        if is_log:
            axes.set_yscale("log")
            axes.set_ylim(low / 1.3, high * 1.3)
            log_ticks(axes.yaxis)
        else:
            axes.set_ylim(min(0.0, low), high * 1.08 if high > 0 else 1.0)
            number_ticks(axes.yaxis, 6)
        label_ends(axes, axes.get_xlim()[1], ends)

    return svg_of(draw, 6.0, 2.7)


@drawn_once
def differences(cells: Sequence[dict[str, Any]]) -> str:
    """Differences of final regret with their intervals, one row per cell.

    Args:
      cells: of a comparison, their `difference` not null; at least one.

    Returns:
      SVG text.
    """

    def draw(axes: Axes) -> None:
        ends = [cell["difference"][key] for cell in cells for key in ("low", "high")] + [0.0]
        low, high = min(ends), max(ends)
        room = (high - low) or 1.0
        axes.set_xlim(low - 0.06 * room, high + 0.3 * room)
        axes.axvline(0, color=INK, linewidth=1)
        for row, cell in enumerate(cells):
            found = cell["difference"]
            color, fill = (FAMILIES[1], FAMILIES[1]) if found["is_resolved"] else (TWIN, "white")
            name_row(axes, row, cell["label"], 0.28, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})
            height = row + 0.15
            axes.plot([found["low"], found["high"]], [height, height], color=color, linewidth=1.4)
            axes.plot([found["mean"]], [height], "o", color=color, markerfacecolor=fill, markersize=5.5)
            text = f"{number(float(found['mean']))}{'' if found['is_resolved'] else ', not resolved'}"
            write(axes, text, (found["high"], height), (6, 0), va="center", fontsize=7.5, color=color)
        close_rows(axes, len(cells) - 0.48, -0.52)
        number_ticks(axes.xaxis, 6)
        axes.set_xlabel("final regret, after minus before (units of reward)")

    return svg_of(draw, 5.2, 0.6 + 0.42 * len(cells))
