"""Lines that never ran are part of what an audit did not cover."""

import importlib.util
import sys
from pathlib import Path

import pytest

from bandana.algorithms.environments.tables import random_table
from bandana.audits.searches.lines import LinesRun, file_of
from bandana.audits.searches.walk import walk
from bandana.privacy_core import Interval
from tests.museum.protocol.bandit import Bandit

TEXT = '''\
def play(rewards, seed):
    """What is played."""
    if seed == 12345:
        return leak(
            rewards
        )
    played = [arm for arm in range(3)]
    return played


def leak(rewards):
    return rewards
'''


@pytest.fixture
def play(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("mine", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.play, file


def test_a_branch_that_no_run_took_is_named(play):
    function, file = play
    with LinesRun(file) as lines:
        function(None, 1)
    assert lines.never == ("mine.py:4-5",)


def test_lines_of_several_stretches_add_up(play):
    function, file = play
    lines = LinesRun(file)
    with lines:
        function(None, 1)
    with lines:
        function(None, 12345)
    assert lines.never == ()


def test_other_files_count_for_nothing_and_tracing_ends(play):
    function, _ = play
    with LinesRun(Path(__file__).with_name("no.py")) as lines:
        function(None, 1)
    assert lines.never == ()
    assert sys.gettrace() is None


def test_without_a_file_nothing_is_noted(play):
    with LinesRun(None) as lines:
        play[0](None, 1)
    assert lines.never == ()


def test_a_debugger_at_work_is_left_alone(play):
    function, file = play

    def debugger(frame, event, argument):
        return None

    sys.settrace(debugger)
    try:
        with LinesRun(file) as lines:
            function(None, 1)
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(None)
    assert lines.never == ()


def test_noting_ends_after_its_time(play):
    """With no time at all one line is noted; the rest are named as unseen, which is the careful side."""
    function, file = play
    with LinesRun(file, seconds=-1.0) as lines:
        function(None, 1)
    assert lines.never == ("mine.py:4-5", "mine.py:7-8")
    assert sys.gettrace() is None


class Rare(Bandit):
    """Leaks where one of many replicates has noise that no run draws."""

    def answer(self, noisy, exact):
        if (noisy > 1e9).any():
            return exact
        return noisy


def test_the_walk_names_the_branch_of_an_algorithm():
    rare = Rare()
    found, coverage = walk(rare, random_table(8, 2, Interval(0.0, 1.0), 0), None, 512, 0)
    assert found is None
    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if text.strip() == "return exact")
    assert coverage.never_ran == (f"test_lines.py:{line}",)
    assert f"never ran, so not seen: test_lines.py:{line}" in coverage.lines()


def test_bandanas_own_files_are_not_noted():
    assert file_of(1.0) is None
    assert file_of(random_table(4, 2, Interval(0.0, 1.0), 0)) is None
    assert file_of(Rare()) == Path(__file__)
