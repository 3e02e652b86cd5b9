"""Finished work: whole or not at all, found again by its content."""

import errno
import os

import numpy as np
import pytest

from bandana.flows.keys.content import canonical, content_key
from bandana.flows.running import store as store_module
from bandana.flows.running.store import Store, write_whole


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
