"""The pure-DP baselines in other arrangements: by jumps or by rounds, in a batch or alone; and with less noise."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, astuple, replace

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adap_klucb, adap_ucb, ucb
from bandana.algorithms.bandits.finite_arm.indices import SUB_GAUSSIAN
from bandana.algorithms.bandits.finite_arm.successive_elimination import dp_se, successive_elimination
from bandana.algorithms.bandits.finite_arm.tree_ucb import dp_ucb, tree_ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.run import run
from bandana.privacy_core import Exact, Interval, LiveLedger, PhaseSum, ScriptedLedger

UNIT = Interval(0.0, 1.0)
SEEDS = [11, 12, 13, 14, 15]
N_USERS = 700
TABLE = RewardTable(np.random.default_rng(99).random((N_USERS, 3)) * np.linspace(0.6, 1.0, 3), UNIT)
BUILDERS = {
    "adap-ucb": lambda epsilon: adap_ucb(3, epsilon, 3.1, UNIT, "printed"),
    "adap-ucb-tight": lambda epsilon: adap_ucb(3, epsilon, 3.1, UNIT, "tight"),
    "adap-klucb": lambda epsilon: adap_klucb(3, epsilon, 3.1, UNIT),
    "dp-se": lambda epsilon: dp_se(3, epsilon, 0.1, UNIT, 1 / 64),
    "dp-ucb": lambda epsilon: dp_ucb(3, 20 * epsilon, 4.0, UNIT, N_USERS),
}


def play(algorithm, ledger, jump=True, horizon=None):
    """Actions of every round (n_reps, horizon), and the final states."""
    log = ActionLog()
    states = run(algorithm, TABLE, ledger, horizon=horizon, observers=[log], jump=jump)
    rows = [
        np.concatenate([np.full(n[r], a[r]) for n, a in zip(log.n_records, log.actions, strict=True)])
        for r in range(ledger.n_reps)
    ]
    return np.stack(rows), states


def leaves(state, n_reps):
    """All arrays of nested states, the axis of replicates first."""
    if isinstance(state, tuple):
        return [leaf for part in state for leaf in leaves(part, n_reps)]
    return [state if len(state) == n_reps else np.moveaxis(state, 1, 0)]


def assert_same_states(first, second, rows=slice(None)):
    size = len(first[1].clock if hasattr(first[1], "clock") else first[1].left)
    other_size = len(second[1].clock if hasattr(second[1], "clock") else second[1].left)
    for a, b in zip(leaves(first, size), leaves(second, other_size), strict=True):
        assert np.array_equal(a[rows], b)


@pytest.fixture(params=list(BUILDERS))
def algorithm(request):
    return BUILDERS[request.param](0.5)


def test_jumps_and_rounds_agree_to_the_last_bit(algorithm):
    by_jumps, by_rounds = (play(algorithm, OwnNoiseLedger(SEEDS), jump=jump) for jump in (True, False))
    assert np.array_equal(by_jumps[0], by_rounds[0])
    assert_same_states(by_jumps[1], by_rounds[1])


def test_rounds_replay_a_run_by_jumps(algorithm):
    live = OwnNoiseLedger(SEEDS, keeps_transcript=True)
    by_jumps = play(algorithm, live)
    scripted = ScriptedLedger(len(SEEDS), live.transcript)
    by_rounds = play(algorithm, scripted, jump=False)
    scripted.finish()
    assert (scripted.diverged == -1).all()
    assert (scripted.log_ratio == 0).all()
    assert_same_states(by_jumps[1], by_rounds[1])


def test_a_replicate_equals_its_lone_run(algorithm):
    actions, states = play(algorithm, OwnNoiseLedger(SEEDS))
    for r, seed in enumerate(SEEDS):
        alone, lone_states = play(algorithm, OwnNoiseLedger([seed]))
        assert np.array_equal(actions[r : r + 1], alone)
        assert_same_states(states, lone_states, slice(r, r + 1))
    assert any(len(np.unique(leaf, axis=0)) > 1 for leaf in leaves(states[1], len(SEEDS))), "noise makes replicates differ"


def test_replicates_may_be_blocked_in_any_way(algorithm):
    actions, _ = play(algorithm, OwnNoiseLedger(SEEDS))
    blocks = [play(algorithm, OwnNoiseLedger(block))[0] for block in (SEEDS[3:], SEEDS[:3])]
    assert np.array_equal(actions, np.concatenate(blocks[::-1]))


def test_the_algorithm_keeps_nothing(algorithm):
    before = repr(astuple(algorithm))
    first, again = (play(algorithm, OwnNoiseLedger(SEEDS)) for _ in range(2))
    assert np.array_equal(first[0], again[0])
    assert_same_states(first[1], again[1])
    assert repr(astuple(algorithm)) == before
    with pytest.raises(FrozenInstanceError):
        algorithm.n_actions = 1


def test_a_shorter_horizon_is_the_beginning_of_a_longer_one(algorithm):
    long, _ = play(algorithm, OwnNoiseLedger(SEEDS))
    short, _ = play(algorithm, OwnNoiseLedger(SEEDS), horizon=137)
    assert np.array_equal(long[:, :137], short)


@pytest.mark.parametrize("name", list(BUILDERS))
def test_with_little_noise_it_plays_as_its_twin_does(name):
    """The twin differs in the mechanism alone."""
    private = BUILDERS[name](1e13)
    if name == "dp-ucb":
        twin = replace(private, sums=replace(private.sums, mechanism=Exact()))
        assert twin == tree_ucb(3, 4.0, UNIT, N_USERS)
    else:
        twin = replace(private, sums=PhaseSum(Exact()))
        if name == "dp-se":
            assert twin == successive_elimination(3, 0.1, UNIT, 1 / 64)
        else:
            twin = replace(twin, first_sums=twin.sums)
    if name == "adap-ucb-tight":
        assert replace(twin, index=SUB_GAUSSIAN) == ucb(3, 3.1, UNIT, doubling=True)
        expected, _ = play(ucb(3, 3.1, UNIT, doubling=True), LiveLedger(1, ConstantNoise()))
        assert np.array_equal(expected, play(twin, LiveLedger(1, ConstantNoise()))[0]), "UCB in episodes"
    expected, _ = play(twin, LiveLedger(1, ConstantNoise()))
    found, _ = play(private, OwnNoiseLedger(SEEDS))
    assert np.array_equal(found, np.repeat(expected, len(SEEDS), axis=0))
    noisy, _ = play(BUILDERS[name](0.05), OwnNoiseLedger(SEEDS))
    assert not np.array_equal(noisy, np.repeat(expected, len(SEEDS), axis=0))
