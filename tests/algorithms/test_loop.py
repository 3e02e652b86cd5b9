"""The one loop: what it refuses, what observers see."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import ConstantNoise

from bandana.algorithms.bandits.finite_arm.episodic_ucb import ucb
from bandana.algorithms.catalog import find
from bandana.algorithms.environments.mdp_instances import patients
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger, NoNoise, RenyiDP
from bandana.privacy_core.accounting.accountant import accounted_mu

UNIT = Interval(0.0, 1.0)
TABLE = RewardTable(np.random.default_rng(0).random((60, 3)), UNIT)

ADAR = find("adar-ucb").settings(Problem(3, UNIT, 60), "printed", RenyiDP(2, 1))


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


def test_labels_rename_actions_and_nothing_else():
    """What the algorithm calls action a is the stream's labels[r, a]: the same run as on a table with permuted columns."""
    labels = np.array([[2, 0, 1], [1, 2, 0]])
    log = ActionLog()
    run(ucb(3, 4.0, UNIT), TABLE, ledger(), observers=[log], labels=labels)
    for r in range(2):
        alone = ActionLog()
        table = RewardTable(TABLE.rewards[:, labels[r]], UNIT)
        run(ucb(3, 4.0, UNIT), table, LiveLedger(1, ConstantNoise()), observers=[alone])
        spans = [(int(n[r]), int(a[r])) for n, a in zip(log.n_records, log.actions, strict=True) if n[r]]
        own = [(int(n[0]), int(labels[r, a[0]])) for n, a in zip(alone.n_records, alone.actions, strict=True) if n[0]]
        assert spans == own


def test_labels_are_refused_where_algorithms_know_their_actions():
    model = patients(2, (0.2, 0.2, 0.6))
    algorithm = find("ucrl-vtr", "none").build(find("ucrl-vtr", "none").settings(Problem(3, UNIT, 4, model=model.model)))
    with pytest.raises(ValueError, match="labels cannot be given for episodes"):
        run(algorithm, model.stream(4, np.random.SeedSequence(0)), ledger(), labels=np.tile(np.arange(3), (2, 1)))


def test_on_a_silent_ledger_the_exact_values_are_released_and_nothing_is_private():
    silent = LiveLedger(2, NoNoise(), keeps_transcript=True)
    run(find("adar-ucb").build(ADAR), TABLE, silent)
    assert silent.transcript
    assert all(np.array_equal(release.value, release.output) for release in silent.transcript)
    assert not np.isfinite(accounted_mu(tuple(silent.worst_record().items())))
