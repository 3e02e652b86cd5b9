"""Page on utility: the regret of all algorithms in one figure, and a table, by environment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bandana.audits.documents.benchmark import Benchmark, BenchmarkCell
from bandana.audits.documents.fields import present
from bandana.audits.documents.report import Report
from bandana.audits.reporting.blocks import Block, figure_block, heading, paragraph, right, table_block
from bandana.audits.reporting.figures import regret_plots
from bandana.audits.reporting.figures.drawing import FAMILIES, INK, TWIN
from bandana.audits.reporting.numbers import NONE, number, unit_of
from bandana.audits.reporting.sections.decisions import tests_table
from bandana.audits.reporting.sections.strength import epsilon_at

_SETTING = re.compile(r"(?<!\S)(?!(?:eps|delta|mu)=)\w+=\S+")
"""A parameter in a label that is no privacy level."""
WITHHELD, TIMES_LEAST = "withheld", "Regret / lower bound"


def is_shown(cell: BenchmarkCell) -> bool:
    """True if the regret of a cell is in the document."""
    return cell["mean"] is not None


def family_of(cell: BenchmarkCell) -> str:
    """Name of a cell without its privacy level: cells of one family form one line of the frontier."""
    calibration = f", calibration {cell['calibration']}" if cell["calibration"] else ""
    settings = "".join(f", {setting}" for setting in _SETTING.findall(cell["label"]))
    guarantee = f", {cell['guarantee']}" if cell["guarantee"] else ""
    return f"{cell['algorithm']}{calibration} ({cell['privacy_model']} trust{guarantee}){settings}"


def utility(document: Report) -> list[Block]:
    """Regret of all algorithms together, and a table, for each environment."""
    benchmark = present(document["benchmark"])
    cells, grid = benchmark["cells"], benchmark["grid"]
    has_several, units = len(document["environments"]) > 1, unit_of(document["environments"])
    blocks: list[Block] = []
    if any(map(is_shown, cells)):
        blocks.append(
            paragraph(
                f"Cumulative regret over {number(grid[-1])} {units}: the reward lost against the best action. Lines: mean "
                f"over {number(benchmark['replications'])} replications. Bands: {benchmark['band']}."
            )
        )
    if benchmark["withheld"] is not None:
        blocks.append(paragraph(benchmark["withheld"]))
    for environment in document["environments"]:
        here = [cell for cell in cells if cell["environment"] == environment["label"]]
        if not here:
            continue
        on, unit = f" on {environment['label']}" if has_several else "", unit_of([environment])
        shown = [cell for cell in here if is_shown(cell)]
        blocks += [heading(f"On {environment['label']}")] if has_several else []
        blocks += [
            *_together(shown, grid, on, unit),
            finals([cell for cell in here if cell["role"] != "twin"], benchmark, grid, on, unit),
            *tests_table(here, benchmark["replications"], on, unit),
        ]
    return blocks


def _together(cells: Sequence[BenchmarkCell], grid: Sequence[int], on: str, unit: str) -> list[Block]:
    """All algorithms on common axes, one panel for each privacy level."""
    own = [cell for cell in cells if cell["role"] == "algorithm"]
    if not own:
        return []
    private = [cell for cell in own if cell["epsilon"] is not None]
    levels = sorted({cell["epsilon"] for cell in private if cell["epsilon"] is not None})
    levels = [levels[0], levels[-1]] if len(levels) > 2 else levels
    names = short_names(private)
    colors = {family: FAMILIES[index % len(FAMILIES)] for index, family in enumerate(names)}
    others = [_line(cell, cell["algorithm"], TWIN) for cell in own if cell["epsilon"] is None]
    top = max(max(present(cell["high"])) for cell in own)
    references = [cell for cell in cells if cell["role"] == "reference" and present(cell["final_mean"]) <= top]
    others += [_line(cell, cell["algorithm"], INK) for cell in references]
    panels = [
        (
            ", ".join(dict.fromkeys(regret_plots.curve_name(c, [c]) for c in private if c["epsilon"] == level)),
            [_line(c, names[family_of(c)], colors[family_of(c)]) for c in private if c["epsilon"] == level],
        )
        for level in levels
    ] or [("not private", [])]
    images = [
        (
            regret_plots.overlay(grid, [*lines, *others], top=top, unit=unit),
            f"Regret of all algorithms at {title}{on}. At the end: "
            + "; ".join(f"{line['name']} {number(float(line['band'][0][-1]))}" for line in (*lines, *others))
            + ".",
        )
        for title, lines in panels
    ]
    at = ", at the strongest and at the weakest promise" if len(levels) == 2 else ""
    gray = " Gray: not private." if any(cell["epsilon"] is None for cell in own) else ""
    dotted = " Dotted: reference policies." if references else ""
    return [
        figure_block(
            f"regret by algorithm{on}",
            f"Regret of all algorithms{on}, on common axes{at}.{gray}{dotted}",
            images,
            titles=[title for title, _ in panels],
            size="large",
        )
    ]


def _line(cell: BenchmarkCell, name: str, color: str) -> regret_plots.Line:
    """One line of a figure, as JSON has it."""
    is_reference = cell["role"] == "reference"
    return {"name": name, "color": color, "is_reference": is_reference, "band": regret_plots.band_of(cell)}


def short_names(cells: Sequence[BenchmarkCell]) -> dict[str, str]:
    """Family of private cells -> short name next to its line; with guarantee and trust only where names would be equal."""
    for n_more in range(3):
        short = {}
        for cell in cells:
            more = (cell["guarantee"], cell["privacy_model"])[:n_more]
            words = [cell["algorithm"], *more, cell["calibration"]]
            short[family_of(cell)] = " ".join([*filter(None, words), *_SETTING.findall(cell["label"])])
        if len(set(short.values())) == len(short):
            return short
    return {family: family for family in short}


def finals(listed: Sequence[BenchmarkCell], benchmark: Benchmark, grid: Sequence[int], on: str, unit: str) -> Block:
    """Table of the final regret of some cells."""
    has_least = any(cell["lower_bound"] is not None for cell in listed)
    columns = ["Cell", right("ε at δ"), right("µ spent", "accounted")]
    columns += [right(title) for title in ("Final regret", "Interval", "Quantiles", *([TIMES_LEAST] if has_least else []))]
    rows = [
        [
            cell["label"],
            epsilon_at(cell),
            number(cell["mu"]),
            *final_of(cell),
            WITHHELD if cell["final_quantiles"] is None else " / ".join(number(float(q)) for q in cell["final_quantiles"]),
            *([times_least(cell)] if has_least else []),
        ]
        for cell in listed
    ]
    return table_block(
        f"Final regret{on} after {number(grid[-1])} {unit}, in units of reward; ε as claimed, µ as composed by the ledger. "
        f"Interval: {benchmark['band']}. Quantiles: 10, 50 and 90 % of the replications. {about_least(listed)}",
        columns,
        rows,
        widths=[2.6, 0.8, 0.8, 1.1, 1.9, 1.9] + ([1.1] if has_least else []),
    )


def about_least(cells: Sequence[BenchmarkCell]) -> str:
    """Explanation of the column of lower bounds, or why there is none."""
    own = [cell for cell in cells if cell["role"] == "algorithm" and is_shown(cell)]
    if not own:
        return ""
    if not any(cell["lower_bound"] is not None for cell in own):
        return "No lower bound on the regret is known here: none holds for rows that are fixed."
    without = f" {NONE}: none is known." if any(cell["lower_bound"] is None for cell in own) else ""
    return (
        f"{TIMES_LEAST}: final regret divided by what any algorithm with the same claim must lose. That is the leading "
        f"term on this problem as rounds grow, or on the worst problem of its size. The appendix names each bound.{without}"
    )


def times_least(cell: BenchmarkCell) -> str:
    """Text of the final regret over its lower bound."""
    least = None if cell["lower_bound"] is None else float(cell["lower_bound"][-1])
    return number(present(cell["final_mean"]) / least) if least and is_shown(cell) else NONE


def final_of(cell: BenchmarkCell) -> tuple[str, str]:
    """Text of the final regret and its interval."""
    if not is_shown(cell):
        return WITHHELD, WITHHELD
    mean, low, high = regret_plots.final_of(cell)
    return number(mean), f"{number(low)} to {number(high)}"
