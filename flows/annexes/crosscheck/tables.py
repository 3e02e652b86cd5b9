"""`bandana crosscheck`: what other people's accountants say of our ledgers, and what is known to be wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bandana.flows.annexes.crosscheck.accountants import Expected
from bandana.flows.annexes.crosscheck.library_defects import Finding, Kind, Status
from bandana.flows.annexes.crosscheck.second_opinions import LIBRARIES, REFERENCE, CrossCheck, Opinion, crosscheck
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core.checks import small_delta

WIDTH = 100
"""Columns of the tables where the terminal does not say."""

_SIGNS = {Expected.EXACT: "=", Expected.UPPER: "≥", Expected.LOWER: "≤", Expected.INTERVAL: "∋"}
_SHORT = {"analytic Gaussian": "exact", "PLD optimistic": "PLD", "PLD pessimistic": "PLD", "high precision": "value"}
_LEGEND = (
    "Epsilon in nats. A library's epsilon must be, against ours: = equal; ≤ at most (its optimistic estimate); ≥ at least "
    "(its upper bound); ∋ an interval around it (the upper end is shown). Known values have 22 digits: ours is equal where "
    "composition is exact, else at most 1.1e-5 above. A letter says why there is no opinion. "
    '"Gaussian 5 x 100": 100 releases of noise multiplier 5.'
)


def check(deltas: Sequence[float] | None) -> CrossCheck:
    """Asks the libraries for epsilons at the deltas, or at 1e-5, with a line of progress on a terminal.

    Raises:
      SpecError: a delta is not above 0 and at most 0.1.
    """
    wanted = tuple(deltas or (1e-5,))
    try:
        for delta in wanted:
            small_delta("--delta", delta)
    except ValueError as error:
        raise SpecError(str(error)) from error
    progress = Console(stderr=True)
    with progress.status("asking dp-accounting and opacus") as status:
        return crosscheck(wanted, lambda what: status.update(f"asking dp-accounting and opacus: {escape(what)}"))


def to_json(result: CrossCheck) -> JsonObject:
    """Plain numbers, strings and null, for machines; what is not finite is null."""
    return {
        "versions": dict(result.versions),
        "deltas": list(result.deltas),
        "is_sound": result.is_sound,
        "counts": _counts(result),
        "opinions": [_finite(asdict(opinion)) for opinion in result.opinions],
        "not_private": list(result.not_private),
        "refused": list(result.refused),
        "without_second_opinion": list(result.unopposed),
        "defects": [_finite(asdict(finding)) for finding in result.findings],
    }


def render(result: CrossCheck) -> RenderableType:
    """The tables for a terminal of at least 100 columns."""
    parts: list[RenderableType] = []
    for delta in result.deltas:
        parts += [*_opinions_table([o for o in result.opinions if o.delta == delta], delta), ""]
    parts += [Text(_LEGEND, style="dim"), "", _defects_table(result.findings), "", *_summary(result)]
    return Group(*parts)


def _counts(result: CrossCheck) -> dict[str, int]:
    holds = [opinion.holds for opinion in result.opinions]
    return {
        "ledgers": len({opinion.ledger for opinion in result.opinions}),
        "hold": holds.count(True),
        "failed": holds.count(False),
        "not_applicable": holds.count(None),
        "defects_present": sum(finding.status is Status.PRESENT for finding in result.findings),
    }


def _finite(tree: JsonObject) -> JsonObject:
    return {key: None if isinstance(x, float) and not math.isfinite(x) else x for key, x in tree.items()}


def _table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1, 0, 0), header_style="bold"
    )  # fmt: skip


def _opinions_table(opinions: Sequence[Opinion], delta: float) -> Iterable[RenderableType]:
    """One row a ledger, one column an accountant, and the reasons why some do not apply."""
    columns = list(dict.fromkeys((opinion.library, opinion.accountant) for opinion in opinions))
    columns.sort(key=lambda column: column[0] == REFERENCE)
    cells = {(opinion.ledger, opinion.library, opinion.accountant): opinion for opinion in opinions}
    table = _table(f"Second opinions at delta = {delta:g}")
    table.add_column("\nledger", overflow="fold", min_width=24)
    table.add_column("\nours", justify="right", no_wrap=True)
    for library, accountant in columns:
        relations = {o.expected for o in opinions if (o.library, o.accountant) == (library, accountant)}
        sign = "≈" if len(relations) > 1 else _SIGNS[next(iter(relations))]
        short = {"dp-accounting": "dp-acc.", REFERENCE: "known"}.get(library, library)
        table.add_column(f"{short}\n{_SHORT.get(accountant, accountant)} {sign}", justify="right", no_wrap=True)
    reasons: dict[str, str] = {}
    for ledger in dict.fromkeys(opinion.ledger for opinion in opinions):
        row = [cells[ledger, *column] for column in columns]
        table.add_row(Text(ledger), Text(_number(row[0].ours), style="bold"), *(_cell(o, reasons) for o in row))
    yield table
    yield Padding(Text("\n".join(f"{letter}  {reason}" for reason, letter in reasons.items()), style="dim"), (0, 0, 0, 1))


def _cell(opinion: Opinion, reasons: dict[str, str]) -> Text:
    if opinion.holds is None:
        letter = chr(ord("a") + len(reasons) % 26) * (1 + len(reasons) // 26)
        return Text(reasons.setdefault(opinion.note, letter), style="dim")
    if opinion.holds:
        return Text(_number(opinion.epsilon))
    return Text(f"✗ {'error' if opinion.epsilon is None else _number(opinion.epsilon)}", style="bold red")


def _number(value: float | None, digits: int | None = None) -> str:
    """A number with 5 digits, or 4 below 1, which is as wide as a table of 100 columns allows."""
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value) or not value:
        return "infinite" if value else "0"
    return f"{value:#.{digits or (5 if value >= 1 else 4)}g}".rstrip(".")


def _defects_table(findings: Sequence[Finding]) -> Table:
    table = _table("Known defects of the libraries, measured now")
    table.add_column("library", no_wrap=True)
    table.add_column("says", justify="right", no_wrap=True)
    table.add_column("right", justify="right", no_wrap=True)
    table.add_column("it is", no_wrap=True)
    table.add_column("what")
    for finding in findings:
        wrong = finding.status is Status.PRESENT
        style = "yellow" if wrong and finding.kind is Kind.TOO_LOW else ""
        verdict = {Status.PRESENT: str(finding.kind), Status.FIXED: "fixed", Status.UNKNOWN: "unknown"}[finding.status]
        note = f" ({finding.note})" if finding.value is None and finding.note else ""
        table.add_row(
            finding.library, _number(finding.value, 7), _number(finding.right, 7), Text(verdict, style=style),
            Text(f"{finding.what}{note}" if wrong else f"{finding.status}: {finding.what}{note}"),
        )  # fmt: skip
    return table


def _summary(result: CrossCheck) -> Iterable[RenderableType]:
    counts = _counts(result)
    yield Text("Asked: " + ", ".join(f"{name} {result.versions[name]}" for name in LIBRARIES) + ".")
    if result.not_private:
        yield Text("No noise to account: " + ", ".join(result.not_private) + ".")
    for refused in result.refused:
        yield Text(f"Not asked, as it cannot be built: {refused}.")
    if result.unopposed:
        yield Text("No second opinion: " + ", ".join(result.unopposed) + ".", style="yellow")
    for opinion in result.failed:
        yield Text(f"✗ {_explain(opinion)}", style="bold red")
    checks = f"{counts['hold'] + counts['failed']} checks on {counts['ledgers']} ledgers"
    outcome = f"{counts['failed']} failed" if result.failed else "all hold"
    yield Text(f"{checks}: {outcome}. {counts['not_applicable']} opinions do not apply.", style="bold")


def _explain(opinion: Opinion) -> str:
    where = f"{opinion.ledger} at delta = {opinion.delta:g}, {opinion.library} {opinion.accountant}"
    if opinion.epsilon is None:
        return f"{where}: {opinion.note}"
    assert opinion.lowest is not None
    assert opinion.highest is not None
    return f"{where}: ours is {opinion.ours:.12g}, it allows {opinion.lowest:.12g} to {opinion.highest:.12g}"
