"""The benchmark flow: every block of every cell, and one MLflow run a cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import as_completed

from bandana.flows.keys.identity import check_same
from bandana.flows.running import time_limit
from bandana.flows.running.executors import Executor, Resources, patience, task_runner
from bandana.flows.running.journal import Journal
from bandana.flows.running.progress import bar
from bandana.flows.running.settings import DataFolder
from bandana.flows.running.store import Store
from bandana.flows.spec.environment_kinds import environments_of
from bandana.flows.spec.own_data import pinned
from bandana.flows.spec.plan import Block, Cell, is_small, played_cells
from bandana.flows.spec.spec import Spec
from bandana.flows.suites.charges import check_affords
from bandana.flows.suites.play import benchmark_block, is_played
from bandana.flows.suites.summaries import benchmark_record, summarize_cell
from bandana.flows.tracking.tracker import Tracker, TrackingError


@task(name="benchmark-block", task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
def _run_block(block: Block, store: Store, label: str, key: str) -> float:
    """Plays one block, or finds it played, under the key that the flow knows it by; the seconds that it took."""
    start = perf_counter()
    check_same(key, block.key)
    with time_limit.kept(store.path(time_limit.LATE, key)):
        benchmark_block(block, store)
    return round(perf_counter() - start, 3)


class _Tracking:
    """Writes a cell to MLflow when its last block is done, while other cells still play."""

    def __init__(self, spec: Spec, store: Store, tracker: Tracker, journal: Journal, advance: Callable[[str], None]) -> None:
        self._suite, self._store, self._tracker = spec.name, store, tracker
        self._journal, self._advance = journal, advance
        self._left: list[Cell] = []

    def write(self, cell: Cell) -> None:
        """Writes a finished cell, or notes it for the end if MLflow does not take it: blocks still play, and are kept."""
        if not self._left:
            try:
                self._write(cell)
                return
            except TrackingError:
                pass
        self._left.append(cell)

    def finish(self) -> None:
        """Writes what MLflow did not take.

        Raises:
          TrackingError: it still does not.
        """
        for cell in self._left:
            self._write(cell)

    def _write(self, cell: Cell) -> None:
        self._tracker.log_cell(self._suite, benchmark_record(cell, summarize_cell(cell, self._store)))
        self._journal.write("cell tracked", cell=cell.name, run_key=cell.key)
        self._advance(f"tracked {cell.name}")


@flow(name="benchmark", persist_result=False)
def benchmark_flow(spec: Spec, data: str) -> None:
    """Plays every cell of the spec; finished blocks are kept, and a rerun computes only what is missing."""
    folder = DataFolder(Path(data))
    store, tracker, journal = Store(folder.results), Tracker.open(folder.root), Journal(folder.journal(spec.name))
    tracker.mark_dead_runs()
    spec = pinned(spec, folder.root)
    cells = played_cells(spec)
    for environment in environments_of(spec):
        environment.check()
    tracker.experiment(spec.name, spec.description or spec.title)
    blocks = [block for cell in cells for block in cell.blocks()]
    missing = [block for block in blocks if not is_played(block, store)]
    check_affords(missing)
    journal.begin("benchmark started", suite=spec.name, cells=len(cells), blocks=len(blocks), missing=len(missing))
    play = _run_block.with_options(**patience(spec.execution.retries, spec.execution.block_timeout))
    futures = {play.submit(block, store, f"{block.cell.name} block {block.index}", block.key): block for block in missing}
    waiting = Counter(block.cell.name for block in missing)
    with bar("benchmark", len(blocks) + len(cells), done=len(blocks) - len(missing)) as advance:
        tracking = _Tracking(spec, store, tracker, journal, advance)
        for cell in cells:
            if not waiting[cell.name]:
                tracking.write(cell)
        for future in as_completed(list(futures)):
            block, seconds = futures[future], future.result()
            journal.write("block done", cell=block.cell.name, run_key=block.cell.key, block=block.index,
                          result=block.key, n_reps=block.n_reps, seconds=seconds)  # fmt: skip
            advance(block.cell.name)
            waiting[block.cell.name] -= 1
            if not waiting[block.cell.name]:
                tracking.write(block.cell)
        tracking.finish()
        tracker.keep_only(spec.name, {cell.key for cell in cells})
    journal.write("benchmark done", suite=spec.name)


def benchmark(spec: Spec, data: str, resources: Resources | None = None) -> None:
    """Runs the flow on the chosen resources; for None this process if it is small, else processes, one a core."""
    default = Executor.LOCAL if is_small(played_cells(spec)) else Executor.PROCESSES
    runner = task_runner(resources or Resources(), default, __name__)
    benchmark_flow.with_options(task_runner=runner)(spec, data)
