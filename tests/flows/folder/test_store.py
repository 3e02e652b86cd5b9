"""Finished work: whole or not at all, found again by its content."""

import errno
import os
import socket

import numpy as np
import pytest

from bandana.flows.folder import store as store_module
from bandana.flows.folder.journal import Journal
from bandana.flows.folder.store import Store, write_whole
from bandana.flows.keys import checkout, provenance
from bandana.flows.keys.content import canonical, content_key


def test_keys_depend_on_content_and_not_on_order():
    assert canonical({"b": 1, "a": [1.5]}) == '{"a":[1.5],"b":1}'
    assert content_key({"b": 1, "a": 2}) == content_key({"a": 2, "b": 1}) != content_key({"a": 2, "b": 2})


def test_what_was_saved_is_loaded_and_saved_again_with_the_same_bytes(tmp_path):
    store = Store(tmp_path)
    arrays = {"x": np.arange(5.0)}
    path = store.save("kind", "key", arrays, {"mu": None, "name": "é"})
    first = path.read_bytes()
    loaded, description = store.load("kind", "key")
    np.testing.assert_array_equal(loaded["x"], arrays["x"])
    assert description == {"mu": None, "name": "é"}
    assert store.save("kind", "other", arrays, {"name": "é", "mu": None}).read_bytes() == first


def test_of_two_processes_that_compute_the_same_the_first_is_kept(tmp_path):
    """A report that lists the hash of the first would not be true any more."""
    store = Store(tmp_path)
    path = store.save("kind", "key", {"x": np.arange(5.0)}, {"provenance": "sooner"})
    store.save("kind", "key", {"x": np.arange(5.0)}, {"provenance": "later"})
    assert store.describe("kind", "key") == {"provenance": "sooner"}
    path.write_bytes(path.read_bytes()[:100])
    store.save("kind", "key", {"x": np.arange(5.0)}, {"provenance": "later"})
    assert store.describe("kind", "key") == {"provenance": "later"}, "a damaged one is replaced"
    assert os.listdir(path.parent) == [path.name]


def test_where_the_file_system_knows_no_links_the_first_is_kept_too(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(store_module.os, "link", refuse)
    test_of_two_processes_that_compute_the_same_the_first_is_kept(tmp_path)


def test_a_missing_or_damaged_result_is_computed_again(tmp_path):
    store = Store(tmp_path)
    assert store.load("kind", "key") is None
    path = store.save("kind", "key", {"x": np.arange(1000.0)}, {})
    whole = path.read_bytes()
    for damaged in (whole[:100], b"", b"nonsense", whole[:-200]):
        path.write_bytes(damaged)
        assert store.load("kind", "key") is store.describe("kind", "key") is None


def test_every_flipped_bit_of_a_result_is_found_and_told_of(tmp_path, capsys):
    store = Store(tmp_path)
    path = store.save("kind", "key", {"x": np.arange(20.0)}, {"name": "é"})
    whole = path.read_bytes()
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        assert not store_module._is_whole(bytes(flipped)), place
        if place % 97 == 0:
            path.write_bytes(flipped)
            assert store.describe("kind", "key") is None, place
    assert capsys.readouterr().err == ""
    assert store.load("kind", "key") is None
    assert (
        f"warning: {path} is damaged (its bytes are not those that were written); it is computed again"
        in capsys.readouterr().err
    )
    for end in range(len(whole)):
        assert not store_module._is_whole(whole[:end]), end


def test_a_result_of_an_earlier_version_without_a_hash_is_read(tmp_path):
    store = Store(tmp_path)
    path = store.path("kind", "key")
    path.parent.mkdir()
    np.savez(path, description=np.frombuffer(b'{"name":"old"}', dtype=np.uint8), x=np.arange(3.0))
    assert store.describe("kind", "key") == {"name": "old"}


def test_a_description_that_is_no_json_is_damage_too(tmp_path):
    store = Store(tmp_path)
    path = store.path("kind", "key")
    path.parent.mkdir()
    np.savez(path, description=np.frombuffer(b'{"name"', dtype=np.uint8))
    assert store.load("kind", "key") is None


def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_whole(path, b"before")

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store_module.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"after")
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["report.html"]


@pytest.mark.parametrize("is_anonymous", [False, True])
def test_a_journal_says_who_began_a_step_from_which_commit_and_where(tmp_path, monkeypatch, is_anonymous):
    monkeypatch.setenv("BANDANA_ANONYMOUS", str(int(is_anonymous)))
    journal = Journal(tmp_path / "log.jsonl")
    journal.begin("benchmark started", cells=3)
    journal.write("block done")
    begun, done = journal.read()
    code = checkout.checkout()
    assert begun["cells"] == 3
    assert begun["sources"] == checkout.sources()[:12]
    assert (begun["commit"] or "").partition(",")[0] == ("" if code is None else code.commit)
    names = {} if is_anonymous else {"user": provenance.user(), "host": socket.gethostname()}
    assert {name: begun[name] for name in ("user", "host") if name in begun} == names
    assert set(done) == {"time", "event"}
