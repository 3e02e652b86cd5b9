"""Fixed data sets of any kind: their rows, their neighbors, and many of them side by side."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandana.algorithms.protocol import BoolArray, FloatArray, IntArray
from bandana.privacy_core import Interval

GRID = 2.0**-30
_EXACT = 2**53  # integers up to here are exact in a float
CovariateKind = StrEnum("CovariateKind", "CONTEXTS STATES")


@dataclass(frozen=True)
class Change:
    """A record in a data set, and what it is in the neighbor.

    Attributes:
      before: reward to any action in the data set.
      after: reward to any action in the neighbor.
      covariates: both covariates, in the short form of `DataSet.covariates_of`; None where they stay as they are.
      kind: of the covariates; None without.
    """

    before: float
    after: float
    covariates: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    kind: CovariateKind | None = None

    def __str__(self) -> str:
        rewards = f"every reward {self.before:g} becomes {self.after:g}"
        if self.covariates is None or self.kind is None:
            return rewards
        if self.kind is CovariateKind.STATES:
            mine, theirs = (" ".join(f"{state:g}" for state in path) for path in self.covariates)
            shown = rewards if self.after != self.before else f"every reward {self.before:g}"
            return f"states {mine} become {theirs}, {shown}"
        product = sum(mine * theirs for mine, theirs in zip(*self.covariates, strict=True))
        if not product:
            return "every context e_0 becomes e_1"
        return f"every context becomes one with product {product:.3g}, {rewards}"


def most_records(reward_range: Interval, n_steps: int = 1) -> int:
    """The most users whose rewards, of so many steps each, have exact sums; 10^15 if all rewards are 0."""
    reach = max(abs(reward_range.low), abs(reward_range.high)) * n_steps
    return math.ceil(_EXACT * GRID / reach) - 1 if reach > 0 else 10**15


class DataSet(ABC):
    """A fixed data set: row k holds the covariates of user k, and what they would answer to all that may happen.

    Rewards are rounded to multiples of 2^-30, so that sums of them are exact in any order: a phase absorbed at once and
    round by round give the same number, and replacing a record changes no sum that does not contain it, to the last bit.

    Attributes:
      rewards: (n_users, ..., n_actions), on the grid.
      reward_range: where every reward lies.
      n_users: number of records.
      n_actions: number of actions.
      n_steps: actions that one record takes: 1 in a bandit, the length of an episode.
      rewards_may_be_public: whether algorithms may know the rewards: then canaries are identified by their covariates.
      stack: the `Stack` of data sets of this kind.
    """

    n_steps = 1
    rewards_may_be_public: ClassVar[bool] = False
    stack: ClassVar[type[Any]]

    def __init__(self, rewards: FloatArray, reward_range: Interval) -> None:
        if len(rewards) > (most := most_records(reward_range, self.n_steps)):
            raise ValueError(
                f"sums of rewards in {reward_range} are exact for at most {most:,} users, got {len(rewards):,}: use fewer, "
                "or scale the rewards"
            )
        self.reward_range = reward_range
        # Where an end of the range is off the grid, rewards stay inside it: the sensitivity is never exceeded.
        steps = np.clip(np.rint(rewards / GRID), np.ceil(reward_range.low / GRID), np.floor(reward_range.high / GRID))
        self._steps: IntArray = steps.astype(np.int64)
        self.rewards: FloatArray = steps * GRID
        self.n_users, self.n_actions = len(rewards), rewards.shape[-1]

    def __str__(self) -> str:
        return f"{self.n_users} rounds x {self.n_actions} arms"

    @property
    @abstractmethod
    def covariates(self) -> NDArray[Any] | None:
        """(n_users, ...) the part of each record beside rewards; None where there is none."""

    @abstractmethod
    def with_rows(self, rewards: ArrayLike, covariates: ArrayLike | None, reward_range: Interval | None = None) -> Self:
        """A data set of the same kind with other rows, of any number.

        Args:
          rewards: (n_users, ..., n_actions)
          covariates: (n_users, ...), None where there are none.
          reward_range: declared range, this table's if None.
        """

    def with_rewards(self, rewards: ArrayLike, reward_range: Interval | None = None) -> Self:
        """The same users and covariates with other rewards.

        Args:
          rewards: (n_users, ..., n_actions)
          reward_range: declared range, this table's if None.
        """
        return self.with_rows(rewards, self.covariates, reward_range)

    def clipped(self, reward_range: Interval) -> Self:
        """The table with every reward moved into the range; itself if that changes nothing."""
        if _holds(reward_range, self.reward_range):
            return self
        return self.with_rewards(reward_range.clip(self.rewards), reward_range)

    def repeated(self, times: int) -> Self:
        """The same users so many times over."""
        rows = np.tile(np.arange(self.n_users), times)
        return self.with_rows(self.rewards[rows], None if self.covariates is None else self.covariates[rows])

    # --- neighbors ----------------------------------------------------------------------------------------------------

    def replaced(
        self, user: int, row: ArrayLike, reward_range: Interval | None = None, covariates: ArrayLike | None = None
    ) -> Self:
        """The neighbor in which one user's record is another one.

        Args:
          user: which row, in [0, n_users).
          row: (..., n_actions) the new potential rewards.
          reward_range: the neighbor's declared range, if the new row leaves this table's.
          covariates: the new covariates; None keeps them, as where they are public.
        """
        if not 0 <= user < self.n_users:
            raise ValueError(f"user must lie in [0, {self.n_users}), got {user!r}")
        shape = self.rewards.shape[1:]
        if np.shape(row) != shape:
            wanted = f"one reward for each of {shape[0]} actions" if len(shape) == 1 else f"rewards of shape {shape}"
            raise ValueError(f"row must hold {wanted}, got shape {np.shape(row)}")
        rewards, kept = self.rewards.copy(), self.covariates
        rewards[user] = row
        if covariates is not None:
            if kept is None:
                raise ValueError("the users of this table have no covariates, only rewards; covariates must be None")
            if np.shape(covariates) != kept.shape[1:]:
                raise ValueError(
                    f"covariates must be of shape {kept.shape[1:]}, as all users' are, got {np.shape(covariates)}"
                )
            kept = kept.copy()
            kept[user] = covariates
        return self.with_rows(rewards, kept, reward_range)

    def changes(self) -> list[Change]:
        """Changes of a record's covariates that cost most privacy, the most costly first; none without covariates."""
        return []

    def near(self, change: Change) -> list[Change]:
        """Changes that differ from the given one in one thing; none where the most costly ones are known."""
        return []

    def covariates_of(self, short: tuple[float, ...]) -> NDArray[Any]:
        """(...) the covariates of a record, given in the short form of `Change.covariates`."""
        raise ValueError("the users of this table have no covariates")

    def draw_covariates(self, n: int, entries: Callable[[tuple[int, ...]], FloatArray], coin: np.random.Generator) -> Any:
        """(n, ...) covariates that records may have.

        Args:
          n: how many.
          entries: draws numbers in [-1, 1] of a shape.
          coin: draws all else.
        """
        raise ValueError("the users of this table have no covariates")

    def rows(self, record: int, change: Change) -> tuple[tuple[float, NDArray[Any] | None], ...]:
        """Reward and covariates of a record that changes: in the data set, and in the neighbor."""
        kept = None if self.covariates is None else self.covariates[record]
        if change.covariates is None:
            return (change.before, kept), (change.after, kept)
        mine, theirs = map(self.covariates_of, change.covariates)
        return (change.before, mine), (change.after, theirs)

    def pair(self, record: int, change: Change) -> tuple[Self, Self]:
        """Two neighbors: this data set with the record before the change, and after it; both may leave the range."""
        span = self.reward_range
        data, neighbor = (
            self.replaced(
                record,
                np.full(self.rewards.shape[1:], reward),
                Interval(min(span.low, reward), max(span.high, reward)),
                covariates,
            )
            for reward, covariates in self.rows(record, change)
        )
        return data, neighbor

    def all_changed(self, change: Change) -> tuple[Self, Self]:
        """This data set with every record before the change, and with every record after it; rewards stay in the range."""
        rows, kept = np.zeros(self.n_users, dtype=np.int64), self.covariates
        data, neighbor = (
            self.with_rows(
                np.full(self.rewards.shape, reward), kept if own is None or change.covariates is None else own[None][rows]
            )
            for reward, own in self.rows(0, change)
        )
        return data, neighbor

    def moved(self, other: DataSet) -> BoolArray:
        """(n_users,) whose covariates differ from those in another data set of the same kind."""
        mine, theirs = self.covariates, other.covariates
        if mine is None or theirs is None:
            return np.zeros(self.n_users, dtype=bool)
        return np.asarray((mine != theirs).reshape(self.n_users, -1).any(axis=1))

    # --- many side by side --------------------------------------------------------------------------------------------

    def one_run(self, in_: DataSet, records: IntArray, is_in: BoolArray, is_local: bool) -> Any:
        """The data sets of an audit with many canaries in one run: where coins decide, all "out" sides, all "in" sides.

        Where releases read many records, a pair of sides differs in one canary, and the other canaries' rewards are half way
        between out and in; their covariates are those of "out".

        Args:
          in_: the rows of canaries that are in; this data set's are those of canaries that are out.
          records: (n_canaries,) positions of the canaries.
          is_in: (n_canaries,) the coins.
          is_local: whether each release reads one record: then one pair of sides holds all canaries alike.
        """
        chosen, n = records[is_in], len(records)
        rewards, covariates = self.rewards.copy(), self.covariates
        rewards[chosen] = in_.rewards[chosen]
        if covariates is not None and in_.covariates is not None:
            covariates = covariates.copy()
            covariates[chosen] = in_.covariates[chosen]
        mixed = self.with_rows(rewards, covariates)
        if is_local:
            none = np.full(3, -1)
            return self.stack((mixed, self, in_), np.arange(3), none, self, none)
        rewards = self.rewards.copy()
        rewards[records] = (self.rewards[records] + in_.rewards[records]) / 2
        sides = [side.covariates[records] for side in (self, in_) if side.covariates is not None]
        return self.stack(
            (mixed, self.with_rewards(rewards)),
            np.repeat([0, 1], [1, 2 * n]),
            np.concatenate([[-1], records, records]),
            self.with_rows(
                np.concatenate([self.rewards[records], in_.rewards[records]]), np.concatenate(sides) if sides else None
            ),
            np.arange(-1, 2 * n),
        )


T = TypeVar("T", bound=DataSet)


class Stack(Generic[T]):
    """A stream in which each replicate has a data set of its own: one of a few, but for one record.

    Args:
      tables: data sets of one kind and shape.
      table: (n_reps,) which of them.
      record: (n_reps,) position of the record that differs.
      canaries: what such records may be, as rows of a data set of the same kind.
      canary: (n_reps,) which of these rows it is; -1 where no record differs.

    Attributes:
      n_users: records of each data set.
      n_actions: number of actions.
      reward_range: where every reward lies.
    """

    def __init__(self, tables: Sequence[T], table: IntArray, record: IntArray, canaries: T, canary: IntArray) -> None:
        self.n_users, self.n_actions = tables[0].n_users, tables[0].n_actions
        self.tables, self.table, self.record, self.canaries, self.canary = tables, table, record, canaries, canary
        spans = [one.reward_range for one in (*tables, canaries)]
        self.reward_range = Interval(min(span.low for span in spans), max(span.high for span in spans))
        self._lay_out()

    def _lay_out(self) -> None:
        """Lays out what answers are read from; each kind adds its own."""

    def clipped(self, reward_range: Interval) -> Self:
        """The same with every reward moved into the range; itself if that changes nothing."""
        if _holds(reward_range, self.reward_range):
            return self
        tables = [table.clipped(reward_range) for table in self.tables]
        return type(self)(tables, self.table, self.record, self.canaries.clipped(reward_range), self.canary)

    def _canary_rows(self, user: IntArray) -> IntArray:
        """Replicates whose given user is the record that differs."""
        return np.flatnonzero((user == self.record) & (self.canary >= 0))


def _holds(outer: Interval, inner: Interval) -> bool:
    return outer.low <= inner.low and inner.high <= outer.high
