"""Pairs of data sets that differ in one record, or in all records of one user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bandana.algorithms.environments.data_sets import Change
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.protocol import IntArray
from bandana.audits.neighbors.neighbor import Changed, Context, Given, Neighbor

_UNNAMED = Given("")


@dataclass(frozen=True)
class Pair:
    """A data set, its neighbor, and where they differ.

    Attributes:
      data: the data set.
      neighbor: the same but for one row.
      record: that row: the canary's position; of a user with several records the first one.
      difference: what a report shows of the pair.
      others: the user's other records, increasing, which differ too; their covariates do not.
    """

    data: Table
    neighbor: Table
    record: int
    difference: Neighbor = _UNNAMED
    others: tuple[int, ...] = ()

    @classmethod
    def of(cls, table: Table, record: int, change: Change, context: Context | None = None) -> Pair:
        """The table, all of whose other records are those of the context, with one record that changes; and the neighbor."""
        return cls.of_user(table, (record,), change, context)

    @classmethod
    def of_user(cls, table: Table, records: Sequence[int], change: Change, context: Context | None = None) -> Pair:
        """The table with all records of one user that change, and the neighbor; the change is one of rewards."""
        first, *others = records
        data, neighbor = table.pair(first, change)
        for record in others:
            data, neighbor = data.pair(record, change)[0], neighbor.pair(record, change)[1]
        context = context or Context(table.reward_range.low, table.reward_range.high)
        return cls(data, neighbor, first, Changed(tuple(records), change, context), tuple(others))

    @property
    def description(self) -> str:
        """The difference in words."""
        return str(self.difference)

    @property
    def hidden_record(self) -> int:
        """The canary where its covariates differ, contexts or states; else -1.

        Its own actions may differ then too, and no claim hides that.
        """
        return self.record if self.data.moved(self.neighbor)[self.record] else -1


def canary_pairs(table: Table, records: Sequence[int], private_records: bool = False) -> tuple[Pair, ...]:
    """The least favorable pairs for a sum of clipped rewards, at each of the given records.

    The canary's row goes from all-lowest to all-highest: whatever is done there, the reward moves by the whole width of the
    range, which is the sensitivity. A last pair plants a canary far outside the declared range: clipped as promised, it is
    no worse than the highest reward; unclipped, it is visible.

    Where records are private as a whole, the canary's covariates may change too: `DataSet.changes` gives what costs most.
    They change at the first of the records, or at all of them where the rewards may be public.

    Args:
      table: rewards in its declared range.
      records: canary positions, each in [0, table.n_users).
      private_records: whether a record is covariates and rewards, or the rewards alone.
    """
    span = table.reward_range
    changes = table.changes()[:2] if private_records else []
    pairs = [Pair.of(table, record, Change(span.low, span.high)) for record in records]
    for record in records if table.rewards_may_be_public else records[:1]:
        pairs += [Pair.of(table, record, change) for change in changes]
    outlier = Change(span.low, span.high + 4 * span.width)
    return (*pairs, Pair.of(table, records[-1], outlier))


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
