"""Report section on utility: regret, budget over time, and the cost of privacy, by environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bandana.audits.reporting import drawing, regret_plots
from bandana.audits.reporting.blocks import Block, bullets, figure_block, heading, paragraph, right, table_block
from bandana.audits.reporting.numbers import number, unit_of

Cell = dict[str, Any]
_SETTING = re.compile(r"(?<!\S)(?:alpha|beta)=\S+")
_WITHHELD = "withheld"
_ONE = {"rounds": "a round", "episodes": "an episode"}


def is_shown(cell: Cell) -> bool:
    """Whether the regret of a cell is in the document."""
    return cell["mean"] is not None


def family_of(cell: Cell) -> str:
    """Name of a cell without its privacy level: cells of one family form one line of the frontier."""
    calibration = f", calibration {cell['calibration']}" if cell["calibration"] else ""
    settings = "".join(f", {setting}" for setting in _SETTING.findall(cell["label"]))
    guarantee = f", {cell['guarantee']}" if cell["guarantee"] else ""
    return f"{cell['algorithm']}{calibration} ({cell['privacy_model']} trust{guarantee}){settings}"


def utility(document: dict[str, Any]) -> list[Block]:
    """Regret on each environment, budget over time, and regret against epsilon."""
    benchmark = document["benchmark"]
    if benchmark is None:
        return [paragraph("No benchmark was run: this report makes no statement about utility.")]
    cells, grid = benchmark["cells"], benchmark["grid"]
    has_several, units = len(document["environments"]) > 1, unit_of(document["environments"])
    shown = any(map(is_shown, cells))
    blocks: list[Block] = []
    if shown:
        blocks.append(
            paragraph(
                f"Cumulative regret over {number(grid[-1])} {units}. Lines: mean over {number(benchmark['replications'])} "
                f"replications. Bands: {benchmark['band']}. Left: linear axes; right: the same on logarithmic axes. All "
                f"linear panels{' of one environment' if has_several else ''} share their vertical scale, and so do all "
                "logarithmic ones."
            )
        )
    if benchmark["withheld"] is not None:
        blocks.append(paragraph(benchmark["withheld"]))
    colors = drawing.level_colors([c["epsilon"] for c in cells if c["epsilon"] is not None])
    for environment in document["environments"]:
        here = [cell for cell in cells if cell["environment"] == environment["label"]]
        if not here:
            continue
        on, unit = f" on {environment['label']}" if has_several else "", unit_of([environment])
        blocks += [heading(f"On {environment['label']}")] if has_several else []
        blocks += _regret_figures([cell for cell in here if is_shown(cell)], grid, colors, on, unit)
        blocks += _frontier([cell for cell in here if is_shown(cell)], benchmark, on)
        blocks += _budget(here, grid, colors, on, unit)
        blocks.append(_table(here, benchmark, grid, on, unit))
    return blocks


def _regret_figures(cells: Sequence[Cell], grid: Sequence[int], colors: dict[float, str], on: str, unit: str) -> list[Block]:
    top = max((max(cell["high"]) for cell in cells), default=1.0)
    ceiling = max((max(cell["bound"]) for cell in cells if is_bounded(cell)), default=0.0)
    blocks = []
    for title, drawn in _panels(cells):
        described = _describe_regret(f"{title}{on}", drawn, grid[-1], unit)
        images = [
            (
                regret_plots.regret_curves(grid, drawn, colors, is_log=is_log, top=top, ceiling=ceiling, unit=unit),
                described + (" Logarithmic axes." if is_log else " Linear axes."),
            )
            for is_log in (False, True)
        ]
        bounded = [cell for cell in drawn if is_bounded(cell)]
        dashed = " Dashed, on logarithmic axes: the bound stated by its source, listed below." if bounded else ""
        caption = f"Regret of {title}{on}. Dash-dotted: not private.{dashed}"
        blocks.append(figure_block(caption, images, size="large"))
        if bounded:
            blocks.append(bullets([f"{_bound_name(cell, drawn)}: {cell['bound_text']}." for cell in bounded]))
    return blocks


def is_bounded(cell: Cell) -> bool:
    """Whether the document holds a bound on the cell's regret."""
    return cell["bound"] is not None


def _bound_name(cell: Cell, among: Sequence[Cell]) -> str:
    """Name of the line with the bound's last value."""
    return f"{regret_plots.curve_name(cell, among)}, at most {number(float(cell['bound'][-1]))} at the end"


def _panels(cells: Sequence[Cell]) -> list[tuple[str, list[Cell]]]:
    """One panel per family, each with its twins; the twins alone if nothing is private."""
    twins = [cell for cell in cells if cell["epsilon"] is None]
    private = [cell for cell in cells if cell["epsilon"] is not None]
    if not private:
        return [("the algorithms without privacy", twins)] if twins else []
    panels = []
    for family in dict.fromkeys(map(family_of, private)):
        own = [cell for cell in private if family_of(cell) == family]
        same = [twin for twin in twins if twin["algorithm"] == own[0]["algorithm"]]
        panels.append((family, (same or twins) + own))
    return panels


def _frontier(cells: Sequence[Cell], benchmark: dict[str, Any], on: str) -> list[Block]:
    private = [cell for cell in cells if cell["epsilon"] is not None]
    families = {
        family: sorted((c for c in private if family_of(c) == family), key=lambda c: float(c["epsilon"]))
        for family in dict.fromkeys(map(family_of, private))
    }
    if not any(len({c["epsilon"] for c in own}) > 1 for own in families.values()):
        return []
    twins = [cell for cell in cells if cell["epsilon"] is None]
    named = _short_names(private)
    ends = [
        f"{family}: " + ", ".join(f"{number(float(c['final_mean']))} at ε = {number(c['epsilon'])}" for c in own)
        for family, own in families.items()
    ] + [f"{twin['label']}, not private: {number(float(twin['final_mean']))}" for twin in twins]
    band = " Gray band: without privacy." if twins else ""
    return [
        figure_block(
            f"Cost of privacy{on}: final regret against ε, as stated by the source of each algorithm. Bars: "
            f"{benchmark['band']}.{band}",
            [
                (
                    regret_plots.frontier({named[f]: own for f, own in families.items()}, twins),
                    f"Final regret against epsilon{on}. {'; '.join(ends)}.",
                )
            ],
            size="medium",
        )
    ]


def _short_names(cells: Sequence[Cell]) -> dict[str, str]:
    """Family -> short name next to its line."""
    short = {}
    for cell in cells:
        settings = _SETTING.findall(cell["label"])
        short[family_of(cell)] = " ".join([cell["algorithm"], *filter(None, [cell["calibration"]]), *settings])
    return short if len(set(short.values())) == len(short) else {family: family for family in short}


def _budget(cells: Sequence[Cell], grid: Sequence[int], colors: dict[float, str], on: str, unit: str) -> list[Block]:
    spending = [cell for cell in cells if cell["mu_spent"] is not None]
    families = dict.fromkeys(map(family_of, spending))
    images, titles = [], []
    for family in families:
        own = [cell for cell in spending if family_of(cell) == family]
        said = "; ".join(
            f"{regret_plots.curve_name(c, own)}: {number(float(c['mu_spent'][-1]))} of {number(c['mu_claimed'])}"
            for c in own
        )
        described = f"Budget spent against {unit} by {family}{on}. At the end, spent of claimed, as µ: {said}."
        images.append((regret_plots.budget_over_time(grid, own, colors, unit), described))
        titles.append(family)
    if not images:
        return []
    return [
        figure_block(
            f"Budget over time{on}: composition of all releases before {_ONE[unit]} for the worst record, by the ledger "
            "(solid steps), and the source's claim for the whole run (dotted). A solid line must not rise above its "
            "dotted one.",
            images,
            titles=titles,
            size="large",
        )
    ]


def _table(cells: Sequence[Cell], benchmark: dict[str, Any], grid: Sequence[int], on: str, unit: str) -> Block:
    twins = [cell for cell in cells if cell["epsilon"] is None and is_shown(cell)]
    twin = twins[0]["final_mean"] if len(twins) == 1 and twins[0]["final_mean"] > 0 else None
    columns = ["Cell", "Trust", right("ε"), right("µ claimed", "claimed"), right("µ spent", "accounted")]
    columns += [right(title) for title in ("Runs", "Final regret", "Interval", *(["Times the twin"] if twin else []))]
    rows = [
        [
            cell["label"],
            cell["privacy_model"],
            number(cell["epsilon"]),
            number(cell["mu_claimed"]),
            number(cell["mu"]),
            number(cell["replications"]),
            *final_of(cell),
        ]
        + ([f"{cell['final_mean'] / twin:.2f}" if is_shown(cell) else _WITHHELD] if twin else [])
        for cell in cells
    ]
    note = " Times the twin: final regret divided by that of the non-private twin." if twin else ""
    return table_block(
        f"Final regret{on} after {number(grid[-1])} {unit}, in units of reward; ε and µ as claimed by the source of each "
        f"cell, µ spent as composed by the ledger. Interval: {benchmark['band']}.{note}",
        columns,
        rows,
        widths=[2.8, 1.0, 0.8, 1.1, 0.9, 0.9, 1.2, 1.9] + ([1.1] if twin else []),
    )


def final_of(cell: Cell) -> tuple[str, str]:
    """Text of the final regret and its interval."""
    if not is_shown(cell):
        return _WITHHELD, _WITHHELD
    ends = (number(float(cell[key])) for key in ("final_low", "final_high"))
    return number(float(cell["final_mean"])), " to ".join(ends)


def _describe_regret(title: str, cells: Sequence[Cell], rounds: int, unit: str) -> str:
    ends = "; ".join(f"{regret_plots.curve_name(cell, cells)}: {number(float(cell['final_mean']))}" for cell in cells)
    return f"Regret of {title} against {unit}. After {number(rounds)} {unit}: {ends}."
