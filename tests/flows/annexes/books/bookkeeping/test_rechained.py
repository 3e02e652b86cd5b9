"""Books that were edited by hand, all hashes right: each ends in one line that names the entry and what is wrong with it."""

import json
import re
import shutil
import sqlite3

import pytest
from chains import changed, rechain, replaced
from typer.testing import CliRunner

from bandana.flows.annexes.books.bookkeeping.book import BudgetBook, DataSet
from bandana.flows.annexes.books.bookkeeping.spending import Charge
from bandana.flows.cli import app
from bandana.flows.texts.mistakes import BookError
from bandana.privacy_core import ApproxDP, GaussianEvent

BUDGET, PEOPLE = ApproxDP(3.0, 1e-6), b"a,b\n0,1\n1,0\n"
FACTS = {
    "suite": "s", "cell": "c", "block": 0, "key": "k", "replications": 1, "relation": "replace one record",
    "trust": "central", "noise": "secure", "seed": None,
}  # fmt: skip
EVENT = {"event": "gaussian", "noise_multiplier": 20.0, "count": 1}
CHARGE = Charge({GaussianEvent(10.0): 1}, 0, 2, FACTS)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A book: 1 opened, 2 charged, 3 settled, 4 charged, 5 extended, 6 charged, 7 repaired."""
    place, data = str(tmp_path_factory.mktemp("written") / "trial.sqlite"), DataSet(PEOPLE, "people.csv")
    book = BudgetBook(place, BUDGET)
    book.settle(book.charge(CHARGE, data, "a run"), {GaussianEvent(20.0): 1}, data)
    for content in (PEOPLE, PEOPLE + b"1,1\n"):
        book.charge(CHARGE, DataSet(content, "people.csv"), "a run")
    rechain(place, lambda rows: [*rows, rows[-1]._replace(kind="repaired", body={"after": 5, "note": "clock was ahead"})])
    assert [entry.kind for entry in book.entries()] == [
        "opened", "charged", "settled", "charged", "extended", "charged", "repaired",
    ]  # fmt: skip
    book.state()
    return place


@pytest.fixture
def place(tmp_path, written):
    place = tmp_path / "data" / "books" / "trial.sqlite"
    place.parent.mkdir(parents=True)
    shutil.copy(written, place)
    return str(place)


def events(**fields):
    return [{name: value for name, value in (EVENT | fields).items() if value is not ...}]


EDITS = {
    "no budget": (changed(1, budget=...), r"1 .opened.: budget: Field required"),
    "a budget of text": (changed(1, budget="much"), r"1 .opened.: budget"),
    "a negative budget": (changed(1, budget={"epsilon": -3}), r"1 .opened.: budget.epsilon: .*greater than 0"),
    "a delta of 1": (changed(1, budget={"epsilon": 3.0, "delta": 1.0}), r"1 .opened.: budget.delta"),
    "a budget of NaN": (changed(1, budget={"epsilon": float("nan")}), r"1 .opened.: budget.epsilon"),
    "no format": (changed(1, format=...), r"1 .opened.: format: Field required"),
    "a later format": (changed(1, format="bandana/book/9", budget=...), r"1 .opened.: its format is 'bandana/book/9', this"),
    "no size": (changed(1, bytes=...), r"1 .opened.: bytes"),
    "a size of text": (changed(1, bytes="12"), r"1 .opened.: bytes"),
    "data of another type": (changed(1, data=["a"]), r"1 .opened.: data"),
    "no records": (changed(2, records=...), r"2 .charged.: records: Field required"),
    "one record": (changed(2, records=[1]), r"2 .charged.: records"),
    "three records": (changed(2, records=[1, 2, 3]), r"2 .charged.: records"),
    "records reversed": (changed(2, records=[2, 0]), r"2 .charged.: records: must be \[first, one after the last\]"),
    "records below 0": (changed(2, records=[-1, 2]), r"2 .charged.: records.0"),
    "no cell": (changed(2, cell=...), r"2 .charged.: cell"),
    "no relation": (changed(4, relation=...), r"4 .charged.: relation"),
    "another relation": (changed(4, relation="add or remove"), r"4 .charged.: it counts what it costs to add or"),
    "a key that is a number": (changed(2, key=3), r"2 .charged.: key"),
    "replications of text": (changed(2, replications="1"), r"2 .charged.: replications"),
    "no replications": (changed(2, replications=0), r"2 .charged.: replications"),
    "a seed of numbers": (changed(2, seed=[1, 2]), r"2 .charged.: seed"),
    "no events": (changed(2, events=...), r"2 .charged.: events: Field required"),
    "events that charge nothing": (changed(2, events=[]), r"2 .charged.: events: it charges nothing"),
    "events that are no list": (changed(2, events={"gaussian": 1}), r"2 .charged.: events"),
    "an event that is no event": (changed(2, events=[3]), r"2 .charged.: events.0"),
    "an unknown event": (changed(2, events=events(event="cauchy")), r"2 .charged.: events: unknown event 'cauchy'"),
    "an event without noise": (changed(2, events=events(noise_multiplier=...)), r"2 .charged.: events: .*noise_mult"),
    "an event of NaN": (changed(2, events=events(noise_multiplier=float("nan"))), r"2 .charged.: events.0"),
    "an event of text": (changed(2, events=events(noise_multiplier="9")), r"2 .charged.: events"),
    "an event of too little noise": (
        changed(2, events=events(noise_multiplier=1e-40)), r"2 .charged.: events: no accountant counts their cost",
    ),
    "an event of too much noise": (
        changed(2, events=events(noise_multiplier=1e300)), r"2 .charged.: events: no accountant counts their cost, 0",
    ),
    "an event of hardly any noise": (changed(2, events=events(noise_multiplier=1e-200)), r"2 .charged.: events"),
    "an event whose noise is no float": (changed(2, events=events(noise_multiplier=10**400)), r"2 .charged.: events"),
    "an event that is not private": (
        changed(2, events=[{"event": "non-private", "count": 1}]), r"2 .charged.: events: .*cannot count",
    ),
    "a negative count": (changed(3, events=events(count=-1)), r"3 .settled.: events: count must be a whole number"),
    "half a count": (changed(3, events=events(count=0.5)), r"3 .settled.: events: count must be a whole number"),
    "no count": (changed(3, events=events(count=...)), r"3 .settled.: events: .*count"),
    "an endless count": (changed(3, events=events(count=10**400)), r"3 .settled.: events"),
    "an event twice": (changed(3, events=events() * 2), r"3 .settled.: events: an event is listed twice"),
    "settled for no entry": (changed(3, entry=99), r"3 .settled.: it settles entry 99, which is no charge"),
    "settled for a later charge": (changed(3, entry=4), r"3 .settled.: it settles entry 4, which is no charge"),
    "settled for what is no charge": (changed(3, entry=1), r"3 .settled.: it settles entry 1, which is no charge"),
    "settled for a text": (changed(3, entry="2"), r"3 .settled.: entry"),
    "settled twice": (
        lambda rows: [*rows, rows[2]._replace(time=rows[-1].time)], r"8 .settled.: it settles a charge that entry 3 settled",
    ),
    "extended by nothing": (replaced(5, body={}), r"5 \(extended\): data: Field required"),
    "repaired after itself": (changed(7, after=7), r"7 \(repaired\): after: 7 is no entry before it"),
    "repaired without a note": (changed(7, note=...), r"7 \(repaired\): note"),
    "a checkpoint without sums": (replaced(7, kind="checkpoint", body={"data": 5}), r"7 .checkpoint.: relation: Field"),
    "a checkpoint of a span reversed": (
        replaced(7, kind="checkpoint", body={"data": 5, "relation": "r", "spent": [[3, 1, []]]}),
        r"7 .checkpoint.: must be \[first, one after the last\]",
    ),
    "a checkpoint of events that are none": (
        replaced(7, kind="checkpoint", body={"data": 5, "relation": "r", "spent": [[0, 2, events(event="cauchy")]]}),
        r"7 .checkpoint.: (events: unknown event|it is not what)",
    ),
    "an unknown kind": (replaced(4, kind="forgiven"), r"4 is of the kind 'forgiven', which does not belong there"),
    "opened twice": (lambda rows: [*rows, rows[0]._replace(time=rows[-1].time)], r"8 is of the kind 'opened'"),
    "not opened": (lambda rows: rows[1:], r"1 is of the kind 'charged', which does not belong there"),
    "a body that is no JSON": (replaced(4, body="{"), r"4 .charged.: Invalid JSON"),
    "a body that is a list": (replaced(4, body=[1]), r"4 .charged.: Input should be an object"),
    "a body that is no text": (replaced(4, body=7), r"4 has a field that is no text"),
    "a body of bytes": (replaced(4, body=b"{}"), r"4 has a field that is no text"),
    "no kind": (replaced(4, kind=None), r"4 has a field that is no text"),
    "no time": (replaced(4, time=None), r"4 has a field that is no text"),
    "a time that is no date": (replaced(4, time="yesterday"), r"4: its time is no date in UTC: 'yesterday'"),
    "a last time that is no date": (replaced(7, time="2026-13-01"), r"7: its time is no date in UTC"),
    "a time without a zone": (replaced(4, time="2026-11-23T12:00:00"), r"4: its time is no date in UTC"),
    "times out of order": (replaced(4, time="2020-11-23T12:00:00+00:00"), r"4 is dated 2020-11-23T12:00:00, before"),
    "the first time there is": (replaced(4, time="0001-01-01T00:00:00+14:00"), r"4 is dated 0001-01-01"),
}  # fmt: skip


def line_of(caught):
    (line,) = str(caught.value).splitlines()
    assert line.startswith("book trial: ")
    assert len(line) <= 200
    return line


@pytest.mark.parametrize("edit", EDITS)
def test_every_use_of_a_rechained_book_ends_in_one_line(place, edit):
    change, said = EDITS[edit]
    entries = rechain(place, change)
    book = BudgetBook(place)
    grown = DataSet(PEOPLE + b"1,1\n", "people.csv")
    for use in (
        book.state,
        book.repair,
        lambda: book.charge(CHARGE, grown, "a run"),
        lambda: book.check_affords([CHARGE], grown, "a run"),
    ):
        with pytest.raises(BookError, match=f"entry {said}") as caught:
            use()
        line_of(caught)
    assert [tuple(entry) for entry in book.entries()] == [tuple(entry) for entry in entries], "nothing was written"


@pytest.mark.parametrize("edit", ["no records", "settled for no entry", "a time that is no date", "no budget"])
def test_commands_on_a_rechained_book(place, tmp_path, edit):
    change, said = EDITS[edit]
    export = tmp_path / "trial.json"
    entries = [entry._asdict() for entry in rechain(place, change)]
    export.write_text(json.dumps({"format": "bandana/book-export/1", "book": "book trial", "entries": entries}))
    for words in (["show", "trial"], ["verify", "trial"], ["repair", "trial"], ["export", "trial"], ["verify", str(export)]):
        done = CliRunner().invoke(
            app, ["book", *words, *([] if words[-1] == str(export) else ["--data", tmp_path / "data"])]
        )
        assert done.exit_code == 1, done.output
        (line,) = done.output.splitlines()
        assert line.startswith("error: ")
        assert re.search(f"entry {said}", line)


@pytest.mark.parametrize("lost", ["book", "entries", "format"])
def test_an_export_that_lacks_a_field(place, tmp_path, lost):
    export = tmp_path / "trial.json"
    entries = [entry._asdict() for entry in BudgetBook(place).entries()]
    tree = {"format": "bandana/book-export/1", "book": "book trial", "entries": entries}
    export.write_text(json.dumps({name: value for name, value in tree.items() if name != lost}))
    done = CliRunner().invoke(app, ["book", "verify", str(export)])
    assert done.exit_code == 1
    assert f"this is no exported book: '{lost}'" in done.output


def test_a_number_that_is_no_number(place):
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE book_entries SET number = 'four' WHERE number = 4")
    connection.close()
    with pytest.raises(BookError, match="entry 4 is missing or out of order") as caught:
        BudgetBook(place).state()
    line_of(caught)


def test_an_honest_book_that_was_rechained_without_a_change_is_whole(place):
    rechain(place, list)
    book = BudgetBook(place)
    before = book.state()
    book.charge(CHARGE, DataSet(PEOPLE + b"1,1\n", "people.csv"), "a run")
    assert len(book.state().charges) == len(before.charges) + 1
