"""Real contexts: what the tables hold."""

from __future__ import annotations

import numpy as np
import pytest

from bandana.algorithms.environments.logged import RANDHIE_ARMS, digits_table, drawn_people, randhie, randhie_table
from bandana.algorithms.environments.tables import ContextTable
from bandana.privacy_core import Interval


def seed(n=0):
    return np.random.SeedSequence(n)


def test_randhie_is_what_it_was():
    covariates, arm, rewards = randhie()
    assert covariates.shape == (20190, 8)
    assert covariates.min() == 0
    assert covariates.max() == 1
    assert np.bincount(arm).tolist() == [10997, 4065, 1401, 2653, 1074]
    assert np.unique(rewards).tolist() == [0, 1]
    assert rewards[arm == 0].mean() == pytest.approx(0.721015, abs=1e-6)
    assert rewards[arm == 3].mean() == pytest.approx(0.554844, abs=1e-6)


def test_the_table_of_randhie():
    table = randhie_table(seed(), 500)
    assert table.features.shape == (500, 5, 21)
    assert table.names == RANDHIE_ARMS
    assert table.reward_range == Interval(0.0, 1.0)
    assert set(np.unique(table.rewards)) == {0.0, 1.0}
    assert np.linalg.norm(table.features, axis=2).max() <= 1
    assert np.allclose(table.features[:, :, :5] * np.sqrt(3), np.eye(5))
    # The price enters as the share that is paid.
    rates = table.features[:, :, 13:].sum(axis=(0, 2)) / table.features[:, :, 5:13].sum(axis=(0, 2))
    assert rates == pytest.approx([0.0, 0.25, 0.50, 0.95, 1.00], abs=1e-4)
    again = randhie_table(seed(), 500)
    assert np.array_equal(again.rewards, table.rewards)
    assert np.array_equal(again.features, table.features)
    assert not np.array_equal(randhie_table(seed(1), 500).rewards, table.rewards)


def test_a_persons_own_plan_keeps_the_own_outcome():
    _, arm, rewards = randhie()
    rows = np.random.Generator(np.random.SFC64(seed())).permutation(len(rewards))[:500]
    table = randhie_table(seed(), 500)
    assert np.array_equal(table.rewards[np.arange(500), arm[rows]], rewards[rows])


def test_the_table_of_digits():
    table = digits_table(seed(), n_projected=4)
    assert table.features.shape == (1797, 10, 40)
    assert np.allclose(np.linalg.norm(table.features, axis=2), 1.0)
    assert (table.rewards.sum(axis=1) == 1).all(), "one action names the digit"
    blocks = table.features.reshape(1797, 10, 10, 4)
    assert np.array_equal(blocks[:, 3, 3], blocks[:, 7, 7]), "one image, a parameter of its own for each action"
    assert (blocks[:, 3, 4] == 0).all()
    assert digits_table(seed(), 20).n_users == 20


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: randhie_table(seed(), 20191), "must be 1 to 20190, got 20191"),
        (lambda: randhie_table(seed(), 0), "got 0"),
        (lambda: digits_table(seed(), 1798), "must be 1 to 1797, got 1798"),
        (lambda: digits_table(seed(), 10, n_projected=65), "n_projected must be 1 to 64"),
    ],
)
def test_refusals(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def people_of(n_reps, n=0):
    """Three people with two actions, of whom each replicate meets five."""
    features = np.arange(12.0).reshape(3, 2, 2) / 20
    table = ContextTable(features, [[0.0, 1.0], [1.0, 0.0], [0.25, 0.5]], Interval(0.0, 1.0))
    return table, drawn_people(table, n_reps, 5, seed(n))


def test_people_are_drawn_anew_in_each_replicate_and_answer_as_in_the_table():
    table, drawn = people_of(4)
    assert drawn.people.shape == (4, 5)
    assert len({tuple(row) for row in drawn.people.tolist()}) > 1
    for t in range(5):
        user, rows = np.full(4, t), drawn.people[:, t]
        contexts = drawn.contexts(user)
        np.testing.assert_array_equal(contexts, table.features[rows])
        np.testing.assert_array_equal(drawn.mean_rewards(user, contexts), table.rewards[rows])
        actions = np.array([0, 1, 0, 1])
        np.testing.assert_array_equal(drawn.respond(user, np.ones(4, dtype=int), actions), table.rewards[rows, actions])
    with pytest.raises(ValueError, match="asked alone"):
        drawn.respond(user, np.full(4, 2), actions)


def test_gaps_are_those_of_the_people_of_each_replicate():
    table, drawn = people_of(3)
    lost = table.rewards.max(axis=1, keepdims=True) - table.rewards
    for r, people in enumerate(drawn.people):
        np.testing.assert_allclose(drawn.gaps(3)[r], lost[people].mean(axis=0))


def test_fewer_replicates_of_a_seed_meet_the_same_people():
    np.testing.assert_array_equal(people_of(2)[1].people, people_of(6)[1].people[:2])
    assert not np.array_equal(people_of(6, 1)[1].people, people_of(6)[1].people)
