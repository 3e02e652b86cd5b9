"""The river and the shop, by hand."""

import numpy as np
import pytest

from bandana.algorithms.environments.tabular_instances import inventory, river_swim


def test_the_river_carries_back_and_pays_where_swimming_is_hard():
    found = river_swim(4, 20)
    after, pays = found.transitions[3], found.rewards[3]
    assert after[:, 0].tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    np.testing.assert_allclose(
        after[:, 1], [[0.4, 0.6, 0, 0], [0.05, 0.6, 0.35, 0], [0, 0.05, 0.6, 0.35], [0, 0, 0.4, 0.6]], atol=1e-12
    )
    assert pays[0].tolist() == [0.005, 0]
    assert pays[3].tolist() == [0, 1]
    assert found.best.action_values[0, 0, 1] > found.best.action_values[0, 0, 0], "swimming is worth it in 20 steps"
    assert river_swim(2, 1).transitions[0, :, 1].tolist() == [[0.4, 0.6], [0.4, 0.6]]


def test_the_rivers_small_reward_is_worth_something_where_time_is_short():
    """Two states, two steps: to swim twice pays 0.6, to drift twice 0.5, and to swim once and go on by the state 0.7."""
    instance = river_swim(2, 2, 0.25)
    np.testing.assert_allclose(instance.best.values[1], [0.25, 1.0])
    np.testing.assert_allclose(instance.best.action_values[0, 0], [0.25 + 0.25, 0.4 * 0.25 + 0.6 * 1.0])
    assert instance.best.action_values[1, 0].tolist() == [0.25, 0.0]
    assert river_swim(3, 4).rewards[0, 0, 0] == 0.005


def test_a_day_in_the_shop_by_hand():
    """Stock 1, order 1 on the first, quiet day: demand 0 to 3 with 0.5, 0.3, 0.15, 0.05."""
    found = inventory(4, 5)
    np.testing.assert_allclose(found.transitions[0, 1, 1], [0.2, 0.3, 0.5, 0, 0], atol=1e-12)
    profit = (0.3 * 1 + 0.2 * 2) - 0.1 * (0.5 * 2 + 0.3 * 1) - 0.4
    low, high = -0.4 * 2 - 0.1 * 4, 3.0
    assert found.rewards[0, 1, 1] == pytest.approx((profit - low) / (high - low))
    np.testing.assert_allclose(found.transitions[:, 4, 2], found.transitions[:, 4, 0], atol=1e-12, err_msg="no room")
    assert found.transitions[4, 0, 2, 0] == pytest.approx(0.3 + 0.4), "on the last day two or three come with 0.7"
    values = found.best.action_values[:, 0].argmax(axis=1)
    assert values[0] <= values[-2], "on busy days one orders more"


@pytest.mark.parametrize(
    "make", [lambda: river_swim(1), lambda: river_swim(3, 0), lambda: inventory(0), lambda: inventory(2, 0)]
)
def test_sizes_out_of_their_range_are_refused(make):
    with pytest.raises(ValueError, match="must be a whole number of at least"):
        make()
    for reward in (0.0, 1.0):
        with pytest.raises(ValueError, match="small_reward must lie strictly between 0 and 1"):
            river_swim(3, 4, reward)
