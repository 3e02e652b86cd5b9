"""When batched algorithms look and update."""

from __future__ import annotations

import math

import pytest

from bandana.algorithms.papers.luyo import lsvi_updates
from bandana.algorithms.rl.linear_mdp.batches import Schedule, determinant, geometric, static


def test_static_batches_by_hand():
    assert static(10, 4).looks == (3, 6, 9)
    assert static(10, 3).looks == (4, 8)
    assert static(8, 4).looks == (2, 4, 6)
    assert static(7, 100).looks == tuple(range(1, 8)), "K batches at most"
    assert static(10, 4).batches == (3, 3, 3)


@pytest.mark.parametrize(("episodes", "batches"), [(10, 3), (1024, 7), (1000, 999), (100_000, 31)])
def test_static_batches_are_those_of_the_calibration(episodes, batches):
    schedule = static(episodes, batches)
    assert schedule.most_updates == len(schedule.looks) == lsvi_updates(episodes, batches)


def test_geometric_batches_by_hand():
    assert geometric(64).looks == (8, 16, 32)
    assert geometric(8).looks == (2, 4)
    assert geometric(8, 4).looks == (1, 2, 4)
    assert geometric(100, 3).looks == (25, 50)
    assert geometric(2).looks == (1,)
    assert len(geometric(100_000).looks) == math.ceil(math.log2(100_000) / 2)


def test_determinants_are_looked_at_four_times_a_doubling():
    schedule = determinant(1024, None, 0.5)
    assert len(schedule.looks) == 20
    assert (schedule.looks[0], schedule.looks[3], schedule.looks[4]) == (32, 54, 64)
    assert schedule.most_updates == 10
    assert schedule.log_growth == pytest.approx(math.log(1.5))
    assert determinant(1024, 4).most_updates == 3
    assert determinant(4).most_updates <= len(determinant(4).looks)


def test_a_schedule_that_never_updates_is_refused():
    for never in (lambda: static(10, 1), lambda: geometric(1), lambda: geometric(10, 1), lambda: determinant(100, 1)):
        with pytest.raises(ValueError, match="a schedule needs a look and an update"):
            never()
    with pytest.raises(ValueError, match="episodes must"):
        geometric(0)
    with pytest.raises(ValueError, match="switch must"):
        determinant(10, None, 0.0)
    with pytest.raises(ValueError, match="looks must be increasing"):
        Schedule((3, 3), 2)
