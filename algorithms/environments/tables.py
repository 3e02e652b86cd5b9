"""Fixed data sets: what each user would answer to each action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandana.algorithms.environments.answers_numba import span_sums
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval

_GRID = 2.0**-30
_EXACT = 2**53  # integers up to here are exact in a float


class DataSet(ABC):
    """What every kind of data set shares: row k holds what user k brings, and what they would answer to all that may happen.

    Rewards are rounded to multiples of 2^-30, so that sums of them are exact in any order: a phase absorbed at once and
    round by round give the same number, and replacing a record changes no sum that does not contain it, to the last bit.

    Attributes:
      rewards: (n_users, ..., n_actions), on the grid.
      reward_range: where every reward lies.
      n_users: number of records.
      n_actions: number of actions.
      n_steps: actions that one record takes: 1 in a bandit, the length of an episode.
    """

    n_steps = 1

    def __init__(self, rewards: FloatArray, reward_range: Interval) -> None:
        reach = max(abs(reward_range.low), abs(reward_range.high)) * len(rewards) * self.n_steps
        if reach / _GRID >= _EXACT:
            raise ValueError(
                f"{len(rewards)} rewards in {reward_range} can sum to {reach:.4g}; sums are exact up to "
                f"{_EXACT * _GRID:.4g}: scale the rewards, or use fewer users"
            )
        self.reward_range = reward_range
        # Where an end of the range is off the grid, rewards stay inside it: the sensitivity is never exceeded.
        steps = np.clip(np.rint(rewards / _GRID), np.ceil(reward_range.low / _GRID), np.floor(reward_range.high / _GRID))
        self._steps: IntArray = steps.astype(np.int64)
        self.rewards: FloatArray = steps * _GRID
        self.n_users, self.n_actions = len(rewards), rewards.shape[-1]

    def __str__(self) -> str:
        return f"{self.n_users} rounds x {self.n_actions} arms"

    @property
    @abstractmethod
    def brought(self) -> NDArray[Any] | None:
        """(n_users, ...) what users bring beside their rewards; None where there is nothing else in a record."""

    @abstractmethod
    def with_rows(self, rewards: ArrayLike, brought: ArrayLike | None, reward_range: Interval | None = None) -> Self:
        """A data set of the same kind with other rows, of any number.

        Args:
          rewards: (n_users, ..., n_actions)
          brought: (n_users, ...), None where users bring nothing.
          reward_range: declared range, this table's if None.
        """

    def clipped(self, reward_range: Interval) -> Self:
        """The table with every reward moved into the range; itself if that changes nothing."""
        if reward_range.low <= self.reward_range.low and self.reward_range.high <= reward_range.high:
            return self
        return self.with_rewards(reward_range.clip(self.rewards), reward_range)

    def with_rewards(self, rewards: ArrayLike, reward_range: Interval | None = None) -> Self:
        """The same users, who bring the same, with other rewards.

        Args:
          rewards: (n_users, ..., n_actions)
          reward_range: declared range, this table's if None.
        """
        return self.with_rows(rewards, self.brought, reward_range)

    def replaced(
        self, user: int, row: ArrayLike, reward_range: Interval | None = None, brought: ArrayLike | None = None
    ) -> Self:
        """The neighbor in which one user's record is another one.

        Args:
          user: which row, in [0, n_users).
          row: (..., n_actions) the new potential rewards.
          reward_range: the neighbor's declared range, if the new row leaves this table's.
          brought: what the user brings then; None keeps it, as where it is public.
        """
        if not 0 <= user < self.n_users:
            raise ValueError(f"user must lie in [0, {self.n_users}), got {user!r}")
        shape = self.rewards.shape[1:]
        if np.shape(row) != shape:
            told = f"one reward for each of {shape[0]} actions" if len(shape) == 1 else f"rewards of shape {shape}"
            raise ValueError(f"row must hold {told}, got shape {np.shape(row)}")
        rewards, kept = self.rewards.copy(), self.brought
        rewards[user] = row
        if brought is not None:
            if kept is None:
                raise ValueError("the users of this table bring nothing but rewards; brought must be None")
            if np.shape(brought) != kept.shape[1:]:
                raise ValueError(f"brought must be of shape {kept.shape[1:]}, as all users bring, got {np.shape(brought)}")
            kept = kept.copy()
            kept[user] = brought
        return self.with_rows(rewards, kept, reward_range)

    def repeated(self, times: int) -> Self:
        """The same users so many times over."""
        rows = (times, *[1] * (self.rewards.ndim - 1))
        brought = self.brought
        return self.with_rows(
            np.tile(self.rewards, rows),
            None if brought is None else np.tile(brought, (times, *[1] * (brought.ndim - 1))),
        )


class RewardTable(DataSet):
    """Row t holds the potential rewards of user t, one column an action; only the played one is ever read.

    Attributes:
      rewards: (n_users, n_actions), on the grid.
      names: what the actions are called.
    """

    def __init__(self, rewards: ArrayLike, reward_range: Interval, names: tuple[str, ...] | None = None) -> None:
        array = np.asarray(rewards, dtype=float)
        if array.ndim != 2 or array.shape[1] < 2 or not len(array):
            raise ValueError(f"rewards must be of shape (n_users, n_actions), n_actions >= 2; got {array.shape}")
        bad = ~np.isfinite(array) | (array < reward_range.low) | (array > reward_range.high)
        if bad.any():
            user, action = (int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"reward of user {user}, action {action} is {array[user, action]!r}; it must be a number in the declared "
                f"range {reward_range}"
            )
        super().__init__(array, reward_range)
        self.names = names or tuple(f"arm {a}" for a in range(self.n_actions))

    @property
    def brought(self) -> NDArray[Any] | None:
        """What users bring besides rewards: nothing."""
        return None

    @cached_property
    def _prefix(self) -> IntArray:
        """(n_users + 1, n_actions) prefix sums, in units of the grid."""
        return np.concatenate([np.zeros((1, self.n_actions), dtype=np.int64), np.cumsum(self._steps, axis=0)])

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) the sum of rewards[user : user + n_records, action]."""
        sums = np.empty(len(user))
        span_sums(self._prefix, _GRID, user, n_records, actions, sums)
        return sums

    def with_rows(self, rewards: ArrayLike, brought: ArrayLike | None, reward_range: Interval | None = None) -> Self:
        """A table with other rewards and the same names; `reward_range` None keeps the declared range."""
        return type(self)(rewards, reward_range or self.reward_range, self.names)

    @property
    def means(self) -> FloatArray:
        """(n_actions,) mean of each column: against its best the regret on a table is counted (hindsight)."""
        return np.asarray(self.rewards.mean(axis=0))


def random_table(n_users: int, n_actions: int, reward_range: Interval, seed: int) -> RewardTable:
    """A fixed data set for audits: rewards at both ends of the range, by fair coins."""
    ends = np.array([reward_range.low, reward_range.high])
    generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(1,))))
    return RewardTable(ends[generator.integers(0, 2, (n_users, n_actions))], reward_range)


_LONG = 1e-9
"""Norms above 1 by no more than this are rounding, and are divided out."""


class ContextTable(RewardTable):
    """A table whose users show their actions as vectors: row t holds user t's features and potential rewards.

    A record is both; where an algorithm declares contexts public, it is the rewards alone.

    Attributes:
      features: (n_users, n_actions, d), norm at most 1; read-only.
      context_dimension: d.
    """

    def __init__(
        self, features: ArrayLike, rewards: ArrayLike, reward_range: Interval, names: tuple[str, ...] | None = None
    ) -> None:
        super().__init__(rewards, reward_range, names)
        self.features = checked_features(features, self.rewards.shape)
        self.context_dimension = int(self.features.shape[2])

    @property
    def brought(self) -> NDArray[Any]:
        """(n_users, n_actions, d) the features."""
        return self.features

    def with_rows(self, rewards: ArrayLike, brought: ArrayLike | None, reward_range: Interval | None = None) -> Self:
        """A table with other features, which users bring, and other rewards; `reward_range` None keeps the range."""
        if brought is None:
            raise ValueError("users of this table bring features; brought must not be None")
        return type(self)(brought, rewards, reward_range or self.reward_range, self.names)

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) features of the given users' actions; one user's are not copied for each replicate."""
        first = int(user[0])
        if (user == first).all():
            return np.broadcast_to(self.features[first], (len(user), *self.features.shape[1:]))
        return self.features[user]

    def mean_rewards(self, user: IntArray, contexts: FloatArray) -> FloatArray:
        """(n_reps, n_actions) what the users would answer: regret is counted against the best of it, in hindsight."""
        return self.rewards[user]


def checked_features(features: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """The features as a read-only array, of norm at most 1.

    Args:
      features: (n_users, n_actions, d)
      shape: (n_users, n_actions), of the rewards.

    Raises:
      ValueError: users differ in dimension, the shape is not that of the rewards, or an entry is not finite or a vector too
        long; the message names the user.
    """
    try:
        array = np.array(features, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"features must be numbers of shape (n_users, n_actions, d), with one d for all users ({error})"
        ) from error
    if array.ndim != 3 or array.shape[:2] != shape or not array.shape[2]:
        raise ValueError(
            f"features must be of shape (n_users, n_actions, d) = ({shape[0]}, {shape[1]}, d), d >= 1; got {array.shape}"
        )
    bad = ~np.isfinite(array)
    if bad.any():
        user, action, entry = (int(i) for i in np.argwhere(bad)[0])
        value = float(array[user, action, entry])
        raise ValueError(f"feature {entry} of user {user}, action {action} is {value!r}; it must be a finite number")
    norms = np.linalg.norm(array, axis=2)
    if (norms > 1 + _LONG).any():
        user, action = (int(i) for i in np.argwhere(norms > 1 + _LONG)[0])
        raise ValueError(
            f"the features of user {user}, action {action} have norm {float(norms[user, action]):.6g}; it must be at most "
            "1: divide all features by a public bound on the norm"
        )
    array /= np.maximum(norms, 1.0)[:, :, None]
    array.setflags(write=False)
    return array
