"""Fixed data sets: exact sums, neighbors, and refusals that name the cell."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandana.algorithms.environments.tables import RewardTable
from bandana.privacy_core import Interval

UNIT = Interval(0.0, 1.0)
GRID = 2.0**-30


def ints(*values):
    return np.array(values, dtype=np.int64)


def random_table(seed, n_users=50, n_actions=3):
    return RewardTable(np.random.default_rng(seed).random((n_users, n_actions)), UNIT)


def test_rewards_lie_on_the_grid_next_to_what_was_given():
    given_rewards = np.random.default_rng(0).random((1000, 4))
    table = RewardTable(given_rewards, UNIT)
    steps = table.rewards / GRID
    assert (steps == np.round(steps)).all()
    assert np.abs(table.rewards - given_rewards).max() <= GRID / 2
    assert (table.n_users, table.n_actions) == (1000, 4)


@given(st.integers(0, 10**6), st.integers(0, 49), st.integers(0, 50), st.integers(0, 2))
def test_a_span_is_the_same_number_as_its_rounds(seed, user, n, action):
    table = random_table(seed)
    n = min(n, 50 - user)
    (whole,) = table.respond(ints(user), ints(n), ints(action))
    total = 0.0
    for record in range(user, user + n):
        (one,) = table.respond(ints(record), ints(1), ints(action))
        assert one == table.rewards[record, action]
        total += one
    assert whole == total
    if user > 0:
        (both,) = table.respond(ints(user - 1), ints(n + 1), ints(action))
        assert both - whole == table.rewards[user - 1, action]


def test_replicates_ask_for_their_own_spans():
    table = RewardTable([[1.0, 0.0], [0.5, 0.25], [0.0, 0.75]], UNIT)
    found = table.respond(ints(0, 1, 2, 3), ints(3, 2, 1, 0), ints(0, 1, 1, 0))
    assert found.tolist() == [1.5, 1.0, 0.75, 0.0]


@given(st.integers(0, 10**6), st.integers(0, 49))
def test_a_neighbor_differs_in_sums_that_hold_the_record_and_in_no_other(seed, user):
    table = random_table(seed)
    row = [0.125, 1.0, 0.0]
    neighbor = table.replaced(user, row)
    assert neighbor.rewards[user].tolist() == row
    assert np.array_equal(np.delete(neighbor.rewards, user, 0), np.delete(table.rewards, user, 0))
    for action in range(3):
        change = row[action] - table.rewards[user, action]
        for start, n in [(0, user), (user + 1, 49 - user), (user, 1), (0, 50), (0, user + 1)]:
            (before,), (after,) = (t.respond(ints(start), ints(n), ints(action)) for t in (table, neighbor))
            assert after - before == (change if start <= user < start + n else 0.0)


def test_the_table_itself_is_not_replaced():
    table = random_table(1)
    kept = table.rewards.copy()
    table.replaced(3, [0.0, 0.0, 0.0])
    assert np.array_equal(table.rewards, kept)


def test_a_neighbor_outside_the_range_needs_a_wider_one():
    table = random_table(1)
    with pytest.raises(ValueError, match=r"user 3, action 1 is .*7\.0.*range \[0, 1\]"):
        table.replaced(3, [0.0, 7.0, 0.0])
    wide = table.replaced(3, [0.0, 7.0, -2.0], Interval(-2.0, 7.0))
    assert wide.clipped(UNIT).rewards[3].tolist() == [0.0, 1.0, 0.0]
    assert np.array_equal(wide.clipped(UNIT).replaced(3, table.rewards[3]).rewards, table.rewards)


def test_clipped():
    table = RewardTable([[-2.0, 0.5], [0.25, 3.0]], Interval(-2.0, 3.0), ("left", "right"))
    clipped = table.clipped(UNIT)
    assert clipped.rewards.tolist() == [[0.0, 0.5], [0.25, 1.0]]
    assert clipped.names == ("left", "right")
    assert clipped.reward_range == UNIT
    assert table.clipped(Interval(-5.0, 5.0)) is table


def test_means_and_names():
    table = RewardTable([[1.0, 0.0], [0.5, 0.25]], UNIT)
    assert table.means.tolist() == [0.75, 0.125]
    assert table.names == ("arm 0", "arm 1")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -0.001, 1.001])
def test_a_bad_cell_is_named(bad):
    rewards = np.full((4, 3), 0.5)
    rewards[2, 1] = bad
    with pytest.raises(ValueError, match=re.escape("user 2, action 1 is ") + f".*{bad!r}"):
        RewardTable(rewards, UNIT)


@pytest.mark.parametrize("shape", [(3,), (3, 1), (0, 2), (2, 2, 2)])
def test_a_bad_shape_is_named(shape):
    with pytest.raises(ValueError, match=re.escape(f"got {shape}")):
        RewardTable(np.zeros(shape), UNIT)


@pytest.mark.parametrize("user", [-1, 50])
def test_a_user_that_is_not_there(user):
    with pytest.raises(ValueError, match=rf"user must lie in \[0, 50\), got {user}"):
        random_table(0).replaced(user, [0.0, 0.0, 0.0])
