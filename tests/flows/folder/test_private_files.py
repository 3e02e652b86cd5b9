"""What is written into a data folder is its owner's alone, whatever the umask; shared folders stay shared."""

import os
import sqlite3
import stat
from contextlib import closing

import pytest

from bandana.flows.folder.journal import Journal
from bandana.flows.folder.private_files import umask_in
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.own.data import SECRET
from bandana.flows.tracking.tracker import Tracker


@pytest.fixture(params=[0o000, 0o002, 0o022])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def open_umask():
    before = os.umask(0o002)
    yield
    os.umask(before)


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def _write(folder):
    """A result, a line of a journal, and MLflow's file while somebody has it open; returns these files."""
    result = Store(folder.results).save("benchmark", "key", {}, {})
    Journal(folder.journal("small")).write("begun")
    Tracker(folder.root)
    with closing(sqlite3.connect(folder.root / "mlflow" / "mlflow.db")) as database:
        database.execute("UPDATE experiments SET name = name")
        files = [result, folder.journal("small"), *(folder.root / "mlflow").glob("mlflow.db*")]
        assert len(files) == 5
        return {path.name: _mode(path) for path in files}


def test_a_new_folder_and_its_files_are_for_their_owner_alone(tmp_path, umask):
    folder = DataFolder.open(tmp_path / "above" / "data")
    assert _mode(folder.root.parent) == 0o777 & ~umask
    assert set(_write(folder).values()) == {0o600}
    folders = [folder.root, folder.results, folder.root / "suites", folder.suite("small"), folder.root / "mlflow"]
    assert {path.name: _mode(path) for path in folders} == dict.fromkeys([path.name for path in folders], 0o700)


def test_an_existing_folder_keeps_its_mode_and_new_files_are_private(tmp_path, umask):
    folder = DataFolder(tmp_path / "data")
    folder.root.mkdir()
    folder.root.chmod(0o755)
    assert set(_write(DataFolder.open(folder.root)).values()) == {0o600}
    assert _mode(folder.root) == 0o755
    assert umask_in(folder.root) == 0o077


def test_a_folder_that_a_group_may_write_stays_shared(tmp_path, open_umask):
    folder = DataFolder(tmp_path / "data")
    folder.root.mkdir()
    folder.root.chmod(0o2770)
    modes = _write(DataFolder.open(folder.root))
    assert {modes[name] for name in ("log.jsonl", "mlflow.db")} == {0o664}
    assert folder.suite("small").stat().st_mode & stat.S_IWGRP
    assert umask_in(folder.root) == -1


def test_the_doctor_warns_of_private_results_that_others_can_read(tmp_path):
    folder = DataFolder.open(tmp_path / "data")

    def finding():
        doctor = pytest.importorskip("bandana.flows.annexes.operations.doctor")
        return next(each for each in doctor.examine(folder) if each.what == "permissions")

    assert finding().words == "the data folder is for its owner alone (mode 0700)"
    folder.root.chmod(0o755)
    assert finding().state == "good"
    (folder.root / SECRET).write_text("x")
    assert finding().state == "note"
    assert f"(mode 0755): `chmod 700 {folder.root}`" in finding().words
    folder.root.chmod(0o700)
    assert finding().state == "good"
