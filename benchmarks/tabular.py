"""Tabular UCB-VI under joint privacy: an episode of a replication beside its limit, in CPU time."""

import time

import numpy as np

from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.rl.tabular.forms import UCBVISettings
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, LiveLedger, PureDP, ReproducibleNoise, TrustModel
from benchmarks.result import Result

N_STATES, N_ACTIONS, LENGTH, EPISODES, REPLICATIONS = 10, 5, 10, 10_000, 50


def _play(promise: ApproxDP | PureDP, calibration: str, n_reps: int, episodes: int = EPISODES) -> float:
    """CPU seconds."""
    generator = np.random.Generator(np.random.SFC64(1))
    transitions = generator.dirichlet(np.ones(N_STATES), (LENGTH, N_STATES, N_ACTIONS))
    rewards = generator.random((LENGTH, N_STATES, N_ACTIONS))
    stream = FiniteMDP(transitions, rewards, episodes, np.random.SeedSequence(2))
    settings = UCBVISettings(N_STATES, N_ACTIONS, LENGTH, episodes)
    algorithm = settings.private(promise, TrustModel.JOINT, calibration)
    ledger = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(3)))
    start = time.process_time()
    run(algorithm, stream, ledger)
    return time.process_time() - start


def measure() -> list[Result]:
    told = f"UCB-VI under joint DP, S = {N_STATES}, A = {N_ACTIONS}, H = {LENGTH}, K = {EPISODES}, in CPU time"
    found = []
    for name, promise, calibration in (
        ("PUCB as known", PureDP(1.0), "as-known"),
        ("tight, pure", PureDP(1.0), "tight"),
        ("tight, approximate", ApproxDP(1.0, 1e-5), "tight"),
    ):
        _play(promise, calibration, 2, 100)  # compiles
        seconds = min(_play(promise, calibration, REPLICATIONS) for _ in range(2)) / (REPLICATIONS * EPISODES)
        found.append(Result(f"{told}: an episode of one of {REPLICATIONS} replications, {name}", seconds * 1e6, 50, "us"))
    return found
