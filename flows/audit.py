"""The audit flow: one audit with its planted faults for every private cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import as_completed
from prefect.task_runners import ProcessPoolTaskRunner

from flows.benchmark import cell_record
from flows.plan import Cell, Environment, cells_of
from flows.progress import bar
from flows.settings import DataFolder, n_workers
from flows.specs import Spec
from flows.store import Store, link
from flows.tracking import Tracker
from flows.work import audit_cell, audit_entry, evidence_of


@task(name="audit-cell", task_run_name="{label}", cache_policy=NO_CACHE)
def _audit(cell: Cell, store: Store, label: str) -> dict[str, Any]:
    return audit_entry(cell, audit_cell(cell, store))


@task(name="track-audit", cache_policy=NO_CACHE)
def _track(cell: Cell, outcome: dict[str, Any], store: Store, tracker: Tracker) -> None:
    controls = outcome["controls"]
    metrics = {
        "audit/mu_measured": outcome["mu"]["measured"],
        "audit/epsilon_measured": outcome["epsilon"]["measured"],
        "audit/controls_caught": sum(control["caught"] for control in controls),
        "audit/controls_planted": len(controls),
        "audit/smallest_factor": outcome["measurement"]["smallest_factor"],
        "privacy/mu_claimed": outcome["mu"]["claimed"],
        "privacy/epsilon_claimed": outcome["epsilon"]["claimed"],
        "privacy/mu_accounted": outcome["mu"]["accounted"],
        "privacy/epsilon_accounted": outcome["epsilon"]["accounted"],
    }
    record = cell_record(
        cell,
        {name: float(value) for name, value in metrics.items() if value is not None},
        {},
        [evidence_of(cell, store)],
    )
    record.tags["verdict"] = outcome["verdict"]
    tracker.log_cell(cell.spec.name, record)


# Audits take many seconds each and search with Hypothesis, which wants a process of its own.
_RUNNER: Any = ProcessPoolTaskRunner(max_workers=n_workers())


@flow(name="audit", task_runner=_RUNNER)
def audit(spec: Spec, data: str) -> list[dict[str, Any]]:
    """Audits every private cell of the spec; finished audits are kept, and a rerun computes only what is missing.

    Returns:
      the outcomes, in the order of the spec.
    """
    folder = DataFolder(Path(data))
    store, tracker = Store(folder.results), Tracker(folder.root)
    tracker.mark_dead_runs()
    cells = [cell for cell in cells_of(spec) if cell.is_private]
    Environment(spec).check()
    tracker.experiment(spec.name, spec.description or spec.title)
    futures = {_audit.submit(cell, store, cell.name): cell for cell in cells}
    outcomes: dict[str, dict[str, Any]] = {}
    with bar("audit", 2 * len(cells)) as progress:
        for future in as_completed(list(futures)):
            cell = futures[future]
            outcomes[cell.name] = future.result()
            progress.advance(f"{cell.name}: {outcomes[cell.name]['verdict']}")
        for cell in cells:
            _track(cell, outcomes[cell.name], store, tracker)
            link(evidence_of(cell, store), folder.evidence(spec.name, cell.slug))
            progress.advance(f"tracked {cell.name}")
    return [outcomes[cell.name] for cell in cells]
