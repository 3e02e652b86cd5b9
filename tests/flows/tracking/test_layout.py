"""MLflow's tables are laid out whole or not at all: processes kill themselves at chosen steps, and the next one goes on."""

import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from mlflow.store.db import utils
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Engine

from bandana.flows.folder import sqlite_file
from bandana.flows.folder.settings import DataFolder
from bandana.flows.tracking.store.errors import TrackingError
from bandana.flows.tracking.store.layout import Tables, lay_out, tables_of
from bandana.flows.tracking.tracker import Tracker

N_TABLES = (8, 20, 30)
N_CREATED = 80  # more than MLflow creates


@pytest.fixture
def data(tmp_path):
    return DataFolder.open(tmp_path / "data").root


@pytest.fixture
def place(data):
    (data / "mlflow").mkdir()
    return data / "mlflow" / "mlflow.db"


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The tables that MLflow lays out itself, in a file."""
    place = tmp_path_factory.mktemp("expected") / "mlflow.db"
    _lay_out_as_mlflow(place)
    return _schema(place)


def _lay_out_as_mlflow(place):
    engine = create_engine(f"sqlite:///{place}")
    utils._initialize_tables(engine)
    engine.dispose()


def _schema(place):
    """Every table and index; the order of a table's constraints differs from one layout of MLflow's to the next."""
    with closing(sqlite3.connect(place)) as database:
        rows = database.execute("SELECT name, sql FROM sqlite_master").fetchall()
    return {name: sorted(line.strip(", \t") for line in (sql or "").splitlines()) for name, sql in rows}


def _killed(work):
    """Runs work in a child, which must kill itself."""
    if (pid := os.fork()) == 0:
        try:
            work()
        finally:
            os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def _kill_at_table(number):
    """From now on, this process kills itself right after it has created so many tables."""
    numbers = iter(range(1, N_CREATED))

    @event.listens_for(Engine, "after_cursor_execute")
    def count(connection, cursor, statement, *_):
        if statement.strip().upper().startswith("CREATE TABLE") and next(numbers) == number:
            os.kill(os.getpid(), signal.SIGKILL)


def _kill_at_page(number):
    """From now on, this process kills itself when the file has taken so many pages."""

    def fill(place, source):
        pages = iter(range(1, 10**6))

        def progress(*_):
            if next(pages) == number:
                os.kill(os.getpid(), signal.SIGKILL)

        with closing(sqlite3.connect(place)) as target:
            source.backup(target, pages=1, progress=progress)

    sqlite_file.fill = fill


def _finding(data, what="MLflow"):
    doctor = pytest.importorskip("bandana.flows.annexes.operations.doctor")
    return next(each for each in doctor.examine(DataFolder(data)) if each.what == what)


def _check_repaired(data, place, expected):
    Tracker.check(data)
    tracker = Tracker(data)
    assert tracker.experiment("small", "works") == "1"
    assert _schema(place) == expected
    assert tables_of(place) is Tables.WHOLE
    assert _finding(data).state == "good"


@pytest.mark.parametrize("number", N_TABLES)
def test_a_folder_that_an_earlier_version_left_half_laid_out_is_repaired(data, place, expected, number):
    def work():
        _kill_at_table(number)
        _lay_out_as_mlflow(place)

    _killed(work)
    assert tables_of(place) is Tables.PART
    finding = _finding(data)
    assert finding.state == "BAD"
    assert finding.words.endswith(
        "the layout of its tables was interrupted, and it holds no runs; the next `bandana run` lays them out anew"
    )
    _check_repaired(data, place, expected)


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(1, 60, 4))
def test_a_folder_half_laid_out_at_any_table_is_repaired(data, place, expected, number):
    test_a_folder_that_an_earlier_version_left_half_laid_out_is_repaired(data, place, expected, number)


@pytest.mark.parametrize("number", N_TABLES)
def test_a_kill_during_the_layout_leaves_a_file_without_tables(data, place, expected, number):
    def work():
        _kill_at_table(number)
        Tracker(data)

    _killed(work)
    assert tables_of(place) is Tables.NONE
    assert _finding(data).words == "it has no tables yet; the next run lays them out"
    _check_repaired(data, place, expected)


@pytest.mark.parametrize("is_part", [False, True])
@pytest.mark.parametrize("number", [1, 100, pytest.param(230, marks=pytest.mark.nightly)])
def test_a_kill_while_the_file_takes_the_tables_leaves_what_was_there(data, place, expected, number, is_part):
    if is_part:
        with closing(sqlite3.connect(place)) as database:
            database.execute("CREATE TABLE tags (key)")
            database.execute("CREATE TABLE _alembic_tmp_tags (key)")
            database.commit()

    def work():
        _kill_at_page(number)
        Tracker(data)

    _killed(work)
    assert tables_of(place) is (Tables.PART if is_part else Tables.NONE)
    _check_repaired(data, place, expected)


def test_who_comes_second_finds_the_store_of_the_first(data, place):
    with ThreadPoolExecutor(4) as lanes:
        numbers = list(lanes.map(lambda number: Tracker(data).experiment(f"suite-{number}", ""), range(4)))
    assert sorted(numbers) == ["1", "2", "3", "4"]
    before = place.stat().st_ino
    assert Tracker(data).experiment("suite-0", "") == numbers[0]
    assert place.stat().st_ino == before


def test_a_store_with_runs_is_never_emptied(data, place):
    """A migration by `mlflow db upgrade` was interrupted: one line says what to do, and every row stays."""
    Tracker(data).experiment("small", "")
    with closing(sqlite3.connect(place)) as database:
        database.execute("CREATE TABLE _alembic_tmp_tags (key)")
        database.commit()
    before = _schema(place)
    for refused in (Tracker, Tracker.check):
        with pytest.raises(
            TrackingError, match=r"an upgrade of its tables was interrupted in .*: put back the copy"
        ) as raised:
            refused(data)
        assert "\n" not in str(raised.value)
    lay_out(place)
    assert _schema(place) == before
    finding = _finding(data)
    assert (finding.state, "put back the copy" in finding.words) == ("BAD", True)


def test_tables_of_others_in_the_same_file_stay(data, place):
    with closing(sqlite3.connect(place)) as database:
        database.execute("CREATE TABLE letters (text)")
        database.commit()
    Tracker(data).experiment("small", "")
    with closing(sqlite3.connect(place)) as database:
        assert database.execute("SELECT count(*) FROM letters").fetchone() == (0,)


def test_the_doctor_says_that_a_store_cannot_be_written(data, place):
    Tracker(data)
    with closing(sqlite3.connect(place)) as database:
        database.execute("CREATE TRIGGER no BEFORE UPDATE ON experiments BEGIN SELECT RAISE(ABORT, 'not today'); END")
        database.commit()
        before = list(database.execute("SELECT * FROM experiments"))
    finding = _finding(data)
    assert (finding.state, "cannot be written (not today)" in finding.words) == ("BAD", True)
    with closing(sqlite3.connect(place)) as database:
        assert list(database.execute("SELECT * FROM experiments")) == before


def test_the_doctor_lays_nothing_out(data):
    assert _finding(data).words == "it has no tables yet; the next run lays them out"
    assert not list(data.iterdir())
