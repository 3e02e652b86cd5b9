"""The figures of kernel bandits in docs/reproductions.md: `python docs/kernel_figures.py bandana_data`.

The data folder must hold gp-ucb-figures and capri-local, as `bandana run` leaves them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import IMAGES, Cell, cells_of, half_width, line_of
from slim import slim

from bandana.audits.reporting.figures.drawing import FAMILIES, INK, TWIN, log_ticks, svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USUAL_DELTA = 0.1
_LINES = (
    ("capri local printed eps=20", "as printed, epsilon 20"),
    ("capri local tight eps=5", "epsilon 5"),
    ("capri local tight eps=10", "epsilon 10"),
    ("capri local tight eps=20", "epsilon 20"),
    ("capri non-private", "without privacy"),
    ("uniform play", "uniform play"),
    ("best constant action", "best constant action"),
)
_STYLES = {"printed": ("o", "-"), "tight": ("s", ":")}


def delta_of(cell: Cell) -> float:
    """The delta of a cell's promise, which its label names where it is not the usual one."""
    found = re.search(r"delta=([\d.e-]+)", cell["label"])
    return USUAL_DELTA if found is None else float(found.group(1))


def figure_of_gp_ucb(cells: Sequence[Cell]) -> str:
    """Final regret against epsilon at the usual delta."""

    def draw(axes: Axes) -> None:
        for color, (name, (marker, style)) in zip(FAMILIES, _STYLES.items(), strict=False):
            line = [cell for cell in line_of(cells, "gp-ucb joint", name) if delta_of(cell) == USUAL_DELTA]
            axes.errorbar(
                [cell["epsilon"] for cell in line], [cell["final_mean"] for cell in line],
                [half_width(cell) for cell in line], color=color, marker=marker, linestyle=style, markersize=4, capsize=2,
                label=f"gp-ucb joint {name}",
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


def figure_of_capri(document: dict[str, Any]) -> str:
    """Regret of local CAPRI against rounds, beside the reference rows that are computed."""
    grid, cells = document["benchmark"]["grid"], {cell["label"]: cell for cell in document["benchmark"]["cells"]}

    def draw(axes: Axes) -> None:
        for color, (label, told) in zip((*FAMILIES[:4], TWIN, INK, INK), _LINES, strict=True):
            cell = cells[label]
            style = {"uniform play": ":", "best constant action": "--"}.get(label, "-")
            axes.plot(grid, cell["mean"], color=color, linestyle=style, label=told)
            axes.fill_between(grid, cell["low"], cell["high"], color=color, alpha=0.2, linewidth=0)
        axes.set_xlim(0, grid[-1])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("rounds")
        axes.set_ylabel("regret")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg_of(draw, 7.6, 3.8)


def main(root: Path) -> None:
    """Both figures."""
    (IMAGES / "gp-ucb-figures.svg").write_text(slim(figure_of_gp_ucb(cells_of(root, "gp-ucb-figures"))), encoding="utf-8")
    document = json.loads((root / "suites" / "capri-local" / "report.json").read_text(encoding="utf-8"))
    (IMAGES / "capri.svg").write_text(slim(figure_of_capri(document)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
