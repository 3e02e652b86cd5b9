"""Faults of whatever regresses: noise drawn anew, late state, shifts from noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCB, Model
from bandana.algorithms.bandits.contextual.offers import Sensitive
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults.releases import Memory, planted
from bandana.audits.faults.sums import NotNormalizedSum
from bandana.privacy_core import Carried, Ledger, Mechanism, PrivateSum, Span, TreeSum
from bandana.privacy_core.sums import Counted, OpenPhase, RunningSum, contents, empty_phase, extend, reopen


@dataclass(frozen=True)
class NoisedAnew(RunningSum[Counted]):
    """The exact running sum with fresh noise at each step, as if only the step's own records were read.

    Attributes:
      mechanism: with the noise of one release.
    """

    mechanism: Any

    def remember_nothing(self, n_reps: int, shape: tuple[int, ...]) -> Counted:
        """An empty exact sum."""
        return Counted(np.zeros(n_reps, dtype=np.int64), np.zeros((n_reps, *shape)))

    def push(self, memory: Counted, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        """Releases the whole sum, and declares the step's records."""
        rows = slice(None) if reps is None else reps
        memory.total[rows] += value
        return ledger.release(self.mechanism, memory.total[rows].copy(), records=records, reps=reps)

    def noise_variance(self, step: int) -> float:
        """Variance of one release's noise, at every step."""
        return 1.0


class LateState(NamedTuple):
    """A phase sum's phase, the noisy total of the phases before the last, and the last one's exact sum."""

    phase: OpenPhase
    total: FloatArray
    last: FloatArray


@dataclass(frozen=True)
class NoiseOneLate:
    """Answers the running sum with the noise of all blocks but the last one: the sum over m <= l - 1.

    Each block is released with its noise, which enters the next answer; this answer has the block's exact sum.

    Attributes:
      mechanism: of a block.
    """

    mechanism: Mechanism

    def init(self, n_reps: int, shape: tuple[int, ...] = ()) -> LateState:
        """An empty state."""
        return LateState(empty_phase(n_reps, shape), np.zeros((n_reps, *shape)), np.zeros((n_reps, *shape)))

    def add(self, state: LateState, value: FloatArray, n_records: IntArray) -> LateState:
        """Adds records to the open block."""
        return state._replace(phase=extend(state.phase, value, n_records))

    def close(
        self, state: LateState, ledger: Ledger, reps: IntArray | None = None
    ) -> tuple[LateState, FloatArray, IntArray]:
        """Releases the block, and answers with its exact sum."""
        rows = slice(None) if reps is None else reps
        exact, span = contents(state.phase, reps)
        exact = exact.copy()
        answer = state.total[rows] + exact
        state.total[rows] += ledger.release(self.mechanism, exact.copy(), records=span, reps=reps)
        reopen(state.phase, reps)
        return state, answer, span.stop - span.start

    def noise_deviation(self, step: int) -> float:
        """The noise deviation that the honest sum would have."""
        return math.sqrt(step) * self.mechanism.deviation


class Watching(NamedTuple):
    """LinUCB's released state, with what it must not hold."""

    estimate: FloatArray
    inverse: FloatArray
    width: FloatArray
    clock: IntArray
    exact: FloatArray
    """(n_reps, d, d) exact sum of x x^T."""


class ShiftFromNoise(LinUCB):
    """Shifts the Gram matrix by the least eigenvalue of the noise that was drawn, in place of a public bound on it."""

    def init(self, n_reps: int) -> tuple[Sensitive, Any]:
        """The honest states, with an exact Gram matrix kept in the released one."""
        sensitive, model = super().init(n_reps)
        return sensitive, Watching(*model, exact=np.zeros_like(model.inverse))

    def absorb(  # type: ignore[override]
        self, sensitive: Sensitive, released: Watching, record: Record, ledger: Ledger
    ) -> tuple[Sensitive, Any]:
        """Absorbs a record as the honest algorithm does, and keeps an exact matrix as well."""
        x, _ = self.contribution(record)
        released.exact[:] += x[:, :, None] * x[:, None, :]
        return super().absorb(sensitive, released, record, ledger)  # type: ignore[arg-type]

    def _learn(self, model: Model | Watching, statistic: FloatArray, step: int) -> None:
        if isinstance(model, Watching):
            statistic = self.tampered(model.exact, statistic.copy(), step)
        super()._learn(model, statistic, step)  # type: ignore[arg-type]

    def tampered(self, exact: FloatArray, statistic: FloatArray, step: int) -> FloatArray:
        """(n_reps, d, d + 1) noisy sums, in memory of their own, as the decisions see them."""
        d = self.n_features
        least = np.linalg.eigvalsh(statistic[:, :, :d] - exact)[:, 0]
        statistic[:, :, :d] -= (least + self.shift(step)[0] - self.ridge)[:, None, None] * np.eye(d)
        return statistic


def with_sums(of: Callable[[Any], PrivateSum]) -> Callable[[Any], Any]:
    """The same algorithm with a faulty sum that is made of the honest one's mechanism."""
    return lambda honest: replace(honest, sums=of(honest.sums.mechanism))


@dataclass(frozen=True)
class _Redrawn(NoisedAnew):
    """Running sums each of which is released anew, with fresh noise of the size that the honest sum's answer has.

    Attributes:
      honest: that sum.
    """

    honest: Any

    def push(self, memory: Counted, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        """Releases the whole sum, and declares the step's records."""
        rows = slice(None) if reps is None else reps
        memory.n_steps[rows] += 1
        memory.total[rows] += value
        variance = self.honest.noise_variance(int(memory.n_steps[rows].max(initial=1)))
        mechanism = self.mechanism.scaled(math.sqrt(variance))
        return ledger.release(mechanism, memory.total[rows].copy(), records=records, reps=reps)


def redrawn(honest: Any) -> Any:
    """Each read of the sums with fresh noise."""
    return replace(honest, sums=_Redrawn(honest.sums.mechanism, honest.sums))


def _last_record_alone(
    ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
    reps: IntArray | None, carried: Carried | None,
) -> FloatArray:  # fmt: skip
    last = Span(records.stop - 1, records.stop)
    return ledger.release(mechanism, value, records=last, reps=reps, carried=carried)


def counted_once(honest: Any) -> Any:
    """A tree's record is in many nodes; a factorized sum's in many rows, which is why its columns are normalized."""
    sums: Any = honest.sums
    if isinstance(sums, TreeSum):
        return planted(_last_record_alone)(honest)
    return replace(honest, sums=NotNormalizedSum(sums.mechanism, sums.n_steps))
