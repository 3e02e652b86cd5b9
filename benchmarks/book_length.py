"""Seconds of one charge of a budget book, with the settlement that follows it, in books of more and more entries.

    python -m benchmarks.book_length [ENTRIES ...]

A book is written in bulk as an earlier release would have left it, without checkpoints; its first charge, which reads all of
it and writes the first checkpoint, is shown by itself.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from bandana.flows.annexes.books.bookkeeping.book import BudgetBook
from bandana.flows.annexes.books.bookkeeping.chain import CHARGED, SETTLED, Entry, seal
from bandana.flows.annexes.books.bookkeeping.known import DataSet
from bandana.flows.annexes.books.bookkeeping.spending import Charge
from bandana.flows.keys.content import canonical
from bandana.privacy_core import ApproxDP, Event, GaussianEvent
from benchmarks.result import Result

_BUDGET = ApproxDP(3.0, 1e-6)
_EVENTS: dict[Event, int] = {GaussianEvent(1e5): 5}
_SPANS = 4
"""Disjoint stretches of rows that runs pay for in turn."""


class Seconds(NamedTuple):
    """What a book of some length takes."""

    n_entries: int
    first: float
    """First charge and settlement after the bulk."""
    each: float
    """Median of the later ones."""
    mean: float
    """Mean of the later ones, those with a checkpoint among them."""
    charge: float
    """Median processor time of the charges alone, without their settlements."""


def charge_of(number: int) -> Charge:
    """A block of five replicates, over one of four stretches of rows."""
    start = 1000 * (number % _SPANS)
    facts = {
        "suite": "nights", "cell": f"adar-ucb eps={number % 7}", "block": number, "key": f"{number:064x}", "replications": 5,
        "relation": "replace one record", "trust": "central", "noise": "reproducible", "seed": f"{number:064x}",
    }  # fmt: skip
    return Charge(_EVENTS, start, start + 1000, facts)


def write_book(place: str, data: DataSet, n_entries: int) -> None:
    """Writes a book of charges that are settled, without checkpoints.

    Args:
      place: of the file, which is not there yet.
      data: whose book it is.
      n_entries: at least 3.
    """
    book = BudgetBook(place, _BUDGET)
    book.settle(book.charge(charge_of(2), data, "a run"), _EVENTS, data)
    entries = book.entries()
    settled = {"entry": 0, "events": charge_of(2).body()["events"]}
    for number in range(4, n_entries + 1):
        last = entries[-1]
        kind, body = (CHARGED, charge_of(number).body()) if number % 2 == 0 else (SETTLED, settled | {"entry": number - 1})
        fields = number, last.time, kind, canonical(body)
        entries.append(Entry(*fields, last.hash, seal(*fields, last.hash)))
    with closing(sqlite3.connect(place)) as connection, connection:
        rows = [("book", *entry) for entry in entries[3:]]
        connection.executemany(
            "INSERT INTO book_entries (book, number, time, kind, body, previous, hash) VALUES (?, ?, ?, ?, ?, ?, ?)", rows
        )


def seconds_of(n_entries: int, n_charges: int = 80) -> Seconds:
    """Times a book of that many entries, with a note of it in a data folder."""
    with tempfile.TemporaryDirectory() as name:
        data = DataSet(b"a,b\n" + b"0,1\n" * 4000, "people.csv", "people", Path(name) / "books" / "heads")
        place = str(Path(name) / "books" / "long.sqlite")
        write_book(place, data, n_entries)
        book, times, charges = BudgetBook(place), [], []
        for number in range(n_charges + 1):
            begun, worked = time.perf_counter(), time.process_time()
            charged = book.charge(charge_of(10**6 + number), data, "a run")
            charges.append(time.process_time() - worked)
            book.settle(charged, _EVENTS, data)
            times.append(time.perf_counter() - begun)
    each, mean = statistics.median(times[1:]), statistics.mean(times[1:])
    return Seconds(n_entries, times[0], each, mean, statistics.median(charges[1:]))


def measure() -> list[Result]:
    """A charge of a book of 100,000 entries against one of 100."""
    short, long = seconds_of(100), seconds_of(100_000)
    return [
        Result("one charge: book of 100,000 entries / book of 100", long.mean / short.mean, 2.0, "ratio"),
        Result("a charge in a book of 100,000 entries", long.charge * 1e3, 10, "ms"),
    ]


def main(lengths: Sequence[int]) -> int:
    """Prints what books of the given lengths take; the exit code is 1 if the longest costs more than twice the shortest."""
    found = [seconds_of(length) for length in lengths]
    for one in found:
        print(f"{one.n_entries:8,} entries: first charge {one.first:.4f} s, then {one.each:.4f} s (mean {one.mean:.4f} s)")
    ratio = found[-1].mean / found[0].mean
    print(f"ratio {ratio:.3g}, at most 2")
    return int(ratio > 2)


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]] or [100, 10_000, 100_000]))
