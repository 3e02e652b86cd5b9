"""Pairs of data sets that differ in one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from algorithms.environments.tables import RewardTable
from privacy_core import Interval


@dataclass(frozen=True)
class Pair:
    """A data set, its neighbor, and where they differ.

    Attributes:
      data: the data set.
      neighbor: the same but for one row.
      record: that row: the canary's position.
      description: in words, for the report.
    """

    data: RewardTable
    neighbor: RewardTable
    record: int
    description: str


def canary_pairs(table: RewardTable, records: Sequence[int]) -> tuple[Pair, ...]:
    """The worst pairs for a sum of clipped rewards, at each of the given records.

    The canary's row goes from all-lowest to all-highest: whichever arm is played there, the reward moves by the whole
    width of the range, which is the sensitivity. A last pair plants a canary far outside the declared range: clipped as
    promised, it is no worse than the highest reward; unclipped, it is visible.

    Args:
      table: rewards in its declared range.
      records: canary positions, each in [0, table.n_users).
    """
    span = table.reward_range
    flat = np.full(table.n_actions, span.low)
    pairs = []
    for record in records:
        data = table.replaced(record, flat)
        neighbor = data.replaced(record, np.full(table.n_actions, span.high))
        pairs.append(Pair(data, neighbor, record, f"record {record}: every reward {span.low:g} becomes {span.high:g}"))
    outlier = span.high + 4 * span.width
    record = records[-1]
    data = table.replaced(record, flat)
    wide = Interval(span.low, outlier)
    outside = data.replaced(record, np.full(table.n_actions, outlier), wide)
    pairs.append(
        Pair(data, outside, record, f"record {record}: every reward {span.low:g} becomes {outlier:g}, outside {span}")
    )
    return tuple(pairs)
