"""The bandit of `own_thompson.py` with coins in place of noise: it decides from rewards that only a coin perturbs.

Coins are independent of data, but not secret: whoever knows a round's coin can compute the reward. The ledger is not told of
what decisions are made from, so the accountant sees nothing.
"""

from dataclasses import dataclass

import numpy as np
from own_thompson import Thompson
from scipy.special import ndtri


@dataclass(frozen=True)
class CoinsForNoise(Thompson):
    """A copy of `Thompson` that claims the same, and does not wait for the end of an episode."""

    def absorb(self, sensitive, released, record, ledger):
        """Adds the reward, perturbed by one of the round's coins, to what decisions are made from."""
        sensitive, released = super().absorb(sensitive, released, record, ledger)
        rows, arms = np.arange(len(record.user)), record.actions[:, 0]
        total = released.total.copy()
        total[rows, arms] += record.rewards[:, 0] + ndtri(np.maximum(record.coins[:, 0, 0], 2.0**-54)) / self.mu
        return sensitive, released._replace(total=total)


bandit = CoinsForNoise()
