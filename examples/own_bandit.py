"""A private bandit in one file: it plays in episodes, and follows the arm whose noisy mean is largest.

`bandana audit-own examples/own_bandit.py:bandit --claim "gdp(mu=1, relation=reward)"` audits it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.privacy_core import Gaussian, Interval, OpenPhase, PhaseSum, Relation

UNIT = Interval(0.0, 1.0)


class Sensitive(NamedTuple):
    """Exact statistics: only `absorb` sees them."""

    phase: OpenPhase


class Released(NamedTuple):
    """All that decisions are made from: noisy sums and public counts."""

    total: np.ndarray
    """(n_reps, n_actions) noisy rewards of each arm's episodes."""
    pulls: np.ndarray
    """(n_reps, n_actions)"""
    clock: np.ndarray
    """(n_reps,) rounds played."""


@dataclass(frozen=True)
class EpisodicGreedy:
    """Tries every arm for one episode, then plays the arm with the largest noisy mean, one episode after another.

    A reward lies in one episode's sum, and that sum is released once, with Gaussian noise of 1/mu times its
    sensitivity: the whole run is mu-GDP (`docs/privacy.md`, one-touch lemma).
    """

    n_actions: int = 2
    mu: float = 1.0
    length: int = 4
    reward_range: Interval = UNIT

    @property
    def sums(self):
        """The sum of one episode; replacing one reward moves it by at most the width of the range."""
        return PhaseSum(Gaussian(self.reward_range.width, 1 / self.mu, Relation.REPLACE_REWARD))

    def init(self, n_reps):
        """Nothing played yet."""
        table = np.zeros((n_reps, self.n_actions))
        return Sensitive(self.sums.init(n_reps)), Released(table, table.astype(int), np.zeros(n_reps, dtype=int))

    def act(self, released, context, step):
        """(n_reps,) each arm in turn first, then the best one."""
        episode = released.clock // self.length
        best = np.argmax(released.total / np.maximum(released.pulls, 1), axis=1)
        return np.where(episode < self.n_actions, episode, best)

    def hold(self, released, actions):
        """(n_reps,) rounds until the episode ends."""
        return self.length - released.clock % self.length

    def absorb(self, sensitive, released, record, ledger):
        """Adds to the episode's sum; where the episode is complete, releases it."""
        phase = self.sums.add(sensitive.phase, record.rewards[:, 0], record.n_records)
        clock = released.clock + record.n_records
        ended = np.flatnonzero((clock % self.length == 0) & (record.n_records > 0))
        total, pulls = released.total.copy(), released.pulls.copy()
        if len(ended):
            phase, noisy, n_rewards = self.sums.close(phase, ledger, ended)
            arm = record.actions[ended, 0]
            total[ended, arm] += noisy
            pulls[ended, arm] += n_rewards
        return Sensitive(phase), Released(total, pulls, clock)


bandit = EpisodicGreedy()
