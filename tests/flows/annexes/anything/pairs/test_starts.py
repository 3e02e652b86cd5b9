"""Processes that make first calls: of an object of this process, and of a file."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bandana.flows.annexes.anything.outputs.calls import by_signature
from bandana.flows.annexes.anything.outputs.deadline import Deadline
from bandana.flows.annexes.anything.pairs.starts import set_aside, started
from bandana.flows.annexes.anything.releases import ReleaseRequest, audit_release

FILE = """
import sys
from pathlib import Path

import numpy as np

with Path({log!r}).open("a") as log:
    print("loaded", file=log)
{more}
_calls = []


def release(data, seed):
    _calls.append(seed)
    return float(np.sum(data)) if len(_calls) == 1 else float(np.sum(data)) + np.random.default_rng(seed).laplace()
"""
ONE_APART = 'if "apart" in " ".join(sys.orig_argv):\n    '
CLAIM, SECONDS = "pure(epsilon=1)", 300.0


def written(folder, more=""):
    place, log = folder / "subject.py", folder / "log"
    place.write_text(FILE.format(log=str(log), more=more))
    return place, log


def audited(place, replays=8000):
    request = ReleaseRequest(
        CLAIM, f"{place}:release", data="[0.0]", neighbor="[1.0]", replays=replays, seconds=SECONDS, seed=4
    )
    return audit_release(request).outcome


def test_a_release_of_a_file_that_is_exact_at_first_fails(tmp_path):
    outcome = audited(written(tmp_path)[0])
    assert outcome.verdict == "FAIL"
    assert "first call" in outcome.how


@pytest.mark.parametrize("more", ["raise SystemExit(3)", "import time; time.sleep(1000)"])
def test_a_file_that_loads_once_only_is_audited_without_first_calls_and_says_so(tmp_path, more, monkeypatch):
    monkeypatch.setattr("bandana.flows.annexes.anything.pairs.stages._FIRST_CALLS", 0.01)
    outcome = audited(written(tmp_path, ONE_APART + more)[0], replays=1000)
    assert outcome.verdict == "NOT REFUTED"
    assert "first calls of a process: 0 a side, too few for a bound" in outcome.coverage


def test_an_object_of_this_process_is_not_loaded_from_its_file(tmp_path):
    """In a small process: 320 forks of one that holds all tests would take ten seconds."""
    place, log = written(tmp_path)
    program = f"import bandana, subject\nprint(bandana.audit(subject.release, {CLAIM!r}, pair=([0.0], [1.0]), replays=1000))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"<Audit of {place.name}:release: FAIL>\n"  # its first call in the process set aside is exact
    assert log.read_text().splitlines() == ["loaded"]


@pytest.mark.parametrize("command", [["-c", "pass"], ["-c", "import time; time.sleep(1000)"]])
def test_a_process_that_serves_nothing_answers_with_nothing(command):
    starts = started(len, [sys.executable, *command])
    answer = starts.asked(by_signature(len), ([0.0], [1.0]), [0, 1], [3, 4], Deadline.within(0.2))
    assert answer() == ()
    starts.end()


def test_calls_of_a_process_set_aside_are_first_calls():
    calls = []

    def counted(data, seed):
        calls.append(seed)
        return len(calls)

    starts = set_aside(counted)
    calls += [0, 0, 0]
    answer = starts.asked(by_signature(counted), ([0.0], [1.0]), [0, 1, 0], [3, 4, 5], Deadline.within(60))
    assert [output.parts[0].numbers.tolist() for output in answer()] == [[1.0]] * 3
    starts.end()
