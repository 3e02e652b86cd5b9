"""The budget book of a data set: every run is charged before it draws noise, and what would overspend is refused."""

from __future__ import annotations

import hmac
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bandana.flows.annexes.books.bookkeeping import chain, identity, spending, witness
from bandana.flows.annexes.books.bookkeeping.balance import Balance, is_due, references
from bandana.flows.annexes.books.bookkeeping.bodies import body_of
from bandana.flows.annexes.books.bookkeeping.known import DataSet
from bandana.flows.annexes.books.bookkeeping.spending import Budget, Charge
from bandana.flows.folder.shared import ADDRESS
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import BookError
from bandana.privacy_core import Event, PureDP

if TYPE_CHECKING:
    from bandana.flows.annexes.books.bookkeeping.storage import Writer


def now() -> datetime:
    """The time of new entries."""
    return datetime.now(UTC)


class Receipt(NamedTuple):
    """Part of an entry that a run keeps, so that a book without it is found to be cut."""

    book: str
    """Hash of the book's first entry, which no other book has."""
    number: int
    hash: str


@dataclass(frozen=True)
class State:
    """A book that was read and checked.

    Attributes:
      name: what messages call it.
      entries: its chain: whole, or for a charge those from the last checkpoint on and the few before that they build upon.
      budget: what no record may exceed.
      charges: what was paid: each charge, or for a charge their sums by span.
      relation: neighboring relation of all charges; None before the first.
    """

    name: str
    entries: Sequence[chain.Entry]
    budget: Budget
    charges: Sequence[Charge]
    relation: str | None

    @property
    def spent(self) -> float:
        """Epsilon that the worst record has spent at the budget's delta, as the accountant composes it."""
        return spending.epsilon_of(self.charges, self.budget)

    @property
    def earlier(self) -> int:
        """Number of replications played before the book knew of them, and charged when it did."""
        return sum(charge.facts["replications"] for charge in self.charges if charge.facts.get("is_earlier"))

    @property
    def unprotected(self) -> int:
        """Number of results over its rows that no budget covers: computed without noise before it was opened."""
        return len(_unprotected(self.entries))

    @property
    def left(self) -> float:
        """Epsilon of the largest run on all records that still fits."""
        return spending.left(spending.level(self.charges, self.budget), self.budget)


class BudgetBook:
    """A book at a place.

    Args:
      place: a SQLite file, or an address, see `Storage`.
      budget: of a new book; None: the book must exist. An existing book must have the same.
    """

    def __init__(self, place: str, budget: Budget | None = None) -> None:
        from bandana.flows.annexes.books.bookkeeping.storage import Storage  # with SQLAlchemy: most specs name no book

        if (Path(place).parent.parent / ADDRESS).is_file():
            raise BookError(
                f"{Path(place).stem}: the data folder's results lie in a store that machines share, where no book can be: "
                "name the book by its path or by the address of a database"
            )
        self._storage, self._budget = Storage(place), budget
        self.name = self._storage.name

    def entries(self) -> list[chain.Entry]:
        """All entries as they are stored; none where there is no book."""
        return self._storage.entries()

    def state(self) -> State:
        """Contents of the book.

        Raises:
          BookError: there is no such book, or it is damaged.
        """
        entries = self._storage.entries()
        if not entries:
            raise BookError(f"{self.name}: {self._storage.place} does not exist; the first run that names it opens it")
        with _named(self.name):
            return self._checked(entries)

    @property
    def place(self) -> str:
        """Where it is."""
        return self._storage.place

    def place_in(self, data: DataSet) -> str:
        """Where it is, as the data folder names it."""
        return witness.place_from(data.heads, self.place)

    def check_seen(self, receipts: Iterable[tuple[Receipt, str]]) -> int:
        """Checks that entries which others saw of it are still there; returns how many there were.

        Raises:
          BookError: one is gone, or another is in its place.
        """
        entries, seen = self.state().entries, list(receipts)
        with _named(self.name):
            for receipt, whose in seen:
                if receipt.book != entries[0].hash:
                    raise BookError(
                        f"{whose} names another book of this name ({receipt.book[:12]}): it was replaced; restore it"
                    )
                chain.check_head(entries, receipt.number, receipt.hash, whose)
        return len(seen)

    def check_affords(self, charges: Sequence[Charge], data: DataSet, what: str) -> None:
        """Refuses, before work starts, a run that the budget does not cover; nothing is charged.

        Args:
          charges: all that it would be charged.
          data: whose records pay.
          what: the run, for the message.

        Raises:
          BookError: it would overspend, or the book, whose whole chain is checked here, cannot be used.
        """
        with _named(self.name):
            if entries := self._storage.entries():
                self._checked(entries)
                if (rest := now() - chain.time_of(entries[-1])) > chain.LONG_REST:
                    words = (
                        f"the last entry is {rest.days:,} days old; if the clock here is ahead, set it before runs are dated"
                    )
                    warnings.warn(f"{self.name}: {words}", stacklevel=2)
        with self._writing(data) as (writer, state):
            _refuse(writer, state, charges, what)

    def charge(self, charge: Charge, data: DataSet, what: str) -> Receipt:
        """Writes a charge down, in one transaction; when this returns, it is on disk, and noise may be drawn.

        Raises:
          BookError: it would overspend, another run drew with the same seed, or the book cannot be used.
        """
        with self._writing(data) as (writer, state):
            _refuse(writer, state, [charge], what)
            return self._append(writer, chain.CHARGED, charge.body())

    def settle(self, charged: Receipt, events: Mapping[Event, int], data: DataSet) -> Receipt:
        """Replaces a charge, an upper bound, by what the block drew.

        Raises:
          BookError: the charge is gone, or was settled before, or the book cannot be used.
        """
        with self._writing(data, charged.number) as (writer, _):
            chain.check_head(writer.entries, charged.number, charged.hash, "the run that it charged")
            if earlier := writer.with_field(chain.SETTLED, "entry", [str(charged.number)]):
                raise BookError(f"entry {charged.number} was settled by entry {earlier[0].number}; a charge is settled once")
            body = {"entry": charged.number, "events": spending.written(events)}
            return self._append(writer, chain.SETTLED, body)

    def repair(self) -> Receipt:
        """Lets time go on from now, where a clock that was ahead locked the book; no entry is removed.

        Raises:
          BookError: there is no such book, it is damaged, or its last entry is not ahead of the clock here.
        """
        self.state()
        with _named(self.name), self._storage.writing(is_whole=True) as writer:
            self._checked(writer.entries)
            time = now()
            after = chain.last_in_time(writer.entries, time)
            if after == writer.entries[-1].number:
                raise BookError(
                    f"there is nothing to repair: its last entry is not ahead of the clock here ({time:%F %H:%M} UTC)"
                )
            note = f"clock was ahead: times after entry {after} are not to be trusted; time goes on from now"
            writer.append(chain.following(writer.entries, chain.REPAIRED, {"after": after, "note": note}, time))
            return _receipt(writer)

    def open(self, data: DataSet) -> State:
        """Opens the book if it is new, and charges the runs over the data set that it does not hold, beyond the budget too.

        Raises:
          BookError: the book cannot be used, or its budget cannot count the noise of an earlier run.
        """
        with self._writing(data, is_whole=True) as (writer, _):
            self._charge_earlier(writer, data)
        return self.state()

    @contextmanager
    def _writing(self, data: DataSet, *numbers: int, is_whole: bool = False) -> Iterator[tuple[Writer, State]]:
        """A transaction on the book, checked against its data set; the book is opened if it is new.

        Unless the book is read whole, entries before the last checkpoint are read only if they are noted in the data folder,
        or given by their numbers.
        """
        with _named(self.name):
            self._check_place(data)
            notes = witness.of_book(data.heads, self._storage.place)
            with self._storage.writing(is_whole=is_whole) as writer:
                chain.check_chain(writer.entries, writer.since)
                writer.fetch([*references(writer.entries), *(seen.number for seen in notes), *numbers])
                for seen in notes:
                    chain.check_head(writer.entries, seen.number, seen.hash, "this data folder")
                if not writer.entries:
                    self._open(writer, data)
                state = self._checked(writer.entries, writer.since)
                self._check_data(writer, data)
                yield writer, state
                Balance.of(writer.entries, writer.since)  # what a later run would refuse to read is not stored
            if data.heads is not None:  # committed
                witness.note(data.heads, data.digest, self._storage.place, writer.entries[0].hash, writer.entries[-1])

    def _check_place(self, data: DataSet) -> None:
        """Refuses a second book for the rows of a data set, whatever file holds them."""
        here, known = witness.place_from(data.heads, self._storage.place), data.books()
        if known.get(here):  # it was charged here before, perhaps by a version that did not compare rows
            return
        for place, is_exact in known.items():
            if place != here and is_exact:
                raise BookError(f"{data.name} is in the book {place}; one data set has one book")
            if place != here:
                raise BookError(
                    f"{data.name} has rows of the book {place}; one data set has one book: name that one, or, if these are "
                    f"other people, write not_the_data_of: [{Path(place).stem}]"
                )

    def _check_data(self, writer: Writer, data: DataSet) -> None:
        """Refuses another data set; rows that were added at the end are new people, and the old ones keep their spending.

        Rows are compared by their values, so that a re-export of the file is the same data set, as long as it has the same
        columns, in whatever order, and the same rows in the same order: charges count records by their places.
        """
        known = _known(writer.entries)
        size, content, n_rows = int(known["bytes"]), data.content, known.get("rows")
        has_grown = len(content) > size
        if not hmac.compare_digest(str(known["data"]), _mac(writer, content[:size])):
            is_long_enough = n_rows is not None and data.table.n_rows >= n_rows
            if not is_long_enough or identity.ordered(data.table, writer.salt(), int(known["rows"])) != known["ordered"]:
                raise BookError(
                    f"it belongs to another data set than {data.name}; a file that was changed holds the same people, so "
                    "their spending does not begin anew: restore the file that the book was opened with"
                )
            has_grown = data.table.n_rows > int(known["rows"])
        elif has_grown and not content[:size].endswith(b"\n"):
            raise BookError(f"{data.name} grew, and its last line was not ended before: a row may have changed")
        if has_grown or n_rows is None:  # an earlier version opened it, and knew bytes alone
            self._append(writer, chain.EXTENDED, _facts_of(writer, data))
        data.note()

    def _open(self, writer: Writer, data: DataSet) -> None:
        """Opens the book, and charges the runs over the data set that came before it."""
        if self._budget is None:
            raise BookError(
                "it does not exist yet: give its budget in the spec, such as budget: {epsilon: 3, delta: 1.0e-6}"
            )
        fields = {**_facts_of(writer, data), "budget": budget_fields(self._budget)}
        writer.append(chain.following(writer.entries, chain.OPENED, {"format": chain.FORMAT, **fields}, now()))
        self._charge_earlier(writer, data)

    def _charge_earlier(self, writer: Writer, data: DataSet) -> None:
        """Charges the runs over the data set that the book does not hold: they were, whether or not the budget allows it."""
        charged = {entry.facts["key"] for entry in writer.entries if entry.kind == chain.CHARGED}
        earlier, budget = data.earlier(), spending.budget_of(writer.entries[0].facts["budget"])
        for charge in earlier.charges:
            if charge.facts["key"] in charged:
                continue
            try:
                spending.cost_of_all(charge.events, budget)
            except ValueError as error:
                raise BookError(f"{charge.facts['cell']} was played before: {error}; open the book with a delta") from error
            receipt = self._append(writer, chain.CHARGED, charge.body())
            self._append(writer, chain.SETTLED, {"entry": receipt.number, "events": spending.written(charge.events)})
        if fresh := [key for key in earlier.unprotected if key not in _unprotected(writer.entries)]:
            self._append(writer, chain.EXTENDED, {**_known(writer.entries), "unprotected": fresh})

    def _checked(self, entries: Sequence[chain.Entry], since: int | None = None) -> State:
        """Sum of entries: a whole chain, which is checked, or what `_writing` checked from the entry `since` on."""
        if since is None:
            chain.check_chain(entries)
        balance = Balance.of(entries, since or 1)
        if self._budget is not None and budget_fields(self._budget) != budget_fields(balance.budget):
            raise BookError(f"its budget is {balance.budget}, the spec says {self._budget}: a book's budget does not change")
        charges = list(balance.charges.values()) if since is None else balance.by_span()
        return State(self.name, entries, balance.budget, charges, balance.relation)

    def _append(self, writer: Writer, kind: str, body: JsonObject) -> Receipt:
        if is_due(writer.entries):
            carried = Balance.of(writer.entries, writer.since).body()
            writer.append(chain.following(writer.entries, chain.CHECKPOINT, carried, now()))
        writer.append(chain.following(writer.entries, kind, body, now()))
        return _receipt(writer)


def _receipt(writer: Writer) -> Receipt:
    """The last entry."""
    return Receipt(writer.entries[0].hash, writer.entries[-1].number, writer.entries[-1].hash)


def _known(entries: Sequence[chain.Entry]) -> JsonObject:
    """Facts by which the book knows its data set."""
    facts = next(entry.facts for entry in reversed(entries) if entry.kind in (chain.OPENED, chain.EXTENDED))
    return {name: facts[name] for name in ("data", "bytes", "rows", "ordered") if name in facts}


def _facts_of(writer: Writer, data: DataSet) -> JsonObject:
    """Facts by which the book will know a data set."""
    n_rows, salt = data.table.n_rows, writer.salt()
    by_rows = {"rows": n_rows, "ordered": identity.ordered(data.table, salt, n_rows)}
    return {"data": _mac(writer, data.content), "bytes": len(data.content), **by_rows}


def _unprotected(entries: Sequence[chain.Entry]) -> set[str]:
    """Keys of results that no budget covers."""
    return {key for entry in entries if entry.kind == chain.EXTENDED for key in entry.facts.get("unprotected", ())}


def _mac(writer: Writer, content: bytes) -> str:
    """Code by which the book knows a data set."""
    return hmac.new(writer.salt(), content, sha256).hexdigest()


def _refuse(writer: Writer, state: State, charges: Sequence[Charge], what: str) -> None:
    """Refuses charges that the budget does not cover, or that do not belong in the book."""
    budget = state.budget
    _refuse_other_relation(state.relation, charges)
    _refuse_seed(writer, charges)
    try:
        needs = spending.level(charges, budget)
    except ValueError as error:
        raise BookError(f"{what}: {error}") from error
    reads = [old for old in state.charges if any(old.start < new.stop and new.start < old.stop for new in charges)]
    total = spending.level([*reads, *charges], budget)
    if spending.is_over(total, budget):
        left = spending.left(spending.level(state.charges, budget), budget)
        raise BookError(
            f"out of budget: {what} would cost epsilon {spending.words(spending.at(needs, budget), budget)}, and "
            f"{spending.at(total, budget):.4g} together with earlier runs; the budget is {budget.epsilon:g}, and left is "
            f"one run of at most epsilon {left:.4g}; nothing was drawn"
        )


def _refuse_seed(writer: Writer, charges: Sequence[Charge]) -> None:
    """Noise from one seed on two runs cancels in their difference; a run that was killed may draw its own again."""
    keys: dict[str, set[str]] = {}
    for charge in charges:
        if charge.facts.get("seed"):
            keys.setdefault(charge.facts["seed"], set()).add(charge.facts["key"])
    for entry in writer.with_field(chain.CHARGED, "seed", keys):
        other = body_of(entry)
        if keys[other.seed] != {other.key}:
            raise BookError(
                f"entry {entry.number} ({other.cell}) drew noise from the same seed, and the difference of two "
                "such runs shows exact values: choose another seed, or noise: secure"
            )


def _refuse_other_relation(known: str | None, charges: Sequence[Charge]) -> None:
    held = dict.fromkeys([*([] if known is None else [known]), *(charge.facts["relation"] for charge in charges)])
    if len(held) > 1:
        first, other, *_ = held
        cell = next(charge.facts["cell"] for charge in charges if charge.facts["relation"] == other)
        raise BookError(
            f"it counts what it costs to {first}, and {cell} states what it costs to {other}; one book holds one "
            "neighboring relation"
        )


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Errors begin with the book's name, once."""
    try:
        yield
    except BookError as error:
        words = str(error)
        raise BookError(words if words.startswith(name) else f"{name}: {words}") from error.__cause__


def budget_fields(budget: Budget) -> dict[str, float]:
    """Plain numbers of a budget."""
    return {"epsilon": budget.epsilon, **({} if isinstance(budget, PureDP) else {"delta": budget.delta})}
