"""Sums of a book's entries, span by span, and the checkpoints that carry it: a charge reads the last one and on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Self

from bandana.flows.annexes.books.bookkeeping import spending
from bandana.flows.annexes.books.bookkeeping.bodies import (
    Body,
    Charged,
    Checkpoint,
    Events,
    Extended,
    Limit,
    Opened,
    Repaired,
    Settled,
    body_of,
    reason,
)
from bandana.flows.annexes.books.bookkeeping.chain import CHECKPOINT, SETTLED, Entry
from bandana.flows.annexes.books.bookkeeping.spending import Budget, Charge
from bandana.flows.keys.content import canonical
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import BookError
from bandana.privacy_core import Event
from bandana.privacy_core.accounting.spending import filterable

EVERY = 64
"""Fewest entries between two checkpoints; after a long checkpoint there are more, until they are as long as it is."""

_COSTS = 1e-100, 1e12
"""Least and most of what a charge may cost in the budget's currency; beyond, accountants have no numbers."""


@dataclass
class Balance:
    """Sum of entries, built by `of`.

    Attributes:
      budget: what no record may exceed.
      data: number of the entry that states the data set as it is now.
      relation: neighboring relation of all charges; None before the first.
      spent: events that the records of a span pay, by first row and one after the last.
      charges: by number of their entries; of those before the checkpoint that was read, only the ones that were looked up.
      settled: number of the entry that settled a charge, by the number of the charge.
    """

    budget: Budget
    data: int = 1
    relation: str | None = None
    spent: dict[tuple[int, int], Counter[Event]] = field(default_factory=dict)
    charges: dict[int, Charge] = field(default_factory=dict)
    settled: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Sequence[Entry], since: int = 1) -> Self:
        """Sum of a book's entries.

        Args:
          entries: whose seals were checked: all, or the first one, those that `references` names, and all from a checkpoint.
          since: number of that checkpoint, which is taken as it is; every later one, and with 1 every one, is computed anew.

        Raises:
          BookError: an entry is not as its kind must be, or a checkpoint is not what the entries before it add up to.
        """
        opened = body_of(entries[0])
        if not isinstance(opened, Opened):
            raise BookError("entry 1 is missing or out of order: the book was changed; restore it from a copy")
        balance = cls(_budget(entries[0], opened.budget))
        for entry in entries[1:]:
            body = body_of(entry)
            if entry.number >= since:
                balance._add(entry, body, is_taken=entry.number == since)
            elif isinstance(body, Charged):
                balance.charges[entry.number] = balance._charge(entry, body)
        return balance

    def body(self) -> JsonObject:
        """The body of a checkpoint."""
        spent = [[*span, spending.written(events)] for span, events in sorted(self.spent.items()) if events]
        return {"data": self.data, "relation": self.relation, "spent": spent}

    def by_span(self) -> list[Charge]:
        """One charge for each span, of all that its records pay together."""
        return [Charge(events, *span, {"relation": self.relation}) for span, events in self.spent.items()]

    def _add(self, entry: Entry, body: Body, *, is_taken: bool) -> None:
        match body:
            case Extended():
                self.data = entry.number
            case Charged():
                if self.relation not in (None, body.relation):
                    words = f"it counts what it costs to {body.relation}; earlier ones, to {self.relation}"
                    raise BookError(reason(entry, words))
                self.relation = body.relation
                charge = self.charges[entry.number] = self._charge(entry, body)
                self.spent.setdefault((charge.start, charge.stop), Counter()).update(charge.events)
            case Settled():
                self._settle(entry, body)
            case Repaired() if body.after >= entry.number:
                raise BookError(reason(entry, f"after: {body.after} is no entry before it"))
            case Checkpoint() if is_taken:
                self.data, self.relation = body.data, body.relation
                for start, stop, events in body.spent:
                    self.spent[start, stop] = Counter(self._read(entry, events))
            case Checkpoint() if canonical(self.body()) != entry.body:
                raise BookError(
                    reason(entry, "it is not what the entries before it add up to; restore the book from a copy")
                )

    def _settle(self, entry: Entry, body: Settled) -> None:
        charge, earlier = self.charges.get(body.entry), self.settled.get(body.entry)
        if charge is None or earlier is not None:
            words = f"entry {body.entry}, which is no charge" if charge is None else f"a charge that entry {earlier} settled"
            raise BookError(reason(entry, f"it settles {words}; restore the book from a copy"))
        events = self._read(entry, body.events)
        paid = self.spent.setdefault((charge.start, charge.stop), Counter())
        paid.subtract(charge.events)
        paid.update(events)
        if any(count < 0 for count in paid.values()):
            raise BookError(reason(entry, f"it settles entry {body.entry}, which no checkpoint counts"))
        self.spent[charge.start, charge.stop] = +paid
        self.charges[body.entry], self.settled[body.entry] = replace(charge, events=events, is_settled=True), entry.number

    def _charge(self, entry: Entry, body: Charged) -> Charge:
        events = self._read(entry, body.events)
        if not events:
            raise BookError(reason(entry, "events: it charges nothing"))
        return Charge(events, *body.records, body.facts, entry.number)

    def _read(self, entry: Entry, events: Events) -> Counter[Event]:
        try:
            return _countable(canonical(events), self.budget)
        except (ValueError, ArithmeticError) as error:
            raise BookError(reason(entry, f"events: {error}")) from error


@lru_cache(maxsize=4096)
def _countable(text: str, budget: Budget) -> Counter[Event]:
    """Events from JSON that the budget can count; a book has thousands of the same few. Nobody changes the answer."""
    events = spending.read(json.loads(text))
    least, most = _COSTS
    if events and not least < (cost := spending.cost_of_all(events, budget)) < most:
        raise ValueError(f"no accountant counts their cost, {cost:g}")
    return events


def _budget(entry: Entry, limit: Limit) -> Budget:
    budget = spending.budget_of(limit.model_dump())
    try:
        filterable(budget)
    except (ValueError, ArithmeticError) as error:
        raise BookError(reason(entry, f"budget: {error}")) from error
    return budget


def references(entries: Sequence[Entry]) -> Iterator[int]:
    """Numbers of the entries that those from a checkpoint on build upon.

    Raises:
      BookError: an entry is not as its kind must be.
    """
    if entries and entries[0].kind == CHECKPOINT:
        yield from (1, body_of(entries[0]).data)
        yield from (body_of(entry).entry for entry in entries if entry.kind == SETTLED)


def is_due(entries: Sequence[Entry]) -> bool:
    """True if a checkpoint must come before the next entry."""
    n_entries, n_letters = 0, 0
    for entry in reversed(entries):
        if entry.kind == CHECKPOINT:
            return n_entries >= EVERY and n_letters >= len(entry.body)
        n_entries, n_letters = n_entries + 1, n_letters + len(entry.body)
    return n_entries >= EVERY
