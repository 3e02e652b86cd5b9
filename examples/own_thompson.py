"""A private bandit that randomizes: Thompson sampling on noisy sums, with coins that the loop hands out.

`bandana audit-own examples/own_thompson.py:bandit --claim "gdp(mu=1, relation=reward)"` audits it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bandana.privacy_core import Gaussian, Interval, OpenPhase, PhaseSum, Relation

UNIT = Interval(0.0, 1.0)


class Sensitive(NamedTuple):
    """Exact statistics: only `absorb` sees them."""

    phase: OpenPhase
    """Sums of each arm's rewards in the episode under way."""


class Released(NamedTuple):
    """All that decisions are made from, besides coins: noisy sums and public counts."""

    total: np.ndarray
    """(n_reps, n_actions) noisy rewards of each arm, of the episodes in which it was played."""
    pulls: np.ndarray
    """(n_reps, n_actions) pulls in complete episodes."""
    n_sums: np.ndarray
    """(n_reps, n_actions) how many noisy sums `total` adds up."""
    current: np.ndarray
    """(n_reps, n_actions) pulls in the episode under way."""


@dataclass(frozen=True)
class Thompson:
    """Gaussian Thompson sampling: draws a mean for each arm from its posterior, and plays the arm with the largest draw.

    Rewards are released in episodes of `length` rounds, as one vector with a sum for each arm. A reward lies in one
    coordinate of one vector, so the whole run is mu-GDP (`docs/privacy.md`, one-touch lemma). The posterior given the noisy
    sums is that of a flat prior and Gaussian rewards; noise adds to its variance. Draws are made from coins, one for each
    arm and round, which neither cost nor protect privacy.
    """

    n_actions: int = 2
    mu: float = 1.0
    length: int = 4
    reward_range: Interval = UNIT

    @property
    def n_coins(self):
        """Coins that a decision takes: one for each arm."""
        return self.n_actions

    @property
    def sums(self):
        """The sums of one episode; replacing one reward moves one of them by at most the width of the range."""
        return PhaseSum(Gaussian(self.reward_range.width, 1 / self.mu, Relation.REPLACE_REWARD))

    def init(self, n_reps):
        """Nothing played yet."""
        zeros = np.zeros((n_reps, self.n_actions))
        return Sensitive(self.sums.init(n_reps, (self.n_actions,))), Released(zeros, zeros, zeros, zeros)

    def act(self, released, context, step, coins):
        """(n_reps,) the arm with the largest draw."""
        width, pulls = self.reward_range.width, np.maximum(released.pulls, 1)
        mean = np.where(released.pulls > 0, released.total / pulls, (self.reward_range.low + self.reward_range.high) / 2)
        variance = (width / 2) ** 2 / pulls + released.n_sums * (self.sums.mechanism.deviation / pulls) ** 2
        draw = mean + np.sqrt(variance) * ndtri(np.maximum(coins, 2.0**-54))  # a coin may be 0
        return np.argmax(draw, axis=1)

    def absorb(self, sensitive, released, record, ledger):
        """Adds the reward to its arm's sum; where the episode is complete, releases the sums."""
        played = np.zeros_like(released.current)
        played[np.arange(len(played)), record.actions[:, 0]] = record.n_records
        phase = self.sums.add(sensitive.phase, np.where(played > 0, record.rewards, 0.0), record.n_records)
        total, pulls, n_sums, current = (array.copy() for array in released)
        current += played
        ended = np.flatnonzero((current.sum(axis=1) == self.length) & (record.n_records > 0))
        if len(ended):
            phase, noisy, _ = self.sums.close(phase, ledger, ended)
            was_played = current[ended] > 0
            total[ended] += np.where(was_played, noisy, 0.0)
            pulls[ended] += current[ended]
            n_sums[ended] += was_played
            current[ended] = 0
        return Sensitive(phase), Released(total, pulls, n_sums, current)


bandit = Thompson()
