"""The randomized trial: the published arm means, and one person a cell."""

from __future__ import annotations

import numpy as np
import pytest

from bandana.algorithms.environments.logged import ARM_NAMES, people_table, resampled_arms, thornton_hiv

SIZES_WITH_MISSING_OUTCOMES = [679, 639, 654, 603, 326]
MEANS = [0.339, 0.683, 0.783, 0.870, 0.861]


def test_sizes():
    sizes = [len(group) for group in thornton_hiv()]
    assert len(ARM_NAMES) == 5
    for found, at_most in zip(sizes, SIZES_WITH_MISSING_OUTCOMES, strict=True):
        assert 0.9 * at_most <= found <= at_most
    assert 2800 <= sum(sizes) <= 2901


def test_means():
    for group, mean in zip(thornton_hiv(), MEANS, strict=True):
        assert set(np.unique(group)) == {0.0, 1.0}
        assert group.mean() == pytest.approx(mean, abs=6e-4)


def test_resampled_arms_have_the_shares_as_means():
    environment = resampled_arms(10**7, np.random.SeedSequence(0))
    assert environment.means == pytest.approx(MEANS, abs=6e-4)
    assert environment.n_users == 10**7
    assert environment.names == ARM_NAMES


def test_a_person_stands_in_one_cell():
    table = people_table(np.random.SeedSequence(0))
    groups = thornton_hiv()
    smallest = min(len(group) for group in groups)
    assert table.rewards.shape == (smallest, 5)
    for column, group in zip(table.rewards.T, groups, strict=True):
        for outcome in (0.0, 1.0):
            assert (column == outcome).sum() <= (group == outcome).sum(), "without replacement"
        if len(group) == smallest:
            assert column.sum() == group.sum(), "the whole arm, once"


def test_the_order_is_random_and_the_seed_decides():
    first, again, other = (people_table(np.random.SeedSequence(seed)).rewards for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    short = people_table(np.random.SeedSequence(1), 100)
    assert np.array_equal(short.rewards, first[:100])


@pytest.mark.parametrize("n_users", [0, 1000])
def test_more_people_than_there_are(n_users):
    with pytest.raises(ValueError, match=r"has \d+ people in its smallest arm; n_users must be 1 to"):
        people_table(np.random.SeedSequence(0), n_users)
