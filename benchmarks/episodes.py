"""AdaR-UCB against the cost of its random numbers, and UCB1 a replication-step."""

from collections.abc import Sequence

import numpy as np

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb, ucb
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.protocol import Observer
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise
from benchmarks.result import Result, fastest

N_ARMS, HORIZON, REPS = 10, 10_000_000, 10_000
MEANS = np.linspace(0.75, 0.25, N_ARMS)
UNIT = Interval(0.0, 1.0)
STEPS, STEP_REPS = 1000, 8192


def _adar_ucb(observers: Sequence[Observer] = ()) -> LiveLedger:
    algorithm = adar_ucb(N_ARMS, 2.0, 1.0, 3.1, UNIT, "printed")
    stream = BernoulliArms(MEANS, HORIZON, np.random.SeedSequence(1))
    ledger = LiveLedger(REPS, ReproducibleNoise(np.random.SeedSequence(2)), keeps_transcript=bool(observers))
    run(algorithm, stream, ledger, observers=observers)
    return ledger


def _random_numbers() -> tuple[np.ndarray, np.ndarray, int]:
    """The binomials (n, p) and the number of normals that a run needs."""
    log = ActionLog()
    ledger = _adar_ucb([log])
    played = [n_records > 0 for n_records in log.n_records]
    n = np.concatenate([n_records[p] for n_records, p in zip(log.n_records, played, strict=True)])
    arm = np.concatenate([actions[p] for actions, p in zip(log.actions, played, strict=True)])
    return n, MEANS[arm], sum(len(release.output) for release in ledger.transcript)


def _ucb1() -> None:
    stream = BernoulliArms(MEANS, STEPS, np.random.SeedSequence(1))
    run(ucb(N_ARMS, 4.0, UNIT), stream, LiveLedger(STEP_REPS, ReproducibleNoise(np.random.SeedSequence(2))))


def measure() -> list[Result]:
    n, p, n_normals = _random_numbers()
    generator = np.random.Generator(np.random.SFC64(3))

    def draw() -> None:
        single = n == 1  # one round is one uniform, as in the environment
        generator.random(int(single.sum()))
        generator.binomial(n[~single], p[~single])
        generator.standard_normal(n_normals)

    numbers, whole = fastest(draw, 3), fastest(_adar_ucb, 3)
    step = fastest(_ucb1) / (STEPS * STEP_REPS)
    return [
        Result("AdaR-UCB, K = 10, T = 1e7: cost over its random numbers", whole / numbers, 4, "ratio"),
        Result("AdaR-UCB, K = 10, T = 1e7: 1e4 replications on one core", whole, 1, "s"),
        Result("UCB1, K = 10: one replication-step", step * 1e9, 40, "ns"),
    ]
