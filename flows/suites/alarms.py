"""Alarms: an audit that did not pass, or results worse than the baseline, as events, artifacts and a failed flow run.

An alarm is raised after all steps of a run, so that nothing that was finished is lost. It tells what the report tells:
numbers of audits, and of regret only what the spec declares public.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from prefect import get_run_logger, tags
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.events import emit_event
from prefect.events.filters import EventFilter, EventIDFilter
from prefect.states import Failed

from bandana.audits.documents.audit import ROLES, AuditEntry
from bandana.audits.names import with_titles
from bandana.flows.results.gate import Row, tell
from bandana.flows.servers.temporary_server import without_heartbeats
from bandana.flows.texts.json_text import JsonObject

AUDIT_FAILED, GATE_FAILED, NIGHTS_FAILED = "bandana.audit.failed", "bandana.gate.failed", "bandana.nights.failed"
_PATIENCE = 20.0  # seconds; a temporary server stores events every five


class AlarmRaised(RuntimeError):  # noqa: N818  (it says what happened)
    """A run did all its steps, and something is wrong with what it found.

    Attributes:
      done: what the run returns otherwise.
    """

    def __init__(self, message: str, done: JsonObject) -> None:
        super().__init__(message, done)
        self.done = done

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Findings:
    """Findings of a run of a suite, as alarms need them.

    Attributes:
      audits: entries of the report, see `bandana.audits.summary.summarize`.
      rows: comparisons of the regression gate.
      notes: what the gate could not compare, in words.
      files: where the report lies, by kind.
      fresh: what the nights together say of each cell, a row each with its evidence.
      titles: label of a cell -> what people read.
    """

    suite: str
    audits: Sequence[AuditEntry] = ()
    rows: Sequence[Row] = ()
    notes: Sequence[str] = ()
    files: Mapping[str, str] | None = None
    fresh: Sequence[JsonObject] = ()
    titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> list[AuditEntry]:
        """The audits that did not pass."""
        return [entry for entry in self.audits if entry["verdict"] not in ("PASS", "NOT REFUTED")]

    @property
    def worse(self) -> list[Row]:
        """The comparisons that fail the gate."""
        return [row for row in self.rows if row["is_worse"]]

    @property
    def refuted(self) -> list[JsonObject]:
        """The cells whose claim the nights together refute."""
        return [row for row in self.fresh if row["is_refuted"]]

    @property
    def summary(self) -> str:
        """One line; empty where nothing is wrong."""
        parts = []
        if self.failed:
            parts.append(f"{len(self.failed)} of {len(self.audits)} audits did not pass")
        if self.worse:
            parts.append(f"{len(self.worse)} of {len(self.rows)} comparisons are worse than the baseline")
        if self.refuted:
            parts.append(f"the nights together refute {len(self.refuted)} of {len(self.fresh)} claims")
        return "; ".join(parts)


def conclude(findings: Findings, done: JsonObject) -> JsonObject | State[AlarmRaised]:
    """Result of a flow: `done` where all is well, else a failed state, with the alarm raised; call it last, in a flow.

    Who calls the flow gets `AlarmRaised`, which carries `done`.
    """
    if not findings.summary:
        return done
    raise_alarm(findings)
    return Failed(message=f"{findings.suite}: {findings.summary}", data=AlarmRaised(findings.summary, done))


def with_alarm(run: Callable[[], Any]) -> JsonObject:
    """Result that a flow returns, also where it raised an alarm, which stands under `alarm` in one line; else None does."""
    try:
        with without_heartbeats(), tags("bandana", "by-hand"):  # the pages of Prefect tell it from what runs by the clock
            return {**run(), "alarm": None}
    except AlarmRaised as alarm:
        return {**alarm.done, "alarm": str(alarm)}


def raise_alarm(findings: Findings) -> None:
    """Emits the events and writes the artifacts; a server that takes neither is told in the log, and hides no result."""
    name = slug(findings.suite)
    try:
        sent = [emit_event(**event) for event in events(findings)]
        words = with_titles(markdown(findings), findings.titles)
        create_markdown_artifact(key=f"{name}-alarm", markdown=words, description=f"What broke in {findings.suite}")
        shown = with_titles(table(findings), findings.titles)
        create_table_artifact(key=f"{name}-cells", table=shown, description=f"Every cell of {findings.suite}")
        _wait_until_stored([event.id for event in sent if event is not None])
    except Exception as error:
        get_run_logger().error("the alarm could not be stored in full: %s", error)


def slug(text: str) -> str:
    """A text turned into a valid artifact key: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "suite"


def events(findings: Findings) -> list[JsonObject]:
    """One event an audit that did not pass, and one of the gate, as `emit_event` takes them."""
    suite, events = findings.suite, []
    for entry in findings.failed:
        payload = {"label": entry["label"], "verdict": entry["verdict"], **entry["main"], "reasons": list(entry["reasons"])}
        place = f"audit.{slug(suite)}.{slug(entry['label'])}"
        events.append(_event(AUDIT_FAILED, suite, place, findings.titles.get(entry["label"], entry["label"]), payload))
    if findings.worse:
        rows = {"rows": [dict(row) for row in findings.worse]}
        events.append(_event(GATE_FAILED, suite, f"gate.{slug(suite)}", "regression gate", rows))
    if findings.refuted:
        rows = {"rows": [dict(row) for row in findings.refuted]}
        events.append(_event(NIGHTS_FAILED, suite, f"nights.{slug(suite)}", "all nights together", rows))
    return events


def nights_together(row: JsonObject) -> str:
    """Words on what the nights together say of one cell."""
    measured = f"measured {row['lower']:.4g} {'>' if row['lower'] > row['claimed'] else '<='} claimed {row['claimed']:.4g}"
    evidence = f"evidence 10^{row['log10_evidence'][-1]:.2f} against the claim, 10^{row['log10_enough']:.2f} refutes it"
    size = f"{row['n_nights']} nights, {row['n_replays']} replays a side"
    return f"{row['label']}: {row['quantity']}: {measured}; {evidence}; {size}"


def _event(kind: str, suite: str, place: str, name: str, payload: Mapping[str, object]) -> JsonObject:
    resource = {"prefect.resource.id": f"bandana.{place}", "prefect.resource.name": f"{suite}: {name}"}
    return {"event": kind, "resource": resource, "payload": {"suite": suite, **payload}}


def markdown(findings: Findings) -> str:
    """Markdown on what broke, why, and where to read on."""
    lines = [f"# {findings.suite}: {findings.summary}", ""]
    for entry in findings.failed:
        main = entry["main"]
        three = " · ".join(f"{role} {_number(main[role])}" for role in ROLES)
        lines += [f"## {entry['verdict']}: {entry['label']}", "", f"{main['quantity']}: {three}", ""]
        lines += [f"- {line}" for reason in entry["reasons"] for line in reason.splitlines()[:1]] + [""]
        lines += [f"    {line}" for line in (entry["deterministic"]["counterexample"] or {"lines": ()})["lines"]] + [""]
    if findings.worse:
        lines += ["## Worse than the baseline", ""]
        lines += [f"- {tell(row)}" for row in findings.worse]
        lines += ["", "All intervals of the gate hold together with 95 % confidence.", ""]
    if findings.refuted:
        lines += ["## Refuted by all nights together", "", *(f"- {nights_together(row)}" for row in findings.refuted), ""]
    if findings.notes:
        lines += ["## Not compared", "", *(f"- {note}" for note in findings.notes), ""]
    if findings.files:
        links = [f"- {kind}: `{path}`" for kind, path in findings.files.items()]
        lines += ["## The report", "", f"- while `bandana ui` runs: {served_at(findings.suite)}", *links, ""]
    return "\n".join(lines)


def served_at(suite: str) -> str:
    """Address of a suite's report while `bandana ui` runs at its usual port."""
    return f"http://127.0.0.1:5000/reports/{suite}/report.html"


def table(findings: Findings) -> list[dict[str, str | None]]:
    """One row a cell: its audit, and what the gate says of it."""
    labels = dict.fromkeys([entry["label"] for entry in findings.audits] + [row["label"] for row in findings.rows])
    by_label = {entry["label"]: entry for entry in findings.audits}
    shown: list[dict[str, str | None]] = []
    for label in labels:
        entry = by_label.get(label)
        rows = [row for row in findings.rows if row["label"] == label]
        worse = [f"{r['quantity']}: {_number(r['baseline'])} -> {_number(r['now'])}" for r in rows if r["is_worse"]]
        shown.append(
            {
                "cell": label,
                "verdict": entry["verdict"] if entry else "not audited",
                "quantity": entry["main"]["quantity"] if entry else None,
                **{role: _number(entry["main"][role] if entry else None) for role in ROLES},
                "against the baseline": "; ".join(worse) or ("not worse" if rows else "not compared"),
            }
        )
    return shown


def _number(value: float | str | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.4g}"


def _wait_until_stored(ids: list[UUID]) -> None:
    """A temporary server stops with the command that started it, and loses what it did not store by then."""
    deadline = time.monotonic() + _PATIENCE
    wanted = EventFilter(id=EventIDFilter(id=ids))
    with get_client(sync_client=True) as client:
        while ids and time.monotonic() < deadline:
            if client.read_events(wanted, limit=50).total >= len(ids):
                return
            time.sleep(0.25)
    if ids:
        raise TimeoutError(f"{len(ids)} events were sent, and the server has not stored all of them")
