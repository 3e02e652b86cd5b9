"""The budget as a filter: how much each record has spent, and whether a release may still be made.

A filter must be valid although noise, spans and the time to stop are chosen after earlier outputs. Three kinds of
budget are, each with a cost that adds up:

  GDP          sum of mu_i^2 <= mu^2       Smith and Thakurta (2022), Fully adaptive composition for Gaussian DP
  RDP          sum of D_alpha,i <= epsilon, at one fixed order
                                           Feldman and Zrnic (2021), Individual privacy accounting via a Renyi filter
  zCDP         sum of rho_i <= rho         the same, at every order
  pure DP      sum of epsilon_i <= epsilon Rogers, Roth, Ullman, Vadhan (2016), Privacy odometers and filters

A (epsilon, delta) budget is kept as the largest mu that it allows. A filter on the privacy loss distribution, or on
general trade-off functions, is not valid (arXiv 2602.06756), so none is offered: report by it afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import deepcopy

import numpy as np

from bandana.privacy_core.accounting.book import Book
from bandana.privacy_core.accounting.events import (
    BoundedEvent,
    BoundedRangeEvent,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NearlyGaussianEvent,
    PureEvent,
    ResponseEvent,
)
from bandana.privacy_core.accounting.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP, RenyiDP
from bandana.privacy_core.arrays import IntArray

_ROUNDING = 1 + 1e-9


def filterable(budget: Guarantee) -> Guarantee:
    """The budget in the form in which it is counted.

    Raises:
      ValueError: no filter counts a budget of this kind.
    """
    if isinstance(budget, ApproxDP):
        return GaussianDP.from_epsilon_delta(budget.epsilon, budget.delta, relation=budget.relation, trust=budget.trust)
    if isinstance(budget, GaussianDP | RenyiDP | ZCDP | PureDP):
        return budget
    raise ValueError(f"budget must be GDP, RDP, zCDP, pure or (epsilon, delta)-DP, got {budget}")


def limit_of(budget: Guarantee) -> float:
    """Limit on the sum of costs."""
    match budget:
        case GaussianDP(mu):
            return mu**2
        case ZCDP(rho):
            return rho
        case RenyiDP(_, epsilon) | PureDP(epsilon):
            return epsilon
    raise ValueError(f"no filter counts {budget}")


def gdp_of(event: Event) -> float:
    """The mu-GDP that one event implies; infinite if none does.

    For Laplace noise it is what pure DP implies, for a selection its own.
    """
    match event:
        case GaussianEvent() | ResponseEvent() | PureEvent() | BoundedRangeEvent():
            return event.mu
        case LaplaceEvent():
            return PureDP(event.epsilon).gdp().mu
    return math.inf


def cost_of(event: Event, budget: Guarantee) -> float:
    """Cost that one event adds.

    Under a GDP budget it is the square of `gdp_of`: for Laplace noise of epsilon = 1, 1.23 squared.

    Raises:
      ValueError: the event has no finite cost in that currency.
    """
    is_bounded = isinstance(event, BoundedEvent)
    if isinstance(event, NearlyGaussianEvent):
        raise ValueError(f"a budget of {budget} cannot count {event}, whose slack adds to delta alone; leave the budget out")
    match budget:
        case GaussianDP() if isinstance(event, GaussianEvent):
            return 2 * event.rho
        case GaussianDP() if is_bounded:
            return gdp_of(event) ** 2
        case ZCDP() if is_bounded or isinstance(event, GaussianEvent | ConcentratedEvent):
            return event.rho
        case RenyiDP(alpha) if is_bounded or isinstance(event, GaussianEvent | ConcentratedEvent):
            return event.rdp(alpha)
        case PureDP() if isinstance(event, BoundedEvent):
            return event.epsilon
    raise ValueError(f"a budget of {budget} cannot count {event}; state the budget as zCDP or RDP, or change the mechanism")


def spent_as(total: float, budget: Guarantee) -> str:
    """A sum of costs in the budget's own words."""
    match budget:
        case GaussianDP():
            return str(GaussianDP(total**0.5))
        case ZCDP():
            return str(ZCDP(total))
        case RenyiDP(alpha):
            return str(RenyiDP(alpha, total))
    return str(PureDP(total))


class _Level:
    """A step function of the record: what it has spent."""

    __slots__ = ("_edges", "_levels", "_n")

    def __init__(self) -> None:
        self._edges = np.zeros(16, dtype=np.int64)
        self._levels = np.zeros(16)
        self._n = 1

    def add(self, start: int, stop: int, amount: float) -> None:
        if start < stop:
            first, last = self._split(start), self._split(stop)  # before `_levels` is read: a split may replace it
            self._levels[first:last] += amount

    def largest(self, start: int, stop: int) -> float:
        if start >= stop:
            return 0.0
        edges = self._edges[: self._n]
        first = int(edges.searchsorted(start, "right")) - 1
        return float(self._levels[first : int(edges.searchsorted(stop, "left"))].max())

    def _split(self, record: int) -> int:
        n = self._n
        place = int(self._edges[:n].searchsorted(record))
        if place < n and self._edges[place] == record:
            return place
        if n == len(self._edges):
            self._edges, self._levels = (np.concatenate([a, np.zeros_like(a)]) for a in (self._edges, self._levels))
        self._edges[place + 1 : n + 1] = self._edges[place:n]
        self._levels[place + 1 : n + 1] = self._levels[place:n]
        self._edges[place], self._levels[place] = record, self._levels[place - 1]
        self._n = n + 1
        return place


class Spending:
    """Expenses of every record of every replicate from a budget.

    One step function serves all replicates for as long as they are charged alike.
    """

    def __init__(self, budget: Guarantee, book: Book) -> None:
        self._n_reps = book.n_reps
        self._levels = [_Level()]
        for event, rep, start, stop, *_ in book:
            reps = None if rep < 0 else np.array([rep])
            first, last = (start, stop) if reps is None else (np.array([start]), np.array([stop]))
            self.add(cost_of(event, budget), first, last, reps)

    def largest(self, start: IntArray | int, stop: IntArray | int, reps: IntArray | None) -> float:
        """The most that a record in any of the spans has spent; see `Book.add` for the arguments."""
        rows = self._rows(start, stop, reps)
        if len(self._levels) == 1:
            return max((self._levels[0].largest(a, b) for a, b in {(a, b) for _, a, b in rows}), default=0.0)
        return max((self._levels[rep].largest(a, b) for rep, a, b in rows), default=0.0)

    def add(self, cost: float, start: IntArray | int, stop: IntArray | int, reps: IntArray | None) -> None:
        """Adds a cost to the records of the spans."""
        if len(self._levels) == 1 and self._n_reps > 1 and not isinstance(start, int):
            self._levels = [deepcopy(self._levels[0]) for _ in range(self._n_reps)]
        for rep, a, b in self._rows(start, stop, reps):
            self._levels[rep].add(a, b, cost)

    def _rows(self, start: IntArray | int, stop: IntArray | int, reps: IntArray | None) -> Iterable[tuple[int, int, int]]:
        """(which step function, start, stop)."""
        if isinstance(start, int):
            return [(level, start, int(stop)) for level in range(len(self._levels))]
        owners = range(self._n_reps) if reps is None else reps.tolist()
        return zip(owners, start.tolist(), np.asarray(stop).tolist(), strict=True)


def exceeds(total: float, budget: Guarantee) -> bool:
    """True if a sum of costs is over the budget, beyond rounding."""
    return total > limit_of(budget) * _ROUNDING
