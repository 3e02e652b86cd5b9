"""The benchmark flow: every block of every cell, and one MLflow run a cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import as_completed

from bandana.audits.contents import PROVENANCE
from bandana.audits.reporting.intervals import mean_interval
from bandana.flows.keys import provenance
from bandana.flows.keys.identity import check_same
from bandana.flows.running.executors import Executor, Resources, patience, task_runner
from bandana.flows.running.journal import Journal
from bandana.flows.running.progress import bar
from bandana.flows.running.settings import DataFolder
from bandana.flows.running.store import Store
from bandana.flows.spec.environment_kinds import environments_of
from bandana.flows.spec.own_data import pinned
from bandana.flows.spec.plan import Block, Cell, is_small, played_cells
from bandana.flows.spec.roles import Role
from bandana.flows.spec.spec import Spec, is_finite
from bandana.flows.suites.play import benchmark_block, is_played
from bandana.flows.tracking.dataset_record import dataset_record
from bandana.flows.tracking.tracker import CellRecord, Tracker, TrackingError
from bandana.privacy_core import GaussianDP, PureDP

_NOTES = {
    Role.TWIN: "A cell of the suite again without its noise, with the same widths and forgetting. It is not private.",
    Role.REFERENCE: "A reference row: what any algorithm of the suite should beat. It is not private.",
}
"""Heads of runs that the spec does not list."""


@task(name="benchmark-block", task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
def _run_block(block: Block, store: Store, label: str, key: str) -> float:
    """Plays one block, or finds it played, under the key that the flow knows it by; the seconds that it took."""
    start = perf_counter()
    check_same(key, block.key)
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
    journal.write("benchmark started", suite=spec.name, cells=len(cells), blocks=len(blocks), missing=len(missing))
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


def summarize_cell(cell: Cell, store: Store) -> dict[str, Any]:
    """A cell's regret over rounds: mean and 95 % confidence interval over replications; privacy spent, and who made it."""
    results = [benchmark_block(block, store) for block in cell.blocks()]
    regret = np.concatenate([arrays["regret"] for arrays, _ in results])
    found = mean_interval(regret)
    made = [provenance.shown(told.get(PROVENANCE), is_anonymous=store.is_anonymous) for _, told in results]
    mus, pures = ([description[name] for _, description in results] for name in ("mu", "pure"))
    return {
        "grid": results[0][0]["grid"],
        **found._asdict(),
        "finals": regret[:, -1],
        "mu_spent": np.max([arrays["mu_spent"] for arrays, _ in results], axis=0),
        "mu": None if None in mus else max(mus),
        "pure": None if None in pures else max(pures),
        "noise": results[0][1]["noise"],
        "provenance": provenance.summary(("blocks", described) for described in made),
    }


def benchmark_record(cell: Cell, summary: dict[str, Any]) -> CellRecord:
    """What MLflow keeps of a cell's benchmark."""
    grid = summary["grid"].tolist()
    metrics: dict[str, float] = {}
    curves: dict[str, Any] = {}
    if cell.environment.shows("regret"):
        metrics["regret/final"] = float(summary["mean"][-1])
        shown = ["mean"]
        if cell.spec.replications > 1:  # one replication has no interval
            metrics["regret/final_half_width"] = float(summary["high"][-1] - summary["low"][-1]) / 2
            shown += ["low", "high"]
        curves = {f"regret/{name}": (grid, summary[name].tolist()) for name in shown}
    if is_finite(summary["mu"]):
        claim, delta = cell.claim(), cell.spec.audit.delta
        metrics |= {"privacy/mu_claimed": claim.gaussian.mu, "privacy/epsilon_claimed": claim.epsilon_at(delta)}
        if summary["mu"] > 0:
            derived = GaussianDP(summary["mu"]) if summary["pure"] is None else PureDP(summary["pure"])
            metrics |= {"privacy/mu_accounted": summary["mu"], "privacy/epsilon_accounted": derived.epsilon_at(delta)}
        curves["privacy/mu_spent"] = (grid, summary["mu_spent"].tolist())
    made = provenance.tags("benchmark", summary["provenance"])
    return cell_record(cell, metrics, curves, [], made)


def cell_record(
    cell: Cell, metrics: dict[str, float], curves: dict[str, Any], artifacts: list[Path], made: dict[str, str]
) -> CellRecord:
    """A cell's MLflow run: the benchmark and the audit write into the same one; `made` are tags of how it came to be."""
    spec, environment = cell.spec, cell.environment
    return CellRecord(
        run_key=cell.key,
        name=cell.name,
        params={
            "algorithm": cell.entry.name,
            "role": str(cell.role),
            "calibration": cell.settings.calibration or "none",
            "privacy_model": cell.entry.privacy_model,
            "guarantee": cell.entry.guarantee or "none",
            **cell.parameters(),
            "delta": spec.audit.delta,
            "environment": environment.label,
            "horizon": spec.horizon,
            "replications": spec.replications,
            "seed": spec.seed,
        },
        tags={"environment": environment.label, "source": cell.entry.source},
        note=_NOTES.get(cell.role, ""),
        metrics=metrics,
        curves=curves,
        artifacts=artifacts,
        dataset=dataset_record(cell),
        provenance=made,
    )
