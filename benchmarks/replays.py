"""Audit replays of a fixed table and its neighbor."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.run import run
from bandana.audits.neighbors import worst_pair
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import MU, Effort
from bandana.audits.plan import plan_bounds
from bandana.audits.replays.measure import measure as measure_privacy
from bandana.audits.replays.replay import BLOCK, replay
from bandana.privacy_core import Interval, LiveLedger, RenyiDP, ReproducibleNoise
from benchmarks.result import Result, fastest

HORIZON, N_ARMS, BLOCKS = 1024, 2, 4
MILLION = 1_000_000
UNIT = Interval(0.0, 1.0)
ALGORITHM = adar_ucb(N_ARMS, 2.0, 1.0, 3.1, UNIT, "printed")


def _table() -> RewardTable:
    generator = np.random.Generator(np.random.SFC64(4))
    return RewardTable(generator.integers(0, 2, (HORIZON, N_ARMS)).astype(float), UNIT)


def _peak() -> float:
    """Peak memory of this process since it started, in MiB; the system's own counter remembers who started it."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 2**10


def million_a_side() -> tuple[float, float]:
    """Seconds for an audit of one pair, all views and bounds, 1e6 replays a side, two threads; the process's peak, MiB."""
    pairs = canary_pairs(_table(), (N_ARMS,))[:1]
    plan = plan_bounds(RenyiDP(2.0, 1.0), 1e-5)
    measure_privacy(ALGORITHM, pairs, Effort(10_000, 0.95, 1e-5, 1, 0), plan)  # compiles
    start = time.perf_counter()
    found = measure_privacy(ALGORITHM, pairs, Effort(MILLION, 0.95, 1e-5, 1, 1), plan)
    seconds = time.perf_counter() - start
    assert 0.99 < found.lower(MU) < 1.0
    return seconds, _peak()


def _in_a_process_of_its_own() -> tuple[float, float]:
    code = "from benchmarks.replays import million_a_side as f; print(*f())"
    seconds, peak = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(peak)


def measure() -> list[Result]:
    table = _table()
    pair = canary_pairs(table, (N_ARMS,))[0]
    seed = np.random.SeedSequence(5)

    def both_sides() -> None:
        for child, data in zip(seed.spawn(2 * BLOCKS), [pair.data, pair.neighbor] * BLOCKS, strict=True):
            run(ALGORITHM, data, LiveLedger(BLOCK, ReproducibleNoise(child), keeps_transcript=True))

    def scored() -> None:
        for side in (False, True):
            replay(ALGORITHM, pair, side, BLOCK * BLOCKS, seed, workers=1)

    n_replays = 2 * BLOCK * BLOCKS
    results = [
        Result("neighboring replays, T = 1024, K = 2, one core", n_replays / fastest(both_sides), 1e6, "replays/s", ">="),
        Result("the same with their exact privacy loss and actions", n_replays / fastest(scored), 2.5e5, "replays/s", ">="),
        Result("search for the least favorable pair", fastest(lambda: worst_pair.find(ALGORITHM, table, (), 0), 3), 3, "s"),
    ]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores >= 2 and Path("/proc/self/status").exists():
        seconds, peak = _in_a_process_of_its_own()
        results += [
            Result("audit of AdaR-UCB at 1e6 replays a side, T = 1024, two cores", seconds, 10, "s"),
            Result("audit of AdaR-UCB at 1e6 replays a side: memory of the process", peak, 1024, "MiB"),
        ]
    return results
