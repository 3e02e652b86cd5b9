"""The figures of a report, as SVG text: the same document always gives the same bytes.

One color stands for one privacy level, and one for one role (claimed, accounted, measured), in every
figure. Both sets stay apart for color-blind readers; shape, dash and a direct label say the same again.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.reporting.document import has_ledger
from audits.reporting.numbers import number, power_of_ten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROLES = {"claimed": "#1f2328", "accounted": "#0072b2", "measured": "#d55e00"}
_MARKERS = {"claimed": "D", "accounted": "o", "measured": ">"}
_TWIN = "#6e7781"
_INK = "#24292f"
_GRID = "#e3e6ea"

_STYLE: Any = {
    "svg.hashsalt": "bandana",
    "svg.fonttype": "path",  # the same in every browser and in the PDF
    "text.parse_math": False,  # a label may hold dollar signs
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": _INK,
    "axes.edgecolor": "#8c959f",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "xtick.color": "#57606a",
    "ytick.color": "#57606a",
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "text.color": _INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
}


def level_colors(levels: Sequence[float]) -> dict[float, str]:
    """One color for each privacy level, the darkest for the most private.

    Args:
      levels: the epsilons of a document, in nats, in any order.

    Returns:
      epsilon -> color as #rrggbb.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    ordered = sorted(set(levels))
    return {e: to_hex(colormaps["viridis"](0.03 + 0.65 * i / max(1, len(ordered) - 1))) for i, e in enumerate(ordered)}


def regret_curves(
    grid: Sequence[int],
    cells: Sequence[dict[str, Any]],
    colors: dict[float, str],
    *,
    is_log: bool,
    top: float,
) -> str:
    """Mean regret against rounds, with its band, one line a cell.

    Args:
      grid: rounds, increasing.
      cells: the cells to draw together, as in the document.
      colors: epsilon -> color, from `level_colors`.
      is_log: both axes logarithmic, or both linear.
      top: the largest regret of all panels that are compared, in units of reward.

    Returns:
      SVG text.
    """

    def draw(axes: Axes) -> None:
        x = np.asarray(grid, dtype=float)
        floor = max(top, 1e-12) * 1e-5 if is_log else -math.inf
        ends = []
        for cell in cells:
            epsilon = cell["epsilon"]
            color = _TWIN if epsilon is None else colors[epsilon]
            mean, low, high = (np.maximum(np.asarray(cell[key], dtype=float), floor) for key in ("mean", "low", "high"))
            axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
            axes.plot(x, mean, color=color, linestyle=(0, (4, 1.6)) if epsilon is None else "-")
            ends.append((float(mean[-1]), _short(curve_name(cell, cells), 22), color))
        axes.set_xlabel("round" + (" (log scale)" if is_log else ""))
        axes.set_ylabel("regret, in units of reward")
        if is_log:
            axes.set_xscale("log")
            axes.set_yscale("log")
            starts = [v for cell in cells for v in cell["mean"][: max(1, len(grid) // 20)] if v > 0]
            axes.set_ylim(max(floor, min(starts, default=floor) * 0.7), max(top, 1e-9) * 1.5)
            _log_ticks(axes.xaxis)
            _log_ticks(axes.yaxis)
        else:
            axes.set_ylim(min(0.0, *(min(cell["low"]) for cell in cells)), (top or 1.0) * 1.05)
            axes.set_xlim(left=0)
            axes.xaxis.set_major_locator(_few_ticks(5))
            axes.yaxis.set_major_locator(_few_ticks(6))
            axes.xaxis.set_major_formatter(lambda value, _: number(value))
            axes.yaxis.set_major_formatter(lambda value, _: number(value))
        _label_ends(axes, float(x[-1]), ends)

    return _svg(draw, 4.3, 3.1)


def curve_name(cell: dict[str, Any], among: Sequence[dict[str, Any]]) -> str:
    """Short name of a cell's line: its privacy level if that is enough to tell it from the others."""
    if sum(other["epsilon"] == cell["epsilon"] for other in among) > 1:
        return str(cell["label"])
    return "not private" if cell["epsilon"] is None else f"ε = {number(cell['epsilon'])}"


def three_epsilons(audits: Sequence[dict[str, Any]]) -> str:
    """The claimed, accounted and measured epsilon of each audit, one row an audit.

    Args:
      audits: at least one, as in the document.

    Returns:
      SVG text. The axis is logarithmic when the numbers span more than a factor of 20; a measured 0 is then at its left end.
    """
    positive = [v for a in audits for v in a["epsilon"].values() if v is not None and v > 0]
    promised = [v for a in audits for role, v in a["epsilon"].items() if role != "measured" and v is not None]
    is_log = bool(positive) and max(positive) / min(positive) > 20 and all(v > 0 for v in promised)
    row, gap = 1.0, 0.21

    def draw(axes: Axes) -> None:
        if is_log:
            axes.set_xscale("log")
            axes.set_xlim(min(positive) / 1.6, max(positive) * 3.2)
            _log_ticks(axes.xaxis)
        else:
            axes.set_xlim(0, (max(positive, default=1.0)) * 1.22)
            axes.xaxis.set_major_formatter(lambda value, _: number(value))
        for index, audit in enumerate(audits):
            y = index * row
            axes.axhline(y - 0.52, color="#d0d7de", linewidth=0.6, zorder=0)
            axes.annotate(
                _short(audit["label"], 60),
                (0, y - 0.34),
                xycoords=("axes fraction", "data"),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
                fontweight="bold",
            )
            for offset, (role, color) in enumerate(ROLES.items()):
                height, value = y + (offset - 0.5) * gap, audit["epsilon"][role]
                if value is None:
                    why = "none" if role == "measured" else "no finite number"
                    why = "no ledger" if role == "accounted" and not has_ledger(audit) else why
                    axes.annotate(
                        f"{role}: {why}",
                        (0, height),
                        xycoords=("axes fraction", "data"),
                        xytext=(10, 0),
                        textcoords="offset points",
                        va="center",
                        fontsize=7.5,
                        color=color,
                    )
                    continue
                start = axes.get_xlim()[0]
                place = max(value, start)
                axes.plot([start, place], [height, height], color=color, linewidth=1.1, alpha=0.55)
                axes.plot([place], [height], _MARKERS[role], color=color, markersize=5, clip_on=False)
                text = f"≥ {number(value)}" if role == "measured" else number(value)
                axes.annotate(
                    text,
                    (place, height),
                    xytext=(6, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=7.5,
                    color=color,
                )
        axes.set_ylim((len(audits) - 1) * row + 0.52, -0.52)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(False, axis="y")
        deltas = {audit["delta"] for audit in audits}
        at = f" at δ = {number(deltas.pop())}" if len(deltas) == 1 else " at each audit's δ"
        axes.set_xlabel(f"ε{at}, in nats{' (log scale)' if is_log else ''}")
        handles = [
            axes.plot([], [], _MARKERS[role], color=color, markersize=5, linestyle="-", linewidth=1.1, label=label)[0]
            for (role, color), label in zip(ROLES.items(), ("claimed", "accounted", "measured (at least)"), strict=True)
        ]
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=3, columnspacing=1.4)

    return _svg(draw, 5.2, 0.85 + 0.62 * len(audits))


def tradeoff_curve(audit: dict[str, Any]) -> str:
    """How often an attack must err: the claim's curve, the attack, and the measured lower bound.

    Args:
      audit: one audit whose `tradeoff` is not null.

    Returns:
      SVG text. The axes are cut where the curves have left the corner, if the claim lets them hug it.
    """
    curve = audit["tradeoff"]
    fpr = np.asarray(curve["fpr"], dtype=float)
    corner = max(
        float(fpr[np.argmin(np.abs(np.asarray(curve[key]) - fpr))]) for key in ("claimed", "measured", "lower_bound")
    )
    limit = 1.0 if corner >= 0.15 else 0.5 if corner >= 0.06 else 0.25

    def draw(axes: Axes) -> None:
        axes.fill_between(fpr, 0, curve["claimed"], color=ROLES["claimed"], alpha=0.07, linewidth=0)
        axes.plot([0, 1], [1, 0], color="#8c959f", linewidth=0.9, linestyle=(0, (1, 2)), label="nothing leaks")
        axes.plot(fpr, curve["measured"], color=ROLES["measured"], linewidth=4, alpha=0.4, label="attack, measured")
        mu = curve["mu_lower"]
        bound = "lower bound" + ("" if mu is None else f", µ ≥ {number(mu)}")
        dash = (0, (4, 2))
        axes.plot(fpr, curve["claimed"], color=ROLES["claimed"], linewidth=1.2, label="limit of the claim")
        axes.plot(fpr, curve["lower_bound"], color=ROLES["measured"], linewidth=1.5, linestyle=dash, label=bound)
        axes.set_xlim(0, limit)
        axes.set_ylim(0, limit)
        axes.set_aspect("equal")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(_few_ticks(5))
            axis.set_major_formatter(lambda value, _: number(value))
        axes.set_xlabel("false-positive rate")
        axes.set_ylabel("false-negative rate")
        axes.legend(loc="upper right", borderaxespad=0.1, handlelength=1.7, labelspacing=0.3, fontsize=8)

    return _svg(draw, 3.05, 2.9)


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _svg(draw: Callable[[Axes], None], width: float, height: float) -> str:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with _style():
        figure: Figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        draw(figure.add_subplot())
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _few_ticks(count: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(count, steps=[1, 2, 2.5, 5, 10])


def _log_ticks(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(10, numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    axis.set_minor_formatter(NullFormatter())


def _label_ends(axes: Axes, x: float, ends: list[tuple[float, str, str]]) -> None:
    """Name the lines at their right end, moved apart so that no two names overlap."""
    low, high = axes.get_ylim()
    scale = axes.get_yscale()
    place = (lambda v: math.log(v)) if scale == "log" else (lambda v: v)
    bottom, span = place(low), place(high) - place(low)
    ordered = sorted(ends)
    heights = [(place(value) - bottom) / span for value, _, _ in ordered]
    gap = min(0.062, 1.0 / max(1, len(heights)))
    for _ in range(100):
        for i in range(1, len(heights)):
            lack = gap - (heights[i] - heights[i - 1])
            if lack > 1e-9:
                heights[i] += lack / 2
                heights[i - 1] -= lack / 2
    if heights and heights[0] < 0:
        heights = [h - heights[0] for h in heights]
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
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )


def _short(text: str, length: int) -> str:
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= length else plain[: length - 1] + "…"
