"""Linear and contextual bandits: a replication, a round beside its contexts, an audit; and a whole published experiment."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bandana.algorithms.bandits.contextual.oful import adar_oful
from bandana.algorithms.bandits.finite_arm.episodic_ucb import adap_klucb, adap_ucb, adar_ucb
from bandana.algorithms.bandits.finite_arm.successive_elimination import dp_se
from bandana.algorithms.bandits.linear.phased_elimination import adar_gope
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.linear import LinearArms, random_arms
from bandana.algorithms.environments.sphere import LinearLink, SphereContexts
from bandana.algorithms.observers import RegretCurve, log_grid
from bandana.algorithms.protocol import Algorithm
from bandana.algorithms.run import run
from bandana.audits.audit import audit
from bandana.audits.faults.fault import Control
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import Effort
from bandana.audits.own.white_box import with_places
from bandana.audits.plan import plan_bounds
from bandana.audits.replays.measure import measure as measure_privacy
from bandana.audits.subjects import subjects
from bandana.audits.trial import Audited
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise
from benchmarks.result import Result, fastest

UNIT = Interval(0.0, 1.0)
GOPE_ARMS, GOPE_DIMENSION, GOPE_HORIZON, GOPE_REPS = 50, 5, 1_000_000, 256
OFUL_ARMS, OFUL_DIMENSION, OFUL_HORIZON, OFUL_REPS = 50, 10, 1000, 64
REPLAYS = 100_000
FIGURE_MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
FIGURE_EPSILONS = (0.05, 0.1, 0.25, 1.0, 10.0)
FIGURE_HORIZON, FIGURE_REPS, FIGURE_BLOCK = 10_000_000, 2000, 1000


def _ledger(n_reps: int) -> LiveLedger:
    return LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(2)))


# --- AdaR-GOPE -------------------------------------------------------------------------------------------------------


def _gope(calibration: str, n_reps: int) -> None:
    """Built anew, so that its designs are computed too."""
    features = random_arms(GOPE_ARMS, GOPE_DIMENSION, np.random.SeedSequence(3))
    theta = features[0] / 2
    stream = LinearArms(features, theta, GOPE_HORIZON, np.random.SeedSequence(1))
    run(adar_gope(features, 2.0, 1.0, UNIT, calibration, 1 / GOPE_HORIZON), stream, _ledger(n_reps))


def _gope_results() -> list[Result]:
    told = f"AdaR-GOPE, d = {GOPE_DIMENSION}, K = {GOPE_ARMS}, T = 1e6"
    found = []
    for calibration in ("tight", "printed"):
        _gope(calibration, 1)
        batch = fastest(lambda c=calibration: _gope(c, GOPE_REPS), 3) / GOPE_REPS  # type: ignore[misc]
        lone = fastest(lambda c=calibration: _gope(c, 1))  # type: ignore[misc]
        found += [
            Result(f"{told}, {calibration}: a replication, {GOPE_REPS} at once", batch * 1e3, 5, "ms"),
            Result(f"{told}, {calibration}: a replication alone, its designs included", lone * 1e3, 5, "ms"),
        ]
    return found


# --- AdaR-OFUL -------------------------------------------------------------------------------------------------------


def _contexts() -> SphereContexts:
    theta = np.full(OFUL_DIMENSION, 0.5 / np.sqrt(OFUL_DIMENSION))
    return SphereContexts(theta, OFUL_ARMS, OFUL_HORIZON, np.random.SeedSequence(1), LinearLink(UNIT))


def _oful(calibration: str) -> None:
    algorithm = adar_oful(OFUL_ARMS, OFUL_DIMENSION, OFUL_HORIZON, 2.0, 1.0, UNIT, calibration)
    run(algorithm, _contexts(), _ledger(OFUL_REPS))


def _draw_contexts() -> None:
    stream, user = _contexts(), np.zeros(OFUL_REPS, dtype=np.int64)
    for _ in range(OFUL_HORIZON):
        stream.contexts(user)


def _oful_results() -> list[Result]:
    told = f"AdaR-OFUL, d = {OFUL_DIMENSION}, K = {OFUL_ARMS}, {OFUL_REPS} replicates"
    _oful("tight")
    contexts = fastest(_draw_contexts)
    return [
        Result(f"{told}, {c}: cost over drawing its contexts", fastest(lambda c=c: _oful(c)) / contexts, 3, "ratio")  # type: ignore[misc]
        for c in ("tight", "printed")
    ]


# --- the audit of AdaR-OFUL, T = 64, d = 3 ---------------------------------------------------------------------------


def _audit_results() -> list[Result]:
    subject = subjects()["adar-oful tight"]()
    trial, told = subject.trial, "audit of AdaR-OFUL at 1e5 replays a side, T = 64, d = 3, two cores"
    pairs = canary_pairs(trial.table, trial.probes, trial.private_records)[:1]
    plan = plan_bounds(trial.claim.stated, 1e-5)

    def of_pair(replays: int) -> None:
        measure_privacy(trial.algorithm, pairs, Effort(replays, 0.95, 1e-5, 200, 1), plan)

    def of_all(controls: tuple[Control, ...], replays: int) -> None:
        outcome = audit(trial, controls, Effort(replays, 0.95, 1e-5, 200, 1))
        assert replays < REPLAYS or outcome.verdict == ("PASS" if controls else "INCONCLUSIVE")

    audited = Audited(trial, None, subject.controls)
    controls = with_places(audited, Effort(REPLAYS, 0.95, 1e-5, 200, 1)).controls
    of_all(controls, 2000)  # compiles
    pair = fastest(lambda: of_pair(REPLAYS), 1)
    honest = fastest(lambda: of_all((), REPLAYS), 1)
    whole = fastest(lambda: of_all(controls, REPLAYS), 1)
    return [
        Result(f"{told}: one pair, all views and bounds", pair, 30, "s"),
        Result(f"{told}: all of it but planted faults", honest, 30, "s"),
        Result(f"{told}: whole, with its {len(controls)} planted faults", whole, 30, "s"),
    ]


# --- Azize and Basu (2022), Fig. 2 -----------------------------------------------------------------------------------


def _figure_algorithms(epsilon: float) -> tuple[Algorithm, ...]:
    """All four with the paper's constants; pure DP of the level for three, (2, epsilon)-RDP for AdaR-UCB."""
    n_arms = len(FIGURE_MEANS)
    return (
        adap_ucb(n_arms, epsilon, 3.1, UNIT, "printed"),
        adap_klucb(n_arms, epsilon, 3.1, UNIT),
        adar_ucb(n_arms, 2.0, epsilon, 3.1, UNIT, "printed"),
        dp_se(n_arms, epsilon, 1 / FIGURE_HORIZON, UNIT),
    )


def _figure(n_reps: int = FIGURE_REPS, epsilons: tuple[float, ...] = FIGURE_EPSILONS) -> None:
    """The regret curve of every replication of every algorithm and level, in blocks on two threads."""
    grid, size = log_grid(FIGURE_HORIZON), min(n_reps, FIGURE_BLOCK)

    def play(work: tuple[int, Algorithm]) -> None:
        key, algorithm = work
        stream = BernoulliArms(np.array(FIGURE_MEANS), FIGURE_HORIZON, np.random.SeedSequence(1, spawn_key=(key,)))
        ledger = LiveLedger(size, ReproducibleNoise(np.random.SeedSequence(2, spawn_key=(key,))))
        run(algorithm, stream, ledger, observers=[RegretCurve(stream.means, grid, size)])

    works = [a for epsilon in epsilons for a in _figure_algorithms(epsilon) for _ in range(-(-n_reps // FIGURE_BLOCK))]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(play, enumerate(works)))


def measure() -> list[Result]:
    parts: list[Callable[[], list[Result]]] = [_gope_results, _oful_results]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    results = [result for part in parts for result in part()]
    if cores >= 2:
        _figure(8, FIGURE_EPSILONS[-1:])  # compiles
        told = "Fig. 2 of Azize and Basu (2022): 4 algorithms, 5 epsilons, T = 1e7, 2000 replications, two cores"
        results += [*_audit_results(), Result(told, fastest(_figure, 1), 30, "s")]
    return results
