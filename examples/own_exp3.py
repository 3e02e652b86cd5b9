"""A private EXP3 in one file: it draws its arm from exponential weights, with one coin a round that the loop hands out.

`bandana audit-own examples/own_exp3.py:bandit --claim "gdp(mu=1, relation=reward)"` audits it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.privacy_core import Gaussian, Interval, OpenPhase, PhaseSum, Relation

UNIT = Interval(0.0, 1.0)


class Sensitive(NamedTuple):
    """Exact statistics: only `absorb` sees them."""

    phase: OpenPhase
    """Sums of each arm's rewards in the episode under way."""


class Released(NamedTuple):
    """All that decisions are made from, besides coins."""

    gain: np.ndarray
    """(n_reps, n_actions) noisy importance-weighted rewards of each arm, of complete episodes."""
    clock: np.ndarray
    """(n_reps,) rounds played."""


@dataclass(frozen=True)
class Exp3:
    """Exponential weights on noisy, importance-weighted sums of rewards, mixed with uniform play.

    An arm is played with probability p = (1 - explore) softmax(rate x gain) + explore / n_actions, which stays the same
    during an episode, as gains change at its end. So the plain sums of its rewards are released, and divided by p
    afterwards. A reward lies in one coordinate of one vector, and the whole run is mu-GDP (`docs/privacy.md`, one-touch
    lemma). To divide before the release would need noise for the smallest p. The coin of a round is compared with the
    cumulative probabilities; it neither costs nor protects privacy.
    """

    n_actions: int = 2
    mu: float = 1.0
    length: int = 4
    rate: float = 0.05
    explore: float = 0.1
    reward_range: Interval = UNIT

    n_coins = 1

    @property
    def sums(self):
        """The sums of one episode."""
        return PhaseSum(Gaussian(self.reward_range.width, 1 / self.mu, Relation.REPLACE_REWARD))

    def init(self, n_reps):
        """Nothing played yet."""
        gain = np.zeros((n_reps, self.n_actions))
        return Sensitive(self.sums.init(n_reps, (self.n_actions,))), Released(gain, np.zeros(n_reps, dtype=int))

    def probabilities(self, released):
        """(n_reps, n_actions) of the arms."""
        weight = np.exp(self.rate * (released.gain - released.gain.max(axis=1, keepdims=True)))
        return (1 - self.explore) * weight / weight.sum(axis=1, keepdims=True) + self.explore / self.n_actions

    def act(self, released, context, step, coins):
        """(n_reps,) the arm that the coin falls on."""
        bounds = np.cumsum(self.probabilities(released), axis=1)[:, :-1]
        return (coins >= bounds).sum(axis=1)

    def absorb(self, sensitive, released, record, ledger):
        """Adds the reward to its arm's sum; where the episode is complete, releases the sums and divides them by p."""
        value = np.where(np.arange(self.n_actions) == record.actions, record.rewards, 0.0)
        phase = self.sums.add(sensitive.phase, value, record.n_records)
        clock, gain = released.clock + record.n_records, released.gain.copy()
        ended = np.flatnonzero((clock % self.length == 0) & (record.n_records > 0))
        if len(ended):
            phase, noisy, _ = self.sums.close(phase, ledger, ended)
            gain[ended] += noisy / self.probabilities(released)[ended]
        return Sensitive(phase), Released(gain, clock)


bandit = Exp3()
