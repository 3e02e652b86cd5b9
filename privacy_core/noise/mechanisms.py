"""The mechanisms through which a value may leave: each knows its sensitivity, its noise and its cost.

scale = sensitivity x noise multiplier. The noise multiplier alone fixes the cost, so a mechanism whose sensitivity
differs between replicates still has one event.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol, Self

import numpy as np

from bandana.privacy_core.accounting.events import ConcentratedEvent, Event, GaussianEvent, LaplaceEvent, NonPrivateEvent
from bandana.privacy_core.accounting.guarantees import Relation
from bandana.privacy_core.arrays import FloatArray
from bandana.privacy_core.checks import positive
from bandana.privacy_core.noise.sources import NoiseSource


class Mechanism(Protocol):
    """A randomized release of a value of shape (n_reps, ...)."""

    @property
    def relation(self) -> Relation | None:
        """Neighboring relation for which the sensitivity bounds the change; None if nothing is bounded."""

    @property
    def norm(self) -> str:
        """The norm of the sensitivity, in words."""

    @property
    def sensitivity(self) -> float:
        """The largest change of the value, in `norm`, from one data set to a neighbor."""

    @property
    def scale(self) -> float:
        """Scale of the noise in each coordinate: a Gaussian's standard deviation, a Laplace's b, 0 for none."""

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in each coordinate; of a matrix off the diagonal."""

    @property
    def event(self) -> Event:
        """Cost of one release."""

    def whiten(self, value: FloatArray) -> FloatArray:
        """(n_reps, n_free): what is free in `value`, scaled to equal noise in all directions, in memory of its own."""

    def color(self, whitened: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """(n_reps, ...) of the given shape, in memory of its own: undoes `whiten`."""

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` plus fresh noise, same shape."""

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_reps,), the distance of two exact values in the norm of the sensitivity."""

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_reps,), log p(output | neighbor) - log p(output | value): one term of the privacy loss, in nats."""


@lru_cache(maxsize=256)
def gaussian_event(noise_multiplier: float) -> GaussianEvent:
    """The event, made once, of a plain number whoever asks first: a ledger is asked for it at every release."""
    return GaussianEvent(float(noise_multiplier))


def _flat(array: FloatArray) -> FloatArray:
    return array.reshape(len(array), math.prod(array.shape[1:]))


def is_selection(mechanism: Mechanism) -> bool:
    """True if the output is the number of a score, not a noisy value (`bandana.privacy_core.noise.selections`)."""
    return hasattr(mechanism, "without_noise")


def without_noise(mechanism: Mechanism, value: FloatArray) -> FloatArray:
    """Output of the mechanism without noise: a copy of the value, or what a selection selects from it."""
    selected = getattr(mechanism, "without_noise", None)
    return value.copy() if selected is None else np.asarray(selected(value))


class Scaled(ABC):
    """Mechanisms whose noise is their sensitivity times a noise multiplier, which alone fixes the cost."""

    __slots__ = ()

    noise_multiplier: float

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """The largest change of the value, in the norm of the mechanism, from one data set to a neighbor."""

    @property
    def scale(self) -> float:
        """Scale of the noise in each coordinate of weight 1; of a discrete Gaussian, nearly its standard deviation."""
        return self.sensitivity * self.noise_multiplier

    def scaled(self, factor: float) -> Self:
        """The same mechanism with `factor` times the noise."""
        return replace(self, noise_multiplier=self.noise_multiplier * factor)  # type: ignore[type-var]


class GaussianLaw(Scaled):
    """Mechanisms whose noise is Gaussian: exactly mu-GDP, mu = 1 / noise_multiplier."""

    __slots__ = ()

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in each coordinate of weight 1, which is the scale."""
        return self.scale

    @property
    def event(self) -> GaussianEvent:
        """Cost of one release."""
        return gaussian_event(self.noise_multiplier)


class LaplaceLaw(Scaled):
    """Mechanisms whose noise is Laplace: (1 / noise_multiplier)-DP."""

    __slots__ = ()

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in each coordinate of weight 1: sqrt 2 times the scale."""
        return math.sqrt(2) * self.scale

    @property
    def event(self) -> LaplaceEvent:
        """Cost of one release."""
        return LaplaceEvent(self.noise_multiplier)


class _Isotropic:
    """Mechanisms that treat all coordinates of a value alike, for L2 sensitivities where nothing else is said."""

    __slots__ = ()

    def whiten(self, value: FloatArray) -> FloatArray:
        """(n_reps, n_free): a copy of the coordinates."""
        return _flat(value).copy()

    def color(self, whitened: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """A copy of the coordinates, in the given shape."""
        return whitened.reshape(shape).copy()

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_reps,), L2 distance."""
        return np.asarray(np.linalg.norm(_flat(neighbor - value), axis=1))


class _InL2(Scaled, _Isotropic):
    """Mechanisms calibrated to an L2 sensitivity."""

    __slots__ = ()

    norm = "L2"
    sensitivity_l2: float

    def __post_init__(self) -> None:
        positive("sensitivity_l2", self.sensitivity_l2)
        positive("noise_multiplier", self.noise_multiplier)

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity."""
        return self.sensitivity_l2


@dataclass(frozen=True, slots=True)
class Gaussian(GaussianLaw, _InL2):
    """value + N(0, (sensitivity_l2 x noise_multiplier)^2 I): exactly mu-GDP, mu = 1 / noise_multiplier.

    Source: Dong, Roth, Su (2022), Theorem 1; as RDP, Mironov (2017), Corollary 3.
    """

    sensitivity_l2: float
    noise_multiplier: float
    relation: Relation = Relation.REPLACE_RECORD

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` plus fresh noise, same shape."""
        return noise.add_gaussian(value, self.scale, self.noise_multiplier)

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_reps,): (neighbor - value) . (2 output - value - neighbor) / (2 scale^2)."""
        terms = (neighbor - value) * (2 * output - value - neighbor)
        terms *= 0.5 / self.scale**2
        return terms if terms.ndim == 1 else _flat(terms).sum(axis=1)


@dataclass(frozen=True, slots=True)
class Laplace(LaplaceLaw, _Isotropic):
    """value + Laplace(sensitivity_l1 x noise_multiplier) in each coordinate: (1 / noise_multiplier)-DP.

    Source: Dwork, McSherry, Nissim, Smith (2006), Proposition 1.
    """

    norm = "L1"
    sensitivity_l1: float
    noise_multiplier: float
    relation: Relation = Relation.REPLACE_RECORD

    def __post_init__(self) -> None:
        positive("sensitivity_l1", self.sensitivity_l1)
        positive("noise_multiplier", self.noise_multiplier)

    @property
    def sensitivity(self) -> float:
        """L1 sensitivity."""
        return self.sensitivity_l1

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` plus fresh noise, same shape."""
        return noise.add_laplace(value, self.scale, self.noise_multiplier)

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_reps,), L1 distance."""
        return np.asarray(np.abs(_flat(neighbor - value)).sum(axis=1))

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_reps,): (|output - value|_1 - |output - neighbor|_1) / scale."""
        terms = (np.abs(output - value) - np.abs(output - neighbor)) / self.scale
        return np.asarray(_flat(terms).sum(axis=1))


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(_InL2):
    """value + discrete Gaussian noise on a grid, for values that lie on the grid: zCDP, rho = 1 / (2 noise_multiplier^2).

    The noise is `grid` times a whole number k of probability proportional to exp(-k^2 grid^2 / (2 scale^2)). It is not
    exactly Gaussian DP, and is composed as zCDP.

    Source: Canonne, Kamath, Steinke (2020), Theorem 14.
    """

    sensitivity_l2: float
    noise_multiplier: float
    grid: float
    relation: Relation = Relation.REPLACE_RECORD

    def __post_init__(self) -> None:
        _InL2.__post_init__(self)
        positive("grid", self.grid)

    @property
    def deviation(self) -> float:
        """The exact one, by summation over the grid; it is below the scale, by less than 1e-8 of it beyond a grid step."""
        k = np.arange(math.ceil(40 * self.scale / self.grid) + 1) if self.scale < 4 * self.grid else np.empty(0)
        if not len(k):
            return self.scale
        weight = np.exp(-0.5 * (k * self.grid / self.scale) ** 2)
        return self.grid * math.sqrt(float(2 * (k**2 * weight).sum() / (2 * weight.sum() - 1)))

    @property
    def event(self) -> ConcentratedEvent:
        """Cost of one release."""
        return ConcentratedEvent(0.5 / self.noise_multiplier**2 * (1 + 1e-12))

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` plus fresh noise, same shape.

        Raises:
          ValueError: a value does not lie on the grid.
        """
        whole = np.rint(value / self.grid)
        # Written so that NaN is refused too.
        is_off = ~((whole * self.grid == value) & np.isfinite(value))
        if is_off.any():
            raise ValueError(f"values must be multiples of the grid {self.grid!r}, got {float(value[is_off][0])!r}")
        return np.asarray((whole + noise.discrete_gaussian(self.scale / self.grid, value.shape)) * self.grid)

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_reps,): as for the Gaussian, since all shifts along the grid have the same normalization."""
        return Gaussian(self.sensitivity_l2, self.noise_multiplier).log_density_ratio(output, value, neighbor)


@dataclass(frozen=True, slots=True)
class Exact(_Isotropic):
    """The value itself: the mechanism of every non-private twin. Its cost is infinite, and the ledger says so."""

    relation = None
    norm = "none"
    sensitivity = math.inf
    scale = 0.0
    deviation = 0.0
    event = NonPrivateEvent()

    def scaled(self, factor: float) -> Exact:
        """The same mechanism: no noise stays no noise."""
        positive("factor", factor)
        return self

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """A copy of `value`."""
        return value.copy()

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_reps,): 0 where both values agree, else minus infinity, as the output cannot come from the neighbor."""
        return np.where((_flat(value) != _flat(neighbor)).any(axis=1), -np.inf, 0.0)
