"""One deadline for all stages: what is under way when it passes is broken off, inner ones within outer ones."""

import math
import time

import numpy as np
import pytest

from bandana.flows.annexes.anything.outputs.deadline import NEVER, Deadline, TimeIsUpError
from bandana.flows.annexes.anything.outputs.scores import learn


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_what_takes_too_long_is_broken_off():
    begun = time.monotonic()
    with pytest.raises(TimeIsUpError), Deadline.within(0.05).enforced():
        spin(20)
    assert time.monotonic() - begun < 10


def test_an_outer_deadline_holds_within_and_after_an_inner_one():
    def after_an_inner_one():
        with Deadline.within(60).enforced():
            pass
        spin(20)

    with pytest.raises(TimeIsUpError), Deadline.within(0.1).enforced():
        after_an_inner_one()
    with pytest.raises(TimeIsUpError), Deadline.within(0.1).enforced(), Deadline.within(60).enforced():
        spin(20)


def test_without_a_deadline_nothing_is_limited():
    with NEVER.enforced():
        spin(0.01)
    assert NEVER.part(0.5) is NEVER
    assert math.isinf(NEVER.left)
    with pytest.raises(TimeIsUpError), Deadline.within(0).enforced():
        pass


def test_learners_that_the_time_does_not_suffice_for_are_named():
    sides, left_out = np.random.default_rng(0).normal(size=(2, 500, 3)), []
    found = learn(*sides, 0, deadline=Deadline.within(0), left_out=left_out)
    assert list(found) == ["most telling number"]
    assert {"boosted trees", "logistic regression", "sum of numbers"} <= set(left_out)
