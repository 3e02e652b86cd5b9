"""Many data sets side by side, one a replicate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from bandana.algorithms.environments.episodes import EpisodeTable, Table
from bandana.algorithms.environments.tables import ContextTable, DataSet, RewardTable
from bandana.algorithms.protocol import BoolArray, FloatArray, IntArray
from bandana.privacy_core import Interval


class StackedTables:
    """A stream in which each replicate has a table of its own: a context, but for the canary's row.

    Contexts are kept once, as prefix sums; a replicate adds what its canary differs by. Sums are exact, as `RewardTable`'s.

    Attributes:
      n_users: records of each table.
      n_actions: number of actions.
      reward_range: where every reward lies.

    Args:
      contexts: tables of one shape.
      context: (n_reps,) which of them.
      record: (n_reps,) the canary's position.
      reward: (n_reps,) the canary's reward to any action.
    """

    def __init__(self, contexts: Sequence[RewardTable], context: IntArray, record: IntArray, reward: FloatArray) -> None:
        self.n_users, self.n_actions = contexts[0].n_users, contexts[0].n_actions
        self._contexts, self._context, self._record, self._reward = contexts, context, record, reward
        low = min(float(reward.min()), *(table.reward_range.low for table in contexts))
        high = max(float(reward.max()), *(table.reward_range.high for table in contexts))
        self.reward_range = Interval(low, high)
        rewards = np.stack([table.rewards for table in contexts])
        self._prefix = np.concatenate([np.zeros((len(contexts), 1, self.n_actions)), np.cumsum(rewards, axis=1)], axis=1)
        self._extra = reward[:, None] - rewards[context, record]

    def clipped(self, reward_range: Interval) -> StackedTables:
        """The same with every reward moved into the range."""
        if reward_range.low <= self.reward_range.low and self.reward_range.high <= reward_range.high:
            return self
        contexts = [table.clipped(reward_range) for table in self._contexts]
        inside = _clipped(self._reward, self.reward_range, reward_range)
        return StackedTables(contexts, self._context, self._record, inside)

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) the sum of the rewards of users user, ..., user + n_records - 1 to the given actions."""
        last = user + n_records
        sums = self._prefix[self._context, last, actions] - self._prefix[self._context, user, actions]
        holds = (user <= self._record) & (self._record < last)
        extra = self._extra[np.arange(len(user)), actions]
        return np.asarray(sums + np.where(holds, extra, 0.0))


def _clipped(rewards: FloatArray, span: Interval, limits: Interval) -> FloatArray:
    """Rewards of a span as a table clipped to the limits has them."""
    values, places = np.unique(rewards, return_inverse=True)
    return np.asarray(RewardTable(np.repeat(values[:, None], 2, axis=1), span).clipped(limits).rewards[places, 0])


class StackedContextTables(StackedTables):
    """The same where users have contexts: those of the tables, which all share them, but for canaries that have their own.

    Attributes:
      context_dimension: d.

    Args:
      contexts: tables of one shape and with the same features.
      context: (n_reps,) which of them.
      record: (n_reps,) the canary's position.
      reward: (n_reps,) the canary's reward to any action.
      own: (n_reps,) which of `features` are the canary's; -1 for those of the table.
      features: (n_features, n_actions, d)
    """

    def __init__(
        self, contexts: Sequence[ContextTable], context: IntArray, record: IntArray, reward: FloatArray, own: IntArray,
        features: FloatArray,
    ) -> None:  # fmt: skip
        super().__init__(contexts, context, record, reward)
        self.context_dimension = contexts[0].context_dimension
        self._table, self._own, self._features = contexts[0], own, features

    def clipped(self, reward_range: Interval) -> StackedTables:
        """The same with every reward moved into the range."""
        moved = super().clipped(reward_range)
        if moved is self:
            return self
        tables = [self._table.with_rewards(table.rewards, table.reward_range) for table in moved._contexts]
        return StackedContextTables(tables, self._context, self._record, moved._reward, self._own, self._features)

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) of the given users' actions."""
        offered = self._table.contexts(user)
        rows = np.flatnonzero((user == self._record) & (self._own >= 0))
        if not len(rows):
            return offered
        offered = offered.copy()
        offered[rows] = self._features[self._own[rows]]
        return offered


class StackedEpisodeTables:
    """A stream of episodes in which each replicate has a table of its own: a context, but for the canary's row.

    Attributes:
      n_users: records of each table.
      n_actions: number of actions.
      n_states: number of states.
      episode_length: steps of a record.
      reward_range: where every reward lies.

    Args:
      contexts: tables of one shape.
      context: (n_reps,) which of them.
      record: (n_reps,) the canary's position.
      reward: (n_reps,) the canary's reward at any step.
      own: (n_reps,) which of `brought` is the canary's tree; -1 for that of the context.
      brought: (n_trees, 1 + episode_length * n_states * n_actions)
    """

    def __init__(
        self, contexts: Sequence[EpisodeTable], context: IntArray, record: IntArray, reward: FloatArray, own: IntArray,
        brought: IntArray,
    ) -> None:  # fmt: skip
        first = contexts[0]
        self.n_users, self.n_actions, self.n_states = first.n_users, first.n_actions, first.n_states
        self.episode_length = first.episode_length
        self._contexts, self._context, self._record, self._reward = contexts, context, record, reward
        self._own, self._brought = own, brought
        low = min(float(reward.min()), *(table.reward_range.low for table in contexts))
        high = max(float(reward.max()), *(table.reward_range.high for table in contexts))
        self.reward_range = Interval(low, high)
        self._first = np.stack([table.first_states for table in contexts])
        self._next = np.stack([table.next_states for table in contexts])
        self._rewards = np.stack([table.rewards for table in contexts])
        self._trees = brought[:, 1:].reshape(len(brought), *first.next_states.shape[1:])

    def clipped(self, reward_range: Interval) -> StackedEpisodeTables:
        """The same with every reward moved into the range."""
        if reward_range.low <= self.reward_range.low and self.reward_range.high <= reward_range.high:
            return self
        contexts = [table.clipped(reward_range) for table in self._contexts]
        inside = _clipped(self._reward, self.reward_range, reward_range)
        return StackedEpisodeTables(contexts, self._context, self._record, inside, self._own, self._brought)

    def first(self, user: IntArray) -> IntArray:
        """(n_reps,) first states."""
        states = self._first[self._context, user]
        rows = np.flatnonzero((user == self._record) & (self._own >= 0))
        states[rows] = self._brought[self._own[rows], 0]
        return states

    def advance(self, user: IntArray, step: int, states: IntArray, actions: IntArray) -> tuple[IntArray, FloatArray]:
        """(n_reps,) next states and (n_reps,) rewards."""
        place = self._context, user, step, states, actions
        after, rewards, is_canary = self._next[place], self._rewards[place], user == self._record
        rows = np.flatnonzero(is_canary & (self._own >= 0))
        after[rows] = self._trees[self._own[rows], step, states[rows], actions[rows]]
        return after, np.where(is_canary, self._reward, rewards)


def stacked(
    tables: Sequence[Table], context: IntArray, record: IntArray, reward: FloatArray, own: IntArray, brought: NDArray[Any],
) -> StackedTables | StackedEpisodeTables:  # fmt: skip
    """The tables side by side, one a replicate, each with one record changed."""
    if episodes := [table for table in tables if isinstance(table, EpisodeTable)]:
        return StackedEpisodeTables(episodes, context, record, reward, own, brought)
    if shown := [table for table in tables if isinstance(table, ContextTable)]:
        return StackedContextTables(shown, context, record, reward, own, brought)
    return StackedTables([table for table in tables if isinstance(table, RewardTable)], context, record, reward)


def brings_another(data: DataSet, other: DataSet) -> BoolArray:
    """(n_users,) who brings something else."""
    mine, theirs = data.brought, other.brought
    if mine is None or theirs is None:
        return np.zeros(data.n_users, dtype=bool)
    return np.asarray((mine != theirs).reshape(data.n_users, -1).any(axis=1))


T = TypeVar("T", bound=DataSet)


class Tables(Generic[T]):
    """A stream in which every replicate has a table of its own: the mixed one, then all "out" sides, then all "in" sides.

    Args:
      mixed: where the coins decide.
      out: rows of canaries that are out.
      in_: rows of canaries that are in.
      rest: what the sides hold beside their own canary; None where a side holds all canaries alike.
      records: (n_pairs,) whose canary a pair of sides differs in; all of them where `rest` is None.

    Attributes:
      is_hidden: (n_users,) whose own actions may differ between the tables: canaries' that bring something else when in.
    """

    def __init__(self, mixed: T, out: T, in_: T, rest: T | None, records: IntArray) -> None:
        self.mixed, self.out, self.in_, self.rest, self.records = mixed, out, in_, rest, records
        self.n_users, self.n_actions, self.reward_range = mixed.n_users, mixed.n_actions, mixed.reward_range
        self.n_pairs = 1 if rest is None else len(records)
        self.is_hidden = np.zeros(mixed.n_users, dtype=bool)
        self.is_hidden[records] = brings_another(out, in_)[records]

    @staticmethod
    def of(data: Table, in_: Table, records: IntArray, is_in: BoolArray, is_local: bool) -> Streams:
        """The tables of both paths; `in_` holds the rows of canaries that are in.

        Where releases read many records the other canaries are half way between in and out, as far as rewards go: what they
        bring is what they bring when they are out.
        """
        mixed, rest = data.rewards.copy(), data.rewards.copy()
        mixed[records[is_in]] = in_.rewards[records[is_in]]
        rest[records] = (data.rewards[records] + in_.rewards[records]) / 2
        brought = None if data.brought is None or in_.brought is None else data.brought.copy()
        if brought is not None and in_.brought is not None:
            brought[records[is_in]] = in_.brought[records[is_in]]
        parts = data.with_rows(mixed, brought), data, in_, None if is_local else data.with_rewards(rest), records
        if isinstance(data, EpisodeTable):
            return EpisodeTables(*parts)  # type: ignore[arg-type]
        return (ContextTables if isinstance(data, ContextTable) else ArmTables)(*parts)  # type: ignore[arg-type]

    def clipped(self, reward_range: Interval) -> Self:
        """All tables, clipped; they lie in the algorithm's range, so that nothing changes."""
        rest = None if self.rest is None else self.rest.clipped(reward_range)
        mixed, out, in_ = (table.clipped(reward_range) for table in (self.mixed, self.out, self.in_))
        return type(self)(mixed, out, in_, rest, self.records)

    def _sides(self) -> tuple[tuple[T, slice], ...]:
        """Tables, and whose replicates they answer; a side's own rows are not among them where there is a rest."""
        k = self.n_pairs
        out, in_ = (self.out, self.in_) if self.rest is None else (self.rest, self.rest)
        return (self.mixed, slice(0, 1)), (out, slice(1, k + 1)), (in_, slice(k + 1, 2 * k + 1))


class ArmTables(Tables[RewardTable]):
    """`Tables` of finite arms."""

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) sums of the users' rewards to the given actions, each from its own replicate's table."""
        sides = self._sides()
        answers = [table.respond(user[part], n_records[part], actions[part]) for table, part in sides]
        if self.rest is None:
            return np.concatenate(answers)
        for answer, table, (_, part) in zip(answers[1:], (self.out, self.in_), sides[1:], strict=True):
            first, count, played = user[part], n_records[part], actions[part]
            holds = (first <= self.records) & (self.records < first + count)
            place = (self.records, played)
            own = table.rewards[place] - self.rest.rewards[place]
            answer += np.where(holds, own, 0.0)
        return np.concatenate(answers)


class ContextTables(ArmTables):
    """The same where users have contexts: all tables share them."""

    @property
    def context_dimension(self) -> int:
        """Dimension of the tables' contexts."""
        assert isinstance(self.mixed, ContextTable)
        return self.mixed.context_dimension

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) features of the actions that user[r] may choose."""
        assert isinstance(self.mixed, ContextTable)
        return self.mixed.contexts(user)


class EpisodeTables(Tables[EpisodeTable]):
    """`Tables` of episodes."""

    def __init__(
        self, mixed: EpisodeTable, out: EpisodeTable, in_: EpisodeTable, rest: EpisodeTable | None, records: IntArray
    ) -> None:
        super().__init__(mixed, out, in_, rest, records)
        self.n_states, self.episode_length = mixed.n_states, mixed.episode_length

    def first(self, user: IntArray) -> IntArray:
        """(n_reps,) states that the users begin in."""
        return self._asked(lambda table, part: table.first(user[part]), user)

    def advance(self, user: IntArray, step: int, states: IntArray, actions: IntArray) -> tuple[IntArray, FloatArray]:
        """(n_reps,) the next states and (n_reps,) the rewards of the users who take these actions in these states."""

        def answer(table: EpisodeTable, part: slice | IntArray, which: int) -> NDArray[Any]:
            return table.advance(user[part], step, states[part], actions[part])[which]

        after, rewards = (self._asked(partial(answer, which=which), user) for which in (0, 1))
        return after, rewards

    def _asked(self, ask: Callable[[EpisodeTable, slice | IntArray], NDArray[Any]], user: IntArray) -> NDArray[Any]:
        """(n_reps,) what each replicate's own table answers."""
        found = np.concatenate([ask(table, part) for table, part in self._sides()])
        for start, table in ((1, self.out), (1 + self.n_pairs, self.in_)) if self.rest is not None else ():
            own = start + np.flatnonzero(self.records == user[start : start + self.n_pairs])
            found[own] = ask(table, own)
        return found


Streams = ArmTables | EpisodeTables
