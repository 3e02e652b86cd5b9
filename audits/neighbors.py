"""Pairs of data sets that differ in one record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from algorithms.environments.tables import ContextTable, RewardTable
from algorithms.protocol import FloatArray
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

    @property
    def hidden_record(self) -> int:
        """The canary where its contexts differ: its own action may differ then too, and no claim hides that; else -1."""
        if not isinstance(self.data, ContextTable) or not isinstance(self.neighbor, ContextTable):
            return -1
        mine, theirs = (table.features[self.record] for table in (self.data, self.neighbor))
        return -1 if np.array_equal(mine, theirs) else self.record


def canary_pairs(table: RewardTable, records: Sequence[int], private_contexts: bool = False) -> tuple[Pair, ...]:
    """The worst pairs for a sum of clipped rewards, at each of the given records.

    The canary's row goes from all-lowest to all-highest: whichever arm is played there, the reward moves by the whole
    width of the range, which is the sensitivity. A last pair plants a canary far outside the declared range: clipped as
    promised, it is no worse than the highest reward; unclipped, it is visible.

    Where contexts are private the canary's may change too: `canary_contexts` gives those that cost most, tried at the first
    of the records.

    Args:
      table: rewards in its declared range.
      records: canary positions, each in [0, table.n_users).
      private_contexts: whether a record is contexts and rewards; without contexts it makes no difference.
    """
    span = table.reward_range
    flat = np.full(table.n_actions, span.low)
    pairs = []
    for record in records:
        data = table.replaced(record, flat)
        neighbor = data.replaced(record, np.full(table.n_actions, span.high))
        pairs.append(Pair(data, neighbor, record, f"record {record}: every reward {span.low:g} becomes {span.high:g}"))
    if private_contexts and isinstance(table, ContextTable):
        record = records[0]
        for told, canary in list(canary_contexts(table).items())[:2]:
            data = table.replaced(record, flat, features=canary.data)
            after = np.full(table.n_actions, span.high if canary.moves_reward else span.low)
            pairs.append(
                Pair(data, table.replaced(record, after, features=canary.neighbor), record, f"record {record}: {told}")
            )
    outlier = span.high + 4 * span.width
    record = records[-1]
    data = table.replaced(record, flat)
    wide = Interval(span.low, outlier)
    outside = data.replaced(record, np.full(table.n_actions, outlier), wide)
    pairs.append(
        Pair(data, outside, record, f"record {record}: every reward {span.low:g} becomes {outlier:g}, outside {span}")
    )
    return tuple(pairs)


class CanaryContexts(NamedTuple):
    """What the contexts of a canary become."""

    data: FloatArray
    """(n_actions, d) on the data set."""
    neighbor: FloatArray
    """(n_actions, d) in its neighbor."""
    moves_reward: bool
    """Whether the rewards go from lowest to highest too."""


def canary_contexts(table: ContextTable) -> dict[str, CanaryContexts]:
    r"""Contexts that cost most when a canary's become others, in words -> what they are.

    All actions of the canary have one vector x, so that x is what the record contributes, whichever is chosen. Of the sums
    of x x^T and y x, with y = r - m for rewards r of middle m and half-width Y, the largest change is that of y = -Y, y' = Y
    and <x, x'> = min(1, Y^2) for GOE noise of one scale on both, min(1, Y^2/2) for equal variances (`JointGaussian`); of
    x x^T alone, that of orthogonal vectors. Where the product is 1 the contexts stay. The two lie on either side of (1, 1),
    so that x x^T - x' x'^T is diagonal, which is what noise of equal variances hides least.
    """
    n_actions, d = table.features.shape[1:]
    if d < 2:
        return {}
    span = table.reward_range
    every, axes = np.ones((n_actions, 1)), np.eye(d)[:2]
    found = {"every context e_0 becomes e_1": CanaryContexts(every * axes[0], every * axes[1], False)}
    for share in ((span.width / 2) ** 2, (span.width / 2) ** 2 / 2):
        if share >= 1:
            continue
        half = math.acos(share) / 2
        mine, theirs = (
            np.array([math.cos(turn), math.sin(turn)]) @ axes for turn in (math.pi / 4 - half, math.pi / 4 + half)
        )
        told = f"every context becomes one with product {share:.3g}, every reward {span.low:g} becomes {span.high:g}"
        found[told] = CanaryContexts(every * mine, every * theirs, True)
    return found
