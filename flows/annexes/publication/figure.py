"""One figure for a paper: regret over rounds or against privacy, at a column's width, readable in gray."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bandana.algorithms.protocol import FloatArray
from bandana.audits.reporting.figures import drawing
from bandana.audits.reporting.intervals import QUANTILES
from bandana.flows.annexes.publication import pgf
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.roles import Role
from bandana.flows.results.comparisons import twin_of
from bandana.flows.texts.mistakes import SpecError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from bandana.flows.api.result import Result

_FILLS = ("full", "left", "top")
"""Fills of markers, one for each cycle through the colors."""
_GRAYS = (drawing.INK, "#8c959f")
_DASHES = ((0, (5, 2)), (0, (2, 1.5)), (0, (9, 2)), (0, (3.5, 3)))
_TWIN: Any = {"linestyle": drawing.DASH_DOTTED, "linewidth": 0.7, "markerfacecolor": "white", "zorder": 3}
_NOISELESS, _LEAST = "the same without noise", "lower bound"
_KEYS: Any = {
    _NOISELESS: {**_TWIN, "color": drawing.TWIN, "marker": "o", "markeredgewidth": 0.7},
    _LEAST: {"color": drawing.TWIN, "linestyle": drawing.DOTTED, "linewidth": 0.9},
}
"""Legend's name of several lines -> how it shows them."""
_LEVEL = re.compile(r" (eps|rho|alpha|delta)=\S+")
_AXES = {"round": "", "mu": "µ claimed (log scale)", "epsilon": "ε claimed at δ = {delta:g} (log scale)"}
_BANDS = {"interval": "regret", "quantiles": "regret: median, 10 to 90 %"}
_OPACITY = {Role.ALGORITHM: 0.16}
_MARKED = 7  # places on a line
_LEGEND_LINE = 0.155  # inches
_CHARACTER = 0.058  # inches, of the legend's letters on average


class Shown(Figure):
    """A figure that a notebook shows by itself, whether or not pyplot was imported."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with drawing.style(drawing.COLUMN):
            self.savefig(buffer, format="png", dpi=160)
        return buffer.getvalue()


class _Line(NamedTuple):
    """A line of a panel: the cell that it shows, or the first of several; its name; and its curve.

    A curve is (5, n): rounds or levels; the middle, the lower and the upper end of a band; and a lower bound, NaN for none.
    """

    cell: Cell
    name: str
    curve: FloatArray


def plot(
    result: Result,
    path: str | Path | None,
    *,
    cells: Sequence[str] | None,
    labels: Mapping[str, str],
    sort: str | None,
    ax: Axes | None,
    lower_bound: bool,
    x: str,
    band: str,
    scale: str,
    width: float,
    height: float,
    columns: int,
) -> Figure:
    """Draws the figure of `Result.plot`, which explains the arguments.

    Raises:
      SpecError: a wrong argument; no cell whose regret is shown; no lower bound where one is wanted.
    """
    for name, value, options in (("x", x, [*_AXES]), ("band", band, [*_BANDS]), ("scale", scale, ["linear", "log"])):
        if value not in options:
            raise SpecError(f"{name}: must be {' or '.join(map(repr, options))}, got {value!r}")
    for name, size in (("width", width), ("height", height)):
        if not 0 < size < math.inf:
            raise SpecError(f"{name}: must be positive, in inches, got {size!r}")
    panels = _chosen(result, cells, labels, sort, lower_bound, x, band)
    if ax is not None and len(panels) > 1:
        raise SpecError(f"ax: has room for one environment, got {', '.join(panels)}; name cells of one of them")
    with drawing.style(drawing.COLUMN):
        figure = Shown(layout="constrained", facecolor="white") if ax is None else cast("Figure", ax.figure)
        places = [ax] if ax is not None else _places(figure, len(panels), columns, width, height)
        for axes, (environment, lines) in zip(places, panels.items(), strict=True):
            _panel(axes, lines, is_log=scale == "log", is_over_rounds=x == "round")
            round_ = lines[0].cell.environment.unit.removesuffix("s")
            axes.set_xlabel(_AXES[x].format(delta=result.spec.audit.delta) or round_)
            axes.set_ylabel(_BANDS[band])
            if len(panels) > 1:
                axes.set_title(environment)
        if ax is None:
            _legend(figure, width)
    if path is not None:
        save(figure, Path(path))
    return figure


def _chosen(
    result: Result,
    cells: Sequence[str] | None,
    labels: Mapping[str, str],
    sort: str | None,
    lower_bound: bool,
    x: str,
    band: str,
) -> dict[str, list[_Line]]:
    """Environment's label -> lines of its panel."""
    table = result.frame(cells=cells, sort=sort).set_index("cell")
    every = {cell.name: cell for cell in result.cells}
    shown = [every[name] for name in table.index if every[name].environment.shows("regret")]
    if not shown:
        why = ": regret is withheld, since the data are private" if len(table) else ""
        raise SpecError(f"plot: there is nothing to draw{why}")
    curves = _curves(result, shown, band, lower_bound)
    if lower_bound and all(np.isnan(curve[4]).all() for curve in curves.values()):
        raise SpecError("lower_bound: none is known for these cells; leave it out")
    levels = {} if x == "round" else table[f"{x}_claimed"]
    panels: dict[str, list[_Line]] = {}
    for place in dict.fromkeys(cell.environment.label for cell in shown):
        members = [cell for cell in shown if cell.environment.label == place]
        panels[place] = _lines(members, curves, levels, labels)
    return panels


def _places(figure: Figure, n_panels: int, columns: int, width: float, height: float) -> list[Axes]:
    """Axes of each panel, row by row."""
    across = max(1, min(columns, n_panels))
    down = -(-n_panels // across)
    figure.set_size_inches(width, height * down)
    FigureCanvasAgg(figure)
    places = list(figure.subplots(down, across, squeeze=False).ravel())
    for axes in places[n_panels:]:
        axes.remove()
    return places[:n_panels]


def _legend(figure: Figure, width: float) -> None:
    """The legend of all panels in the order of their lines, in a strip of its own below them."""
    handles: dict[str, Artist] = {}
    for axes in figure.axes:
        handles |= {name: line for line, name in zip(*axes.get_legend_handles_labels(), strict=True) if name not in handles}
    shared = {name: Line2D([], [], **style) for name, style in _KEYS.items() if name in handles}
    handles = {name: line for name, line in handles.items() if name != _LEAST} | shared
    columns = max(1, min(3, int(width / (0.42 + _CHARACTER * max(map(len, handles))))))
    strip = _LEGEND_LINE * -(-len(handles) // columns) + 0.08
    figure.set_size_inches(width, float(figure.get_figheight()) + strip)
    figure.legend(
        [*handles.values()], [*handles], loc="outside lower center", ncols=columns,
        handlelength=2.6, columnspacing=1.2, labelspacing=0.35, borderaxespad=0.1,
    )  # fmt: skip


def save(figure: Figure, path: Path) -> None:
    """Writes a figure; the same figure gives the same bytes.

    Raises:
      SpecError: an ending other than .pdf, .svg, .png and .pgf.
    """
    kind = path.suffix.removeprefix(".").lower()
    undated = {"pdf": ("Creator", "Producer", "CreationDate"), "svg": ("Creator", "Date", "Format", "Type")}
    if kind not in (*undated, "png", "pgf"):
        raise SpecError(f"path: must end in .pdf, .svg, .png or .pgf, got {path.name!r}")
    buffer = io.BytesIO()
    with drawing.style(drawing.COLUMN):
        if kind == "pgf":
            figure.savefig(buffer, format=kind, dpi=300, backend=f"module://{pgf.__name__}")
        else:
            figure.savefig(buffer, format=kind, dpi=300, metadata=dict.fromkeys(undated.get(kind, ("Software",))))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())


def _curves(result: Result, cells: Sequence[Cell], band: str, lower_bound: bool) -> dict[str, FloatArray]:
    """Cell's name -> its curve over rounds, see `_Line`: mean with its interval, or median with two other quantiles."""
    table, ends = result.curves(replicates=band == "quantiles"), ["regret", "regret_low", "regret_high"]
    if band == "quantiles":
        shares = table.groupby(["cell", "round"])["regret"].quantile(list(QUANTILES)).unstack()
        table = shares.set_axis(["regret_low", "regret", "regret_high"], axis=1).reset_index()
    curves = {}
    for cell in cells:
        rows = table[table["cell"] == cell.name]
        least = cell.lower_bound(rows["round"].to_numpy()) if lower_bound else None
        values = np.full(len(rows), np.nan) if least is None else np.where(least.values > 0, least.values, np.nan)
        curves[cell.name] = np.vstack([rows[["round", *ends]].to_numpy(float).T, values])
    return curves


def _lines(
    cells: Sequence[Cell], curves: Mapping[str, FloatArray], levels: Mapping[str, float], labels: Mapping[str, str]
) -> list[_Line]:
    """A line for each cell over rounds; over levels one through cells that differ in their level alone.

    The twins of the latter have a line too. What has no level has one value, at all levels.
    """
    short = {cell.name: cell.name.removesuffix(f" on {cell.environment.label}") for cell in cells}
    twins = {cell.name: twin for cell in cells if cell.is_private and (twin := twin_of(cell, cells)) is not None}
    titles = {cell.name: cell.title.removesuffix(f" on {cell.environment.label}") for cell in cells}
    names = {**titles, **{twin.name: _NOISELESS for twin in twins.values()}, **labels}
    if not len(levels):
        return [_Line(cell, names[cell.name], curves[cell.name]) for cell in cells]

    def line(name: str, members: Sequence[Cell], x: Sequence[float]) -> _Line:
        return _Line(members[0], name, np.vstack([x, np.array([curves[cell.name][1:, -1] for cell in members]).T]))

    known = {cell.name: float(levels[cell.name]) for cell in cells if 0 < levels[cell.name] < math.inf}
    if not known:
        raise SpecError("x: no cell to draw is private with a finite claim; use x='round'")
    families: dict[str, list[Cell]] = {}
    for cell in sorted((cell for cell in cells if cell.name in known), key=lambda cell: known[cell.name]):
        families.setdefault(_LEVEL.sub("", short[cell.name]), []).append(cell)
    lines = []
    for name, members in families.items():
        x = [known[cell.name] for cell in members]
        own = next((labels[cell.name] for cell in members if cell.name in labels), name)
        lines.append(line(own, members, x))
        if all(cell.name in twins for cell in members):
            lines.append(line(_NOISELESS, [twins[cell.name] for cell in members], x))
    drawn = {*known, *(twin.name for twin in twins.values())}
    ends = [min(known.values()), max(known.values())]
    lines += [line(names[cell.name], [cell, cell], ends) for cell in cells if cell.name not in drawn]
    return sorted(lines, key=lambda line: cells.index(line.cell))


def _styles(cells: Sequence[Cell]) -> dict[str, dict[str, Any]]:
    """Maps each cell to its style: a color and a marker each, thin and hollow for its twin; dashes for references."""
    styles: dict[str, dict[str, Any]] = {}
    for index, cell in enumerate(cell for cell in cells if cell.role is Role.ALGORITHM):
        cycle, place = divmod(index, len(drawing.FAMILIES))
        color, marker = drawing.FAMILIES[place], drawing.SHAPES[(index + cycle) % len(drawing.SHAPES)]
        styles[cell.name] = {"color": color, "marker": marker, "fillstyle": _FILLS[cycle % len(_FILLS)],
                             "markerfacecoloralt": "white", "linestyle": "-", "zorder": 4}  # fmt: skip
        if (twin := twin_of(cell, cells)) is not None:
            styles[twin.name] = {**styles[cell.name], **_TWIN, "markerfacecoloralt": color if cycle else "white"}
    for index, cell in enumerate(cell for cell in cells if cell.name not in styles):
        styles[cell.name] = {"color": _GRAYS[index % 2], "linestyle": _DASHES[index % 4], "linewidth": 0.9, "zorder": 2}
    return styles


def _panel(axes: Axes, lines: Sequence[_Line], *, is_log: bool, is_over_rounds: bool) -> None:
    styles, whole = _styles([line.cell for line in lines]), np.hstack([line.curve for line in lines])
    positive = whole[1:][whole[1:] > 0]
    floor = 0.7 * float(min(positive, default=1.0)) if is_log else -math.inf
    for place, (cell, name, (x, *band, least)) in enumerate(lines):
        style = {"label": name, "markeredgewidth": 0.7, **styles[cell.name]}
        style["markevery"] = _marks(x, place, is_log=is_log) if is_over_rounds and "marker" in style else None
        drawing.draw_line(axes, x, (band[0], band[1], band[2]), opacity=_OPACITY.get(cell.role, 0.07), floor=floor, **style)
        if not is_over_rounds and cell.is_private:
            axes.vlines(x, np.maximum(band[1], floor), band[2], color=style["color"], linewidth=0.9, zorder=3)
        if not np.isnan(least).all():
            axes.plot(x, least, **{**_KEYS[_LEAST], "color": style["color"], "label": _LEAST})
    if is_over_rounds and not is_log:
        axes.set_xlim(0, float(whole[0].max()))
        drawing.number_ticks(axes.xaxis, 5)
    else:
        axes.set_xscale("log")
        drawing.log_ticks(axes.xaxis)
        axes.set_xlim(whole[0].min(), whole[0].max())
    if not is_over_rounds:
        levels = sorted(set(whole[0].tolist()))
        room = (1.5 * levels[-1] / levels[0]) ** 0.12  # of a tick's number
        marked = [level for before, level in pairwise([0.0, *levels]) if level > room * before]
        drawing.limit_levels(axes, levels, 1.25, [float(f"{level:.2g}") for level in marked])
    if is_log:
        drawing.limit_regret(axes, floor, axes.get_ylim()[1], is_log=True)
        return
    listed = np.hstack([line.curve for line in lines if line.cell.role is Role.ALGORITHM] or [whole])[1:4]
    top = max(0.0, float(listed.max()))
    if max(float(line.curve[1, -1]) for line in lines) <= 2 * top:  # what is near is shown whole
        top = max(top, float(whole[1:4].max()))
    drawing.limit_regret(axes, min(0.0, float(listed.min())), (top or 1.0) * drawing.ROOM, is_log=False)


def _marks(x: FloatArray, place: int, *, is_log: bool) -> list[int]:
    """Grid points that carry a marker, evenly spread on the axis and shifted from line to line."""
    scaled = np.log(x) if is_log else x
    places = scaled[0] + (scaled[-1] - scaled[0]) * ((np.arange(_MARKED) + 0.5 + 0.13 * (place % 4)) / _MARKED)
    return sorted({int(np.argmin(np.abs(scaled[:-1] - value))) for value in places})  # none at the edge, which would cut it
