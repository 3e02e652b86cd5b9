"""The benchmark flow: every block of every cell, then one MLflow run a cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import as_completed
from prefect.task_runners import ThreadPoolTaskRunner

from audits.summary import epsilon_of
from flows.plan import Block, Cell, Environment, cells_of
from flows.progress import bar
from flows.settings import DataFolder, n_workers
from flows.specs import Spec, is_finite
from flows.store import Store
from flows.tracking import CellRecord, Tracker
from flows.work import benchmark_block

_NORMAL_95 = 1.959963984540054


@task(name="benchmark-block", task_run_name="{label}", cache_policy=NO_CACHE)
def _run_block(block: Block, store: Store, label: str) -> None:
    benchmark_block(block, store)


@task(name="track-benchmark", cache_policy=NO_CACHE)
def _track(cell: Cell, store: Store, tracker: Tracker) -> None:
    tracker.log_cell(cell.spec.name, benchmark_record(cell, summarize_cell(cell, store)))


# Blocks are NumPy and numba without the GIL: threads run them side by side and start at once.
_RUNNER: Any = ThreadPoolTaskRunner(max_workers=n_workers())


@flow(name="benchmark", task_runner=_RUNNER)
def benchmark(spec: Spec, data: str) -> None:
    """Plays every cell of the spec; finished blocks are kept, and a rerun computes only what is missing."""
    folder = DataFolder(Path(data))
    store, tracker = Store(folder.results), Tracker(folder.root)
    tracker.mark_dead_runs()
    cells = cells_of(spec)
    Environment(spec).check()
    tracker.experiment(spec.name, spec.description or spec.title)
    blocks = [block for cell in cells for block in cell.blocks()]
    futures = {_run_block.submit(b, store, f"{b.cell.name} block {b.index}"): b for b in blocks}
    with bar("benchmark", len(blocks) + len(cells)) as progress:
        for future in as_completed(list(futures)):
            future.result()
            progress.advance(futures[future].cell.name)
        for cell in cells:
            _track(cell, store, tracker)
            progress.advance(f"tracked {cell.name}")


def summarize_cell(cell: Cell, store: Store) -> dict[str, Any]:
    """A cell's regret over rounds: mean and 95 % confidence interval over replications, and the privacy spent."""
    results = [benchmark_block(block, store) for block in cell.blocks()]
    regret = np.concatenate([arrays["regret"] for arrays, _ in results])
    mean = regret.mean(axis=0)
    half = _NORMAL_95 * regret.std(axis=0, ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else 0 * mean
    mus = [description["mu"] for _, description in results]
    return {
        "grid": results[0][0]["grid"],
        "mean": mean,
        "low": mean - half,
        "high": mean + half,
        "mu_spent": np.max([arrays["mu_spent"] for arrays, _ in results], axis=0),
        "mu": None if None in mus else max(mus),
        "noise": results[0][1]["noise"],
    }


def benchmark_record(cell: Cell, summary: dict[str, Any]) -> CellRecord:
    """What MLflow keeps of a cell's benchmark."""
    grid = summary["grid"].tolist()
    metrics = {"regret/final": float(summary["mean"][-1])}
    curves = {
        "regret/mean": (grid, summary["mean"].tolist()),
        "regret/low": (grid, summary["low"].tolist()),
        "regret/high": (grid, summary["high"].tolist()),
    }
    if is_finite(summary["mu"]):
        claim, delta = cell.claim(), cell.spec.audit.delta
        metrics |= {
            "privacy/mu_claimed": claim.gaussian.mu,
            "privacy/epsilon_claimed": claim.gaussian.epsilon(delta),
        }
        if summary["mu"] > 0:
            metrics |= {
                "privacy/mu_accounted": summary["mu"],
                "privacy/epsilon_accounted": epsilon_of(summary["mu"], delta) or 0.0,
            }
        curves["privacy/mu_spent"] = (grid, summary["mu_spent"].tolist())
    return cell_record(cell, metrics, curves, [])


def cell_record(cell: Cell, metrics: dict[str, float], curves: dict[str, Any], artifacts: list[Path]) -> CellRecord:
    """A cell's MLflow run: the benchmark and the audit write into the same one."""
    spec, about = cell.spec, Environment(cell.spec).describe()
    return CellRecord(
        run_key=cell.key,
        name=cell.name,
        params={
            "algorithm": cell.entry.name,
            "calibration": cell.settings.calibration or "none",
            "privacy_model": cell.entry.privacy_model,
            "guarantee": cell.entry.guarantee or "none",
            **cell.parameters(),
            "delta": spec.audit.delta,
            "environment": about["name"],
            "horizon": spec.horizon,
            "replications": spec.replications,
            "seed": spec.seed,
        },
        tags={"environment": about["name"], "source": cell.entry.source},
        metrics=metrics,
        curves=curves,
        artifacts=artifacts,
        dataset={
            "name": about["name"],
            "digest": cell.key[:12],
            "source": spec.environment.model_dump_json(),
        },
    )
