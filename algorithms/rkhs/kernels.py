r"""Similarity of two points: the kernels whose functions the kernel bandits learn.

Each is a frozen dataclass of public parameters, k(x, x) = 1 but for the linear one.

By Bochner's theorem a stationary kernel is the mean of cos(w^T (x - y)) over its spectral density. Where that is a product
over the coordinates (Assumption 1 of Dubey), quadrature on a grid works: so the squared exponential and the product Matern,
and the Matern on a line. In more dimensions the product Matern stands in (Mutny and Krause 2018 call it modified).

Source: Rasmussen and Williams (2006), Gaussian processes for machine learning, section 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core.checks import positive

SMOOTHNESS = (0.5, 1.5, 2.5)
"""Smoothness values for which Matern kernels are known."""


class Kernel(Protocol):
    """A positive definite function of two points."""

    def __call__(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """(...) values at the points x and y, each (..., d), which are broadcast against each other."""

    def spectral_density(self, frequencies: FloatArray) -> FloatArray:
        """(...) density of the frequencies (..., d), where it is a product over the coordinates.

        Raises:
          ValueError: it is not, or there is none; the message says what to use instead.
        """


@dataclass(frozen=True)
class SquaredExponential:
    """exp(-|x - y|^2 / (2 lengthscale^2)); its spectrum is normal, of variance 1 / lengthscale^2 in every direction."""

    lengthscale: float

    def __post_init__(self) -> None:
        positive("lengthscale", self.lengthscale)

    def __str__(self) -> str:
        return f"squared exponential, lengthscale {self.lengthscale:g}"

    def __call__(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """(...) values exp(-|x - y|^2 / (2 lengthscale^2)) at the points x and y, each (..., d)."""
        return np.asarray(np.exp(-0.5 * _squared_distance(x, y) / self.lengthscale**2))

    def spectral_density(self, frequencies: FloatArray) -> FloatArray:
        """(...) normal density of the frequencies (..., d), a product over the coordinates."""
        w = np.asarray(frequencies, dtype=float) * self.lengthscale
        each = self.lengthscale / math.sqrt(2 * math.pi) * np.exp(-0.5 * w**2)
        return np.asarray(each.prod(axis=-1))


@dataclass(frozen=True)
class Matern:
    """The Matern kernel of the Euclidean distance; on a line its spectrum is Student's, of 2 smoothness degrees."""

    smoothness: float
    lengthscale: float

    def __post_init__(self) -> None:
        _checked_matern(self.smoothness, self.lengthscale)

    def __str__(self) -> str:
        return f"Matern {2 * self.smoothness:.0f}/2, lengthscale {self.lengthscale:g}"

    def __call__(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """(...) values of the Matern function of |x - y| / lengthscale at the points x and y, each (..., d)."""
        return matern(self.smoothness, np.sqrt(_squared_distance(x, y)) / self.lengthscale)

    def spectral_density(self, frequencies: FloatArray) -> FloatArray:
        """(...) density of the frequencies (..., 1): on a line only."""
        array = np.asarray(frequencies, dtype=float)
        if array.shape[-1] != 1:
            raise ValueError(
                f"the Matern kernel has no product spectrum in {array.shape[-1]} dimensions: use a ProductMatern, groups of "
                "one coordinate each in an Additive, random_fourier, or exact_on a finite set"
            )
        return _matern_spectrum(self.smoothness, self.lengthscale, array[..., 0])


@dataclass(frozen=True)
class ProductMatern:
    """The product over the coordinates of the Matern kernel on a line; its spectrum is the product of theirs."""

    smoothness: float
    lengthscale: float

    def __post_init__(self) -> None:
        _checked_matern(self.smoothness, self.lengthscale)

    def __str__(self) -> str:
        return f"product Matern {2 * self.smoothness:.0f}/2, lengthscale {self.lengthscale:g}"

    def __call__(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """(...) products over coordinates of Matern functions of |x_i - y_i| / lengthscale; x and y are each (..., d)."""
        return np.asarray(matern(self.smoothness, np.abs(np.subtract(x, y)) / self.lengthscale).prod(axis=-1))

    def spectral_density(self, frequencies: FloatArray) -> FloatArray:
        """(...) density of the frequencies (..., d), a product over the coordinates."""
        each = _matern_spectrum(self.smoothness, self.lengthscale, np.asarray(frequencies, dtype=float))
        return np.asarray(each.prod(axis=-1))


@dataclass(frozen=True)
class Linear:
    """<x, y> / lengthscale^2. k(x, x) is 1 for points of norm `lengthscale` and smaller for shorter ones."""

    lengthscale: float

    def __post_init__(self) -> None:
        positive("lengthscale", self.lengthscale)

    def __str__(self) -> str:
        return f"linear, lengthscale {self.lengthscale:g}"

    def __call__(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """(...) inner products <x, y> / lengthscale^2 of the points x and y, each (..., d)."""
        return np.asarray(np.multiply(x, y).sum(axis=-1) / self.lengthscale**2)

    def spectral_density(self, frequencies: FloatArray) -> FloatArray:
        """Raises ValueError: the linear kernel has no spectrum."""
        raise ValueError(
            "the linear kernel is not stationary and has no spectrum: its features are the points, see feature_map"
        )


@dataclass(frozen=True)
class Additive:
    """The mean over groups of coordinates of one kernel on each: functions that are sums of functions of few coordinates.

    Attributes:
      part: the kernel on a group.
      groups: indices of coordinates; each coordinate of the domain stands in at least one.
    """

    part: Kernel
    groups: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if isinstance(self.part, Additive):
            raise ValueError("part must be a kernel that is not additive itself")
        if not self.groups or not all(self.groups) or any(i < 0 for group in self.groups for i in group):
            raise ValueError(
                f"groups must be tuples of coordinates, counted from 0, none of them empty; got {self.groups!r}"
            )
        if any(len(set(group)) != len(group) for group in self.groups):
            raise ValueError(f"a group must name each coordinate once, got {self.groups!r}")

    @classmethod
    def of_coordinates(cls, part: Kernel, dimension: int) -> Additive:
        """One group a coordinate."""
        return cls(part, tuple((i,) for i in range(dimension)))

    @property
    def dimension(self) -> int:
        """Number of coordinates that a point must have: the largest that a group names, and one."""
        return 1 + max(i for group in self.groups for i in group)

    def __str__(self) -> str:
        return f"additive over {len(self.groups)} groups of coordinates, {self.part}"

    def __call__(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """(...) means over the groups of the kernel of each group's coordinates; x and y are each (..., d)."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if x.shape[-1] < self.dimension:
            raise ValueError(f"points must have {self.dimension} coordinates, as groups name them; got {x.shape[-1]}")
        parts = [self.part(x[..., list(group)], y[..., list(group)]) for group in self.groups]
        return np.asarray(sum(parts) / len(parts))

    def spectral_density(self, frequencies: FloatArray) -> FloatArray:
        """It lies on subspaces, and has no density."""
        raise ValueError(
            "an additive kernel has no product spectrum; that of its part has features, which quadrature_fourier joins"
        )


def gram(kernel: Kernel, x: FloatArray, y: FloatArray) -> FloatArray:
    """(n, k) the kernel of every row of x (n, d) with every row of y (k, d)."""
    return kernel(np.asarray(x, dtype=float)[:, None, :], np.asarray(y, dtype=float)[None, :, :])


def matern(smoothness: float, distance: FloatArray) -> FloatArray:
    """The Matern function of a distance in units of the lengthscale, s = sqrt(2 smoothness) distance.

    Smoothness 1/2: exp(-s); 3/2: (1 + s) exp(-s); 5/2: (1 + s + s^2/3) exp(-s).
    """
    s = math.sqrt(2 * smoothness) * np.asarray(distance, dtype=float)
    decay = np.exp(-s)
    if smoothness == 0.5:
        return decay
    return np.asarray((1 + s) * decay if smoothness == 1.5 else (1 + s + s**2 / 3) * decay)


def curvature(kernel: Kernel) -> float:
    """The largest |k''| along a line, to the right of 0 where k has a kink: what bounds it between the points of a grid.

    SE: 1/l^2. Matern, s = sqrt(2 nu) t / l: 1/2 e^-s / l^2; 3/2 3 (s - 1) e^-s / l^2; 5/2 (5/3) (s^2 - s - 1) e^-s / l^2;
    each is largest at 0.
    """
    match kernel:
        case SquaredExponential(lengthscale=scale):
            return 1 / scale**2
        case Matern(smoothness=nu, lengthscale=scale) | ProductMatern(smoothness=nu, lengthscale=scale):
            return {0.5: 1.0, 1.5: 3.0, 2.5: 5 / 3}[nu] / scale**2
    raise ValueError(f"only of a squared exponential or Matern kernel, got {kernel}")


def checked_points(points: Sequence[object] | FloatArray, dimension: int, low: float, high: float) -> FloatArray:
    """Points (..., d) as an array, which lie in the domain [low, high]^d.

    Raises:
      ValueError: another dimension, or a coordinate that is not finite or lies outside; the message names the point.
    """
    array = _shaped(points, dimension)
    if _lies_in(array, low, high):
        return array
    bad = ~np.isfinite(array)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"points must be finite, got {float(array[place])!r} at index {place}")
    place = tuple(int(i) for i in np.argwhere((array < low) | (array > high))[0])
    raise ValueError(
        f"points must lie in the domain [{low:g}, {high:g}]^{dimension}, got {float(array[place]):.6g} at index {place}: "
        "scale all points by a public affine map (and the lengthscale with it), or ask for a larger domain"
    )


def moved_inside(points: FloatArray, dimension: int, low: float, high: float) -> FloatArray:
    """Points (..., d) that anybody may bring, each moved to the nearest one of the domain [low, high]^d.

    A coordinate that is NaN counts as 0. The same array where all lie inside.

    Raises:
      ValueError: another dimension.
    """
    array = _shaped(points, dimension)
    return array if _lies_in(array, low, high) else np.clip(np.where(np.isnan(array), 0.0, array), low, high)


_ROUNDING = 1e-9
"""Distance from the domain that counts as rounding."""


def _shaped(points: Sequence[object] | FloatArray, dimension: int) -> FloatArray:
    array = np.asarray(points, dtype=float)
    if array.ndim < 1 or array.shape[-1] != dimension:
        raise ValueError(f"points must be of shape (..., {dimension}), one number a coordinate; got {array.shape}")
    return array


def _lies_in(array: FloatArray, low: float, high: float) -> bool:
    return not array.size or bool(array.min() >= low - _ROUNDING and array.max() <= high + _ROUNDING)


def _squared_distance(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray((np.subtract(x, y) ** 2).sum(axis=-1))


def _checked_matern(smoothness: float, lengthscale: float) -> None:
    if smoothness not in SMOOTHNESS:
        raise ValueError(f"smoothness must be one of {', '.join(map(str, SMOOTHNESS))}, got {smoothness!r}")
    positive("lengthscale", lengthscale)


def _matern_spectrum(smoothness: float, lengthscale: float, frequencies: FloatArray) -> FloatArray:
    """Student's density with 2 nu degrees of freedom and scale 1 / lengthscale."""
    nu = smoothness
    constant = math.gamma(nu + 0.5) / (math.gamma(nu) * math.sqrt(2 * math.pi * nu)) * lengthscale
    return np.asarray(constant * (1 + (lengthscale * frequencies) ** 2 / (2 * nu)) ** -(nu + 0.5))
