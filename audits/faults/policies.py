"""Faults that policies on a private regression can have: rates and weights from what was not released, coins for noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bandana.algorithms.bandits.contextual.offers import Sensitive
from bandana.algorithms.bandits.contextual.regression_policies import RegressionPolicy
from bandana.algorithms.protocol import FloatArray, Record
from bandana.audits.faults.contextual import LINUCB
from bandana.audits.faults.fault import Control, Host, State, extended, fault_of
from bandana.audits.faults.logistic import LOGISTIC
from bandana.audits.outcome import DETERMINISTIC
from bandana.privacy_core import Exact, Ledger


class _RateFromRewards(RegressionPolicy):
    """Rates grow with exact rewards, which were never released (no privacy)."""

    def init(self, n_reps: int) -> tuple[Sensitive, State]:
        sensitive, released = super().init(n_reps)
        return sensitive, extended(released, exact=np.zeros(n_reps))

    def probabilities(self, released: State, context: FloatArray, coins: FloatArray) -> FloatArray:
        """(n_reps, n_actions), of losses that exact rewards make steeper: the fault."""
        factor = np.exp(released.exact)[:, None]
        steeper = released._replace(estimate=released.estimate * factor, past=released.past * factor[:, None])
        return super().probabilities(steeper, context, coins)

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        released.exact[:] += (record.rewards[:, 0] - self.reward_range.low) / self.reward_range.width
        return super().absorb(sensitive, released, record, ledger)


class _CountsOfOthers(RegressionPolicy):
    """Actions that others were given less often are explored more, which tells of their contexts (no privacy)."""

    def init(self, n_reps: int) -> tuple[Sensitive, State]:
        sensitive, released = super().init(n_reps)
        return sensitive, extended(released, exact=np.zeros((n_reps, self.n_actions)))

    def probabilities(self, released: State, context: FloatArray, coins: FloatArray) -> FloatArray:
        """(n_reps, n_actions), weighed by exact counts of actions: the fault."""
        weighed = super().probabilities(released, context, coins) * np.exp(3.0 / (1.0 + released.exact))
        return np.asarray(weighed / weighed.sum(axis=1, keepdims=True))

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        released.exact[np.arange(len(record.user)), record.actions[:, 0]] += record.n_records
        return super().absorb(sensitive, released, record, ledger)


def _coins_taken_for_noise(honest: Host) -> Host:
    """Draws of actions are taken for the noise, and sums leave without any (no privacy)."""
    return replace(honest, sums=replace(honest.sums, mechanism=Exact()))


_OWN = (
    fault_of(_RateFromRewards), fault_of(_CountsOfOthers).caught(DETERMINISTIC), fault_of(_coins_taken_for_noise),
)  # fmt: skip
POLICY_CONTROLS: dict[str, tuple[Control, ...]] = {
    "squarecb joint": (*LINUCB, *_OWN), "fastcb joint": (*LOGISTIC, *_OWN), "bpo joint": (*LINUCB, *_OWN),
    "vpo joint": (*LINUCB, *_OWN),
}  # fmt: skip
"""Label of an entry -> its planted faults."""
