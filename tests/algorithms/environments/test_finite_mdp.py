"""Episodes: exact planning, what is drawn, the loop over steps, and the regret that is counted."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from episode_beds import Cheapest, local, table
from scipy.stats import chisquare

from bandana.algorithms.bandits.finite_arm.episodic_ucb import ucb
from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.mdp.planning import plan
from bandana.algorithms.observers import ActionLog, EpisodicRegretCurve
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise

RNG = np.random.default_rng(1)
H, S, A = 3, 3, 2
TRANSITIONS = RNG.dirichlet(np.ones(S), (H, S, A))
REWARDS = RNG.random((H, S, A))
START = np.array([0.5, 0.2, 0.3])
UNIT = Interval(0.0, 1.0)


def seeded(n):
    return np.random.SeedSequence(n)


def mdp(n_users=20_000, seed=0, **more):
    return FiniteMDP(TRANSITIONS, REWARDS, n_users, seeded(seed), **more)


def value_of(policy):
    """(S,) of the first step, by summing over all paths."""
    found = np.zeros(S)
    for path in itertools.product(range(S), repeat=H + 1):
        chance = earned = 0.0
        chance = 1.0
        for h in range(H):
            a = policy[h][path[h]]
            chance *= TRANSITIONS[h, path[h], a, path[h + 1]]
            earned += REWARDS[h, path[h], a]
        found[path[0]] += chance * earned
    return found


@dataclass(frozen=True)
class Fixed:
    """Plays a policy and learns nothing."""

    policy: tuple[tuple[int, ...], ...]
    n_actions: int = A
    n_states: int = S
    episode_length: int = H
    reward_range: Interval = UNIT

    def init(self, n_reps):
        return (), ()

    def act(self, released, context, step):
        return np.array(self.policy[step])[context]

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=np.int64)

    def absorb(self, sensitive, released, record, ledger):
        return sensitive, released


def ledger(n_reps=2):
    return LiveLedger(n_reps, ReproducibleNoise(seeded(0)))


# --- planning --------------------------------------------------------------------------------------------------------


def test_the_best_policy_is_the_best_of_all():
    steps = list(itertools.product(range(A), repeat=S))
    best = np.max([value_of(policy) for policy in itertools.product(steps, repeat=H)], axis=0)
    found = plan(TRANSITIONS, REWARDS)
    assert found.values[0] == pytest.approx(best)
    assert (found.values[H] == 0).all()
    assert (found.gaps >= 0).all()
    assert (found.gaps.min(axis=2) == 0).all()


def test_a_given_policy_is_worth_what_its_paths_earn():
    policy = ((0, 1, 0), (1, 1, 0), (0, 0, 1))
    assert plan(TRANSITIONS, REWARDS, np.array(policy)).values[0] == pytest.approx(value_of(policy))


# --- what is drawn ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [(0, 0, 0), (2, 1, 1)])
def test_next_states_have_their_probabilities(place):
    """Chi-square with 2 degrees of freedom at p > 1e-6, of 20000 draws."""
    step, state, action = place
    states, actions = np.full(20_000, state), np.full(20_000, action)
    after, rewards = mdp().advance(np.arange(20_000), step, states, actions)
    counts = np.bincount(after, minlength=S)
    assert chisquare(counts, 20_000 * TRANSITIONS[place]).pvalue > 1e-6
    assert chisquare(counts, 20_000 * np.roll(TRANSITIONS[place], 1)).pvalue < 1e-6
    assert (rewards == REWARDS[place]).all()
    drawn = mdp(law="bernoulli").advance(np.arange(20_000), step, states, actions)[1]
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert abs(drawn.mean() - REWARDS[place]) < 5 * 0.5 / np.sqrt(20_000)


def test_first_states_have_their_law():
    counts = np.bincount(mdp(start=START).first(np.arange(20_000)), minlength=S)
    assert chisquare(counts, 20_000 * START).pvalue > 1e-6
    assert (mdp().first(np.arange(100)) == 0).all()


def test_a_seed_gives_the_same_episodes_and_another_one_others():
    logs = []
    for seed in (0, 0, 1):
        logs.append(ActionLog())
        run(Fixed(((0,) * 3,) * 3), mdp(50, seed), ledger(), observers=[logs[-1]])
    assert all((a == b).all() for a, b in zip(logs[0].states, logs[1].states, strict=True))
    assert any((a != b).any() for a, b in zip(logs[0].states, logs[2].states, strict=True))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"start": [0.5, 0.6, 0.0]}, "start must be a distribution over 3 states, got"),
        ({"start": [1.0, 0.0]}, "start must be a distribution over 3 states"),
        ({"start": [np.nan, 0.5, 0.5]}, "start must be a distribution over 3 states"),
        ({"law": "gaussian"}, "law must be 'bernoulli' or 'exact', got 'gaussian'"),
        ({"rewards": REWARDS[:2]}, "rewards must be of 3 steps, as transitions are, got 2"),
        ({"n_users": 0}, "n_users must be a whole number of at least 1, got 0"),
    ],
)
def test_what_is_no_process(changes, told):
    with pytest.raises(ValueError, match=told):
        FiniteMDP(**{"transitions": TRANSITIONS, "rewards": REWARDS, "n_users": 5, "seed": seeded(0), **changes})


def test_rewards_that_would_be_clipped_are_refused():
    assert mdp(5).clipped(Interval(-1.0, 2.0)).n_users == 5
    with pytest.raises(ValueError, match="declare a reward range that holds it"):
        mdp(5).clipped(Interval(0.0, 0.5))


# --- the loop --------------------------------------------------------------------------------------------------------


class Kept:
    def __init__(self):
        self.records = []

    def observe(self, record):
        self.records.append(record)


def test_a_record_is_what_the_tree_answers_step_after_step():
    data, kept = table(6), Kept()
    run(local(), data, ledger(3), observers=[kept])
    assert [int(record.user[0]) for record in kept.records] == list(range(6))
    for record in kept.records:
        assert record.states.shape == (3, 4)
        assert record.actions.shape == record.rewards.shape == (3, 3)
        for rep, user in enumerate(record.user):
            assert record.states[rep, 0] == data.first_states[user]
            for step in range(3):
                place = user, step, record.states[rep, step], record.actions[rep, step]
                assert record.states[rep, step + 1] == data.next_states[place]
                assert record.rewards[rep, step] == data.rewards[place]


def test_rewards_are_clipped_before_anybody_sees_them():
    kept = Kept()
    wide = table(4).with_rewards(7 * table(4).rewards, Interval(0.0, 7.0))
    run(local(), wide, ledger(), observers=[kept])
    assert max(record.rewards.max() for record in kept.records) == 1.0


@pytest.mark.parametrize(
    ("algorithm", "told"),
    [
        (Cheapest(None, episode_length=2), "plays episodes of 2 steps, the stream has episode_length = 3"),
        (Cheapest(None, n_states=4), "knows 4 states, the stream has n_states = 3"),
        (Cheapest(None, n_actions=3), "has 3 actions, the stream 2"),
        (ucb(2, 4.0, UNIT), "plays no episodes, the stream has episode_length = 3"),
    ],
)
def test_an_algorithm_of_another_shape_is_refused(algorithm, told):
    with pytest.raises(ValueError, match=told):
        run(algorithm, table(6), ledger())


def test_an_algorithm_of_episodes_plays_no_arms():
    with pytest.raises(ValueError, match="plays episodes of 3 steps, the stream has no episodes"):
        run(local(), RewardTable(np.zeros((6, 2)), UNIT), ledger())


@pytest.mark.parametrize("horizon", [0, 7])
def test_a_horizon_that_does_not_fit(horizon):
    with pytest.raises(ValueError, match=rf"horizon must lie between 1 and .* \(6\), got {horizon}"):
        run(local(), table(6), ledger(), horizon=horizon)
    kept = Kept()
    run(local(), table(6), ledger(), horizon=1, observers=[kept])
    assert len(kept.records) == 1


# --- regret ----------------------------------------------------------------------------------------------------------


def test_regret_is_on_average_what_the_policy_loses():
    """The mean over 200 x 100 episodes lies within five deviations of K (V* - V)."""
    policy, n_reps, n_users = ((1, 0, 1), (0, 1, 0), (1, 1, 0)), 200, 100
    stream = mdp(n_users, start=START)
    curve = EpisodicRegretCurve(stream.best.gaps, np.array([1, 10, n_users]), n_reps)
    run(Fixed(policy), stream, ledger(n_reps), observers=[curve])
    lost = START @ (stream.best.values[0] - value_of(policy))
    assert lost > 0.1
    deviation = curve.curve[:, -1].std() / np.sqrt(n_reps)
    assert abs(curve.curve[:, -1].mean() - n_users * lost) < 5 * deviation
    assert deviation < 0.05 * n_users * lost
    assert (np.diff(curve.curve, axis=1) >= 0).all()


def test_the_best_policy_has_no_regret():
    best = mdp(30).best
    greedy = tuple(map(tuple, best.action_values.argmax(axis=2).tolist()))
    curve = EpisodicRegretCurve(best.gaps, np.array([30]), 4)
    run(Fixed(greedy), mdp(30), ledger(4), observers=[curve])
    assert (curve.curve == 0).all()


def test_regret_of_episodes_needs_episodes():
    curve = EpisodicRegretCurve(np.zeros((1, 2, 2)), np.array([4]), 2)
    with pytest.raises(ValueError, match="the stream has none: use RegretCurve"):
        run(ucb(2, 4.0, UNIT), RewardTable(np.zeros((4, 2)), UNIT), ledger(), observers=[curve])
