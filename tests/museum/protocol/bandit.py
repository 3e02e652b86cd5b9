"""The bandit that all exhibits are made of: it learns from noisy sums of episodes, and each exhibit adds one thing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bandana.privacy_core import Gaussian, Interval, PhaseSum, Relation

UNIT = Interval(0.0, 1.0)
ONE = Gaussian(1.0, 1.0, Relation.REPLACE_REWARD)


class Sensitive(NamedTuple):
    """Exact statistics."""

    sums: Any
    history: np.ndarray
    """(n_reps, 64) rewards, round by round."""


class Released(NamedTuple):
    """All that decisions are made from."""

    total: np.ndarray
    """(n_reps, n_actions) noisy rewards of each arm's episodes."""
    pulls: np.ndarray
    """(n_reps, n_actions)"""
    clock: np.ndarray
    """(n_reps,) rounds played."""
    forced: np.ndarray
    """(n_reps,) the arm that must come next, or -1."""


@dataclass(frozen=True)
class Bandit:
    """Tries each arm for one episode, then plays the one with the largest noisy mean, one episode after another."""

    sums: Any = field(default_factory=lambda: PhaseSum(ONE))
    n_actions: int = 2
    length: int = 4
    reward_range: Interval = UNIT

    def init(self, n_reps):
        none, clock = np.zeros((n_reps, self.n_actions)), np.zeros(n_reps, dtype=np.int64)
        return (
            Sensitive(self.sums.init(n_reps), np.zeros((n_reps, 64))),
            Released(none, none.astype(np.int64), clock, clock - 1),
        )

    def act(self, released, context, step):
        episode = released.clock // self.length
        best = np.argmax(released.total / np.maximum(released.pulls, 1), axis=1)
        return np.where(released.forced >= 0, released.forced, np.where(episode < self.n_actions, episode, best))

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=np.int64)

    def absorb(self, sensitive, released, record, ledger):
        reward, round_ = record.rewards[:, 0], released.clock
        history = sensitive.history.copy()
        history[np.arange(len(reward)), np.minimum(round_, 63)] = reward
        sums = self.sums.add(sensitive.sums, self.contribution(reward, history, round_), record.n_records)
        clock = round_ + record.n_records
        total, pulls = released.total.copy(), released.pulls.copy()
        ended = np.flatnonzero((clock % self.length == 0) & (record.n_records > 0))
        if len(ended):
            exact = self.exact(sums)[ended].copy()
            sums, noisy, n_rewards = self.close(sums, ledger, ended, history)
            arm = record.actions[ended, 0]
            total[ended, arm] += self.answer(noisy, exact)
            pulls[ended, arm] += n_rewards
        released = Released(total, pulls, clock, np.full(len(reward), -1))
        return Sensitive(sums, history), self.show(released, history, round_)

    @staticmethod
    def exact(sums):
        """(n_reps,) the open episode's exact sum."""
        return (sums.phase if hasattr(sums, "phase") else sums).total

    def contribution(self, reward, history, round_):
        """(n_reps,) what one round adds to its episode."""
        return reward

    def close(self, sums, ledger, ended, history):
        """Releases the episode's sum."""
        return self.sums.close(sums, ledger, ended)

    def answer(self, noisy, exact):
        """What is learned from a release."""
        return noisy

    def show(self, released, history, round_):
        """The released state after a round, which honest code leaves as it is."""
        return released


def force(released, when, arm):
    """The arm is played next in the replicates in which `when` holds."""
    return released._replace(forced=np.where(when, np.asarray(arm).astype(np.int64), released.forced))
