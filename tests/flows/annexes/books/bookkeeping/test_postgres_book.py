"""A budget book in PostgreSQL: the same charges and refusals as in a file, also with several processes at once.

In `make test`: `test_book.py`, on SQLite.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from postgres_server import PASSWORD, PostgresServer, why_not

from bandana.flows.annexes.books.bookkeeping import balance, storage
from bandana.flows.annexes.books.bookkeeping.book import BudgetBook, DataSet
from bandana.flows.annexes.books.bookkeeping.spending import Charge
from bandana.flows.texts.mistakes import BookError
from bandana.privacy_core import ApproxDP, GaussianEvent

pytest.importorskip("psycopg2", reason='no PostgreSQL driver: pip install "bandana-dp[postgres]"')
pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]
BUDGET, DATA = ApproxDP(3.0, 1e-6), DataSet(b"a,b\n0,1\n", "people.csv")
CHARGE = Charge(
    {GaussianEvent(5.0): 1}, 0, 1,
    {"suite": "s", "cell": "c", "block": 0, "key": "k", "replications": 1, "relation": "r", "trust": "central",
     "noise": "secure", "seed": None},
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    running.start()
    running.execute("CREATE DATABASE books")
    yield running
    running.stop()
    running.remove()


@pytest.fixture
def address(server, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return f"postgresql://postgres@127.0.0.1:{server.port}/books#"


def _spend(place: str) -> None:
    for _ in range(8):
        with suppress(BookError):
            BudgetBook(place, BUDGET).charge(CHARGE, DATA, "a run")


def test_processes_at_once_spend_no_more_than_the_budget(address):
    context = multiprocessing.get_context("spawn")
    runs = [context.Process(target=_spend, args=(address + "crowd",)) for _ in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
        assert run.exitcode == 0
    state = BudgetBook(address + "crowd").state()
    assert len(state.charges) == 10, "0.6477^2 / 0.2^2 is 10.49"
    assert state.name == "book crowd"


def test_books_of_one_database_know_nothing_of_each_other(address):
    for name in ("one", "other"):
        book = BudgetBook(address + name, BUDGET)
        book.settle(book.charge(CHARGE, DATA, "a run"), {GaussianEvent(9.0): 1}, DATA)
    assert [len(BudgetBook(address + name).entries()) for name in ("one", "other")] == [3, 3]
    with pytest.raises(BookError, match=r"book one: it belongs to another data set than other.csv"):
        BudgetBook(address + "one").charge(CHARGE, DataSet(b"c,d\n0,1\n", "other.csv"), "a run")


def test_an_edited_entry_is_found(address, server):
    BudgetBook(address + "edited", BUDGET).charge(CHARGE, DATA, "a run")
    server.execute(
        "UPDATE book_entries SET body = replace(body, '5.0', '50.0') WHERE book = 'edited' AND number = 2", "books"
    )
    with pytest.raises(BookError, match="book edited: entry 2 was changed"):
        BudgetBook(address + "edited").state()


def test_a_locked_book_and_one_that_cannot_be_reached(address, server, monkeypatch):
    BudgetBook(address + "busy", BUDGET).charge(CHARGE, DATA, "a run")
    monkeypatch.setattr(storage, "PATIENCE", 0.2)
    other = server.connect("books")
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext('bandana busy'))")
        with pytest.raises(BookError, match=r"book busy: locked by another process for 0.2 s"):
            BudgetBook(address + "busy").charge(CHARGE, DATA, "a run")
    other.close()
    with pytest.raises(BookError, match=r"book nobody: postgresql://me@127.0.0.1:1/books cannot be used: ") as caught:
        BudgetBook("postgresql://me@127.0.0.1:1/books#nobody").state()
    assert "\n" not in str(caught.value)


def test_charges_work_from_checkpoints_and_find_what_came_before_them(address, server, monkeypatch):
    monkeypatch.setattr(balance, "EVERY", 4)
    book = BudgetBook(address + "long", BUDGET)
    seeded = replace(CHARGE, facts=CHARGE.facts | {"seed": "ab", "key": "first"}, events={GaussianEvent(50.0): 1})
    first = book.charge(seeded, DATA, "a run")
    for _ in range(6):
        book.settle(book.charge(CHARGE, DATA, "a run"), {GaussianEvent(90.0): 1}, DATA)
    assert [entry.kind for entry in book.entries()].count("checkpoint") == 3
    with pytest.raises(BookError, match=r"entry 2 \(c\) drew noise from the same seed"):
        book.charge(replace(seeded, facts=CHARGE.facts | {"seed": "ab"}), DATA, "a run")
    book.settle(first, {}, DATA)
    with pytest.raises(BookError, match=r"entry 2 was settled by entry \d+"):
        book.settle(first, {}, DATA)
    assert len(book.state().charges) == 7
    indexes = server.execute("SELECT indexname FROM pg_indexes WHERE tablename = 'book_entries'", "books")
    assert {"book_entries_seed", "book_entries_entry"} <= {name for (name,) in indexes}
    with pytest.raises(BookError, match="book long: there is nothing to repair"):
        book.repair()


def test_a_user_who_owns_no_table_charges_without_indexes_too(address, server):
    BudgetBook(address + "shared", BUDGET).charge(CHARGE, DATA, "a run")
    for statement in (
        f"CREATE ROLE member LOGIN PASSWORD '{PASSWORD}'",
        "GRANT SELECT, INSERT ON book_entries, book_salts TO member",
        "DROP INDEX book_entries_seed, book_entries_entry",
    ):
        server.execute(statement, "books")
    book = BudgetBook(address.replace("postgres@", "member@") + "shared")
    book.settle(book.charge(CHARGE, DATA, "a run"), {}, DATA)
    assert len(book.state().charges) == 2
