"""When batched algorithms look and update."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bandana.algorithms.papers.luyo import lsvi_updates
from bandana.algorithms.regression.private_ridge import Regularizer, regularizer
from bandana.algorithms.rl.linear_mdp.batches import Schedule, determinant, geometric, most_switches, static


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


def test_determinants_are_looked_at_after_every_root_of_the_episodes():
    schedule = determinant(1000, None, 0.5)
    assert schedule.looks == tuple(31 * i for i in range(1, 33))
    assert schedule.most_updates == 32
    assert schedule.log_growth == pytest.approx(math.log(1.5))
    assert determinant(1024).looks[-1] == 1024 - 32, "nobody would use what the last episode teaches"
    assert determinant(1024, 4).most_updates == 3
    assert determinant(4, 9).most_updates == len(determinant(4).looks) == 1


def test_the_number_of_switches_by_hand():
    """Trace of at most k + d b, over shift s: d = 2, k = 12, b = 8, s = 4 give 2 log 3.5 a step, of three steps."""
    looks = [Regularizer(4.0, 1.0, 8.0), Regularizer(4.0, 1.0, 8.0)]
    schedule = Schedule((6, 12), 2, math.log(3.5) * 10)
    assert most_switches(schedule, 2, 3, looks) == pytest.approx(1 + 3 * 2 / 10)
    assert most_switches(Schedule((6, 12), 2, 0.1), 2, 3, looks) == 2, "at most one a look"


def grown(generator, d, looks, shift, norm, is_adverse):
    """Log-determinants over the shift at each look: features of norm 1, and noise of norm at most `norm` in each matrix."""
    total, found = np.zeros((d, d)), []
    for each in range(looks):
        for _ in range(20):
            x = np.eye(d)[min(each * d // looks, d - 1)] if is_adverse else generator.standard_normal(d)
            total += np.outer(x, x) / (x @ x)
        noise = norm * (-1) ** each * np.eye(d) if is_adverse else norm * np.diag(generator.uniform(-1, 1, d))
        found.append(np.linalg.slogdet(total + noise + shift * np.eye(d))[1] - d * math.log(shift))
    return np.array(found)


@pytest.mark.parametrize("is_adverse", [False, True])
def test_no_run_within_its_bounds_needs_more_switches(is_adverse):
    """Also where noise turns from one end of its range to the other at each look, and directions come one after another."""
    d, length, looks, q, growth = 3, 2, 40, 5.0, math.log(1.5)
    added = regularizer(1.0, q)
    schedule = Schedule(tuple(20 * i for i in range(1, looks + 1)), looks, growth)
    most = most_switches(schedule, d, length, [added] * looks)
    generator = np.random.default_rng(1)
    each = np.stack([grown(generator, d, looks, added.added, q, is_adverse) for _ in range(length)], axis=1)
    reference, updates = np.zeros(length), 0
    for row in each:
        if updates == 0 or (row > reference + growth).any():
            reference, updates = np.maximum(reference, row), updates + 1
    assert 5 < updates <= most <= looks


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
