"""Planted faults of GP-UCB on a pool: where noisy counts and sums go wrong.

Beside those of any ledger: sums noised anew, prefixes that are noised at each read, counts that are thought public because
the algorithm chose the actions, and rewards in another unit than their noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.bandits.kernel.pooled_gp_ucb import PooledGPUCB, Released, Sensitive
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults.contextual import LINUCB_JOINT
from bandana.audits.faults.fault import Control, planted_as
from bandana.audits.faults.kernel import BOTH
from bandana.audits.faults.regression import redrawn
from bandana.privacy_core import Ledger


class _Counting(NamedTuple):
    """The released state, with what it must not hold."""

    weights: FloatArray
    sums: FloatArray
    upper: FloatArray
    clock: IntArray
    exact: FloatArray
    """(n_reps, n_points) exact counts."""


class _CountsTakenForPublic(PooledGPUCB):
    """Weighs points by exact counts: which actions were played is known, but not in which users' decision sets."""

    def init(self, n_reps: int) -> tuple[Sensitive, Any]:
        """The honest states, with exact counts kept in the released one."""
        sensitive, released = super().init(n_reps)
        return sensitive, _Counting(*released, exact=np.zeros_like(released.weights))

    def absorb(  # type: ignore[override]
        self, sensitive: Sensitive, released: _Counting, record: Record, ledger: Ledger
    ) -> tuple[Sensitive, Any]:
        """Absorbs a record as the honest algorithm does, and keeps exact counts as well."""
        released.exact[:] += self.contribution(record)[:, :, 0]
        return super().absorb(sensitive, released, record, ledger)  # type: ignore[arg-type]

    def _learn(self, released: Released | _Counting, noisy: FloatArray, step: int) -> None:
        if isinstance(released, _Counting):
            noisy = np.stack([released.exact, noisy[:, :, 1]], axis=2)
        super()._learn(released, noisy, step)  # type: ignore[arg-type]


def _has_several_decision_sets(honest: PooledGPUCB) -> bool:
    return honest.pool.n_contexts > 1


class _Cents(PooledGPUCB):
    """Sums rewards in a unit a hundred times as small as the one that their noise is made for."""

    def contribution(self, record: Record) -> FloatArray:
        """The honest contribution with a hundred times the reward."""
        return super().contribution(record) * (1.0, 100.0)


POOLED_GP_UCB: tuple[Control, ...] = (
    *(control for control in LINUCB_JOINT if control.name not in ("shift-from-noise", "not-clipped")),
    Control("prefix-noise-redrawn", "each read of the sums draws noise of their size anew", redrawn, BOTH),
    Control(
        "counts-taken-for-public", "exact counts decide, as if decision sets were public (no privacy)",
        planted_as(_CountsTakenForPublic), BOTH, is_fault=_has_several_decision_sets,
    ),
    Control("rewards-in-cents", "rewards are summed in a unit 100 times as small as the noise's", planted_as(_Cents), BOTH),
)  # fmt: skip

POOLED_KERNEL_CONTROLS: dict[str, tuple[Control, ...]] = {
    "gp-ucb-pool-joint": POOLED_GP_UCB, "gp-ucb-pool-local": POOLED_GP_UCB,
}  # fmt: skip
"""Name of the algorithm -> its planted faults."""
