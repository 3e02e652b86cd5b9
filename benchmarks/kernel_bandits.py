"""Kernel bandits: a replication of private GP-UCB beside what it cannot do without, and the audit of a joint release.

In CPU time: other work on the machine changes it little.
"""

import time
from collections.abc import Callable

import numpy as np

from bandana.algorithms.bandits.kernel.gp_ucb import GPUCBSettings
from bandana.algorithms.catalog import find
from bandana.algorithms.environments.kernel_functions import GapFunctions
from bandana.algorithms.environments.tables import sphere_table
from bandana.algorithms.problem import Problem
from bandana.algorithms.rkhs.features import feature_map
from bandana.algorithms.rkhs.kernels import SquaredExponential
from bandana.algorithms.run import run
from bandana.audits.audit import audit
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.fault import Control
from bandana.audits.outcome import Effort
from bandana.audits.testbeds.catalog import bed_settings
from bandana.audits.trial import Trial
from bandana.privacy_core import ApproxDP, Interval, LiveLedger, ReproducibleNoise, TrustModel
from benchmarks.result import Result

UNIT, KERNEL = Interval(0.0, 1.0), SquaredExponential(0.5)
N_FEATURES, N_ACTIONS, HORIZON, TRIALS = 100, 25, 1024, 20
EPSILONS = (0.1, 0.5, 1.0, 10.0)
ROUNDS, REPLAYS = 16, 100_000


def _least_cpu(work: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds of the repeat that took fewest."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


# --- a replication ---------------------------------------------------------------------------------------------------


def _play(calibration: str, n_reps: int, horizon: int = HORIZON, epsilon: float = 1.0) -> None:
    features = feature_map(KERNEL, 2, N_FEATURES)
    assert features.n_features == N_FEATURES
    algorithm = GPUCBSettings(N_ACTIONS, features, horizon, UNIT).private(
        ApproxDP(epsilon, 0.1), TrustModel.JOINT, calibration
    )
    stream = GapFunctions(KERNEL, 2, N_ACTIONS, horizon, np.random.SeedSequence(1))
    run(algorithm, stream, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(2))))


def _unavoidable() -> None:
    """A step's noise, one rank-one update of the Gram matrix, and one solve, each as NumPy has it."""
    generator = np.random.Generator(np.random.SFC64(1))
    gram, x, vector = np.eye(N_FEATURES), np.full(N_FEATURES, 0.1), np.ones(N_FEATURES)
    n_free = N_FEATURES * (N_FEATURES + 1) // 2 + N_FEATURES
    for _ in range(HORIZON):
        generator.standard_normal(n_free)
        gram += np.outer(x, x)
        np.linalg.solve(gram, vector)


def _figure() -> None:
    for epsilon in EPSILONS:
        _play("printed", TRIALS, epsilon=epsilon)


def _replications() -> list[Result]:
    told = f"GP-UCB under joint DP, m = {N_FEATURES}, T = {HORIZON}, {N_ACTIONS} points a user, {TRIALS} trials at once"
    found = []
    least = _least_cpu(_unavoidable)
    for calibration in ("tight", "printed"):
        _play(calibration, 2, 40)  # compiles
        whole = _least_cpu(lambda c=calibration: _play(c, TRIALS), 2) / TRIALS  # type: ignore[misc]
        name = f"{told}, {calibration}: a trial over its noise, a rank-one update and a solve a step"
        found.append(Result(name, whole / least, 4, "ratio"))
    figure = _least_cpu(_figure, 1)
    told = f"GP-UCB, Figure 1 as printed: {TRIALS} trials x {len(EPSILONS)} privacy levels, in CPU time over two cores"
    found.append(Result(told, figure / 2, 180, "s"))
    return found


# --- the audit of the joint release, T = 16, m = 4 -------------------------------------------------------------------


def _audits() -> list[Result]:
    entry, problem = find("gp-ucb joint"), Problem(3, UNIT, ROUNDS, dimension=2, kernel=KERNEL)
    assert entry.promise is not None
    assert entry.probes is not None
    settings = bed_settings(entry, problem, "tight")
    table = sphere_table(ROUNDS, 3, 2, UNIT, np.random.SeedSequence(0))
    trial = Trial(entry.build(settings), entry.promise(settings), table, entry.probes(3))
    every = CONTROLS[entry.label]

    def work(controls: tuple[Control, ...], replays: int) -> None:
        outcome = audit(trial, controls, Effort(replays, 0.95, 1e-5, 200, 1))
        assert replays < REPLAYS or outcome.verdict == ("PASS" if controls else "INCONCLUSIVE")

    work(every, 2000)  # compiles
    told = f"audit of GP-UCB under joint DP at 1e5 replays a side, T = {ROUNDS}, m = 4, in CPU time"
    honest = _least_cpu(lambda: work((), REPLAYS), 1)
    whole = _least_cpu(lambda: work(every, REPLAYS), 1)
    return [
        Result(f"{told}: all of it but planted faults", honest, 60, "s"),
        Result(f"{told} over two cores: whole, with its {len(every)} planted faults", whole / 2, 60, "s"),
    ]


def measure() -> list[Result]:
    return [*_replications(), *_audits()]
