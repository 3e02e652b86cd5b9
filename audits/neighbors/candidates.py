"""Candidate pairs: where a record changes, and to what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bandana.algorithms.environments.data_sets import Change
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.protocol import FloatArray
from bandana.audits.neighbors.neighbor import Changed, Context, Others
from bandana.audits.neighbors.pairs import Pair
from bandana.privacy_core import Interval

_BEYOND = 4.0


@dataclass(frozen=True)
class Candidate:
    """A pair to try.

    Attributes:
      record: the canary's position.
      change: what the canary's record becomes.
      context: all other records, a key of the tables that are tried with it.
    """

    record: int
    change: Change
    context: Context

    def __str__(self) -> str:
        return str(Changed((self.record,), self.change, self.context))

    def pair(self, table: Table) -> Pair:
        """The two data sets; `table` is the context, whose range the canary's rewards may leave."""
        return Pair.of(table, self.record, self.change, self.context)


def even_rewards(shape: tuple[int, ...], reward_range: Interval, seed: int) -> dict[Context, FloatArray]:
    """Context -> rewards: all alike at one end of the range or by turns at both, and fair coins.

    Args:
      shape: (n_users, ..., n_actions)
      reward_range: declared range of a reward.
      seed: of the coins.
    """
    low, high = reward_range.low, reward_range.high
    turns = np.where(np.arange(shape[0]) % 2, high, low).reshape(-1, *[1] * (len(shape) - 1))
    coins = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(1,)))).integers(0, 2, shape)
    return {
        Context(low, high, Others.LOWEST): np.full(shape, low),
        Context(low, high, Others.HIGHEST): np.full(shape, high),
        Context(low, high, Others.TURNS): np.broadcast_to(turns, shape),
        Context(low, high, Others.COINS): np.array([low, high])[coins],
    }


def early_probes(rounds: int, n_arms: int) -> tuple[int, ...]:
    """The first rounds, twice, four times, ... as late, half a step later each, and the first that is no first pull."""
    late = [step * 2**power for power in range(24) for step in (2, 3)]
    return tuple(sorted({record for record in (0, 1, *late, n_arms) if record < rounds // 2 or record < min(2, rounds)}))


def candidate_pairs(
    rounds: int, n_arms: int, reward_range: Interval, probes: Sequence[int] = (), seed: int = 0
) -> list[Pair]:
    """Pairs worth trying: a canary from lowest to highest at each of the probes, in data that leave every decision open.

    Args:
      rounds: number of records.
      n_arms: number of actions.
      reward_range: declared range of a reward.
      probes: canary positions; none: see `early_probes`.
      seed: of the context that is drawn.
    """
    change = Change(reward_range.low, reward_range.high)
    return [
        Candidate(record, change, context).pair(RewardTable(rewards, reward_range))
        for context, rewards in even_rewards((rounds, n_arms), reward_range, seed).items()
        for record in probes or early_probes(rounds, n_arms)
    ]


def reward_changes(span: Interval) -> tuple[Change, ...]:
    """Changes of rewards alone: the widest change first, then outside the range on either side, then half of it."""
    low, high, middle = span.low, span.high, (span.low + span.high) / 2
    above, below = high + _BEYOND * span.width, low - _BEYOND * span.width
    return (
        Change(low, high), Change(low, above), Change(high, below),
        Change(high, low), Change(low, middle), Change(middle, high),
    )  # fmt: skip
