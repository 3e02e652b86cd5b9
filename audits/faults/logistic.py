"""Faults that only linearized records can have: pivots, weights and shifts that are not what noise was made for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from bandana.algorithms.bandits.contextual.lin_ucb import Model
from bandana.algorithms.bandits.contextual.linearized import LinearizedGaussian
from bandana.algorithms.bandits.contextual.logistic_ucb import LogisticUCB
from bandana.algorithms.bandits.contextual.offers import Sensitive
from bandana.algorithms.protocol import FloatArray, Record
from bandana.audits.faults.contextual import LINUCB, SHIFT_FROM_NOISE, ShiftFromNoise
from bandana.audits.faults.fault import Control, Host, State, extended, fault_of, without
from bandana.audits.outcome import DETERMINISTIC
from bandana.privacy_core import Ledger


class _ShiftFromWeighedNoise(ShiftFromNoise, LogisticUCB):
    """The exact Gram matrix that the shift is read from is that of weighed records."""

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        released.exact[:] += self.statistic(released, record)[:, :, : self.n_features]
        return super(ShiftFromNoise, self).absorb(sensitive, released, record, ledger)


class _PivotFromExactSums(LogisticUCB):
    """Records are linearized at an estimate from exact sums, which was never released (no privacy)."""

    def init(self, n_reps: int) -> tuple[Sensitive, State]:
        """The honest states, with exact sums (n_reps, d, d + 1) kept in the released one."""
        sensitive, model = super().init(n_reps)
        d = self.n_features
        return sensitive, extended(model, exact=np.zeros((n_reps, d, d + 1)))

    def statistic(self, released: State, record: Record) -> FloatArray:
        """(n_reps, d, d + 1) what the record adds, at the exact estimate: the fault."""
        d = self.n_features
        gram = released.exact[:, :, :d] + 0.1 * np.eye(d)
        pivot = np.linalg.solve(gram, released.exact[:, :, d:])[:, :, 0]
        value = super().statistic(released._replace(estimate=pivot), record)
        released.exact[:] += value
        return value


class _NotWeighed(LogisticUCB):
    """Matrices of records are added up whole, with noise that is made for their weights (up to 1 / w times mu0)."""

    def statistic(self, released: Model, record: Record) -> FloatArray:
        """(n_reps, d, d + 1) x x^T, and the honest vector beside it."""
        value, (x, _) = super().statistic(released, record), self.contribution(record)
        return np.concatenate([x[:, :, None] * x[:, None, :], value[:, :, self.n_features :]], axis=2)


@dataclass(frozen=True)
class _OfRewards(LinearizedGaussian):
    """The mechanism with the sensitivity of a changed reward."""

    @property
    def sensitivity(self) -> float:
        """1 in the vector, 0 in the matrix."""
        return 1 / self.vector_ratio


def _rewards_alone(honest: LogisticUCB) -> LogisticUCB:
    """Noise is made for a record whose reward alone changes, so that c moves by at most 1 (up to 2 C mu0)."""
    sums: Host = honest.sums
    mechanism = _OfRewards(**{part.name: getattr(sums.mechanism, part.name) for part in fields(sums.mechanism)})
    return replace(honest, sums=replace(sums, mechanism=mechanism))


LOGISTIC: tuple[Control, ...] = (
    *without(LINUCB, SHIFT_FROM_NOISE.name),
    replace(SHIFT_FROM_NOISE, plant=fault_of(_ShiftFromWeighedNoise).plant, caught_by=(DETERMINISTIC,)),
    fault_of(_PivotFromExactSums), fault_of(_NotWeighed), fault_of(_rewards_alone),
)  # fmt: skip
LOGISTIC_CONTROLS: dict[str, tuple[Control, ...]] = {"logistic-ucb joint": LOGISTIC}
"""Label of an entry -> its planted faults."""
