"""Where noise comes from, and what that source adds to the cost.

Two sources: a reproducible one for experiments and audits, and a secure one for deployment. A mechanism hands its exact
value and the scale of its noise to the source and gets the noisy value back, so that the source may put both on a grid.
"""

from __future__ import annotations

import copy
import math
import secrets
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from bandana.privacy_core.accounting.events import BoundedRangeEvent, Event, NonPrivateEvent, PureEvent, ResponseEvent
from bandana.privacy_core.arrays import FloatArray, IntArray
from bandana.privacy_core.checks import positive

Shape = int | tuple[int, ...]
Scale = float | FloatArray

GUMBEL, EXPONENTIAL = "gumbel", "exponential"
"""Noise that a selection adds to scores."""


class NoiseSource(Protocol):
    """Adds noise; `name` goes into the ledger's summary and the report."""

    name: str

    def add_gaussian(self, value: FloatArray, scale: Scale, noise_multiplier: float) -> FloatArray:
        """`value` plus Gaussian noise.

        Args:
          value: (n_rows, ...), exact.
          scale: standard deviation, one number or one for each coordinate of a row.
          noise_multiplier: noise over sensitivity, in the norm that weighs each coordinate by 1 / scale.
        """

    def add_laplace(self, value: FloatArray, scale: float, noise_multiplier: float) -> FloatArray:
        """`value` plus Laplace noise of the given scale; see `add_gaussian`."""

    def select(self, value: FloatArray, scale: float, kind: str) -> IntArray:
        """(n_rows,) number of the largest of the scores (n_rows, k) with Gumbel or exponential noise of the given scale."""

    def discrete_gaussian(self, scale: float, shape: Shape) -> IntArray:
        """Independent draws of probability proportional to exp(-k^2 / (2 scale^2)) on the whole numbers k."""

    def binomial(self, n_bits: int, shape: Shape) -> IntArray:
        """Independent numbers of ones among so many fair bits."""

    def cost(self, event: Event) -> Event:
        """Cost of a release from this source, if `event` is its cost in real numbers."""


class ContinuousNoise(ABC):
    """A source that draws from the real line, up to floating point; the cost is the mechanism's own."""

    name: str

    @abstractmethod
    def normal(self, shape: Shape) -> FloatArray:
        """Independent N(0, 1)."""

    @abstractmethod
    def laplace(self, shape: Shape) -> FloatArray:
        """Independent Laplace of scale 1."""

    @abstractmethod
    def discrete_gaussian(self, scale: float, shape: Shape) -> IntArray:
        """Independent draws from the discrete Gaussian on the whole numbers."""

    def add_gaussian(self, value: FloatArray, scale: Scale, noise_multiplier: float) -> FloatArray:
        """`value` plus continuous Gaussian noise, in a new array."""
        drawn = self.normal(value.shape)
        drawn *= scale
        drawn += value
        return drawn

    def add_laplace(self, value: FloatArray, scale: float, noise_multiplier: float) -> FloatArray:
        """`value` plus continuous Laplace noise, in a new array."""
        drawn = self.laplace(value.shape)
        drawn *= scale
        drawn += value
        return drawn

    def standard(self, shape: Shape, kind: str) -> FloatArray:
        """Independent exponential or Gumbel variables of scale 1."""
        waiting = np.abs(self.laplace(shape))
        return waiting if kind == EXPONENTIAL else -np.log(np.maximum(waiting, np.finfo(float).tiny))

    def select(self, value: FloatArray, scale: float, kind: str) -> IntArray:
        """(n_rows,) number of the largest score with noise; of equal ones, the first."""
        drawn = self.standard(value.shape, kind)
        drawn *= scale
        drawn += value
        return np.asarray(np.argmax(drawn, axis=1))

    def binomial(self, n_bits: int, shape: Shape) -> IntArray:
        """Numbers of ones among fair bits, at the places of normal numbers in the binomial distribution."""
        return np.asarray(np.searchsorted(_binomial(n_bits), ndtr(self.normal(shape))))

    def cost(self, event: Event) -> Event:
        """The cost of a release: the event itself, as in real numbers."""
        return event


@lru_cache(maxsize=8)
def _binomial(n_bits: int) -> FloatArray:
    """(n_bits,) probabilities of at most 0, 1, ..., n_bits - 1 ones."""
    from scipy.stats import binom

    return np.asarray(binom.cdf(np.arange(n_bits), n_bits, 0.5))


class ReproducibleNoise(ContinuousNoise):
    """Noise for experiments and audits: the same seed gives the same run.

    It is not for deployment: its seed is known, and a floating-point Gaussian leaks through its low-order bits
    (Mironov 2012); `docs/pitfalls.md` says how far.
    """

    name = "reproducible (NumPy SFC64)"

    def __init__(self, seed: np.random.SeedSequence) -> None:
        self._generator = np.random.Generator(np.random.SFC64(seed))

    def normal(self, shape: Shape) -> FloatArray:
        """Independent N(0, 1)."""
        return self._generator.standard_normal(shape)

    def laplace(self, shape: Shape) -> FloatArray:
        """Independent Laplace of scale 1."""
        return self._generator.laplace(size=shape)

    def discrete_gaussian(self, scale: float, shape: Shape) -> IntArray:
        """Discrete Gaussian draws, by rejection from a discrete Laplace (Canonne, Kamath, Steinke 2020, Algorithm 3)."""
        positive("scale", scale)
        drawn = np.empty(math.prod(shape) if isinstance(shape, tuple) else shape, dtype=np.int64)
        width = math.floor(scale) + 1
        filled = 0
        while filled < len(drawn):
            n_tries = 2 * (len(drawn) - filled) + 8
            # The difference of two geometric variables is discrete Laplace: P(k) proportional to e^(-|k| / width).
            tries = np.subtract(*self._generator.geometric(-math.expm1(-1 / width), (2, n_tries)))
            accept = np.exp(-((np.abs(tries) - scale**2 / width) ** 2) / (2 * scale**2))
            kept = tries[self._generator.random(n_tries) < accept][: len(drawn) - filled]
            drawn[filled : filled + len(kept)] = kept
            filled += len(kept)
        return drawn.reshape(shape)

    def binomial(self, n_bits: int, shape: Shape) -> IntArray:
        """Independent numbers of ones among so many fair bits."""
        return self._generator.binomial(n_bits, 0.5, shape)


class NoNoise(ContinuousNoise):
    """No noise at all: an algorithm that plays on it is its own twin, with the same widths and the same forgetting.

    It shows what the noise of a calibration costs, and nothing else. The ledger writes every release down as not private.
    """

    name = "none"

    def normal(self, shape: Shape) -> FloatArray:
        """Zeros."""
        return np.zeros(shape)

    laplace = normal

    def standard(self, shape: Shape, kind: str) -> FloatArray:
        """Zeros."""
        return np.zeros(shape)

    def discrete_gaussian(self, scale: float, shape: Shape) -> IntArray:
        """Zeros."""
        return np.zeros(shape, dtype=np.int64)

    def cost(self, event: Event) -> Event:
        """Infinite: the exact value is released."""
        return NonPrivateEvent()


class SecureNoise:
    r"""Noise for deployment: a cryptographic generator, and whole numbers only (opendp's exact discrete samplers).

    Each coordinate of a value is divided by g x scale and rounded to a whole number, a discrete Gaussian (Laplace) of
    scale 1/g is added, and the sum is multiplied by g x scale again, which is post-processing. In units of the noise's
    scale the sensitivity is 1/m, m the noise multiplier; rounding moves each coordinate of either data set by at most
    g/2, so that it adds at most g sqrt(d) to an L2 distance over d coordinates, and g d to an L1 distance. With

        g = 2^-13 min(1, 1/m) / sqrt(d)   (Gaussian)      g = 2^-13 min(1, 1/m) / d   (Laplace)

    the sensitivity grows by a factor of at most 1 + 2^-13 min(1, m). The rows of a factorized sum over n steps are
    one value of n d coordinates (`spread`). Discrete Gaussian noise of scale s >= 2^13 on vectors of whole numbers at
    distance D is mu-GDP with mu = (1 + 2.6 / s) D / s (`docs/privacy.md` has the proof). Noise is drawn larger by these
    factors, at most 1.00044, so that a release costs exactly what its mechanism promises.

    A selection by Gumbel or exponential noise is opendp's, which compares numbers of unlimited precision: there is no grid.
    A noisy maximum and AboveThreshold compare values on grids: rounding moves a difference of two values by at most two
    steps, and a shift that is no multiple of the step is rounded up, so that epsilon grows by at most 4 x 2^-13 min(1,
    epsilon).

    What it does not cover: the exact value itself is a floating-point sum. Where records are multiples of a power of
    two (`RewardTable`: 2^-30) sums are exact; elsewhere a sum of n terms has a rounding error of its own.

    Source: Canonne, Kamath, Steinke (2020) for the noise; Mironov (2012) and Casacuberta et al. (2022) for what rounding
    does; the samplers are those of opendp, which draws from the operating system's generator.
    """

    name = "secure (discrete noise on a grid, opendp, cryptographic generator)"

    _STEP = 2.0**-13
    # The division is rounded once more in floating point: below 2^-12 of a step while values stay under 2^40 steps.
    _ROUNDING = 1 + 2.0**-11
    _MOST_STEPS = 2.0**40
    # What a lattice adds to mu: its scale is never below 2^13 steps.
    _LATTICE = 1 + 2.6 * _STEP
    # Factors on the noise that pay for lattice and rounding; k solves lattice / k + lattice x rounding = 1.
    _WIDER_GAUSSIAN = _LATTICE / (1 - _LATTICE * _STEP * _ROUNDING) * (1 + 1e-12)
    _WIDER_LAPLACE = 1 / (1 - _STEP * _ROUNDING) * (1 + 1e-12)
    _n_rows = 1

    def spread(self, n_rows: int) -> SecureNoise:
        """The same source for records that each of up to `n_rows` Gaussian releases reads; all of them round.

        Raises:
          ValueError: more than 2^27 rows, whose column norms in floating point are not known to 1e-8.
        """
        if n_rows > 2**27:
            raise ValueError(f"n_steps: {n_rows} are more than the 2^27 that secure noise takes; make longer batches")
        source = copy.copy(self)
        source._n_rows = n_rows
        return source

    def add_gaussian(self, value: FloatArray, scale: Scale, noise_multiplier: float) -> FloatArray:
        """`value` rounded to a grid, plus discrete Gaussian noise on that grid.

        Raises:
          ValueError: a value lies more than 2^40 steps of the grid from 0.
        """
        wider, step = scale * self._WIDER_GAUSSIAN, self._step(noise_multiplier, math.sqrt(_dimension(value) * self._n_rows))
        whole = self._on_grid(value, wider, step)
        whole += self.discrete_gaussian(1 / step, value.shape)
        return np.asarray(whole * (step * wider))

    def add_laplace(self, value: FloatArray, scale: float, noise_multiplier: float) -> FloatArray:
        """`value` rounded to a grid, plus discrete Laplace noise on that grid."""
        wider, step = scale * self._WIDER_LAPLACE, self._step(noise_multiplier, _dimension(value))
        whole = self._on_grid(value, wider, step)
        whole += _opendp("laplace", 1 / step, value.shape)
        return np.asarray(whole * (step * wider))

    def select(self, value: FloatArray, scale: float, kind: str) -> IntArray:
        """(n_rows,) number of the largest score with noise, from opendp.

        Raises:
          ValueError: a score is not finite.
        """
        return _opendp_select(value, positive("scale", scale), kind)

    def discrete_gaussian(self, scale: float, shape: Shape) -> IntArray:
        """Independent draws from the discrete Gaussian, from OpenDP."""
        return _opendp("gaussian", positive("scale", scale), shape)

    def binomial(self, n_bits: int, shape: Shape) -> IntArray:
        """Independent numbers of ones among bits from the operating system's generator: exact."""
        n_draws = math.prod(shape) if isinstance(shape, tuple) else shape
        ones = [secrets.randbits(n_bits).bit_count() for _ in range(n_draws)]
        return np.asarray(ones, dtype=np.int64).reshape(shape)

    def cost(self, event: Event) -> Event:
        """The event itself for Gaussian and Laplace noise, which is drawn larger; for selections, with the grid's cost."""
        match event:
            case PureEvent(epsilon):
                return PureEvent(epsilon + 4 * self._STEP * min(1.0, epsilon) * self._ROUNDING)
            case BoundedRangeEvent(epsilon):
                return BoundedRangeEvent(epsilon * (1 + 1e-12))
            case ResponseEvent(epsilon, n_options):
                return ResponseEvent(epsilon * (1 + 1e-12), n_options)
        return event

    def _step(self, noise_multiplier: float, norm: float) -> float:
        """g, of a vector of ones of the given norm; noise of more than 2^40 steps would not fit whole numbers of 64 bits."""
        step = self._STEP * min(1.0, 1 / noise_multiplier) / norm
        if step < 1 / self._MOST_STEPS:
            raise ValueError(
                f"noise of 2^{-math.log2(step):.1f} steps of the grid does not fit whole numbers of 64 bits; take a smaller "
                "noise multiplier, fewer coordinates or fewer steps"
            )
        return step

    def _on_grid(self, value: FloatArray, scale: Scale, step: float) -> IntArray:
        with np.errstate(over="ignore"):  # an overflow is refused below
            steps = value / (step * scale)
        # Written so that NaN is refused too.
        if not (np.abs(steps) < self._MOST_STEPS).all():
            worst = float(np.ravel(value)[np.argmax(~(np.abs(np.ravel(steps)) < self._MOST_STEPS))])
            raise ValueError(
                f"the value {worst!r} cannot be put on a grid of noise scale {np.max(scale):.6g} x 2^{math.log2(step):.1f}: "
                "it is not finite, or more than 2^40 steps from 0"
            )
        return np.rint(steps).astype(np.int64)


def _dimension(value: FloatArray) -> int:
    return max(1, math.prod(value.shape[1:]))


def _opendp(kind: str, scale: float, shape: Shape) -> IntArray:
    """Exact discrete noise from opendp, as whole numbers."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "gaussian":
        sampler = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)
    else:
        sampler = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    n_draws = math.prod(shape) if isinstance(shape, tuple) else shape
    drawn = sampler([0] * n_draws) if n_draws else []
    return np.asarray(drawn, dtype=np.int64).reshape(shape)


def _opendp_select(value: FloatArray, scale: float, kind: str) -> IntArray:
    """(n_rows,) selected by opendp."""
    import opendp.prelude as dp

    if not np.isfinite(value).all():
        raise ValueError(f"scores must be finite, got {value[~np.isfinite(value)][0]!r}")
    dp.enable_features("contrib")
    measure = dp.zero_concentrated_divergence() if kind == GUMBEL else dp.max_divergence()
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.linf_distance(T="f64")
    selector = dp.m.make_noisy_max(*space, measure, scale=scale)
    return np.array([selector(row) for row in value.tolist()], dtype=np.int64)
