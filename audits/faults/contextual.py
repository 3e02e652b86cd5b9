"""Planted faults of the contextual linear bandits: where their public implementations, and their papers, go wrong.

Beside the faults of any ledger (`faulty_ledgers.GENERIC`): a sum that is noised anew instead of added up, a first block that
is exact, switches and widths from what was not released, noise that is made positive definite by its own eigenvalues.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.bandits.contextual.oful import LinUCB, Model, RarelySwitchingOFUL, Released, Sensitive
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults.finite_arm import Control, planted_as
from bandana.audits.faults.releases import GENERIC
from bandana.privacy_core import Ledger, Mechanism, PrivateSum, Span
from bandana.privacy_core.sums import Counted, OpenPhase, RunningSum, contents, empty_phase, extend, reopen

_NAMES = ("noise-halved", "noise-sqrt2", "noise-reused", "first-release-exact", "released-again", "not-clipped")


# --- sums that are wrong ---------------------------------------------------------------------------------------------


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
        """One release's."""
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
        """Nothing yet."""
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
        """As the honest sum's."""
        return math.sqrt(step) * self.mechanism.deviation


# --- decisions that are wrong ----------------------------------------------------------------------------------------


class Telling(NamedTuple):
    """The released state of a faulty algorithm, with what it must not hold."""

    estimate: FloatArray
    inverse_then: FloatArray
    width: FloatArray
    log_det_then: FloatArray
    gram: FloatArray
    inverse: FloatArray
    log_det: FloatArray
    n_updates: IntArray
    clock: IntArray
    exact: FloatArray
    """(n_reps,) sum of exact rewards since the last update."""


class _SwitchesByRewards(RarelySwitchingOFUL):
    """Updates where the exact rewards since the last update have grown by a tenth of the range, not by the determinant."""

    def init(self, n_reps: int) -> tuple[Sensitive, Any]:
        sensitive, released = super().init(n_reps)
        return sensitive, Telling(*released, exact=np.zeros(n_reps))

    def absorb(  # type: ignore[override]
        self, sensitive: Sensitive, released: Telling, record: Record, ledger: Ledger
    ) -> tuple[Sensitive, Any]:
        released.exact[:] += record.rewards[:, 0] - self.reward_range.low
        return super().absorb(sensitive, released, record, ledger)  # type: ignore[arg-type]

    def is_due(self, released: Released | Telling) -> np.ndarray:
        """(n_reps,) from exact rewards."""
        assert isinstance(released, Telling)
        due = released.exact > 0.6 * self.reward_range.width
        released.exact[due] = 0.0
        return np.asarray(due)


class _WidthFromExactSum(RarelySwitchingOFUL):
    """Shrinks the width with every exact reward: a statistic that was never released."""

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        sensitive, released = super().absorb(sensitive, released, record, ledger)
        released.width[:] *= np.exp(-record.rewards[:, 0] / self.reward_range.width)
        return sensitive, released


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
        """With an exact Gram matrix that is kept where it must not be."""
        sensitive, model = super().init(n_reps)
        return sensitive, Watching(*model, exact=np.zeros_like(model.inverse))

    def absorb(  # type: ignore[override]
        self, sensitive: Sensitive, released: Watching, record: Record, ledger: Ledger
    ) -> tuple[Sensitive, Any]:
        """As the honest algorithm; the exact matrix grows beside."""
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


# --- the lists -------------------------------------------------------------------------------------------------------


def with_sums(of: Callable[[Any], PrivateSum]) -> Callable[[Any], Any]:
    """The same algorithm with a faulty sum that is made of the honest one's mechanism."""
    return lambda honest: replace(honest, sums=of(honest.sums.mechanism))


_SHARED = tuple(control for control in GENERIC if control.name in _NAMES)

ADAR_OFUL: tuple[Control, ...] = (
    *_SHARED,
    Control(
        "sum-noised-anew", "the whole sum is released with fresh noise at each of L updates (sqrt(L) mu0)",
        with_sums(NoisedAnew),
    ),
    Control(
        "noise-one-late", "an update uses its block's exact sum; the noise enters the next one (no privacy)",
        with_sums(NoiseOneLate),
    ),
    Control(
        "switches-by-rewards", "updates happen where exact rewards have grown (no privacy)", planted_as(_SwitchesByRewards)
    ),
    Control("width-from-exact-sum", "the width depends on exact rewards (no privacy)", planted_as(_WidthFromExactSum)),
)  # fmt: skip

LINUCB_JOINT: tuple[Control, ...] = (
    *_SHARED,
    Control(
        "sum-noised-anew", "all records enter each of T releases with fresh noise, one is declared (sqrt(T) mu0)",
        with_sums(NoisedAnew),
    ),
    Control("noise-one-late", "decisions use each record's exact contribution (no privacy)", with_sums(NoiseOneLate)),
    Control(
        "shift-from-noise", "the shift is the least eigenvalue of the noise itself (no privacy)", planted_as(ShiftFromNoise)
    ),
)  # fmt: skip

LINUCB_LOCAL: tuple[Control, ...] = LINUCB_JOINT
"""The same; under local privacy a release of earlier records is a message that its user never noised."""

CONTEXTUAL_CONTROLS: dict[str, tuple[Control, ...]] = {
    "adar-oful": ADAR_OFUL, "linucb-joint": LINUCB_JOINT, "linucb-local": LINUCB_LOCAL,
}  # fmt: skip
"""Name of the algorithm -> its planted faults."""
