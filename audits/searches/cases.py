"""Cases of the deterministic audit, and the space that they are drawn from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from bandana.algorithms.environments.episodes import EpisodeTable, Table, path_tree
from bandana.algorithms.environments.tables import ContextTable, RewardTable
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.audits.neighbors.pairs import Pair
from bandana.privacy_core import Interval

_ROUNDING = 1e-9
_TOO_LONG = 10.0


class UncheckedContexts(ContextTable):
    """A table whose features have any length, as those that a user of the library hands over without an environment."""

    @staticmethod
    def _checked(features: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
        array = np.array(features, dtype=float)
        array.setflags(write=False)
        return array


Covariates = tuple[Any, ...]
"""Numbers of one record or of all, nested: features of the actions, or a tree of states."""


@dataclass(frozen=True)
class Case:
    """One thing to try: a table, a record of it, and the replacement of that record.

    Attributes:
      rewards: of each user to each action; in episodes to each step, state and action, in that order.
      record: which one is replaced.
      replacement: its rewards then.
      seed: of the noise.
      covariates: those of each user, as `Table.covariates` has them: features of the actions, or a tree of states; or None.
      replaced_covariates: those of the record after the change; None where they stay.
      episode: horizon, number of states and of actions, in episodes.
      wide: the release whose noise has three times its scale (`bandana.audits.searches.widened`), from 0; -1 for none.
      others: other records of the same user, whose rewards become the replacement too.
    """

    rewards: tuple[tuple[float, ...], ...]
    record: int
    replacement: tuple[float, ...]
    seed: int
    covariates: Covariates | None = None
    replaced_covariates: Covariates | None = None
    episode: tuple[int, int, int] | None = None
    wide: int = -1
    others: tuple[int, ...] = ()

    @classmethod
    def of(cls, pair: Pair, seed: int) -> Case:
        """A pair of tables as a case."""
        data, neighbor, record = pair.data, pair.neighbor, pair.record
        rows = data.rewards.reshape(data.n_users, -1).tolist()
        replacement = neighbor.rewards[record].ravel().tolist()
        theirs = None if neighbor.covariates is None else neighbor.covariates[record]
        return cls(
            tuple(map(tuple, rows)), record, tuple(replacement), seed,
            None if data.covariates is None else as_tuples(data.covariates),
            None if theirs is None or pair.hidden_record < 0 else as_tuples(theirs),
            data.rewards.shape[1:] if data.rewards.ndim > 2 else None, others=pair.others,
        )  # fmt: skip

    def pair(self, reward_range: Interval) -> Pair:
        """D, whose rewards lie in the declared range, and D', which may leave it."""
        wide = Interval(min(reward_range.low, *self.replacement), max(reward_range.high, *self.replacement))
        replacement = np.array(self.replacement)
        data: Table
        if self.episode is not None:
            trees, shape = np.array(self.covariates), (len(self.rewards), *self.episode)
            rewards, replacement = np.array(self.rewards).reshape(shape), replacement.reshape(self.episode)
            data = EpisodeTable(trees[:, 0], trees[:, 1:].reshape(shape), rewards, reward_range)
        elif self.covariates is not None:
            vectors = np.array([*self.covariates, self.replaced_covariates or self.covariates[0]])
            kind = ContextTable if np.linalg.norm(vectors, axis=-1).max() <= 1 + _ROUNDING else UncheckedContexts
            data = kind(self.covariates, self.rewards, reward_range)
        else:
            data = RewardTable(self.rewards, reward_range)
        neighbor = data.replaced(self.record, replacement, wide, self.replaced_covariates)
        for record in self.others:
            neighbor = neighbor.replaced(record, replacement, wide)
        return Pair(data, neighbor, self.record, others=self.others)

    @property
    def hidden_record(self) -> int:
        """Index of the record if its own actions may differ, because its covariates do; else -1."""
        return -1 if self.replaced_covariates is None else self.record

    @property
    def n_steps(self) -> int:
        """Actions of one record."""
        return 1 if self.episode is None else self.episode[0]

    @property
    def unit(self) -> str:
        """Word for a record."""
        return "round" if self.episode is None else "episode"

    def earned(self, record: int, path: Path, on_neighbor: bool) -> tuple[float, ...]:
        """The rewards along a path of an episode."""
        assert self.episode is not None
        row = self.replacement if on_neighbor and record in (self.record, *self.others) else self.rewards[record]
        _, n_states, n_actions = self.episode
        steps = zip(path.states, path.actions, strict=False)
        return tuple(row[(h * n_states + state) * n_actions + action] for h, (state, action) in enumerate(steps))


class Path(NamedTuple):
    """States and actions of one user's episode."""

    states: tuple[int, ...]
    """One more than actions."""
    actions: tuple[int, ...]


def as_tuples(array: NDArray[np.generic]) -> Covariates:
    """Nested tuples of the array's numbers."""
    return tuple(map(as_tuples, array)) if array.ndim > 1 else tuple(array.tolist())


SHORT = 24
_CELLS = 256
_LARGEST_SUM = 2.0**23
"""Limit on a table's rewards, beyond which sums would not be exact."""


class Background(IntEnum):
    """Rewards of a table before its record changes: one value, the range's ends by turns, or drawn."""

    LOW, HIGH, MIDDLE, TURNS, DRAWN = range(5)


class Contexts(IntEnum):
    """Features of all actions: one vector, an axis for each, the axes by turns, or drawn vectors."""

    ONE_VECTOR, AXIS_PER_ACTION, AXES_BY_TURNS, DRAWN = range(4)


class Walk(IntEnum):
    """Next state of a user of episodes: the same, the next, the action's number, or drawn for each step or each entry."""

    STAY, NEXT_STATE, BY_ACTION, DRAWN_PATH, DRAWN_TREE = range(5)


_NOT_DRAWN = b"\0"


@dataclass(frozen=True)
class CaseSpace:
    """Values that tables and replacements consist of: few draws each, as drawing is half of the cost of a short case.

    Attributes:
      n_actions: number of arms.
      reward_range: where the table lies.
      max_rounds: longest table.
      dimension: of the contexts; None where there are none.
      private_records: whether the covariates of the record that changes may change too.
      episode: horizon, number of states and of actions; None where there are no episodes.
    """

    n_actions: int
    reward_range: Interval
    max_rounds: int
    dimension: int | None = None
    private_records: bool = False
    episode: tuple[int, int, int] | None = None

    @classmethod
    def of(cls, algorithm: Algorithm, reward_range: Interval, max_rounds: int, private_records: bool) -> CaseSpace:
        """Space of the cases that the algorithm plays on."""
        length, n_states = (getattr(algorithm, name, None) for name in ("episode_length", "n_states"))
        episode = None if length is None or n_states is None else (length, n_states, algorithm.n_actions)
        dimension: int | None = getattr(algorithm, "context_dimension", None)
        return cls(algorithm.n_actions, reward_range, max_rounds, dimension, private_records, episode)

    @property
    def n_answers(self) -> int:
        """Rewards in a record."""
        return self.n_actions if self.episode is None else math.prod(self.episode)

    @property
    def inside(self) -> list[float]:
        """Rewards of a table, the ends of the range first."""
        low, width = self.reward_range.low, self.reward_range.width
        return [low, self.reward_range.high, low + width / 2, low + width / 4]

    @property
    def anywhere(self) -> list[float]:
        """Rewards of a neighbor's record: also values far outside the range, and just outside."""
        low, high, width = self.reward_range.low, self.reward_range.high, self.reward_range.width
        outside = [high + 4 * width, low - 2 * width, high + width / 64, low - width / 64]
        middle = [low + width / 2, low + width / 4]
        return [high, low, *middle, *(value for value in outside if abs(value) * self.longest < _LARGEST_SUM)]

    @property
    def longest(self) -> int:
        """Rounds of the longest table: at least one for each arm of a bandit, which plays all arms once."""
        is_bandit = self.dimension is None and self.episode is None
        return max(self.max_rounds, self.n_actions) if is_bandit else self.max_rounds

    def table(self, background: Background, n_rounds: int, draw: st.DrawFn) -> FloatArray:
        """(n_rounds, n_answers) rewards; unless drawn, all arms have earned the same, so that every decision is close."""
        if background is Background.DRAWN:
            drawn = _bytes(draw, n_rounds * self.n_answers)
            return np.asarray(np.array(self.inside)[_below(4, drawn, (n_rounds, self.n_answers))])
        low, high, middle, _ = self.inside
        turns = np.where(np.arange(n_rounds) % 2, high, low)
        columns = [*(np.full(n_rounds, value) for value in (low, high, middle)), turns]
        return np.repeat(columns[background][:, None], self.n_answers, axis=1)

    def vectors(self) -> FloatArray:
        """(n_vectors, d) features of actions: axes, vectors between two of them, opposite ones, short ones, and 0."""
        assert self.dimension is not None
        axes = np.eye(self.dimension)
        between = (axes + np.roll(axes, 1, axis=0)) / math.sqrt(2) if self.dimension > 1 else axes[:0]
        share = min(1.0, (self.reward_range.width / 2) ** 2)
        turned = share * axes[0] + math.sqrt(1 - share**2) * axes[-1] if self.dimension > 1 else axes[0]
        return np.concatenate([axes, [turned], between, -axes, axes / 2, 0 * axes[:1]])

    def contexts(self, kind: Contexts, n_rounds: int, drawn: bytes) -> FloatArray:
        """(n_rounds, n_actions, d) features of all actions; where they are drawn, each byte stands for one vector."""
        vectors = self.vectors()
        rounds, actions = np.indices((n_rounds, self.n_actions))
        axes = actions % (self.dimension or 1), (actions + rounds) % (self.dimension or 1)
        return np.asarray(vectors[(0 * actions, *axes, _below(len(vectors), drawn, actions.shape))[kind]])

    def with_contexts(self, case: Case, draw: st.DrawFn) -> Case:
        """Adds contexts to the case, and other ones for the record where they are private."""
        n_rounds, kind = len(case.rewards), Contexts(draw(st.integers(0, 3)))
        drawn = _bytes(draw, n_rounds * self.n_actions) if kind is Contexts.DRAWN else _NOT_DRAWN
        features = self.contexts(kind, n_rounds, drawn)
        replaced = None
        if self.private_records and draw(st.booleans()):
            vectors = self.vectors()
            replaced = np.tile(vectors[draw(st.integers(0, len(vectors) - 1))], (self.n_actions, 1))
            if draw(st.booleans()):
                features[case.record] = vectors[0]
        return self._with_covariates(case, features, replaced)

    def _with_covariates(self, case: Case, covariates: NDArray[np.generic], replaced: NDArray[np.generic] | None) -> Case:
        """Adds covariates of all users to the case, and others for the record, unless they are the same."""
        changed = None if replaced is None or np.array_equal(replaced, covariates[case.record]) else as_tuples(replaced)
        return replace(case, covariates=as_tuples(covariates), replaced_covariates=changed, episode=self.episode)

    def outside(self) -> list[Case]:
        """Lists cases in which a record brings contexts of ten times the promised length; none without contexts.

        The contexts are the same on both sides; where they are private, they also take the place of others on D'.
        """
        if self.dimension is None:
            return []
        n_rounds, record = min(self.longest, SHORT), 1
        inside = np.full((n_rounds, self.n_actions, self.dimension), 1 / math.sqrt(self.dimension))
        longer = inside.copy()
        longer[record] *= _TOO_LONG
        low, high = ((end,) * self.n_answers for end in self.inside[:2])
        case = Case((low,) * n_rounds, record, high, 0)
        cases = [self._with_covariates(case, longer, None)]
        return [*cases, self._with_covariates(case, inside, longer[record])] if self.private_records else cases

    def tree(self, walk: Walk, drawn: bytes) -> IntArray:
        """(1 + horizon * n_states * n_actions,) first state of a user of episodes, and next state of each step.

        Args:
          walk: how the user moves.
          drawn: bytes of states, for walks that are drawn.
        """
        assert self.episode is not None
        horizon, n_states, n_actions = self.episode
        if walk is Walk.DRAWN_TREE:
            return _below(n_states, drawn, (1 + self.n_answers,))
        if walk is Walk.DRAWN_PATH:
            return path_tree(_below(n_states, drawn, (horizon + 1,)), n_states, n_actions)
        _, states, actions = np.indices(self.episode)
        after = (states, (states + 1) % n_states, actions % n_states)[walk]
        return np.concatenate([[0], after.ravel()])

    def with_trees(self, case: Case, draw: st.DrawFn) -> Case:
        """Adds trees to the case, and another one for the record where they are private."""
        n_rounds, walk = len(case.rewards), Walk(draw(st.integers(0, 4)))
        size = 1 + self.n_answers
        drawn = _bytes(draw, n_rounds * size) if walk >= Walk.DRAWN_PATH else _NOT_DRAWN
        shifted = (np.roll(np.frombuffer(drawn, np.uint8), -user * size).tobytes() for user in range(n_rounds))
        trees = np.array([self.tree(walk, part) for part in shifted])
        replaced = None
        if self.private_records and draw(st.integers(0, 3)):
            walk = draw(st.sampled_from((Walk.DRAWN_PATH, Walk.STAY, Walk.NEXT_STATE, Walk.BY_ACTION, Walk.DRAWN_TREE)))
            replaced = self.tree(walk, _bytes(draw, size) if walk >= Walk.DRAWN_PATH else _NOT_DRAWN)
            if draw(st.booleans()):
                trees[case.record] = self.tree(Walk.STAY, _NOT_DRAWN)
        return self._with_covariates(case, trees, replaced)

    def cases(self) -> st.SearchStrategy[Case]:
        """Draws cases, the simplest first: short tables of one value, of which one record jumps to the other end."""
        n_answers, inside = self.n_answers, self.inside
        longest = self.longest
        shortest = min(self.n_actions + 2, longest)
        short = st.integers(shortest, min(longest, max(SHORT, shortest)))
        long = st.integers(shortest, longest)
        anywhere = st.sampled_from(self.anywhere)
        every = anywhere.map(lambda value: (value,) * n_answers)
        if self.episode is None:
            replacements = st.one_of(every, st.tuples(*[anywhere] * n_answers))
        else:
            few = st.lists(anywhere, min_size=2, max_size=4)
            replacements = st.one_of(every, few.map(lambda values: tuple(np.resize(values, n_answers).tolist())))

        @st.composite
        def cases(draw: st.DrawFn) -> Case:
            n_rounds = draw(long if draw(st.integers(0, 3)) == 3 else short)
            record = draw(st.integers(0, (n_rounds if draw(st.booleans()) else min(n_rounds, 2 * self.n_actions)) - 1))
            background = Background(min(draw(st.integers(0, 5)), Background.DRAWN))  # drawn ones come twice as often
            table = self.table(background, n_rounds, draw)
            if draw(st.booleans()):
                table[record] = inside[draw(st.integers(0, 3))]
            row, replacement = tuple(table[record].tolist()), draw(replacements)
            if replacement == row:
                replacement = (inside[1] if row[0] < inside[1] else inside[0],) * n_answers
            case = Case(tuple(map(tuple, table.tolist())), record, replacement, draw(st.integers(0, 2**16)))
            if self.episode is not None:
                return self.with_trees(case, draw)
            return case if self.dimension is None else self.with_contexts(case, draw)

        return cases()


def _bytes(draw: st.DrawFn, size: int) -> bytes:
    """Draws `size` bytes; of more than 256, a pattern of 256."""
    few = min(size, _CELLS)
    drawn: bytes = draw(st.binary(min_size=few, max_size=few))
    return drawn


def _below(n: int, drawn: bytes, shape: tuple[int, ...]) -> IntArray:
    """Bytes as numbers below n, of some shape; repeated where there are fewer."""
    return np.resize(np.frombuffer(drawn, dtype=np.uint8), shape).astype(np.int64) % n
