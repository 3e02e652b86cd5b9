"""The diary of a scheduled suite: one line a night, and the page that each night leaves in Prefect, green or not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State

from bandana.flows.annexes.operations.fresh_nights import FRESH
from bandana.flows.folder.journal import Journal
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan
from bandana.flows.results import baseline
from bandana.flows.results.baseline import Baseline
from bandana.flows.suites.alarms import AlarmRaised, slug
from bandana.flows.texts.json_text import JsonObject

SHOWN = 30
_NIGHT = "night"
_BARS = "▁▂▃▄▅▆▇█"
_MISSING = "·"
_MARKS = {"PASS": "■", "NOT REFUTED": "■", "INCONCLUSIVE": "□", "FAIL": "✗"}


@dataclass(frozen=True)
class Night:
    """Findings of one night; of regret only what the spec declares public.

    Attributes:
      time: when it ended.
      code: SHA-256 of the sources.
      alarm: what was wrong, in one line; empty where nothing was.
      verdicts: of each audited cell.
      numbers: cell -> quantity -> value, such as `final regret`.
      fresh: what all nights together say of each private cell, see `fresh_nights.Accumulated`.
    """

    time: datetime
    code: str
    alarm: str
    verdicts: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    fresh: Sequence[JsonObject] = ()

    @classmethod
    def of(cls, baseline: Baseline, alarm: str, fresh: Sequence[JsonObject] = ()) -> Night:
        """The present results."""
        verdicts, numbers = {}, {}
        for cell in baseline.cells:
            estimates = [] if cell.regret is None else [cell.regret.final]
            if cell.audit is not None:
                verdicts[cell.label] = str(cell.audit.verdict)
                estimates += cell.audit.tightness
            numbers[cell.label] = {estimate.quantity: estimate.value for estimate in estimates}
        return cls(datetime.now(UTC), baseline.code, alarm, verdicts, numbers, fresh)


def diary(folder: DataFolder, suite: str) -> list[Night]:
    """All nights of a suite, oldest first; lines that are none are left out."""
    nights = []
    for line in Journal(_place(folder, suite)).read():
        try:
            facts = {name: line[name] for name in ("code", "alarm", "verdicts", "numbers")} | {"fresh": line.get(FRESH, ())}
            nights.append(Night(datetime.fromisoformat(line["time"]), **facts))
        except (KeyError, TypeError, ValueError):
            continue
    return nights


def _place(folder: DataFolder, suite: str) -> Path:
    return folder.suite(suite) / "nights.jsonl"


def close(plan: Plan, text: str, folder: DataFolder, ended: JsonObject | State[AlarmRaised]) -> None:
    """Writes the night into the diary, and its page; what cannot be written is logged, and hides no result."""
    spec = plan.spec
    try:
        alarm = ended.message or "it failed" if isinstance(ended, State) else ""
        result = ended.data if isinstance(ended, State) else None
        done = result.done if isinstance(result, AlarmRaised) else ended if isinstance(ended, dict) else {}
        tonight = Night.of(baseline.record(plan, text, Store(folder.results)), alarm, done.get(FRESH, ()))
        before = diary(folder, spec.name)
        facts = {name: value for name, value in asdict(tonight).items() if name != "time"}
        facts[FRESH] = [row | {"log10_evidence": row["log10_evidence"][-1:]} for row in facts[FRESH]]
        Journal(_place(folder, spec.name)).write(_NIGHT, **facts)
        reports = {kind: folder.suite(spec.name) / f"report.{kind}" for kind in ("html", "pdf", "json")}
        links = {f"report ({kind})": str(path) for kind, path in reports.items() if path.exists()}
        links["runs in MLflow"] = f"bandana ui --data {json.dumps(str(folder.root))}"
        create_markdown_artifact(
            key=f"{slug(spec.name)}-night",
            markdown=page(spec.name, [*before, tonight], links),
            description=f"Last night of {spec.name}: {alarm or 'all well'}",
        )
    except Exception as error:
        get_run_logger().error("the night's page could not be written: %s", error)


def page(suite: str, nights: Sequence[Night], links: Mapping[str, str]) -> str:
    """The last night as Markdown: verdicts, what changed, the last 30 nights of each number, and what all nights show."""
    tonight, before = nights[-1], nights[-2] if len(nights) > 1 else None
    shown = nights[-SHOWN:]
    lines = [f"# {suite}: {tonight.alarm or _all_well(tonight)}", "", _since(tonight, before), ""]
    if tonight.verdicts:
        lines += ["| cell | verdict | night before | nights |", "|---|---|---|---|"]
        for label, verdict in tonight.verdicts.items():
            then = (before.verdicts if before else {}).get(label, "-")
            marks = "".join(_MARKS.get(night.verdicts.get(label, ""), _MISSING) for night in shown)
            lines.append(f"| {label} | {verdict} | {then} | {marks} |")
        lines += ["", "A square is a night: ■ PASS or NOT REFUTED, □ INCONCLUSIVE, ✗ FAIL, · not audited.", ""]
    rows = [(label, name, value) for label, numbers in tonight.numbers.items() for name, value in numbers.items()]
    if rows:
        lines += [f"| cell | quantity | value | change | {len(shown)} nights |", "|---|---|--:|--:|---|"]
        for label, name, value in rows:
            earlier = None if before is None else before.numbers.get(label, {}).get(name)
            change = "-" if earlier is None else f"{value - earlier:+.4g}" if value != earlier else "0"
            series = [night.numbers.get(label, {}).get(name) for night in shown]
            lines.append(f"| {label} | {name} | {value:.4g} | {change} | {sparkline(series)} |")
        lines += ["", "Bars run from the least to the greatest value of these nights; a dot is a night without it.", ""]
    lines += _all_nights(tonight.fresh)
    lines += [f"- {what}: `{where}`" for what, where in links.items()]
    return "\n".join(lines) + "\n"


def _all_nights(rows: Sequence[JsonObject]) -> list[str]:
    """Lines on what all nights say together, each with a seed of its own."""
    if not rows:
        return []
    lines = [
        "## All nights together",
        "",
        "| cell | measured so far | claimed | evidence against it | nights (replays) | trend |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        evidence = row["log10_evidence"]
        lines.append(
            f"| {row['label']} | {row['quantity']} ≥ {row['lower']:.4g} | {row['claimed']:.4g} "
            f"| {'**refuted**, ' if row['is_refuted'] else ''}10^{evidence[-1]:.2f} of 10^{row['log10_enough']:.2f} "
            f"| {row['n_nights']} ({row['n_replays']:,}) | {sparkline(evidence[-SHOWN:])} |"
        )
    sure = 1 - sum(10 ** -row["log10_enough"] for row in rows)
    return [
        *lines,
        "",
        "Every night replays with a seed of its own, and its evidence multiplies with that of the nights before by the "
        f"same code: with at least {sure:.0%} probability no claim that holds ever meets the evidence that refutes it, and "
        "no measured number above exceeds the true one, however many nights there are. The first night only teaches what "
        "to bet on. Replays are those of each side; bars show the evidence of the last nights.",
        "",
    ]


def _all_well(night: Night) -> str:
    if not night.verdicts:
        return "all well, no audits"
    counts = {verdict: list(night.verdicts.values()).count(verdict) for verdict in dict.fromkeys(night.verdicts.values())}
    return "all well, " + ", ".join(f"{count} x {verdict}" for verdict, count in counts.items())


def _since(night: Night, before: Night | None) -> str:
    if before is None:
        return "The first night: there is nothing to compare with."
    code = "the same code" if night.code == before.code else f"other code ({before.code[:12]} -> {night.code[:12]})"
    ended = "all was well" if not before.alarm else before.alarm
    return f"The night before, {before.time:%Y-%m-%d %H:%M} UTC: {ended}; {code}."


def sparkline(values: Sequence[float | None]) -> str:
    """A bar for each value, from the least to the greatest; all at half height where they are equal, a dot for None."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if high <= low:
        return "".join(_MISSING if value is None else _BARS[len(_BARS) // 2] for value in values)
    top = len(_BARS) - 1
    return "".join(_MISSING if value is None else _BARS[round(top * (value - low) / (high - low))] for value in values)
