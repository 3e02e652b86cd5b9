"""CAPRI: a replication at T = 1e5 on 10 contexts x 50 actions, its designs included, and the memory that it takes."""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bandana.algorithms.bandits.capri.capri import ProjectedElimination
from bandana.algorithms.bandits.capri.forms import CAPRI
from bandana.algorithms.environments.kernel_functions import PooledFunction, product_pool, random_function
from bandana.algorithms.observers import ContextualRegretCurve, log_grid
from bandana.algorithms.rkhs.kernels import SquaredExponential
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, Interval, LiveLedger, ReproducibleNoise, TrustModel
from benchmarks.result import Result

RANGE = Interval(-1.0, 1.0)
CONTEXTS, ACTIONS, HORIZON = 10, 50, 100_000
KERNEL = SquaredExponential(0.3)
MODELS = ("twin", "joint", "local")


def _algorithm(model: str, horizon: int) -> ProjectedElimination:
    pool = product_pool(CONTEXTS, ACTIONS, (1, 1), np.random.SeedSequence(1))
    settings = CAPRI(pool, KERNEL, horizon, RANGE, error_scale=0.25)
    if model == "twin":
        return settings.twin()
    return settings.private(ApproxDP(1.0, 1e-5), TrustModel(model), "tight")


def _play(model: str, horizon: int) -> None:
    """Built anew: nothing is remembered of an earlier run."""
    algorithm = _algorithm(model, horizon)
    pool = algorithm.pool
    values = random_function(KERNEL, pool.points.reshape(-1, 2)[::60], np.random.SeedSequence(2))(pool.points)
    stream = PooledFunction(pool, values, horizon, np.random.SeedSequence(3), RANGE, law="two-point")
    ledger = LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(4)))
    run(algorithm, stream, ledger, observers=[ContextualRegretCurve(stream, log_grid(horizon), 1)])


def _measured(model: str) -> dict[str, float]:
    """CPU seconds of one replication in a process of its own, and the most memory that the process held."""
    command = [sys.executable, "-m", __name__, model]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure() -> list[Result]:
    told = f"CAPRI, |C| x |X| = {CONTEXTS} x {ACTIONS}, T = 1e5"
    results = []
    for model in MODELS:
        found = _measured(model)
        results += [
            Result(f"{told}, {model}: a replication, CPU time", found["seconds"], 10, "s"),
            Result(f"{told}, {model}: memory of the process", found["gib"], 1, "GiB"),
        ]
    return results


if __name__ == "__main__":
    _play(sys.argv[1], 1000)  # compiles
    start = time.process_time()
    _play(sys.argv[1], HORIZON)
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))
