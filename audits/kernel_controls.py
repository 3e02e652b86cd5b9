"""Planted faults of GP-UCB on features of a kernel: where its paper and its kind of implementation go wrong.

Beside those of LinUCB (`contextual_controls`): trees whose prefixes are noised at each read, budgets that forget how often a
record is released, noise of another law than the one that was calibrated, features whose norm nobody checked, and a Gram
matrix that decides before it is released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from algorithms.bandits.kernel import GPUCB
from algorithms.protocol import FloatArray, Record
from audits.contextual_controls import LINUCB_JOINT, ShiftFromNoise, planted_as
from audits.controls import SAMPLING, STRUCTURAL, Control
from audits.noise_reuse import NOISE
from audits.sum_controls import NotNormalizedSum
from audits.tampering import drawing_by, noise_of
from audits.testbeds import RepeatedSum
from privacy_core import NoiseSource, TreeSum

BOTH = (SAMPLING, STRUCTURAL)


# --- sums and noise that are wrong -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Redrawn(RepeatedSum):
    """Running sums each of which is released anew, with fresh noise of the size that the honest sum's answer has.

    Attributes:
      honest: that sum.
    """

    honest: Any

    def mechanism_at(self, step: int) -> Any:
        """Of the honest answer's deviation."""
        return self.mechanism.scaled(math.sqrt(self.honest.noise_variance(step)))


def _redrawn(honest: Any) -> Any:
    return replace(honest, sums=_Redrawn(honest.sums.mechanism, honest.horizon, honest.sums))


def _counted_once(honest: Any) -> Any:
    """A tree's record is in many nodes; a factorized sum's in many rows, which is why its columns are normalized."""
    sums: Any = honest.sums
    if isinstance(sums, TreeSum):
        mechanism: Any = sums.mechanism
        return replace(honest, sums=replace(sums, mechanism=mechanism.scaled(sums.structure.n_nodes**-0.5)))
    return replace(honest, sums=NotNormalizedSum(sums.mechanism, sums.n_steps))


def _n_rows(n_free: int) -> int:
    """The d of d (d + 1) / 2 + d free entries: a triangle and a vector."""
    return (math.isqrt(9 + 8 * n_free) - 3) // 2


def _half_the_matrix(mechanism: Any, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """(Z + Z^T)/2 on the matrix, whose entries are sqrt 2 below those of (Z + Z^T)/sqrt 2; the vector's noise is right."""
    drawn = mechanism.whiten(noise_of(mechanism, noise, value))
    d = _n_rows(drawn.shape[1])
    drawn[:, : d * (d + 1) // 2] *= math.sqrt(0.5)
    return np.asarray(value + mechanism.color(drawn, value.shape))


def _no_diagonal(mechanism: Any, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """None on the matrix's diagonal."""
    drawn = mechanism.whiten(noise_of(mechanism, noise, value))
    d = _n_rows(drawn.shape[1])
    rows, columns = np.triu_indices(d)
    drawn[:, np.flatnonzero(rows == columns)] = 0.0
    return np.asarray(value + mechanism.color(drawn, value.shape))


# --- decisions and contributions that are wrong ----------------------------------------------------------------------


class _ShiftFromNoise(ShiftFromNoise, GPUCB):
    """`contextual_controls.ShiftFromNoise`, on features."""


class _GramBeforeRelease(ShiftFromNoise, GPUCB):
    """Estimate and width come from the exact Gram matrix, and from the released vector."""

    def tampered(self, exact: FloatArray, statistic: FloatArray, step: int) -> FloatArray:
        """The exact matrix in the noisy one's place, and no shift, which it does not need."""
        d = self.n_features
        statistic[:, :, :d] = exact - (self.shift(step)[0] - self.ridge) * np.eye(d)
        return statistic


class _LongFeatures(GPUCB):
    """Takes |Phi| <= 1 on trust from a map whose features have norm 2: cosines and sines that nobody divided."""

    def contribution(self, record: Record) -> tuple[FloatArray, FloatArray]:
        """Of twice the length."""
        x, y = super().contribution(record)
        return 2 * x, y


class _Cents(GPUCB):
    """Takes rewards in a unit a hundred times as small as the declared range's."""

    def contribution(self, record: Record) -> tuple[FloatArray, FloatArray]:
        """Of a hundred times the reward."""
        x, y = super().contribution(record)
        return x, 100 * y


# --- the lists -------------------------------------------------------------------------------------------------------


_UNCLIPPED = "not-clipped"
_SHARED = (
    *(control for control in LINUCB_JOINT if control.name not in ("shift-from-noise", _UNCLIPPED)),
    Control(
        "shift-from-noise", "the shift is the least eigenvalue of the noise itself (no privacy)", planted_as(_ShiftFromNoise)
    ),
    Control("prefix-noise-redrawn", "each read of the sums draws noise of their size anew", _redrawn, (SAMPLING,)),
    Control(
        "half-taken-for-goe", "(Z + Z^T)/2 is drawn where (Z + Z^T)/sqrt(2) was calibrated (up to sqrt(2) mu0)",
        drawing_by(_half_the_matrix), (NOISE,),
    ),
    Control("no-noise-on-the-diagonal", "the diagonal stays exact (no privacy)", drawing_by(_no_diagonal), (NOISE,)),
    Control(
        "features-not-clipped", "|Phi| <= 1 is taken on trust, and is 2 (2 mu0 and more)", planted_as(_LongFeatures), BOTH
    ),
    Control(
        "gram-before-release", "decisions use the Gram matrix before noise is added (no privacy)",
        planted_as(_GramBeforeRelease), BOTH,
    ),
)  # fmt: skip

GP_UCB_JOINT: tuple[Control, ...] = (
    *_SHARED,
    *(control for control in LINUCB_JOINT if control.name == _UNCLIPPED),
    Control(
        "counted-once", "noise is that of one release; a record is in several nodes of a tree, or rows of a factorization",
        _counted_once, (SAMPLING,),
    ),
)  # fmt: skip

GP_UCB_LOCAL: tuple[Control, ...] = (
    *_SHARED,
    Control("rewards-in-cents", "rewards are not clipped, and 100 times what they should be", planted_as(_Cents), BOTH),
)
"""Not `not-clipped`: the printed noise of the vector is made for rewards a few ranges off, and hides them as it should."""

KERNEL_CONTROLS: dict[str, tuple[Control, ...]] = {"gp-ucb-joint": GP_UCB_JOINT, "gp-ucb-local": GP_UCB_LOCAL}
"""Name of the algorithm -> its planted faults."""
