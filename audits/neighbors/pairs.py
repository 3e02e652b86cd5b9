"""Pairs of data sets that differ in one record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Self

import numpy as np

from bandana.algorithms.environments.episodes import EpisodeTable, Table, path_tree
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval

_MOST_STATES, _MOST_NEAR = 6, 48


@dataclass(frozen=True)
class Pair:
    """A data set, its neighbor, and where they differ.

    Attributes:
      data: the data set.
      neighbor: the same but for one row.
      record: that row: the canary's position.
      description: in words, for the report.
    """

    data: Table
    neighbor: Table
    record: int
    description: str

    @property
    def hidden_record(self) -> int:
        """The canary where what it brings differs, contexts or states; else -1.

        Its own actions may differ then too, and no claim hides that.
        """
        mine, theirs = self.data.brought, self.neighbor.brought
        if mine is None or theirs is None or np.array_equal(mine[self.record], theirs[self.record]):
            return -1
        return self.record


def canary_pairs(table: Table, records: Sequence[int], private_records: bool = False) -> tuple[Pair, ...]:
    """The worst pairs for a sum of clipped rewards, at each of the given records.

    The canary's row goes from all-lowest to all-highest: whatever is done there, the reward moves by the whole width of the
    range, which is the sensitivity. A last pair plants a canary far outside the declared range: clipped as promised, it is
    no worse than the highest reward; unclipped, it is visible.

    Where records are private as a whole, what the canary brings may change too: `own_changes` gives what costs most.
    Contexts that change are tried at the first of the records, states at all of them: there the rewards may be public.

    Args:
      table: rewards in its declared range.
      records: canary positions, each in [0, table.n_users).
      private_records: whether a record is what its user brings and the rewards, or the rewards alone; where users bring
        nothing it makes no difference.
    """
    span = table.reward_range
    flat = np.full(table.rewards.shape[1:], span.low)
    changes = own_changes(table) if private_records else []
    pairs = []
    for record in records:
        data = table.replaced(record, flat)
        neighbor = data.replaced(record, np.full(flat.shape, span.high))
        pairs.append(Pair(data, neighbor, record, f"record {record}: every reward {span.low:g} becomes {span.high:g}"))
    for record in records if isinstance(table, EpisodeTable) else records[:1]:
        for change in changes[:2]:
            sides = zip((change.before, change.after), change.of(table), strict=True)
            data, neighbor = (table.replaced(record, np.full(flat.shape, reward), None, own) for reward, own in sides)
            pairs.append(Pair(data, neighbor, record, f"record {record}: {change}"))
    outlier = span.high + 4 * span.width
    record = records[-1]
    data = table.replaced(record, flat)
    wide = Interval(span.low, outlier)
    outside = data.replaced(record, np.full(flat.shape, outlier), wide)
    pairs.append(
        Pair(data, outside, record, f"record {record}: every reward {span.low:g} becomes {outlier:g}, outside {span}")
    )
    return tuple(pairs)


# --- what canaries bring ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Vectors:
    """Contexts of a canary that become others: all of its actions have one vector, so that the vector is what it brings.

    Attributes:
      told: in words.
      data: (d,) on the data set.
      neighbor: (d,) in its neighbor.
      before: its reward to any action on the data set.
      after: the same in its neighbor.
    """

    told: str
    data: tuple[float, ...]
    neighbor: tuple[float, ...]
    before: float
    after: float

    def __str__(self) -> str:
        return self.told

    def of(self, table: Table) -> tuple[FloatArray, FloatArray]:
        """What it brings to the table, and what it brings in the neighbor, each (n_actions, d)."""
        mine, theirs = (np.tile(np.array(vector), (table.n_actions, 1)) for vector in (self.data, self.neighbor))
        return mine, theirs

    def near(self, table: Table) -> list[Self]:
        """Changes that differ in one thing: none, as the worst are known."""
        return []


@dataclass(frozen=True)
class Paths:
    """A trajectory that becomes another one: at each step the canary is in a given state, whatever is done.

    Attributes:
      data: (horizon + 1,) states on the data set.
      neighbor: (horizon + 1,) states in its neighbor.
      before: its reward to any action on the data set.
      after: the same in its neighbor.
    """

    data: tuple[int, ...]
    neighbor: tuple[int, ...]
    before: float
    after: float

    def __str__(self) -> str:
        mine, theirs = (" ".join(str(state) for state in path) for path in (self.data, self.neighbor))
        moved = f" becomes {self.after:g}" if self.after != self.before else ""
        return f"states {mine} become {theirs}, every reward {self.before:g}{moved}"

    def of(self, table: Table) -> tuple[IntArray, IntArray]:
        """What it brings to the table, and what it brings in the neighbor, as `EpisodeTable.brought` has it."""
        assert isinstance(table, EpisodeTable)
        mine, theirs = (path_tree(path, table.n_states, table.n_actions) for path in (self.data, self.neighbor))
        return mine, theirs

    def near(self, table: Table) -> list[Self]:
        """Changes that differ in one state, or in one reward; of many an even selection."""
        assert isinstance(table, EpisodeTable)
        span = table.reward_range
        found = [replace(self, data=path) for path in _one_step_away(self.data, table.n_states)]
        found += [replace(self, neighbor=path) for path in _one_step_away(self.neighbor, table.n_states)]
        found = found[:: -(-len(found) // _MOST_NEAR)]
        ends = product((span.low, span.high), repeat=2)
        return [*(replace(self, before=before, after=after) for before, after in ends), *found]


def _one_step_away(path: tuple[int, ...], n_states: int) -> list[tuple[int, ...]]:
    return [
        (*path[:step], state, *path[step + 1 :])
        for step, state in product(range(len(path)), range(n_states))
        if state != path[step]
    ]


Change = Vectors | Paths
"""What a canary brings, and its rewards, on both sides."""


def own_changes(table: Table) -> list[Change]:
    """What costs most where the whole record of a canary changes, not its rewards alone; none where users bring nothing."""
    match table:
        case ContextTable():
            return [*_turned_vectors(table)]
        case EpisodeTable():
            return [*_other_places(table)]
    return []


def _turned_vectors(table: ContextTable) -> list[Vectors]:
    r"""Contexts that cost most when a canary's become others.

    All actions of the canary have one vector x, so that x is what the record contributes, whichever is chosen. Of the sums
    of x x^T and y x, with y = r - m for rewards r of middle m and half-width Y, the largest change is that of y = -Y, y' = Y
    and <x, x'> = min(1, Y^2) for GOE noise of one scale on both, min(1, Y^2/2) for equal variances (`JointGaussian`); of
    x x^T alone, that of orthogonal vectors. Where the product is 1 the contexts stay. The two lie on either side of (1, 1),
    so that x x^T - x' x'^T is diagonal, which is what noise of equal variances hides least.
    """
    d = table.context_dimension
    if d < 2:
        return []
    span, axes = table.reward_range, np.eye(d)[:2]
    found = [Vectors("every context e_0 becomes e_1", tuple(axes[0]), tuple(axes[1]), span.low, span.low)]
    for share in ((span.width / 2) ** 2, (span.width / 2) ** 2 / 2):
        if share >= 1:
            continue
        half = math.acos(share) / 2
        mine, theirs = (
            np.array([math.cos(turn), math.sin(turn)]) @ axes for turn in (math.pi / 4 - half, math.pi / 4 + half)
        )
        told = f"every context becomes one with product {share:.3g}, every reward {span.low:g} becomes {span.high:g}"
        found.append(Vectors(told, tuple(mine), tuple(theirs), span.low, span.high))
    return found


def _other_places(table: EpisodeTable) -> list[Paths]:
    """A canary that stays in one state for the whole episode, and in another one in the neighbor: of all pairs of states.

    So each of its steps contributes what one state and the policy's action there give, with the value of a state that is
    known to come. Which states are worst depends on the algorithm's model: of more than six, six evenly spaced are paired,
    and the search for the worst pair goes on from there, state by state. Rewards move by the whole range, or stay highest:
    a target that enters with opposite features moves most where it is large on both sides.
    """
    span, length = table.reward_range, table.episode_length + 1
    shown = np.unique(np.linspace(0, table.n_states - 1, min(table.n_states, _MOST_STATES)).round().astype(int)).tolist()
    apart = sorted(combinations(shown, 2), key=lambda pair: pair[0] - pair[1])
    return [
        Paths((mine,) * length, (theirs,) * length, before, span.high)
        for mine, theirs in apart
        for before in (span.low, span.high)
    ]


def actions_differ(first: ActionLog, second: ActionLog, besides: IntArray | int = -1) -> np.ndarray:
    """(n_reps,) whether two runs played different arms, or held them for different times, anywhere.

    Args:
      first: of one run.
      second: of the other.
      besides: a record whose own actions do not count, for all replicates or (n_reps,) one each; -1 for none. Joint privacy
        hides a user's contexts and states from the others, not from the own actions.
    """
    differ = np.zeros(len(first.actions[0]), dtype=bool)
    if len(first.actions) != len(second.actions):
        common = min(len(first.actions), len(second.actions))
        longer = first if len(first.actions) > common else second
        for n_records in longer.n_records[common:]:
            differ |= n_records > 0
    for user, mine, theirs, n_mine, n_theirs in zip(
        first.user, first.actions, second.actions, first.n_records, second.n_records, strict=False
    ):
        differ |= (n_mine != n_theirs) | ((mine != theirs) & (n_mine > 0) & (user != besides))
    return differ
