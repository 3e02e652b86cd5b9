"""Coins of the loop: a pure function of seed, replicate, user and step, which decisions get and records keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from episode_beds import HORIZON, N_ACTIONS, N_USERS, Cheapest
from own_cases import UNIT, example

from bandana.algorithms.bandits.finite_arm.episodic_ucb import ucb
from bandana.algorithms.coins import Coins, coins_of
from bandana.algorithms.environments.episodes import random_episodes
from bandana.algorithms.environments.tables import random_table
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.run import run
from bandana.privacy_core import Gaussian, LiveLedger, LocalSum, NoNoise, ReproducibleNoise

SEED = np.random.SeedSequence(7)
USERS = np.array([3, 3, 5])
TABLE = random_table(20, 3, UNIT, 0)


class Nothing(NamedTuple):
    """A state that holds nothing."""


@dataclass(frozen=True)
class ByCoin:
    """Plays the arm that its coin says, and learns nothing; it has no `hold`, which is not asked for."""

    n_coins: Any = 2
    n_actions: int = 3
    reward_range: Any = UNIT

    def init(self, n_reps):
        return Nothing(), Nothing()

    def act(self, released, context, step, coins):
        return (coins[:, 0] * self.n_actions).astype(np.int64)

    def absorb(self, sensitive, released, record, ledger):
        return sensitive, released


class CoinedEpisodes(Cheapest):
    """Plays what its coins say in every state."""

    n_coins = 1

    def act(self, released, context, step, coins):
        return (coins[:, 0] * self.n_actions).astype(np.int64)


class Kept:
    """Keeps every record."""

    def __init__(self):
        self.records = []

    def observe(self, record):
        self.records.append(record)


# --- the coins themselves ------------------------------------------------------------------------------------------------


def test_coins_depend_on_seed_replicate_user_step_and_place_alone():
    coins = Coins(SEED, 3)
    found = coins.draw(USERS, 0, 2)
    assert found.shape == (3, 2)
    assert ((found >= 0) & (found < 1)).all()
    assert np.array_equal(found, Coins(np.random.SeedSequence(7), 3).draw(USERS, 0, 2)), "no state"
    assert np.array_equal(found[:2], Coins(SEED, 2).draw(USERS[:2], 0, 2)), "the first replicates of any batch"
    assert np.array_equal(found[:, :1], coins.draw(USERS, 0, 1)), "the first coins of any number"
    others = [coins.draw(USERS + 1, 0, 2), coins.draw(USERS, 1, 2), Coins(np.random.SeedSequence(8), 3).draw(USERS, 0, 2)]
    assert len(np.unique(np.concatenate([found, *others]))) == 24


def test_a_seed_is_not_changed_and_its_noise_is_another():
    seed = np.random.SeedSequence(7)
    before = seed.generate_state(4).tolist()
    Coins(seed, 3).draw(USERS, 0, 2)
    assert seed.generate_state(4).tolist() == before
    assert seed.n_children_spawned == 0
    child = seed.spawn(1)[0]
    assert not np.array_equal(Coins(child, 3).draw(USERS, 0, 2), Coins(seed, 3).draw(USERS, 0, 2))


def test_replicates_may_share_coins_or_have_seeds_of_their_own():
    user = np.array([3, 3, 3])
    shared = Coins(SEED, 3, is_shared=True).draw(user, 0, 2)
    assert (shared == shared[0]).all()
    assert np.array_equal(shared[:1], Coins(SEED, 1).draw(user[:1], 0, 2))
    seeds = [np.random.SeedSequence(s) for s in (1, 2, 1)]
    own = Coins(seeds, 3).draw(user, 0, 2)
    assert np.array_equal(own[0], own[2])
    assert np.array_equal(own[1:2], Coins(seeds[1:2], 1).draw(user[:1], 0, 2))


def test_coins_are_uniform():
    """A chi-square of 64 cells within 5 deviations, for each of two places; the seed is fixed, so never by chance."""
    found = Coins(SEED, 50_000).draw(np.zeros(50_000, dtype=np.int64), 0, 2)
    for column in found.T:
        counts = np.bincount((64 * column).astype(int), minlength=64)
        assert abs(((counts - 50_000 / 64) ** 2).sum() / (50_000 / 64) - 63) < 5 * np.sqrt(2 * 63)
    assert abs(np.corrcoef(found.T)[0, 1]) < 5 / np.sqrt(50_000)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "2", None])
def test_a_number_of_coins_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match="n_coins must be a whole number of at least 0, got"):
        coins_of(ByCoin(n_coins=wrong))


# --- the loop ------------------------------------------------------------------------------------------------------------


def test_the_loop_hands_coins_out_and_records_them():
    kept, log, coins = Kept(), ActionLog(), Coins(SEED, 4)
    run(ByCoin(), TABLE, LiveLedger(4, NoNoise()), observers=[kept, log], coins=coins)
    assert len(kept.records) == TABLE.n_users, "every round is a decision"
    for user, record in enumerate(kept.records):
        drawn = coins.draw(np.full(4, user), 0, 2)
        assert np.array_equal(record.coins, drawn[:, None, :])
        assert np.array_equal(record.actions[:, 0], (drawn[:, 0] * 3).astype(int))
    assert {int(action) for actions in log.actions for action in actions} == {0, 1, 2}


def test_without_coins_nothing_is_recorded():
    kept = Kept()
    run(ucb(3, 4.0, UNIT, doubling=True), TABLE, LiveLedger(2, NoNoise()), observers=[kept], coins=Coins(SEED, 2))
    assert len(kept.records) < TABLE.n_users, "it jumps"
    assert all(record.coins is None for record in kept.records)


@pytest.mark.parametrize("coins", [None, Coins(SEED, 3)])
def test_missing_coins_are_refused(coins):
    with pytest.raises(ValueError, match=r"give coins=Coins\(seed, 4\), for its 4 replicates, got (none|those of 3)"):
        run(ByCoin(), TABLE, LiveLedger(4, NoNoise()), coins=coins)


def test_labels_rename_actions_and_leave_coins():
    plain, renamed = Kept(), Kept()
    labels = np.tile([2, 0, 1], (4, 1))
    for kept, more in ((plain, {}), (renamed, {"labels": labels})):
        run(ByCoin(), TABLE, LiveLedger(4, NoNoise()), observers=[kept], coins=Coins(SEED, 4), **more)
    for one, other in zip(plain.records, renamed.records, strict=True):
        assert np.array_equal(one.coins, other.coins)
        assert np.array_equal(labels[0, one.actions], other.actions)


def test_episodes_have_coins_of_their_own_at_every_step():
    kept, coins = Kept(), Coins(SEED, 4)
    table = random_episodes(N_USERS, HORIZON, 3, N_ACTIONS, UNIT, 0)
    run(CoinedEpisodes(LocalSum(Gaussian(1.0, 1.0))), table, LiveLedger(4, NoNoise()), observers=[kept], coins=coins)
    for user, record in enumerate(kept.records):
        drawn = np.stack([coins.draw(np.full(4, user), step, 1) for step in range(HORIZON)], axis=1)
        assert np.array_equal(record.coins, drawn)
        assert np.array_equal(record.actions, (drawn[:, :, 0] * N_ACTIONS).astype(int))


def test_thompson_sampling_learns_and_its_replicates_are_independent():
    """Without noise the better of two arms is played in most of the last rounds: 0.9 of them, a share of 0.5 untaught."""
    bandit = example("own_thompson").Thompson(mu=1e6)
    table = random_table(400, 2, UNIT, 0).with_rewards(np.tile([0.0, 1.0], (400, 1)))
    log = ActionLog()
    run(bandit, table, LiveLedger(64, NoNoise()), observers=[log], coins=Coins(SEED, 64))
    assert np.mean(log.actions[-100:]) > 0.9
    assert len({tuple(actions) for actions in np.array(log.actions[:20]).T.tolist()}) > 16


def test_a_replicates_run_does_not_depend_on_its_batch():
    bandit = example("own_thompson").bandit
    logs = [ActionLog() for _ in range(2)]
    for log, n_reps in zip(logs, (5, 2), strict=True):
        run(bandit, random_table(40, 2, UNIT, 0), LiveLedger(n_reps, NoNoise()), observers=[log], coins=Coins(SEED, n_reps))
    assert np.array_equal(np.array(logs[0].actions)[:, :2], np.array(logs[1].actions))


def test_the_ledger_of_a_randomized_policy_costs_one_release():
    bandit = example("own_thompson").bandit
    ledger = LiveLedger(8, ReproducibleNoise(SEED))
    run(bandit, random_table(40, 2, UNIT, 0), ledger, coins=Coins(SEED, 8))
    assert list(ledger.worst_record().values()) == [1]
