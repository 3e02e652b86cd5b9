"""Tables on tests for the best arm: when they stopped, how often wrongly, and how much sooner a test could stop."""

from __future__ import annotations

from collections.abc import Sequence

from bandana.audits.documents.benchmark import BenchmarkCell
from bandana.audits.reporting.blocks import Block, bullets, right, table_block
from bandana.audits.reporting.numbers import NONE, number
from bandana.audits.reporting.sections.strength import epsilon_at


def tests_table(cells: Sequence[BenchmarkCell], replications: int, on: str, unit: str) -> list[Block]:
    """One row for each cell that recommends an arm; nothing where no cell does."""
    shown = [(cell, cell["decision"]) for cell in cells if cell["decision"] is not None]
    if not shown:
        return []
    columns = ["Cell", right("ε at δ"), right(f"{unit.capitalize()} to stop"), right("Interval"), right("Lower bound")]
    columns += [right(title) for title in ("Not stopped", "Wrong", "Interval", "Proved", "Least")]
    rows = [
        [
            cell["label"],
            epsilon_at(cell),
            number(decision["rounds"]),
            f"{number(decision['rounds_low'])} to {number(decision['rounds_high'])}",
            NONE
            if not decision["least"]
            else f"{number(decision['least'])} ({number(decision['rounds'] / decision['least'])})",
            _percent(decision["undecided"]),
            _percent(decision["wrong"]),
            f"{_percent(decision['wrong_low'])} to {_percent(decision['wrong_high'])}",
            NONE if decision["error_bound"] is None else _percent(decision["error_bound"]),
            NONE if decision["least_wrong"] is None else _percent(decision["least_wrong"]),
        ]
        for cell, decision in shown
    ]
    theorems = [*(each["least_text"] for _, each in shown), *(each["least_wrong_text"] for _, each in shown)]
    texts = dict.fromkeys(text for text in theorems if text is not None)
    return [
        table_block(
            f"Tests for the best arm{on}, {number(replications)} replications. {unit.capitalize()} to stop: mean, the "
            "horizon for a test that did not stop. Lower bound: the least mean of any test with the same claim and the same "
            "proved error, and in brackets how many times that the test took. Wrong: tests that stopped and recommended "
            "another arm than the best, with the 95 % interval of Clopper and Pearson, beside what is proved of the test. "
            "Least: of any test with the same claim and budget.",
            columns,
            rows,
            widths=[2.4, 0.6, 1.0, 1.7, 1.4, 0.9, 0.8, 1.3, 0.8, 0.8],
        ),
        *([bullets([f"Lower bound for {text}." for text in texts])] if texts else []),
    ]


def _percent(share: float) -> str:
    return f"{number(100 * share)} %"
