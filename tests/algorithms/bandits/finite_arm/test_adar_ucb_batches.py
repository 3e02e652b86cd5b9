"""The same run in other arrangements: by jumps or by rounds, in a batch or alone; and with less noise."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, astuple, replace

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb, ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.run import run
from bandana.privacy_core import Exact, Interval, LiveLedger, PhaseSum, ScriptedLedger

UNIT = Interval(0.0, 1.0)
SEEDS = [11, 12, 13, 14, 15]


def table_of(n_users=700, n_arms=3):
    rewards = np.random.default_rng(99).random((n_users, n_arms)) * np.linspace(0.6, 1.0, n_arms)
    return RewardTable(rewards, UNIT)


def algorithms():
    return [
        adar_ucb(3, 2.0, 0.5, 3.1, UNIT, "printed"),
        adar_ucb(3, 2.0, 0.5, 3.1, UNIT, "tight"),
        ucb(3, 4.0, UNIT, doubling=True),
        ucb(3, 4.0, UNIT),
    ]


def play(algorithm, ledger, jump=True, horizon=None):
    """Actions of every round (n_reps, horizon), and the final states."""
    log = ActionLog()
    states = run(algorithm, table_of(), ledger, horizon=horizon, observers=[log], jump=jump)
    rows = [
        np.concatenate([np.full(n[r], a[r]) for n, a in zip(log.n_records, log.actions, strict=True)])
        for r in range(ledger.n_reps)
    ]
    return np.stack(rows), states


def assert_same_states(first, second, rows=slice(None)):
    (phase, released), (other_phase, other_released) = (
        (sensitive.phase, released) for sensitive, released in (first, second)
    )
    for name, a, b in zip(
        (*phase._fields, *released._fields), (*phase, *released), (*other_phase, *other_released), strict=True
    ):
        assert np.array_equal(a[rows], b), name


@pytest.mark.parametrize("algorithm", algorithms(), ids=["printed", "tight", "doubling", "ucb1"])
class TestArrangements:
    def test_jumps_and_rounds_agree_to_the_last_bit(self, algorithm):
        by_jumps = play(algorithm, OwnNoiseLedger(SEEDS))
        by_rounds = play(algorithm, OwnNoiseLedger(SEEDS), jump=False)
        assert np.array_equal(by_jumps[0], by_rounds[0])
        assert_same_states(by_jumps[1], by_rounds[1])

    def test_rounds_replay_a_run_by_jumps(self, algorithm):
        live = OwnNoiseLedger(SEEDS, keeps_transcript=True)
        by_jumps = play(algorithm, live)
        scripted = ScriptedLedger(len(SEEDS), live.transcript)
        by_rounds = play(algorithm, scripted, jump=False)
        scripted.finish()
        assert (scripted.diverged == -1).all()
        assert (scripted.log_ratio == 0).all()
        assert_same_states(by_jumps[1], by_rounds[1])

    def test_a_replicate_equals_its_lone_run(self, algorithm):
        actions, states = play(algorithm, OwnNoiseLedger(SEEDS))
        for r, seed in enumerate(SEEDS):
            alone, lone_states = play(algorithm, OwnNoiseLedger([seed]))
            assert np.array_equal(actions[r : r + 1], alone)
            assert_same_states(states, lone_states, slice(r, r + 1))

    def test_replicates_may_be_blocked_in_any_way(self, algorithm):
        actions, _ = play(algorithm, OwnNoiseLedger(SEEDS))
        blocks = [play(algorithm, OwnNoiseLedger(block))[0] for block in (SEEDS[3:], SEEDS[:3])]
        assert np.array_equal(actions, np.concatenate(blocks[::-1]))

    def test_the_algorithm_keeps_nothing(self, algorithm):
        before = repr(astuple(algorithm))
        first, again = (play(algorithm, OwnNoiseLedger(SEEDS)) for _ in range(2))
        assert np.array_equal(first[0], again[0])
        assert_same_states(first[1], again[1])
        assert repr(astuple(algorithm)) == before
        with pytest.raises(FrozenInstanceError):
            algorithm.beta = 1.0

    def test_a_shorter_horizon_is_the_beginning_of_a_longer_one(self, algorithm):
        long, _ = play(algorithm, OwnNoiseLedger(SEEDS))
        short, (_, released) = play(algorithm, OwnNoiseLedger(SEEDS), horizon=137)
        assert np.array_equal(long[:, :137], short)
        assert (released.clock == 137).all()
        assert (released.pulls.sum(axis=1) == 137).all()

    def test_shapes(self, algorithm):
        sensitive, released = algorithm.init(4)
        assert sensitive.phase.total.shape == (4,)
        assert released.mean.shape == released.deviation.shape == released.pulls.shape == (4, 3)
        actions = algorithm.act(released, None, 0)
        assert actions.tolist() == [0, 0, 0, 0]
        assert algorithm.hold(released, actions).tolist() == [1, 1, 1, 1]


def test_noise_makes_replicates_differ():
    actions, _ = play(algorithms()[0], OwnNoiseLedger(SEEDS))
    assert len({tuple(row) for row in actions}) > 1


@pytest.mark.parametrize("calibration", ["printed", "tight"])
def test_with_little_noise_it_plays_as_its_twin_does(calibration):
    exact = PhaseSum(Exact())
    tight = calibration == "tight"
    twin = replace(ucb(3, 3.1, UNIT, doubling=True), combines=tight, first_share=1.0 if tight else 0.5)
    expected, (_, twin_released) = play(twin, LiveLedger(1, ConstantNoise()))
    private = adar_ucb(3, 2.0, 1e14, 3.1, UNIT, calibration)
    assert replace(private, sums=exact, first_sums=exact) == twin, "they differ in the mechanism alone"
    found, (_, released) = play(private, OwnNoiseLedger(SEEDS))
    assert np.array_equal(found, np.repeat(expected, len(SEEDS), axis=0))
    np.testing.assert_allclose(released.mean, np.repeat(twin_released.mean, len(SEEDS), axis=0), atol=1e-5)
    noisy, _ = play(adar_ucb(3, 2.0, 0.01, 3.1, UNIT, calibration), OwnNoiseLedger(SEEDS))
    assert not np.array_equal(noisy, np.repeat(expected, len(SEEDS), axis=0))
