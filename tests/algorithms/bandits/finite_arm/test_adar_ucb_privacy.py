"""The ledger's worst record is the theorem's number, whatever was played."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adac_ucb, adar_ucb, ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.run import run
from bandana.privacy_core import (
    BudgetExceeded,
    GaussianDP,
    Interval,
    LiveLedger,
    NonPrivateEvent,
    Relation,
    ReproducibleNoise,
    ScriptedLedger,
)

UNIT = Interval(0.0, 1.0)
TABLE = RewardTable(np.random.default_rng(5).random((150, 3)), UNIT)
calibrations = pytest.mark.parametrize("calibration", ["printed", "tight"])


@calibrations
@settings(max_examples=60)
@given(alpha=st.floats(1.01, 100.0), epsilon=st.floats(1e-3, 50.0), seed=st.integers(0, 10**6))
def test_the_worst_record_pays_what_theorem_4_says(calibration, alpha, epsilon, seed):
    ledger = OwnNoiseLedger([seed, seed + 1])
    run(adar_ucb(3, alpha, epsilon, 4.0, UNIT, calibration), TABLE, ledger)
    claimed = math.sqrt(2 * epsilon / alpha)
    (count,) = ledger.worst_record().values()
    assert count == 1, "a reward lies in one episode"
    assert claimed * (1 - 1e-11) <= ledger.guarantee().mu <= claimed
    assert epsilon * (1 - 1e-11) <= ledger.guarantee().rdp(alpha) <= epsilon


@calibrations
def test_what_the_first_pull_costs(calibration):
    ledger = LiveLedger(2, ConstantNoise(), keeps_transcript=True)
    run(adar_ucb(3, 2.0, 1.0, 4.0, UNIT, calibration), TABLE, ledger)
    mus = [entry.mechanism.event.mu for entry in ledger.transcript]
    assert mus[:3] == pytest.approx([0.5 if calibration == "printed" else 1.0] * 3, rel=1e-11)
    assert mus[3:] == pytest.approx([1.0] * len(mus[3:]), rel=1e-11)
    assert all(entry.mechanism.sensitivity == 1.0 for entry in ledger.transcript)
    only_first = ledger.worst_record(before=3)
    assert [event.mu for event in only_first] == pytest.approx([mus[0]])


@calibrations
def test_every_released_sum_is_that_of_its_span(calibration):
    ledger = OwnNoiseLedger([1, 2, 3], keeps_transcript=True)
    run(adar_ucb(3, 2.0, 1.0, 4.0, UNIT, calibration), TABLE, ledger)
    reached = np.zeros(3, dtype=int)
    for entry in ledger.transcript:
        reps = range(3) if entry.reps is None else entry.reps.tolist()
        for row, rep in enumerate(reps):
            start, stop = int(entry.records.start[row]), int(entry.records.stop[row])
            assert start == reached[rep], "episodes follow one another without a gap"
            reached[rep] = stop
            assert entry.value[row] in TABLE.rewards[start:stop].sum(axis=0)
    assert (reached > 75).all()


@calibrations
def test_one_replaced_reward_moves_one_release_by_its_difference(calibration):
    algorithm = adar_ucb(3, 2.0, 1.0, 4.0, UNIT, calibration)
    live = LiveLedger(6, ReproducibleNoise(np.random.SeedSequence(3)), keeps_transcript=True)
    run(algorithm, TABLE, live)
    user = 20
    neighbor = TABLE.replaced(user, [1.0 if r < 0.5 else 0.0 for r in TABLE.rewards[user]])
    scripted = ScriptedLedger(6, live.transcript, keeps_values=True)
    run(algorithm, neighbor, scripted)
    scripted.finish()
    assert (scripted.diverged == -1).all()
    moved = np.zeros(6, dtype=int)
    for entry, other in zip(live.transcript, scripted.values, strict=True):
        reps = np.arange(6) if entry.reps is None else entry.reps
        inside = (entry.records.start <= user) & (user < entry.records.stop)
        assert (entry.value[~inside] == other[~inside]).all()
        assert (entry.mechanism.change(entry.value, other) <= entry.mechanism.sensitivity).all()
        moved[reps] += entry.value != other
    assert (moved == 1).all()
    assert (scripted.log_ratio != 0).all()


@calibrations
def test_it_fits_its_own_budget_and_no_smaller_one(calibration):
    algorithm = adar_ucb(3, 2.0, 1.0, 4.0, UNIT, calibration)
    run(algorithm, TABLE, LiveLedger(2, ConstantNoise(), budget=GaussianDP(1.0, relation=Relation.REPLACE_REWARD)))
    small = LiveLedger(2, ConstantNoise(), budget=GaussianDP(0.99, relation=Relation.REPLACE_REWARD))
    with pytest.raises(BudgetExceeded):
        run(algorithm, TABLE, small)
    assert small.noise.calls == (3 if calibration == "printed" else 0)


def test_the_twin_has_no_privacy():
    ledger = LiveLedger(1, ConstantNoise())
    run(ucb(3, 4.0, UNIT), TABLE, ledger)
    assert ledger.worst_record() == {NonPrivateEvent(): 1}
    assert ledger.noise.calls == 0


def test_rewards_are_clipped_to_the_declared_range():
    """A record outside the declared range counts as its nearest end: the sensitivity holds for any record."""
    wild = RewardTable(TABLE.rewards * 1000 - 500, Interval(-500.0, 500.0))
    ledger = LiveLedger(1, ConstantNoise(), keeps_transcript=True)
    run(adar_ucb(3, 2.0, 1.0, 4.0, UNIT, "tight"), wild, ledger)
    for entry in ledger.transcript:
        assert 0 <= entry.value[0] <= entry.records.stop[0] - entry.records.start[0]


@pytest.mark.parametrize("calibration", ["printed", "tight"])
def test_at_rho_it_is_adac_ucb(calibration):
    """AdaC-UCB of Azize and Basu (2024): noise N(0, 1 / (2 rho)), rho-zCDP, rho = epsilon / alpha, at every alpha."""
    rho = 0.3
    for alpha in (1.5, 2.0, 8.0):
        algorithm, ledger = adar_ucb(3, alpha, alpha * rho, 3.1, UNIT, calibration), OwnNoiseLedger([1])
        assert algorithm.sums.mechanism.deviation**2 == pytest.approx(1 / (2 * rho))
        run(algorithm, RewardTable(np.random.default_rng(5).random((50, 3)), UNIT), ledger)
        assert ledger.guarantee().zcdp().rho == pytest.approx(rho)
        assert ledger.guarantee().zcdp().rho <= rho
        assert adac_ucb(3, rho, 3.1, UNIT, calibration).sums.mechanism.deviation == pytest.approx(
            algorithm.sums.mechanism.deviation
        )
