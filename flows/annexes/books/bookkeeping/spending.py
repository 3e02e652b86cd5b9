"""Composition of a book's charges, record by record, and what its budget leaves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from bandana.flows.texts.json_text import JsonObject
from bandana.privacy_core import ApproxDP, Event, GaussianDP, PrivacyCurve, PureDP
from bandana.privacy_core.accounting.spending import cost_of, exceeds, filterable, limit_of

Budget = ApproxDP | PureDP


@dataclass(frozen=True)
class Charge:
    """Cost of one block of replicates to each record of a span.

    Attributes:
      events: what is paid, and how often: an upper bound until the block has ended, then what it drew.
      start: first record that pays.
      stop: one past the last.
      facts: who is charged: `suite`, `cell`, `block`, `key`, `replications`, `seed`, `relation`, `trust`.
      number: of its entry; 0 before it has one.
      is_settled: whether the block has ended.
    """

    events: Mapping[Event, int]
    start: int
    stop: int
    facts: JsonObject
    number: int = 0
    is_settled: bool = False

    def body(self) -> JsonObject:
        """Plain numbers and texts, for an entry."""
        return {**self.facts, "records": [self.start, self.stop], "events": written(self.events)}


def budget_of(fields: Mapping[str, float]) -> Budget:
    """The budget that an entry holds."""
    return ApproxDP(fields["epsilon"], fields["delta"]) if fields.get("delta") else PureDP(fields["epsilon"])


def written(events: Mapping[Event, int]) -> list[JsonObject]:
    """Events as plain numbers and texts."""
    records: list[JsonObject] = PrivacyCurve.of(events).to_dict()["records"][0] if events else []
    return records


def read(events: Sequence[JsonObject]) -> Counter[Event]:
    """Reads what `written` wrote.

    Raises:
      ValueError: it is no list of events.
    """
    if not events:
        return Counter()
    curve = PrivacyCurve.from_dict({"records": [events], "relation": "replace one record", "trust": "central"})
    return Counter(dict(curve.books[0]))


def stretches(charges: Iterable[Charge]) -> list[Counter[Event]]:
    """The events that records pay, one sum for each stretch of records that pay for the same."""
    edges: dict[int, Counter[Event]] = {}
    for charge in charges:
        edges.setdefault(charge.start, Counter()).update(charge.events)
        edges.setdefault(charge.stop, Counter()).subtract(charge.events)
    paid: Counter[Event] = Counter()
    totals = []
    for _, change in sorted(edges.items(), key=itemgetter(0)):
        paid.update(change)
        if total := +paid:
            totals.append(total)
    return totals


def level(charges: Iterable[Charge], budget: Budget) -> float:
    """The most that one record has spent, in the currency of the budget's filter."""
    return max((cost_of_all(events, budget) for events in stretches(charges)), default=0.0)


def cost_of_all(events: Mapping[Event, int], budget: Budget) -> float:
    """Cost that events add to a record, in the currency of the budget's filter.

    Raises:
      ValueError: the budget cannot count one of them.
    """
    limited = filterable(budget)
    return math.fsum(cost_of(event, limited) * count for event, count in events.items())


def composed(charges: Iterable[Charge]) -> PrivacyCurve | None:
    """Composition of all charges on the worst record; None if nothing was paid."""
    records: list[Counter[Event]] = []
    for total in stretches(charges):
        if total not in records:
            records.append(total)
    worst = [one for one in records if not any(other != one and one <= other for other in records)]
    return PrivacyCurve.of(*worst) if worst else None


def epsilon_of(charges: Sequence[Charge], budget: Budget) -> float:
    """Epsilon that the worst record has spent, at the budget's delta: the accountant's composition, not the filter's."""
    if isinstance(budget, PureDP):
        return level(charges, budget)
    curve = composed(charges)
    return 0.0 if curve is None else curve.epsilon(budget.delta)


def at(total: float, budget: Budget) -> float:
    """A sum of costs as an epsilon at the budget's delta."""
    if isinstance(budget, PureDP):
        return total
    return GaussianDP(math.sqrt(total)).epsilon_at(budget.delta) if total else 0.0


def left(spent: float, budget: Budget) -> float:
    """Epsilon of the largest run that still fits, at the budget's delta."""
    return at(max(0.0, limit_of(filterable(budget)) - spent), budget)


def is_over(total: float, budget: Budget) -> bool:
    """True if a sum of costs exceeds the budget, beyond rounding."""
    return exceeds(total, filterable(budget))


def words(epsilon: float, budget: Budget) -> str:
    """An epsilon with the budget's delta."""
    return f"{epsilon:.4g}" if isinstance(budget, PureDP) else f"{epsilon:.4g} at delta {budget.delta:g}"
