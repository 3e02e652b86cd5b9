"""Charges of blocks over private rows: written into the data set's budget book before a block draws noise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bandana.flows.books import seeds, spending, witness
from bandana.flows.books.book import BudgetBook, DataSet, Receipt
from bandana.flows.books.chain import BookError
from bandana.flows.books.spending import Charge
from bandana.flows.keys.content import content_key
from bandana.flows.spec import own_data
from bandana.flows.spec.mistakes import SpecError
from bandana.flows.spec.plan import REPRODUCIBLE, SECURE, Block
from bandana.privacy_core import Event, GaussianDP, GaussianEvent, Guarantee, PureDP, PureEvent

_GRID = 1 + 2.0**-10
"""What secure noise adds to a claim at most; see `SecureNoise.cost`."""


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

    def settle(self, events: list[dict[str, Any]]) -> dict[str, Any]:
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
    if not environment.plays_private_rows:
        return None
    data = _data_of(block)
    if environment.item.book is None:
        _check_has_none(data)
        if (seed := _seed_of(block)) is not None and data.heads is not None:
            seeds.claim(_root_of(block) / seeds.FOLDER, data.digest, seed, block.key, data.name)
        return None
    book = _book_of(block)
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
    book, data, paid = _book_of(extra.block), _data_of(extra.block), extra.charge
    book.settle(book.charge(paid, data, extra.name), paid.events, data)


def check_affords(blocks: Iterable[Block], extras: Iterable[Extra] = ()) -> None:
    """Refuses a whole run, all its cells and replications together, before any work starts; nothing is charged yet.

    Args:
      blocks: that are not played yet.
      extras: other releases on the same rows.

    Raises:
      BookError: some budget does not cover the blocks, or a book cannot be used.
      SpecError: some rows have a book that the spec leaves out.
    """
    given, others = list(blocks), list(extras)
    for block in given:
        if block.cell.environment.item.book is None and block.cell.environment.plays_private_rows:
            _check_has_none(_data_of(block))
    for group in _by_book([*given, *(extra.block for extra in others)]):
        members = {id(block) for block in group}
        charges = [_charge_of(block) for block in given if id(block) in members]
        charges += [extra.charge for extra in others if id(extra.block) in members]
        _book_of(group[0]).check_affords(charges, _data_of(group[0]), _named(group))


def forecast(blocks: Iterable[Block], root: Path | None) -> list[str]:
    """What each book has spent, and what the blocks will be charged; nothing is written.

    Args:
      blocks: that are not played yet.
      root: the data folder; None: there is none yet.
    """
    said = []
    for group in _by_book(list(blocks), root or Path()):
        item = group[0].cell.environment.item
        assert item.book is not None
        book = BudgetBook(item.book.place(root or Path()))
        state = book.state() if book.entries() else None
        if state is None and item.book.budget is None:
            said.append(f"{book.name} does not exist yet, and the spec gives no budget")
            continue
        budget = state.budget if state is not None else item.book.budget.guarantee
        spent, most = (state.charges if state is not None else ()), [_charge_of(block) for block in group]
        now, then = (spending.at(spending.level(charges, budget), budget) for charges in (spent, [*spent, *most]))
        refused = ", which is refused" if spending.is_over(spending.level([*spent, *most], budget), budget) else ""
        said.append(
            f"{book.name}: spent {now:.4g} of epsilon {spending.words(budget.epsilon, budget)}; {_named(group)} may raise "
            f"it to {then:.4g}{refused}"
        )
    return said


def _by_book(blocks: Iterable[Block], root: Path | None = None) -> list[list[Block]]:
    """Blocks of the same data set and book together; those without a book are left out."""
    found: dict[tuple[str, str], list[Block]] = {}
    for block in blocks:
        item = block.cell.environment.item
        if item.book is not None:
            found.setdefault((item.book.place(root or _root_of(block)), str(item.data_file)), []).append(block)
    return list(found.values())


def _named(group: list[Block]) -> str:
    n_cells, n_blocks = len({block.cell.name for block in group}), len(group)
    return f"{n_blocks} block{'s' * (n_blocks > 1)} of {n_cells} cell{'s' * (n_cells > 1)} of {group[0].cell.spec.name}"


def _check_has_none(data: DataSet) -> None:
    if data.heads is not None and (seen := witness.read(data.heads, data.digest)) is not None:
        raise SpecError(
            f"environment.data: the rows of {data.name} have the budget book {seen.place}, and every run over them "
            "is charged: name it in the spec"
        )


def _root_of(block: Block) -> Path:
    """The data folder."""
    pin = getattr(block.cell.environment.item, "pin", None)
    if pin is None:
        raise BookError(f"{block.cell.environment.label}: a budget book needs a data folder")
    root: Path = pin.secret.parent
    return root


def _book_of(block: Block) -> BudgetBook:
    book = block.cell.environment.item.book
    assert book is not None
    return BudgetBook(book.place(_root_of(block)), None if book.budget is None else book.budget.guarantee)


def _data_of(block: Block) -> DataSet:
    item: Any = block.cell.environment.item
    content, digest = own_data.content_of(item)
    heads = None if item.pin is None else _root_of(block) / witness.FOLDER
    return DataSet(content, item.path.name, digest, heads)


def _charge_of(block: Block) -> Charge:
    """The most that the block can cost: its claim, once for each replicate."""
    reserved, cell = _reserved(block), block.cell
    event = PureEvent(reserved.epsilon) if isinstance(reserved, PureDP) else GaussianEvent(1 / _mu(reserved))
    first = cell.environment.first_row
    facts = {
        "suite": cell.spec.name, "cell": cell.name, "block": block.index, "key": block.key, "replications": block.n_reps,
        "relation": str(reserved.relation.value), "trust": str(cell.claim().trust.value), "noise": cell.noise,
        "seed": _seed_of(block),
    }  # fmt: skip
    return Charge({event: block.n_reps}, first, first + cell.spec.horizon, facts)


def _seed_of(block: Block) -> str | None:
    """Hash of the seed that others could draw the block's noise from; None where there is none."""
    if block.cell.noise != REPRODUCIBLE:
        return None
    seed = block.noise_seed
    return content_key([str(seed.entropy), list(seed.spawn_key)])


def _reserved(block: Block) -> Guarantee:
    """What a replicate may spend: its claim, with what a grid adds."""
    claim = block.cell.claim()
    factor = _GRID if block.cell.noise == SECURE else 1.0
    if isinstance(claim.stated, PureDP):
        return PureDP(claim.stated.epsilon * factor, relation=claim.relation, trust=claim.trust)
    return GaussianDP(claim.gaussian.mu * factor, relation=claim.relation, trust=claim.trust)


def _mu(reserved: Guarantee) -> float:
    mu = reserved.gdp().mu
    assert math.isfinite(mu)
    return mu
