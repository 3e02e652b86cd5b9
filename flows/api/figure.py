"""One figure for a paper: regret over rounds of all cells of a suite, at a column's width, readable in gray."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator

from bandana.audits.reporting.numbers import number, power_of_ten
from bandana.flows.api.latex import escaped
from bandana.flows.spec.mistakes import SpecError
from bandana.flows.spec.plan import Cell
from bandana.flows.spec.roles import Role
from bandana.flows.suites.comparisons import twin_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#a3407a", "#1f2328", "#e69f00", "#56b4e9", "#8a6d00")
"""Apart for color-blind readers (after Okabe and Ito, 2008); the markers say the same in gray."""
_MARKERS = "osD^vPX*"
_FILLS = ("full", "left", "top")
"""For lists that are longer than these."""
_GRAYS = ("#24292f", "#8c959f")
_DASHES = ((0, (5, 2)), (0, (2, 1.5)), (0, (9, 2)), (0, (3.5, 3)))
_TWIN: Any = {"linestyle": (0, (4, 1.2, 1, 1.2)), "linewidth": 0.7, "markerfacecolor": "white", "zorder": 3}
_NOISELESS = "the same without noise"
_KEY_OF_TWINS: Any = {**_TWIN, "color": "#57606a", "marker": "o"}
_MARKED = 7  # places on a line
_ROOM = 1.08
_LEGEND_LINE = 0.155  # inches
_CHARACTER = 0.058  # inches, of the legend's letters on average
_STYLE: Any = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "legend.frameon": False, "font.family": "DejaVu Sans",
    "axes.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": "#e3e6ea", "grid.linewidth": 0.5, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "lines.linewidth": 1.2, "lines.markersize": 3.2,
    "pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "bandana", "text.parse_math": False,
    "pgf.rcfonts": False, "pgf.texsystem": "pdflatex",
}  # fmt: skip


class Shown(Figure):
    """A figure that a notebook shows by itself, whether or not pyplot was imported."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with matplotlib.rc_context(_STYLE):
            self.savefig(buffer, format="png", dpi=160)
        return buffer.getvalue()


def draw(
    cells: Sequence[Cell],
    summaries: Mapping[str, dict[str, Any]],
    labels: Mapping[str, str],
    *,
    scale: str,
    width: float,
    height: float,
) -> Figure:
    """The figure, see `Result.plot`.

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
    with matplotlib.rc_context(_STYLE):
        figure = Shown(figsize=(width, height * len(panels) + legend), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        every = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        for axes, (environment, members) in zip(every, panels.items(), strict=True):
            _panel(axes, members, summaries, styles, names, is_log=scale == "log")
            if len(panels) > 1:
                axes.set_title(environment, loc="left")
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
    nothing: dict[str, dict[str, None]] = {
        "pdf": dict.fromkeys(("Creator", "Producer", "CreationDate")),
        "svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
        "png": {"Software": None},
        "pgf": {},
    }
    if kind not in nothing:
        raise SpecError(f"path: must end in .pdf, .svg, .png or .pgf, got {path.name!r}")
    buffer = io.BytesIO()
    with matplotlib.rc_context(_STYLE), _without_latex(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        more: dict[str, Any] = {"metadata": nothing[kind]} if nothing[kind] else {}
        figure.savefig(buffer, format=kind, dpi=300, **more)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())


def _styles(cells: Sequence[Cell]) -> dict[str, dict[str, Any]]:
    """How each cell is drawn: a color and a marker each, thin and hollow for its twin; dashes for references."""
    found: dict[str, dict[str, Any]] = {}
    for members in _panels(cells).values():
        own = [cell for cell in members if cell.role is Role.ALGORITHM]
        for index, cell in enumerate(own):
            cycle, color = index // len(_COLORS), _COLORS[index % len(_COLORS)]
            marker, fill = _MARKERS[(index + cycle) % len(_MARKERS)], _FILLS[cycle % len(_FILLS)]
            found[cell.name] = {"color": color, "marker": marker, "fillstyle": fill, "markerfacecoloralt": "white",
                                "linestyle": "-", "zorder": 4}  # fmt: skip
            if (twin := twin_of(cell, members)) is not None:
                found[twin.name] = {**found[cell.name], **_TWIN, "markerfacecoloralt": color if cycle else "white"}
        others = [cell for cell in members if cell.name not in found]
        for index, cell in enumerate(others):
            found[cell.name] = {"color": _GRAYS[index % 2], "linestyle": _DASHES[index % 4], "linewidth": 0.9, "zorder": 2}
    return found


def _panels(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Environment's label -> its cells."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.environment.label, []).append(cell)
    return found


def _names(cells: Sequence[Cell], labels: Mapping[str, str]) -> dict[str, str]:
    """Cell's name -> its name in the legend, without its environment, which names the panel; one for all twins."""
    found = {cell.name: cell.name.removesuffix(f" on {cell.environment.label}") for cell in cells}
    twins = [twin.name for cell in cells if cell.role is Role.ALGORITHM and (twin := twin_of(cell, cells)) is not None]
    return {**found, **dict.fromkeys(twins, _NOISELESS), **labels}


def _panel(
    axes: Axes,
    cells: Sequence[Cell],
    summaries: Mapping[str, dict[str, Any]],
    styles: Mapping[str, dict[str, Any]],
    names: Mapping[str, str],
    *,
    is_log: bool,
) -> None:
    floor, top = math.inf, 0.0
    listed = [cell for cell in cells if cell.role is Role.ALGORITHM] or cells
    for place, cell in enumerate(cells):
        summary, style = summaries[cell.name], styles[cell.name]
        x = np.asarray(summary["grid"], dtype=float)
        mean, low, high = (np.asarray(summary[name], dtype=float) for name in ("mean", "low", "high"))
        if is_log:
            mean, low, high = (np.where(values > 0, values, np.nan) for values in (mean, low, high))
            low = np.where(np.isnan(low), mean, low)
            floor = min(floor, *mean[np.isfinite(mean)][:1], math.inf)
        if cell in listed:
            top = max(top, float(np.nanmax(high)))
        faint = 0.16 if cell.role is Role.ALGORITHM else 0.07
        axes.fill_between(x, low, high, color=style["color"], alpha=faint, linewidth=0, zorder=1)
        marks = _marks(x, place, is_log=is_log) if "marker" in style else []
        axes.plot(x, mean, label=names[cell.name], markevery=marks, markeredgewidth=0.7, **style)
    unit = cells[0].environment.unit.removesuffix("s")
    axes.set_xlabel(unit)
    axes.set_ylabel("regret")
    if is_log:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(
            min(summaries[cell.name]["grid"][0] for cell in cells), max(summaries[cell.name]["grid"][-1] for cell in cells)
        )
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: power_of_ten(value))
            axis.set_minor_formatter(lambda *_: "")
        if math.isfinite(floor):
            axes.set_ylim(bottom=floor * 0.7)
        return
    axes.set_xlim(0, float(max(summaries[cell.name]["grid"][-1] for cell in cells)))
    highest = max(float(summaries[cell.name]["mean"][-1]) for cell in cells)
    if highest <= 2 * top:  # what is near is shown whole
        top = max(top, *(float(np.max(summaries[cell.name]["high"])) for cell in cells))
    lowest = min(0.0, *(float(np.min(summaries[cell.name]["low"])) for cell in listed))
    axes.set_ylim(lowest, (top or 1.0) * _ROOM)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(_round_numbers())
        axis.set_major_formatter(lambda value, _: number(float(value)))


def _round_numbers() -> Any:
    return MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])


def _marks(x: np.ndarray, place: int, *, is_log: bool) -> list[int]:
    """Grid points that carry a marker, evenly spread on the axis and shifted from line to line."""
    scaled = np.log(x) if is_log else x
    wanted = scaled[0] + (scaled[-1] - scaled[0]) * ((np.arange(_MARKED) + 0.5 + 0.13 * (place % 4)) / _MARKED)
    return sorted({int(np.argmin(np.abs(scaled[:-1] - value))) for value in wanted})  # none at the edge, which would cut it


@contextmanager
def _without_latex() -> Iterator[None]:
    """Lets .pgf files be written without an installed LaTeX, the same everywhere, with texts that LaTeX sets as they are.

    Texts are measured in Matplotlib's own font. Only the room around them depends on it: the document's font sets them.
    """

    def measure(self: Any, text: str, font: Any, is_math: Any) -> tuple[float, float, float]:
        if not text.strip():
            return 0.0, 0.0, 0.0
        box = TextPath((0, 0), text, size=self.points_to_pixels(font.get_size_in_points()), prop=font).get_extents()
        return box.width, box.height, max(0.0, -box.y0)

    def draw_text(self: Any, context: Any, x: float, y: float, text: str, *more: Any, **style: Any) -> None:
        kept[1](self, context, x, y, escaped(text), *more, **style)

    renderer: Any = RendererPgf
    kept = renderer.get_text_width_height_descent, renderer.draw_text
    renderer.get_text_width_height_descent, renderer.draw_text = measure, draw_text
    try:
        yield
    finally:
        renderer.get_text_width_height_descent, renderer.draw_text = kept
