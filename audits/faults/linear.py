"""Faults that only phased elimination can have (AdaR-GOPE and its pure-DP variant).

They want horizons in which several phases end, which takes a `beta_scale` far below 1. As with all Laplace noise, the book
of the pure-DP variant is not held to the claim case by case.
"""

from __future__ import annotations

import numpy as np

from bandana.algorithms.bandits.linear.phase_noise import Goal
from bandana.algorithms.bandits.linear.phased_elimination import Group, PhasedElimination, Plan
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.faults import releases
from bandana.audits.faults.fault import BOTH, Control, fault_of, planted_as
from bandana.audits.outcome import NOISE
from bandana.privacy_core import Ledger, OpenPhase


class _NoForgetting(PhasedElimination):
    """Sums of earlier phases enter each of L releases, and only the last phase is declared (sqrt(L) mu0).

    It is apart from the other ones as a phase releases a vector of an encoding, which is no arm's sum.
    """

    def _release(self, phase: OpenPhase, groups: list[Group], ledger: Ledger, reps: IntArray) -> FloatArray:
        kept = phase.total.copy()
        noisy = super()._release(phase, groups, ledger, reps)
        phase.total[reps] = kept[reps]
        return noisy


class _EncodedTooLong(PhasedElimination):
    """The released vector moves by up to twice the width: a norm of 2 where 1 is declared (2 mu0)."""

    def _planned(self, phase: int, active: np.ndarray, packed: bytes) -> Plan:
        plan = super()._planned(phase, active, packed)
        return plan._replace(encode=plan.encode * 2.0, predict=plan.predict / 2.0, shift=plan.shift * 2.0)


class _Unclipped(PhasedElimination):
    """A reward range that is declared to the loop, and forgotten in the calibration."""

    def goal(self, phase: int, rank: int, n_active: int) -> Goal:
        goal = super().goal(phase, rank, n_active)
        factor = 2001.0
        return goal._replace(target=goal.target / factor, proxy=goal.proxy / factor**2)


_PHASED_ELIMINATION = (
    fault_of(_NoForgetting),
    releases.DECIDES_FROM_EXACT.caught(*BOTH),
    releases.half_the_sensitivity("noise"),
    fault_of(_EncodedTooLong),
    releases.HALVED_UNAWARE,
    releases.ONE_FOR_ALL.caught(NOISE),
    releases.REUSED_UNAWARE,
    releases.FIRST_UNPAID,
    Control(
        releases.NOT_CLIPPED.name, releases.NOT_CLIPPED.fault,
        lambda honest: planted_as(_Unclipped, reward_range=releases.widened(honest.reward_range))(honest),
    ),
)  # fmt: skip

LINEAR_CONTROLS: dict[str, tuple[Control, ...]] = {"adar-gope": _PHASED_ELIMINATION, "adar-gope pure": _PHASED_ELIMINATION}
"""Label of an entry -> its planted faults."""
