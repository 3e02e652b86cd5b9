"""Fixed data sets of episodes: where each user's every action would lead, and what it would earn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandana.algorithms.environments.tables import DataSet, RewardTable
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval


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
                f"the reward of {_told(place)} is {float(answers[place])!r}; it must be a number in the declared range "
                f"{reward_range}"
            )
        self.n_steps = self.episode_length
        super().__init__(answers, reward_range)
        self.names = names or tuple(f"action {a}" for a in range(self.n_actions))

    def __str__(self) -> str:
        shape = f"{self.n_states} states x {self.n_actions} actions"
        return f"{self.n_users} episodes of {self.episode_length} steps x {shape}"

    @property
    def brought(self) -> NDArray[Any]:
        """(n_users, 1 + horizon * n_states * n_actions) each user's first state, then all next states, step by step."""
        return np.concatenate([self.first_states[:, None], self.next_states.reshape(self.n_users, -1)], axis=1)

    def with_rows(self, rewards: ArrayLike, brought: ArrayLike | None, reward_range: Interval | None = None) -> Self:
        """A table of the same kind with other rows; users bring trees, in the form of `brought`.

        Args:
          rewards: (n_users, horizon, n_states, n_actions)
          brought: (n_users, 1 + horizon * n_states * n_actions)
          reward_range: declared range, this table's if None.
        """
        if brought is None:
            raise ValueError("users of this table bring first and next states; brought must not be None")
        answers, trees = np.asarray(rewards, dtype=float), np.asarray(brought)
        return type(self)(
            trees[:, 0], trees[:, 1:].reshape(answers.shape), answers, reward_range or self.reward_range, self.names
        )

    def first(self, user: IntArray) -> IntArray:
        """(n_reps,) first states."""
        return self.first_states[user]

    def advance(self, user: IntArray, step: int, states: IntArray, actions: IntArray) -> tuple[IntArray, FloatArray]:
        """(n_reps,) next states and (n_reps,) rewards."""
        place = user, step, states, actions
        return self.next_states[place], self.rewards[place]


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
    """(1 + horizon * n_states * n_actions,) what a user brings who walks along a path whatever is done.

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
    found: IntArray = np.zeros(shape, dtype=np.int64)
    wrong = ~((given >= 0) & (given < n_states) & (given == np.floor(given)))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        which = f"the first state of user {place[0]}" if len(place) == 1 else f"the next state of {_told(place)}"
        raise ValueError(f"{which} is {given[place].item()!r}; states are whole numbers in [0, {n_states})")
    found[...] = given
    found.setflags(write=False)
    return found


def _told(place: tuple[int, ...]) -> str:
    user, step, state, action = place
    return f"user {user} at step {step + 1}, state {state}, action {action}"
