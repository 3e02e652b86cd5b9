"""Limits of a child that runs own code."""

import math
import os
import resource

import pytest

from bandana.flows.running import child
from bandana.flows.texts.mistakes import SpecError

GIGABYTE = 2**30


def _below_a_hard_limit(work):
    """What the work returns in a process that may have one gigabyte and cannot ask for more."""

    def limited():
        resource.setrlimit(resource.RLIMIT_DATA, (GIGABYTE, GIGABYTE))
        return work()

    return child.run(limited, child.Limits()).value


def test_own_code_runs_where_the_system_allows_less_memory_than_the_usual_limit():
    def work():
        limits = child.Limits()
        return limits.gigabytes, child.run(lambda: resource.getrlimit(resource.RLIMIT_DATA), limits).value

    assert _below_a_hard_limit(work) == (1.0, (GIGABYTE, GIGABYTE))


def test_more_memory_than_the_system_allows_is_refused():
    assert _below_a_hard_limit(lambda: child.limits(None, 1.0).gigabytes) == 1.0
    with pytest.raises(SpecError, match=r"--memory must be at most 1, what a process may have here .ulimit -Hd., got 1\.5"):
        _below_a_hard_limit(lambda: child.limits(None, 1.5))
    with pytest.raises(SpecError, match=r"--memory must be at most .* got inf"):
        child.limits(None, math.inf)


def test_a_call_may_take_any_time():
    def work():
        with child.one_call():
            return os.getpid()

    assert child.run(work, child.limits(math.inf, None)).value != os.getpid()
