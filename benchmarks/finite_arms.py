"""What a round of DP-KLUCB and of DP-IMED costs, over a round of UCB: ratios of one run, as in units of UCB's cost."""

from __future__ import annotations

import numpy as np

from bandana.algorithms.bandits.finite_arm.episodic_ucb import ucb
from bandana.algorithms.bandits.finite_arm.growing_batches import PARTS, dp_imed, dp_klucb
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.protocol import Algorithm
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise
from benchmarks.result import Result, fastest

UNIT = Interval(0.0, 1.0)
N_ARMS, HORIZON, FEW, REPS = 10, 1_000_000, 20_000, 100
MEANS = np.linspace(0.75, 0.25, N_ARMS)


def _play(algorithm: Algorithm, rounds: int, jump: bool) -> None:
    stream = BernoulliArms(MEANS, rounds, np.random.SeedSequence(1))
    run(algorithm, stream, LiveLedger(REPS, ReproducibleNoise(np.random.SeedSequence(2))), jump=jump)


def _seconds(algorithm: Algorithm, rounds: int, jump: bool = True) -> float:
    """A round of one replicate."""
    return fastest(lambda: _play(algorithm, rounds, jump), 3) / (rounds * REPS)


def measure() -> list[Result]:
    """UCB decides in every round, so that its first rounds cost as much as later ones."""
    algorithms: dict[str, Algorithm] = {
        "DP-KLUCB": dp_klucb(N_ARMS, 1.0, UNIT, PARTS["as-known"], 1.0),
        "DP-IMED": dp_imed(N_ARMS, 1.0, UNIT, PARTS["tight"], 1.0),
    }
    base = ucb(N_ARMS, 4.0, UNIT)
    for algorithm in (base, *algorithms.values()):
        _play(algorithm, 1000, True)  # compiles
    unit = _seconds(base, FEW)
    results = []
    for name, algorithm in algorithms.items():
        what = f"{name}, K = {N_ARMS}, epsilon = 1: a round over UCB's"
        results += [
            Result(f"{what}, T = {HORIZON:g}, in jumps", _seconds(algorithm, HORIZON) / unit, 3, "ratio"),
            Result(f"{what}, round by round", _seconds(algorithm, FEW, jump=False) / unit, 3, "ratio"),
        ]
    return results
