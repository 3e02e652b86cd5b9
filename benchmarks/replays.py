"""Audit replays of a fixed table and its neighbor."""

import numpy as np

from algorithms.bandits.finite_arm import adar_ucb
from algorithms.environments.tables import RewardTable
from algorithms.run import run
from audits.neighbors import canary_pairs
from audits.replay import BLOCK, replay
from benchmarks.result import Result, fastest
from privacy_core import Interval, LiveLedger, ReproducibleNoise

HORIZON, N_ARMS, BLOCKS = 1024, 2, 4


def measure() -> list[Result]:
    unit = Interval(0.0, 1.0)
    generator = np.random.Generator(np.random.SFC64(4))
    table = RewardTable(generator.integers(0, 2, (HORIZON, N_ARMS)).astype(float), unit)
    pair = canary_pairs(table, (N_ARMS,))[0]
    algorithm = adar_ucb(N_ARMS, 2.0, 1.0, 3.1, unit, "printed")
    seed = np.random.SeedSequence(5)

    def both_sides() -> None:
        for child, data in zip(seed.spawn(2 * BLOCKS), [pair.data, pair.neighbor] * BLOCKS, strict=True):
            run(algorithm, data, LiveLedger(BLOCK, ReproducibleNoise(child), keeps_transcript=True))

    def scored() -> None:
        for side in (False, True):
            replay(algorithm, pair, side, BLOCK * BLOCKS, seed)

    n_replays = 2 * BLOCK * BLOCKS
    return [
        Result("neighboring replays, T = 1024, K = 2, one core", n_replays / fastest(both_sides), 1e6, "replays/s", ">="),
        Result("the same with their exact privacy loss and actions", n_replays / fastest(scored), 2.5e5, "replays/s", ">="),
    ]
