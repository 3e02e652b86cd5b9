"""Checkpoints in a book's chain: a charge reads from the last one on, decides the same, and all else is verified whole."""

import json
import sqlite3
from contextlib import closing

import pytest
from chains import changed, rechain, replaced
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.flows.annexes.books.bookkeeping import balance, spending
from bandana.flows.annexes.books.bookkeeping import book as books
from bandana.flows.annexes.books.bookkeeping.balance import Balance
from bandana.flows.annexes.books.bookkeeping.book import BudgetBook, DataSet
from bandana.flows.annexes.books.bookkeeping.chain import CHECKPOINT
from bandana.flows.annexes.books.bookkeeping.spending import Charge
from bandana.flows.annexes.books.bookkeeping.storage import Storage
from bandana.flows.texts.mistakes import BookError
from bandana.privacy_core import ApproxDP, GaussianEvent, LaplaceEvent
from benchmarks.book_length import charge_of, write_book

BUDGET, PEOPLE = ApproxDP(3.0, 1e-6), b"a,b\n0,1\n1,0\n"


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "data" / "books" / "trial.sqlite")


@pytest.fixture
def data(tmp_path):
    return DataSet(PEOPLE, "people.csv", "people", tmp_path / "data" / "books" / "heads")


@pytest.fixture
def often(monkeypatch):
    """A checkpoint after every four entries."""
    monkeypatch.setattr(balance, "EVERY", 4)


def charge(mu=0.1, key="k", seed=None, span=(0, 10), relation="replace one record", event=GaussianEvent):
    facts = {"suite": "s", "cell": f"cell {key}", "block": 0, "key": key, "replications": 1, "relation": relation,
             "trust": "central", "noise": "secure", "seed": seed}  # fmt: skip
    return Charge({event(1 / mu): 1}, *span, facts)


def kinds(book):
    return [entry.kind for entry in book.entries()]


def known_to_a_charge(book, data):
    """The entries that a charge reads, and what it takes records to have spent."""
    with book._writing(data) as (writer, state):
        return [entry.number for entry in writer.entries], spending.level(state.charges, BUDGET)


@pytest.mark.parametrize("n_entries", [100, 3001])
def test_an_old_book_gets_its_first_checkpoint_at_the_next_charge_which_later_ones_read_from(place, data, n_entries):
    write_book(place, data, n_entries)
    book = BudgetBook(place)
    assert CHECKPOINT not in kinds(book)
    before = book.state()
    receipt = book.charge(charge_of(10**6), data, "a run")
    assert kinds(book)[n_entries:] == ["checkpoint", "charged"]
    assert receipt.number == n_entries + 2
    read, level = known_to_a_charge(book, data)
    assert read == [1, n_entries + 1, n_entries + 2]
    book.settle(receipt, charge_of(0).events, data)
    after = book.state()
    assert level == spending.level(after.charges, BUDGET) > spending.level(before.charges, BUDGET)
    assert len(after.charges) == len(before.charges) + 1


def test_a_refused_charge_leaves_no_checkpoint(place, data):
    write_book(place, data, 100)
    with pytest.raises(BookError, match="out of budget"):
        BudgetBook(place).charge(charge(5.0), data, "a run")
    assert len(BudgetBook(place).entries()) == 100


def test_a_charge_reads_no_more_entries_however_long_the_book_is(place, data, often):
    book, n_read = BudgetBook(place, BUDGET), []
    for number in range(25):
        receipt = book.charge(charge(0.01, str(number)), data, "a run")
        if number % 3:
            book.settle(receipt, {GaussianEvent(200.0): 1}, data)
        n_read.append(len(known_to_a_charge(book, data)[0]))
    assert max(n_read) == max(n_read[:10]) < 12
    assert kinds(book).count(CHECKPOINT) > 7
    assert len(book.state().charges) == 25


runs = st.tuples(
    st.integers(0, 9), st.integers(1, 10), st.sampled_from([0.02, 0.05, 0.3]),
    st.sampled_from([GaussianEvent, LaplaceEvent]), st.sampled_from(["open", "now", "later", "nothing"]),
)  # fmt: skip


@settings(max_examples=8)
@given(st.lists(runs, min_size=1, max_size=9))
def test_a_charge_decides_from_checkpoints_what_it_would_decide_from_the_whole_chain(tmp_path_factory, given_runs):
    folder = tmp_path_factory.mktemp("book")
    place, data, often = str(folder / "trial.sqlite"), DataSet(PEOPLE, "people.csv"), pytest.MonkeyPatch()
    often.setattr(balance, "EVERY", 3)
    try:
        book, later = BudgetBook(place, BUDGET), []
        for number, (start, length, mu, event, end) in enumerate(given_runs):
            paid = charge(mu, str(number), span=(start, start + length), event=event)
            known = book.state().charges if number else []
            overlapping = [old for old in known if old.start < paid.stop and paid.start < old.stop]
            if spending.is_over(spending.level([*overlapping, paid], BUDGET), BUDGET):
                with pytest.raises(BookError, match="out of budget"):
                    book.charge(paid, data, "a run")
                continue
            receipt = book.charge(paid, data, "a run")
            if end in ("now", "nothing"):
                book.settle(receipt, {event(2 / mu): 1} if end == "now" else {}, data)
            elif end == "later":
                later.append((receipt, event(3 / mu)))
        for receipt, drawn in later:
            book.settle(receipt, {drawn: 1}, data)
        state = book.state()
        assert known_to_a_charge(book, data)[1] == spending.level(state.charges, BUDGET)
        by_span = Balance.of(state.entries).by_span()
        assert spending.epsilon_of(by_span, BUDGET) == state.spent
    finally:
        often.undo()


def test_what_came_before_a_checkpoint_still_counts(place, data, often):
    book = BudgetBook(place, BUDGET)
    first = book.charge(charge(0.4, "one", seed="ab"), data, "a run")
    for number in range(12):
        book.settle(book.charge(charge(0.01, str(number)), data, "a run"), {GaussianEvent(200.0): 1}, data)
    assert kinds(book).count(CHECKPOINT) > 3
    with pytest.raises(BookError, match=r"entry 2 \(cell one\) drew noise from the same seed"):
        book.charge(charge(key="two", seed="ab"), data, "a run")
    with pytest.raises(BookError, match=r"entry 2 \(cell one\) drew noise from the same seed"):
        book.check_affords([charge(key=key, seed="ab") for key in ("two", "one")], data, "a run")
    with pytest.raises(BookError, match="replace one record, and cell k states what it costs to replace one reward"):
        book.charge(charge(relation="replace one reward"), data, "a run")
    with pytest.raises(BookError, match="out of budget"):
        book.charge(charge(0.6), data, "a run")
    book.settle(first, {GaussianEvent(50.0): 1}, data)
    with pytest.raises(BookError, match="entry 2 was settled by entry"):
        book.settle(first, {}, data)
    book.charge(charge(0.6, seed="ab", key="one"), data, "a run that fits now, and goes on after a kill")
    assert book.state().charges[0].events == {GaussianEvent(50.0): 1}


def test_a_relation_stays_although_all_charges_were_settled_with_nothing(place, data, often):
    book = BudgetBook(place, BUDGET)
    for _ in range(5):
        book.settle(book.charge(charge(), data, "a run"), {}, data)
    assert known_to_a_charge(book, data)[1] == 0
    with pytest.raises(BookError, match="one book holds one neighboring relation"):
        book.charge(charge(relation="replace one reward"), data, "a run")


def test_a_data_set_that_grew_before_a_checkpoint(place, data, often):
    book = BudgetBook(place, BUDGET)
    book.charge(charge(), data, "a run")
    grown = DataSet(PEOPLE + b"1,1\n", "people.csv", "grown", data.heads)
    for _ in range(9):
        book.charge(charge(), grown, "a run")
    assert known_to_a_charge(book, grown)[0][:3] == [1, 2, 3], "2 is what the data folder noted of the old file"
    for other in (data, DataSet(PEOPLE + b"0,1\n", "people.csv")):
        with pytest.raises(BookError, match="belongs to another data set"):
            book.charge(charge(), other, "a run")


def long_book(place, data):
    book = BudgetBook(place, BUDGET)
    for _ in range(12):
        book.charge(charge(0.01), data, "a run")
    assert kinds(book)[4] == CHECKPOINT
    return book


EARLY = {
    "edited": "UPDATE book_entries SET body = replace(body, 'central', 'joint') WHERE number = 3",
    "removed": "DELETE FROM book_entries WHERE number = 3",
}


@pytest.mark.parametrize("edit", ["edited", "removed"])
def test_an_early_entry_that_was_changed_is_found_before_a_suite_starts(place, data, often, edit):
    book = long_book(place, data)
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute(EARLY[edit])
    for use in (book.state, lambda: book.check_affords([charge(0.01)], data, "a suite")):
        with pytest.raises(BookError, match="entry 3 "):
            use()


@pytest.mark.parametrize("number", [16, 17])
@pytest.mark.parametrize("edit", ["edited", "removed"])
def test_a_late_entry_that_was_changed_is_found_by_a_charge(place, data, often, number, edit):
    book = long_book(place, data)
    for _ in range(2):
        book.charge(charge(0.01), data, "a run")
    assert [entry.number for entry in book.entries() if entry.kind == CHECKPOINT][-1] == 15
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute(EARLY[edit].replace("3", str(number)))
    with pytest.raises(BookError, match=f"entry {number} "):
        book.charge(charge(0.01), data, "a run")


@pytest.mark.parametrize("edit", ["edited", "removed"])
def test_an_entry_that_a_charge_looks_up_is_checked(place, data, often, edit):
    book = BudgetBook(place, BUDGET)
    first = book.charge(charge(0.01), data, "a run")
    long_book(place, data)
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute(EARLY[edit].replace("3", "2"))
    with pytest.raises(BookError, match="entry 2 "):
        book.settle(first, {}, data)


def test_a_book_that_was_replaced_by_a_longer_one_is_found_by_a_note_of_an_early_entry(place, data, tmp_path, often):
    BudgetBook(place, BUDGET).charge(charge(), data, "a run")
    (tmp_path / "data" / "books" / "trial.sqlite").unlink()
    bare = DataSet(PEOPLE, "people.csv")
    for _ in range(12):
        BudgetBook(place, BUDGET).charge(charge(0.01), bare, "a run that no data folder notes")
    with pytest.raises(BookError, match="has another entry 2, but this data folder saw"):
        BudgetBook(place).charge(charge(0.01), data, "a run")


SUMS = {
    "less spent": lambda body: {**body, "spent": [[0, 10, []]]},
    "no spending": lambda body: {**body, "spent": []},
    "another span": lambda body: {**body, "spent": [[20, 30, body["spent"][0][2]]]},
    "another relation": lambda body: {**body, "relation": "replace one reward"},
    "another data set": lambda body: {**body, "data": 2},
    "one more field": lambda body: {**body, "more": 1},
}


@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.parametrize("which", [0, -1])
def test_a_checkpoint_is_computed_anew_by_verify_and_before_a_suite(place, data, often, sums, which):
    book = long_book(place, data)
    number = [entry.number for entry in book.entries() if entry.kind == CHECKPOINT][which]
    body = SUMS[sums](json.loads(book.entries()[number - 1].body))
    rechain(place, replaced(number, body=body))
    for use in (book.state, lambda: book.check_affords([charge(0.01)], DataSet(PEOPLE, "people.csv"), "a suite")):
        with pytest.raises(
            BookError, match=rf"entry {number} \(checkpoint\): it is not what the entries before it add up to"
        ):
            use()


def test_a_charge_on_a_checkpoint_that_leaves_out_what_is_settled_next(place, often):
    data = DataSet(PEOPLE, "people.csv")
    book = long_book(place, data)
    number = [entry.number for entry in book.entries() if entry.kind == CHECKPOINT][-1]
    early = next(entry for entry in book.entries() if entry.kind == "charged")
    rechain(place, lambda rows: changed(number, spent=[])(rows)[:number])
    with pytest.raises(BookError, match=rf"it settles entry {early.number}, which no checkpoint counts"):
        book.settle(books.Receipt("", early.number, book.entries()[early.number - 1].hash), {}, data)


def test_a_long_checkpoint_waits_until_as_much_was_written(place, data, often):
    """Runs over ever new rows: a checkpoint names all of them, so checkpoints become rare."""
    book = BudgetBook(place, BUDGET)
    for number in range(40):
        book.charge(charge(0.01, span=(number, number + 1)), data, "a run")
    places = [entry.number for entry in book.entries() if entry.kind == CHECKPOINT]
    assert places[1] - places[0] == 5
    assert places[-1] - places[-2] > 8


def test_lookups_of_seeds_use_the_index_and_need_none(place, data):
    write_book(place, data, 100)
    BudgetBook(place).check_affords([], data, "nothing")
    with closing(sqlite3.connect(place)) as connection, connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT number FROM book_entries WHERE book = 'book' AND kind = 'charged' "
            "AND CAST(json_extract(body, '$.seed') AS TEXT) IN ('a', 'b')"
        ).fetchall()
        assert "book_entries_seed" in str(plan)
    with Storage(place).writing() as writer:
        seeds = [charge_of(number).facts["seed"] for number in (6, 50, 10**9)]
        assert [entry.number for entry in writer.with_field("charged", "seed", seeds)] == [6, 50]
        many = [f"{number:064x}" for number in range(2000)]
        assert len(writer.with_field("charged", "seed", many)) == 50
        assert writer.with_field("charged", "seed", []) == []
