"""Planted faults of phased elimination (AdaR-GOPE and its pure-DP variant): an audit that misses one of them has no power.

Each keeps the honest algorithm's claim; mu0 (epsilon) is what it promises. They want horizons in which several phases end,
which takes a `beta_scale` far below 1. As with all Laplace noise, the book of the pure-DP variant is not held to the claim
case by case.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from bandana.algorithms.bandits.linear import phases_numba
from bandana.algorithms.bandits.linear.phased_elimination import Group, PhasedElimination
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.faults.fault import Control, planted_as
from bandana.audits.faults.tampering import Misdrawn, drawing_by, first_exact, one_for_all, scaled_by
from bandana.audits.faults.wrapped import Behind
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING
from bandana.privacy_core import Carried, Gaussian, Interval, Laplace, Ledger, OpenPhase, Span
from bandana.privacy_core.sums import contents


class _NoForgetting(PhasedElimination):
    """The sums of earlier phases enter each release, and only the last phase is declared."""

    def _release(self, phase: OpenPhase, groups: list[Group], ledger: Ledger, reps: IntArray) -> FloatArray:
        kept = phase.total.copy()
        noisy = super()._release(phase, groups, ledger, reps)
        phase.total[reps] = kept[reps]
        return noisy


class _DecidesFromExactSums(PhasedElimination):
    """Noisy vectors are released, and arms are dropped by the exact ones."""

    def _release(self, phase: OpenPhase, groups: list[Group], ledger: Ledger, reps: IntArray) -> FloatArray:
        total, _ = contents(phase, reps)
        value = np.empty((len(reps), self.n_outputs))
        for plan, rows in groups:
            phases_numba.encode(total, rows, plan.encode, value)
        super()._release(phase, groups, ledger, reps)
        return value


class _EncodesTooLong(PhasedElimination):
    """The released vector moves by up to twice the width: a norm of 2 where 1 is declared."""

    def _planned(self, phase: int, active: np.ndarray, packed: bytes) -> Any:
        plan = super()._planned(phase, active, packed)
        return plan._replace(encode=plan.encode * 2.0, predict=plan.predict / 2.0, shift=plan.shift * 2.0)


@dataclass(frozen=True)
class _SameNoise(Behind):
    """The noise of a run's first phase is added in every later one too: differences of releases are exact."""

    def remember_nothing(self, n_reps: int) -> list[FloatArray]:
        return []

    def hands(self, ledger: Ledger, memory: list[FloatArray]) -> Any:
        return _Remembering(ledger, memory)


class _Remembering:
    def __init__(self, ledger: Ledger, memory: list[FloatArray]) -> None:
        self.n_reps = ledger.n_reps
        self._ledger, self._memory = ledger, memory

    def release(
        self,
        mechanism: Any,
        value: FloatArray,
        *,
        records: Span,
        reps: IntArray | None = None,
        carried: Carried | None = None,
    ) -> FloatArray:
        if not self._memory:
            self._memory.append(np.full((self.n_reps, *value.shape[1:]), np.nan))
        rows = np.arange(self.n_reps) if reps is None else reps
        known = self._memory[0][rows]

        def drawing(honest: Any, noise: Any, exact: FloatArray) -> FloatArray:
            return np.where(np.isnan(known), honest.draw(noise, exact), exact + known)

        output = self._ledger.release(Misdrawn(mechanism, drawing), value, records=records, reps=reps, carried=carried)
        self._memory[0][rows] = output - value
        return output


def _half_the_sensitivity(honest: Any) -> Any:
    mechanism = honest.noise.mechanism
    halved: Gaussian | Laplace
    if isinstance(mechanism, Gaussian):
        halved = replace(mechanism, sensitivity_l2=mechanism.sensitivity_l2 / 2)
    else:
        assert isinstance(mechanism, Laplace)
        halved = replace(mechanism, sensitivity_l1=mechanism.sensitivity_l1 / 2)
    return replace(honest, noise=replace(honest.noise, mechanism=halved))


def _not_clipped(honest: Any) -> Any:
    span = honest.reward_range
    # Phases are as long as before: the widths keep the honest scale.
    wide = Interval(span.low - 1e3 * span.width, span.high + 1e3 * span.width)
    return _Unclipped(**{field.name: getattr(honest, field.name) for field in fields(honest)} | {"reward_range": wide})


class _Unclipped(PhasedElimination):
    """A reward range that is declared to the loop, and forgotten in the calibration."""

    def goal(self, phase: int, rank: int, n_active: int) -> Any:
        found = super().goal(phase, rank, n_active)
        factor = 2001.0
        return found._replace(target=found.target / factor, proxy=found.proxy / factor**2)


def _same_noise(honest: Any) -> Any:
    return _SameNoise(honest)


BOTH, DRAWN = (SAMPLING, DETERMINISTIC), (SAMPLING, NOISE)

PHASED_ELIMINATION = (
    Control(
        "no-forgetting", "sums of earlier phases enter each of L releases (sqrt(L) mu0)", planted_as(_NoForgetting), BOTH
    ),
    Control(
        "decides-from-exact-sums",
        "noisy sums are released, and arms are dropped by the exact ones (no privacy)",
        planted_as(_DecidesFromExactSums),
        BOTH,
    ),
    Control(
        "half-the-sensitivity",
        "noise is scaled for |R| <= 1 with sensitivity 1, as the proof of Theorem 7 says (2 mu0)",
        _half_the_sensitivity,
        BOTH,
    ),
    Control("encoded-too-long", "the released vector moves by twice the width (2 mu0)", planted_as(_EncodesTooLong), BOTH),
    Control("half-the-noise", "half of the declared noise is drawn (2 mu0)", scaled_by(0.5), DRAWN),
    Control(
        "one-noise-for-all",
        "one scalar draw is added to all coordinates and cancels between them (no privacy)",
        drawing_by(one_for_all),
        (NOISE,),
    ),
    Control(
        "same-noise-in-all-phases",
        "the first phase's noise is added in later ones: differences are exact (no privacy)",
        _same_noise,
        (NOISE,),
    ),
    Control("first-phase-exact", "the first phase leaves without noise (no privacy)", first_exact, (*BOTH, NOISE)),
    Control("not-clipped", "a reward outside the declared range is not clipped (mu0 times its size)", _not_clipped, BOTH),
)

GOPE_CONTROLS: dict[str, tuple[Control, ...]] = {
    "adar-gope": PHASED_ELIMINATION,
    "adar-gope-pure": PHASED_ELIMINATION,
}
