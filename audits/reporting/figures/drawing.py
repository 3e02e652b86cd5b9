"""Shared parts of all figures: colors, style, lines with bands, axes, labels, and reproducible SVG text.

One color stands for one privacy level, and one for one role (claimed, accounted, measured), in every
figure. Both sets stay apart for color-blind readers; shape, dash and a direct label say the same again.
"""

from __future__ import annotations

import io
import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.protocol import FloatArray
from bandana.audits.documents.audit import Role
from bandana.audits.reporting.numbers import number, power_of_ten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

P = ParamSpec("P")
Band = tuple[ArrayLike, ArrayLike, ArrayLike]
"""A mean, and the ends of its interval, (n,) each."""
DRAWN: dict[str, str] = {}
"""SVG text of the latest figures, by a hash of what they show."""
_KEPT = 256  # some ten megabytes
_MOST_TICKS = 8
_NAMES = 24  # at the ends of lines, one below the other, as many as a panel has room for
ROLES: dict[Role, str] = {"claimed": "#1f2328", "accounted": "#0072b2", "measured": "#d55e00"}
MARKERS: dict[Role, str] = {"claimed": "D", "accounted": "o", "measured": ">"}
FAMILIES = ("#0072b2", "#d55e00", "#009e73", "#a3407a", "#3a86c8", "#8a6d00")
"""Colors of families, apart for color-blind readers and dark enough for words (after Okabe and Ito, 2008)."""
SHAPES = "osD^vP"
"""Markers of families, which say in gray print what colors say."""
DASHED, DASH_DOTTED, DOTTED = (0, (3.2, 2.2)), (0, (6, 1.6, 1.2, 1.6)), (0, (1, 1.6))
LONG_DASHED = (0, (4, 1.6))
ROOM = 1.05
"""Largest value that linear axes show, in units of the largest regret that is compared."""
TWIN = "#6e7781"
INK = "#24292f"
GRID = "#e3e6ea"

_STYLE: Any = {
    "svg.hashsalt": "bandana",
    "svg.fonttype": "path",  # the same in every browser and in the PDF
    "text.parse_math": False,  # a label may hold dollar signs
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": "#8c959f",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": "#57606a",
    "ytick.color": "#57606a",
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
}
COLUMN: Any = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "axes.linewidth": 0.6, "grid.linewidth": 0.5, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "lines.linewidth": 1.2, "lines.markersize": 3.2, "pdf.fonttype": 42, "pgf.rcfonts": False, "pgf.texsystem": "pdflatex",
}  # fmt: skip
"""Sizes for a column of print, in place of those of a page; fonts that LaTeX and publishers take."""


def level_colors(levels: Sequence[float]) -> dict[float, str]:
    """Maps each privacy level to a color, the darkest for the most private.

    Args:
      levels: the epsilons of a document, in nats, in any order.

    Returns:
      epsilon -> color as #rrggbb.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    ordered = sorted(set(levels))
    return {e: to_hex(colormaps["viridis"](0.03 + 0.65 * i / max(1, len(ordered) - 1))) for i, e in enumerate(ordered)}


@contextmanager
def style(sizes: Any = None) -> Iterator[None]:
    """Applies the style of all figures to what Matplotlib makes and saves; `sizes` are those of print, see `COLUMN`."""
    import matplotlib

    with matplotlib.rc_context({**_STYLE, **(sizes or {})}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def drawn_once(figure: Callable[P, str]) -> Callable[P, str]:
    """Caches a figure's SVG text by its arguments, for figures that a suite's report shares with those of its audits.

    Args:
      figure: a function of values from a document, as JSON has them.
    """

    @wraps(figure)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> str:
        key = sha256(json.dumps([figure.__name__, args, kwargs]).encode()).hexdigest()
        if (text := DRAWN.get(key)) is None:
            text = figure(*args, **kwargs)
            if len(DRAWN) >= _KEPT:
                DRAWN.clear()
            DRAWN[key] = text
        return text

    return drawn


def svg_of(draw: Callable[[Axes], None], width: float, height: float) -> str:
    """SVG text of what `draw` plots on one pair of axes; width and height in inches."""
    return _svg(lambda figure: draw(figure.add_subplot()), width, height)


def svg_of_two(draw: Callable[[Axes, Axes], None], width: float, height: float, ratio: tuple[float, float]) -> str:
    """SVG text of what `draw` plots on two pairs of axes, one above the other, with heights in this ratio."""
    return _svg(lambda figure: draw(*figure.subplots(2, 1, height_ratios=ratio)), width, height)


def _svg(draw: Callable[[Figure], None], width: float, height: float) -> str:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style():
        figure: Figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        draw(figure)
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def mark_of(role: Role, color: str | None = None) -> dict[str, Any]:
    """Style of the mark of a role: accounted is a ring around what is claimed; in the color of the role if none is given."""
    size, fill = (8, {"markerfacecolor": "none"}) if role == "accounted" else (5, {})
    return {"marker": MARKERS[role], "color": color or ROLES[role], "markersize": size, "linestyle": "none", **fill}


def few_ticks(count: int) -> MaxNLocator:
    """Tick locator with about so many round numbers."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(count, steps=[1, 2, 2.5, 5, 10])


def draw_line(axes: Axes, x: FloatArray, band: Band, *, opacity: float, floor: float = -math.inf, **line: Any) -> FloatArray:
    """Draws a mean over its band, no lower than `floor`; returns the (n,) mean as drawn.

    Args:
      axes: where to.
      x: (n,) rounds.
      band: a mean and the ends of its interval.
      opacity: of the band.
      floor: smallest value that logarithmic axes show.
      **line: Matplotlib's properties of the line; its color is that of the band.
    """
    mean, low, high = (np.maximum(np.asarray(values, dtype=float), floor) for values in band)
    axes.fill_between(x, low, high, color=line["color"], alpha=opacity, linewidth=0)
    axes.plot(x, mean, **line)
    return np.asarray(mean)


def draw_family(axes: Axes, x: Sequence[float], ends: Sequence[tuple[float, float, float]], **line: Any) -> None:
    """Draws (low, mean, high) of each privacy level, means joined by a line, with bars for their intervals."""
    below, above = [max(0.0, mean - low) for low, mean, _ in ends], [max(0.0, high - mean) for _, mean, high in ends]
    axes.errorbar(x, [mean for _, mean, _ in ends], yerr=[below, above], **line)


def limit_regret(axes: Axes, low: float, high: float, *, is_log: bool) -> None:
    """Limits the vertical axis and sets its ticks, on a logarithmic or a linear scale."""
    if is_log:
        axes.set_yscale("log")
        log_ticks(axes.yaxis)
    else:
        number_ticks(axes.yaxis, 6)
    axes.set_ylim(low, high)


def limit_levels(axes: Axes, levels: Sequence[float], room: float, marked: Sequence[float]) -> None:
    """Limits a logarithmic axis to increasing privacy levels and some room; ticks at `marked` ones unless they are many."""
    axes.set_xlim(levels[0] / room, levels[-1] * room)
    if len(marked) <= _MOST_TICKS:
        axes.set_xticks(marked, [number(level) for level in marked])
        axes.minorticks_off()
    else:
        log_ticks(axes.xaxis)


def log_ticks(axis: Axis) -> None:
    """Sets ticks at powers of ten on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(10, numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    axis.set_minor_formatter(NullFormatter())


def number_ticks(axis: Axis, count: int | None = None) -> None:
    """Writes the ticks of an axis as numbers; about `count` round ones, if given."""
    if count is not None:
        axis.set_major_locator(few_ticks(count))
    axis.set_major_formatter(lambda value, _: number(value))


def write(axes: Axes, text: str, at: tuple[float, float], offset: tuple[int, int], **font: Any) -> None:
    """Writes a text at a place in the data, moved by an offset in points."""
    axes.annotate(text, at, xytext=offset, textcoords="offset points", **font)


def name_row(axes: Axes, row: float, label: str, above: float, **font: Any) -> None:
    """Draws the line above a row of a dot plot, and writes the row's label on it."""
    axes.axhline(row - 0.52, color="#d0d7de", linewidth=0.6, zorder=0)
    at = (0.0, row - above)
    coordinates = ("axes fraction", "data")
    label = short(label, 60)
    write(axes, label, at, (4, 0), xycoords=coordinates, va="center", fontsize=8.5, fontweight="bold", **font)


def close_rows(axes: Axes, low: float, high: float) -> None:
    """Limits a dot plot to its rows, from `high` down to `low`, and hides what rows do not need."""
    axes.set_ylim(low, high)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(False, axis="y")


def legend_above(
    axes: Axes, lines: Sequence[Mapping[str, Any]], columns: int | None = None, *, is_below: bool = False
) -> None:
    """Draws a legend above the axes or below, in one row unless a number of columns is given; a line is style and label."""
    handles = [axes.plot([], [], **line)[0] for line in lines]
    spacing = {"columnspacing": 1.0, "handlelength": 1.7, "handletextpad": 0.6}
    if is_below:
        axes.figure.legend(handles=handles, loc="outside lower left", ncols=columns or len(handles), **spacing)
    else:
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=columns or len(handles), **spacing)


def label_ends(axes: Axes, x: float, ends: list[tuple[float, str, str]]) -> None:
    """Labels lines at their right end without overlap; if there are too many, a selection from low to high."""
    low, high = axes.get_ylim()
    scale = axes.get_yscale()
    place = (lambda v: math.log(v)) if scale == "log" else (lambda v: v)
    bottom, span = place(low), place(high) - place(low)
    ordered = sorted(ends)
    if len(ordered) > _NAMES:
        ordered = [ordered[round(i * (len(ordered) - 1) / (_NAMES - 1))] for i in range(_NAMES)]
    heights = [(place(value) - bottom) / span for value, _, _ in ordered]
    gap = min(0.062, 1.0 / max(1, len(heights)))
    for _ in range(100):
        for i in range(1, len(heights)):
            lack = gap - (heights[i] - heights[i - 1])
            if lack > 1e-9:
                heights[i] += lack / 2
                heights[i - 1] -= lack / 2
    last = len(heights) - 1
    heights = [min(max(height, i * gap), 1.0 - (last - i) * gap) for i, height in enumerate(heights)]
    for (value, name, color), height in zip(ordered, heights, strict=True):
        axes.annotate(
            name,
            (x, value),
            xytext=(1.045, height),
            textcoords="axes fraction",
            va="center",
            fontsize=8.5,
            color=color,
            fontweight="bold",
            annotation_clip=False,
            # To the start of the name: to its middle, it would cross the names above or below.
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)},
        )


def short(text: str, length: int) -> str:
    """Text shortened to one line of at most so many characters."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= length else plain[: length - 1] + "…"
