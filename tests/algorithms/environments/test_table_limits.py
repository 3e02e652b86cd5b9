"""What a table must refuse, or keep inside its range, so that a sum's sensitivity is never exceeded."""

import numpy as np
import pytest

from bandana.algorithms.environments.tables import RewardTable
from bandana.privacy_core import Interval


def test_sums_that_a_float_cannot_hold_exactly_are_refused():
    with pytest.raises(ValueError, match="are exact for at most"):
        RewardTable(np.full((1000, 2), 1e7), Interval(0, 1e7))


def test_rewards_stay_inside_a_range_whose_end_is_off_the_grid():
    third = Interval(0.0, 2 / 3)
    table = RewardTable([[2 / 3, 0.0], [0.0, 0.0]], third)
    assert table.rewards.max() <= 2 / 3
    moved = table.replaced(0, [0.0, 0.0])
    whole = (np.array([0]), np.array([2]), np.array([0]))
    assert table.respond(*whole) - moved.respond(*whole) <= third.width


def test_a_replaced_row_needs_one_reward_for_each_action():
    table = RewardTable([[1.0, 0.0], [0.0, 0.0]], Interval(0.0, 1.0))
    for row in (0.5, [0.5], [0.5, 0.5, 0.5]):
        with pytest.raises(ValueError, match="one reward for each of 2 actions"):
            table.replaced(0, row)
