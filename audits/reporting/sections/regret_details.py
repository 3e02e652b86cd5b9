"""Appendix on utility: regret of each algorithm over rounds with its bounds, budget over time, and paired comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from bandana.audits.documents.benchmark import BenchmarkCell, PairedDifference
from bandana.audits.documents.fields import present
from bandana.audits.documents.report import Report
from bandana.audits.reporting.blocks import Block, Column, bullets, figure_block, heading, paragraph, table_block
from bandana.audits.reporting.figures import drawing, regret_plots
from bandana.audits.reporting.numbers import NONE, number, unit_of
from bandana.audits.reporting.sections.utility import family_of, finals, is_shown

_ONE = {"rounds": "a round", "episodes": "an episode"}


def regret_details(document: Report) -> list[Block]:
    """Regret of each algorithm, its bounds, budget over time, and paired comparisons, for each environment."""
    benchmark = present(document["benchmark"])
    cells, grid = benchmark["cells"], benchmark["grid"]
    has_several = len(document["environments"]) > 1
    blocks: list[Block] = []
    if any(map(is_shown, cells)):
        blocks.append(
            paragraph(
                f"All panels{' of one environment' if has_several else ''} have logarithmic axes and share their vertical "
                "scale. Thin dash-dotted lines: the same cells without their noise, with the same widths and forgetting. "
                "Dotted: reference policies, which any algorithm should beat."
            )
        )
    colors = drawing.level_colors([c["epsilon"] for c in cells if c["epsilon"] is not None])
    for environment in document["environments"]:
        here = [cell for cell in cells if cell["environment"] == environment["label"]]
        if not here:
            continue
        on, unit = f" on {environment['label']}" if has_several else "", unit_of([environment])
        blocks += [heading(f"On {environment['label']}")] if has_several else []
        blocks += _regret_figures([cell for cell in here if is_shown(cell)], grid, colors, on, unit)
        blocks += [*_budget(here, grid, colors, on, unit), finals(here, benchmark, grid, on, unit)]
        if cautions := [f"{cell['label']}: {cell['caution']}." for cell in here if cell["caution"]]:
            blocks.append(bullets(cautions))
        blocks += _values(here)
        blocks += _comparisons([cell for cell in here if is_shown(cell)], benchmark["comparisons"], on)
    return blocks


def _values(cells: Sequence[BenchmarkCell]) -> list[Block]:
    """Values of the final policies by logged data, where there is a log."""
    lines = []
    for cell in cells:
        if (values := cell["values"]) is None:
            continue
        estimates = [
            f"{name.upper()} {number(values[name]['value'])} [{number(values[name]['low'])}, {number(values[name]['high'])}]"
            for name in ("ips", "snips", "dr")
            if name in values
        ]
        share = f"{number(values['effective'])} of {number(values['rounds'])} rounds are effective"
        most = number(values["largest_weight"])
        lines.append(f"{cell['label']}: {', '.join(estimates)}; {share}, largest weight {most}.")
    if not lines:
        return []
    about = (
        "Mean reward of the final policies, averaged over replications, on logged rounds that nothing was fitted to, with "
        "95 % normal intervals over rounds: too narrow where few rounds are effective. IPS: inverse propensity scores; "
        "SNIPS: self-normalized; DR: doubly robust."
    )
    return [paragraph(about), bullets(lines)]


def _regret_figures(
    cells: Sequence[BenchmarkCell], grid: Sequence[int], colors: dict[float, str], on: str, unit: str
) -> list[Block]:
    compared = [cell for cell in cells if cell["role"] != "reference"] or cells
    top = max((max(present(cell["high"])) for cell in compared), default=1.0)
    highest = [max(present(cell["bound"])) for cell in cells if cell["bound"] is not None]
    ceiling = max([*highest, *(max(present(cell["high"])) for cell in cells if cell["role"] == "reference")], default=0.0)
    blocks = []
    for title, drawn in _panels(cells):
        image = regret_plots.regret_curves(grid, drawn, colors, top=top, ceiling=ceiling, unit=unit)
        bounded, least = ([cell for cell in drawn if cell[bound] is not None] for bound in ("bound", "lower_bound"))
        thin = " Thin in a cell's color: without its noise." if any(cell["twin_of"] is not None for cell in drawn) else ""
        dashed = " Dashed: the bound stated by its source, listed below." if bounded else ""
        dotted = " Dotted in a cell's color: a lower bound for any algorithm with its claim, listed below." if least else ""
        caption = f"Regret of {title}{on}. Gray: not private.{thin}{dashed}{dotted}"
        described = _describe_regret(f"{title}{on}", drawn, grid[-1], unit)
        blocks.append(figure_block(f"regret of {title}{on}", caption, [(image, described)], size="medium"))
        texts: dict[str | None, list[str]] = {}  # of one theorem for several levels, the words stand once
        for cell in bounded:
            texts.setdefault(cell["bound_text"], []).append(_ending(cell, drawn, "most", cell["bound"]))
        for cell in least:
            texts.setdefault(cell["lower_bound_text"], []).append(_ending(cell, drawn, "least", cell["lower_bound"]))
        listed = [f"{'; '.join(ends)}: {text}." for text, ends in texts.items()]
        if listed:
            blocks.append(bullets(listed))
    return blocks


def _ending(cell: BenchmarkCell, among: Sequence[BenchmarkCell], at: str, bound: list[float] | None) -> str:
    """Name of the line with a bound's last value."""
    return f"{regret_plots.curve_name(cell, among)}, at {at} {number(float(present(bound)[-1]))} at the end"


def _panels(cells: Sequence[BenchmarkCell]) -> list[tuple[str, list[BenchmarkCell]]]:
    """One panel per family, each with its twins and the reference rows; the twins alone if nothing is private."""
    references = [cell for cell in cells if cell["role"] == "reference"]
    twins = [cell for cell in cells if cell["epsilon"] is None and cell["role"] == "algorithm"]
    private = [cell for cell in cells if cell["epsilon"] is not None]
    if not private:
        return [("the algorithms without privacy", twins + references)] if twins + references else []
    panels = []
    for family in dict.fromkeys(map(family_of, private)):
        own = [cell for cell in private if family_of(cell) == family]
        same = [twin for twin in twins if twin["algorithm"] == own[0]["algorithm"]]
        silent = [cell for cell in cells if cell["twin_of"] in {each["label"] for each in own}]
        panels.append((family, references + (same or twins) + silent + own))
    return panels


def _budget(
    cells: Sequence[BenchmarkCell], grid: Sequence[int], colors: dict[float, str], on: str, unit: str
) -> list[Block]:
    spending = [cell for cell in cells if cell["mu_spent"] is not None]
    families = dict.fromkeys(map(family_of, spending))
    images, titles = [], []
    for family in families:
        own = [cell for cell in spending if family_of(cell) == family]
        spent = "; ".join(
            f"{regret_plots.curve_name(c, own)}: {number(float(present(c['mu_spent'])[-1]))} of {number(c['mu_claimed'])}"
            for c in own
        )
        described = f"Budget spent against {unit} by {family}{on}. At the end, spent of claimed, as µ: {spent}."
        images.append((regret_plots.budget_over_time(grid, own, colors, unit), described))
        titles.append(family)
    if not images:
        return []
    return [
        figure_block(
            f"budget over time{on}",
            f"Budget over time{on}: composition of all releases before {_ONE[unit]} for the worst record, by the ledger "
            "(solid steps), and the source's claim for the whole run (dotted). A solid line must not rise above its "
            "dotted one.",
            images,
            titles=titles,
            size="large",
        )
    ]


def _comparisons(cells: Sequence[BenchmarkCell], comparisons: Sequence[PairedDifference], on: str) -> list[Block]:
    """Paired differences of each cell to its twin, to the first calibration, and to the reference rows."""
    labels = {cell["label"]: cell for cell in cells}
    here = [pair for pair in comparisons if pair["cell"] in labels and pair["other"] in labels]
    if not here:
        return []
    references = dict.fromkeys(labels[f["other"]]["algorithm"] for f in here if f["kind"] == "reference")
    kinds = [kind for kind in ("noise", "calibration") if any(f["kind"] == kind for f in here)]
    heads = {"noise": "Cost of its noise", "calibration": "Against the first calibration"}
    columns: list[Column] = ["Cell", *(heads[kind] for kind in kinds), *(f"Against {name}" for name in references)]
    rows = []
    for label in dict.fromkeys(pair["cell"] for pair in here):
        own = [pair for pair in here if pair["cell"] == label]
        by_kind: dict[str, str] = {f["kind"]: _difference(f, f["kind"] == "noise") for f in own if f["kind"] != "reference"}
        by_name = {labels[f["other"]]["algorithm"]: _difference(f) for f in own if f["kind"] == "reference"}
        rows.append([label, *(by_kind.get(kind, NONE) for kind in kinds), *(by_name.get(name, NONE) for name in references)])
    return [
        table_block(
            f"Paired comparisons{on}: final regret of the cell minus that of the other, replication by replication on "
            "common random numbers, with the 95 % interval of the mean difference. Cost of its noise: the other is the same "
            "cell without noise. A difference is resolved if its interval excludes 0. No interval is shown where its ends "
            "have the digits of the mean.",
            columns,
            rows,
            widths=[2.0] + [1.9] * (len(columns) - 1),
        )
    ]


def verdict_of(pair: PairedDifference) -> str:
    """Reading of a paired difference in one word: worse, better, or not resolved."""
    return "worse" if pair["low"] > 0 else "better" if pair["high"] < 0 else "not resolved"


def _difference(pair: PairedDifference, is_cost: bool = False) -> str:
    mean, low, high = (number(float(pair[name])) for name in ("mean", "low", "high"))
    verdict = verdict_of(pair)
    word = {"worse": "resolved", "better": "resolved"}.get(verdict, verdict) if is_cost else verdict
    return f"{mean}, {word}" if mean == low == high else f"{mean} ({low} to {high}), {word}"


def _describe_regret(title: str, cells: Sequence[BenchmarkCell], rounds: int, unit: str) -> str:
    ends = "; ".join(f"{regret_plots.curve_name(cell, cells)}: {number(regret_plots.final_of(cell).mean)}" for cell in cells)
    return f"Regret of {title} against {unit}. After {number(rounds)} {unit}: {ends}."
