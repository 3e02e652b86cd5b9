"""The picture and the three numbers of the documentation's first page: `python docs/first_page.py bandana_data`.

The data folder must hold the suite demo, as `bandana demo` leaves it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import IMAGES
from slim import slim

from bandana.audits.reporting.figures.drawing import (
    FAMILIES,
    MARKERS,
    ROLES,
    TWIN,
    close_rows,
    label_ends,
    legend_above,
    log_ticks,
    number_ticks,
    svg_of_two,
    write,
)
from bandana.audits.reporting.numbers import number, power_of_ten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGE = Path(__file__).parent / "index.md"
SHOWN = "adar-ucb tight eps=1"
"""The cell whose three numbers the page shows."""
_NUMBER = re.compile(r'(<b class="(claimed|accounted|measured)">).*?(</b>)')
_NAMES = {
    "ucb": "UCB, not private",
    "adar-ucb tight eps=10": "AdaR-UCB, (2, 10)-RDP",
    SHOWN: "AdaR-UCB, (2, 1)-RDP",
    "adar-ucb tight eps=0.05": "AdaR-UCB, (2, 0.05)-RDP",
}
_POINTS = 50
"""Points of a curve, which keep the file small."""
_TIGHT = tuple(_NAMES)[1:]


def numbers_of(audit: dict[str, Any]) -> dict[str, str]:
    """The three epsilons of an audit, as the page writes them."""
    found = {role: number(value) for role, value in audit["epsilon"].items()}
    return {**found, "measured": f"≥ {found['measured']}"}


def filled(page: str, audit: dict[str, Any]) -> str:
    """The page with the numbers of an audit."""
    shown = numbers_of(audit)
    return _NUMBER.sub(lambda found: f"{found[1]}{shown[found[2]]}{found[3]}", page)


def picture(document: dict[str, Any]) -> str:
    """Regret with and without privacy, above the three epsilons at each level."""
    cells = {cell["label"]: cell for cell in document["benchmark"]["cells"]}
    audits = {audit["label"]: audit for audit in document["audits"]}
    every = document["benchmark"]["grid"]
    chosen = sorted(
        {min(range(len(every)), key=lambda i: abs(every[i] - every[-1] * k / _POINTS)) for k in range(_POINTS + 1)}
    )
    grid = [every[i] for i in chosen]

    def draw(above: Axes, below: Axes) -> None:
        ends = []
        for color, (label, name) in zip((TWIN, *FAMILIES), _NAMES.items(), strict=False):
            cell = cells[label]
            mean, low, high = ([cell[name][i] for i in chosen] for name in ("mean", "low", "high"))
            above.plot(grid, mean, color=color)
            above.fill_between(grid, low, high, color=color, alpha=0.2, linewidth=0)
            ends.append((cell["final_mean"], name, color))
        above.set_xlim(0, grid[-1])
        above.set_ylim(bottom=0)
        number_ticks(above.xaxis, 4)
        number_ticks(above.yaxis, 4)
        above.set_xlabel("simulated round")
        above.set_title("Regret on a real trial, resampled")
        label_ends(above, grid[-1], ends)
        _three_numbers(below, [audits[label] for label in reversed(_TIGHT)])

    return svg_of_two(draw, 6.4, 4.7, (1.3, 1.0))


def _three_numbers(axes: Axes, audits: Sequence[dict[str, Any]]) -> None:
    for row, audit in enumerate(audits):
        for offset, (role, value) in zip((-0.2, 0.0, 0.2), audit["epsilon"].items(), strict=True):
            axes.plot([value], [row + offset], MARKERS[role], color=ROLES[role], markersize=5.5)
            text = number(value) if role != "measured" else f"≥ {number(value)}"
            write(axes, text, (value, row + offset), (7, 0), va="center", fontsize=8, color=ROLES[role])
        name = _NAMES[audit["label"]].removeprefix("AdaR-UCB, ")
        style = {"va": "center", "ha": "right", "fontsize": 8.5}
        write(axes, name, (0, row), (-6, 0), xycoords=("axes fraction", "data"), **style)
    axes.set_xscale("log")
    axes.set_xlim(
        0.7 * min(audit["epsilon"]["measured"] for audit in audits), 2 * max(a["epsilon"]["claimed"] for a in audits)
    )
    log_ticks(axes.xaxis)
    axes.set_xlabel(f"ε at δ = {power_of_ten(audits[0]['delta'])} (log scale)")
    close_rows(axes, len(audits) - 0.5, -0.5)
    legend_above(axes, [{"color": ROLES[role], "marker": MARKERS[role], "linestyle": "", "label": role} for role in ROLES])


def main(root: Path) -> None:
    """Draws the picture, and writes the numbers into the page."""
    document = json.loads((root / "suites" / "demo" / "report.json").read_text(encoding="utf-8"))
    (audit,) = (audit for audit in document["audits"] if audit["label"] == SHOWN)
    (IMAGES / "first-page.svg").write_text(slim(picture(document)), encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), audit), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
