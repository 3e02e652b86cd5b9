"""Contextual linear bandits: the worst record is the theorem's, batches are runs, vanishing noise leaves the twin."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from context_tables import context_table
from doubles import ConstantNoise, OwnNoiseLedger
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCBSettings
from bandana.algorithms.bandits.contextual.oful import adar_oful, oful
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.papers.azize_basu import most_updates
from bandana.algorithms.run import run
from bandana.privacy_core import (
    ApproxDP,
    BudgetExceeded,
    GaussianDP,
    Interval,
    JointGaussian,
    LiveLedger,
    NoPrivacy,
    Relation,
    ReproducibleNoise,
    ScriptedLedger,
    TrustModel,
)

SYMMETRIC, UNIT = Interval(-1.0, 1.0), Interval(0.0, 1.0)
N_ACTIONS, DIMENSION, HORIZON = 4, 3, 60
TABLES = {span: context_table(HORIZON, N_ACTIONS, DIMENSION, span) for span in (SYMMETRIC, UNIT)}
SHAPE = (N_ACTIONS, DIMENSION, HORIZON)
PRIVATE = {
    "oful printed": lambda span: adar_oful(*SHAPE, 2.0, 1.0, span, "printed"),
    "oful tight": lambda span: adar_oful(*SHAPE, 2.0, 1.0, span, "tight"),
    "joint printed": lambda span: LinUCBSettings(*SHAPE, span).private(ApproxDP(1.0, 1e-5), TrustModel.JOINT, "printed"),
    "joint tree": lambda span: LinUCBSettings(*SHAPE, span).private(ApproxDP(1.0, 1e-5), TrustModel.JOINT, "tree"),
    "joint tight": lambda span: LinUCBSettings(*SHAPE, span).private(ApproxDP(1.0, 1e-5), TrustModel.JOINT, "tight"),
    "local as-known": lambda span: LinUCBSettings(*SHAPE, span).private(ApproxDP(1.0, 1e-5), TrustModel.LOCAL, "as-known"),
    "local tight": lambda span: LinUCBSettings(*SHAPE, span).private(ApproxDP(1.0, 1e-5), TrustModel.LOCAL, "tight"),
}
each = pytest.mark.parametrize("name", list(PRIVATE))


def played(algorithm, ledger, span=SYMMETRIC):
    log = ActionLog()
    sensitive, released = run(algorithm, TABLES[span], ledger, observers=[log])
    return np.array(log.actions).T, sensitive, released


@settings(max_examples=30)
@given(alpha=st.floats(1.01, 100.0), epsilon=st.floats(1e-3, 50.0), seed=st.integers(0, 10**6), is_printed=st.booleans())
def test_the_worst_record_pays_what_theorem_9_says(alpha, epsilon, seed, is_printed):
    algorithm = adar_oful(*SHAPE, alpha, epsilon, SYMMETRIC, "printed" if is_printed else "tight")
    ledger = OwnNoiseLedger([seed, seed + 1])
    played(algorithm, ledger)
    claimed = math.sqrt(2 * epsilon / alpha)
    (count,) = ledger.worst_record().values()
    assert count == 1, "a reward lies in one block"
    assert claimed * (1 - 1e-11) <= ledger.guarantee().mu <= claimed
    assert epsilon * (1 - 1e-11) <= ledger.guarantee().rdp(alpha) <= epsilon
    assert ledger.guarantee().relation is Relation.REPLACE_REWARD


def test_the_printed_noise_is_twice_what_unit_rewards_need():
    ledger = OwnNoiseLedger([0])
    played(adar_oful(*SHAPE, 2.0, 1.0, UNIT, "printed"), ledger, UNIT)
    assert ledger.guarantee().mu == pytest.approx(0.5)


@each
@pytest.mark.parametrize("span", [SYMMETRIC, UNIT], ids=str)
def test_the_ledger_derives_no_more_than_the_claim(name, span):
    ledger = OwnNoiseLedger([1, 2, 3])
    played(PRIVATE[name](span), ledger, span)
    limit = 1.0 if "oful" in name else GaussianDP.from_epsilon_delta(1.0, 1e-5).mu
    assert ledger.guarantee().mu <= limit * (1 + 1e-12)
    if "tight" in name or "tree" in name:
        assert ledger.guarantee().mu >= limit * (1 - 1e-9)


def test_how_many_releases_touch_a_record():
    for name, events in {"joint tree": 6, "joint tight": 1, "local tight": 1, "joint printed": 6}.items():
        ledger = OwnNoiseLedger([1])
        played(PRIVATE[name](SYMMETRIC), ledger)
        assert list(ledger.worst_record().values()) == [events], name


@pytest.mark.parametrize("half", [0.25, 0.5, 1.0, 3.0])
def test_what_one_record_can_change(half):
    """(1 + Y^2) for Y <= 1 and 2 Y above, for GOE noise of one scale."""
    mechanism = (
        LinUCBSettings(*SHAPE, Interval(-half, half)).private(ApproxDP(1.0, 1e-5), TrustModel.JOINT, "tight").sums.mechanism
    )
    assert isinstance(mechanism, JointGaussian)
    assert mechanism.sensitivity == pytest.approx(1 + half**2 if half <= 1 else 2 * half)


@each
def test_a_replicate_of_a_batch_is_its_lone_run(name):
    algorithm = PRIVATE[name](SYMMETRIC)
    actions, _, released = played(algorithm, OwnNoiseLedger([5, 6, 7]))
    for row, seed in enumerate([5, 6, 7]):
        alone, _, one = played(algorithm, OwnNoiseLedger([seed]))
        assert np.array_equal(alone[0], actions[row])
        np.testing.assert_allclose(one.estimate[0], released.estimate[row], rtol=1e-9)
        np.testing.assert_allclose(one.width[0], released.width[row], rtol=1e-12)


@pytest.mark.parametrize("span", [SYMMETRIC, UNIT], ids=str)
def test_without_noise_they_are_their_twins(span):
    big = 1e14
    twin, *_ = played(oful(*SHAPE, span), OwnNoiseLedger([0]), span)
    assert np.array_equal(twin, played(adar_oful(*SHAPE, 2.0, big, span, "tight"), OwnNoiseLedger([0]), span)[0])
    linear, *_ = played(LinUCBSettings(*SHAPE, span).twin(), OwnNoiseLedger([0]), span)
    for trust in (TrustModel.JOINT, TrustModel.LOCAL):
        close = LinUCBSettings(*SHAPE, span).private(ApproxDP(1.0, 1e-5), trust, "tight")
        sums = dataclasses.replace(close.sums, mechanism=close.sums.mechanism.scaled(1e-12))
        assert np.array_equal(linear, played(dataclasses.replace(close, sums=sums), OwnNoiseLedger([0]), span)[0]), trust


@pytest.mark.parametrize("twin", [oful(*SHAPE, SYMMETRIC), LinUCBSettings(*SHAPE, SYMMETRIC).twin()])
def test_the_twins_have_no_privacy_and_say_so(twin):
    ledger = LiveLedger(1, ConstantNoise())
    played(twin, ledger)
    assert isinstance(ledger.guarantee(), NoPrivacy)


@each
def test_the_neighbor_script_acts_alike(name):
    """Given what was released, a changed record changes nothing that others see."""
    algorithm, table = PRIVATE[name](SYMMETRIC), TABLES[SYMMETRIC]
    own = None if "oful" in name else -table.features[9]
    neighbor = table.replaced(9, np.full(N_ACTIONS, -1.0), covariates=own)
    live = LiveLedger(8, ReproducibleNoise(np.random.SeedSequence(3)), keeps_transcript=True)
    first, second = ActionLog(), ActionLog()
    run(algorithm, table, live, observers=[first])
    scripted = ScriptedLedger(8, live.transcript)
    run(algorithm, neighbor, scripted, observers=[second])
    scripted.finish()
    assert (scripted.diverged < 0).all()
    mine, theirs = np.array(first.actions), np.array(second.actions)
    assert np.array_equal(np.delete(mine, 9, axis=0), np.delete(theirs, 9, axis=0))
    assert (scripted.log_ratio != 0).all()
    if "oful" in name:
        assert np.array_equal(mine, theirs)


def test_updates_stay_below_their_bound():
    for seed in range(3):
        table = context_table(2000, 3, 2, SYMMETRIC, seed)
        _, released = run(oful(3, 2, 2000, SYMMETRIC, switch=0.1, ridge=0.1), table, LiveLedger(1, ConstantNoise()))
        assert 20 < released.n_updates[0] <= most_updates(2, 2000, 0.1, 0.1)


def test_the_budget_refuses_before_noise_is_drawn():
    noise = ConstantNoise()
    ledger = LiveLedger(1, noise, budget=GaussianDP(0.99, relation=Relation.REPLACE_REWARD))
    with pytest.raises(BudgetExceeded):
        played(adar_oful(*SHAPE, 2.0, 1.0, SYMMETRIC, "tight"), ledger)
    assert noise.calls == 0
