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

from bandana.audits.names import with_titles
from bandana.flows.annexes.operations.fresh_nights import FRESH
from bandana.flows.folder.journal import Journal
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan
from bandana.flows.results import baseline
from bandana.flows.results.baseline import Baseline
from bandana.flows.suites.alarms import AlarmRaised, served_at, slug
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.tracking.experiments import NIGHTS

SHOWN = 7
"""Nights with a bar: more do not fit into a table of Prefect's at 1280 pixels."""
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
        links = {f"runs in MLflow, experiment {spec.name}{NIGHTS}": f"bandana ui --data {json.dumps(str(folder.root))}"}
        if (report := folder.suite(spec.name) / "report.html").exists():
            links |= {"report, while that command serves it": served_at(spec.name), "its file": str(report)}
        create_markdown_artifact(
            key=f"{slug(spec.name)}-night",
            markdown=with_titles(page(spec.name, [*before, tonight], links), plan.titles),
            description=f"Last night of {spec.name}: {alarm or 'all well'}",
        )
    except Exception as error:
        get_run_logger().error("the night's page could not be written: %s", error)


def page(suite: str, nights: Sequence[Night], links: Mapping[str, str]) -> str:
    """The last night as Markdown: verdicts, what changed, the last nights of each number, and what all nights show."""
    tonight, before = nights[-1], nights[-2] if len(nights) > 1 else None
    shown = nights[-SHOWN:]
    lines = [f"# {suite}: {tonight.alarm or _all_well(tonight)}", "", _since(tonight, before), ""]
    period = f"last {len(shown)} nights"
    if tonight.verdicts:
        rows = []
        for label, verdict in tonight.verdicts.items():
            marks = "".join(_MARKS.get(night.verdicts.get(label, ""), _MISSING) for night in shown)
            rows.append([label, verdict, *([before.verdicts.get(label, "-"), marks] if before else [])])
        lines += _table(["cell", "verdict", *(["night before", period] if before else [])], rows)
        lines += ["A square is a night: ■ PASS or NOT REFUTED, □ INCONCLUSIVE, ✗ FAIL, · not audited.", ""] if before else []
    rows = []
    for label, numbers in tonight.numbers.items():
        for place, (name, value) in enumerate(numbers.items()):
            rows.append(["" if place else label, _short(name), f"{value:.4g}"])
            if before:
                earlier = before.numbers.get(label, {}).get(name)
                change = "-" if earlier is None else f"{value - earlier:+.4g}" if value != earlier else "0"
                rows[-1] += [change, sparkline([night.numbers.get(label, {}).get(name) for night in shown])]
    if rows:
        lines += _table(["cell", "quantity", "value:", *(["change:", period] if before else [])], rows)
        about = " Bars run from the least to the greatest value of these nights; a dot is a night without it."
        lines += [f"Tightness is what the audit measured, divided by the claim.{about if before else ''}", ""]
    lines += _all_nights(tonight.fresh)
    lines += [f"- {what}: {f'<{where}>' if where.startswith('http') else f'`{where}`'}" for what, where in links.items()]
    return "\n".join(lines) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; a head that ends with a colon is of a column of numbers."""
    names = [[head.removesuffix(":") for head in heads], ["--:" if head.endswith(":") else "---" for head in heads]]
    return [*(f"| {' | '.join(row)} |" for row in (*names, *rows)), ""]


def _all_nights(rows: Sequence[JsonObject]) -> list[str]:
    """Lines on what all nights say together, each with a seed of its own."""
    if not rows:
        return []
    title, first = ["## All nights together", ""], "The first night of a code calibrates its tests and adds no evidence."
    if all(row["n_nights"] == 1 for row in rows):
        return [*title, f"{first} From the second night on, this page shows what all nights together have measured.", ""]
    shown = []
    for row in rows:
        evidence = row["log10_evidence"]
        odds = f"{_odds(evidence[-1])} of {_odds(row['log10_enough'])} {sparkline(evidence[-SHOWN:])}"
        measured = f"{_short(row['quantity'])} ≥ {row['lower']:.4g}" if row["lower"] > 0 else "-"
        evidence_words = f"**refuted**, {odds}" if row["is_refuted"] else odds if row["n_nights"] > 1 else "-"
        shown.append([row["label"], measured, f"{row['claimed']:.4g}", evidence_words, str(row["n_nights"])])
    replays = " or ".join(f"{n:,}" for n in sorted({row["n_replays"] for row in rows}))
    sure = 1 - sum(10 ** -row["log10_enough"] for row in rows)
    return [
        *title,
        *_table(["cell", "measured", "claimed:", "evidence against it", "nights:"], shown),
        "Every night replays with a seed of its own, and its evidence multiplies with that of the nights before by the "
        f"same code: with at least {sure:.0%} probability no claim that holds ever meets the evidence that refutes it, and "
        f"no measured number above exceeds the true one, however many nights there are. {first} "
        f"So far there were {replays} replays on each side; bars show the evidence of the last nights.",
        "",
    ]


def _short(quantity: str) -> str:
    """The name of a quantity in symbols."""
    return quantity.replace("epsilon", "ε").replace("at delta", "at δ").replace("mu", "µ")


def _odds(log10: float) -> str:
    """A factor of evidence: as a number, or as a power of ten where that would be long."""
    return f"{10**log10:.3g}" if abs(log10) < 4 else f"10^{log10:.0f}"


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
