"""Two processes of own code: a function beside the child that called for it, whose end is told as the child's own is."""

import os
import signal
import time
from pathlib import Path

import pytest

from bandana.flows.running import child
from bandana.flows.texts.mistakes import SpecError

LIMITS = child.Limits(seconds=20.0)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})


def _run(work):
    return child.run(work, LIMITS, "mine.py").value


def test_both_work_in_processes_of_their_own():
    def work():
        waiting = child.beside(os.getpid)
        return os.getpid(), waiting(), os.getpid()

    first, beside, last = _run(work)
    assert first == last
    assert len({first, beside, os.getpid()}) == 3


def test_they_work_at_once():
    """Each waits for a sign of the other, which neither could give if one began after the other ended."""

    def work():
        (read_here, write_there), (read_there, write_here) = os.pipe(), os.pipe()

        def other():
            os.write(write_there, b"1")
            return os.read(read_there, 1)

        waiting = child.beside(other)
        os.write(write_here, b"2")
        return os.read(read_here, 1), waiting()

    assert _run(work) == (b"1", b"2")


def test_calls_of_own_code_are_taken_for_no_fork():
    def call():
        with child.one_call():
            return os.getpid()

    def work():
        waiting = child.beside(call)
        return call(), waiting()

    mine, others = _run(work)
    assert mine != others


def test_what_it_raises_is_raised():
    def breaks():
        raise ValueError("no arms")

    with pytest.raises(ValueError, match="no arms"):
        _run(lambda: child.beside(breaks)())


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os._exit(0), "ended its process with exit code 0 instead of returning"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), r"crashed its process \(SIGKILL\)"),
    ],
)
def test_its_end_is_told_in_one_line(end, words):
    with pytest.raises(SpecError, match=f"^mine.py {words}"):
        _run(lambda: child.beside(end)())


def test_it_ends_with_the_child(tmp_path):
    mark = tmp_path / "mark"

    def lives():
        mark.write_text(str(os.getpid()))
        time.sleep(600)

    def work():
        child.beside(lives)
        while not mark.exists() or not mark.read_text():
            time.sleep(0.01)
        raise ValueError("over")

    with pytest.raises(ValueError, match="over"):
        _run(work)
    pid, end = int(mark.read_text()), time.monotonic() + 20
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().split()[2]
        except FileNotFoundError:
            return
        if state == "Z":  # whoever inherited it has not waited for it yet
            return
        time.sleep(0.01)
    pytest.fail("it outlives the child")


def test_on_one_core_it_works_when_it_is_asked(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    first, second = _run(lambda: (os.getpid(), child.beside(os.getpid)()))
    assert first == second


def test_outside_of_a_child_it_works_when_it_is_asked():
    assert child.beside(os.getpid)() == os.getpid()
