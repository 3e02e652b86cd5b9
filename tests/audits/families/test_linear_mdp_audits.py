"""Audits of batched LSVI-UCB: a small one in which every planted fault is caught, and a deterministic one of each scheme."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from nightly import first

from bandana.algorithms.catalog import find
from bandana.algorithms.rl.linear_mdp import values_numba as kernels
from bandana.algorithms.rl.linear_mdp.batched_lsvi import BatchedLSVI
from bandana.algorithms.rl.linear_mdp.forms import LSVI
from bandana.algorithms.run import run
from bandana.audits.audit import audit
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.fault import planted_as
from bandana.audits.faults.linear_mdp import LSVI_UTILITY
from bandana.audits.neighbors import worst_pair
from bandana.audits.outcome import Effort
from bandana.audits.searches import noise
from bandana.audits.searches.deterministic import search
from bandana.audits.testbeds.catalog import bed_of, bed_settings
from bandana.audits.trial import Trial
from bandana.privacy_core import ApproxDP, GaussianDP, Interval, LiveLedger, PureDP, ReproducibleNoise

UNIT = Interval(0.0, 1.0)
EPSILON, DELTA = 4.377, 1e-5  # 1-GDP for Gaussian noise
ONE = GaussianDP(1 + 1e-9)


def trial(name, calibration="tight"):
    entry = find(name)
    problem, table = bed_of(entry, 64, 0)
    settings = bed_settings(entry, problem, calibration)
    return Trial(entry.build(settings), entry.promise(settings), table, entry.probes(problem.n_actions))


JOINT = trial("lsvi-ucb joint")
MODEL, TABLE = JOINT.algorithm.model, JOINT.table
EPISODES = TABLE.n_users


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "replays"), [("lsvi-ucb joint", 20_000), ("lsvi-ucb joint pure", 4000)])
def test_a_small_audit_passes_and_catches_every_fault(name, replays):
    """Under pure privacy replays see little, however many; most of its faults are caught by other means."""
    found = audit(trial(name), CONTROLS[name], Effort(replays, 0.95, DELTA, 40, 1))
    missed = {control.name: (control.measured, control.caught_by) for control in found.controls if not control.is_caught}
    assert not missed
    assert str(found.verdict) == "PASS"


def test_the_worst_pair_nearly_reaches_the_price():
    """No user is worst for the matrices and for the vectors, which pay apart: the joint supremum lies between both."""
    found = worst_pair.find(JOINT.algorithm, TABLE, (0,), 0, private_records=True)
    assert math.sqrt(0.7) < found.mu_analytic <= 1 + 1e-9
    assert found.pair.hidden_record == found.pair.record == 0


SCHEMES = {
    f"{kind} {batches}": (promise, batches)
    for kind, promise in (("joint", ApproxDP(EPSILON, DELTA)), ("pure", PureDP(1.0)))
    for batches in ("static", "geometric", "determinant")
}


def built(name, beta_scale=0.02, n_batches=4):
    promise, batches = SCHEMES[name]
    settings = LSVI(MODEL, EPISODES, batches=batches, n_batches=n_batches, switch=1e-3, beta_scale=beta_scale)
    return settings.private(promise, "tight")


@pytest.mark.parametrize(
    "name", first(2, sorted(SCHEMES, key=lambda name: name not in ("joint geometric", "pure determinant")))
)
def test_the_audit_without_statistics_and_that_of_the_noise_find_nothing(name):
    algorithm = built(name)
    assert search(algorithm, UNIT, ONE if "joint" in name else None, 60, private_records=True) is None
    assert noise.examine(algorithm, TABLE, seed=1) is None


def waiting(algorithm, log_growth):
    return dataclasses.replace(algorithm, schedule=dataclasses.replace(algorithm.schedule, log_growth=log_growth))


class DecidesFromExact(BatchedLSVI):
    """Decides when to update from determinants of exact matrices, and nothing else; `Beside` hands it both."""

    def _invert(self, noisy, look):
        released, exact = noisy
        gram = np.empty((len(exact) * self.episode_length, self.model.dimension, self.model.dimension))
        kernels.unfold(exact.reshape(len(gram), -1), self.diagonal_weight, 1.0, gram)
        return super()._invert(released, look)[0], np.linalg.slogdet(gram)[1].reshape(len(exact), -1)


@dataclass(frozen=True)
class Beside:
    """Answers with the released sum and the exact one."""

    honest: Any

    def __getattr__(self, name):
        return getattr(self.__dict__["honest"], name)

    def init(self, n_reps, shape=()):
        return self.honest.init(n_reps, shape), np.zeros((n_reps, *shape))

    def add(self, state, value, n_records):
        return self.honest.add(state[0], value, n_records), state[1] + value

    def close(self, state, ledger, reps=None):
        inner, noisy, n_records = self.honest.close(state[0], ledger, reps)
        return (inner, state[1]), (noisy, state[1].copy()), n_records


@pytest.mark.parametrize("name", first(1, ["joint determinant", "pure determinant"]))
def test_determinants_of_exact_matrices_leak_where_those_of_released_ones_do_not(name):
    """What the paper finds unclear: with released determinants both data sets update at the same looks."""
    honest = waiting(built(name, n_batches=3), 0.15)
    _, released = run(honest, TABLE, LiveLedger(64, ReproducibleNoise(np.random.SeedSequence(1))))
    assert len(set(released.n_updates.tolist())) > 1, "where updates come depends on what was released"
    assert search(honest, UNIT, ONE if "joint" in name else None, 60, private_records=True) is None
    leaking = planted_as(DecidesFromExact, matrices=Beside(honest.matrices))(waiting(honest, 1.5))
    found = search(leaking, UNIT, None, 150, shrinks=False, private_records=True)
    assert found is not None
    assert found.kind == "decision"


def test_what_costs_utility_is_no_leak():
    """After the first update none is ever due: the matrices are released, and one policy is played for ever."""
    [never] = LSVI_UTILITY
    faulty = never.plant(JOINT.algorithm)
    ledger = LiveLedger(4, ReproducibleNoise(np.random.SeedSequence(1)), keeps_transcript=True)
    _, released = run(faulty, TABLE, ledger)
    assert released.n_updates.tolist() == [1] * 4
    assert len(ledger.transcript) == len(faulty.schedule.looks) + faulty.episode_length
    assert search(faulty, UNIT, JOINT.claim.gaussian, 60, private_records=True) is None
    assert 0 < ledger.guarantee().mu < JOINT.claim.gaussian.mu
