"""The three functions of Dubey's Table 1, after Mutny and Krause (2018), in the scalings that fit its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.rkhs.kernels import Kernel, gram
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core.checks import at_least, positive

_LEAST_RIDGE, _HALVINGS = 1e-10, 80


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
        values = sign * part(grid, i + 1)
        middle, step = float(grid[np.argmax(values)]), float(grid[1] - grid[0])
        span = (max(low, middle - step), min(high, middle + step))
        near = minimize_scalar(_loss, bounds=span, args=(part, sign, i + 1), method="bounded", options={"xatol": 1e-12})
        best[i] = near.x
        largest, least = largest - float(near.fun), least + float(values.min())

    def at(points: FloatArray) -> FloatArray:
        z = low + (points + 1) * (high - low) / 2
        return np.asarray(sign * sum(part(z[:, i], i + 1) for i in range(dimension)) / largest)

    place = 2 * (best - low) / (high - low) - 1
    return Benchmark(name, dimension, lengthscale, True, place, float(at(place[None])[0]), least / largest, at)


def _loss(z: float, part: Callable[[FloatArray, int], FloatArray], sign: float, i: int) -> float:
    return -sign * float(part(np.asarray(z), i))


def decision_set(benchmark: Benchmark, n_actions: int, seed: np.random.SeedSequence, points: str = "uniform") -> Pool:
    """One context: points of the domain, one of which, at a random place, is the best point.

    With it, regret in the set is regret of the function.

    Args:
      benchmark: the function.
      n_actions: how many points.
      seed: of the place, and of points that are drawn.
      points: `uniform`, or `sobol`: the first ones of Sobol's sequence after the corner, which are the same everywhere.
    """
    generator = np.random.Generator(np.random.SFC64(seed))
    n, d = at_least("n_actions", n_actions, 2), benchmark.dimension
    if points == "sobol":
        from scipy.stats.qmc import Sobol

        grid = Sobol(d, scramble=False).random_base2(math.ceil(math.log2(n)))[1:n]
        drawn = np.insert(2 * grid - 1, generator.integers(0, n), benchmark.best, axis=0)[None]
    else:
        drawn = generator.uniform(-1, 1, (1, n, d))
        drawn[0, generator.integers(0, n)] = benchmark.best
    return Pool(drawn, np.ones(1))


def nearest_of_norm(kernel: Kernel, points: FloatArray, values: FloatArray, norm: float) -> FloatArray:
    """Values of a function of the kernel's space that is near the given ones, of at most the given norm.

    With the kernel's matrix K = U diag(w) U^T of the points it is U diag(w / (w + t)) U^T values, the minimizer of the sum
    of squared differences plus t times the squared norm, sum w (u^T values)^2 / (w + t)^2, for the t that gives the norm.

    Args:
      kernel: of the space.
      points: (n, d), distinct.
      values: (n,)
      norm: in the kernel's space; where the values themselves have no larger one, they are the answer.
    """
    w, vectors = np.linalg.eigh(gram(kernel, points, points))
    w, parts = np.maximum(w, 0.0), vectors.T @ values
    low, high = _LEAST_RIDGE, 1.0

    def excess(ridge: float) -> float:
        return float((w * parts**2 / (w + ridge) ** 2).sum()) - positive("norm", norm) ** 2

    if excess(low) <= 0:
        return np.array(values)
    while excess(high) > 0:
        high *= 2
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return np.asarray(vectors @ (w / (w + high) * parts))
