"""Figures on the cost of privacy: regret and budget over rounds, and regret against epsilon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from bandana.audits.documents.benchmark import BenchmarkCell
from bandana.audits.documents.comparison import CellChange
from bandana.audits.documents.fields import present
from bandana.audits.names import guarantee_of
from bandana.audits.reporting.figures import drawing
from bandana.audits.reporting.intervals import Mean
from bandana.audits.reporting.numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Line(TypedDict):
    """Regret of an algorithm over rounds, as a figure shows it."""

    name: str
    color: str
    is_reference: bool
    band: tuple[list[float], list[float], list[float]]


@drawing.drawn_once
def regret_curves(
    grid: Sequence[int],
    cells: Sequence[BenchmarkCell],
    colors: dict[float, str],
    *,
    top: float,
    ceiling: float = 0.0,
    unit: str = "rounds",
) -> str:
    """Mean regret against rounds on logarithmic axes with its band, one line per cell, and the bounds, dashed.

    A twin is a thin line in the color of the cell that it is without noise. Reference policies are thin dotted lines.

    Args:
      grid: rounds, increasing.
      cells: the cells to draw together, as in the document.
      colors: epsilon -> color, from `level_colors`.
      top: the largest regret of all panels that are compared, in units of reward.
      ceiling: the largest bound or reference of all panels.
      unit: rounds or episodes.

    Returns:
      SVG text.
    """
    bounded = [cell for cell in cells if cell["bound"] is not None]
    least = [cell for cell in cells if cell["lower_bound"] is not None]
    twins = [cell for cell in cells if cell["twin_of"] is not None]
    owners = {cell["label"]: cell["epsilon"] for cell in cells}

    def draw(axes: Axes) -> None:
        x, floor, ends = np.asarray(grid, dtype=float), max(top, 1e-12) * 1e-5, []
        for cell in cells:
            epsilon = owners.get(cell["twin_of"] or "") if cell in twins else cell["epsilon"]
            is_reference = cell["role"] == "reference"
            color = drawing.INK if is_reference else drawing.TWIN if epsilon is None else colors[epsilon]
            dash = drawing.DOTTED if is_reference else drawing.DASH_DOTTED if cell["epsilon"] is None else "-"
            opacity, width = 0.07 if is_reference else 0.18, 1.0 if is_reference or cell in twins else None
            style = {"color": color, "linestyle": dash, "linewidth": width}
            mean = drawing.draw_line(axes, x, band_of(cell), opacity=opacity, floor=floor, **style)
            if cell not in twins:
                ends.append((float(mean[-1]), drawing.short(curve_name(cell, cells), 22), color))
            for bound, line in ((cell["lower_bound"], drawing.DOTTED), (cell["bound"], drawing.DASHED)):
                if bound is not None:
                    axes.plot(x, np.maximum(bound, floor), color=color, linewidth=1.0, linestyle=line)
        axes.set_xlabel(f"{unit.removesuffix('s')} (log scale)")
        axes.set_ylabel("regret (units of reward)")
        axes.set_xscale("log")
        drawing.log_ticks(axes.xaxis)
        starts = [v for cell in cells for v in present(cell["mean"])[: max(1, len(grid) // 20)] if v > 0]
        low, high = max(floor, min(starts, default=floor) * 0.7), max(top, ceiling, 1e-9) * 1.5
        drawing.limit_regret(axes, low, high, is_log=True)
        names = ("without noise", twins), ("upper bound", bounded), ("lower bound", least)
        dashes = zip(names, (drawing.DASH_DOTTED, drawing.DASHED, drawing.DOTTED), strict=True)
        thin = {"color": drawing.INK, "linewidth": 1.0}
        if legend := [{**thin, "linestyle": dash, "label": name} for (name, drawn), dash in dashes if drawn]:
            drawing.legend_above(axes, legend)
        drawing.label_ends(axes, float(x[-1]), ends)

    return drawing.svg_of(draw, 4.3, 3.1)


@drawing.drawn_once
def overlay(grid: Sequence[int], lines: Sequence[Line], *, top: float, unit: str = "rounds") -> str:
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
            is_reference, color = line["is_reference"], line["color"]
            dash = drawing.DOTTED if is_reference else drawing.DASHED if color == drawing.TWIN else "-"
            width = 1.1 if is_reference else None
            mean = drawing.draw_line(axes, x, line["band"], opacity=0.16, color=color, linestyle=dash, linewidth=width)
            ends.append((float(mean[-1]), drawing.short(line["name"], 22), color))
        axes.set_xlabel(unit.removesuffix("s"))
        axes.set_ylabel("regret (units of reward)")
        _linear_axes(axes, [line["band"][1] for line in lines], top)
        drawing.label_ends(axes, float(x[-1]), ends)

    return drawing.svg_of(draw, 4.3, 2.5)


def band_of(cell: BenchmarkCell) -> tuple[list[float], list[float], list[float]]:
    """Mean regret of a cell that is shown, and the ends of its band."""
    return present(cell["mean"]), present(cell["low"]), present(cell["high"])


def final_of(cell: BenchmarkCell) -> Mean:
    """Final regret of a cell that is shown."""
    return Mean(*(float(present(end)) for end in (cell["final_mean"], cell["final_low"], cell["final_high"])))


def _linear_axes(axes: Axes, lows: Iterable[Sequence[float]], top: float) -> None:
    """Limits both axes from 0, or the lowest end of a band, to what is compared, and sets their ticks."""
    drawing.limit_regret(axes, min(0.0, *map(min, lows)), (top or 1.0) * drawing.ROOM, is_log=False)
    axes.set_xlim(left=0)
    drawing.number_ticks(axes.xaxis, 3)


def curve_name(cell: BenchmarkCell, among: Sequence[BenchmarkCell]) -> str:
    """Short name of a cell's line: its privacy level if that is unique."""
    if cell["role"] == "reference":
        return str(cell["algorithm"])
    if (owner := next((other for other in among if other["label"] == cell["twin_of"]), None)) is not None:
        return f"{curve_name(owner, among)}, no noise"
    among = [other for other in among if other["role"] == "algorithm"]
    if sum(other["epsilon"] == cell["epsilon"] for other in among) > 1:
        return str(cell["label"])
    if cell["promise"] is None:
        return "not private"
    return guarantee_of(cell["promise"]["statement"]) or f"ε = {number(cell['epsilon'])}"


@drawing.drawn_once
def budget_over_time(
    grid: Sequence[int], cells: Sequence[BenchmarkCell], colors: dict[float, str], unit: str = "rounds"
) -> str:
    """Budget spent by the worst record before each round, one line per cell, with the claim as a horizontal line.

    Args: as in `regret_curves`, and
      cells: cells whose `mu_spent` is not null.

    Returns:
      SVG text. Rounds are logarithmic; the budget too, where the cells' levels span more than a factor of 10.
    """
    claims = [cell["mu_claimed"] for cell in cells if cell["mu_claimed"]]
    spent = [float(present(cell["mu_spent"])[-1]) for cell in cells]
    top = max([*claims, *spent, 1e-12])
    levels = [value for value in (*claims, *spent) if value > 0]
    is_log = bool(levels) and max(levels) > 10 * min(levels)

    def draw(axes: Axes) -> None:
        x = np.asarray(grid, dtype=float)
        ends = []
        lowest = min(levels, default=top) / 3
        for cell in cells:
            color = drawing.TWIN if cell["epsilon"] is None else colors[cell["epsilon"]]
            y = np.asarray(cell["mu_spent"], dtype=float)
            axes.plot(x, np.maximum(y, lowest) if is_log else y, color=color, drawstyle="steps-post", clip_on=False)
            if cell["mu_claimed"] is not None:
                axes.axhline(cell["mu_claimed"], color=color, linewidth=1.1, linestyle=drawing.DOTTED)
            ends.append((max(float(y[-1]), lowest if is_log else 0.0), drawing.short(curve_name(cell, cells), 22), color))
        axes.set_xscale("log")
        drawing.log_ticks(axes.xaxis)
        drawing.limit_regret(axes, lowest if is_log else 0.0, top * (1.5 if is_log else 1.12), is_log=is_log)
        axes.set_xlabel(f"{unit.removesuffix('s')} (log scale)")
        axes.set_ylabel("budget, as µ" + (" (log scale)" if is_log else ""))
        claimed = {"linewidth": 1.1, "linestyle": drawing.DOTTED, "label": "claimed"}
        drawing.legend_above(axes, [{"color": drawing.INK, "label": "spent"}, {"color": drawing.INK, **claimed}])
        drawing.label_ends(axes, float(x[-1]), ends)

    return drawing.svg_of(draw, 4.3, 3.1)


@drawing.drawn_once
def frontier(
    families: Mapping[str, Sequence[BenchmarkCell]],
    twins: Sequence[BenchmarkCell],
    noiseless: Mapping[str, BenchmarkCell],
    epsilons: Mapping[str, Sequence[float | None]],
) -> str:
    """Final regret with its interval against epsilon, one line per family, and the twins as horizontal bands.

    Args:
      families: name -> cells, epsilon increasing, with their regret.
      twins: cells that are not private, with their regret; reference rows among them are dotted.
      noiseless: label of a cell -> the same cell without its noise; drawn as thin lines.
      epsilons: label of a cell -> its epsilon as claimed, which is a number, as accounted, and as measured.

    Returns:
      SVG text. Epsilon is logarithmic; regret too, where it spans more than a factor of 20.
    """
    drawn = [cell for cells in families.values() for cell in cells] + [*twins, *noiseless.values()]
    low, high = min(final_of(cell).low for cell in drawn), max(final_of(cell).high for cell in drawn)
    is_log = low > 0 and high > 20 * low

    def draw(axes: Axes) -> None:
        named: list[dict[str, Any]] = []
        axes.set_xscale("log")
        for twin in twins:
            final = final_of(twin)
            axes.axhspan(final.low, final.high, color=drawing.TWIN, alpha=0.22, linewidth=0)
            is_reference = twin["role"] != "algorithm"
            color, ending = (drawing.INK, "") if is_reference else (drawing.TWIN, ", not private")
            dash = drawing.DOTTED if is_reference else drawing.LONG_DASHED
            line: dict[str, Any] = {"color": color, "linewidth": 1.2, "linestyle": dash}
            axes.axhline(final.mean, **line)
            named.append({**line, "label": drawing.short(f"{twin['algorithm']}{ending}", 44)})
        for index, (name, cells) in enumerate(families.items()):
            color = drawing.FAMILIES[index % len(drawing.FAMILIES)]
            finals = [final_of(cell) for cell in cells]
            claimed = [float(present(epsilons[cell["label"]][0])) for cell in cells]
            style = {"color": color, "marker": drawing.MARKERS["claimed"], "markersize": 4.5, "capsize": 3, "elinewidth": 1}
            drawing.draw_family(axes, claimed, [(final.low, final.mean, final.high) for final in finals], **style)
            for cell, final in zip(cells, finals, strict=True):
                _draw_others(axes, epsilons[cell["label"]], final.mean, color)
            labeled = zip(claimed, (cell["label"] for cell in cells), strict=True)
            silent = [(epsilon, final_of(noiseless[label]).mean) for epsilon, label in labeled if label in noiseless]
            thin: dict[str, Any] = {"linewidth": 0.9, "linestyle": drawing.DASH_DOTTED}
            axes.plot([e for e, _ in silent], [m for _, m in silent], color=color, **thin)
            named.append({"color": color, "label": drawing.short(name, 44)})
        marked = sorted({float(present(epsilons[cell["label"]][0])) for cells in families.values() for cell in cells})
        levels = sorted(value for three in epsilons.values() for value in three if value)
        drawing.limit_levels(axes, levels, 1.25, marked)
        axes.set_xlabel("ε, in nats (log scale)")
        axes.set_ylabel("final regret" + (" (log scale)" if is_log else ""))
        ends_of_axis = (low / 1.3, high * 1.3) if is_log else (min(0.0, low), high * 1.08 if high > 0 else 1.0)
        drawing.limit_regret(axes, *ends_of_axis, is_log=is_log)
        drawing.legend_above(axes, [{**drawing.mark_of(role, drawing.INK), "label": role} for role in drawing.ROLES])
        drawing.legend_above(axes, named, columns, is_below=True)

    names = [*families, *(f"{twin['algorithm']}, not private" for twin in twins)]
    columns = 2 if max(map(len, names)) <= 22 else 1  # side by side as far as there is room
    return drawing.svg_of(draw, 4.4, 2.6 + 0.17 * -(-len(names) // columns))


def _draw_others(axes: Axes, three: Sequence[float | None], height: float, color: str) -> None:
    """Draws the accounted and the measured epsilon of one cell at the height of its regret, joined to the claimed one."""
    for role, value in zip(drawing.ROLES, three, strict=True):
        if value and role != "claimed":
            axes.plot([value], [height], **drawing.mark_of(role, color))
    values = [value for value in three if value]
    axes.plot([min(values), max(values)], [height, height], color=color, linewidth=0.9, linestyle=drawing.DOTTED)


@drawing.drawn_once
def differences(cells: Sequence[CellChange]) -> str:
    """Differences of final regret with their intervals, one row per cell.

    Args:
      cells: of a comparison, their `difference` not null; at least one.

    Returns:
      SVG text.
    """

    def draw(axes: Axes) -> None:
        changes = [present(cell["difference"]) for cell in cells]
        ends = [end for change in changes for end in (change["low"], change["high"])] + [0.0]
        low, high = min(ends), max(ends)
        room = (high - low) or 1.0
        axes.set_xlim(low - 0.06 * room, high + 0.3 * room)
        axes.axvline(0, color=drawing.INK, linewidth=1)
        for row, (cell, change) in enumerate(zip(cells, changes, strict=True)):
            color, fill = (drawing.FAMILIES[1], drawing.FAMILIES[1]) if change["is_resolved"] else (drawing.TWIN, "white")
            drawing.name_row(axes, row, cell["label"], 0.28, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})
            height = row + 0.15
            axes.plot([change["low"], change["high"]], [height, height], color=color, linewidth=1.4)
            axes.plot([change["mean"]], [height], "o", color=color, markerfacecolor=fill, markersize=5.5)
            text = f"{number(float(change['mean']))}{'' if change['is_resolved'] else ', not resolved'}"
            drawing.write(axes, text, (change["high"], height), (6, 0), va="center", fontsize=7.5, color=color)
        drawing.close_rows(axes, len(cells) - 0.48, -0.52)
        drawing.number_ticks(axes.xaxis, 6)
        axes.set_xlabel("final regret, after minus before (units of reward)")

    return drawing.svg_of(draw, 5.2, 0.6 + 0.42 * len(cells))
