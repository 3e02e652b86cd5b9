r"""Number of records of a run that one user may have, and what the worst such user pays.

Let release i have cost b_i (its event on one record) and span S_i, and let a user own the records R. Replacing all of them
is k_i = |R and S_i| replacements inside the span, so by the triangle inequality the exact value moves by k_i times the
sensitivity: a Gaussian event becomes k_i b_i, and the transcript is mu-GDP with

    mu^2 = sum_i (k_i b_i)^2,

by the theorem of the ledger (`docs/privacy.md`), whose shifts c_i may be any functions of earlier outputs. It is no sqrt(m):
m records in one span cost m b, records in disjoint spans sqrt(m) b. The rows of one sequence of carried rows are one vector,
so that its records add up before they are squared (`bandana.privacy_core.accounting.returning`). Events of pure DP add up to
sum_i k_i epsilon_i; a randomized response pays once however many of its records change.

The worst set R is found exactly where spans are nested or disjoint, as those of phases, trees and sequences are, and records
may lie anywhere: a span's best count of records is a maximum over how its sub-spans share them. A declared separation bounds
how many records a span can hold; across neighboring sub-spans it is not enforced: the answer is an upper bound there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bandana.privacy_core.arrays import FloatArray
from bandana.privacy_core.checks import at_least


@dataclass(frozen=True, slots=True)
class Participation:
    """Declaration of which records of a run may be one user's.

    Attributes:
      most: records of one user, at most.
      separation: any two of them are at least so many records apart; 1: they may follow each other.
    """

    most: int
    separation: int = 1

    def __post_init__(self) -> None:
        at_least("most", self.most, 1)
        at_least("separation", self.separation, 1)

    def within(self, n_records: int) -> int:
        """The most records that one user can have among so many consecutive ones."""
        return min(self.most, 1 + (n_records - 1) // self.separation) if n_records > 0 else 0

    def steps_apart(self, longest: int) -> int:
        """Steps between two of a user's records, at least, where a step holds up to `longest` consecutive records.

        Two records in the steps s <= t are less than (t - s + 1) longest apart.
        """
        return max(0, -(-(self.separation + 1) // longest) - 1)

    @classmethod
    def of(cls, owners: Sequence[object]) -> Participation:
        """The one that describes whose each record is.

        Args:
          owners: one name or number a record; at least one.
        """
        last: dict[object, int] = {}
        counts: dict[object, int] = {}
        nearest = len(owners)
        for record, owner in enumerate(owners):
            if owner in last:
                nearest = min(nearest, record - last[owner])
            last[owner], counts[owner] = record, counts.get(owner, 0) + 1
        most = max(counts.values(), default=0)
        return cls(at_least("records of one user", most, 1), nearest if most > 1 else 1)

    def __str__(self) -> str:
        if self.most == 1:
            return "1 record a user"
        apart = f", {self.separation} or more records apart" if self.separation > 1 else ""
        return f"up to {self.most} records a user{apart}"


class Paid(NamedTuple):
    """Cost of k records of a user together in one span, k = 0, 1, ..., most."""

    start: int
    stop: int
    costs: tuple[float, ...]
    """(most + 1,), nondecreasing, of one currency that adds up over spans."""


@dataclass
class _Span:
    start: int
    stop: int
    costs: FloatArray
    parts: dict[int, int] = field(default_factory=dict)
    """Table of a sub-span -> how many sub-spans have it."""


class _Tables:
    """Tables of most cost by number of records, each kept once: subtrees that look alike are solved once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._numbers: dict[bytes, int] = {}
        self._tables: list[FloatArray] = []
        self._solved: dict[tuple[object, ...], int] = {}

    def number(self, table: FloatArray) -> int:
        key = table.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self._tables)
            self._tables.append(table)
        return self._numbers[key]

    def of(self, number: int) -> FloatArray:
        return self._tables[number]

    def solve(self, costs: FloatArray, parts: dict[int, int], capacity: int) -> int:
        """The table of a span: its own cost, plus the best way for its parts to share the records."""
        key = (costs.tobytes(), capacity, tuple(sorted(parts.items())))
        if key not in self._solved:
            # No more parts than records can be of use.
            tables = [self._tables[number] for number, count in sorted(parts.items()) for _ in range(min(count, capacity))]
            self._solved[key] = self.number(enclosing(costs, tables, capacity))
        return self._solved[key]


def enclosing(costs: FloatArray, parts: Sequence[FloatArray], capacity: int) -> FloatArray:
    """(capacity + 1,) the most that 0, 1, ... records in a span pay: for itself, and for the parts that they share best.

    Args:
      costs: (at least capacity + 1,) of the span itself, by number of records.
      parts: tables like the one that is answered, of spans inside it that do not overlap.
      capacity: most records that the span can hold.
    """
    best = np.zeros(1)
    for table in parts:
        # At k records the largest best[i] + table[j] with i + j at most k.
        size = min(len(best) + len(table) - 1, capacity + 1)
        shared = np.zeros(size)
        for j, cost in enumerate(table[:size].tolist()):
            stop = min(size, j + len(best))
            shared[j:stop] = np.maximum(shared[j:stop], cost + best[: stop - j])
        best = np.asarray(np.maximum.accumulate(shared))
    filled = np.concatenate([best, np.full(max(0, capacity + 1 - len(best)), best[-1])])[: capacity + 1]
    return np.asarray(costs[: capacity + 1] + filled)


def most_paid(paid: Iterable[Paid], users: Participation) -> float | None:
    """The most that any user pays; None where spans cross, of which neither holds the other.

    Args:
      paid: spans that hold a record, in any order.
      users: which records may be one user's.
    """
    tables = _Tables(users.most)
    order = sorted(paid, key=lambda one: (one.start, -one.stop))
    total: dict[int, int] = {}
    open_spans: list[_Span] = []

    def close() -> None:
        done = open_spans.pop()
        number = tables.solve(done.costs, done.parts, users.within(done.stop - done.start))
        into = open_spans[-1].parts if open_spans else total
        into[number] = into.get(number, 0) + 1

    for one in order:
        while open_spans and open_spans[-1].stop <= one.start:
            close()
        if open_spans and one.stop > open_spans[-1].stop:
            return None
        costs = np.array(one.costs)
        if open_spans and (open_spans[-1].start, open_spans[-1].stop) == (one.start, one.stop):
            open_spans[-1].costs = open_spans[-1].costs + costs
        else:
            open_spans.append(_Span(one.start, one.stop, costs))
    while open_spans:
        close()
    whole = tables.solve(np.zeros(users.most + 1), total, users.most)
    return float(tables.of(whole)[-1])
