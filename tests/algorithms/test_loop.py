"""The one loop: what it refuses, what observers see."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import ConstantNoise

from bandana.algorithms.bandits.finite_arm.episodic_ucb import ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger

UNIT = Interval(0.0, 1.0)
TABLE = RewardTable(np.random.default_rng(0).random((60, 3)), UNIT)


def ledger():
    return LiveLedger(2, ConstantNoise())


def test_actions_that_disagree():
    with pytest.raises(ValueError, match="the algorithm has 2 actions, the stream 3"):
        run(ucb(2, 4.0, UNIT), TABLE, ledger())


@pytest.mark.parametrize("horizon", [2, 61, 0, -1])
def test_a_horizon_that_does_not_fit(horizon):
    with pytest.raises(ValueError, match=rf"actions \(3\).*stream \(60\), got {horizon}"):
        run(ucb(3, 4.0, UNIT), TABLE, ledger(), horizon=horizon)


@pytest.mark.parametrize("jump", [True, False])
@pytest.mark.parametrize("doubling", [True, False])
@pytest.mark.parametrize("horizon", [3, 4, 60])
def test_every_user_is_asked_once_and_in_order(jump, doubling, horizon):
    log = ActionLog()
    run(ucb(3, 4.0, UNIT, doubling), TABLE, ledger(), horizon=horizon, observers=[log], jump=jump)
    reached = np.zeros(2, dtype=int)
    for user, n in zip(log.user, log.n_records, strict=True):
        assert np.array_equal(user, reached)
        assert (n >= 0).all()
        assert jump or (n <= 1).all()
        reached += n
    assert reached.tolist() == [horizon, horizon]


def test_observers_see_the_rewards_and_change_nothing():
    class Sum:
        def __init__(self):
            self.total = np.zeros(2)

        def observe(self, record):
            self.total += record.rewards[:, 0]

    seen = Sum()
    _, alone = run(ucb(3, 4.0, UNIT), TABLE, ledger())
    _, watched = run(ucb(3, 4.0, UNIT), TABLE, ledger(), observers=[seen, ActionLog()])
    assert np.array_equal(alone.mean, watched.mean)
    assert seen.total == pytest.approx((watched.mean * watched.pulls).sum(axis=1))
