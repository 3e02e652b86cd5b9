"""What is watched: regret on a grid of rounds, against the sum round by round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandana.algorithms.observers import ActionLog, RegretCurve, log_grid
from bandana.algorithms.protocol import Record

MEANS = np.array([0.25, 1.0, 0.5])


def record(user, n, actions):
    return Record(np.array(user), np.array(n), None, np.array(actions)[:, None], np.zeros((len(user), 1)))


@given(st.integers(0, 10**6), st.integers(1, 120), st.integers(1, 30))
def test_regret_against_a_direct_sum(seed, horizon, n_points):
    rng = np.random.default_rng(seed)
    n_reps, grid = 3, log_grid(horizon, n_points)
    curve = RegretCurve(MEANS, grid, n_reps)
    gaps = np.zeros((n_reps, horizon))
    user = np.zeros(n_reps, dtype=np.int64)
    while user.min() < horizon:
        n = np.minimum(rng.integers(0, 20, n_reps), horizon - user)
        actions = rng.integers(0, 3, n_reps)
        curve.observe(record(user.copy(), n, actions))
        for r in range(n_reps):
            gaps[r, user[r] : user[r] + n[r]] = 1.0 - MEANS[actions[r]]
        user += n
    assert np.array_equal(curve.curve, np.cumsum(gaps, axis=1)[:, grid - 1])


def test_regret_by_hand():
    curve = RegretCurve(MEANS, np.array([1, 2, 3, 5]), 2)
    curve.observe(record([0, 0], [1, 3], [0, 1]))
    curve.observe(record([1, 3], [4, 2], [2, 0]))
    assert curve.curve.tolist() == [[0.75, 1.25, 1.75, 2.75], [0.0, 0.0, 0.0, 1.5]]


@given(st.integers(1, 10**7), st.integers(2, 300))
def test_log_grid(horizon, n_points):
    grid = log_grid(horizon, n_points)
    assert (grid[0], grid[-1]) == (1, horizon)
    assert (np.diff(grid) > 0).all()
    assert len(grid) <= n_points


def test_log_grid_is_even_in_the_logarithm():
    assert log_grid(10**4, 5).tolist() == [1, 10, 100, 1000, 10000]
    with pytest.raises(ValueError, match="horizon must be at least 1, got 0"):
        log_grid(0)


def test_action_log():
    log = ActionLog()
    log.observe(record([0, 0], [1, 3], [0, 1]))
    log.observe(record([1, 3], [4, 2], [2, 0]))
    assert [user.tolist() for user in log.user] == [[0, 0], [1, 3]]
    assert [n.tolist() for n in log.n_records] == [[1, 3], [4, 2]]
    assert [actions.tolist() for actions in log.actions] == [[0, 1], [2, 0]]
