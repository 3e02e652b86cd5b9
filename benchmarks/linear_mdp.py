"""Batched LSVI-UCB in linear MDPs: a replication beside its limit, and the audit of a joint release of whole episodes.

In CPU time: other work on the machine changes it little.
"""

import time
from collections.abc import Callable

import numpy as np

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.mdp.models import LinearModel
from bandana.algorithms.rl.linear_mdp.forms import LSVI, SCHEMES
from bandana.algorithms.run import run
from bandana.audits.audit import audit
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.fault import Control
from bandana.audits.outcome import Effort
from bandana.audits.testbeds.catalog import bed_of, bed_settings
from bandana.audits.trial import Trial
from bandana.privacy_core import ApproxDP, LiveLedger, ReproducibleNoise
from benchmarks.result import Result

DIMENSION, LENGTH, EPISODES, N_STATES, N_ACTIONS = 10, 5, 10_000, 5, 2
ROUNDS, REPLAYS = 64, 100_000
"""Rounds of a bed; of episodes it has an eighth."""


def _least_cpu(work: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds of the repeat that took fewest."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


# --- a replication ---------------------------------------------------------------------------------------------------


def _play(batches: str, n_reps: int, episodes: int = EPISODES) -> None:
    generator = np.random.Generator(np.random.SFC64(1))
    transitions = generator.dirichlet(np.ones(N_STATES), (LENGTH, N_STATES, N_ACTIONS))
    rewards = generator.random((LENGTH, N_STATES, N_ACTIONS))
    stream = FiniteMDP(transitions, rewards, episodes, np.random.SeedSequence(2))
    model = LinearModel(np.eye(DIMENSION).reshape(N_STATES, N_ACTIONS, DIMENSION), LENGTH)
    algorithm = LSVI(model, episodes, batches=batches).private(ApproxDP(1.0, 1e-5), "tight")
    run(algorithm, stream, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(3))))


def _replications() -> list[Result]:
    told = f"batched LSVI-UCB under joint DP, d = {DIMENSION}, H = {LENGTH}, K = {EPISODES}, in CPU time"
    found = []
    for name in SCHEMES:
        _play(name, 2, 100)  # compiles
        alone = _least_cpu(lambda b=name: _play(b, 1), 2)  # type: ignore[misc]
        found.append(Result(f"{told}: a lone replication, {name} batches", alone, 10, "s"))
    many = _least_cpu(lambda: _play("geometric", 100), 2) / (100 * EPISODES)
    return [*found, Result(f"{told}: an episode of one of 100 replications, geometric batches", many * 1e6, 20, "us")]


# --- the audit of the joint release, K = 8, H = 3, d = 3 -------------------------------------------------------------


def _audits() -> list[Result]:
    entry = find("lsvi-ucb joint")
    assert entry.promise is not None
    assert entry.probes is not None
    problem, table = bed_of(entry, ROUNDS, 0)
    assert problem.model is not None
    assert (table.n_users, problem.model.horizon, problem.model.dimension) == (8, 3, 3)
    settings = bed_settings(entry, problem, "tight")
    trial = Trial(entry.build(settings), entry.promise(settings), table, entry.probes(problem.n_actions))
    every = CONTROLS[entry.label]

    def work(controls: tuple[Control, ...], replays: int) -> None:
        outcome = audit(trial, controls, Effort(replays, 0.95, 1e-5, 200, 1))
        assert replays < REPLAYS or outcome.verdict == ("PASS" if controls else "INCONCLUSIVE")

    work(every, 2000)  # compiles
    told = "audit of batched LSVI-UCB under joint DP at 1e5 replays a side, K = 8, H = 3, d = 3, in CPU time"
    honest = _least_cpu(lambda: work((), REPLAYS), 1)
    whole = _least_cpu(lambda: work(every, REPLAYS), 1)
    return [
        Result(f"{told}: all of it but planted faults", honest, 60, "s"),
        Result(f"{told} over two cores: whole, with its {len(every)} planted faults", whole / 2, 60, "s"),
    ]


def measure() -> list[Result]:
    return [*_replications(), *_audits()]
