"""Fixed data sets of episodes: where each user's every action would lead, and what it would earn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandana.algorithms.environments.data_sets import Change, CovariateKind, DataSet, Stack
from bandana.algorithms.environments.drawn import action_names
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval

_MOST_STATES, _MOST_NEAR = 6, 48


class EpisodeStack(Stack["EpisodeTable"]):
    """Tables of episodes side by side.

    Attributes:
      n_states: number of states.
      episode_length: steps of a record.
    """

    def _lay_out(self) -> None:
        self.n_states, self.episode_length = self.tables[0].n_states, self.tables[0].episode_length
        self._first = np.stack([one.first_states for one in self.tables])
        self._next = np.stack([one.next_states for one in self.tables])
        self._rewards = np.stack([one.rewards for one in self.tables])

    def first(self, user: IntArray) -> IntArray:
        """(n_reps,) first states."""
        states, rows = self._first[self.table, user], self._canary_rows(user)
        states[rows] = self.canaries.first(self.canary[rows])
        return states

    def advance(self, user: IntArray, step: int, states: IntArray, actions: IntArray) -> tuple[IntArray, FloatArray]:
        """(n_reps,) next states and (n_reps,) rewards."""
        place, rows = (self.table, user, step, states, actions), self._canary_rows(user)
        after, rewards = self._next[place], self._rewards[place]
        after[rows], rewards[rows] = self.canaries.advance(self.canary[rows], step, states[rows], actions[rows])
        return after, rewards


class EpisodeTable(DataSet):
    """Row k holds the whole tree of user k: first state, and next state and reward of every step, state and action.

    A record is the tree; of it a run reads the one path that the actions choose, which no replaced record can lengthen.

    Attributes:
      first_states: (n_users,), read-only.
      next_states: (n_users, horizon, n_states, n_actions), read-only.
      rewards: (n_users, horizon, n_states, n_actions), on the grid of `DataSet`.
      reward_range: where every reward lies.
      episode_length: horizon, H.
      n_states: S.
      names: what the actions are called.
    """

    rewards_may_be_public = True
    stack: ClassVar[type[Any]] = EpisodeStack

    def __init__(
        self,
        first_states: ArrayLike,
        next_states: ArrayLike,
        rewards: ArrayLike,
        reward_range: Interval,
        names: tuple[str, ...] | None = None,
    ) -> None:
        answers = np.asarray(rewards, dtype=float)
        if answers.ndim != 4 or not answers.size or np.shape(next_states) != answers.shape or answers.shape[3] < 2:
            raise ValueError(
                "next_states and rewards must both be of shape (n_users, horizon, n_states, n_actions), no axis empty and "
                f"n_actions >= 2; got {np.shape(next_states)} and {answers.shape}"
            )
        self.episode_length, self.n_states = int(answers.shape[1]), int(answers.shape[2])
        self.first_states = _states("first_states", first_states, (len(answers),), self.n_states)
        self.next_states = _states("next_states", next_states, answers.shape, self.n_states)
        bad = ~np.isfinite(answers) | (answers < reward_range.low) | (answers > reward_range.high)
        if bad.any():
            place = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"the reward of {_where(place)} is {float(answers[place])!r}; it must be a number in the declared range "
                f"{reward_range}"
            )
        self.n_steps = self.episode_length
        super().__init__(answers, reward_range)
        self.names = names or action_names(self.n_actions)

    def __str__(self) -> str:
        shape = f"{self.n_states} states x {self.n_actions} actions"
        return f"{self.n_users} episodes of {self.episode_length} steps x {shape}"

    @property
    def covariates(self) -> NDArray[Any]:
        """(n_users, 1 + horizon * n_states * n_actions) each user's first state, then all next states, step by step."""
        return np.concatenate([self.first_states[:, None], self.next_states.reshape(self.n_users, -1)], axis=1)

    def with_rows(self, rewards: ArrayLike, covariates: ArrayLike | None, reward_range: Interval | None = None) -> Self:
        """A table of the same kind with other rows; covariates are trees, in the form of `covariates`."""
        if covariates is None:
            raise ValueError("users of this table have first and next states; covariates must not be None")
        answers, trees = np.asarray(rewards, dtype=float), np.asarray(covariates)
        return type(self)(
            trees[:, 0], trees[:, 1:].reshape(answers.shape), answers, reward_range or self.reward_range, self.names
        )

    def covariates_of(self, short: tuple[float, ...]) -> IntArray:
        """(1 + horizon * n_states * n_actions,) the tree of a user who walks along the path `short`, whatever is done."""
        return path_tree(short, self.n_states, self.n_actions)

    def draw_covariates(
        self, n: int, entries: Callable[[tuple[int, ...]], FloatArray], coin: np.random.Generator
    ) -> IntArray:
        """(n, 1 + horizon * n_states * n_actions) trees in which any state follows any other."""
        return coin.integers(0, self.n_states, (n, self.covariates.shape[1]))

    def changes(self) -> list[Change]:
        """A canary that stays in one state for the whole episode, and in another in the neighbor, for all pairs of states.

        So each of its steps contributes what one state and the policy's action there give, with the value of a state that is
        known to come. Which states are worst depends on the algorithm's model: of more than six, six evenly spaced are
        paired, and the search for the least favorable pair goes on from there, state by state. Rewards move by the whole
        range, or stay highest: a target that enters with opposite features moves most where it is large on both sides.
        """
        span, length = self.reward_range, self.episode_length + 1
        shown = np.unique(np.linspace(0, self.n_states - 1, min(self.n_states, _MOST_STATES)).round().astype(int)).tolist()
        apart = sorted(combinations(shown, 2), key=lambda pair: pair[0] - pair[1])
        return [
            change_of_path((mine,) * length, (theirs,) * length, before, span.high)
            for mine, theirs in apart
            for before in (span.low, span.high)
        ]

    def near(self, change: Change) -> list[Change]:
        """Changes that differ in one state, or in one reward; of many an even selection."""
        assert change.covariates is not None
        (mine, theirs), ends = change.covariates, (self.reward_range.low, self.reward_range.high)
        paths = [(path, theirs) for path in self._one_step_away(mine)]
        paths += [(mine, path) for path in self._one_step_away(theirs)]
        return [
            *(change_of_path(mine, theirs, before, after) for before, after in product(ends, repeat=2)),
            *(change_of_path(*both, change.before, change.after) for both in paths[:: -(-len(paths) // _MOST_NEAR)]),
        ]

    def _one_step_away(self, path: tuple[float, ...]) -> list[tuple[float, ...]]:
        return [
            (*path[:step], state, *path[step + 1 :])
            for step, state in product(range(len(path)), range(self.n_states))
            if state != path[step]
        ]

    def first(self, user: IntArray) -> IntArray:
        """(n_reps,) first states."""
        return self.first_states[user]

    def advance(self, user: IntArray, step: int, states: IntArray, actions: IntArray) -> tuple[IntArray, FloatArray]:
        """(n_reps,) next states and (n_reps,) rewards."""
        place = user, step, states, actions
        return self.next_states[place], self.rewards[place]


def change_of_path(mine: tuple[float, ...], theirs: tuple[float, ...], before: float, after: float) -> Change:
    """A trajectory that becomes another one: at each step the canary is in a given state, whatever is done.

    Args:
      mine: (horizon + 1,) states in the data set.
      theirs: (horizon + 1,) states in the neighbor.
      before: reward to any action in the data set.
      after: reward to any action in the neighbor.
    """
    paths = tuple(map(float, mine)), tuple(map(float, theirs))
    return Change(before, after, paths, CovariateKind.STATES)


Table = RewardTable | EpisodeTable
"""Any fixed data set that can be played."""


def random_episodes(
    n_users: int, horizon: int, n_states: int, n_actions: int, reward_range: Interval, seed: int
) -> EpisodeTable:
    """A fixed data set for audits: any state follows any other with the same probability, rewards at both ends by coins."""
    generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(1,))))
    shape = n_users, horizon, n_states, n_actions
    ends = np.array([reward_range.low, reward_range.high])
    first, after = generator.integers(0, n_states, n_users), generator.integers(0, n_states, shape)
    return EpisodeTable(first, after, ends[generator.integers(0, 2, shape)], reward_range)


def path_tree(path: ArrayLike, n_states: int, n_actions: int) -> IntArray:
    """(1 + horizon * n_states * n_actions,) covariates of a user who walks along a path whatever is done.

    Args:
      path: (horizon + 1,) states.
      n_states: S.
      n_actions: A.
    """
    states = np.asarray(path, dtype=np.int64)
    return np.concatenate([states[:1], np.repeat(states[1:], n_states * n_actions)])


def _states(name: str, states: ArrayLike, shape: tuple[int, ...], n_states: int) -> IntArray:
    """The states as a read-only array, checked."""
    given = np.asarray(states)
    if given.shape != shape:
        raise ValueError(f"{name} must be of shape {shape}, got {given.shape}")
    array: IntArray = np.zeros(shape, dtype=np.int64)
    wrong = ~((given >= 0) & (given < n_states) & (given == np.floor(given)))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        which = f"the first state of user {place[0]}" if len(place) == 1 else f"the next state of {_where(place)}"
        raise ValueError(f"{which} is {given[place].item()!r}; states are whole numbers in [0, {n_states})")
    array[...] = given
    array.setflags(write=False)
    return array


def _where(place: tuple[int, ...]) -> str:
    user, step, state, action = place
    return f"user {user} at step {step + 1}, state {state}, action {action}"
