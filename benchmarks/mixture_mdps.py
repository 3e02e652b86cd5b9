"""Linear-mixture MDPs: an episode of local UCRL-VTR, and the audit of a joint one.

In CPU time: other work on the machine changes it little.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.rl.mixture.calibrations import calibrations
from bandana.algorithms.rl.mixture.forms import VTR
from bandana.algorithms.run import run
from bandana.audits.audit import audit
from bandana.audits.outcome import Effort
from bandana.audits.testbeds.catalog import bed_of, bed_settings
from bandana.audits.trial import Trial
from bandana.privacy_core import ApproxDP, Interval, LiveLedger, ReproducibleNoise, TrustModel
from benchmarks.result import Result

UNIT = Interval(0.0, 1.0)
DIMENSION, HORIZON, N_STATES, N_ACTIONS, EPISODES, REPS = 5, 6, 8, 16, 200, 256
ROUNDS, REPLAYS = 64, 100_000


def _least_cpu(work: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds of the repeat that took fewest."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def _model() -> tuple[MixtureModel, np.ndarray]:
    """A mixture of d random kernels, and uniform weights."""
    generator = np.random.default_rng(1)
    kernels = generator.dirichlet(np.ones(N_STATES), (DIMENSION, N_STATES, N_ACTIONS))
    rewards = generator.random((HORIZON, N_STATES, N_ACTIONS))
    root = np.sqrt(DIMENSION)
    model = MixtureModel(np.moveaxis(kernels, 0, -1) / root, rewards, float(root))
    return model, np.full((HORIZON, DIMENSION), root / DIMENSION)


def _play(is_plus: bool, trust: TrustModel, calibration: str, n_reps: int, episodes: int) -> None:
    model, parameters = _model()
    parts = calibrations(is_plus, trust is TrustModel.JOINT, False)[calibration]
    algorithm = VTR(model, episodes, UNIT, is_plus).private(ApproxDP(1.0, 1e-5), trust, parts)
    stream = FiniteMDP(model.transitions(parameters), model.rewards, episodes, np.random.SeedSequence(2))
    run(algorithm, stream, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(3))))


def _audit(replays: int) -> None:
    """All views and bounds of all canary pairs, without planted faults."""
    entry = find("ucrl-vtr joint")
    problem, table = bed_of(entry, ROUNDS, 0)
    assert problem.model is not None
    assert entry.probes is not None
    assert entry.promise is not None
    assert (table.n_users, problem.model.horizon, problem.model.dimension) == (8, 3, 3)
    settings = bed_settings(entry, problem, "tight")
    trial = Trial(entry.build(settings), entry.promise(settings), table, entry.probes(problem.n_actions))
    audit(trial, (), Effort(replays, 0.95, 1e-5, 40, 1))


def measure() -> list[Result]:
    told = f"d = {DIMENSION}, H = {HORIZON}, S = {N_STATES}, A = {N_ACTIONS}"
    results = []
    for name, trust in (("UCRL-VTR", TrustModel.LOCAL), ("UCRL-VTR", TrustModel.JOINT), ("UCRL-VTR+", TrustModel.LOCAL)):
        for calibration in ("tight", "printed") if trust is TrustModel.LOCAL else ("tight",):
            play = partial(_play, name == "UCRL-VTR+", trust, calibration)
            play(2, 4)  # compiles
            spent = _least_cpu(partial(play, REPS, EPISODES))
            each = spent / (EPISODES * REPS) * 1e6
            results.append(Result(f"{trust} {name}, {calibration}, {told}: an episode of one of {REPS}", each, 100, "us"))
    _audit(1000)
    name = "audit of joint UCRL-VTR, tight, K = 8, H = 3, d = 3: 1e5 replays on each side, all pairs and bounds"
    results.append(Result(name, _least_cpu(lambda: _audit(REPLAYS), 1), 60, "s"))
    return results
