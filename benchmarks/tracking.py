"""Logging a large suite to MLflow: 200 cells of 50 metric points on the default store, and the rerun that adds nothing."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bandana.flows.tracking.tracker import CellRecord, Tracker
from benchmarks.result import Result

_CELLS, _POINTS = 200, 50


def _cell(number: int) -> CellRecord:
    """Two curves and two final numbers, 50 points in all, with the parameters and the dataset of a real cell."""
    final = {"regret/final": float(number), "privacy/epsilon_accounted": 0.5}
    rounds = np.geomspace(10, 1e6, (_POINTS - len(final)) // 2).astype(int)
    assert len(np.unique(rounds)) * 2 + len(final) == _POINTS
    curve = (rounds.tolist(), np.sqrt(rounds * (1.0 + number)).tolist())
    family, epsilon = f"algorithm {number // 20}", 0.1 * (1 + number % 20)
    return CellRecord(
        run_key=f"cell{number}",
        name=f"{family} eps={epsilon:g}",
        params={"algorithm": family, "calibration": "tight", "privacy_model": "central", "guarantee": "gdp", "beta": 0.1,
                "alpha": 2.0, "epsilon": epsilon, "delta": 1e-5, "environment": "bernoulli", "horizon": 1_000_000,
                "replications": 100, "seed": 0},
        tags={"environment": "bernoulli", "source": "a paper"},
        metrics=final,
        curves={"regret/mean": curve, "privacy/mu_spent": curve},
        dataset={"name": "bernoulli", "digest": "d1", "source": "{}"},
    )  # fmt: skip


def measure() -> Sequence[Result]:
    """Opening the store, laying out its database, and writing all cells; then all of it once more."""
    cells = [_cell(number) for number in range(_CELLS)]
    with tempfile.TemporaryDirectory() as folder:
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            tracker = Tracker(Path(folder))
            tracker.experiment("benchmark", "Speed of logging.")
            for cell in cells:
                tracker.log_cell("benchmark", cell)
            seconds.append(time.perf_counter() - start)
    what = f"MLflow: {_CELLS} cells x {_POINTS} points"
    return (
        Result(what, seconds[0], 20.0, "s"),
        Result(f"{what}, logged again", seconds[1], 5.0, "s"),
    )
