"""The figure of reinforcement learning in docs/reproductions.md: `python docs/episode_figures.py bandana_data`.

The data folder must hold ucrl-vtr, as `bandana run` leaves it. How regret grows with the number of episodes K
is no property of one curve, as each run is built for its own K: `python -m benchmarks.rates` measures it, across several K.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import IMAGES, Cell, line_of
from slim import slim

from bandana.audits.reporting.figures.drawing import FAMILIES, TWIN, svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = (
    ("ucrl-vtr joint", "printed", 10.0, "printed, epsilon 10"),
    ("ucrl-vtr joint", "tight", 0.1, "tight, epsilon 0.1"),
    ("ucrl-vtr joint", "tight", 1.0, "tight, epsilon 1"),
    ("ucrl-vtr joint", "tight", 10.0, "tight, epsilon 10"),
    ("ucrl-vtr", None, None, "without noise"),
)


def figure_of(document: dict[str, Any]) -> str:
    """Regret of UCRL-VTR under joint privacy against episodes: tight bends, printed stays straight."""
    grid, cells = document["benchmark"]["grid"], document["benchmark"]["cells"]

    def draw(axes: Axes) -> None:
        for color, (name, calibration, epsilon, told) in zip((*FAMILIES[:4], TWIN), _LINES, strict=True):
            cell: Cell = next(c for c in line_of(cells, name, calibration) if c["epsilon"] == epsilon)
            axes.plot(grid, cell["mean"], color=color, label=told)
            axes.fill_between(grid, cell["low"], cell["high"], color=color, alpha=0.2, linewidth=0)
        axes.set_xlim(0, grid[-1])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("episodes")
        axes.set_ylabel("regret")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg_of(draw, 7.6, 3.8)


def main(root: Path) -> None:
    """The figure."""
    document = json.loads((root / "suites" / "ucrl-vtr" / "report.json").read_text(encoding="utf-8"))
    (IMAGES / "ucrl-vtr.svg").write_text(slim(figure_of(document)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
