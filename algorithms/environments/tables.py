"""Fixed data sets of bandits: what each user would answer to each action."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandana.algorithms.environments.answers_numba import span_sums
from bandana.algorithms.environments.data_sets import GRID, Change, CovariateKind, DataSet, Stack
from bandana.algorithms.environments.drawn import action_names
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.regression import ridge_numba
from bandana.privacy_core import Interval


class RewardStack(Stack["RewardTable"]):
    """Tables of arms side by side; sums are kept for each table once, and exact, as those of `RewardTable`."""

    def _lay_out(self) -> None:
        self._prefix = np.stack([one.prefix for one in self.tables]) * GRID
        replaced = np.stack([one.rewards for one in self.tables])[self.table, self.record]
        self._extra = self.canaries.rewards[self.canary] - replaced

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) the sum of the rewards of users user, ..., user + n_records - 1 to the given actions."""
        last = user + n_records
        sums = self._prefix[self.table, last, actions] - self._prefix[self.table, user, actions]
        holds = (self.canary >= 0) & (user <= self.record) & (self.record < last)
        return np.asarray(sums + np.where(holds, self._extra[np.arange(len(user)), actions], 0.0))


class RewardTable(DataSet):
    """Row t holds the potential rewards of user t, one column an action; only the played one is ever read.

    Attributes:
      rewards: (n_users, n_actions), on the grid.
      names: what the actions are called.
    """

    stack: ClassVar[type[Any]] = RewardStack

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
        self.names = names or action_names(self.n_actions, "arm")

    @property
    def covariates(self) -> NDArray[Any] | None:
        """None: a record is its rewards."""
        return None

    @cached_property
    def prefix(self) -> IntArray:
        """(n_users + 1, n_actions) prefix sums, in units of the grid."""
        return np.concatenate([np.zeros((1, self.n_actions), dtype=np.int64), np.cumsum(self._steps, axis=0)])

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) the sum of rewards[user : user + n_records, action]."""
        sums = np.empty(len(user))
        span_sums(self.prefix, GRID, user, n_records, actions, sums)
        return sums

    def with_rows(self, rewards: ArrayLike, covariates: ArrayLike | None, reward_range: Interval | None = None) -> Self:
        """A table with other rewards and the same names."""
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


class ContextStack(RewardStack):
    """Tables with contexts side by side; all share them, but for canaries that have their own.

    Attributes:
      context_dimension: d.
    """

    tables: Sequence[ContextTable]
    canaries: ContextTable

    def _lay_out(self) -> None:
        super()._lay_out()
        self.context_dimension = self.tables[0].context_dimension
        own = (self.canaries.features[self.canary] != self.tables[0].features[self.record]).any(axis=(1, 2))
        self._has_own = own & (self.canary >= 0)

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) of the given users' actions."""
        offered = self.tables[0].contexts(user)
        rows = np.flatnonzero((user == self.record) & self._has_own)
        if not len(rows):
            return offered
        offered = offered.copy()
        offered[rows] = self.canaries.features[self.canary[rows]]
        return offered


class ContextTable(RewardTable):
    """A table whose users show their actions as vectors: row t holds user t's features and potential rewards.

    A record is both; where an algorithm declares contexts public, it is the rewards alone.

    Attributes:
      features: (n_users, n_actions, d), norm at most 1; read-only.
      context_dimension: d.
    """

    stack: ClassVar[type[Any]] = ContextStack

    def __init__(
        self, features: ArrayLike, rewards: ArrayLike, reward_range: Interval, names: tuple[str, ...] | None = None
    ) -> None:
        super().__init__(rewards, reward_range, names)
        self.features = self._checked(features, self.rewards.shape)
        self.context_dimension = int(self.features.shape[2])

    @staticmethod
    def _checked(features: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
        return checked_features(features, shape)

    @property
    def covariates(self) -> NDArray[Any]:
        """(n_users, n_actions, d) the features."""
        return self.features

    def with_rows(self, rewards: ArrayLike, covariates: ArrayLike | None, reward_range: Interval | None = None) -> Self:
        """A table with other features and other rewards."""
        if covariates is None:
            raise ValueError("users of this table have features; covariates must not be None")
        return type(self)(covariates, rewards, reward_range or self.reward_range, self.names)

    def covariates_of(self, short: tuple[float, ...]) -> FloatArray:
        """(n_actions, d) features of a user all of whose actions have the vector `short`, which is then the covariate."""
        return np.tile(np.array(short), (self.n_actions, 1))

    def draw_covariates(
        self, n: int, entries: Callable[[tuple[int, ...]], FloatArray], coin: np.random.Generator
    ) -> FloatArray:
        """(n, n_actions, d) vectors of norm at most 1: in half of the users of one direction, or of any entries.

        One entry, of all or of each action, is drawn by `entries`; the others are drawn and, where needed, made shorter.
        """
        shape = n, self.n_actions, self.context_dimension
        vectors = coin.standard_normal(shape)
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
        is_one = coin.random((n, 1, 1)) < 0.5
        vectors = np.where(is_one, vectors[:, :1], vectors)
        place = np.arange(shape[2]) == coin.integers(0, shape[2], (n, 1, 1))
        chosen = np.where(is_one, (own := entries((n, self.n_actions, 1)))[:, :1], own)
        rest = np.linalg.norm(np.where(place, 0.0, vectors), axis=2, keepdims=True)
        room = np.sqrt(np.maximum(0.0, 1 - chosen**2)) * np.where(coin.random((n, 1, 1)) < 0.5, 1.0, coin.random((n, 1, 1)))
        return np.asarray(np.where(place, chosen, vectors * room / np.where(rest > 0, rest, 1.0)))

    def changes(self) -> list[Change]:
        r"""Changes of contexts that cost most.

        All actions of the record have one vector x, so that x is what the record contributes, whichever is chosen. Of the
        sums of x x^T and y x, with y = r - m for rewards r of middle m and half-width Y, the largest change is that of
        y = -Y, y' = Y and <x, x'> = min(1, Y^2) for GOE noise of one scale on both, min(1, Y^2/2) for equal variances
        (`JointGaussian`); of x x^T alone, that of orthogonal vectors. Where the product is 1 the contexts stay. The two lie
        on either side of (1, 1), so that x x^T - x' x'^T is diagonal, which is what noise of equal variances hides least.
        """
        if self.context_dimension < 2:
            return []
        low, high = self.reward_range.low, self.reward_range.high
        axes = np.eye(self.context_dimension)[:2]
        changes = [Change(low, low, (tuple(axes[0]), tuple(axes[1])), CovariateKind.CONTEXTS)]
        for share in ((self.reward_range.width / 2) ** 2, (self.reward_range.width / 2) ** 2 / 2):
            if share >= 1:
                continue
            half = math.acos(share) / 2
            mine, theirs = (
                np.array([math.cos(turn), math.sin(turn)]) @ axes for turn in (math.pi / 4 - half, math.pi / 4 + half)
            )
            changes.append(Change(low, high, (tuple(mine), tuple(theirs)), CovariateKind.CONTEXTS))
        return changes

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


def sphere_table(
    n_users: int, n_actions: int, dimension: int, reward_range: Interval, seed: np.random.SeedSequence
) -> ContextTable:
    """A fixed data set for audits: contexts from the unit sphere, rewards at both ends of the range by fair coins."""
    generator = np.random.Generator(np.random.SFC64(seed))
    features = generator.standard_normal((n_users, n_actions, dimension))
    ridge_numba.normalize(features.reshape(-1, dimension))
    ends = np.array([reward_range.low, reward_range.high])
    return ContextTable(features, ends[generator.integers(0, 2, (n_users, n_actions))], reward_range)
