"""The ledger, running sums, and what accounting adds to a run."""

import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.run import run
from bandana.privacy_core import (
    FactorizedSum,
    Gaussian,
    Interval,
    LiveLedger,
    Mechanism,
    ReproducibleNoise,
    Span,
    SymmetricGaussian,
)
from benchmarks.result import Result, fastest

CHARGES, SPANS = 1_000_000, 1000
DIMENSION, STEPS = 50, 10_000
SHORT, SHORT_REPS = 1024, 20_000


class Uncounted:
    """A ledger that draws noise and writes nothing down."""

    def __init__(self, n_reps: int, noise: ReproducibleNoise) -> None:
        self.n_reps, self.noise = n_reps, noise

    def release(self, mechanism: Mechanism, value: FloatArray, **_: Any) -> FloatArray:
        return mechanism.draw(self.noise, value)


def _noise(seed: int = 1) -> ReproducibleNoise:
    return ReproducibleNoise(np.random.SeedSequence(seed))


def ledger_of(charges: int) -> tuple[float, float, float]:
    """CPU seconds to find the worst record among overlapping charges; the peak memory in MiB before that, and after it."""
    n_reps = max(1, charges // SPANS)
    generator = np.random.Generator(np.random.SFC64(2))
    ledger = LiveLedger(n_reps, _noise())
    mechanisms = [Gaussian(1.0, 3.0), Gaussian(1.0, 5.0)]
    for i in range(charges // n_reps):
        start = generator.integers(0, 10**6, n_reps)
        span = Span(start, start + generator.integers(1, 10**5, n_reps))
        ledger.release(mechanisms[i % 2], np.zeros(n_reps), records=span)
    kept = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    ledger.worst_record()
    seconds = time.process_time() - begun
    return seconds, kept / 2**10, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def _in_a_process_of_its_own(charges: int) -> tuple[float, float, float]:
    code = f"from benchmarks.accounting import ledger_of as f; print(*f({charges}))"
    # A process remembers the peak of the one that it was forked from: the shell between them is small.
    command = ["sh", "-c", f"'{sys.executable}' -c '{code}'; :"]
    seconds, kept, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(kept), float(peak)


def _factorized(n_reps: int) -> float:
    """Time of 1e4 steps of a symmetric matrix, over that of drawing its noise."""
    mechanism = SymmetricGaussian.of_outer_products(1.0, 1.0)
    sums = FactorizedSum(mechanism, STEPS)
    x = np.random.Generator(np.random.SFC64(3)).standard_normal((n_reps, DIMENSION, 1))
    value, one = x @ x.swapaxes(1, 2), np.ones(n_reps, dtype=np.int64)
    zeros, noise = np.zeros_like(value), _noise()

    def draw() -> None:
        for _ in range(STEPS):
            mechanism.draw(noise, zeros)

    def work() -> None:
        ledger = LiveLedger(n_reps, noise)
        state = sums.init(n_reps, (DIMENSION, DIMENSION))
        for _ in range(STEPS):
            state, _, _ = sums.close(sums.add(state, value, one), ledger)

    work()
    return fastest(work, 3) / fastest(draw, 3)


def _variances() -> tuple[float, float]:
    """Measured noise variance of 1024 prefix sums at mu = 1: at the step where it is largest, and on average."""
    sums = FactorizedSum(Gaussian(1.0, 1.0), SHORT)
    ledger = LiveLedger(SHORT_REPS, _noise(4))
    state, one = sums.init(SHORT_REPS), np.ones(SHORT_REPS, dtype=np.int64)
    zeros, found = np.zeros(SHORT_REPS), []
    for _ in range(SHORT):
        state, noisy, _ = sums.close(sums.add(state, zeros, one), ledger)
        found.append(float(np.mean(noisy**2)))
    largest = int(np.argmax(sums.factorization.variances))
    return found[largest], float(np.mean(found))


def _overhead() -> float:
    """Share that the book and the accountant add to AdaR-UCB over 1e7 rounds."""
    unit, n_reps, horizon = Interval(0.0, 1.0), 10_000, 10_000_000
    algorithm, means = adar_ucb(10, 2.0, 1.0, 3.1, unit, "printed"), np.linspace(0.75, 0.25, 10)

    def play(ledger: Any) -> None:
        run(algorithm, BernoulliArms(means, horizon, np.random.SeedSequence(5)), ledger)

    def counted() -> None:
        ledger = LiveLedger(n_reps, _noise())
        play(ledger)
        assert ledger.guarantee() is not None

    counted()
    return fastest(counted) / fastest(lambda: play(Uncounted(n_reps, _noise()))) - 1


def ledger() -> list[Result]:
    """Time and memory of a million charges."""
    _, none, least = _in_a_process_of_its_own(1)
    seconds, kept, peak = _in_a_process_of_its_own(CHARGES)
    return [
        Result("a ledger of 1e6 charges: its worst record, in CPU time", seconds, 2, "s"),
        Result("memory of 1e6 charges", kept - none, 200, "MiB"),
        Result("1e6 charges while the worst record is found", peak - least, 200, "MiB"),
    ]


def measure() -> list[Result]:
    largest, mean = _variances()
    return [
        *ledger(),
        Result("FactorizedSum, 50 x 50, 1e4 steps, 1 replicate: time over its noise", _factorized(1), 3, "ratio"),
        Result("FactorizedSum, 50 x 50, 1e4 steps, 8 replicates: time over its noise", _factorized(8), 3, "ratio"),
        Result(
            "FactorizedSum, T = 1024: measured over exact largest variance, 9.49", abs(largest / 9.49 - 1), 0.05, "off by"
        ),
        Result("FactorizedSum, T = 1024: measured over exact mean variance, 8.95", abs(mean / 8.95 - 1), 0.05, "off by"),
        Result("accounting: share of an AdaR-UCB run, T = 1e7", _overhead(), 0.1, "of the time"),
    ]
