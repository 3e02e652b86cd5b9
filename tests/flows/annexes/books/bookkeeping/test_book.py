"""A budget book: what it charges, what it refuses, and what it notices."""

import math
import multiprocessing
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bandana.flows.annexes.books.bookkeeping import book as books
from bandana.flows.annexes.books.bookkeeping import storage
from bandana.flows.annexes.books.bookkeeping.book import BudgetBook, DataSet
from bandana.flows.annexes.books.bookkeeping.spending import Charge
from bandana.flows.texts.mistakes import BookError
from bandana.privacy_core import ApproxDP, GaussianDP, GaussianEvent, PureDP, PureEvent

BUDGET = ApproxDP(3.0, 1e-6)
PEOPLE = b"a,b\n0,1\n1,0\n"


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "data" / "books" / "trial.sqlite")


@pytest.fixture
def data(tmp_path):
    return DataSet(PEOPLE, "people.csv", "people", tmp_path / "data" / "books" / "heads")


def charge(mu=0.1, count=1, key="k", seed=None, span=(0, 10), relation="replace one record"):
    facts = {"suite": "s", "cell": f"cell {key}", "block": 0, "key": key, "replications": count, "relation": relation,
             "trust": "central", "noise": "secure", "seed": seed}  # fmt: skip
    return Charge({GaussianEvent(1 / mu): count}, *span, facts)


def only_line(caught):
    said = str(caught.value)
    assert said.startswith("book trial: ")
    assert "\n" not in said
    return said


def test_a_charge_stands_until_what_was_drawn_replaces_it(place, data):
    book = BudgetBook(place, BUDGET)
    first = book.charge(charge(0.3, 2), data, "a run")
    before = book.state()
    assert [c.is_settled for c in before.charges] == [False]
    book.settle(first, {GaussianEvent(10.0): 2}, data)
    after = book.state()
    assert [c.is_settled for c in after.charges] == [True]
    assert dict(after.charges[0].events) == {GaussianEvent(10.0): 2}
    assert after.spent < before.spent
    assert len(after.entries) == 3
    nothing = book.charge(charge(0.3, key="other"), data, "a run")
    book.settle(nothing, {}, data)
    assert book.state().spent == after.spent


def test_what_would_overspend_is_refused_with_what_is_left_and_leaves_no_trace(place, data):
    book = BudgetBook(place, BUDGET)
    book.charge(charge(0.5), data, "a run")
    before = book.entries()
    for refused in (book.charge, lambda c, d, w: book.check_affords([c], d, w)):
        with pytest.raises(BookError) as caught:
            refused(charge(0.5), data, "cell b, block 0")
        alone, both = GaussianDP(0.5).epsilon_at(1e-6), GaussianDP(math.sqrt(0.5)).epsilon_at(1e-6)
        rest = GaussianDP(math.sqrt(GaussianDP.from_epsilon_delta(3.0, 1e-6).mu ** 2 - 0.25)).epsilon_at(1e-6)
        assert only_line(caught) == (
            f"book trial: out of budget: cell b, block 0 would cost epsilon {alone:.4g} at delta 1e-06, and {both:.4g} "
            f"together with earlier runs; the budget is 3, and left is one run of "
            f"at most epsilon {rest:.4g}; nothing was drawn"
        )
    assert book.entries() == before
    book.charge(charge(0.5, span=(10, 20)), data, "other users")
    book.check_affords([charge(0.2)] * 2, data, "two small ones")
    with pytest.raises(BookError, match="out of budget"):
        book.check_affords([charge(0.2)] * 20, data, "a grid as a whole")


def test_a_book_is_of_one_data_set_one_budget_and_one_relation(place, data):
    book = BudgetBook(place, BUDGET)
    book.charge(charge(), data, "a run")
    for rows in (PEOPLE.replace(b"0", b"1"), b"", PEOPLE[:-4]):
        with pytest.raises(BookError, match=r"belongs to another data set than others.csv") as caught:
            book.charge(charge(), DataSet(rows, "others.csv"), "a run")
        only_line(caught)
    for other in (ApproxDP(4.0, 1e-6), ApproxDP(3.0, 1e-5), PureDP(3.0)):
        with pytest.raises(BookError, match="a book's budget does not change"):
            BudgetBook(place, other).charge(charge(), data, "a run")
    with pytest.raises(BookError, match="replace one record, and cell k states what it costs to replace one reward"):
        book.charge(charge(relation="replace one reward"), data, "a run")
    BudgetBook(place).charge(charge(), data, "a spec that leaves the budget to the book")
    assert len(book.entries()) == 3
    with pytest.raises(BookError, match="does not exist yet: give its budget in the spec"):
        BudgetBook(place + ".new").charge(charge(), DataSet(PEOPLE, "people.csv"), "a run")


def test_rows_that_are_added_at_the_end_are_new_people(place, data):
    book = BudgetBook(place, BUDGET)
    book.charge(charge(0.5, span=(0, 2)), data, "a run")
    grown = replace(data, content=PEOPLE + b"1,1\n", digest="grown")
    book.charge(charge(0.5, span=(2, 3)), grown, "a run over the new person")
    assert [entry.kind for entry in book.entries()] == ["opened", "charged", "extended", "charged"]
    with pytest.raises(BookError, match="out of budget"):
        book.charge(charge(0.5, span=(0, 3)), grown, "a run over all")
    with pytest.raises(BookError, match="belongs to another data set"):
        book.charge(charge(0.1, span=(0, 2)), data, "a run over the file as it was")
    edited = replace(grown, content=PEOPLE + b"0,1\n")
    with pytest.raises(BookError, match="belongs to another data set"):
        book.charge(charge(0.1), edited, "a run over an edited row")
    open_line = DataSet(PEOPLE[:-1], "people.csv")
    unended = BudgetBook(place + ".unended", BUDGET)
    unended.charge(charge(), open_line, "a run")
    with pytest.raises(BookError, match=r"people.csv grew, and its last line was not ended before"):
        unended.charge(charge(), replace(open_line, content=PEOPLE[:-1] + b"5\n"), "a run")


def test_a_data_set_has_one_book(place, data):
    BudgetBook(place, BUDGET).charge(charge(), data, "a run")
    with pytest.raises(BookError, match=r"people.csv is in the book books/trial.sqlite; one data set has one book"):
        BudgetBook(place.replace("trial", "fresh"), BUDGET).charge(charge(), data, "a run")


def test_two_runs_with_one_seed_are_refused_and_a_killed_one_may_go_on(place, data):
    book = BudgetBook(place, BUDGET)
    book.charge(charge(key="one", seed="ab"), data, "a run")
    book.charge(charge(key="one", seed="ab"), data, "the same block again, after a kill")
    book.charge(charge(key="two", seed="cd"), data, "another seed")
    for _ in range(2):
        book.charge(charge(key="three", seed=None), data, "secure noise")
    with pytest.raises(BookError, match=r"entry 2 \(cell one\) drew noise from the same seed") as caught:
        book.charge(charge(key="two", seed="ab"), data, "a run")
    assert "noise: secure" in only_line(caught)


def test_a_budget_without_delta_refuses_gaussian_noise(place, data):
    book = BudgetBook(place, PureDP(1.0))
    with pytest.raises(BookError, match="a run: a budget of 1-DP cannot count GaussianEvent"):
        book.charge(charge(), data, "a run")
    pure = Charge({PureEvent(0.4): 2}, 0, 10, charge().facts)
    book.charge(pure, data, "a run")
    with pytest.raises(BookError, match=r"left is one run of at most epsilon 0\.2"):
        book.charge(pure, data, "a run")


def test_a_cut_replaced_or_deleted_book_is_noticed_by_the_data_folder(place, data, tmp_path):
    book = BudgetBook(place, BUDGET)
    book.charge(charge(), data, "a run")
    copy = (tmp_path / "data" / "books" / "trial.sqlite").read_bytes()
    last = book.charge(charge(), data, "a run")
    for change in (
        lambda path: path.write_bytes(copy),
        lambda path: path.unlink(),
        lambda path: sqlite3.connect(path, isolation_level=None).execute("DELETE FROM book_entries WHERE number = 3"),
    ):
        whole = (tmp_path / "data" / "books" / "trial.sqlite").read_bytes()
        change(tmp_path / "data" / "books" / "trial.sqlite")
        with pytest.raises(BookError, match=r"ends with entry \d, but this data folder saw entry 3") as caught:
            book.charge(charge(), data, "a run")
        only_line(caught)
        (tmp_path / "data" / "books" / "trial.sqlite").write_bytes(whole)
    assert book.check_seen([(last, "a result")]) == 1
    with pytest.raises(BookError, match="a result names another book of this name"):
        book.check_seen([(last._replace(book="f" * 64), "a result")])


def test_a_moved_data_folder_keeps_its_book(place, data, tmp_path):
    BudgetBook(place, BUDGET).charge(charge(), data, "a run")
    (tmp_path / "data").rename(tmp_path / "moved")
    moved = DataSet(PEOPLE, "people.csv", "people", tmp_path / "moved" / "books" / "heads")
    BudgetBook(place.replace("/data/", "/moved/"), BUDGET).charge(charge(), moved, "a run")


EDITS = {
    "edited": "UPDATE book_entries SET body = replace(body, 'central', 'joint') WHERE number = 2",
    "removed": "DELETE FROM book_entries WHERE number = 2",
    "swapped": "UPDATE book_entries SET number = CASE number WHEN 2 THEN -3 WHEN 3 THEN -2 ELSE number END",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_book_takes_no_more_charges(place, data, edit):
    book = BudgetBook(place, BUDGET)
    for _ in range(3):
        book.charge(charge(), data, "a run")
    with sqlite3.connect(place) as connection:
        connection.execute(EDITS[edit])
        connection.execute("UPDATE book_entries SET number = -number WHERE number < 0")
    connection.close()
    for use in (book.state, lambda: book.charge(charge(), DataSet(PEOPLE, "people.csv"), "a run")):
        with pytest.raises(BookError, match=r"entry 2") as caught:
            use()
        only_line(caught)


def test_a_damaged_file_is_one_line_and_stays_as_it_is(place, data, tmp_path):
    file = tmp_path / "data" / "books" / "trial.sqlite"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no database at all, but long enough to be read as one" * 40)
    for use in (BudgetBook(place).state, lambda: BudgetBook(place, BUDGET).charge(charge(), data, "a run")):
        with pytest.raises(BookError, match=r"trial.sqlite is damaged: .*; restore it from a copy") as caught:
            use()
        only_line(caught)
    assert file.read_bytes().startswith(b"no database")


def test_a_locked_book(place, data, monkeypatch):
    monkeypatch.setattr(storage, "PATIENCE", 0.1)
    book = BudgetBook(place, BUDGET)
    book.charge(charge(), data, "a run")
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BookError, match=r"locked by another process for 0.1 s; try again when it is done") as caught:
        book.charge(charge(), data, "a run")
    only_line(caught)
    other.close()
    assert len(book.entries()) == 2


def test_a_clock_that_goes_backwards_writes_nothing(place, data, monkeypatch):
    book = BudgetBook(place, BUDGET)
    book.charge(charge(), data, "a run")
    monkeypatch.setattr(books, "now", lambda: datetime.now(UTC) - timedelta(days=1))
    with pytest.raises(BookError, match=r"clock here shows .* before the last entry") as caught:
        book.charge(charge(), data, "a run")
    only_line(caught)
    assert len(book.entries()) == 2


def _spend(place, data, n_charges):
    book = BudgetBook(place, BUDGET)
    for _ in range(n_charges):
        try:
            book.charge(charge(0.2), data, "a run")
        except BookError:
            return


def test_runs_at_once_spend_no_more_than_the_budget(place, data):
    """Three processes with 20 charges each, of which 10 fit: 0.6477^2 / 0.2^2 is 10.49."""
    context = multiprocessing.get_context("fork")
    runs = [context.Process(target=_spend, args=(place, data, 20)) for _ in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    state = BudgetBook(place).state()
    assert len(state.charges) == 10
    assert 2.7 < state.spent <= 3.0


def test_an_address_needs_a_name_and_holds_no_password():
    with pytest.raises(BookError, match="leave the password out of the address"):
        BudgetBook("postgresql://me:secret@host/data#trial")
    with pytest.raises(BookError, match="must end with the book's name"):
        BudgetBook("postgresql://host/data")
