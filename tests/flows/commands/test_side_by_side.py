"""Two commands on one spec in one data folder at once: both right, and together no more than one.

In `make test`: writers at once of one run (`test_tracking`), of one file (`test_scratch`), of one server's tables
(`test_temporary_server`) and of one report (`test_turns`).
"""

import os
import signal
import time

import pytest
from runs import events_of, outcome, start

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def alone(uninterrupted):
    """The spec, and what one run with audits ends with."""
    return uninterrupted.spec, outcome(uninterrupted.data)


def _finish(*processes):
    for process in processes:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, (out, err)
        assert err == ""
        assert "report.html" in out


def _begun(data):
    return [name for name, _ in events_of(data)].count("benchmark started")


def _wait_until_begun(data, count, process):
    """Patient, as a machine under load takes long to start a process; what ended without a beginning is not waited for."""
    until = time.monotonic() + 300
    while _begun(data) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


def _two_at_once(spec, data):
    """Two runs, the first of which stands still from its beginning until the second has begun too."""
    first = start(spec, data)
    try:
        _wait_until_begun(data, 1, first)
        os.kill(first.pid, signal.SIGSTOP)
        second = start(spec, data)
        _wait_until_begun(data, 2, second)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    _finish(first, second)


def _were_at_once(data):
    """Whether both had begun before one was done: one that ran on while this test was not given a core may have been."""
    names = [name for name, _ in events_of(data)]
    assert (names.count("benchmark started"), names.count("benchmark done")) == (2, 2)
    return names[: names.index("benchmark done")].count("benchmark started") == 2


def test_two_runs_at_once_end_as_one_alone(alone, tmp_path):
    spec, expected = alone
    for attempt in range(5):
        data = tmp_path / str(attempt)
        _two_at_once(spec, data)
        if _were_at_once(data):
            break
    else:
        pytest.fail("five times the first run was done before the second had begun")
    found = outcome(data)
    for name in expected:
        assert found[name] == expected[name], name


def test_a_run_and_an_audit_at_once_end_as_one_after_the_other(alone, tmp_path):
    spec, expected = alone
    data = tmp_path / "data"
    _finish(start(spec, data, audit=False), start(spec, data, command="audit"))
    found = outcome(data)
    for name in ("results", "unfinished files", "databases"):
        assert found[name] == expected[name], name
    cells, lone = ({run["name"]: run for run in each["runs"] if run["tags"]["role"] == "cell"} for each in (found, expected))
    assert cells.keys() == lone.keys() >= {"adar-ucb tight eps=1", "ucb"}
    for label, run in cells.items():
        assert run["status"] == "FINISHED", label
        for name in ("params", "points", "latest"):
            assert run[name] == lone[label][name], (label, name)
    # Whichever came last found the other's work in the store, or did not ask for it; one more report holds all of it.
    _finish(start(spec, data))
    again = outcome(data)
    assert again["report"] == expected["report"]
    assert again["results"] == expected["results"]
