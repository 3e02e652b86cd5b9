"""Benchmarks and audits as Prefect flows, whose tasks are blocks and cells: of one suite, or of several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle
from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.futures import as_completed
from prefect.task_runners import ThreadPoolTaskRunner

from bandana.flows.folder.settings import DataFolder
from bandana.flows.plan.plan import Plan, is_small
from bandana.flows.running.executors import LATE, Executor, Resources, cores_each, held_to_limit, patience, task_runner
from bandana.flows.running.side_by_side import call
from bandana.flows.suites import steps

R = TypeVar("R")
_PLANS: ContextVar[Sequence[Plan]] = ContextVar("plans")  # of the flow: its parameters are sent along with each task


@task(task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
def _work(work: Callable[[], R], note: Path, label: str) -> R:
    with held_to_limit(note):
        return work()


class _Tasks:
    """Work as tasks of the flow that runs: retried after infrastructure faults and limited in seconds, as each suite asks.

    Late tasks leave a note in the folder of results.
    """

    cores_each = staticmethod(cores_each)

    def __init__(self, results: Path, plans: Sequence[Plan], name: str, limit: str) -> None:
        self._notes, self._tasks = results / LATE, {}
        for spec in (plan.spec for plan in plans):
            options = patience(spec.execution.retries, getattr(spec.execution, limit))
            self._tasks[spec.name] = _work.with_options(name=name, **options)

    def completed(self, work: Callable[[Any], R], items: Sequence[Any]) -> Iterator[tuple[Any, R]]:
        """Submits all items at once, and yields each with the result of its work as soon as it is done."""
        is_here, futures = isinstance(getattr(FlowRunContext.get(), "task_runner", None), ThreadPoolTaskRunner), {}
        for pair in items:
            item, key = pair  # a block or a cell, and its key
            task = self._tasks[getattr(item, "cell", item).spec.name]
            # Prefect pickles later, in a thread, while objects change: what leaves this process is pickled now.
            sent = partial(work, pair) if is_here else partial(call, cloudpickle.dumps((work, pair)))
            futures[task.submit(sent, self._notes / key, item.title)] = pair
        return ((futures[future], future.result()) for future in as_completed(list(futures)))


def _on_all(step: str, data: str) -> Any:
    plans, folder = _PLANS.get(), DataFolder(Path(data))
    names = {"benchmark": ("benchmark-block", "block_timeout"), "audit": ("audit-cell", "audit_timeout")}[step]
    return getattr(steps, step)(plans, folder, _Tasks(folder.results, plans, *names), steps.open_tracker(plans, folder))


@flow(persist_result=False)
def _flow(step: str, suites: list[str], data: str) -> Any:
    return _on_all(step, data)  # by name: Prefect pickles a flow with all that it uses itself, and no ContextVar can be


def run_step(step: str, plans: Sequence[Plan], data: str, resources: Resources | None = None) -> Any:
    """Runs `benchmark` or `audit` of `steps` as a flow; a benchmark that is small in this process, all else in processes."""
    is_here = step == "benchmark" and is_small([cell for plan in plans for cell in plan.played])
    runner = task_runner(resources or Resources(), Executor.LOCAL if is_here else Executor.PROCESSES, __name__)
    _PLANS.set(plans)
    named = _flow.with_options(name=step, flow_run_name=steps.title_of(step, plans), task_runner=runner)
    return named(step, [plan.spec.name for plan in plans], data) if plans else []
