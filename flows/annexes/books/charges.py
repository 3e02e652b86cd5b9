"""Charges of blocks over private rows: written into the data set's budget book before a block draws noise."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bandana.flows.annexes.books.bookkeeping import seeds, spending, witness
from bandana.flows.annexes.books.bookkeeping.book import BudgetBook, Receipt, State
from bandana.flows.annexes.books.bookkeeping.known import DataSet, Earlier
from bandana.flows.annexes.books.bookkeeping.spending import Charge
from bandana.flows.annexes.books.earlier import earlier_runs
from bandana.flows.keys.content import content_key
from bandana.flows.own import data as own_data
from bandana.flows.plan.cells import REPRODUCIBLE, SECURE, Block
from bandana.flows.problems.environment import Environment, EnvironmentFields
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import BookError, SpecError
from bandana.privacy_core import ApproxDP, Event, GaussianDP, GaussianEvent, Guarantee, PureDP, PureEvent

_GRID = 1 + 2.0**-10
"""Largest factor by which secure noise raises a claim; see `SecureNoise.cost`."""


_STREAM = b"person\nlive\n"
"""Content of the data set of a book that live feedback is charged to: its rows are not there beforehand."""
_EVERYBODY = 2**52
"""One past the last record of live feedback."""


@dataclass(frozen=True)
class Charged:
    """A block that was charged, and may draw noise.

    Attributes:
      reserved: what each replicate may spend.
    """

    book: BudgetBook
    data: DataSet
    entry: Receipt
    reserved: Guarantee

    @property
    def place(self) -> str:
        """Name of the book."""
        return self.book.name

    def settle(self, events: list[JsonObject]) -> JsonObject:
        """Puts what was drawn in place of what was reserved; what the stored result keeps: the book's last entry."""
        last = self.book.settle(self.entry, spending.read(events), self.data)
        return {"place": content_key(self.book.place_in(self.data)), "charged": self.entry.number, **last._asdict()}


def charge(block: Block) -> Charged | None:
    """Charges a block before it draws noise; None where its rows have no book.

    Raises:
      BookError: the budget does not cover it, the book cannot be used, or another run drew noise from the same seed.
      SpecError: the rows have a book that the spec leaves out.
    """
    environment = block.cell.environment
    if environment.item.data_file is None:
        return None
    check_has_no_book(environment)
    if environment.item.book is None:
        if not environment.shows("values"):
            data = data_of(environment)
            if environment.plays_private_rows and (seed := _seed_of(block)) is not None and data.heads is not None:
                seeds.claim(_root_of(environment) / seeds.FOLDER, data.digest, seed, block.key, data.name)
            data.note_run(_without_book(block))
        return None
    data, book = charged_data_of(block), _book_of(block)
    entry = book.charge(_charge_of(block), data, f"{block.cell.name}, block {block.index}")
    return Charged(book, data, entry, _reserved(block))


@dataclass(frozen=True)
class Extra:
    """A release on the rows of a block that is no block itself.

    Attributes:
      block: on the same rows and book.
      name: what it is, in the book.
      key: what it is a result of.
      event: what it costs each record.
    """

    block: Block
    name: str
    key: str
    event: Event

    @property
    def charge(self) -> Charge:
        """Its charge."""
        facts = {"cell": self.name, "block": 0, "key": self.key, "replications": 1, "noise": SECURE, "seed": None}
        like = _charge_of(self.block)
        return replace(like, events={self.event: 1}, facts={**like.facts, **facts})


def charge_extra(extra: Extra) -> None:
    """Charges a release before it is made; it costs what it states.

    Raises:
      BookError: the budget does not cover it, or the book cannot be used.
    """
    book, data, paid = _book_of(extra.block), charged_data_of(extra.block), extra.charge
    book.settle(book.charge(paid, data, extra.name), paid.events, data)


def charge_stream(place: str, budget: Guarantee | None, most: Guarantee | None, facts: JsonObject) -> float:
    """Charges live feedback, whose persons come one by one: all records of the book pay for it.

    Args:
      place: of the book.
      budget: of a new book; None: it must exist.
      most: all that the feedback may cost a record; None: nothing is charged, and a given `key` must have been.
      facts: of the charge; its `key` is charged once, however often this is called.

    Returns:
      epsilon of the largest run that the budget still covers.

    Raises:
      BookError: the budget does not cover it, the book holds a data set with rows, or it cannot be used.
    """
    book = BudgetBook(place, budget if isinstance(budget, ApproxDP | PureDP) else None)
    is_new = "key" in facts and not any(entry.facts.get("key") == facts["key"] for entry in book.entries())
    if most is None and is_new:
        raise BookError(f"{book.name}: it was not charged for this live policy: name the policy's own book")
    if most is not None:
        event: Event = PureEvent(most.epsilon) if isinstance(most, PureDP) else GaussianEvent(1 / most.gdp().mu)
        if is_new:
            book.charge(Charge({event: 1}, 0, _EVERYBODY, facts), DataSet(_STREAM, "live feedback"), facts["suite"])
    return book.state().left


def check_affords(blocks: Iterable[Block], extras: Iterable[Extra] = ()) -> None:
    """Refuses a whole run, all its cells and replications together, before any work starts; nothing is charged yet.

    Raises:
      BookError: some budget does not cover the blocks, or a book cannot be used.
      SpecError: some rows have a book that the spec leaves out.
    """
    given, others = list(blocks), list(extras)
    for environment in {id(block.cell.environment): block.cell.environment for block in given}.values():
        check_has_no_book(environment)
    for group in _by_book([*given, *(extra.block for extra in others)]):
        members = {id(block) for block in group}
        charges = [_charge_of(block) for block in given if id(block) in members]
        charges += [extra.charge for extra in others if id(extra.block) in members]
        book = _book_of(group[0])
        is_new = not book.entries()
        book.check_affords(charges, charged_data_of(group[0]), _named(group))
        if is_new and (line := opened(book.state())):
            sys.stderr.write(f"{line}\n")


def forecast(blocks: Iterable[Block], root: Path | None) -> list[str]:
    """Says what each book has spent, and what the blocks will be charged; nothing is written.

    Args:
      blocks: that are not played yet.
      root: the data folder; None: there is none yet.
    """
    lines = []
    for group in _by_book(list(blocks), root or Path()):
        item = group[0].cell.environment.item
        assert item.book is not None
        book = BudgetBook(item.book.place(root or Path()))
        state = book.state() if book.entries() else None
        budget = state.budget if state is not None else item.book.budget.guarantee if item.book.budget is not None else None
        if budget is None:
            lines.append(f"{book.name} does not exist yet, and the spec gives no budget")
            continue
        is_known = getattr(item, "pin", None) is not None
        data = charged_data_of(group[0]) if is_known else None
        if data is not None and (others := [place for place in data.books() if place != book.place_in(data)]):
            lines.append(f"{book.name}: {data.name} has rows of the book {others[0]}, so that every run is refused")
            continue
        earlier = Earlier() if data is None or state is not None else data.earlier()
        spent, most = (state.charges if state is not None else earlier.charges), [_charge_of(block) for block in group]
        now, then = (spending.at(spending.level(charges, budget), budget) for charges in (spent, [*spent, *most]))
        refused = ", which is refused" if spending.is_over(spending.level([*spent, *most], budget), budget) else ""
        lines.append(
            f"{book.name}: spent {now:.4g} of epsilon {spending.words(budget.epsilon, budget)}; {_named(group)} may raise "
            f"it to {then:.4g}{refused}" + (_before(earlier) if any(earlier) else "")
        )
    return lines


def _before(earlier: Earlier) -> str:
    """Says what a book will hold of the runs that come before it."""
    n_runs = sum(charge.facts["replications"] for charge in earlier.charges)
    return f"; {n_runs} earlier runs over these rows are charged when it opens{_bare(len(earlier.unprotected))}"


def _bare(n_results: int) -> str:
    return f"; no budget covers {n_results} results without noise" if n_results else ""


def without_book(environments: Iterable[Environment[EnvironmentFields]]) -> list[str]:
    """One line for each private file that has no book in the spec, and for each that a book knows nevertheless."""
    lines = []
    for environment in environments:
        if environment.item.data_file is None or environment.item.book is not None:
            continue
        try:
            check_has_no_book(environment)
        except SpecError as error:
            lines.append(f"{environment.label} is refused: {error}")
        else:
            if not environment.shows("values"):
                lines.append(f"{environment.label}: no budget book: earlier runs over these rows are not counted")
    return lines


def open_books(blocks: Iterable[Block]) -> list[str]:
    """Opens the books of blocks, and charges the runs that came before them; one line for each book.

    Raises:
      BookError: a book cannot be used, or its budget cannot count the noise of an earlier run.
    """
    lines = []
    for group in _by_book(blocks):
        state = _book_of(group[0]).open(charged_data_of(group[0]))
        lines.append(opened(state) or f"{state.name}: open; no earlier runs over these rows are known")
    return lines


def _by_book(blocks: Iterable[Block], root: Path | None = None) -> list[list[Block]]:
    """Blocks of the same data set and book together; those without a book are left out."""
    groups: dict[tuple[str, str], list[Block]] = {}
    for block in blocks:
        item = block.cell.environment.item
        if item.book is not None:
            place = item.book.place(root or _root_of(block.cell.environment))
            groups.setdefault((place, str(item.data_file)), []).append(block)
    return list(groups.values())


def _named(group: list[Block]) -> str:
    n_cells, n_blocks = len({block.cell.name for block in group}), len(group)
    return f"{n_blocks} block{'s' * (n_blocks > 1)} of {n_cells} cell{'s' * (n_cells > 1)} of {group[0].cell.spec.name}"


def opened(state: State) -> str:
    """Says what a book holds of the runs that came before it, in one line; empty if there were none."""
    if not state.earlier and not state.unprotected:
        return ""
    over = spending.is_over(spending.level(state.charges, state.budget), state.budget)
    return (
        f"{state.name}: {state.earlier} earlier runs over these rows are charged: spent "
        f"{spending.words(state.spent, state.budget)} of epsilon {state.budget.epsilon:g}"
        f"{', so that further runs are refused' if over else ''}{_bare(state.unprotected)}"
    )


def check_has_no_book(environment: Environment[EnvironmentFields]) -> None:
    """Refuses a file without a book whose rows have one.

    Raises:
      SpecError: a book knows the rows; the message names it.
      BookError: a note of the data folder is damaged.
    """
    item: Any = environment.item
    if item.data_file is None or item.book is not None or item.pin is None:
        return
    data = data_of(environment)
    for place, is_exact in data.books().items():
        if is_exact and environment.plays_private_rows:
            raise SpecError(
                f"environment.data: the rows of {data.name} have the budget book {place}, and every run over them "
                "is charged: name it in the spec"
            )
        how = "without public: [values]" if environment.shows("values") else "in a table"
        advice = "name it in the spec" if environment.plays_private_rows else f"play them {how}, and name it"
        raise SpecError(
            f"environment.data: {data.name} has rows of the budget book {place}: {advice}, or, if these are other people, "
            f"write not_the_data_of: [{Path(place).stem}]"
        )


def _root_of(environment: Environment[EnvironmentFields]) -> Path:
    """The data folder."""
    pin = getattr(environment.item, "pin", None)
    if pin is None:
        raise BookError(f"{environment.label}: a budget book needs a data folder")
    return Path(pin.secret.parent)


def _book_of(block: Block) -> BudgetBook:
    book = block.cell.environment.item.book
    assert book is not None
    return BudgetBook(book.place(_root_of(block.cell.environment)), None if book.budget is None else book.budget.guarantee)


def data_of(environment: Environment[EnvironmentFields]) -> DataSet:
    """The data set of an environment on a file, as its data folder knows it."""
    item: Any = environment.item
    if getattr(environment, "is_live", False):  # a log of live feedback, all of whose persons pay
        return DataSet(_STREAM, "live feedback")
    content, digest = own_data.content_of(item)
    if item.pin is None:
        return DataSet(content, item.path.name, digest)
    key, apart = own_data.rows_key(item.pin), tuple(item.not_the_data_of)
    return DataSet(content, item.path.name, digest, _root_of(environment) / witness.FOLDER, key, apart)


def charged_data_of(block: Block) -> DataSet:
    """The data set of a block with a book, which charges the runs that came before when it is opened."""
    data, root = data_of(block.cell.environment), _root_of(block.cell.environment)
    relation = str(block.cell.claim().relation.value)
    return replace(data, earlier=lambda: earlier_runs(data, root, relation))


def _charge_of(block: Block) -> Charge:
    """The most that the block can cost: its claim, once for each replicate."""
    reserved = _reserved(block)
    if isinstance(reserved, PureDP):
        event: Event = PureEvent(reserved.epsilon)
    else:
        mu = reserved.gdp().mu
        assert math.isfinite(mu)
        event = GaussianEvent(1 / mu)
    first = block.cell.environment.first_row
    is_live = getattr(block.cell.environment, "is_live", False)
    span = (0, _EVERYBODY) if is_live else (first, first + block.cell.spec.horizon)
    facts = {
        **_facts_of(block), "relation": str(reserved.relation.value),
        "trust": str(block.cell.claim().trust.value), "claim": block.cell.claim().statement,
    }  # fmt: skip
    return Charge({event: block.n_reps}, *span, facts)


def _facts_of(block: Block) -> JsonObject:
    """Facts that say which block it is."""
    cell = block.cell
    return {
        "suite": cell.spec.name, "cell": cell.name, "block": block.index, "key": block.key, "replications": block.n_reps,
        "noise": cell.noise, "seed": _seed_of(block),
    }  # fmt: skip


def _without_book(block: Block) -> JsonObject:
    """Note of the data folder on a block that no book is charged for; its events are null if no noise protects rows."""
    cell = block.cell
    try:
        is_protected = cell.is_private and cell.environment.plays_private_rows and math.isfinite(_reserved(block).gdp().mu)
    except ValueError:  # a claim that implies no Gaussian one
        is_protected = False
    if not is_protected:
        return {**_facts_of(block), "events": None}
    body = _charge_of(block).body()
    if getattr(cell.environment.item, "beyond_visits", None) == "drop":
        body["records"][1] = None
    return body


def _seed_of(block: Block) -> str | None:
    """Hash of the seed that others could draw the block's noise from; None where there is none."""
    if block.cell.noise != REPRODUCIBLE:
        return None
    seed = block.noise_seed
    return content_key([str(seed.entropy), list(seed.spawn_key)])


def _reserved(block: Block) -> Guarantee:
    """Guarantee that a replicate may spend: its claim, with what a grid adds."""
    claim = block.cell.claim_at(block.cell.settings, None)  # to a record, which the book counts
    factor = _GRID if block.cell.noise == SECURE else 1.0
    if isinstance(claim.stated, PureDP):
        return PureDP(claim.stated.epsilon * factor, relation=claim.relation, trust=claim.trust)
    return GaussianDP(claim.gaussian.mu * factor, relation=claim.relation, trust=claim.trust)
