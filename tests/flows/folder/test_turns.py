"""Taking turns: two commands on one suite write its report one after the other, and MLflow holds each whole."""

import fcntl
import os
import threading

import pytest

from bandana.flows.folder.turns import alone_in
from bandana.flows.results import report


def _is_free(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_one_at_a_time_in_a_folder_and_many_in_several(tmp_path):
    done = []

    def second():
        with alone_in(tmp_path / "a"):
            done.append("second")

    with alone_in(tmp_path / "a"), alone_in(tmp_path / "b"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        done.append("first")
    thread.join()
    assert done == ["first", "second"]
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "a", tmp_path / "b"]


def test_an_error_lets_go(tmp_path):
    def fail():
        with alone_in(tmp_path):
            assert not _is_free(tmp_path)
            raise ValueError("of the block")

    with pytest.raises(ValueError, match="of the block"):
        fail()
    assert _is_free(tmp_path)


def test_a_report_is_assembled_written_and_tracked_in_one_turn(tmp_path, monkeypatch):
    """What another command writes between a report and its artifacts would be stored under a hash that is not its own."""
    target = tmp_path / "suites" / "small"
    asked = {"name": "small", "description": "", "title": "Small", "horizon": 1, "replications": 1, "seed": 0}
    spec = type("Spec", (), asked | {"report": type("Report", (), {"formats": ("json",)})})
    order = []

    def note(name, value=None):
        def noted(*_):
            order.append((name, _is_free(target)))
            return value

        return noted

    monkeypatch.setattr(report, "assemble", note("assembled", {"audits": [], "evidence": {"sha256": ""}}))
    monkeypatch.setattr(report, "block_records", lambda *_: [])
    monkeypatch.setattr(report, "audit_documents", lambda *_: {})
    monkeypatch.setattr(report, "write_document", note("written", {}))
    monkeypatch.setattr(report, "_write_parts", note("parts", []))
    monkeypatch.setattr(report, "track", note("tracked"))
    monkeypatch.setattr(report.Tracker, "open", lambda _: type("Tracker", (), {"experiment": lambda *_: None}))
    report.report.fn(type("Plan", (), {"spec": spec, "played": ()}), "", str(tmp_path))
    assert order == [("assembled", False), ("written", False), ("parts", False), ("tracked", False)]
    assert _is_free(target)
