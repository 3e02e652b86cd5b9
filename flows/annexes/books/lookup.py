"""Contents of a budget book, and the check that it is whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group
from rich.table import Table
from rich.text import Text

from bandana.audits.names import titled
from bandana.flows.annexes.books import charges as charging
from bandana.flows.annexes.books.bookkeeping import spending, witness
from bandana.flows.annexes.books.bookkeeping.balance import Balance
from bandana.flows.annexes.books.bookkeeping.book import BudgetBook, Receipt, State, budget_fields, now
from bandana.flows.annexes.books.bookkeeping.chain import Entry, check_chain, clock_notes
from bandana.flows.annexes.books.bookkeeping.spending import Charge
from bandana.flows.annexes.books.bookkeeping.storage import is_address
from bandana.flows.cells.play import BENCHMARK, BOOK
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.keys.content import content_key
from bandana.flows.own.data import pinned
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import BookError, SpecError

EXPORT = "bandana/book-export/1"
_SHORTEST = 8


def books_of(named: str, folder: DataFolder) -> list[BudgetBook]:
    """The books that are meant: those of a spec, or one by its name, file or address.

    Raises:
      SpecError: the spec has none, or is wrong.
    """
    if not named.endswith((".yaml", ".yml")):
        is_name = not is_address(named) and not Path(named).exists() and "/" not in named
        return [
            BudgetBook(str(folder.book(named)) if is_name else named if is_address(named) else str(Path(named).absolute()))
        ]
    spec = load_spec(Path(named))
    places = dict.fromkeys(item.book.place(folder.root) for item in spec.environment if item.book is not None)
    if not places:
        raise SpecError(f"{named}: environment.data: no environment has a budget book")
    return [BudgetBook(place) for place in places]


def one_of(named: str, folder: DataFolder) -> BudgetBook:
    """The one book that is meant.

    Raises:
      SpecError: the spec has none or several, or is wrong.
    """
    matches = books_of(named, folder)
    if len(matches) > 1:
        raise SpecError(f"{named}: names {len(matches)} books; give one of them by its name")
    return matches[0]


def open_books(path: Path, folder: DataFolder) -> list[str]:
    """Opens the books that a spec names, and charges the earlier runs over the same rows; one line for each book.

    Raises:
      SpecError: the spec has none, or is wrong.
      BookError: a book cannot be used, or its budget cannot count the noise of an earlier run.
    """
    spec = pinned(load_spec(path), folder.root)
    if not (lines := charging.open_books(block for cell in cells_of(spec) for block in cell.blocks())):
        raise SpecError(f"{path}: environment.data: no environment has a budget book")
    return lines


def show(state: State) -> JsonObject:
    """A book as plain data.

    Returns:
      `book`, `budget`, `spent`, `left` and `counted`, epsilons at the budget's delta: what all runs compose to, the largest
      run that still fits, and what the filter counts; `relation`; `earlier` and `unprotected`, see `State`; `suites`, each
      with what it cost in all, its cells, and the most costly of them; `last`: number, time and hash of the last entry;
      `clock`: what its times tell of clocks that were ahead, usually nothing.
    """
    charges, budget, last = state.charges, state.budget, state.entries[-1]
    suites = {charge.facts["suite"]: None for charge in charges}
    return {
        "book": state.name.removeprefix("book "),
        "budget": budget_fields(budget),
        "relation": state.relation,
        "spent": state.spent,
        "counted": spending.at(spending.level(charges, budget), budget),
        "left": state.left,
        "open": sum(not charge.is_settled for charge in charges),
        "earlier": state.earlier,
        "unprotected": state.unprotected,
        "suites": [_suite(name, [c for c in charges if c.facts["suite"] == name], state) for name in suites],
        "last": {"number": last.number, "time": last.time, "hash": last.hash},
        "clock": clock_notes(state.entries, now()),
    }


def _suite(name: str, charges: Sequence[Charge], state: State) -> JsonObject:
    cells = {charge.facts["cell"]: None for charge in charges}
    rows = [_cell(cell, [c for c in charges if c.facts["cell"] == cell], state) for cell in cells]
    return {
        "suite": name,
        "epsilon": spending.epsilon_of(charges, state.budget),
        "most_costly_cell": max(cell["epsilon"] for cell in rows),
        "cells": rows,
    }


def _cell(name: str, charges: Sequence[Charge], state: State) -> JsonObject:
    return {
        "cell": name,
        "title": titled(name, charges[-1].facts.get("claim", "")),
        "blocks": len(charges),
        "open": sum(not charge.is_settled for charge in charges),
        "replications": sum(charge.facts["replications"] for charge in charges),
        "records": [min(charge.start for charge in charges), max(charge.stop for charge in charges)],
        "noise": charges[-1].facts["noise"],
        "trust": charges[-1].facts["trust"],
        "epsilon": spending.epsilon_of(charges, state.budget),
    }


def render(shown: JsonObject) -> Group:
    """A book for people."""
    delta = shown["budget"].get("delta")
    at = "pure" if delta is None else f"delta {delta:g}"
    table = Table("suite", "cell", "runs", "rows", "noise", f"epsilon, {at}")
    for suite in shown["suites"]:
        for cell in suite["cells"]:
            runs = f"{cell['replications']:,}" + (f" ({cell['open']} blocks open)" if cell["open"] else "")
            rows = f"{cell['records'][0]:,} to {cell['records'][1] - 1:,}"
            table.add_row(suite["suite"], cell["title"], runs, rows, cell["noise"], f"{cell['epsilon']:.4g}")
        if len(suite["cells"]) > 1:
            table.add_row(suite["suite"], f"all {len(suite['cells'])} cells together", "", "", "", f"{suite['epsilon']:.4g}")
    counted = f"; {shown['counted']:.4g} counts against the budget" if shown["counted"] > shown["spent"] * 1.001 else ""
    bare = f"{shown['unprotected']} results without noise, which no budget covers"
    before = f"{shown['earlier']} runs, which are charged, and {bare}"
    lines = [
        f"budget: epsilon {shown['budget']['epsilon']:g}" + ("" if delta is None else f" at delta {delta:g}"),
        f"spent: epsilon {shown['spent']:.4g}, all runs together, on the worst record" + counted,
        f"left: one run of at most epsilon {shown['left']:.4g}",
        *([f"before the book: {before}"] if shown["earlier"] or shown["unprotected"] else []),
        *([f"unit: {shown['relation']}"] if shown["relation"] else []),
        f"last entry: {shown['last']['number']} of {shown['last']['time'][:19]} UTC, {shown['last']['hash']}",
        *(f"clock: {note}" for note in shown["clock"]),
    ]
    return Group(Text(f"book {shown['book']}"), table, *(Text(line) for line in lines))


def verify(book: BudgetBook, folder: DataFolder, heads: Sequence[str] = ()) -> JsonObject:
    """Checks a book: its chain, and that nothing which this data folder saw of it is gone.

    Args:
      book: the book.
      folder: whose results and notes name entries of it.
      heads: hashes of entries that somebody saw, such as that of a report; a few digits suffice.

    Returns:
      `book`; `entries`, how many; `seen`, how many entries were looked up; `last`, the hash of the last one; `clock`, what
      its times tell of clocks that were ahead.

    Raises:
      BookError: the first thing that is wrong.
    """
    n_seen = book.check_seen(_receipts(folder, book))
    state = book.state()
    for head in heads:
        _check_hash(state.entries, head, state.name)
    return {
        "book": state.name, "entries": len(state.entries), "seen": n_seen + len(heads), "last": state.entries[-1].hash,
        "clock": clock_notes(state.entries, now()),
    }  # fmt: skip


def _check_hash(entries: Sequence[Entry], head: str, name: str) -> None:
    if len(head) < _SHORTEST:
        raise SpecError(f"--head: give at least {_SHORTEST} digits of the hash, got {head!r}")
    if not any(entry.hash.startswith(head) for entry in entries):
        raise BookError(
            f"{name}: no entry has the hash {head}: the book was cut or replaced, or the hash is of another book"
        )


def _receipts(folder: DataFolder, book: BudgetBook) -> Iterator[tuple[Receipt, str]]:
    """Entries of the book that the data folder saw: the last one of each data set, and those that stored results name."""
    heads = folder.root / witness.FOLDER
    for seen in witness.of_book(heads, book.place):
        yield Receipt(seen.first, seen.number, seen.hash), "this data folder"
    store, place = Store(folder.results), content_key(witness.place_from(heads, book.place))
    for key in sorted(store.sizes(BENCHMARK)):
        receipt = (store.describe(BENCHMARK, key) or {}).get(BOOK)
        if receipt is not None and receipt["place"] == place:
            yield Receipt(receipt["book"], receipt["number"], receipt["hash"]), f"the stored result {key[:12]}"


def exported(state: State) -> str:
    """A book as JSON, entry by entry: enough to check its chain and to compose its charges anew."""
    tree = {"format": EXPORT, "book": state.name, "entries": [entry._asdict() for entry in state.entries]}
    return json.dumps(tree, indent=1) + "\n"


def check_export(path: Path, heads: Sequence[str] = ()) -> JsonObject:
    """Checks an exported book: see `verify`.

    Raises:
      BookError: it is no export, or was changed.
    """
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        entries = [Entry(**entry) for entry in tree["entries"]]
        name = str(tree["book"])
        if tree["format"] != EXPORT or not entries:
            raise ValueError(f"its format is {tree['format']!r}")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BookError(f"{path}: this is no exported book: {error}") from error
    check_chain(entries)
    Balance.of(entries)
    for head in heads:
        _check_hash(entries, head, str(path))
    clock = clock_notes(entries, now())
    return {"book": name, "entries": len(entries), "seen": len(heads), "last": entries[-1].hash, "clock": clock}
