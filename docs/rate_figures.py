"""The figures and tables of docs/rates.md, from what benchmarks measured last: `python docs/rate_figures.py`.

Measured by `python -m benchmarks.rates`, `python -m benchmarks.epsilon_knee` and `python -m benchmarks.rank_stability`,
which leave their numbers in benchmarks/data.
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

from bandana.audits.reporting.figures.drawing import FAMILIES, INK, TWIN, log_ticks, svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # `benchmarks` is no part of the package

from benchmarks import epsilon_knee, rank_stability, rates  # noqa: E402

PAGE = Path(__file__).parent / "rates.md"
SHOWN_KNEE = "dp-imed"
"""The entry whose regret is drawn against epsilon."""
_PLACE = re.compile(r"(<!-- measured: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)
Row = dict[str, Any]


def rows_of(data: Path) -> list[Row]:
    """Rows that a benchmark measured last, as it stored them."""
    rows: list[Row] = json.loads(data.read_text(encoding="utf-8"))
    return rows


def table_of_rates(rows: Sequence[Row]) -> str:
    """Slopes with their intervals beside theory's, as Markdown."""
    lines = ["| family | algorithm | horizons | slope, 95 % interval | theory |", "|---|---|--:|--:|--:|"]
    for row in rows:
        theory = "–" if row["theory"] is None else f"{row['theory']:.2f}"
        slope = f"{row['slope']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        ends = f"{row['horizons'][0]:,} to {row['horizons'][-1]:,}"
        lines.append(f"| {row['family']} | `{row['entry']}` | {ends} | {slope} | {theory} |")
    return "\n".join(lines)


def figure_of_rates(rows: Sequence[Row]) -> str:
    """A line an entry: the measured slope with its interval, and theory's as a bar across it."""
    colors = {name: FAMILIES[i % len(FAMILIES)] for i, name in enumerate(dict.fromkeys(row["family"] for row in rows))}

    def draw(axes: Axes) -> None:
        for place, row in enumerate(rows):
            color, errors = colors[row["family"]], [[row["slope"] - row["low"]], [row["high"] - row["slope"]]]
            axes.errorbar([row["slope"]], [place], xerr=errors, color=color, marker="o", markersize=4, capsize=2)
            if row["theory"] is not None:
                axes.plot([row["theory"]] * 2, [place - 0.35, place + 0.35], color=INK, linewidth=2)
        axes.plot([], [], color=INK, linewidth=2, label="theory")
        axes.plot([], [], "o", color=TWIN, markersize=4, label="measured")
        axes.axvline(1, color=TWIN, linestyle=":", label="learns nothing")
        axes.set_yticks(range(len(rows)), [row["entry"] for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(0, 1.1)
        axes.set_xlabel("slope of log regret on log horizon")
        axes.legend(loc="upper right", bbox_to_anchor=(0.88, 1.0))

    return svg_of(draw, 7.0, 0.24 * len(rows) + 1.0)


def figure_of_knees(rows: Sequence[Row]) -> str:
    """Regret against epsilon for each gap; theory's asymptotes at the measured level, and their predicted crossing."""

    def draw(axes: Axes) -> None:
        for color, row in zip(FAMILIES, [row for row in rows if row["entry"] == SHOWN_KNEE], strict=False):
            epsilons, regret = row["epsilons"], [mean for mean, _, _ in row["regret"]]
            errors = [[mean - low for mean, low, _ in row["regret"]], [high - mean for mean, _, high in row["regret"]]]
            axes.errorbar(
                epsilons, regret, errors, color=color, marker="o", markersize=3.5, linestyle="none", capsize=2,
                label=f"gap {row['gap']:g}",
            )  # fmt: skip
            _, above = epsilon_knee.asymptotes(row["gap"], epsilons)
            level = sum(regret[i] for i in above) / len(above)
            falling = [epsilon for epsilon in epsilons if epsilon <= row["predicted"]]
            corner = [*falling, row["predicted"], epsilons[-1]]
            heights = [level * row["predicted"] / e for e in falling] + [level, level]
            axes.plot(corner, heights, color=color, linewidth=1)
            axes.plot([row["predicted"]], [level], "s", color=color, markerfacecolor="white", markersize=7)
        axes.plot([], [], "s", color=TWIN, markerfacecolor="white", markersize=7, label="predicted knee")
        axes.set_xscale("log")
        axes.set_yscale("log")
        log_ticks(axes.xaxis)
        log_ticks(axes.yaxis)
        axes.set_xlabel("epsilon (log scale)")
        axes.set_ylabel(f"regret of {SHOWN_KNEE} (log scale)")
        axes.legend(loc="upper right")

    return svg_of(draw, 7.0, 4.2)


def filled(page: str, tables: dict[str, str]) -> str:
    """The page with these tables at their places."""
    return _PLACE.sub(lambda place: f"{place[1]}{tables[place[2]]}\n{place[3]}", page)


def main() -> None:
    """Both figures and the three tables."""
    slopes, knees, ranks = (rows_of(each.DATA) for each in (rates, epsilon_knee, rank_stability))
    (IMAGES / "rates.svg").write_text(slim(figure_of_rates(slopes)), encoding="utf-8")
    (IMAGES / "epsilon-knee.svg").write_text(slim(figure_of_knees(knees)), encoding="utf-8")
    tables = {
        "rates": table_of_rates(slopes), "epsilon-knee": epsilon_knee.table_of(knees),
        "rank-stability": rank_stability.table_of(ranks),
    }  # fmt: skip
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    main()
