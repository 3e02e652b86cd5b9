"""Pictures on the pages of algorithms: `python docs/algorithm_figures.py bandana_data`.

The data folder must hold the quick leaderboard, as `bandana leaderboard --quick` leaves it, and the suite ab-test, as
`bandana run experiments/ab-test.yaml` does. What is not there keeps its picture. The pages of kernel bandits and of UCRL-VTR
show pictures of the reproductions.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import IMAGES, Cell
from slim import slim

from bandana.audits.reporting.figures.drawing import FAMILIES, TWIN, label_ends, log_ticks, svg_of
from bandana.flows.annexes.leaderboard.page import family_of
from bandana.flows.annexes.leaderboard.plots import measure_against_mu

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGES = Path(__file__).parent / "algorithms"
FOLDER = IMAGES / "algorithms"
PROBLEMS = {
    "finite-arms": ("arms-trial", ("central",)),
    "linear-arms": ("linear-arms", ("central",)),
    "contextual": ("contexts-fresh", ("central", "joint", "shuffle", "local")),
    "lsvi-ucb": ("episodes-modes", ("joint",)),
    "tabular": ("episodes-modes", ("joint", "local")),
}
"""Page -> the problem of the benchmark that its picture shows, and the trust models of what is drawn."""
TEST = "best-arm"
"""The page whose picture is of the suite ab-test."""
_TESTS = (
    ("dp-tt", "dp-tt", ""),
    ("adap-tt, top-two", "adap-tt", "sampling=top-two"),
    ("adap-tt, uniform", "adap-tt", "sampling=uniform"),
)
"""Lines of that picture: name, algorithm, and how the labels of its cells end."""
BESIDE = {"linear-arms": ("adar-ucb",), "tabular": ("lsvi-ucb",)}
"""Page -> algorithms of other pages that its picture shows too."""
_NAMED = re.compile(r"^<!-- parameters: ([\w-]+) -->$", re.MULTILINE)
Row = dict[str, Any]


def algorithms_of(page: str) -> tuple[str, ...]:
    """The algorithms that a page describes."""
    return tuple(_NAMED.findall((PAGES / f"{page}.md").read_text(encoding="utf-8")))


def rows_of(page: str, problem: dict[str, Any]) -> list[Row]:
    """What the picture of a page shows: private rows of its algorithms, the best without privacy, and uniform play."""
    shown = (*algorithms_of(page), *BESIDE.get(page, ()))
    own = [row for row in problem["rows"] if row["algorithm"] in shown and not row["is_own"]]
    private = [row for row in own if row["role"] == "private" and row["privacy_model"] in PROBLEMS[page][1]]
    open_ = sorted((row for row in own if row["role"] == "non-private"), key=lambda row: float(row["mean"]))
    return [*private, *open_[:1], *(row for row in problem["rows"] if row["label"] == "uniform play")]


def trade(page: str, problem: dict[str, Any]) -> str:
    """Final regret against the claimed mu."""
    rows = rows_of(page, problem)
    private = [row for row in rows if row["role"] == "private"]
    families = {name: [row for row in private if family_of(row) == name] for name in dict.fromkeys(map(family_of, private))}
    return measure_against_mu(families, [row for row in rows if row["role"] != "private"], "final regret")


def length_of_tests(cells: Sequence[Cell]) -> str:
    """Rounds until tests with fixed confidence stop, against epsilon."""

    def line(algorithm: str, sampling: str) -> list[Cell]:
        found = [
            cell
            for cell in cells
            if cell["role"] == "algorithm" and cell["guarantee"] == "pure" and cell["calibration"] == "tight"
            and cell["label"].startswith(f"{algorithm} ") and cell["label"].endswith(sampling)
        ]  # fmt: skip
        return sorted(found, key=lambda cell: cell["epsilon"])

    def draw(axes: Axes) -> None:
        ends = []
        for color, (name, algorithm, sampling) in zip(FAMILIES, _TESTS, strict=False):
            own = [(cell["epsilon"], cell["decision"]) for cell in line(algorithm, sampling)]
            x, y = [epsilon for epsilon, _ in own], [decision["rounds"] for _, decision in own]
            reach = [[d["rounds"] - d["rounds_low"] for _, d in own], [d["rounds_high"] - d["rounds"] for _, d in own]]
            axes.errorbar(x, y, yerr=reach, color=color, marker="o", markersize=4.5, capsize=2.5)
            ends.append((y[-1], name, color))
            (twin,) = (c for c in cells if c["label"] == f"{algorithm} non-private {sampling}".strip())
            axes.axhline(twin["decision"]["rounds"], color=TWIN, linestyle=(0, (4, 1.6)), linewidth=1.1)
        axes.set_xscale("log")
        log_ticks(axes.xaxis)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("ε of pure DP (log scale)")
        axes.set_ylabel("people until the test stops")
        ends.append((twin["decision"]["rounds"], "not private", TWIN))
        label_ends(axes, x[-1], ends)

    return svg_of(draw, 6.4, 3.2)


def pictures(root: Path) -> Iterator[tuple[str, str]]:
    """Page and picture of everything that the data folder has measured."""
    board = root / "leaderboard" / "quick.json"
    if board.exists():
        problems = {problem["name"]: problem for problem in json.loads(board.read_text(encoding="utf-8"))["problems"]}
        for page, (name, _) in PROBLEMS.items():
            yield page, trade(page, problems[name])
    tests = root / "suites" / "ab-test" / "report.json"
    if tests.exists():
        yield TEST, length_of_tests(json.loads(tests.read_text(encoding="utf-8"))["benchmark"]["cells"])


def main(root: Path) -> None:
    """Draws what there is."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for page, text in pictures(root):
        (FOLDER / f"{page}.svg").write_text(slim(text), encoding="utf-8")
        print(f"{page}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
