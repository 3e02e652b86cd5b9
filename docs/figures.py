"""Draws the figures of docs/reproductions.md, and prints its first table: `python docs/figures.py bandana_data`.

The data folder must hold the suites azize-basu-figure-2, renyi-linear and renyi-contextual, as `bandana run` leaves them.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slim import slim

from bandana.audits.reporting.figures.drawing import FAMILIES, TWIN, log_ticks, svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IMAGES = Path(__file__).parent / "images"
EPSILONS = (0.05, 0.1, 0.25, 1.0, 10.0)
REFERENCE = {
    "adap-ucb printed": (15360, 7782, 4410, 2219, 1257),
    "adap-klucb printed": (15360, 7688, 3966, 1906, 1085),
    "dp-se printed": (10214, 5690, 4468, 4292, 3886),
    "adar-ucb printed": (1353, 1230, 1155, 1130, 1117),
}
"""Final regret at `EPSILONS`, measured with public code in as many replications."""
PAIRS = (
    ("azize-basu-figure-2", "adar-ucb", ("printed", "tight")),
    ("azize-basu-figure-2", "adap-ucb", ("printed", "tight")),
    ("renyi-linear", "adar-gope", ("printed", "tight")),
    ("renyi-contextual", "adar-oful", ("printed", "tight")),
    ("renyi-contextual", "linucb joint", ("printed", "tree", "tight")),
    ("renyi-contextual", "linucb local", ("as-known", "tight")),
)
_NORMAL_95 = 1.959963984540054
Cell = dict[str, Any]


def cells_of(root: Path, suite: str) -> list[Cell]:
    """The cells of a suite's report."""
    document = json.loads((root / "suites" / suite / "report.json").read_text(encoding="utf-8"))
    return list(document["benchmark"]["cells"])


def line_of(cells: Sequence[Cell], name: str, calibration: str | None) -> list[Cell]:
    """The cells of one entry of the catalog in one calibration, by epsilon."""
    begins = " ".join(filter(None, (name, calibration)))
    own = [c for c in cells if c["role"] == "algorithm" and c["calibration"] == calibration]
    found = [c for c in own if f"{c['label']} ".startswith(f"{begins} ")]
    return sorted(found, key=lambda cell: cell["epsilon"] or 0.0)


def half_width(cell: Cell) -> float:
    """Half width of the 95 % confidence interval of the final regret; of one with unequal sides the mean of both."""
    return float(cell["final_high"] - cell["final_low"]) / 2


def in_standard_errors(cell: Cell, reference: float) -> float:
    """The difference to a mean of as many replications, over the standard error of the difference.

    The reference's own standard error is not known; it is taken to be the cell's.
    """
    error = math.sqrt(2) * half_width(cell) / _NORMAL_95
    difference = float(cell["final_mean"]) - reference
    return difference / error if error > 0 else difference and math.copysign(math.inf, difference)


def table_of_figure_2(cells: Sequence[Cell]) -> str:
    """Regret beside the reference values, as Markdown."""
    lines = ["| algorithm | epsilon | regret | reference | difference, in standard errors |", "|---|--:|--:|--:|--:|"]
    for name, references in REFERENCE.items():
        for cell, reference in zip(line_of(cells, *name.split()), references, strict=True):
            apart = in_standard_errors(cell, reference)
            shown = "equal" if cell["final_mean"] == reference else f"{apart:+.1f}"
            if half_width(cell) == 0 and abs(cell["final_mean"] - reference) < 1:
                shown = "equal, rounded"
            lines.append(f"| {name} | {cell['epsilon']:g} | {interval(cell)} | {reference} | {shown} |")
    return "\n".join(lines)


def interval(cell: Cell) -> str:
    """Mean and half-width, with as many digits as they deserve."""
    digits = 1 if cell["final_mean"] < 1000 else 0
    return f"{cell['final_mean']:.{digits}f} ± {half_width(cell):.{digits}f}"


def _draw_line(axes: Axes, cells: Sequence[Cell], color: str, marker: str, style: str, label: str) -> None:
    axes.errorbar(
        [cell["epsilon"] for cell in cells], [cell["final_mean"] for cell in cells], [half_width(cell) for cell in cells],
        color=color, marker=marker, markersize=4, linestyle=style, label=label, capsize=2,
    )  # fmt: skip


def _name_axes(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    log_ticks(axes.xaxis)
    log_ticks(axes.yaxis)
    axes.set_xlabel("epsilon (log scale)")
    axes.set_ylabel("final regret (log scale)")


def figure_2(cells: Sequence[Cell]) -> str:
    """Final regret against epsilon; circles are the reference values."""

    def draw(axes: Axes) -> None:
        for color, (name, references) in zip(FAMILIES, REFERENCE.items(), strict=False):
            _draw_line(axes, line_of(cells, *name.split()), color, "", "-", name)
            axes.plot(EPSILONS, references, "o", color=color, markerfacecolor="none", markersize=6)
            if tight := line_of(cells, name.split()[0], "tight"):
                _draw_line(axes, tight, color, "", "--", name.replace("printed", "tight"))
        axes.plot([], [], "o", color=TWIN, markerfacecolor="none", label="reference values")
        (twin,) = line_of(cells, "adap-ucb non-private", None)
        axes.axhline(twin["final_mean"], color=TWIN, linestyle=":", label="without noise")
        _name_axes(axes)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg_of(draw, 7.6, 4.0)


def figure_of_pairs(root: Path) -> str:
    """Printed (full) and tight (dotted) at equal privacy."""

    def draw(axes: Axes) -> None:
        for color, (suite, name, calibrations) in zip(FAMILIES, PAIRS, strict=True):
            cells = cells_of(root, suite)
            for calibration, style, marker in zip(calibrations[:: len(calibrations) - 1], "-:", "os", strict=True):
                _draw_line(axes, line_of(cells, name, calibration), color, marker, style, f"{name} {calibration}")
        _name_axes(axes)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg_of(draw, 7.6, 4.4)


def main(root: Path) -> None:
    """Both figures, and the table of Figure 2."""
    cells = cells_of(root, "azize-basu-figure-2")
    (IMAGES / "azize-basu-figure-2.svg").write_text(slim(figure_2(cells)), encoding="utf-8")
    (IMAGES / "printed-and-tight.svg").write_text(slim(figure_of_pairs(root)), encoding="utf-8")
    print(table_of_figure_2(cells))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
