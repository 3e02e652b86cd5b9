"""One figure for a paper: regret over rounds of all cells of a suite, at a column's width, readable in gray."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bandana.algorithms.protocol import FloatArray
from bandana.audits.reporting.figures import drawing
from bandana.flows.api import pgf
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.roles import Role
from bandana.flows.results.comparisons import twin_of
from bandana.flows.results.summaries import Summary
from bandana.flows.texts.mistakes import SpecError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FILLS = ("full", "left", "top")
"""Fills of markers, one for each cycle through the colors."""
_GRAYS = (drawing.INK, "#8c959f")
_DASHES = ((0, (5, 2)), (0, (2, 1.5)), (0, (9, 2)), (0, (3.5, 3)))
_TWIN: Any = {"linestyle": drawing.DASH_DOTTED, "linewidth": 0.7, "markerfacecolor": "white", "zorder": 3}
_NOISELESS = "the same without noise"
_KEY_OF_TWINS: Any = {**_TWIN, "color": drawing.TWIN, "marker": "o"}
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


def draw(
    cells: Sequence[Cell],
    summaries: Mapping[str, Summary],
    labels: Mapping[str, str],
    *,
    scale: str,
    width: float,
    height: float,
) -> Figure:
    """Draws the figure of `Result.plot`.

    Raises:
      SpecError: an unknown scale, a size that is not positive, or no cell whose regret is shown.
    """
    if scale not in ("linear", "log"):
        raise SpecError(f"scale: must be 'linear' or 'log', got {scale!r}")
    for name, value in (("width", width), ("height", height)):
        if not 0 < value < math.inf:
            raise SpecError(f"{name}: must be positive, in inches, got {value!r}")
    shown = [cell for cell in cells if cell.environment.shows("regret")]
    if not shown:
        raise SpecError(
            "plot: there is nothing to draw" + (": regret is withheld, since the data are private" if cells else "")
        )
    panels, styles, names = _panels(shown), _styles(shown), _names(shown, labels)
    entries = dict.fromkeys(names.values())
    columns = max(1, min(3, int(width / (0.42 + _CHARACTER * max(map(len, entries))))))
    legend = _LEGEND_LINE * -(-len(entries) // columns) + 0.08
    with drawing.style(drawing.COLUMN):
        figure = Shown(figsize=(width, height * len(panels) + legend), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        every = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        for axes, (environment, members) in zip(every, panels.items(), strict=True):
            _panel(axes, members, summaries, styles, names, is_log=scale == "log")
            if len(panels) > 1:
                axes.set_title(environment)
        handles = {name: line for axes in every for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
        if _NOISELESS in handles:
            handles[_NOISELESS] = Line2D([], [], markeredgewidth=0.7, **_KEY_OF_TWINS)
        figure.legend(
            [handles[name] for name in entries], list(entries), loc="outside lower center", ncols=columns,
            handlelength=2.6, columnspacing=1.2, labelspacing=0.35, borderaxespad=0.1,
        )  # fmt: skip
    return figure


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


def _styles(cells: Sequence[Cell]) -> dict[str, dict[str, Any]]:
    """Maps each cell to its style: a color and a marker each, thin and hollow for its twin; dashes for references."""
    styles: dict[str, dict[str, Any]] = {}
    for members in _panels(cells).values():
        own = [cell for cell in members if cell.role is Role.ALGORITHM]
        for index, cell in enumerate(own):
            cycle, place = divmod(index, len(drawing.FAMILIES))
            color, marker = drawing.FAMILIES[place], drawing.SHAPES[(index + cycle) % len(drawing.SHAPES)]
            styles[cell.name] = {"color": color, "marker": marker, "fillstyle": _FILLS[cycle % len(_FILLS)],
                                 "markerfacecoloralt": "white", "linestyle": "-", "zorder": 4}  # fmt: skip
            if (twin := twin_of(cell, members)) is not None:
                styles[twin.name] = {**styles[cell.name], **_TWIN, "markerfacecoloralt": color if cycle else "white"}
        others = [cell for cell in members if cell.name not in styles]
        for index, cell in enumerate(others):
            styles[cell.name] = {"color": _GRAYS[index % 2], "linestyle": _DASHES[index % 4], "linewidth": 0.9, "zorder": 2}
    return styles


def _panels(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Environment's label -> its cells."""
    panels: dict[str, list[Cell]] = {}
    for cell in cells:
        panels.setdefault(cell.environment.label, []).append(cell)
    return panels


def _names(cells: Sequence[Cell], labels: Mapping[str, str]) -> dict[str, str]:
    """Cell's name -> its name in the legend, without its environment, which names the panel; one for all twins."""
    names = {cell.name: cell.name.removesuffix(f" on {cell.environment.label}") for cell in cells}
    twins = [twin.name for cell in cells if cell.role is Role.ALGORITHM and (twin := twin_of(cell, cells)) is not None]
    return {**names, **dict.fromkeys(twins, _NOISELESS), **labels}


def _panel(
    axes: Axes,
    cells: Sequence[Cell],
    summaries: Mapping[str, Summary],
    styles: Mapping[str, dict[str, Any]],
    names: Mapping[str, str],
    *,
    is_log: bool,
) -> None:
    listed = [cell for cell in cells if cell.role is Role.ALGORITHM] or cells
    curves = {cell.name: summaries[cell.name] for cell in cells}
    floor = -math.inf
    if is_log:
        floor = 0.7 * min((v for curve in curves.values() for v in curve["mean"] if v > 0), default=1.0)
    for place, cell in enumerate(cells):
        curve, style = curves[cell.name], styles[cell.name]
        x = np.asarray(curve["grid"], dtype=float)
        marks = _marks(x, place, is_log=is_log) if "marker" in style else []
        opacity = 0.16 if cell.role is Role.ALGORITHM else 0.07
        line = {"label": names[cell.name], "markevery": marks, "markeredgewidth": 0.7, **style}
        drawing.draw_line(axes, x, (curve["mean"], curve["low"], curve["high"]), opacity=opacity, floor=floor, **line)
    axes.set_xlabel(cells[0].environment.unit.removesuffix("s"))
    axes.set_ylabel("regret")
    first, last = (pick(curve["grid"][end] for curve in curves.values()) for pick, end in ((min, 0), (max, -1)))
    if is_log:
        axes.set_xscale("log")
        drawing.log_ticks(axes.xaxis)
        axes.set_xlim(first, last)
        drawing.limit_regret(axes, floor, axes.get_ylim()[1], is_log=True)
        return
    axes.set_xlim(0, float(last))
    drawing.number_ticks(axes.xaxis, 5)
    top = max(0.0, *(float(np.max(curves[cell.name]["high"])) for cell in listed))
    if max(float(curve["mean"][-1]) for curve in curves.values()) <= 2 * top:  # what is near is shown whole
        top = max(top, *(float(np.max(curve["high"])) for curve in curves.values()))
    lowest = min(0.0, *(float(np.min(curves[cell.name]["low"])) for cell in listed))
    drawing.limit_regret(axes, lowest, (top or 1.0) * drawing.ROOM, is_log=False)


def _marks(x: FloatArray, place: int, *, is_log: bool) -> list[int]:
    """Grid points that carry a marker, evenly spread on the axis and shifted from line to line."""
    scaled = np.log(x) if is_log else x
    places = scaled[0] + (scaled[-1] - scaled[0]) * ((np.arange(_MARKED) + 0.5 + 0.13 * (place % 4)) / _MARKED)
    return sorted({int(np.argmin(np.abs(scaled[:-1] - value))) for value in places})  # none at the edge, which would cut it
