"""A clock that was ahead: it is noticed, it locks the book, and a repair lets time go on without removing an entry."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from chains import rechain
from typer.testing import CliRunner

from bandana.flows.annexes.books import lookup as queries
from bandana.flows.annexes.books.bookkeeping import balance
from bandana.flows.annexes.books.bookkeeping import book as books
from bandana.flows.annexes.books.bookkeeping.book import BudgetBook, DataSet
from bandana.flows.annexes.books.bookkeeping.chain import clock_notes, last_in_time, time_of
from bandana.flows.annexes.books.bookkeeping.spending import Charge
from bandana.flows.cli import app
from bandana.flows.texts.mistakes import BookError
from bandana.privacy_core import ApproxDP, GaussianEvent

BUDGET, NOON, DATA = ApproxDP(3.0, 1e-6), datetime(2026, 11, 23, 12, tzinfo=UTC), DataSet(b"a,b\n0,1\n", "people.csv")
FACTS = {
    "suite": "s", "cell": "c", "block": 0, "key": "k", "replications": 1, "relation": "replace one record",
    "trust": "central", "noise": "secure", "seed": None,
}  # fmt: skip
CHARGE = Charge({GaussianEvent(100.0): 1}, 0, 1, FACTS)
AHEAD = NOON + timedelta(days=4017)


@pytest.fixture
def book(tmp_path):
    return BudgetBook(str(tmp_path / "books" / "trial.sqlite"), BUDGET)


@pytest.fixture
def at(monkeypatch):
    """Sets the clock."""

    def set_clock(time):
        for module in (books, queries):
            monkeypatch.setattr(module, "now", lambda: time)

    set_clock(NOON)
    return set_clock


@pytest.fixture
def locked(book, at):
    """1 opened and 2 charged at noon; 3 and 4 charged and settled eleven years ahead."""
    book.charge(CHARGE, DATA, "a run")
    at(AHEAD)
    book.settle(book.charge(CHARGE, DATA, "a run"), {GaussianEvent(200.0): 1}, DATA)
    at(NOON + timedelta(hours=1))
    return book


def test_a_clock_that_was_ahead_locks_the_book_until_it_is_repaired(locked, at):
    said = (
        "book trial: the clock here shows 2026-11-23 13:00 UTC, before the last entry of 2037-11-22 12:00: set it; if it is "
        "right, run `bandana book repair BOOK`"
    )
    for _ in range(2):
        with pytest.raises(BookError) as caught:
            locked.charge(CHARGE, DATA, "a run")
        assert str(caught.value) == said
    before = locked.state()
    receipt = locked.repair()
    assert locked.entries()[:4] == before.entries
    repaired = locked.entries()[-1]
    assert (repaired.number, repaired.hash, repaired.kind) == (5, receipt.hash, "repaired")
    assert repaired.facts["after"] == 2
    assert repaired.facts["note"] == "clock was ahead: times after entry 2 are not to be trusted; time goes on from now"
    assert time_of(repaired) == NOON + timedelta(hours=1)
    assert locked.state().charges == before.charges
    at(NOON + timedelta(hours=2))
    locked.charge(CHARGE, DATA, "a run")
    at(NOON + timedelta(hours=1))
    with pytest.raises(BookError, match=r"clock here shows 2026-11-23 13:00 UTC, before the last entry of 2026-11-23 14:00"):
        locked.charge(CHARGE, DATA, "a run whose clock is behind the entries after the repair")
    assert [entry.number for entry in locked.state().entries] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(minutes=4), timedelta(minutes=-30)])
def test_there_is_nothing_to_repair(book, at, ahead):
    at(NOON + ahead)
    book.charge(CHARGE, DATA, "a run")
    at(NOON)
    before = book.entries()
    with pytest.raises(
        BookError, match=r"book trial: there is nothing to repair: .* the clock here \(2026-11-23 12:00 UTC\)"
    ):
        book.repair()
    assert book.entries() == before


def test_a_repaired_book_needs_no_second_repair_and_may_need_another_one_later(locked, at):
    locked.repair()
    with pytest.raises(BookError, match="there is nothing to repair"):
        locked.repair()
    at(AHEAD + timedelta(days=1))
    locked.charge(CHARGE, DATA, "a run")
    at(NOON + timedelta(hours=2))
    assert locked.repair().number == 7
    assert locked.entries()[-1].facts["after"] == 5
    assert len(clock_notes(locked.entries(), NOON + timedelta(hours=2))) == 2


def test_a_book_that_was_opened_by_a_clock_that_was_ahead(book, at):
    at(AHEAD)
    book.charge(CHARGE, DATA, "a run")
    at(NOON)
    book.repair()
    assert book.entries()[-1].facts["after"] == 0
    book.charge(CHARGE, DATA, "a run")
    assert len(book.state().charges) == 2


def test_a_repair_between_checkpoints(book, at, monkeypatch):
    monkeypatch.setattr(balance, "EVERY", 3)
    at(AHEAD)
    for _ in range(8):
        book.charge(CHARGE, DATA, "a run")
    at(NOON)
    book.repair()
    for _ in range(8):
        book.charge(CHARGE, DATA, "a run")
    state = book.state()
    assert len(state.charges) == 16
    assert {entry.kind for entry in state.entries} == {"opened", "charged", "checkpoint", "repaired"}


def test_no_book_is_repaired_that_is_not_there_or_damaged(tmp_path, locked):
    missing = tmp_path / "missing.sqlite"
    with pytest.raises(BookError, match="does not exist"):
        BudgetBook(str(missing)).repair()
    assert not missing.exists()
    rechain(locked.place, lambda rows: [*rows[:1], rows[1]._replace(body={}), *rows[2:]])
    with pytest.raises(BookError, match=r"entry 2 \(charged\)"):
        locked.repair()


def test_show_verify_and_repair_tell_of_the_clock(locked, tmp_path):
    def run(*words, fails=0):
        done = CliRunner().invoke(app, ["book", *words, "--data", str(tmp_path)])
        assert done.exit_code == fails, done.output
        return " ".join(done.output.split())

    ahead = (
        "clock: the clock here shows 2026-11-23 13:00 UTC, and the entries after 2 are dated ahead of it, the last one "
        "2037-11-22: set the clock, or if it is right, run `bandana book repair BOOK`"
    )
    jump = "clock: entry 3 lies 4,017 days after the one before it: a clock may have been ahead"
    for command in ("show", "verify"):
        assert f"{jump} {ahead}" in run(command, "trial")
    assert [f"clock: {note}" for note in json.loads(run("verify", "trial", "--json"))["clock"]] == [jump, ahead]
    assert run("repair", "trial").startswith("book trial: entry 5 was added (")
    assert "error: book trial: there is nothing to repair" in run("repair", "trial", fails=1)
    note = "clock: entry 5, a repair: clock was ahead: times after entry 2 are not to be trusted; time goes on from now"
    for command in ("show", "verify"):
        shown = run(command, "trial")
        assert shown.endswith(note)
        assert jump not in shown
    assert json.loads(run("show", "trial", "--json"))["clock"] == [note.removeprefix("clock: ")]


def test_an_honest_book_tells_nothing_of_clocks(book, at):
    book.charge(CHARGE, DATA, "a run")
    at(NOON + timedelta(days=399))
    book.charge(CHARGE, DATA, "a run")
    assert clock_notes(book.entries(), NOON + timedelta(days=399)) == []
    assert last_in_time(book.entries(), NOON + timedelta(days=399)) == 3


def test_a_suite_whose_clock_has_jumped_is_warned(book, at):
    book.charge(CHARGE, DATA, "a run")
    at(NOON + timedelta(days=400))
    book.check_affords([CHARGE], DATA, "a suite")
    at(AHEAD)
    with pytest.warns(
        UserWarning, match=r"book trial: the last entry is 4,017 days old; if the clock here is ahead, set it"
    ):
        book.check_affords([CHARGE], DATA, "a suite")
