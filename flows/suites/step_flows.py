"""The benchmark and the audit of a spec as Prefect flows, whose tasks are blocks and cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import as_completed

from bandana.flows.running.executors import Executor, Resources, cores_each, patience, task_runner
from bandana.flows.running.settings import DataFolder
from bandana.flows.spec.own_data import pinned
from bandana.flows.spec.plan import is_small, played_cells
from bandana.flows.spec.spec import Spec
from bandana.flows.suites import steps

T, R = TypeVar("T"), TypeVar("R")


@task(task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
def _work(work: Callable[[Any], Any], item: Any, label: str) -> Any:
    return work(item)


class _Tasks:
    """Work as tasks of the flow that runs: retried after infrastructure faults, limited in time, shown in Prefect's pages.

    Args:
      name: of the tasks.
      retries: at most so many for each.
      timeout: in seconds, for each.
    """

    pause = math.inf
    cores_each = staticmethod(cores_each)

    def __init__(self, name: str, retries: int, timeout: float) -> None:
        self._task = _work.with_options(name=name, **patience(retries, timeout))

    def completed(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R]]:
        """Submits all items at once, and yields each with the result of its work as soon as it is done."""
        futures: dict[Any, Any] = {self._task.submit(work, item, item[0].name): item for item in items}  # type: ignore[index]
        return ((futures[future], future.result()) for future in as_completed(list(futures)))


@flow(name="benchmark", persist_result=False)
def benchmark_flow(spec: Spec, data: str) -> None:
    """Plays every cell of the spec; finished blocks are kept, and a rerun computes only what is missing."""
    folder = DataFolder(Path(data))
    spec, patient = pinned(spec, folder.root), spec.execution
    tasks = _Tasks("benchmark-block", patient.retries, patient.block_timeout)
    steps.benchmark(spec, folder, tasks, steps.open_tracker(spec, folder))


@flow(name="audit", persist_result=False)
def audit_flow(spec: Spec, data: str) -> list[dict[str, Any]]:
    """Audits every private cell of the spec, and returns the report's entries in its order; finished audits are kept."""
    folder = DataFolder(Path(data))
    spec, patient = pinned(spec, folder.root), spec.execution
    tasks = _Tasks("audit-cell", patient.retries, patient.audit_timeout)
    return steps.audit(spec, folder, tasks, steps.open_tracker(spec, folder))


def benchmark(spec: Spec, data: str, resources: Resources | None = None) -> None:
    """Runs the flow on the chosen resources; for None this process if it is small, else processes, one a core."""
    default = Executor.LOCAL if is_small(played_cells(spec)) else Executor.PROCESSES
    runner = task_runner(resources or Resources(), default, __name__)
    benchmark_flow.with_options(task_runner=runner)(spec, data)


def audit(spec: Spec, data: str, resources: Resources | None = None) -> list[dict[str, Any]]:
    """Runs the flow on the chosen resources; processes, one a core, for None."""
    runner = task_runner(resources or Resources(), Executor.PROCESSES, __name__)
    return audit_flow.with_options(task_runner=runner)(spec, data)
