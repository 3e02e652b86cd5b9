"""A private contextual bandit in one file: ridge regression on rewards that have noise before anything else sees them.

`bandana audit-own examples/own_contextual.py:bandit --claim "gdp(mu=1, relation=reward)"` audits it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.privacy_core import Gaussian, Interval, Relation, Span

UNIT = Interval(0.0, 1.0)


class Released(NamedTuple):
    """All that decisions are made from: contexts, which are public, and noisy rewards."""

    gram: np.ndarray
    """(n_reps, d, d) sum of x x^T of the chosen actions, and the identity."""
    moments: np.ndarray
    """(n_reps, d) sum of x times the noisy reward."""


@dataclass(frozen=True)
class NoisyRidge:
    """Plays the action whose estimated reward is largest.

    Each reward is released once, with Gaussian noise of 1/mu times its range: the run is mu-GDP for one reward.
    """

    n_actions: int = 2
    context_dimension: int = 2
    mu: float = 1.0
    reward_range: Interval = UNIT

    def init(self, n_reps):
        """Nothing played yet; there is no sensitive state."""
        d = self.context_dimension
        return (), Released(np.tile(np.eye(d), (n_reps, 1, 1)), np.zeros((n_reps, d)))

    def act(self, released, context, step):
        """(n_reps,) the action of the largest estimate; context: (n_reps, n_actions, d)."""
        weights = np.linalg.solve(released.gram, released.moments[:, :, None])
        return (context @ weights)[:, :, 0].argmax(axis=1)

    def absorb(self, sensitive, released, record, ledger):
        """Releases the reward, and adds the chosen context and the noisy reward."""
        noise = Gaussian(self.reward_range.width, 1 / self.mu, Relation.REPLACE_REWARD)
        noisy = ledger.release(noise, record.rewards, records=Span(record.user, record.user + 1))
        x = record.contexts[np.arange(len(noisy)), record.actions[:, 0]]
        return sensitive, Released(released.gram + x[:, :, None] * x[:, None, :], released.moments + noisy * x)


bandit = NoisyRidge()
