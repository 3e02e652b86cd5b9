"""Unfinished files: those of dead processes go, those of living ones and of other machines stay."""

import os
import subprocess
import sys
import time

import pytest

from bandana.flows.folder import scratch
from bandana.flows.folder.store import Store, write_whole


@pytest.fixture
def dead(tmp_path):
    """A file and a folder whose process died while it wrote."""
    program = (
        "import os, sys, tempfile\n"
        "from pathlib import Path\n"
        "from bandana.flows.folder import scratch, store\n"
        "os.fsync = lambda _: os._exit(9)\n"
        "folder = Path(sys.argv[1])\n"
        "Path(tempfile.mkdtemp(scratch.SUFFIX, scratch.prefix('curves'), folder), 'x').write_text('x')\n"
        "store.write_whole(folder / 'results' / 'kind' / 'key.npz', b'half')\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False).returncode == 9
    left = sorted(tmp_path.rglob(f"*{scratch.SUFFIX}"))
    assert len(left) == 2
    return left


def test_what_the_dead_left_is_removed_and_nothing_else(dead, tmp_path):
    store = Store(tmp_path / "results")
    kept = store.save("kind", "other", {}, {})
    (tmp_path / "notes.part").write_text("of the user")
    (tmp_path / ".x.0123456789ab-1.part").write_text("no name of ours")
    assert sorted(scratch.sweep([tmp_path])) == dead
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(
        [kept, tmp_path / "notes.part", tmp_path / ".x.0123456789ab-1.part"]
    )


def test_a_living_writer_keeps_its_file(tmp_path, monkeypatch):
    place, real, seen = tmp_path / "key.npz", os.fsync, []

    def sweep_meanwhile(handle):
        seen.append(scratch.sweep([tmp_path]))
        real(handle)

    monkeypatch.setattr(os, "fsync", sweep_meanwhile)
    write_whole(place, b"whole")
    assert seen == [[]]
    assert place.read_bytes() == b"whole"


def test_a_file_of_another_machine_stays_until_it_is_old(tmp_path):
    other = tmp_path / f".key.npz.{'0' * 12}-1.abc{scratch.SUFFIX}"
    other.write_bytes(b"")
    for hours, removed in ((0, []), (23, []), (25, [other])):
        written = time.time() - 3600 * hours
        os.utime(other, (written, written))
        assert scratch.sweep([tmp_path]) == removed


def test_a_writer_of_which_the_system_does_not_tell_may_be_alive(tmp_path, monkeypatch):
    ours = tmp_path / f"{scratch.prefix('key.npz')}abc{scratch.SUFFIX}"
    ours.write_bytes(b"")
    scratch.sweep([tmp_path])  # the machine's own name is read from the system too, once

    def unreadable(path, *_, **__):
        raise OSError("no such file")

    monkeypatch.setattr(scratch.Path, "read_text", unreadable)
    assert scratch.sweep([tmp_path]) == []
