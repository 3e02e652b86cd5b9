"""Bandits that decide by a selection: an honest one for each mechanism, and a broken sibling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandana.privacy_core import (
    AboveThreshold,
    Exponential,
    Interval,
    NoisyMax,
    PermuteAndFlip,
    RandomizedResponse,
    Relation,
    Span,
)

REWARD = Relation.REPLACE_REWARD
UNIT = Interval(0.0, 1.0)


class Sensitive(NamedTuple):
    total: np.ndarray
    """(n_reps, n_actions) exact sums of the exploration under way."""


class Released(NamedTuple):
    best: np.ndarray
    """(n_reps,) the arm that was selected last."""
    clock: np.ndarray
    """(n_reps,) rounds played."""


@dataclass(frozen=True)
class Selecting:
    """Explores all arms `pulls` times, selects one, plays it as often, and begins anew.

    A reward enters the scores of one selection, and moves one of them by at most the width of the range: so does the range
    of the change. Rewards of the rounds that exploit are not used.
    """

    mechanism: Any
    n_actions: int = 2
    pulls: int = 1
    reward_range: Interval = UNIT

    @property
    def length(self):
        return self.n_actions * self.pulls

    def init(self, n_reps):
        zeros = np.zeros(n_reps, dtype=np.int64)
        return Sensitive(np.zeros((n_reps, self.n_actions))), Released(zeros, zeros)

    def act(self, released, context, step):
        place = released.clock % (2 * self.length)
        return np.where(place < self.length, place % self.n_actions, released.best)

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=np.int64)

    def scores(self, total):
        return total

    def absorb(self, sensitive, released, record, ledger):
        place = released.clock % (2 * self.length)
        explores = (place < self.length) & (record.n_records > 0)
        total, best, clock = sensitive.total.copy(), released.best.copy(), released.clock + record.n_records
        total[np.arange(len(total)), record.actions[:, 0]] += np.where(explores, record.rewards[:, 0], 0.0)
        ended = np.flatnonzero(explores & (place == self.length - 1))
        if len(ended):
            best[ended] = self.select(total[ended], Span(clock[ended] - self.length, clock[ended]), ended, ledger)
            total[ended] = 0.0
        return Sensitive(total), Released(best, clock)

    def select(self, total, records, reps, ledger):
        return ledger.release(self.mechanism, self.scores(total), records=records, reps=reps)


@dataclass(frozen=True)
class Satisficing(Selecting):
    """Plays the first arm whose mean exceeds one half, and the last one if none does."""

    def scores(self, total):
        return total - self.pulls * (self.reward_range.low + self.reward_range.high) / 2

    def select(self, total, records, reps, ledger):
        return np.minimum(super().select(total, records, reps, ledger), self.n_actions - 1)


@dataclass(frozen=True)
class NeverForgets(Selecting):
    """Broken: sums are kept, though each release declares the last exploration only."""

    def absorb(self, sensitive, released, record, ledger):
        kept = sensitive.total.copy()
        explores = (released.clock % (2 * self.length) < self.length) & (record.n_records > 0)
        kept[np.arange(len(kept)), record.actions[:, 0]] += np.where(explores, record.rewards[:, 0], 0.0)
        _, released = super().absorb(sensitive, released, record, ledger)
        return Sensitive(kept), released


@dataclass(frozen=True)
class ShowsItsValue(Selecting):
    """Broken: a noisy maximum whose value is used too: an arm that earned less than half is not played."""

    def select(self, total, records, reps, ledger):
        best = super().select(total, records, reps, ledger)
        earned = total[np.arange(len(best)), best] / self.pulls
        return np.where(earned < 0.5, (best + 1) % self.n_actions, best)


@dataclass(frozen=True)
class NoLimitOnPositives(Satisficing):
    """Broken: after the first arm above the threshold it asks for the next one, which nobody pays for."""

    def select(self, total, records, reps, ledger):
        first = super().select(total, records, reps, ledger)
        nobody = Span(records.stop.copy(), records.stop.copy())
        rest = np.where(np.arange(self.n_actions) > first[:, None], self.scores(total), -1e6)
        second = ledger.release(self.mechanism, rest, records=nobody, reps=reps)
        return np.where(second < self.n_actions, second, first)


class Answers(NamedTuple):
    yes: np.ndarray
    """(n_reps, n_actions) how often a user said that the reward was high."""
    pulls: np.ndarray


@dataclass(frozen=True)
class Polling:
    """Every user says by randomized response whether the reward was high; the arm with the largest share is played."""

    mechanism: Any
    n_actions: int = 2
    reward_range: Interval = UNIT

    def init(self, n_reps):
        zeros = np.zeros((n_reps, self.n_actions))
        return Sensitive(zeros[:, :0]), Answers(zeros, zeros)

    def act(self, released, context, step):
        untried = released.pulls.sum(axis=1) < self.n_actions
        index = (released.yes + 1) / (released.pulls + 2)
        return np.where(untried, released.pulls.sum(axis=1).astype(np.int64), np.argmax(index, axis=1))

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=np.int64)

    def option(self, rewards):
        return (rewards > (self.reward_range.low + self.reward_range.high) / 2).astype(np.int64)

    def absorb(self, sensitive, released, record, ledger):
        value = self.mechanism.one_hot(self.option(record.rewards[:, 0]))
        said = ledger.release(self.mechanism, value, records=Span(record.user, record.user + record.n_records))
        rows, arms, is_on = np.arange(len(said)), record.actions[:, 0], record.n_records > 0
        yes, pulls = released.yes.copy(), released.pulls.copy()
        yes[rows, arms] += self.counted(said, value) * is_on
        pulls[rows, arms] += is_on
        return sensitive, Answers(yes, pulls)

    def counted(self, said, value):
        return said


@dataclass(frozen=True)
class BelievesTheTruth(Polling):
    """Broken: counts what the user meant, not what was said."""

    def counted(self, said, value):
        return np.argmax(value, axis=1)


HONEST = {
    "exponential": (Selecting(Exponential(1.0, 1.0, REWARD), pulls=4), "pure(epsilon=1, relation=reward)"),
    "permute-and-flip": (Selecting(PermuteAndFlip(1.0, 1.0, REWARD)), "pure(epsilon=1, relation=reward)"),
    "noisy-max": (Selecting(NoisyMax(1.0, 1.0, REWARD), pulls=4), "pure(epsilon=1, relation=reward)"),
    "above-threshold": (Satisficing(AboveThreshold(1.0, 0.5, True, REWARD)), "pure(epsilon=2, relation=reward)"),
    "randomized-response": (Polling(RandomizedResponse(2, 1.0, REWARD)), "pure(epsilon=1, relation=reward, trust=local)"),
}
"""Name -> an algorithm and what it claims, all true."""

BROKEN = {
    "exponential-half-the-range": (Selecting(Exponential(0.5, 1.0, REWARD)), "pure(epsilon=1, relation=reward)"),
    "permute-and-flip-never-forgets": (NeverForgets(PermuteAndFlip(1.0, 1.0, REWARD)), "pure(epsilon=1, relation=reward)"),
    "noisy-max-shows-its-value": (ShowsItsValue(NoisyMax(1.0, 1.0, REWARD)), "pure(epsilon=1, relation=reward)"),
    "sparse-vector-without-limit": (
        NoLimitOnPositives(AboveThreshold(1.0, 0.5, True, REWARD)),
        "pure(epsilon=2, relation=reward)",
    ),
    "response-believes-the-truth": (
        BelievesTheTruth(RandomizedResponse(2, 1.0, REWARD)),
        "pure(epsilon=1, relation=reward)",
    ),
}
"""Name -> an algorithm and what it claims, all false."""
