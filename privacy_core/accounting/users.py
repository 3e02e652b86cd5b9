"""Cost to a user with several records, by the charges in a ledger's book; see `participation`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from bandana.privacy_core.accounting.book import Sequence, Touched
from bandana.privacy_core.accounting.events import (
    BoundedEvent,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    PureEvent,
    ResponseEvent,
)
from bandana.privacy_core.accounting.participation import Paid, Participation, most_paid
from bandana.privacy_core.accounting.returning import squared_sensitivities

_UP = 1 + 1e-12


@lru_cache(maxsize=4096)
def _squares(event: Event, most: int) -> tuple[float, ...]:
    """Rho of the event on k records of one user: k^2 times that of one (Bun and Steinke 2016, Proposition 1.9)."""
    return tuple(k * k * event.rho for k in range(most + 1))


@lru_cache(maxsize=4096)
def _pure(event: Event, most: int) -> tuple[float, ...]:
    """Epsilon of the event on k records of one user: k times, but of a response to any other input its own."""
    assert isinstance(event, BoundedEvent)
    if isinstance(event, ResponseEvent):
        return (0.0,) + (event.epsilon,) * most
    return tuple(k * event.epsilon for k in range(most + 1))


def worst_user(charges: Iterable[Touched], users: Participation) -> Counter[Event]:
    """Events that dominate what any user pays in one replicate; empty if nothing was charged.

    Gaussian events are one, exact where `most_paid` is; with zCDP events among them, all are one zCDP event. Events of pure
    DP become one of the epsilon to which those of the worst user add up: of that the basic composition is exact, and any
    finer one an upper bound. The worst user of one family need not be that of the other.

    Args:
      charges: of one replicate, none of them without noise.
      users: which records may be one user's.
    """
    plain, sequences = [], dict[tuple[Event, Sequence, int], list[Touched]]()
    for charge in charges:
        if charge.start >= charge.stop:
            continue
        if charge.sequence is None:
            plain.append(charge)
        else:
            sequences.setdefault((charge.event, charge.sequence, charge.first), []).append(charge)
    shifted = [one for one in plain if isinstance(one.event, GaussianEvent | ConcentratedEvent)]
    shifts = [Paid(one.start, one.stop, _squares(one.event, users.most)) for one in shifted]
    for (event, sequence, _), rows in sequences.items():
        shifts.append(_whole(event, sequence, rows, users))
    pures = [Paid(one.start, one.stop, _pure(one.event, users.most)) for one in plain if isinstance(one.event, BoundedEvent)]
    events: Counter[Event] = Counter()
    if shifts:
        rho = _most(shifts, users) * _UP
        kinds = {one.event for one in plain} | {event for event, _, _ in sequences}
        is_gaussian = not any(isinstance(event, ConcentratedEvent) for event in kinds)
        events[GaussianEvent(1 / math.sqrt(2 * rho)) if is_gaussian else ConcentratedEvent(rho)] = 1
    if pures:
        events[PureEvent(_most(pures, users, is_square=False) * _UP)] = 1
    return events


def _whole(event: Event, sequence: Sequence, rows: list[Touched], users: Participation) -> Paid:
    """A sequence of carried rows as one span: its records add up as vectors do."""
    longest = max(row.stop - row.start for row in rows)
    gap = users.steps_apart(longest)
    if sequence.columns is None:
        costs = _squares(event, users.most)
    else:
        costs = tuple(event.rho * square for square in squared_sensitivities(sequence.columns, users.most, gap))
    return Paid(min(row.start for row in rows), max(row.stop for row in rows), costs)


def _most(paid: list[Paid], users: Participation, *, is_square: bool = True) -> float:
    """The most that any user pays; where spans cross, `most` times the root, or the cost, of the worst record's."""
    exact = most_paid(paid, users)
    if exact is not None:
        return exact
    edges = sorted({place for one in paid for place in (one.start, one.stop)})
    number = {place: i for i, place in enumerate(edges)}
    change = [0.0] * len(edges)
    for one in paid:
        change[number[one.start]] += one.costs[1]
        change[number[one.stop]] -= one.costs[1]
    level = worst = 0.0
    for each in change:
        level += each
        worst = max(worst, level)
    return worst * users.most ** (2 if is_square else 1) * (1 + 1e-9)
