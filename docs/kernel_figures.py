"""Figures and tables of kernel bandits in docs/reproductions.md: `python docs/kernel_figures.py bandana_data`.

The data folder must hold the suites gp-ucb-figures and capri, as `bandana run` leaves them.
"""

from __future__ import annotations

import json
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
ROUNDS = (1000, 10_000, 100_000)
SHOWN = (
    "capri",
    "capri-joint tight eps=10",
    "capri-joint tight eps=1",
    "capri-joint printed eps=10",
    "capri-local tight eps=10",
)
_STYLES = {"printed": ("o", "-"), "tight": ("s", ":")}


def delta_of(cell: Cell) -> float:
    """The delta of a cell's promise, which its label names where it is not the usual one."""
    found = re.search(r"delta=([\d.e-]+)", cell["label"])
    return USUAL_DELTA if found is None else float(found.group(1))


def table_of_gp_ucb(cells: Sequence[Cell]) -> str:
    """Printed beside tight for each promise, as Markdown."""
    (twin,) = line_of(cells, "gp-ucb", None)
    lines = ["| epsilon | delta | printed | tight | printed / tight | without noise |", "|--:|--:|--:|--:|--:|--:|"]
    promises = sorted({(cell["epsilon"], delta_of(cell)) for cell in cells if cell["epsilon"] is not None})
    for promise in sorted(promises, key=lambda promise: (promise[1] != USUAL_DELTA, *promise)):
        old, new = (
            next(cell for cell in line_of(cells, "gp-ucb-joint", name) if (cell["epsilon"], delta_of(cell)) == promise)
            for name in _STYLES
        )
        ratio = old["final_mean"] / new["final_mean"]
        epsilon, delta = promise
        lines.append(f"| {epsilon:g} | {delta:g} | {interval(old)} | {interval(new)} | {ratio:.3g} | {interval(twin)} |")
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


def at_rounds(cell: Cell, grid: Sequence[int], rounds: int) -> dict[str, float]:
    """Mean and upper end of the regret after so many rounds, in the names of a final one."""
    place = min(range(len(grid)), key=lambda i: abs(grid[i] - rounds))
    return {"final_mean": cell["mean"][place], "final_high": cell["high"][place]}


def table_of_capri(cells: Sequence[Cell], grid: Sequence[int]) -> str:
    """Regret after some numbers of rounds, for both kernels, as Markdown."""
    names = ("smooth", "rough")
    head = [f"{name}, T = {rounds:g}" for name in names for rounds in ROUNDS]
    lines = ["| algorithm | " + " | ".join(head) + " |", "|---|" + "--:|" * len(head)]
    for shown in SHOWN:
        values = []
        for name in names:
            cell = next(cell for cell in cells if cell["label"] == f"{shown} on {name}")
            values += [interval(at_rounds(cell, grid, rounds)) for rounds in ROUNDS]
        lines.append(f"| {shown} | " + " | ".join(values) + " |")
    return "\n".join(lines)


def figure_of_capri(cells: Sequence[Cell], grid: Sequence[int]) -> str:
    """Regret against rounds: full lines the smooth kernel, dotted ones the rough one."""

    def draw(axes: Axes) -> None:
        for color, shown in zip((TWIN, *FAMILIES), SHOWN, strict=False):
            for name, style in (("smooth", "-"), ("rough", ":")):
                cell = next(cell for cell in cells if cell["label"] == f"{shown} on {name}")
                axes.plot(grid, cell["mean"], color=color, linestyle=style, label=f"{shown} on {name}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            log_ticks(axis)
        axes.set_xlabel("rounds (log scale)")
        axes.set_ylabel("regret (log scale)")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg_of(draw, 8.4, 4.2)


def grid_of(root: Path, suite: str) -> list[int]:
    """The rounds at which a suite's report has its curves."""
    document = json.loads((root / "suites" / suite / "report.json").read_text(encoding="utf-8"))
    return list(document["benchmark"]["grid"])


def main(root: Path) -> None:
    """Both figures and both tables."""
    gp_ucb, capri = cells_of(root, "gp-ucb-figures"), cells_of(root, "capri")
    grid = grid_of(root, "capri")
    (IMAGES / "gp-ucb-figures.svg").write_text(figure_of_gp_ucb(gp_ucb), encoding="utf-8")
    (IMAGES / "capri.svg").write_text(figure_of_capri(capri, grid), encoding="utf-8")
    print(table_of_gp_ucb(gp_ucb), table_of_capri(capri, grid), sep="\n\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
