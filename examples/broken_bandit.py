"""The bandit of `own_bandit.py` with one line too few: it never forgets.

Each release is the sum of all rewards so far of an arm, with the noise for one episode, and the ledger is told of the last
episode only. Accounting is content; rewards of the first episode are in every later release of that arm.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from own_bandit import EpisodicGreedy, Released

from bandana.privacy_core import Span


class Sensitive(NamedTuple):
    """Exact sums of each arm, (n_reps, n_actions), and where the episode began."""

    total: np.ndarray
    start: np.ndarray


@dataclass(frozen=True)
class NeverForgets(EpisodicGreedy):
    """A copy of `EpisodicGreedy` that claims the same."""

    def init(self, n_reps):
        """Nothing played yet."""
        _, released = super().init(n_reps)
        return Sensitive(np.zeros((n_reps, self.n_actions)), np.zeros(n_reps, dtype=int)), released

    def absorb(self, sensitive, released, record, ledger):
        """Adds to the arm's sum; where an episode is complete, releases the whole sum."""
        rows, arms = np.arange(len(record.user)), record.actions[:, 0]
        exact, start = sensitive.total.copy(), sensitive.start.copy()
        exact[rows, arms] += record.rewards[:, 0]
        clock = released.clock + record.n_records
        ended = np.flatnonzero((clock % self.length == 0) & (record.n_records > 0))
        total, pulls = released.total.copy(), released.pulls.copy()
        if len(ended):
            arm, span = arms[ended], Span(start[ended], clock[ended])
            total[ended, arm] = ledger.release(self.sums.mechanism, exact[ended, arm], records=span, reps=ended)
            pulls[ended, arm] += self.length
            start[ended] = clock[ended]
            # Here exact[ended, arm] should become 0.
        return Sensitive(exact, start), Released(total, pulls, clock)


bandit = NeverForgets()
