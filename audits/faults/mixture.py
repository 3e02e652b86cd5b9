"""Planted faults of UCRL-VTR and UCRL-VTR+: where reinforcement learning from stacked regressions goes wrong.

Beside the faults of any ledger and of continual sums: noise for one step of an episode where there are several, one noise
for all steps, values that grow past what can be earned, weights without a floor, Laplace noise with the constants of
Gaussian noise. mu0 is what the honest algorithm has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.algorithms.rl.mixture import value_targets_numba
from bandana.algorithms.rl.mixture.vtr import UCRLVTR, Released, Sensitive
from bandana.algorithms.rl.mixture.vtr_plus import UCRLVTRPlus
from bandana.audits.faults.fault import Control, planted_as
from bandana.audits.faults.regression import NoisedAnew, counted_once, redrawn, with_sums
from bandana.audits.faults.releases import GENERIC, Memory, Pretending, planted
from bandana.audits.faults.tampering import noise_of
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING
from bandana.privacy_core import Carried, Ledger, Mechanism, NoiseSource, Span, StackedGaussian, StackedLaplace

BOTH, DRAWN = (SAMPLING, DETERMINISTIC), (SAMPLING, NOISE)
_TIMES = 4.0
"""How many times what can be earned values may grow to where nothing bounds them."""
_TINY = 0.01
"""Share of the honest floor."""


# --- noise that is wrong ---------------------------------------------------------------------------------------------


class _OneStepGaussian(StackedGaussian):
    """Noise for the change of the last block, where a record moves all of them."""

    @property
    def sensitivity(self) -> float:
        """Sensitivity of the last block alone."""
        last = (self.norm_bounds[-1],), (self.value_bounds[-1],), (self.shares[-1],)
        return StackedGaussian(*last, 1.0, self.vector_ratio, self.diagonal_ratio).sensitivity


class _OneStepLaplace(StackedLaplace):
    """The same of Laplace noise."""

    @property
    def sensitivity(self) -> float:
        """Sensitivity of the last block alone."""
        last = (self.norm_bounds[-1],), (self.value_bounds[-1],), (self.shares[-1],)
        return StackedLaplace(*last, self.dimension, 1.0, self.vector_ratio).sensitivity


class _L2Laplace(StackedLaplace):
    """Laplace noise for the L2 sensitivities of a Gaussian proof, 2 R^2 for the matrix and 2 R Y for the vector."""

    @property
    def sensitivity(self) -> float:
        """The sum of these sensitivities over the blocks."""
        blocks = zip(self.norm_bounds, self.value_bounds, self.shares, strict=True)
        return math.fsum((2 * r * r + 2 * r * y / self.vector_ratio) / share for r, y, share in blocks)


def _shows_in_l1(honest: Any) -> bool:
    """Whether there are episodes that move releases by more than the L2 constants.

    As printed noise is made for values of H after each step, and those of the last step are known rewards: in short episodes
    what is wasted there is more than what the constants lack.
    """
    noise, targets = honest.sums.mechanism, honest.targets
    assert isinstance(noise, StackedLaplace)
    last, reached = honest.episode_length - 2, 0.0
    for i, (r, y, share) in enumerate(zip(noise.norm_bounds, noise.value_bounds, noise.shares, strict=True)):
        alone = StackedLaplace((r,), (y,), (share,), noise.dimension, 1.0, noise.vector_ratio).sensitivity
        is_known = targets.steps[i] == last
        highest = float(np.abs(honest.model.rewards[-1] - targets.center[i]).max()) if is_known else y
        reached += alone * min(1.0, highest / y) ** 2
    return bool(reached > planted_as(_L2Laplace)(noise).sensitivity)


def _noise_as(faulty: dict[type[Any], type[Any]]) -> Callable[[Any], Any]:
    """The same sums with another class of mechanism."""

    def plant(honest: Any) -> Any:
        mechanism = honest.sums.mechanism
        return replace(honest, sums=replace(honest.sums, mechanism=planted_as(faulty[type(mechanism)])(mechanism)))

    return plant


@dataclass(frozen=True, eq=False)
class _Uneven(Pretending):
    """Noise of which some entries of each block have less than is declared, or none.

    Attributes:
      shares: d -> (n_free,) of the declared deviation, in each free entry of a triangle and a vector.
      n_blocks: blocks of a release, which may have been whitened before.
    """

    shares: Callable[[int], FloatArray] = field(kw_only=True)
    n_blocks: int = field(kw_only=True)

    def _of(self, n_free: int) -> FloatArray:
        """(n_free,) of all blocks; of d (d + 1) / 2 + d free entries a block, d is known."""
        return np.tile(self.shares((math.isqrt(9 + 8 * n_free // self.n_blocks) - 3) // 2), self.n_blocks)

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` plus too little noise."""
        drawn = self.declared.whiten(noise_of(self.declared, noise, value))
        drawn *= self._of(drawn.shape[1])
        return np.asarray(value + self.declared.color(drawn, value.shape))

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,) of the true law, of Gaussian noise or of Laplace's: minus infinity where an exact entry differs."""
        one, other = (self.declared.whiten(np.asarray(output - v)) for v in (value, neighbor))
        shares = self._of(one.shape[1])
        is_exact = shares == 0
        scale = self.declared.scale * np.where(is_exact, 1.0, shares)
        if isinstance(self.declared, StackedLaplace):
            terms = (np.abs(one) - np.abs(other)) / scale
        else:
            terms = (one**2 - other**2) / (2 * scale**2)
        found = np.where(is_exact, 0.0, terms).sum(axis=1)
        differs = np.abs(one - other)[:, is_exact] > 1e-12 * (1 + np.abs(output).max())
        return np.where(differs.any(axis=1), -np.inf, found)


def _half_the_matrix(d: int) -> FloatArray:
    """(Z + Z^T)/2, whose entries are sqrt 2 below those of (Z + Z^T)/sqrt 2; the vector's noise is right."""
    return np.repeat([math.sqrt(0.5), 1.0], [d * (d + 1) // 2, d])


def _no_diagonal(d: int) -> FloatArray:
    """Factors on the noise: 0 on the matrices' diagonals, 1 elsewhere."""
    rows, columns = np.triu_indices(d)
    return np.concatenate([(rows != columns).astype(float), np.ones(d)])


@dataclass(frozen=True, eq=False)
class _OneForAllSteps(Pretending):
    """The noise of the first block in every block: it cancels between steps.

    Attributes:
      n_blocks: blocks of a release, which may have been whitened before.
    """

    n_blocks: int = field(kw_only=True)

    def _blocks(self, value: FloatArray) -> FloatArray:
        """(n_rows, n_blocks, n_free) whitened."""
        white = self.declared.whiten(value)
        return np.asarray(white.reshape(len(value), self.n_blocks, -1))

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` plus that noise, in each block with the block's own deviation."""
        drawn = self._blocks(noise_of(self.declared, noise, value))
        drawn[:] = drawn[:, :1]
        return np.asarray(value + self.declared.color(drawn.reshape(len(value), -1), value.shape))

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,): minus infinity where the blocks do not move alike."""
        shift, one, other = (self._blocks(np.asarray(v)) for v in (neighbor - value, output - value, output - neighbor))
        if isinstance(self.declared, StackedLaplace):
            terms = (np.abs(one[:, 0]) - np.abs(other[:, 0])) / self.declared.scale
        else:
            terms = (one[:, 0] ** 2 - other[:, 0] ** 2) / (2 * self.declared.scale**2)
        unlike = np.abs(shift - shift[:, :1]).max(axis=(1, 2)) > 1e-9
        return np.where(unlike, -np.inf, terms.sum(axis=1))


def _through(faulty: type[Any], **more: Any) -> Callable[[Any], Any]:
    """The algorithm behind a ledger whose noise is of the faulty kind."""

    def plant(honest: Any) -> Any:
        def fault(
            ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
            reps: IntArray | None, carried: Carried | None,
        ) -> FloatArray:  # fmt: skip
            cheating = faulty(mechanism, n_blocks=honest.n_blocks, **more)
            return ledger.release(cheating, value, records=records, reps=reps, carried=carried)

        return planted(fault)(honest)

    return plant


# --- contributions and decisions that are wrong ----------------------------------------------------------------------


class _LongFeatures(UCRLVTR):
    """Takes the norm of features on trust, and is told ones three times as long as the noise is made for."""

    def contribution(self, released: Released, record: Record) -> FloatArray:
        """The honest contribution with features of three times the length."""
        found = super().contribution(released, record)
        found[..., :-1] *= 9.0
        found[..., -1] *= 3.0
        return found


class _LongFeaturesPlus(_LongFeatures, UCRLVTRPlus):
    """UCRL-VTR+ with features of three times the length."""


def _long_features(honest: Any) -> Any:
    return planted_as(_LongFeaturesPlus if isinstance(honest, UCRLVTRPlus) else _LongFeatures)(honest)


def _not_cut(honest: Any) -> Any:
    """Values may grow past what can be earned, and are regressed as they are; the noise stays."""
    t = honest.targets
    wider = {name: tuple(_TIMES * v for v in getattr(t, name)) for name in ("norm_bound", "value_bound", "high")}
    faulty = replace(honest, targets=replace(t, **wider))
    if not isinstance(honest, UCRLVTRPlus):
        return faulty
    bounds = honest.square_bounds
    return replace(
        faulty,
        squares=bounds._replace(
            **{name: tuple(_TIMES**2 * v for v in getattr(bounds, name)) for name in ("norm_bound", "value_bound")}
        ),
    )


class _NoFloor(UCRLVTRPlus):
    """Divides by an estimate of the variance without the floor, without what it may be wrong by, and without its center."""

    def contribution(self, released: Released, record: Record) -> FloatArray:
        """The honest contribution with weights up to a hundred times as large."""
        assert record.states is not None
        out = np.empty((len(record.user), self.n_blocks, self.model.dimension, self.model.dimension + 1))
        steps, center, norm, value = self._aims
        square, square_norm, square_value, floor, top = self._levels
        zeros = np.zeros((len(out), self.targets.n_blocks))
        value_targets_numba.contribute_weighted(
            self.model.features, steps, center, norm, value, 0.0 * square, square_norm, square_value, value, _TINY * floor,
            top, released.estimate, released.inverse, zeros, zeros, released.values, record.states, record.actions, out,
        )  # fmt: skip
        return out


class _Watching(NamedTuple):
    """The released state, with what it must not hold."""

    policy: IntArray
    values: FloatArray
    estimate: FloatArray
    inverse: FloatArray
    width: FloatArray
    clock: IntArray
    exact: FloatArray
    """(n_reps, n_blocks, d, d + 1) exact sums."""


class _ShiftFromNoise(UCRLVTR):
    """Shifts each Gram matrix by the least eigenvalue of the noise that was drawn, in place of a public bound on it.

    It does not explore, so that what it decides shows in few episodes: the widest optimism hides every estimate.
    """

    def radius(self, log_det: FloatArray, step: int) -> FloatArray:
        """A radius of zero."""
        return np.zeros_like(log_det)

    def init(self, n_reps: int) -> tuple[Sensitive, Any]:
        """The honest states, with exact sums kept in the released one."""
        sensitive, released = super().init(n_reps)
        d = self.model.dimension
        return sensitive, _Watching(*released, exact=np.zeros((n_reps, self.n_blocks, d, d + 1)))

    def contribution(self, released: Any, record: Record) -> FloatArray:
        """The honest contribution, which is also added to an exact sum."""
        found = super().contribution(released, record)
        released.exact[:] += found
        return found

    def learn(self, released: Any, statistic: FloatArray, step: int) -> None:
        """Learns with the noise's own eigenvalue in place of the bound."""
        if isinstance(released, _Watching):
            d, statistic = self.model.dimension, statistic.copy()
            least = np.linalg.eigvalsh((statistic - released.exact)[..., :d])[..., 0]
            moved = least + (self.shift(step).added - self.ridges)
            np.einsum("rbii->rbi", statistic[..., :d])[...] -= moved[..., None]
        super().learn(released, statistic, step)


class _ShiftFromNoisePlus(_ShiftFromNoise, UCRLVTRPlus):
    """UCRL-VTR+ whose shift follows the noise's own eigenvalue."""


def _shift_from_noise(honest: Any) -> Any:
    return planted_as(_ShiftFromNoisePlus if isinstance(honest, UCRLVTRPlus) else _ShiftFromNoise)(honest)


# --- the lists -------------------------------------------------------------------------------------------------------


_SHARED: tuple[Control, ...] = (
    *(control for control in GENERIC if control.name not in ("not-clipped", "decides-from-exact")),
    Control(
        "sum-noised-anew", "all episodes enter each of K releases with fresh noise, one is declared (sqrt(K) mu0)",
        with_sums(NoisedAnew),
    ),
    Control(
        "one-step-paid", "noise is made for one regression of an episode, and a user moves all (sqrt(H - 1) mu0 and more)",
        _noise_as({StackedGaussian: _OneStepGaussian, StackedLaplace: _OneStepLaplace}), BOTH,
    ),
    Control("one-noise-for-all-steps", "one draw serves all steps (no privacy)", _through(_OneForAllSteps), DRAWN),
    Control(
        "no-noise-on-the-diagonal", "the diagonals stay exact (no privacy)",
        _through(_Uneven, shares=_no_diagonal), DRAWN,
    ),
    Control(
        "features-not-clipped", "features are three times as long as the noise is made for (3 mu0 and more)", _long_features
    ),
    Control(
        "values-not-cut", "optimistic values are not cut at what can be earned (up to the square of their excess)", _not_cut
    ),
    Control(
        "shift-from-noise", "the shift is the least eigenvalue of the noise itself (no privacy)", _shift_from_noise
    ),
)  # fmt: skip

_GAUSSIAN = (
    Control(
        "half-taken-for-goe", "(Z + Z^T)/2 is drawn where (Z + Z^T)/sqrt(2) was calibrated (up to sqrt(2) mu0)",
        _through(_Uneven, shares=_half_the_matrix), DRAWN,
    ),
)  # fmt: skip

_REDRAWN = (Control("prefix-noise-redrawn", "each read of the sums draws noise of their size anew", redrawn, BOTH),)

_COUNTED_ONCE = (
    Control(
        "counted-once", "a record pays for one release, and is in several nodes of a tree, or rows of a factorization",
        counted_once, BOTH,
    ),
)  # fmt: skip

_PURE = (
    Control(
        "l2-constants", "Laplace noise is made for L2 sensitivities (1.4 epsilon at d = 3)",
        _noise_as({StackedLaplace: _L2Laplace}), BOTH, is_fault=_shows_in_l1,
    ),
)  # fmt: skip

_PLUS = (
    Control("no-floor", "weights are as large as an estimated variance makes them", planted_as(_NoFloor), BOTH),
)  # fmt: skip


_SMALL: dict[str, tuple[str, ...]] = {
    "noise-sqrt2": (NOISE,), "half-taken-for-goe": (NOISE,), "released-again": (DETERMINISTIC,),
    "one-step-paid": (DETERMINISTIC,), "shift-from-noise": (DETERMINISTIC,),
}  # fmt: skip
"""What replays are not asked for. As printed noise is made for values that late steps do not have, and replays reach 0.7 of
its price; the worst pair has x' = -x, which no matrix tells; and what is decided moves the other users' pairs by little."""

_WEIGHTED = _SMALL | {"noise-halved": (NOISE,)}
"""In few episodes nothing is known of variances: one moves the weighted sums by a d-th of what their noise is made for."""

_IN_L1: dict[str, tuple[str, ...]] = {
    "noise-halved": (NOISE,), "sum-noised-anew": (DETERMINISTIC,), "features-not-clipped": (DETERMINISTIC,),
    "values-not-cut": (DETERMINISTIC,), "l2-constants": (DETERMINISTIC,), "prefix-noise-redrawn": (DETERMINISTIC,),
    "counted-once": (DETERMINISTIC,), "no-floor": (DETERMINISTIC,),
}  # fmt: skip
"""A loss in L1 over dozens of coordinates is large only in outcomes that replays do not see: they find what has no privacy,
and finite faults are left to the other audits."""


def _where(asked: dict[str, tuple[str, ...]], *controls: Control) -> tuple[Control, ...]:
    return tuple(replace(control, caught_by=asked.get(control.name, control.caught_by)) for control in controls)


MIXTURE_CONTROLS: dict[str, tuple[Control, ...]] = {
    "ucrl-vtr-joint": _where(_SMALL, *_SHARED, *_GAUSSIAN, *_REDRAWN, *_COUNTED_ONCE),
    "ucrl-vtr-local": _where(_SMALL, *_SHARED, *_GAUSSIAN),
    "ucrl-vtr-pure-joint": _where(_SMALL | _IN_L1, *_SHARED, *_PURE, *_REDRAWN, *_COUNTED_ONCE),
    "ucrl-vtr-pure-local": _where(_SMALL | _IN_L1, *_SHARED, *_PURE),
    "ucrl-vtr-plus-joint": _where(_WEIGHTED, *_SHARED, *_GAUSSIAN, *_REDRAWN, *_PLUS),
    "ucrl-vtr-plus-local": _where(_WEIGHTED, *_SHARED, *_GAUSSIAN, *_PLUS),
    "ucrl-vtr-plus-pure-joint": _where(_SMALL | _IN_L1, *_SHARED, *_REDRAWN, *_COUNTED_ONCE, *_PLUS),
    "ucrl-vtr-plus-pure-local": _where(_SMALL | _IN_L1, *_SHARED, *_PLUS),
}
"""Name of the algorithm -> its planted faults."""
