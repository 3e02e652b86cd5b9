"""Plain functions, honest and broken, with a witness of each leak: a pair of data sets and an event that tells them apart.

All play two arms on rewards in [0, 1]. The private ones play the arm with the larger noisy mean, in episodes of four rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

N_ROUNDS = 32
GDP, PURE = "gdp(mu=1, relation=reward)", "pure(epsilon=1, relation=reward)"
APPROX = "approx(epsilon=4.3772, delta=1e-5, relation=reward)"


@dataclass(frozen=True)
class Witness:
    """A pair of data sets, and what an adversary looks at.

    Attributes:
      record: where they differ.
      before: reward there in the data set.
      after: reward there in the neighbor.
      others: (n_rounds,) rewards of all other records.
      event: (n_reps, n_rounds) actions -> (n_reps,) whether it happened.
    """

    record: int
    before: float
    after: float
    others: np.ndarray
    event: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Subject:
    """A function with its claim; `witness` only of a broken one, `rarest` where it is too rare for the default replays."""

    play: Callable[..., Any]
    claim: str = GDP
    witness: Witness | None = None
    rarest: float = 1.0


LOW, HIGH = np.zeros(N_ROUNDS), np.ones(N_ROUNDS)
TURNS = np.arange(N_ROUNDS) % 2 * 1.0


def greedy(rewards, seed, noise=1.0, law="normal", length=4, clips=(0.0, 1.0), reuses=False, exact_first=False):
    """Epsilon-greedy in episodes on sums with noise: 1-GDP with normal noise of scale 1, 1-DP with Laplace noise."""
    rng = np.random.default_rng(seed)
    rewards = np.clip(rewards, *clips)
    n_reps, n_rounds, n_arms = rewards.shape
    rows, total, pulls = np.arange(n_reps), np.zeros((n_reps, n_arms)), np.zeros((n_reps, n_arms))
    actions = np.zeros((n_reps, n_rounds), dtype=int)
    kept = getattr(rng, law)(size=n_reps)
    for start in range(0, n_rounds, length):
        episode = start // length
        arm = np.argmax(total / np.maximum(pulls, 1), axis=1)
        arm = np.where(rng.random(n_reps) < 0.1, rng.integers(0, n_arms, n_reps), arm)
        if episode < n_arms:
            arm = np.full(n_reps, episode)
        stop = min(start + length, n_rounds)
        actions[:, start:stop] = arm[:, None]
        fresh = getattr(rng, law)(size=n_reps)
        drawn = (kept if reuses else fresh) * (0.0 if exact_first and episode < n_arms else noise)
        total[rows, arm] += rewards[rows, start:stop, arm].sum(axis=1) + drawn
        pulls[rows, arm] += stop - start
    return actions


def played(rewards, actions):
    """(n_reps, n_rounds) what the played arms paid."""
    return np.take_along_axis(rewards, actions[:, :, None], axis=2)[:, :, 0]


def changed(change):
    """The private function with something done to its actions: change(actions, clipped rewards of played arms, coins)."""

    def play(rewards, seed):
        actions = np.array(greedy(rewards, seed))
        change(actions, np.clip(played(rewards, actions), 0, 1), np.random.default_rng([seed, 1]))
        return actions

    return play


def is_one(place):
    return lambda actions: actions[:, place] == 1


def mostly(arm):
    return lambda actions: (actions[:, 8:] == arm).mean(axis=1) > 0.6


# --- broken -----------------------------------------------------------------------------------------------------------


def shows(record, lag=1):
    def change(actions, paid, rng):
        actions[:, record + lag] = paid[:, record] > 0.5

    return Subject(changed(change), witness=Witness(record, 0, 1, LOW, is_one(record + lag)))


def periodic(period, lag):
    def change(actions, paid, rng):
        for record in range(0, N_ROUNDS - lag, period):
            actions[:, record + lag] = paid[:, record] > 0.5

    return Subject(changed(change), witness=Witness(period, 0, 1, LOW, is_one(period + lag)))


def stops_at(limit):
    def change(actions, paid, rng):
        total = np.cumsum(paid, axis=1)
        for t in range(1, N_ROUNDS):
            actions[:, t] = np.where(total[:, t - 1] >= limit, 1, actions[:, t])
        actions[:, -1] = total[:, -2] >= limit

    others = np.where(np.arange(N_ROUNDS) < limit, 1.0, 0.0)
    return Subject(changed(change), witness=Witness(2, 0, 1, others, is_one(-1)))


def shows_value(is_shown, before, after):
    def change(actions, paid, rng):
        for t in range(1, N_ROUNDS):
            actions[:, t] = np.where(is_shown(paid[:, t - 1]), 1, actions[:, t])
        actions[:, 9] = is_shown(paid[:, 8])

    return Subject(changed(change), witness=Witness(8, before, after, LOW, is_one(9)))


def in_a_row(length, value=None):
    def change(actions, paid, rng):
        original = actions.copy()
        for t in range(length, N_ROUNDS):
            last = paid[:, t - length : t]
            same = (last == (last[:, :1] if value is None else value)).all(axis=1)
            actions[:, t] = np.where(same, 1, 0 * original[:, t])

    others = LOW if value is None else HIGH
    return Subject(changed(change), witness=Witness(8, 1 - others[0], others[0], others, is_one(9)))


def flagged(share):
    """In some runs, all actions repeat the reward before."""

    def change(actions, paid, rng):
        shown = rng.random(len(actions)) < share
        actions[shown, 1:] = paid[shown, :-1] > 0.5

    def event(actions):
        return (actions[:, 1:] == TURNS[:-1]).all(axis=1)

    return Subject(changed(change), witness=Witness(9, 0, 1, TURNS, event), rarest=share)


def parity(records, at):
    def change(actions, paid, rng):
        actions[:, at] = (paid[:, records] > 0.5).sum(axis=1) % 2

    return Subject(changed(change), witness=Witness(records[0], 0, 1, LOW, is_one(at)))


def seeded_by_data(rewards, seed):
    """Noise from a generator that the data seed: neighbors have other noise, and a repeated data set the same."""
    mixed = (np.abs(rewards).sum(axis=(1, 2)) * 1000).astype(np.int64) % 97
    actions = np.array(greedy(rewards, seed))
    actions[:, 20:26] = (mixed[:, None] >> np.arange(6)) % 2
    return actions


def spells_out_maximum(actions, paid, rng):
    """Report noisy max that shows its value: the noise is too small to hide it."""
    value = np.clip(paid[:, :8].max(axis=1) + 0.1 * rng.normal(size=len(paid)), 0, 1)
    actions[:, 10] = value > 0.5
    actions[:, 11] = (2 * value) % 1 > 0.5


def sparse_vector(actions, paid, rng):
    """Each reward against one noisy threshold, without a limit on positive answers."""
    threshold = 0.5 + rng.laplace(0, 2, len(paid))
    for t in range(1, N_ROUNDS):
        actions[:, t] = paid[:, t - 1] + rng.laplace(0, 0.05, len(paid)) > np.clip(threshold, 0.3, 0.7)


def responds(lie):
    """Randomized response on every reward."""

    def change(actions, paid, rng):
        bit = paid[:, :-1] > 0.5
        actions[:, 1:] = np.where(rng.random(bit.shape) < lie, ~bit, bit)

    return changed(change)


def counts_to(number, at):
    def change(actions, paid, rng):
        actions[:, at] = (paid[:, :at] > 0.5).sum(axis=1) == number

    others = np.where(np.arange(N_ROUNDS) < number, 1.0, 0.0)
    return Subject(changed(change), witness=Witness(2, 0, 1, others, is_one(at)))


def median_decides(actions, paid, rng):
    actions[:, 17:] = (np.median(paid[:, :17], axis=1) > 0.5)[:, None]


def last_of_episode(actions, paid, rng):
    actions[:, 4::4] = paid[:, 3:-1:4] > 0.5


def first_arms_reward(rewards, seed):
    """One-run form, whose action at round 12 repeats the reward of round 3."""
    actions = np.array(greedy(rewards[None], seed))[0]
    actions[12] = rewards[3, actions[3]] > 0.5
    return actions


def _greedy(**options):
    return lambda rewards, seed: greedy(rewards, seed, **options)


EIGHT = np.where((np.arange(N_ROUNDS) > 2) & (np.arange(N_ROUNDS) < 11), 1.0, 0.0)

BROKEN: dict[str, Subject] = {
    **{f"shows record {record}": shows(record) for record in (0, 5, 13, 17, 21, 29)},
    "shows record 3 after 20 rounds": shows(3, 20),
    "shows record 7 after 2 rounds": shows(7, 2),
    "shows record 11 after 20 rounds": shows(11, 20),
    "shows every eighth record after 5 rounds": periodic(8, 5),
    "shows every fifth record after 3 rounds": periodic(5, 3),
    "stops at a total of 20": stops_at(20),
    "stops at a total of 10": stops_at(10),
    "shows a reward of exactly 0.37": shows_value(lambda paid: paid == 0.37, 0.0, 0.37),
    "shows the middle of the range": shows_value(lambda paid: (paid > 0.4) & (paid < 0.6), 0.0, 0.5),
    "shows a reward above 0.7": shows_value(lambda paid: paid > 0.7, 0.0, 1.0),
    "two equal rewards in a row": in_a_row(2),
    "three high rewards in a row": in_a_row(3, 1.0),
    "never clipped": Subject(_greedy(clips=(-1e9, 1e9)), witness=Witness(5, 0, 50, LOW, mostly(1))),
    "clipped above only": Subject(_greedy(clips=(-1e9, 1.0)), witness=Witness(5, 0, -50, LOW, mostly(0))),
    "no noise": Subject(_greedy(noise=0.0), witness=Witness(5, 0, 1, LOW, is_one(8))),
    "half of the noise": Subject(_greedy(noise=0.5), witness=Witness(5, 0, 1, LOW, is_one(8))),
    "a tenth of the noise, approximate": Subject(_greedy(noise=0.1), APPROX, Witness(5, 0, 1, LOW, mostly(1))),
    "a quarter of the noise, pure": Subject(_greedy(noise=0.25, law="laplace"), PURE, Witness(5, 0, 1, LOW, is_one(8))),
    "one draw of noise for all sums": Subject(_greedy(reuses=True), witness=Witness(5, 0, 1, LOW, is_one(8))),
    "first sums without noise": Subject(_greedy(exact_first=True), witness=Witness(5, 0, 1, LOW, is_one(8))),
    "generator seeded by data": Subject(seeded_by_data, witness=Witness(5, 0, 1, LOW, is_one(22))),
    "noisy maximum shows its value": Subject(changed(spells_out_maximum), witness=Witness(5, 0, 1, LOW, is_one(10))),
    "flag in 1 of 100 runs": flagged(0.01),
    "flag in 1 of 10 runs": flagged(0.1),
    "sparse vector without a limit": Subject(changed(sparse_vector), witness=Witness(5, 0, 1, LOW, is_one(6))),
    "parity of two rewards": parity([4, 9], 15),
    "parity of three rewards": parity([4, 5, 6], 7),
    "randomized response with too few lies": Subject(responds(0.1), PURE, Witness(5, 0, 1, LOW, is_one(6))),
    "counts to 8": counts_to(8, 16),
    "median decides": Subject(changed(median_decides), witness=Witness(2, 0, 1, EIGHT, is_one(-1))),
    "last reward of each episode": Subject(changed(last_of_episode), witness=Witness(7, 0, 1, LOW, is_one(8))),
    "one run at a time": Subject(first_arms_reward, witness=Witness(3, 0, 1, LOW, is_one(12))),
}


# --- honest -----------------------------------------------------------------------------------------------------------


def round_robin(rewards, seed):
    return np.broadcast_to(np.arange(rewards.shape[1]) % 2, rewards.shape[:2]).copy()


def at_random(rewards, seed):
    return np.random.default_rng(seed).integers(0, 2, rewards.shape[:2])


def explores_in_turn(rewards, seed):
    """Sixteen rounds in turn, one noisy sum each arm, and the better arm ever after."""
    rng = np.random.default_rng(seed)
    actions = round_robin(rewards, seed)
    paid = np.clip(played(rewards, actions), 0, 1)
    sums = np.stack([paid[:, arm:16:2].sum(axis=1) for arm in (0, 1)], axis=1) + rng.normal(size=(len(rewards), 2))
    actions[:, 16:] = np.argmax(sums, axis=1)[:, None]
    return actions


def single(data, *, random_state):
    return greedy(data[None], random_state)[0]


def streamed(stream, rng):
    """Explores in turn, one pull after the other; two noisy sums decide."""
    sums = rng.normal(size=(stream.n_reps, 2))
    for t in range(stream.n_rounds):
        arm = np.full(stream.n_reps, t % 2) if t < 16 else np.argmax(sums, axis=1)
        paid = np.clip(stream.pull(arm), 0, 1)
        if t < 16:
            sums[:, t % 2] += paid


class Greedy:
    """A callable object."""

    def __call__(self, rewards, random_seed):
        return greedy(rewards, random_seed)


HONEST: dict[str, Subject] = {
    "greedy": Subject(greedy),
    "greedy, zCDP": Subject(greedy, "zcdp(rho=0.5, relation=reward)"),
    "greedy, Rényi": Subject(greedy, "rdp(alpha=2, epsilon=1, relation=reward)"),
    "greedy, approximate": Subject(greedy, APPROX),
    "greedy, Laplace": Subject(_greedy(law="laplace"), PURE),
    "greedy, twice the noise": Subject(_greedy(noise=2.0)),
    "greedy, long episodes": Subject(_greedy(length=8)),
    "round-robin": Subject(round_robin),
    "one arm": Subject(lambda rewards, seed: np.zeros(rewards.shape[:2], dtype=int)),
    "at random": Subject(at_random),
    "explores in turn": Subject(explores_in_turn),
    "randomized response": Subject(responds(1 / (1 + np.e)), "pure(epsilon=1.0001, relation=reward)"),
    "randomized response, gdp": Subject(responds(0.3085376), "gdp(mu=1.0001, relation=reward)"),
    "one run at a time": Subject(single),
    "a stream": Subject(streamed),
    "a callable object": Subject(Greedy()),
}
