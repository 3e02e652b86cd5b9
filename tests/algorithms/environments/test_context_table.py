"""Tables whose users have contexts: what they refuse, and how the loop plays them."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import ConstantNoise

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCBSettings
from bandana.algorithms.bandits.contextual.oful import oful
from bandana.algorithms.bandits.finite_arm.episodic_ucb import ucb
from bandana.algorithms.environments.tables import ContextTable, RewardTable
from bandana.algorithms.observers import ActionLog, ContextualRegretCurve
from bandana.algorithms.protocol import ContextualStream, Record
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger

UNIT = Interval(0.0, 1.0)
RNG = np.random.default_rng(0)
FEATURES = RNG.standard_normal((12, 3, 2))
FEATURES /= np.linalg.norm(FEATURES, axis=2, keepdims=True)
REWARDS = RNG.random((12, 3))
TABLE = ContextTable(FEATURES, REWARDS, UNIT)


def changed(place, value):
    features = FEATURES.copy()
    features[place] = value
    return features


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (changed((4, 1), [0.8, 0.8]), "features of user 4, action 1 have norm 1.13137.*divide all features"),
        (changed((4, 1, 0), np.nan), "feature 0 of user 4, action 1 is nan"),
        (changed((0, 0, 1), np.inf), "feature 1 of user 0, action 0 is inf"),
        (FEATURES[:11], r"\(12, 3, d\).*got \(11, 3, 2\)"),
        (FEATURES[:, :2], r"got \(12, 2, 2\)"),
        (FEATURES[:, :, 0], r"got \(12, 3\)"),
        (FEATURES[:, :, :0], r"d >= 1; got \(12, 3, 0\)"),
        ([*FEATURES[:11].tolist(), [[1.0], [1.0], [1.0]]], "with one d for all users"),
    ],
)
def test_features_that_are_refused(features, message):
    with pytest.raises(ValueError, match=message):
        ContextTable(features, REWARDS, UNIT)


def test_rounding_of_a_norm_is_divided_out():
    long = changed((0, 0), np.array([1.0, 0.0]) * (1 + 5e-10))
    assert np.linalg.norm(ContextTable(long, REWARDS, UNIT).features, axis=2).max() <= 1 + 1e-15


def test_contexts_are_those_of_the_users_and_cannot_be_written():
    same = TABLE.contexts(np.array([3, 3, 3]))
    assert same.strides[0] == 0
    assert np.array_equal(same[1], TABLE.features[3])
    assert np.array_equal(TABLE.contexts(np.array([3, 4])), TABLE.features[[3, 4]])
    with pytest.raises(ValueError, match="read-only"):
        same[0, 0, 0] = 1.0
    assert isinstance(TABLE, ContextualStream)
    assert not isinstance(RewardTable(REWARDS, UNIT), ContextualStream)


def test_neighbors_keep_contexts_unless_told():
    other = TABLE.replaced(5, [0.0, 0.5, 1.0])
    assert isinstance(other, ContextTable)
    assert np.array_equal(other.features, TABLE.features)
    assert other.rewards[5].tolist() == [0.0, 0.5, 1.0]
    moved = TABLE.replaced(5, [0.0, 0.5, 1.0], covariates=np.zeros((3, 2)))
    assert (moved.features[5] == 0).all()
    assert np.array_equal(np.delete(moved.features, 5, axis=0), np.delete(TABLE.features, 5, axis=0))
    with pytest.raises(ValueError, match=r"covariates must be of shape \(3, 2\), as all users' are, got \(2, 2\)"):
        TABLE.replaced(5, [0.0, 0.5, 1.0], covariates=np.zeros((2, 2)))
    half = TABLE.clipped(Interval(0.0, 0.5))
    assert isinstance(half, ContextTable)
    assert half.rewards.max() <= 0.5
    assert TABLE.clipped(UNIT) is TABLE


def ledger(n_reps=2):
    return LiveLedger(n_reps, ConstantNoise())


def test_an_algorithm_gets_the_contexts_that_it_is_made_for():
    with pytest.raises(ValueError, match="contexts of dimension 3, the stream has contexts of dimension 2"):
        run(oful(3, 3, 12, UNIT), TABLE, ledger())
    with pytest.raises(ValueError, match="contexts of dimension 2, the stream has no contexts"):
        run(LinUCBSettings(3, 2, 12, UNIT).twin(), RewardTable(REWARDS, UNIT), ledger())


def test_the_loop_never_jumps_over_contexts():
    log = ActionLog()
    run(ucb(3, 4.0, UNIT, doubling=True), TABLE, ledger(), observers=[log])
    assert [n.tolist() for n in log.n_records] == [[1, 1]] * 12


def test_fewer_users_than_actions():
    log = ActionLog()
    run(oful(3, 2, 12, UNIT), TABLE, ledger(), horizon=2, observers=[log])
    assert len(log.actions) == 2
    with pytest.raises(ValueError, match=r"between 1 and the number of users in the stream \(12\), got 0"):
        run(oful(3, 2, 12, UNIT), TABLE, ledger(), horizon=0)


def test_records_carry_the_contexts():
    class Seen:
        def __init__(self):
            self.contexts = []

        def observe(self, record):
            self.contexts.append(record.contexts)

    seen = Seen()
    run(oful(3, 2, 12, UNIT), TABLE, ledger(), observers=[seen])
    assert np.array_equal(np.array(seen.contexts)[:, 1], TABLE.features)


def test_regret_is_against_the_best_action_of_each_user():
    curve, log = ContextualRegretCurve(TABLE, np.array([1, 5, 12]), 2), ActionLog()
    run(oful(3, 2, 12, UNIT), TABLE, ledger(), observers=[curve, log])
    played = np.array(log.actions)[:, 0]
    gaps = np.cumsum(TABLE.rewards.max(axis=1) - TABLE.rewards[np.arange(12), played])
    np.testing.assert_allclose(curve.curve, [gaps[[0, 4, 11]]] * 2)
    with pytest.raises(ValueError, match="use RegretCurve"):
        curve.observe(Record(np.zeros(2, int), np.ones(2, int), None, np.zeros((2, 1), int), np.zeros((2, 1))))


def test_a_stack_offers_contexts_of_the_table_but_for_canaries_with_their_own():
    own = TABLE.with_rows(np.ones((2, 3)), np.stack([np.zeros((3, 2)), TABLE.features[4]]))
    record, canary = np.array([5, 5, 4, 5]), np.array([0, -1, 1, 0])
    stack = TABLE.stack([TABLE, TABLE], np.array([0, 1, 1, 0]), record, own, canary)
    assert np.array_equal(stack.contexts(np.full(4, 3)), np.broadcast_to(TABLE.features[3], (4, 3, 2)))
    at_record = stack.contexts(record)
    assert (at_record[[0, 3]] == 0).all()
    assert np.array_equal(at_record[[1, 2]], TABLE.features[record[[1, 2]]])
    assert stack.respond(record, np.ones(4, dtype=np.int64), np.zeros(4, dtype=np.int64)).tolist() == [
        1.0, TABLE.rewards[5, 0], 1.0, 1.0,
    ]  # fmt: skip
