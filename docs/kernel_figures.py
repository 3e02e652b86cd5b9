"""The figure and the table of GP-UCB in docs/reproductions.md: `python docs/kernel_figures.py bandana_data`.

The data folder must hold the suite gp-ucb-figures, as `bandana run` leaves it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from figures import IMAGES, Cell, cells_of, half_width, interval, line_of

from audits.reporting.drawing import FAMILIES, TWIN, log_ticks, svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USUAL_DELTA = 0.1
_STYLES = {"printed": ("o", "-"), "tight": ("s", ":")}


def delta_of(cell: Cell) -> float:
    """The delta of a cell's promise, which its label names where it is not the usual one."""
    found = re.search(r"delta=([\d.e-]+)", cell["label"])
    return USUAL_DELTA if found is None else float(found.group(1))


def table_of_gp_ucb(cells: Sequence[Cell]) -> str:
    """Printed beside tight for each promise, as Markdown."""
    (twin,) = line_of(cells, "gp-ucb", None)
    lines = ["| promise | epsilon | printed | tight | printed / tight | without noise |", "|---|--:|--:|--:|--:|--:|"]
    promises = sorted({(cell["epsilon"], delta_of(cell)) for cell in cells if cell["epsilon"] is not None})
    for promise in sorted(promises, key=lambda promise: (promise[1] != USUAL_DELTA, *promise)):
        old, new = (
            next(cell for cell in line_of(cells, "gp-ucb-joint", name) if (cell["epsilon"], delta_of(cell)) == promise)
            for name in _STYLES
        )
        ratio = old["final_mean"] / new["final_mean"]
        epsilon, delta = promise
        lines.append(
            f"| delta = {delta:g} | {epsilon:g} | {interval(old)} | {interval(new)} | {ratio:.3g} | {interval(twin)} |"
        )
    return "\n".join(lines)


def figure_of_gp_ucb(cells: Sequence[Cell]) -> str:
    """Final regret against epsilon at the usual delta."""

    def draw(axes: Axes) -> None:
        for color, (name, (marker, style)) in zip(FAMILIES, _STYLES.items(), strict=False):
            line = [cell for cell in line_of(cells, "gp-ucb-joint", name) if delta_of(cell) == USUAL_DELTA]
            axes.errorbar(
                [cell["epsilon"] for cell in line], [cell["final_mean"] for cell in line],
                [half_width(cell) for cell in line], color=color, marker=marker, linestyle=style, markersize=4, capsize=2,
                label=f"gp-ucb-joint {name}",
            )  # fmt: skip
        (twin,) = line_of(cells, "gp-ucb", None)
        axes.axhline(twin["final_mean"], color=TWIN, linestyle="--", label="without noise")
        axes.set_xscale("log")
        log_ticks(axes.xaxis)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("epsilon (log scale)")
        axes.set_ylabel("regret after 1024 rounds")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg_of(draw, 7.0, 3.4)


def main(root: Path) -> None:
    """The figure and the table."""
    cells = cells_of(root, "gp-ucb-figures")
    (IMAGES / "gp-ucb-figures.svg").write_text(figure_of_gp_ucb(cells), encoding="utf-8")
    print(table_of_gp_ucb(cells))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
