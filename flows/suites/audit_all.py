"""The audit of everything: each private algorithm of the catalog and each building block, in one report."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import as_completed

from bandana.audits.documents.audit import AuditEntry
from bandana.audits.outcome import Effort
from bandana.audits.replays.replay import in_threads
from bandana.audits.subjects import subjects
from bandana.flows.cells import replays
from bandana.flows.cells.audits import AUDIT, kept, stored_outcome
from bandana.flows.folder.progress import bar
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store, link
from bandana.flows.folder.turns import alone_in
from bandana.flows.keys import identity, provenance
from bandana.flows.keys.identity import MadeBy
from bandana.flows.keys.provenance import Making, about_audits
from bandana.flows.plan.made_by import subject_roots
from bandana.flows.results import audit_report, baseline, catalog_report, gate, old_results
from bandana.flows.results.report import track
from bandana.flows.running.executors import LATE, Executor, Resources, cores_each, held_to_limit, patience, task_runner
from bandana.flows.spec.spec import ExecutionSpec
from bandana.flows.suites.alarms import AlarmRaised, Findings, conclude, with_alarm
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.tracking.record import audit_metrics
from bandana.flows.tracking.tracker import CellRecord, Tracker

SUITE = "whole-catalog"
_PATIENCE = ExecutionSpec()


def key_of(label: str, effort: Effort) -> str:
    """Content key of one audit."""
    return identity.key_of(_facts(label, effort), _code_of(label))


def _facts(label: str, effort: Effort) -> dict[str, object]:
    return {"whole catalog": label, "effort": asdict(effort)}


@cache
def _code_of(label: str) -> MadeBy:
    return identity.made_by(subject_roots(label))


def audit_subject(label: str, effort: Effort, store: Store) -> tuple[AuditEntry, list[str]]:
    """One audit, from the store if it is there: its entry in the report, and its lines for the terminal."""
    making, subject = Making(), subjects()[label]()
    key = key_of(label, effort)
    outcome = stored_outcome(store.path(AUDIT, key))
    if outcome is None:
        outcome = replays.audit_of_subject(subject, effort, partial(about_audits, made=_code_of(label)))
        made_of = {"of": _facts(label, effort), "made": _code_of(label)}
        outcome = replace(outcome, provenance=making.record(is_anonymous=store.is_anonymous) | made_of)
        outcome = kept(store, AUDIT, key, outcome)
    entry = catalog_report.entry_of_subject(subject, outcome, is_anonymous=store.is_anonymous)
    return entry, audit_report.tell(label, outcome)


@task(name="audit-subject", task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
def _audit(label: str, effort: Effort, store: Store, key: str, n_cores: int) -> tuple[AuditEntry, list[str]]:
    identity.check_same(key, key_of(label, effort))
    with held_to_limit(store.path(LATE, key)), in_threads(n_cores):
        return audit_subject(label, effort, store)


@flow(name="audit-all", flow_run_name=SUITE, persist_result=False)
def audit_all_flow(labels: list[str], effort: Effort, data: str) -> JsonObject | State[AlarmRaised]:
    """Audits the named subjects; finished audits are kept, and a rerun computes only what is missing.

    Returns:
      `audits`: label -> entry and lines; `gate`: see `gate.told`; `files`: kind -> file; or a state of `alarms.conclude`.
    """
    folder = DataFolder(Path(data))
    folder.sweep()
    store, tracker = Store(folder.results), Tracker.open(folder.root)
    old_results.find([(AUDIT, key_of(label, effort)) for label in labels], store).tell(folder.results)
    tracker.mark_dead_runs()
    tracker.experiment(SUITE, catalog_report.CATALOG)
    examine = _audit.with_options(**patience(_PATIENCE.retries, _PATIENCE.audit_timeout))
    keys = {label: key_of(label, effort) for label in labels}
    n_cores = cores_each(sum(not store.has(AUDIT, key) for key in keys.values()))
    futures = {examine.submit(label, effort, store, key, n_cores): label for label, key in keys.items()}
    done: dict[str, tuple[AuditEntry, list[str]]] = {}
    with bar("catalog: audit", len(labels)) as advance:
        for future in as_completed(list(futures)):
            label = futures[future]
            done[label] = future.result()
            advance(f"{label}: {done[label][0]['verdict']}")
    places = []
    for label in labels:
        source, place = store.path(AUDIT, key_of(label, effort)), folder.evidence(SUITE, label.replace(" ", "-"))
        link(source, place)
        places.append(place)
        tracker.log_cell(SUITE, _record(label, effort, done[label][0], place))
    entries = [done[label][0] for label in labels]
    document = catalog_report.catalog_document(entries, effort, places)
    held = _gate(labels, effort, folder)
    with alone_in(folder.suite(SUITE)):
        files = audit_report.write_document(document | {"regressions": gate.in_report(held)}, folder.suite(SUITE) / "report")
        made = [entry["provenance"] for entry in entries]
        track(document, SUITE, asdict(effort), made, list(files.values()), tracker)
    rows, notes = (held["rows"], held["notes"]) if held else ([], [])
    shown = {kind: str(path) for kind, path in files.items()}
    audits = {label: {"entry": entry, "lines": lines} for label in labels for entry, lines in [done[label]]}
    return conclude(Findings(SUITE, entries, rows, notes, shown), {"audits": audits, "gate": held, "files": shown})


@task(name="gate", task_run_name="gate", cache_policy=NO_CACHE, persist_result=False)
def _gate(labels: list[str], effort: Effort, folder: DataFolder) -> gate.Outcome | None:
    """Holds the audits against the baseline; None where there is none."""
    place, store = baseline.place_in(folder, SUITE), Store(folder.results)
    recorded = baseline.read(place)
    if recorded is None:
        return None
    outcomes = {label: stored_outcome(store.path(AUDIT, key_of(label, effort))) for label in labels}
    now = baseline.record_audits(SUITE, {label: outcome for label, outcome in outcomes.items() if outcome is not None})
    cells = [cell for cell in recorded.cells if cell.label in labels or cell.label not in subjects()]
    return gate.told(place, recorded.model_copy(update={"cells": cells}), now)


def audit_all(labels: list[str], effort: Effort, data: str, resources: Resources | None = None) -> JsonObject:
    """Runs the flow on the chosen resources, processes, one a core, for None; `alarm` is its alarm in one line, or None."""
    runner = task_runner(resources or Resources(), Executor.PROCESSES, __name__)
    return with_alarm(lambda: audit_all_flow.with_options(task_runner=runner)(labels, effort, data))


def _record(label: str, effort: Effort, entry: AuditEntry, place: Path) -> CellRecord:
    return CellRecord(
        run_key=key_of(label, effort),
        name=label,
        params={"algorithm": entry["algorithm"], "privacy_model": entry["privacy_model"], **asdict(effort)},
        tags={"verdict": entry["verdict"], "source": entry["claim"]["source"]},
        metrics=audit_metrics(entry),
        artifacts=[place],
        provenance=provenance.tags("audit", provenance.summary([("audits", entry["provenance"])]), [entry["provenance"]]),
    )
