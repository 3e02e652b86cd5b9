"""Faults that only contextual linear bandits can have: switches, widths and shifts from what was not released."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bandana.algorithms.bandits.contextual.batched import BatchedLinUCB
from bandana.algorithms.bandits.contextual.lin_ucb import LinUCB
from bandana.algorithms.bandits.contextual.offers import Sensitive
from bandana.algorithms.bandits.contextual.oful import RarelySwitchingOFUL, Released
from bandana.algorithms.protocol import FloatArray, Record
from bandana.algorithms.regression.ridge_numba import least_eigenvalues
from bandana.audits.faults import regression, releases
from bandana.audits.faults.fault import Control, State, extended, fault_of, with_part, without
from bandana.audits.faults.regression import NOISE_ONE_LATE, SUM_NOISED_ANEW
from bandana.audits.faults.releases import GENERIC, weakened
from bandana.audits.outcome import DETERMINISTIC, SAMPLING
from bandana.privacy_core import Ledger, PhaseSum, PhaseTotal


class _UpdatesByRewards(RarelySwitchingOFUL):
    """Updates are decided from exact rewards, not from the determinant (no privacy)."""

    def init(self, n_reps: int) -> tuple[Sensitive, State]:
        sensitive, released = super().init(n_reps)
        return sensitive, extended(released, exact=np.zeros(n_reps))

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        released.exact[:] += record.rewards[:, 0] - self.reward_range.low
        return super().absorb(sensitive, released, record, ledger)

    def is_due(self, released: State) -> np.ndarray:
        """(n_reps,) True where a replicate updates, decided from exact rewards: the fault."""
        due = released.exact > 0.6 * self.reward_range.width
        released.exact[due] = 0.0
        return np.asarray(due)


class _WidthFromExactSum(RarelySwitchingOFUL):
    """The width shrinks with every exact reward: a statistic that was never released (no privacy)."""

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        sensitive, released = super().absorb(sensitive, released, record, ledger)
        released.width[:] *= np.exp(-record.rewards[:, 0] / self.reward_range.width)
        return sensitive, released


class ShiftFromNoise(LinUCB):
    """The shift is the least eigenvalue of the noise itself, in place of a public bound on it (no privacy)."""

    def init(self, n_reps: int) -> tuple[Sensitive, State]:
        """The honest states, with an exact Gram matrix, (n_reps, d, d), kept in the released one."""
        sensitive, model = super().init(n_reps)
        return sensitive, extended(model, exact=np.zeros_like(model.inverse))

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        """Absorbs a record as the honest algorithm does, and keeps an exact matrix as well."""
        x, _ = self.contribution(record)
        released.exact[:] += x[:, :, None] * x[:, None, :]
        return super().absorb(sensitive, released, record, ledger)

    def _learn(self, model: State, statistic: FloatArray, step: int) -> None:
        if hasattr(model, "exact"):
            statistic = self.tampered(model.exact, statistic.copy(), step)
        super()._learn(model, statistic, step)

    def tampered(self, exact: FloatArray, statistic: FloatArray, step: int) -> FloatArray:
        """(n_reps, d, d + 1) noisy sums, in memory of their own, as the decisions see them."""
        d = self.n_features
        least = np.empty(len(exact))
        least_eigenvalues(statistic[:, :, :d] - exact, least)
        statistic[:, :, :d] -= (least + self.shift(step)[0] - self.ridge)[:, None, None] * np.eye(d)
        return statistic


def _not_shuffled(honest: BatchedLinUCB) -> BatchedLinUCB:
    """Each user's bits reach the server by themselves, not mixed with those of the batch (sqrt(B) mu0)."""
    mechanism = weakened(honest.sums.mechanism, honest.batch**-0.5)  # type: ignore[attr-defined]
    return replace(honest, batch=1, sums=PhaseTotal(PhaseSum(mechanism)))


class _CountsBeforeTheShuffler(BatchedLinUCB):
    """The server adds what it saw of the exact counts to what left the shuffler (no privacy)."""

    def init(self, n_reps: int) -> tuple[Sensitive, State]:
        sensitive, model = super().init(n_reps)
        return sensitive, extended(model, exact=np.zeros(n_reps))

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        sensitive, released = super().absorb(sensitive, released, record, ledger)
        released.exact[:] += record.rewards[:, 0]
        released.estimate[:, 0] += 1e-3 * released.exact
        return sensitive, released


class _ContextsNotClipped:
    """Contexts are summed as long as they come, with noise that is made for a norm of 1 (mu0 x their norm)."""

    def chosen(self, record: Record) -> FloatArray:
        """(n_reps, d) of the chosen actions, as the users bring them: the fault."""
        assert record.contexts is not None
        x = record.contexts[np.arange(len(record.user)), record.actions[:, 0]]
        return np.where((record.n_records > 0)[:, None], x, 0.0)


CONTEXTS_NOT_CLIPPED = fault_of(_ContextsNotClipped, (DETERMINISTIC,), is_sampled=False)
"""Environments refuse such contexts, so that no replay meets one."""
_SHARED = (*without(GENERIC, "decides-from-exact"), SUM_NOISED_ANEW, NOISE_ONE_LATE, CONTEXTS_NOT_CLIPPED)
SHIFT_FROM_NOISE = fault_of(ShiftFromNoise)
ADAR_OFUL: tuple[Control, ...] = (*_SHARED, fault_of(_UpdatesByRewards), fault_of(_WidthFromExactSum))
LINUCB: tuple[Control, ...] = (*_SHARED, SHIFT_FROM_NOISE)
BATCHED: tuple[Control, ...] = (
    *LINUCB, fault_of(_CountsBeforeTheShuffler),
    fault_of(_not_shuffled, (SAMPLING,), is_fault=lambda honest: honest.batch > 1),
)  # fmt: skip
"""Under local privacy, too: there a release of earlier records is a message that its user never noised."""

CONTEXTUAL_CONTROLS: dict[str, tuple[Control, ...]] = {
    "adar-oful": ADAR_OFUL, "linucb joint": LINUCB, "linucb local": LINUCB,
    "greedy-ridge local": LINUCB, "linucb-batched shuffle": BATCHED,
}  # fmt: skip
"""Label of an entry -> its planted faults."""

LIN_PRIV_CONTROLS: dict[str, tuple[Control, ...]] = {
    "lin-priv": (
        regression.ONE_NODE.caught(SAMPLING),
        replace(regression.PREFIX_NOISE_REDRAWN, plant=with_part(regression.redrawn_prefixes)).caught(SAMPLING),
        releases.ONE_A_LEVEL, releases.half_the_sensitivity("sums"), releases.HALVED_UNAWARE, releases.FIRST_UNPAID,
        releases.WIDE_RANGE, CONTEXTS_NOT_CLIPPED,
    ),
}  # fmt: skip
"""The same of LinPriv: those of a tree of vectors under pure DP."""
