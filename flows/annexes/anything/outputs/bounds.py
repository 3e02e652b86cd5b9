"""The bound of an audit from outside: scores are learned on some runs, one is chosen on others, and bounded on the rest.

It holds at its level whatever was tried, since nothing is chosen on the runs that it is taken from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import chdtrc

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.ties import first_largest
from bandana.audits.bounds import methods
from bandana.audits.bounds.methods import bounds_on, method_of
from bandana.audits.claims import Quantity
from bandana.audits.neighbors.neighbor import Neighbor
from bandana.audits.outcome import StatedBound, View
from bandana.audits.replays.measure import rounded
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject

LEAST = 100
"""Scores of each side, the least that a bound can be taken from."""
WARY = 0.1
"""Share of the level at which a score promises, where many compete: the best of them is often the luckiest."""
SEEN = 20
"""Occurrences among all runs of one side without which an event is not learned."""
_DEPENDENT = 1e-9
_CORRELATED = 6.5
"""Standard deviations by which one output may resemble the next; exceeded by chance with probability below 1e-10."""


@dataclass(frozen=True)
class Contender:
    """A score with a method that bounds it, and the bound that they promise.

    Attributes:
      name: of the score, for the report.
      scorer: runs to (n,) scores, larger where the neighbor is likelier.
      method: name of the bound.
      parameters: of the method.
      promise: bound from runs that the score was not learned from.
    """

    name: str
    scorer: Callable[[Any], FloatArray]
    method: str
    parameters: dict[str, float]
    promise: float

    def state(
        self, view: View, pair: Neighbor, quantity: Quantity, level: float, scores: tuple[FloatArray, FloatArray], key: str
    ) -> StatedBound:
        """The bound from scores of fresh runs; `key` is their name in the evidence."""
        lower = methods.bound(self.method, *scores, level, **self.parameters)
        return StatedBound(view, self.name, pair, quantity, self.method, self.parameters, level, lower, key)


def most_promising(contenders: Sequence[Contender]) -> Contender:
    """The contender that promises most, the first of equals."""
    return contenders[first_largest(np.array([contender.promise for contender in contenders]))]


def promised(data: FloatArray, neighbor: FloatArray, quantity: Quantity, level: float, seed: int) -> float:
    """The sharpest bound from the scores of both sides."""
    method, parameters = method_of(quantity, seed, is_learned=True)
    return methods.bound(method, rounded(data), rounded(neighbor), level, **parameters)


@lru_cache(maxsize=256)
def reach_of(quantity: Quantity, seed: int, level: float, n: int, share: float = 1.0) -> float:
    """The largest bound from n outputs a side of which a share of the neighbor's could not come from the data set."""
    telltale = np.zeros(n)
    telltale[np.linspace(0, n - 1, round(share * n)).astype(np.int64)] = np.inf  # spread over all parts
    data = np.full(n, -np.inf) if share == 1 else np.zeros(n)
    return max(methods.bound(name, data, telltale, level, **parameters) for name, parameters in bounds_on(quantity, seed))


def rarest_event(quantity: Quantity, limit: float, seed: int, level: float, n_runs: int, n_bound: int) -> float | None:
    """The probability of the rarest event that tells one side for sure and refutes the claim; None if none does.

    Args:
      quantity: of the claim.
      limit: what it allows.
      seed: of the auditor's coins.
      level: of the bound.
      n_runs: on each side, those that teach included.
      n_bound: on each side, those that the bound is taken from.
    """
    shares = np.geomspace(SEEN / n_runs, 1.0, 50)
    low, high = 0, len(shares)
    while low < high:  # what a larger share refutes, a smaller one may not
        middle = (low + high) // 2
        if reach_of(quantity, seed, level, n_bound, float(shares[middle])) > limit:
            high = middle
        else:
            low = middle + 1
    return float(shares[low]) if low < len(shares) else None


def check_order(scores: FloatArray) -> None:
    """Refuses runs of which one resembles the next."""
    rank = np.argsort(np.argsort(scores, kind="stable"), kind="stable").astype(float)
    values, where = np.unique(scores, return_inverse=True)
    if len(values) < 2:
        return
    middle = np.bincount(where, rank) / np.bincount(where)  # ties share a rank
    rank = middle[where] - middle[where].mean()
    spread = float(rank @ rank)
    resemblance = float(rank[1:] @ rank[:-1]) / spread * math.sqrt(len(rank)) if spread > 0 else 0.0
    if abs(resemblance) > _CORRELATED:
        raise BrokenSubject(
            f"its runs are not independent: an output resembles the one before it (correlation "
            f"{resemblance / math.sqrt(len(rank)):.2g} over {len(rank)} runs); draw fresh noise in each run, and keep "
            "nothing between calls"
        )


def check_calls(scores: FloatArray, block: IntArray) -> None:
    """Refuses replays of one call that resemble each other more than those of different calls, p below 1e-9."""
    finite = np.where(np.isfinite(scores), scores, np.sign(scores) * 1e6)
    names, which = np.unique(block, return_inverse=True)
    sizes = np.bincount(which)
    variance = float(finite.var())
    if len(names) < 2 or variance <= 0:
        return
    means = np.bincount(which, weights=finite) / sizes
    between = float((sizes * (means - finite.mean()) ** 2).sum() / variance)
    if float(chdtrc(len(names) - 1, between)) < _DEPENDENT:
        raise BrokenSubject(
            "the replicates of one call resemble each other more than those of other calls: they share noise, so that they "
            "are not independent replays; draw noise of shape (n_reps, ...)"
        )
