"""The figures and tables of kernel bandits in docs/reproductions.md: `python docs/kernel_figures.py bandana_data`.

The data folder must hold gp-ucb-figures, gp-ucb-table-1, capri and capri-and-gp-ucb, as `bandana run` leaves them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import IMAGES, Cell, cells_of, half_width, interval, line_of

from bandana.audits.reporting.drawing import FAMILIES, TWIN, log_ticks, svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USUAL_DELTA = 0.1
TABLE_1 = {
    "camelback": (519, 775, 1029, 3324),
    "styblinski-tang": (885, 1667, 2680, 4493),
    "michalewicz": (901, 1558, 2883, 5002),
}
"""Curves of Dubey (2021): without noise, and at epsilon 10, 1 and 0.1."""
_LINES = (
    ("capri joint", "printed", 10.0, "joint as printed, epsilon 10"),
    ("capri local", "tight", 10.0, "local, epsilon 10"),
    ("capri joint", "tight", 1.0, "joint, epsilon 1"),
    ("capri joint", "tight", 10.0, "joint, epsilon 10"),
    ("capri", None, None, "without noise"),
)
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
            next(cell for cell in line_of(cells, "gp-ucb joint", name) if (cell["epsilon"], delta_of(cell)) == promise)
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


def on(cells: Sequence[Cell], environment: str) -> list[Cell]:
    """The cells of one of several environments."""
    return [cell for cell in cells if cell["label"].endswith(f" on {environment}")]


def table_1(cells: Sequence[Cell]) -> str:
    """The paper's numbers beside ours, as Markdown."""
    lines = [
        "| function | epsilon | the paper | printed | public decision set | arms, no kernel |", "|---|--:|--:|--:|--:|--:|"
    ]  # fmt: skip
    for name, paper in TABLE_1.items():
        own = on(cells, name)
        (twin,) = line_of(own, "gp-ucb-pool", None)
        lines.append(f"| {name} | none | {paper[0]} | | {interval(twin)} | |")
        columns = [
            line_of(own, "gp-ucb joint", "printed"), line_of(own, "gp-ucb-pool joint", "tight"),
            line_of(own, "adar-ucb", "tight"),
        ]  # fmt: skip
        for printed, *others in reversed(list(zip(*columns, strict=True))):
            told = {10.0: paper[1], 1.0: paper[2], 0.1: paper[3]}[printed["epsilon"]]
            shown = " | ".join(interval(cell) for cell in (printed, *others))
            lines.append(f"| {name} | {printed['epsilon']:g} | {told} | {shown} |")
    return "\n".join(lines)


def figure_of_capri(document: dict[str, Any]) -> str:
    """Regret against rounds for both kernels."""
    grid, cells = document["benchmark"]["grid"], document["benchmark"]["cells"]

    def draw(axes: Axes) -> None:
        for color, (name, calibration, epsilon, told) in zip((*FAMILIES[:4], TWIN), _LINES, strict=True):
            for environment, style in (("smooth", "-"), ("rough", "--")):
                (cell,) = (c for c in line_of(on(cells, environment), name, calibration) if c["epsilon"] == epsilon)
                axes.plot(grid, cell["mean"], color=color, linestyle=style, label=f"{told}, {environment}")
        axes.set_xlim(0, grid[-1])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("rounds")
        axes.set_ylabel("regret")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg_of(draw, 8.2, 4.2)


def table_of_capri(cells: Sequence[Cell]) -> str:
    """Final regret of every cell, as Markdown."""
    lines = ["| algorithm | calibration | epsilon | smooth | rough |", "|---|---|--:|--:|--:|"]
    for smooth, rough in zip(on(cells, "smooth"), on(cells, "rough"), strict=True):
        epsilon = "none" if smooth["epsilon"] is None else f"{smooth['epsilon']:g}"
        name = f"{smooth['algorithm']} | {smooth['calibration'] or ''}"
        lines.append(f"| {name} | {epsilon} | {interval(smooth)} | {interval(rough)} |")
    return "\n".join(lines)


def main(root: Path) -> None:
    """All figures and tables."""
    cells = cells_of(root, "gp-ucb-figures")
    (IMAGES / "gp-ucb-figures.svg").write_text(figure_of_gp_ucb(cells), encoding="utf-8")
    print(table_of_gp_ucb(cells), table_1(cells_of(root, "gp-ucb-table-1")), sep="\n\n")
    document = json.loads((root / "suites" / "capri" / "report.json").read_text(encoding="utf-8"))
    (IMAGES / "capri.svg").write_text(figure_of_capri(document), encoding="utf-8")
    print("", table_of_capri(document["benchmark"]["cells"]), table_of_capri(cells_of(root, "capri-and-gp-ucb")), sep="\n\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
