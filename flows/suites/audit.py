"""The audit flow: one audit with its planted faults for every private cell."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import as_completed

from bandana.audits.replays.replay import in_threads
from bandana.flows.keys.identity import check_same
from bandana.flows.running import time_limit
from bandana.flows.running.executors import Executor, Resources, cores_each, patience, task_runner
from bandana.flows.running.journal import Journal
from bandana.flows.running.progress import bar
from bandana.flows.running.settings import DataFolder
from bandana.flows.running.store import Store, link
from bandana.flows.spec.environment_kinds import environments_of
from bandana.flows.spec.own_data import pinned
from bandana.flows.spec.plan import Cell, cells_of, played_cells
from bandana.flows.spec.spec import Spec
from bandana.flows.suites.summaries import audit_record
from bandana.flows.suites.work import (
    audit_cell,
    audit_entry,
    audit_key,
    check_audits,
    evidence_of,
    parts_first,
    stored_audit,
)
from bandana.flows.tracking.tracker import Tracker


@task(name="audit-cell", task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
def _audit(cell: Cell, store: Store, label: str, key: str, n_cores: int) -> tuple[dict[str, Any], float]:
    """The audit's entry in the report, and the seconds that it took; under the key that the flow knows it by."""
    start = perf_counter()
    check_same(key, audit_key(cell))
    with time_limit.kept(store.path(time_limit.LATE, key)), in_threads(n_cores):
        outcome = audit_cell(cell, store)
    return audit_entry(cell, outcome, is_anonymous=store.is_anonymous), round(perf_counter() - start, 3)


@task(name="track-audit", task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
def _track(cell: Cell, outcome: dict[str, Any], evidence: Path, tracker: Tracker, label: str) -> None:
    tracker.log_cell(cell.spec.name, audit_record(cell, outcome, evidence))


@flow(name="audit", persist_result=False)
def audit_flow(spec: Spec, data: str) -> list[dict[str, Any]]:
    """Audits every private cell of the spec; finished audits are kept, and a rerun computes only what is missing.

    Returns:
      the outcomes, in the order of the spec.
    """
    folder = DataFolder(Path(data))
    store, tracker, journal = Store(folder.results), Tracker.open(folder.root), Journal(folder.journal(spec.name))
    tracker.mark_dead_runs()
    spec = pinned(spec, folder.root)
    cells = [cell for cell in cells_of(spec) if cell.is_private]
    for environment in environments_of(spec):
        environment.check()
    check_audits(cells)
    tracker.experiment(spec.name, spec.description or spec.title)
    outcomes = {
        cell.name: audit_entry(cell, outcome, is_anonymous=store.is_anonymous)
        for cell in cells
        if (outcome := stored_audit(cell, store)) is not None
    }
    missing = [cell for cell in cells if cell.name not in outcomes]
    journal.begin("audit started", suite=spec.name, cells=len(cells), missing=len(missing))
    examine = _audit.with_options(**patience(spec.execution.retries, spec.execution.audit_timeout))
    n_cores = cores_each(len(missing))
    futures = {examine.submit(cell, store, cell.name, audit_key(cell), n_cores): cell for cell in parts_first(missing)}
    with bar("audit", 2 * len(cells), done=len(outcomes)) as advance:
        for future in as_completed(list(futures)):
            cell = futures[future]
            outcomes[cell.name], seconds = future.result()
            verdict = outcomes[cell.name]["verdict"]
            journal.write("audit done", cell=cell.name, run_key=cell.key, verdict=verdict, seconds=seconds,
                          replays=cell.audit.replays)  # fmt: skip
            advance(f"{cell.name}: {verdict}")
        for cell in cells:
            evidence = folder.evidence(spec.name, cell.slug)
            link(evidence_of(cell, store), evidence)
            _track(cell, outcomes[cell.name], evidence, tracker, cell.name)
            journal.write("cell tracked", cell=cell.name, run_key=cell.key)
            advance(f"tracked {cell.name}")
    tracker.keep_only(spec.name, {cell.key for cell in played_cells(spec)})
    return [outcomes[cell.name] for cell in cells]


def audit(spec: Spec, data: str, resources: Resources | None = None) -> list[dict[str, Any]]:
    """Runs the flow on the chosen resources; processes, one a core, for None."""
    runner = task_runner(resources or Resources(), Executor.PROCESSES, __name__)
    return audit_flow.with_options(task_runner=runner)(spec, data)
