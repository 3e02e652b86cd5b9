"""Faults that only UCRL-VTR and UCRL-VTR+ can have: where reinforcement learning from stacked regressions goes wrong.

Noise for one step of an episode where there are several, one noise for all steps, values that grow past what can be earned,
weights without a floor, Laplace noise with the constants of Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bandana.algorithms.protocol import FloatArray, Record
from bandana.algorithms.rl.mixture import value_targets_numba
from bandana.algorithms.rl.mixture.vtr import UCRLVTR, Released, Sensitive
from bandana.algorithms.rl.mixture.vtr_plus import UCRLVTRPlus
from bandana.audits.faults import regression, releases
from bandana.audits.faults.fault import DRAWN, Control, State, caught_as, extended, fault_of, planted_as, with_part, without
from bandana.audits.outcome import DETERMINISTIC, NOISE
from bandana.privacy_core import FactorizedSum, Mechanism, NoiseSource, StackedGaussian, StackedLaplace
from bandana.privacy_core.sums import RunningSum

StackedNoise = StackedGaussian | StackedLaplace

_TIMES = 4.0
"""Largest values where nothing bounds them, in units of what can be earned."""
_TINY = 0.01
"""Share of the honest floor."""


def _one_step_paid(noise: StackedNoise) -> float:
    """Noise is made for one regression of an episode, and a user moves all (sqrt(H - 1) mu0 and more)."""
    last = {name: getattr(noise, name)[-1:] for name in ("norm_bounds", "value_bounds", "shares")}
    return float(replace(noise, **last).sensitivity)


def _l2_constants(noise: StackedLaplace) -> float:
    """Laplace noise is made for L2 sensitivities, 2 R^2 for a matrix and 2 R Y for a vector (1.4 epsilon at d = 3)."""
    blocks = zip(noise.norm_bounds, noise.value_bounds, noise.shares, strict=True)
    return math.fsum((2 * r * r + 2 * r * y / noise.vector_ratio) / share for r, y, share in blocks)


def _made_for(sensitivity: Callable[[StackedNoise], float]) -> Callable[[UCRLVTR], UCRLVTR]:
    """Plants noise that is made for another sensitivity than the mechanism's own."""

    def missized(noise: StackedNoise) -> type:
        return type(type(noise).__name__, (type(noise),), {"sensitivity": sensitivity(noise)})

    return with_part(with_part(lambda noise: planted_as(missized(noise))(noise), "mechanism"))


def _shows_in_l1(honest: UCRLVTR) -> bool:
    """True if there are episodes that move releases by more than the L2 constants.

    As printed noise is made for values of H after each step, and those of the last step are known rewards: in short episodes
    what is wasted there is more than what the constants lack.
    """
    assert isinstance(honest.sums, RunningSum)
    noise, targets = honest.sums.mechanism, honest.targets
    assert isinstance(noise, StackedLaplace)
    last, reached = honest.episode_length - 2, 0.0
    for i, (r, y, share) in enumerate(zip(noise.norm_bounds, noise.value_bounds, noise.shares, strict=True)):
        alone = StackedLaplace((r,), (y,), (share,), noise.dimension, 1.0, noise.vector_ratio).sensitivity
        is_known = targets.steps[i] == last
        highest = float(np.abs(honest.model.rewards[-1] - targets.center[i]).max()) if is_known else y
        reached += alone * min(1.0, highest / y) ** 2
    return bool(reached > _l2_constants(noise))


def _is_reached(honest: UCRLVTR) -> bool:
    """True if few episodes move releases by about as much as noise is made for.

    Noise for values in [0, H] is made for more than few episodes reach, where exact widths keep values small or where a
    factorized sum pays once: what is wasted there hides faults of a small factor.
    """
    return any(honest.targets.center) or (honest.is_published and not isinstance(honest.sums, FactorizedSum))


def _one_noise_for_all_steps(honest: UCRLVTR) -> releases.Planted:
    """One draw serves all steps, and cancels between them (no privacy)."""
    n_blocks = honest.n_blocks

    def blocks(declared: Mechanism, value: FloatArray) -> FloatArray:
        """(n_rows, n_blocks, n_free) whitened."""
        return np.asarray(declared.whiten(value).reshape(len(value), n_blocks, -1))

    def drawing(declared: Mechanism, noise: NoiseSource, value: FloatArray) -> FloatArray:
        drawn = blocks(declared, releases.noise_of(declared, noise, value))
        drawn[:] = drawn[:, :1]
        return np.asarray(value + declared.color(drawn.reshape(len(value), -1), value.shape))

    def law(declared: Mechanism, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        shift, one, other = (blocks(declared, np.asarray(v)) for v in (neighbor - value, output - value, output - neighbor))
        unlike = np.abs(shift - shift[:, :1]).max(axis=(1, 2)) > 1e-9
        return np.where(unlike, -np.inf, releases.whitened_terms(declared, one[:, 0], other[:, 0]).sum(axis=1))

    return releases.Planted(honest, releases.through(lambda mechanism: releases.Pretending(mechanism, drawing, law)))


class _FeaturesNotClipped(UCRLVTR):
    """Features are three times as long as the noise is made for (3 mu0 and more)."""

    def contribution(self, released: Released, record: Record) -> FloatArray:
        value = super().contribution(released, record)
        value[..., :-1] *= 9.0
        value[..., -1] *= 3.0
        return value


def _values_not_cut(honest: UCRLVTR) -> UCRLVTR:
    """Optimistic values are not cut at what can be earned, and the noise stays (up to the square of their excess)."""
    t = honest.targets
    wider = {name: tuple(_TIMES * v for v in getattr(t, name)) for name in ("norm_bound", "value_bound", "high")}
    targets = replace(t, **wider)
    if not isinstance(honest, UCRLVTRPlus):
        return replace(honest, targets=targets)
    bounds = honest.squares
    squared = {name: tuple(_TIMES**2 * v for v in getattr(bounds, name)) for name in ("norm_bound", "value_bound")}
    return replace(honest, targets=targets, squares=bounds._replace(**squared))


class _NoFloor(UCRLVTRPlus):
    """Weights are as large as an estimated variance makes them, without a floor, its error and its center."""

    def contribution(self, released: Released, record: Record) -> FloatArray:
        assert record.states is not None
        out = np.empty((len(record.user), self.n_blocks, self.model.dimension, self.model.dimension + 1))
        center, norm, value, floor, top, spread = self._levels
        levels = (0.0 * center, norm, value, _TINY * floor, top, spread)
        zeros = np.zeros((len(out), self.targets.n_blocks))
        value_targets_numba.contribute_weighted(
            self.model.features, self._aims, levels, released.estimate, released.inverse, zeros, zeros, released.values,
            record.states, record.actions, out,
        )  # fmt: skip
        return out


class _ShiftFromNoise(UCRLVTR):
    """The shift is the least eigenvalue of the noise itself, in place of a public bound on it (no privacy).

    It does not explore, so that what it decides shows in few episodes: the widest optimism hides every estimate.
    """

    def radius(self, log_det: FloatArray, inverse: FloatArray, step: int) -> FloatArray:
        return np.zeros_like(log_det)

    def init(self, n_reps: int) -> tuple[Sensitive, State]:
        """The honest states, with exact sums, (n_reps, n_blocks, d, d + 1), kept in the released one."""
        sensitive, released = super().init(n_reps)
        d = self.model.dimension
        return sensitive, extended(released, exact=np.zeros((n_reps, self.n_blocks, d, d + 1)))

    def contribution(self, released: State, record: Record) -> FloatArray:
        value = super().contribution(released, record)
        released.exact[:] += value
        return value

    def learn(self, released: State, statistic: FloatArray, step: int) -> None:
        if hasattr(released, "exact"):
            d, statistic = self.model.dimension, statistic.copy()
            least = np.linalg.eigvalsh((statistic - released.exact)[..., :d])[..., 0]
            moved = least + (self.shift(step).added - self.ridges)
            np.einsum("rbii->rbi", statistic[..., :d])[...] -= moved[..., None]
        super().learn(released, statistic, step)


_SHARED: tuple[Control, ...] = (
    *without(releases.GENERIC, "not-clipped", "decides-from-exact"),
    regression.SUM_NOISED_ANEW,
    fault_of(_one_step_paid, how=_made_for, is_fault=_is_reached), fault_of(_one_noise_for_all_steps, DRAWN),
    regression.NO_DIAGONAL, fault_of(_FeaturesNotClipped), fault_of(_values_not_cut, is_fault=_is_reached),
    fault_of(_ShiftFromNoise, is_fault=_is_reached),
)  # fmt: skip
_SUMS = (regression.PREFIX_NOISE_REDRAWN, replace(regression.COUNTED_ONCE, is_fault=_is_reached))
_L2_CONSTANTS, _NO_FLOOR = fault_of(_l2_constants, how=_made_for, is_fault=_shows_in_l1), fault_of(_NoFloor)

_SMALL: dict[str, tuple[str, ...]] = {
    "noise-sqrt2": (NOISE,), "half-taken-for-goe": (NOISE,), "released-again": (DETERMINISTIC,),
    "one-step-paid": (DETERMINISTIC,), "shift-from-noise": (DETERMINISTIC,),
}  # fmt: skip
"""Faults that replays need not catch. As printed noise is made for values that late steps do not have, and replays reach 0.7
of its cost; the least favorable pair has x' = -x, which no matrix shows; and decisions move other users' pairs by little."""

_WEIGHTED = _SMALL | {"noise-halved": (NOISE,)}
"""In few episodes nothing is known of variances: one moves the weighted sums by less than what their noise is made for."""

_IN_L1: dict[str, tuple[str, ...]] = {
    "noise-halved": (NOISE,), "sum-noised-anew": (DETERMINISTIC,), "features-not-clipped": (DETERMINISTIC,),
    "values-not-cut": (DETERMINISTIC,), "l2-constants": (DETERMINISTIC,), "prefix-noise-redrawn": (DETERMINISTIC,),
    "counted-once": (DETERMINISTIC,), "no-floor": (DETERMINISTIC,),
}  # fmt: skip
"""A loss in L1 over dozens of coordinates is large only in outcomes that replays do not see: they find what has no privacy,
and finite faults are left to the other audits."""


_GAUSSIAN, _LAPLACE = caught_as(_SMALL, (*_SHARED, regression.HALF_FOR_GOE)), caught_as(_SMALL | _IN_L1, _SHARED)
_WITH_WEIGHTS = caught_as(_WEIGHTED, (*_SHARED, regression.HALF_FOR_GOE))
_IN_L1_ONLY, _SUMS_IN_L1, _FLOOR_IN_L1 = (caught_as(_IN_L1, part) for part in ((_L2_CONSTANTS,), _SUMS, (_NO_FLOOR,)))

MIXTURE_CONTROLS: dict[str, tuple[Control, ...]] = {
    "ucrl-vtr joint": (*_GAUSSIAN, *_SUMS),
    "ucrl-vtr local": _GAUSSIAN,
    "ucrl-vtr joint pure": (*_LAPLACE, *_IN_L1_ONLY, *_SUMS_IN_L1),
    "ucrl-vtr local pure": (*_LAPLACE, *_IN_L1_ONLY),
    "ucrl-vtr-plus joint": (*_WITH_WEIGHTS, regression.PREFIX_NOISE_REDRAWN, _NO_FLOOR),
    "ucrl-vtr-plus local": (*_WITH_WEIGHTS, _NO_FLOOR),
    "ucrl-vtr-plus joint pure": (*_LAPLACE, *_SUMS_IN_L1, *_FLOOR_IN_L1),
    "ucrl-vtr-plus local pure": (*_LAPLACE, *_FLOOR_IN_L1),
}
"""Label of an entry -> its planted faults."""
