"""The benchmark and the audit of a spec as Prefect flows, whose tasks are blocks and cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import as_completed

from bandana.audits.documents.audit import AuditEntry
from bandana.flows.folder.settings import DataFolder
from bandana.flows.plan.plan import Plan, is_small
from bandana.flows.running.executors import LATE, Executor, Resources, cores_each, held_to_limit, patience, task_runner
from bandana.flows.suites import steps

T = TypeVar("T")
R = TypeVar("R")


@task(task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
def _work(work: Callable[[T], R], item: T, note: Path, label: str) -> R:
    with held_to_limit(note):
        return work(item)


class _Tasks:
    """Work as tasks of the flow that runs: retried after infrastructure faults, limited to `timeout` seconds.

    Late tasks leave a note in the folder of results.
    """

    cores_each = staticmethod(cores_each)

    def __init__(self, name: str, results: Path, retries: int, timeout: float) -> None:
        self._notes, self._task = results / LATE, _work.with_options(name=name, **patience(retries, timeout))

    def completed(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R]]:
        """Submits all items at once, and yields each with the result of its work as soon as it is done."""
        pairs: Sequence[Any] = items  # of a block or a cell, and its key
        notes = [self._notes / key for _, key in pairs]
        futures = {self._task.submit(work, pair, note, pair[0].title): pair for pair, note in zip(pairs, notes, strict=True)}
        return ((futures[future], future.result()) for future in as_completed(list(futures)))


@flow(name="benchmark", flow_run_name="{plan.spec.name}: benchmark", persist_result=False)
def benchmark_flow(plan: Plan, data: str) -> None:
    """Plays every cell of the plan; finished blocks are kept, and a rerun computes only what is missing."""
    folder, patient = DataFolder(Path(data)), plan.spec.execution
    tasks = _Tasks("benchmark-block", folder.results, patient.retries, patient.block_timeout)
    steps.benchmark(plan, folder, tasks, steps.open_tracker(plan.spec, folder))


@flow(name="audit", flow_run_name="{plan.spec.name}: audit", persist_result=False)
def audit_flow(plan: Plan, data: str) -> list[AuditEntry]:
    """Audits every private cell of the plan, and returns the report's entries in its order; finished audits are kept."""
    folder, patient = DataFolder(Path(data)), plan.spec.execution
    tasks = _Tasks("audit-cell", folder.results, patient.retries, patient.audit_timeout)
    return steps.audit(plan, folder, tasks, steps.open_tracker(plan.spec, folder))


def benchmark(plan: Plan, data: str, resources: Resources | None = None) -> None:
    """Runs the flow on the chosen resources; for None this process if it is small, else processes, one a core."""
    default = Executor.LOCAL if is_small(plan.played) else Executor.PROCESSES
    runner = task_runner(resources or Resources(), default, __name__)
    benchmark_flow.with_options(task_runner=runner)(plan, data)


def audit(plan: Plan, data: str, resources: Resources | None = None) -> list[AuditEntry]:
    """Runs the flow on the chosen resources; processes, one a core, for None."""
    runner = task_runner(resources or Resources(), Executor.PROCESSES, __name__)
    return audit_flow.with_options(task_runner=runner)(plan, data)
