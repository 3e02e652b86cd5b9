"""Shared parts of a report's figures: colors, style, ticks, labels, and reproducible SVG text.

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

from bandana.audits.reporting.numbers import number, power_of_ten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
DRAWN: dict[str, str] = {}
"""SVG text of the latest figures, by a hash of what they show."""
_KEPT = 256  # some ten megabytes
_NAMES = 24  # at the ends of lines, one below the other, as many as a panel has room for
ROLES = {"claimed": "#1f2328", "accounted": "#0072b2", "measured": "#d55e00"}
MARKERS = {"claimed": "D", "accounted": "o", "measured": ">"}
FAMILIES = ("#0072b2", "#d55e00", "#009e73", "#a3407a", "#3a86c8", "#8a6d00")
"""Colors of families, apart for color-blind readers and dark enough for words (after Okabe and Ito, 2008)."""
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
def _style() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
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
        if (found := DRAWN.get(key)) is None:
            found = figure(*args, **kwargs)
            if len(DRAWN) >= _KEPT:
                DRAWN.clear()
            DRAWN[key] = found
        return found

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

    with _style():
        figure: Figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        draw(figure)
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def few_ticks(count: int) -> Any:
    """Tick locator with about so many round numbers."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(count, steps=[1, 2, 2.5, 5, 10])


def log_ticks(axis: Any) -> None:
    """Sets ticks at powers of ten on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(10, numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    axis.set_minor_formatter(NullFormatter())


def number_ticks(axis: Any, count: int | None = None) -> None:
    """Writes the ticks of an axis as numbers; about `count` round ones, if given."""
    if count is not None:
        axis.set_major_locator(few_ticks(count))
    axis.set_major_formatter(lambda value, _: number(value))


def write(axes: Axes, text: str, at: tuple[float, float], offset: tuple[int, int], **style: Any) -> None:
    """Writes a text at a place in the data, moved by an offset in points."""
    axes.annotate(text, at, xytext=offset, textcoords="offset points", **style)


def name_row(axes: Axes, row: float, label: str, above: float, **style: Any) -> None:
    """Draws the line above a row of a dot plot, and writes the row's label on it."""
    axes.axhline(row - 0.52, color="#d0d7de", linewidth=0.6, zorder=0)
    at = (0.0, row - above)
    coordinates = ("axes fraction", "data")
    label = short(label, 60)
    write(axes, label, at, (4, 0), xycoords=coordinates, va="center", fontsize=8.5, fontweight="bold", **style)


def close_rows(axes: Axes, low: float, high: float) -> None:
    """Limits a dot plot to its rows, from `high` down to `low`, and hides what rows do not need."""
    axes.set_ylim(low, high)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(False, axis="y")


def legend_above(axes: Axes, lines: Sequence[Mapping[str, Any]], columns: int | None = None) -> None:
    """Draws a legend above the axes, in one row unless a number of columns is given; a line is its style and label."""
    handles = [axes.plot([], [], **line)[0] for line in lines]
    style = {"columnspacing": 1.0, "handlelength": 1.7, "handletextpad": 0.6}
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=columns or len(handles), **style)


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
