"""The mechanisms through which a value may leave: each knows its sensitivity, its noise and its price.

scale = sensitivity x noise multiplier. The noise multiplier alone fixes the price, so a mechanism whose sensitivity
differs between replicates still has one event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privacy_core.checks import positive
from privacy_core.events import Event, GaussianEvent, LaplaceEvent, NonPrivateEvent
from privacy_core.noise import NoiseSource

Array = NDArray[np.float64]


class Mechanism(Protocol):
    """A randomized release of a value of shape (n_reps, ...)."""

    @property
    def sensitivity(self) -> float:
        """The largest change of the value, in `norm`, when one record is replaced."""
        ...

    @property
    def scale(self) -> float:
        """Of the noise in each coordinate: a Gaussian's standard deviation, a Laplace's b, 0 for none."""
        ...

    @property
    def event(self) -> Event:
        """What one release costs."""
        ...

    def draw(self, noise: NoiseSource, value: Array) -> Array:
        """`value` plus fresh noise, same shape."""
        ...

    def change(self, value: Array, neighbor: Array) -> Array:
        """(n_reps,), the distance of two exact values in the norm of the sensitivity."""
        ...

    def log_density_ratio(self, output: Array, value: Array, neighbor: Array) -> Array:
        """(n_reps,), log p(output | neighbor) - log p(output | value): one term of the privacy loss, in nats."""
        ...


def _flat(array: Array) -> Array:
    return array.reshape(len(array), math.prod(array.shape[1:]))


@dataclass(frozen=True, slots=True)
class Gaussian:
    """value + N(0, (sensitivity_l2 x noise_multiplier)^2 I): exactly mu-GDP, mu = 1 / noise_multiplier.

    Source: Dong, Roth, Su (2022), Theorem 1; as RDP, Mironov (2017), Corollary 3.
    """

    sensitivity_l2: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        positive("sensitivity_l2", self.sensitivity_l2)
        positive("noise_multiplier", self.noise_multiplier)

    @property
    def sensitivity(self) -> float:
        """In L2."""
        return self.sensitivity_l2

    @property
    def scale(self) -> float:
        """Standard deviation of the noise in each coordinate."""
        return self.sensitivity_l2 * self.noise_multiplier

    @property
    def event(self) -> GaussianEvent:
        """What one release costs."""
        return GaussianEvent(self.noise_multiplier)

    def scaled(self, factor: float) -> Gaussian:
        """The same mechanism with `factor` times the noise."""
        return replace(self, noise_multiplier=self.noise_multiplier * factor)

    def draw(self, noise: NoiseSource, value: Array) -> Array:
        """`value` plus fresh noise, same shape."""
        drawn = noise.normal(value.shape)
        drawn *= self.scale
        drawn += value
        return drawn

    def change(self, value: Array, neighbor: Array) -> Array:
        """(n_reps,), L2 distance."""
        return np.asarray(np.linalg.norm(_flat(neighbor - value), axis=1))

    def log_density_ratio(self, output: Array, value: Array, neighbor: Array) -> Array:
        """(n_reps,): (neighbor - value) . (2 output - value - neighbor) / (2 scale^2)."""
        terms = (neighbor - value) * (2 * output - value - neighbor)
        terms *= 0.5 / self.scale**2
        return terms if terms.ndim == 1 else _flat(terms).sum(axis=1)


@dataclass(frozen=True, slots=True)
class Laplace:
    """value + Laplace(sensitivity_l1 x noise_multiplier) in each coordinate: (1 / noise_multiplier)-DP.

    Source: Dwork, McSherry, Nissim, Smith (2006), Proposition 1.
    """

    sensitivity_l1: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        positive("sensitivity_l1", self.sensitivity_l1)
        positive("noise_multiplier", self.noise_multiplier)

    @property
    def sensitivity(self) -> float:
        """In L1."""
        return self.sensitivity_l1

    @property
    def scale(self) -> float:
        """The Laplace scale b; the noise's standard deviation is b sqrt 2."""
        return self.sensitivity_l1 * self.noise_multiplier

    @property
    def event(self) -> LaplaceEvent:
        """What one release costs."""
        return LaplaceEvent(self.noise_multiplier)

    def draw(self, noise: NoiseSource, value: Array) -> Array:
        """`value` plus fresh noise, same shape."""
        return value + self.scale * noise.laplace(value.shape)

    def change(self, value: Array, neighbor: Array) -> Array:
        """(n_reps,), L1 distance."""
        return np.asarray(np.abs(_flat(neighbor - value)).sum(axis=1))

    def log_density_ratio(self, output: Array, value: Array, neighbor: Array) -> Array:
        """(n_reps,): (|output - value|_1 - |output - neighbor|_1) / scale."""
        terms = (np.abs(output - value) - np.abs(output - neighbor)) / self.scale
        return np.asarray(_flat(terms).sum(axis=1))


@dataclass(frozen=True, slots=True)
class Exact:
    """The value itself: the mechanism of every non-private twin. Its price is infinite, and the ledger says so."""

    @property
    def sensitivity(self) -> float:
        """No bound is needed."""
        return math.inf

    @property
    def scale(self) -> float:
        """No noise."""
        return 0.0

    @property
    def event(self) -> NonPrivateEvent:
        """What one release costs: everything."""
        return NonPrivateEvent()

    def scaled(self, factor: float) -> Exact:
        """Itself: no noise, however often."""
        positive("factor", factor)
        return self

    def draw(self, noise: NoiseSource, value: Array) -> Array:
        """A copy of `value`."""
        return value.copy()

    def change(self, value: Array, neighbor: Array) -> Array:
        """(n_reps,), L2 distance."""
        return np.asarray(np.linalg.norm(_flat(neighbor - value), axis=1))

    def log_density_ratio(self, output: Array, value: Array, neighbor: Array) -> Array:
        """(n_reps,): 0 where both values agree, else minus infinity, as the output cannot come from the neighbor."""
        return np.where((_flat(value) != _flat(neighbor)).any(axis=1), -np.inf, 0.0)
