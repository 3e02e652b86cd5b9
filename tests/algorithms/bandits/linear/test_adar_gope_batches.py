"""The same run in other arrangements: by jumps or by rounds, in a batch or alone; and with less noise."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, astuple, replace

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger

from bandana.algorithms.bandits.linear import phased_elimination
from bandana.algorithms.bandits.linear.phased_elimination import adar_gope, adar_gope_pure, gope
from bandana.algorithms.environments.linear import random_arms
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.run import run
from bandana.privacy_core import Exact, Interval, LiveLedger, ScriptedLedger

UNIT = Interval(0.0, 1.0)
SEEDS = [11, 12, 13, 14, 15]
FEATURES = random_arms(7, 3, np.random.SeedSequence(3))


def table_of(n_users=1500):
    means = 0.5 + 0.4 * FEATURES @ FEATURES[2]
    rewards = np.clip(means + np.random.default_rng(99).uniform(-0.1, 0.1, (n_users, 7)), 0, 1)
    return RewardTable(rewards, UNIT)


TABLE = table_of()


ALGORITHMS = {
    "printed": lambda: adar_gope(FEATURES, 2.0, 0.5, UNIT, "printed", 0.1, 0.1),
    "tight": lambda: adar_gope(FEATURES, 2.0, 0.5, UNIT, "tight", 0.1, 0.2),
    "pure": lambda: adar_gope_pure(FEATURES, 0.7, UNIT, 0.1, 0.2),
    "gope": lambda: gope(FEATURES, UNIT, 0.1, 0.2),
}


@pytest.fixture(params=ALGORITHMS)
def algorithm(request):
    return ALGORITHMS[request.param]()


def play(algorithm, ledger, jump=True, horizon=None):
    """Actions of every round (n_reps, horizon), and the final states."""
    log = ActionLog()
    states = run(algorithm, TABLE, ledger, horizon=horizon, observers=[log], jump=jump)
    rows = [
        np.concatenate([np.full(n[r], a[r]) for n, a in zip(log.n_records, log.actions, strict=True)])
        for r in range(ledger.n_reps)
    ]
    return np.stack(rows), states


def assert_same_states(first, second, rows=slice(None)):
    for (name, a), b in zip(
        [*first[0].phase._asdict().items(), *first[1]._asdict().items()],
        [*second[0].phase, *second[1]],
        strict=True,
    ):
        assert np.array_equal(a[rows], b, equal_nan=a.dtype == float), name


class TestArrangements:
    def test_several_phases_end_and_arms_go(self, algorithm):
        _, (_, released) = play(algorithm, OwnNoiseLedger(SEEDS))
        assert (released.phase >= 2).all()
        assert (released.phase >= 3).any()
        assert (released.active.sum(axis=1) < 7).all()
        assert released.active.any(axis=1).all()

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
            alone, lone_states = play(replace(algorithm), OwnNoiseLedger([seed]))
            assert np.array_equal(actions[r : r + 1], alone)
            assert_same_states(states, lone_states, slice(r, r + 1))

    def test_replicates_may_be_blocked_in_any_way(self, algorithm):
        actions, _ = play(algorithm, OwnNoiseLedger(SEEDS))
        blocks = [play(algorithm, OwnNoiseLedger(block))[0] for block in (SEEDS[3:], SEEDS[:3])]
        assert np.array_equal(actions, np.concatenate(blocks[::-1]))

    def test_the_algorithm_keeps_nothing_that_matters(self, algorithm, monkeypatch):
        before = repr(astuple(algorithm))
        first, again = (play(algorithm, OwnNoiseLedger(SEEDS)) for _ in range(2))
        monkeypatch.setattr(phased_elimination, "_MOST_REMEMBERED", 1)
        without_memory = play(replace(algorithm), OwnNoiseLedger(SEEDS))
        for other in (again, without_memory):
            assert np.array_equal(first[0], other[0])
            assert_same_states(first[1], other[1])
        assert repr(astuple(algorithm)) == before
        assert algorithm == replace(algorithm)
        with pytest.raises(FrozenInstanceError):
            algorithm.delta = 0.5

    def test_a_shorter_horizon_is_the_beginning_of_a_longer_one(self, algorithm):
        long, _ = play(algorithm, OwnNoiseLedger(SEEDS))
        short, (sensitive, _) = play(algorithm, OwnNoiseLedger(SEEDS), horizon=137)
        assert np.array_equal(long[:, :137], short)
        assert (sensitive.phase.stop == 137).all()

    def test_the_phase_that_the_horizon_cuts_off_releases_nothing(self, algorithm):
        length = int(algorithm.plan(1, np.ones(7, dtype=bool)).counts.sum())
        for horizon, n_releases in ((length - 1, 0), (length, 1)):
            ledger = LiveLedger(2, ConstantNoise(0.0), keeps_transcript=True)
            run(algorithm, TABLE, ledger, horizon=horizon)
            assert len(ledger.transcript) == n_releases
            assert len(ledger.worst_record()) == n_releases

    def test_shapes(self, algorithm):
        sensitive, released = algorithm.init(4)
        assert sensitive.phase.total.shape == released.slots.shape == released.counts.shape == (4, 6)
        assert released.estimate.shape == released.active.shape == (4, 7)
        actions = algorithm.act(released, None, 0)
        assert actions.shape == (4,)
        assert (algorithm.hold(released, actions) == released.counts[:, 0]).all()


def test_noise_makes_replicates_differ():
    actions, _ = play(ALGORITHMS["tight"](), OwnNoiseLedger(SEEDS))
    assert len({tuple(row) for row in actions}) > 1


@pytest.mark.parametrize("name", ["printed", "tight", "pure"])
def test_with_little_noise_it_plays_as_its_twin_does(name):
    def private(epsilon):
        if name == "pure":
            return adar_gope_pure(FEATURES, epsilon, UNIT, 0.1, 0.2)
        return adar_gope(FEATURES, 2.0, epsilon, UNIT, name, 0.1, 0.2)

    quiet = private(1e20)
    twin = replace(quiet, noise=replace(quiet.noise, mechanism=Exact()))
    if name == "tight":
        assert twin == gope(FEATURES, UNIT, 0.1, 0.2), "they differ in the mechanism alone"
    expected, (_, twin_released) = play(twin, LiveLedger(1, ConstantNoise()))
    found, (_, released) = play(quiet, OwnNoiseLedger(SEEDS))
    assert np.array_equal(found, np.repeat(expected, len(SEEDS), axis=0))
    np.testing.assert_allclose(released.estimate, np.repeat(twin_released.estimate, len(SEEDS), axis=0), atol=1e-6)
    noisy, _ = play(private(0.05), OwnNoiseLedger(SEEDS))
    assert not np.array_equal(noisy, np.repeat(expected, len(SEEDS), axis=0))


def test_without_noise_laplace_widths_are_the_gaussian_ones():
    """Chernoff's bound without Laplace terms is Hoeffding's: the twins of both calibrations play alike."""
    pure = adar_gope_pure(FEATURES, 1.0, UNIT, 0.1)
    pure = replace(pure, noise=replace(pure.noise, mechanism=Exact()))
    active = np.ones(7, dtype=bool)
    for phase in (1, 2, 5):
        one, other = (algorithm.plan(phase, active) for algorithm in (pure, gope(FEATURES, UNIT, 0.1)))
        assert np.array_equal(np.sort(one.counts), np.sort(other.counts))
        assert one.width == pytest.approx(other.width, rel=1e-9)


def test_a_copy_remembers_no_plans():
    algorithm = adar_gope(FEATURES, 2.0, 1.0, UNIT, "tight", 0.1)
    algorithm.init(1)
    assert algorithm._known_plans
    for copied in (copy.deepcopy(algorithm), pickle.loads(pickle.dumps(algorithm))):
        assert copied == algorithm
        assert "_known_plans" not in vars(copied)
