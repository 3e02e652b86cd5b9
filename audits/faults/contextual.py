"""Planted faults of the contextual linear bandits: where their public implementations, and their papers, go wrong.

Beside the faults of any ledger (`faulty_ledgers.GENERIC`): a sum that is noised anew instead of added up, a first block that
is exact, switches and widths from what was not released, noise that is made positive definite by its own eigenvalues.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.bandits.contextual.offers import Sensitive
from bandana.algorithms.bandits.contextual.oful import RarelySwitchingOFUL, Released
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults.fault import Control, planted_as
from bandana.audits.faults.regression import NoisedAnew, NoiseOneLate, ShiftFromNoise, with_sums
from bandana.audits.faults.releases import GENERIC
from bandana.privacy_core import Ledger

_NAMES = ("noise-halved", "noise-sqrt2", "noise-reused", "first-release-exact", "released-again", "not-clipped")


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
        """Whether each replicate updates, (n_reps,), decided from exact rewards: the fault."""
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


# --- the lists -------------------------------------------------------------------------------------------------------


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
