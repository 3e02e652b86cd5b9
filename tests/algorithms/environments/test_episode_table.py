"""A fixed data set of episodes: what it answers, which neighbors it has, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from bandana.algorithms.environments.episodes import EpisodeTable, path_tree, random_episodes
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.protocol import ContextualStream, EpisodicStream
from bandana.privacy_core import Interval

UNIT = Interval(0.0, 1.0)
SHAPE = 5, 3, 4, 2
RNG = np.random.default_rng(0)
FIRST, NEXT = RNG.integers(0, 4, 5), RNG.integers(0, 4, SHAPE)
REWARDS = RNG.random(SHAPE)
TABLE = EpisodeTable(FIRST, NEXT, REWARDS, UNIT)


def walked(table, user, actions):
    """States and rewards of one user who takes these actions."""
    state, states, rewards = table.first(np.array([user])), [], []
    for step, action in enumerate(actions):
        states.append(int(state[0]))
        state, reward = table.advance(np.array([user]), step, state, np.array([action]))
        rewards.append(float(reward[0]))
    return [*states, int(state[0])], rewards


def test_a_user_walks_its_own_tree():
    assert isinstance(TABLE, EpisodicStream)
    assert not isinstance(TABLE, ContextualStream)
    assert (TABLE.n_users, TABLE.episode_length, TABLE.n_states, TABLE.n_actions, TABLE.n_steps) == (*SHAPE, 3)
    states, rewards = walked(TABLE, 3, (1, 0, 1))
    expected = [FIRST[3]]
    for step, action in enumerate((1, 0, 1)):
        assert rewards[step] == pytest.approx(REWARDS[3, step, expected[-1], action], abs=2**-30)
        expected.append(NEXT[3, step, expected[-1], action])
    assert states == expected


def test_rewards_lie_on_a_grid_on_which_sums_are_exact():
    assert (np.rint(TABLE.rewards * 2.0**30) == TABLE.rewards * 2.0**30).all()
    third = EpisodeTable([0], np.zeros((1, 1, 1, 2)), np.full((1, 1, 1, 2), 2 / 3), Interval(0.0, 2 / 3))
    assert third.rewards.max() <= 2 / 3
    with pytest.raises(ValueError, match="are exact for at most"):  # 3 steps a user
        EpisodeTable(np.zeros(1000), np.zeros((1000, 3, 1, 2)), np.zeros((1000, 3, 1, 2)), Interval(0.0, 3e3))


def test_a_neighbor_differs_in_one_tree():
    tree = path_tree((2, 0, 3, 1), 4, 2)
    moved = TABLE.replaced(1, np.ones(SHAPE[1:]), None, tree)
    for actions in ((0, 0, 0), (1, 0, 1)):
        assert walked(moved, 1, actions) == ([2, 0, 3, 1], [1.0, 1.0, 1.0])
    others = np.arange(5) != 1
    assert (moved.covariates[others] == TABLE.covariates[others]).all()
    assert (moved.rewards[others] == TABLE.rewards[others]).all()
    kept = TABLE.replaced(1, np.ones(SHAPE[1:]))
    assert (kept.covariates == TABLE.covariates).all()
    assert (kept.rewards[1] == 1).all()
    wide = TABLE.replaced(1, np.full(SHAPE[1:], 7.0), Interval(0.0, 7.0))
    assert wide.clipped(UNIT).rewards[1].max() == 1.0
    assert (wide.clipped(UNIT).covariates == TABLE.covariates).all()
    assert TABLE.clipped(Interval(-1.0, 1.0)) is TABLE
    for user, row, told in (
        (5, np.ones(SHAPE[1:]), "user must lie"),
        (0, np.ones((3, 4)), r"row must hold rewards of shape"),
    ):
        with pytest.raises(ValueError, match=told):
            TABLE.replaced(user, row)
    with pytest.raises(ValueError, match=r"covariates must be of shape \(25,\), as all users' are, got \(24,\)"):
        TABLE.replaced(0, np.ones(SHAPE[1:]), None, tree[1:])
    with pytest.raises(ValueError, match="no covariates, only rewards"):
        RewardTable([[0.0, 1.0]], UNIT).replaced(0, [1.0, 1.0], None, [1.0])


def test_covariates_are_all_but_the_rewards():
    again = TABLE.with_rows(TABLE.rewards, TABLE.covariates)
    assert (again.first_states == FIRST).all()
    assert (again.next_states == NEXT).all()
    assert (again.rewards == TABLE.rewards).all()
    twice = TABLE.repeated(2)
    assert twice.n_users == 10
    assert (twice.next_states[5:] == NEXT).all()
    assert (twice.first_states[:5] == FIRST).all()
    with pytest.raises(ValueError, match="covariates must not be None"):
        TABLE.with_rows(TABLE.rewards, None)
    with pytest.raises(ValueError, match="read-only"):
        TABLE.next_states[0, 0, 0, 0] = 1


def test_random_episodes_are_fair_and_repeatable():
    table = random_episodes(400, 2, 4, 3, Interval(-1.0, 1.0), 7)
    assert (table.covariates == random_episodes(400, 2, 4, 3, Interval(-1.0, 1.0), 7).covariates).all()
    assert set(np.unique(table.rewards)) == {-1.0, 1.0}
    counts = np.bincount(table.next_states.ravel(), minlength=4)
    # 9600 draws, each with probability 1/4: seven deviations of sqrt(1800) are 297; a false alarm has probability 1e-11.
    assert np.abs(counts - 2400).max() < 297
    assert abs(table.rewards.mean()) < 7 / np.sqrt(9600)


def put(array, place, value):
    changed = np.array(array, dtype=float)
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((put(FIRST, 2, 4), NEXT, REWARDS), r"the first state of user 2 is 4\.0; states are whole numbers in \[0, 4\)"),
        ((put(FIRST, 2, -1), NEXT, REWARDS), "the first state of user 2 is -1.0"),
        ((put(FIRST, 2, np.nan), NEXT, REWARDS), "the first state of user 2 is nan"),
        ((FIRST, put(NEXT, (4, 1, 3, 0), 9), REWARDS), "next state of user 4 at step 2, state 3, action 0 is 9.0"),
        ((FIRST, put(NEXT, (0, 2, 0, 1), 0.5), REWARDS), "next state of user 0 at step 3, state 0, action 1 is 0.5"),
        (
            (FIRST, NEXT, put(REWARDS, (1, 0, 2, 1), 1.5)),
            r"reward of user 1 at step 1, state 2, action 1 is 1.5; .*range \[0, 1\]",
        ),
        ((FIRST, NEXT, put(REWARDS, (1, 0, 2, 1), np.inf)), "reward of user 1 at step 1, state 2, action 1 is inf"),
        ((FIRST, NEXT, put(REWARDS, (1, 0, 2, 1), np.nan)), "reward of user 1 at step 1, state 2, action 1 is nan"),
        ((FIRST, NEXT, put(REWARDS, (1, 0, 2, 1), -0.5)), "reward of user 1 at step 1, state 2, action 1 is -0.5"),
        ((FIRST[:4], NEXT, REWARDS), r"first_states must be of shape \(5,\), got \(4,\)"),
        ((FIRST, NEXT[:, :2], REWARDS), "next_states and rewards must both be of shape"),
        ((FIRST, NEXT[..., :1], REWARDS[..., :1]), "n_actions >= 2"),
        ((FIRST, NEXT[:, :0], REWARDS[:, :0]), "no axis empty"),
        ((FIRST[:0], NEXT[:0], REWARDS[:0]), "no axis empty"),
        ((FIRST, NEXT[0], REWARDS[0]), "next_states and rewards must both be of shape"),
    ],
)
def test_what_is_no_table(arguments, told):
    with pytest.raises(ValueError, match=told):
        EpisodeTable(*arguments, UNIT)
