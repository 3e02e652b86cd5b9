"""The ledger's worst record is the theorem's number, whatever was played, and the deterministic audit finds nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.algorithms.bandits.linear.phased_elimination import adar_gope, adar_gope_pure, gope
from bandana.algorithms.environments.linear import random_arms
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.run import run
from bandana.audits.faults.linear import LINEAR_CONTROLS
from bandana.audits.outcome import DETERMINISTIC, NOISE
from bandana.audits.searches import noise
from bandana.audits.searches.deterministic import search
from bandana.privacy_core import (
    BudgetExceeded,
    GaussianDP,
    Interval,
    LaplaceEvent,
    LiveLedger,
    NonPrivateEvent,
    PureDP,
    Relation,
    ReproducibleNoise,
    ScriptedLedger,
)

UNIT = Interval(0.0, 1.0)
FEATURES = random_arms(5, 3, np.random.SeedSequence(3))
PLANE = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
TABLE = RewardTable(np.random.default_rng(5).random((400, 5)), UNIT)
NAMES = ["printed", "tight", "pure"]
names = pytest.mark.parametrize("name", NAMES)


def built(name, features=FEATURES, alpha=2.0, epsilon=1.0, beta_scale=0.1, reward_range=UNIT):
    if name == "pure":
        return adar_gope_pure(features, epsilon, reward_range, 0.1, beta_scale)
    return adar_gope(features, alpha, epsilon, reward_range, name, 0.1, beta_scale)


@pytest.mark.parametrize("name", ["printed", "tight"])
@settings(max_examples=40)
@given(alpha=st.floats(1.01, 100.0), epsilon=st.floats(1e-2, 50.0), seed=st.integers(0, 10**6))
def test_the_worst_record_pays_what_theorem_7_says(name, alpha, epsilon, seed):
    ledger = OwnNoiseLedger([seed, seed + 1])
    run(built(name, alpha=alpha, epsilon=epsilon, beta_scale=1e-3), TABLE, ledger)
    claimed = math.sqrt(2 * epsilon / alpha)
    (count,) = ledger.worst_record().values()
    assert count == 1, "a reward lies in one phase"
    assert claimed * (1 - 1e-11) <= ledger.guarantee().mu <= claimed
    assert epsilon * (1 - 1e-11) <= ledger.guarantee().rdp(alpha) <= epsilon


@settings(max_examples=20)
@given(epsilon=st.floats(1e-2, 50.0), seed=st.integers(0, 10**6))
def test_the_worst_record_of_the_pure_variant(epsilon, seed):
    ledger = OwnNoiseLedger([seed, seed + 1])
    run(built("pure", epsilon=epsilon, beta_scale=1e-3), TABLE, ledger)
    ((event, count),) = ledger.worst_record().items()
    assert isinstance(event, LaplaceEvent)
    assert count == 1
    assert isinstance(ledger.guarantee(), PureDP)
    assert epsilon * (1 - 1e-11) <= ledger.guarantee().epsilon <= epsilon


@names
@pytest.mark.parametrize("width", [1.0, 2.0, 7.0])
def test_the_sensitivity_is_the_width_of_the_range(name, width):
    mechanism = built(name, reward_range=Interval(-0.5, width - 0.5)).noise.mechanism
    assert mechanism.sensitivity == width
    expected = width if name == "pure" else width * math.sqrt(2 / 2)
    assert mechanism.scale == pytest.approx(expected, rel=1e-11)
    assert mechanism.relation is Relation.REPLACE_REWARD


def test_in_the_papers_range_the_noise_is_the_papers():
    """N_a ~ N(0, 2 alpha / epsilon) for |R| <= 1."""
    mechanism = built("printed", alpha=3.0, epsilon=0.4, reward_range=Interval(-1.0, 1.0)).noise.mechanism
    assert mechanism.scale**2 == pytest.approx(2 * 3.0 / 0.4, rel=1e-11)


@names
def test_phases_follow_one_another_and_release_what_they_played(name):
    ledger = OwnNoiseLedger([1, 2, 3], keeps_transcript=True)
    algorithm = built(name)
    run(algorithm, TABLE, ledger)
    reached = np.zeros(3, dtype=int)
    for entry in ledger.transcript:
        reps = range(3) if entry.reps is None else entry.reps.tolist()
        for row, rep in enumerate(reps):
            assert entry.records.start[row] == reached[rep], "phases follow one another without a gap or an overlap"
            reached[rep] = entry.records.stop[row]
    plan = algorithm.plan(1, np.ones(5, dtype=bool))
    first, length = ledger.transcript[0], int(plan.counts.sum())
    assert first.records.stop.tolist() == [length] * 3
    played = np.repeat(plan.slots, plan.counts)
    sums = np.array(
        [TABLE.rewards[np.arange(length), played][np.repeat(np.arange(6)[: len(plan.counts)], plan.counts) == j].sum()
         for j in range(len(plan.counts))]
    )  # fmt: skip
    assert first.value[0] == pytest.approx(sums @ plan.encode, rel=1e-12)


@names
def test_one_replaced_reward_moves_one_release_by_at_most_the_width(name):
    algorithm = built(name)
    live = LiveLedger(6, ReproducibleNoise(np.random.SeedSequence(3)), keeps_transcript=True)
    run(algorithm, TABLE, live)
    # The first reward of a run is one at which privacy is exact.
    neighbor = TABLE.replaced(0, np.where(TABLE.rewards[0] < 0.5, 1.0, 0.0))
    first = int(algorithm.plan(1, np.ones(5, dtype=bool)).slots[0])
    scripted = ScriptedLedger(6, live.transcript, keeps_values=True)
    run(algorithm, neighbor, scripted)
    scripted.finish()
    assert (scripted.diverged == -1).all()
    change = live.transcript[0].mechanism.change(live.transcript[0].value, scripted.values[0])
    assert change == pytest.approx(np.full(6, abs(neighbor.rewards[0, first] - TABLE.rewards[0, first])), rel=1e-9)
    for entry, other in zip(live.transcript[1:], scripted.values[1:], strict=True):
        assert np.array_equal(entry.value, other)
    assert (scripted.log_ratio != 0).all()


@names
def test_it_fits_its_own_budget_and_no_smaller_one(name):
    algorithm = built(name)
    relation = Relation.REPLACE_REWARD
    fits, small = (
        (PureDP(e, relation=relation) if name == "pure" else GaussianDP(e, relation=relation)) for e in (1.0, 0.99)
    )
    run(algorithm, TABLE, LiveLedger(2, ConstantNoise(), budget=fits))
    ledger = LiveLedger(2, ConstantNoise(), budget=small)
    with pytest.raises(BudgetExceeded):
        run(algorithm, TABLE, ledger)
    assert ledger.noise.calls == 0


def test_the_twin_has_no_privacy():
    ledger = LiveLedger(1, ConstantNoise())
    run(gope(FEATURES, UNIT, 0.1, 0.1), TABLE, ledger)
    assert ledger.worst_record() == {NonPrivateEvent(): 1}
    assert ledger.noise.calls == 0


@names
def test_rewards_are_clipped_to_the_declared_range(name):
    wild = RewardTable(TABLE.rewards * 1000 - 500, Interval(-500.0, 500.0))
    tame = RewardTable(np.where(wild.rewards > 0.5, 1.0, 0.0), UNIT)
    values = []
    for table in (wild, tame):
        ledger = LiveLedger(1, ConstantNoise(), keeps_transcript=True)
        run(built(name), table, ledger, horizon=200)
        values.append([entry.value for entry in ledger.transcript])
    assert len(values[0]) > 0
    np.testing.assert_allclose(values[0][0], values[1][0], atol=1.0)


def claim_of(name):
    return None if name == "pure" else GaussianDP(1.0, relation=Relation.REPLACE_REWARD)


@names
@pytest.mark.parametrize(
    ("features", "n_rounds"),
    [(PLANE, 24), pytest.param(FEATURES, 120, marks=pytest.mark.nightly)],
    ids=["plane", "space"],
)
def test_the_audit_without_statistics_finds_nothing(name, features, n_rounds):
    algorithm = built(name, features, beta_scale=0.03)
    ledger = OwnNoiseLedger(list(range(32)), keeps_transcript=True)
    run(algorithm, RewardTable(np.full((n_rounds, len(features)), 0.5), UNIT), ledger)
    assert len(ledger.transcript) >= 2, "the searched tables are long enough for two phases"
    assert search(algorithm, UNIT, claim_of(name), max_examples=60, max_rounds=n_rounds) is None


@names
@pytest.mark.parametrize("control", LINEAR_CONTROLS["adar-gope"], ids=lambda control: control.name)
def test_planted_faults_are_found(name, control):
    honest = built(name, PLANE, beta_scale=0.03)
    faulty = control.plant(honest)
    if DETERMINISTIC in control.caught_by:
        assert search(faulty, UNIT, claim_of(name), max_examples=200, shrinks=False) is not None
    if NOISE in control.caught_by:
        table = RewardTable(np.full((40, 3), 0.5), UNIT)
        assert noise.examine(honest, table, seed=1) is None
        assert noise.examine(faulty, table, seed=1) is not None
