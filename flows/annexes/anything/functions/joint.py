"""Rewards that no action shows alone: two later actions together tell one, or the parity of many does.

Such actions are shares of a secret: each by itself is a fair coin, whatever the reward was. Of two actions all pairs are
counted. A parity that holds in every run, however many actions and known rewards it takes, is found by elimination over
GF(2); one that only mostly holds is looked for among pairs alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.flows.annexes.anything.functions.drawn import Drawn
from bandana.flows.annexes.anything.outputs.shares import eliminated

_MOST_RUNS, _MOST_ARMS, _MOST_BITS, _SURE = 4096, 4, 800, 40
_WINDOW, _MOST_ROUNDS = 48, 96
"""Rounds after a record among which pairs are counted on drawn rewards, and on a pair of data sets."""
_SEEN = 8.0
"""Standard deviations from which a pair of actions is a suspect."""


@dataclass(frozen=True)
class Together:
    """Log odds of two actions together.

    Attributes:
      rounds: those of the two actions.
      odds: (n_arms, n_arms) larger where the neighbor is likelier.
    """

    rounds: tuple[int, int]
    odds: FloatArray

    @classmethod
    def learn(cls, data: IntArray, neighbor: IntArray, n_arms: int) -> Together:
        """Counts the pair whose dependence differs most between two sides, each (n, n_rounds) actions."""
        near = slice(0, _MOST_ROUNDS)
        sides = [side[:_MOST_RUNS, near] for side in (data, neighbor)]
        signs = np.repeat([-1.0, 1.0], [len(side) for side in sides])
        return cls.counted(_most_together(np.concatenate(sides), signs, n_arms)[1], data, neighbor, n_arms)

    @classmethod
    def counted(cls, rounds: tuple[int, int], data: IntArray, neighbor: IntArray, n_arms: int) -> Together:
        """Counts one pair of rounds on both sides."""
        cells = [
            np.bincount(side[:, rounds[0]] * n_arms + side[:, rounds[1]], minlength=n_arms**2) for side in (data, neighbor)
        ]
        shares = [np.log((cell + 0.5) / (len(side) + 1)) for cell, side in zip(cells, (data, neighbor), strict=True)]
        return cls(rounds, (shares[1] - shares[0]).reshape(n_arms, n_arms))

    def score(self, actions: IntArray) -> FloatArray:
        """(n,) log odds."""
        return np.asarray(self.odds[actions[:, self.rounds[0]], actions[:, self.rounds[1]]])

    def of(self, runs: Drawn) -> FloatArray:
        """(n,) the same of drawn runs."""
        return self.score(runs.actions)


@dataclass(frozen=True)
class Parity:
    """The parity of bits of actions, and of rewards of other records, that is a record's reward.

    Attributes:
      places: (k, 2) round of an action, and which of its bits.
      others: records.
      is_flipped: whether it is the contrary.
    """

    places: IntArray
    others: IntArray
    is_flipped: bool

    def of(self, runs: Drawn) -> FloatArray:
        """(n,) 1 where the reward is the upper end, -1 where it is the lower; 0 where another reward is neither."""
        codes = runs.codes[:, self.others].astype(np.int64)
        bits = (runs.actions[:, self.places[:, 0]] >> self.places[:, 1]) & 1
        is_high = (bits.sum(axis=1) + codes.sum(axis=1) + self.is_flipped) % 2
        return np.where((codes > 1).any(axis=1), 0.0, 2.0 * is_high - 1)


class Joint(NamedTuple):
    """A record with the score that shows it.

    Attributes:
      record: the record.
      strength: in standard deviations; infinite where the parity holds in all runs.
      score: of either kind.
    """

    record: int
    strength: float
    score: Together | Parity

    @property
    def words(self) -> str:
        """The attack, for a report."""
        return "two actions together" if isinstance(self.score, Together) else "parity of actions and of other rewards"


def find_joint(ends: Drawn) -> list[Joint]:
    """The record whose reward an exact parity shows, and the one that two later actions show best; none of weak ones.

    Args:
      ends: runs whose rewards are the ends of the range.
    """
    joint = [] if (exact := _exact(ends)) is None else [exact]
    few, n_rounds = ends[:_MOST_RUNS], ends.actions.shape[1]
    if len(few) < 16 or ends.n_arms > _MOST_ARMS:
        return joint
    signs = 2.0 * few.codes - 1
    best = max(
        ((*_most_together(few.actions[:, record + 1 : record + 1 + _WINDOW], signs[:, record], ends.n_arms), record)
         for record in range(n_rounds - 2)),
        key=lambda one: round(one[0], 6), default=None,
    )  # fmt: skip
    if best is not None and best[0] > _SEEN:
        strength, (first, second), record = best
        rounds = (record + 1 + first, record + 1 + second)
        low, high = (ends.actions[ends.codes[:, record] == code] for code in (0, 1))
        joint.append(Joint(record, strength, Together.counted(rounds, low, high, ends.n_arms)))
    return joint


def _most_together(actions: IntArray, signs: FloatArray, n_arms: int) -> tuple[float, tuple[int, int]]:
    """Standard deviations by which the dependence of two actions goes with the sign; and the two rounds."""
    n, n_rounds = actions.shape
    if n_rounds < 2:
        return 0.0, (0, 0)
    signs = signs - signs.mean()
    happens = (actions[:, :, None] == np.arange(n_arms)).reshape(n, -1).astype(np.float32)
    mean, along = happens.mean(axis=0), happens.T @ signs.astype(np.float32) / n
    together = happens.T @ (happens * signs[:, None].astype(np.float32)) / n
    together -= mean[:, None] * along + along[:, None] * mean
    cells = np.abs(together).reshape(n_rounds, n_arms, n_rounds, n_arms).sum(axis=(1, 3))
    cells[np.tril_indices(n_rounds)] = 0.0
    place = int(np.argmax(cells))
    return float(cells.flat[place]) * np.sqrt(n) / n_arms, (place // n_rounds, place % n_rounds)


def _exact(ends: Drawn) -> Joint | None:
    """A record whose reward is a parity in all runs; that of fewest other rewards, then of fewest actions."""
    n_rounds, n_bits = ends.actions.shape[1], max(1, (ends.n_arms - 1).bit_length())
    places = np.array([(time, bit) for time in range(n_rounds) for bit in range(n_bits)])
    n_known = 1 + len(places)
    if n_known + n_rounds > _MOST_BITS or len(ends) < n_known + n_rounds + _SURE:
        return None
    few = ends[: n_known + n_rounds + _SURE]
    bits = (few.actions[:, places[:, 0]] >> places[:, 1]) & 1
    system, pivots = eliminated(np.column_stack([np.ones(len(bits), dtype=bool), bits.astype(bool), few.codes.astype(bool)]))
    columns, joint = np.array(pivots), []
    for record in sorted(set(range(n_rounds)) - {column - n_known for column in pivots}):
        used = columns[system[: len(pivots), n_known + record]]
        actions, others = used[(used > 0) & (used < n_known)] - 1, used[used >= n_known] - n_known
        joint.append((len(others), len(actions), record, Parity(places[actions], others, bool((used == 0).any()))))
    if not joint:
        return None
    _, _, record, parity = min(joint, key=lambda one: one[:3])
    return Joint(record, np.inf, parity)
