"""The three functions of Dubey's Table 1, after Mutny and Krause (2018), in the scalings that fit its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core.checks import at_least


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A function on [-1, 1]^d whose extremes are known.

    Attributes:
      name: what it is called.
      dimension: d.
      lengthscale: that of Table 1's kernel, in units of this domain.
      is_additive: whether it is a sum of functions of one coordinate.
      best: (d,) where it is largest.
      highest: its largest value.
      lowest: its least value.
      at: (n, d) points -> (n,) values.
    """

    name: str
    dimension: int
    lengthscale: float
    is_additive: bool
    best: FloatArray
    highest: float
    lowest: float
    at: Callable[[FloatArray], FloatArray]

    def __call__(self, points: FloatArray) -> FloatArray:
        """(...) values at the points (..., d)."""
        array = np.asarray(points, dtype=float)
        return self.at(array.reshape(-1, self.dimension)).reshape(array.shape[:-1])


@cache
def camelback() -> Benchmark:
    """The six-hump camel function on [-2, 2] x [-1, 1], negated and over 5: at most 0.2063."""

    def at(points: FloatArray) -> FloatArray:
        x, y = 2 * points[:, 0], points[:, 1]
        return np.asarray(-((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2) / 5)

    # The best point to the last digit, by Newton's method from (0.0898, -0.7126); the least value is at corners, x y = 2.
    best = np.array([0.08984201310031806 / 2, -0.7126564030207396])
    highest = float(at(best[None])[0])
    return Benchmark("camelback", 2, 0.2, False, best, highest, float(at(np.array([[1.0, 1.0]]))[0]), at)


@cache
def styblinski_tang(dimension: int = 20) -> Benchmark:
    """Half the sum of z^4 - 16 z^2 + 5 z on [-4, 4]^d, over its least value: at most 1."""
    return _additive(
        "styblinski-tang", dimension, 1.2, lambda z, i: (z**4 - 16 * z**2 + 5 * z) / 2, -4.0, 4.0, is_least=True
    )


@cache
def michalewicz(dimension: int = 10, *, is_squared: bool = False) -> Benchmark:
    """The sum of sin(z_i) sin(i z_i / pi)^20 on [0, pi]^d, i = 1, ..., d, over its largest value.

    This variant fits Table 1: uniform play loses 8539 in 1e4 rounds there. Michalewicz's own has z_i^2 for z_i.

    Args:
      dimension: d.
      is_squared: Michalewicz's own.
    """
    power = 2 if is_squared else 1
    return _additive(
        "michalewicz",
        dimension,
        0.6,
        lambda z, i: np.sin(z) * np.sin(i * z**power / np.pi) ** 20,
        0.0,
        math.pi,
        is_least=False,
    )


def _additive(
    name: str, dimension: int, lengthscale: float, part: Callable[[FloatArray, int], FloatArray], low: float, high: float,
    *, is_least: bool,
) -> Benchmark:  # fmt: skip
    """A sum over coordinates, over its value at the optimum, which is found coordinate by coordinate."""
    from scipy.optimize import minimize_scalar

    at_least("dimension", dimension, 1)
    sign = -1.0 if is_least else 1.0
    grid = np.linspace(low, high, 20_001)
    best, largest, least = np.empty(dimension), 0.0, 0.0
    for i in range(dimension):
        found = sign * part(grid, i + 1)
        middle, step = float(grid[np.argmax(found)]), float(grid[1] - grid[0])
        span = (max(low, middle - step), min(high, middle + step))
        near = minimize_scalar(_loss, bounds=span, args=(part, sign, i + 1), method="bounded", options={"xatol": 1e-12})
        best[i] = near.x
        largest, least = largest - float(near.fun), least + float(found.min())

    def at(points: FloatArray) -> FloatArray:
        z = low + (points + 1) * (high - low) / 2
        return np.asarray(sign * sum(part(z[:, i], i + 1) for i in range(dimension)) / largest)

    place = 2 * (best - low) / (high - low) - 1
    return Benchmark(name, dimension, lengthscale, True, place, float(at(place[None])[0]), least / largest, at)


def _loss(z: float, part: Callable[[FloatArray, int], FloatArray], sign: float, i: int) -> float:
    return -sign * float(part(np.asarray(z), i))


def decision_set(benchmark: Benchmark, n_actions: int, seed: np.random.SeedSequence) -> Pool:
    """One context: points that are uniform in the domain, one of which, at a random place, is the best point.

    With it, regret in the set is regret of the function.
    """
    generator = np.random.Generator(np.random.SFC64(seed))
    points = generator.uniform(-1, 1, (1, at_least("n_actions", n_actions, 2), benchmark.dimension))
    points[0, generator.integers(0, n_actions)] = benchmark.best
    return Pool(points, np.ones(1))
