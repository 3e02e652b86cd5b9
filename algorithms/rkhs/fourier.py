r"""Finitely many features of a kernel: maps phi with <phi(x), phi(y)> near k(x, y), of norm at most 1 as privacy needs it.

A stationary kernel is the mean of cos(w^T (x - y)) over its spectrum (`kernels`). Positive weights that sum to 1, at
frequencies that lie symmetric about 0, give k~(x - y) = sum_i weight_i cos(w_i^T (x - y)). The frequencies w and -w say the
same: the features are sqrt(2 weight) cos and sqrt(2 weight) sin of half of the *whole* grid, and of the frequency 0, if it
is on the grid, one constant. So there are as many features as frequencies, and \|phi(x)\|^2 = sum weight (cos^2 + sin^2) = 1
exactly. Halving each coordinate instead would approximate another kernel, whose error does not fall with m.

Along a coordinate two rules are known. `gauss-hermite`, for the squared exponential (Dubey, Definition 4, after Mutny and
Krause 2018): the q zeros z of the Hermite polynomial H_q, w = sqrt 2 z / lengthscale, weight 2^(q-1) q! / (q H_(q-1)(z))^2,
the paper's weights over sqrt pi; there H_(q-1) lacks its square, without which half of the weights are negative.
`equally-spaced`, for every product spectrum: frequencies (i - (q - 1)/2) step, weights in proportion to the spectral
density. By Poisson's formula it repeats the kernel with the period 2 pi / step, and its error is what the repetitions and
the cut tail bring; the step is the one with the least error. It is the better rule where the domain is wide: the error
of Gauss and Hermite's falls only once q is above about (e/4) (width / lengthscale)^2, see `_gauss_hermite`.

Source: Dubey, No-Regret Algorithms for Private Gaussian Process Bandit Optimization, section 4.2; Mutny and Krause (2018),
Efficient high dimensional Bayesian optimization with additivity and quadrature Fourier features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.rkhs.feature_maps import FeatureMap, check_shape, linear
from bandana.algorithms.rkhs.kernels import Additive, Kernel, Linear, Matern, ProductMatern, SquaredExponential, curvature

Line = SquaredExponential | Matern
"""Kernels on a line that have a rule."""
RULES = ("gauss-hermite", "equally-spaced", "best")
_CELLS = 1 << 15
_COARSE = 256
_ROUNDING = 1e-14
_MOST_ENTRIES = 1 << 21
_CHANCE = 1e-3


class Rule(NamedTuple):
    """Frequencies along a coordinate that stand for its spectrum.

    Attributes:
      frequencies: (q,) ascending and symmetric about 0.
      weights: (q,) positive, of sum 1.
      cells: (n_cells,) over which differences of coordinates, from 0 to the width of the domain, are spread evenly: a bound
        on the error |k1 - k1~| in each.
      kernel: (n_cells,) the largest k1 in each.
    """

    frequencies: FloatArray
    weights: FloatArray
    cells: FloatArray
    kernel: FloatArray


@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """Features sqrt(weight) cos(w^T x) and sqrt(weight) sin(w^T x), and a constant if the frequency 0 is among them.

    Attributes:
      frequencies: (n_pairs, d), of which no two are opposite.
      weights: (n_pairs,)
      constant: weight of the frequency 0; 0 if it is not among them.
    """

    frequencies: FloatArray
    weights: FloatArray
    constant: float

    def _rows(self, points: FloatArray) -> FloatArray:
        n_pairs = len(self.weights)
        out = np.empty((len(points), self.n_features))
        step = max(1, _MOST_ENTRIES // max(n_pairs, 1))
        scales = np.sqrt(self.weights)
        for start in range(0, len(points), step):
            rows = out[start : start + step]
            angles = points[start : start + step] @ self.frequencies.T
            np.multiply(np.cos(angles), scales, out=rows[:, :n_pairs])
            np.multiply(np.sin(angles, out=angles), scales, out=rows[:, n_pairs : 2 * n_pairs])
            if self.constant:
                rows[:, -1] = math.sqrt(self.constant)
        return out


def quadrature_fourier(
    kernel: Kernel, dimension: int, n_features: int, low: float = -1.0, high: float = 1.0, rule: str = "gauss-hermite"
) -> FeatureMap:
    """Features on a grid of frequencies; of an additive kernel those of its groups side by side.

    Args:
      kernel: a squared exponential, a product Matern, a Matern on a line, or an additive one of these or of linear ones.
      dimension: d, of the points.
      n_features: at most so many; the map has q^d, with the largest q that fits; groups of an additive kernel share them.
      low: the domain is [low, high]^d.
      high: see `low`.
      rule: gauss-hermite, of the squared exponential (other kernels take the other rule); equally-spaced; or best, which is
        the one with the smaller error.

    Returns:
      the map; its `error` is computed on a grid of differences, with what the curvature can add between two of its points.

    Raises:
      ValueError: the kernel has no product spectrum, or an argument is out of range; the message says what to change.
    """
    check_shape(dimension, n_features, low, high)
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, got {rule!r}")
    if isinstance(kernel, Additive):
        return _joined(
            kernel, dimension, n_features, low, high,
            lambda part, d, m, _: (
                linear(part, d, low, high)
                if isinstance(part, Linear)
                else quadrature_fourier(part, d, m, low, high, rule=rule)
            ),
        )  # fmt: skip
    # Of one node there is the frequency 0 alone: k~ = 1.
    return _grid(_rule(_on_a_line(kernel, dimension), _root(n_features, dimension), high - low, rule), dimension, low, high)


def _on_a_line(kernel: Kernel, dimension: int) -> Line:
    """The kernel along a coordinate, of one that is their product."""
    match kernel:
        case SquaredExponential():
            return kernel
        case ProductMatern(smoothness=nu, lengthscale=scale):
            return Matern(nu, scale)
        case Matern() if dimension == 1:
            return kernel
    kernel.spectral_density(np.zeros(dimension))  # says what is wrong with it
    raise ValueError(f"quadrature_fourier knows no rule for {kernel}: use a squared exponential or Matern kernel")


def _grid(rule: Rule, dimension: int, low: float, high: float) -> FourierMap:
    """The product of a rule with itself, and half of its frequencies: the grid lies symmetric about its middle."""
    n, n_nodes = len(rule.weights) ** dimension, len(rule.weights)
    places = np.stack(np.unravel_index(np.arange((n + 1) // 2), (n_nodes,) * dimension), axis=1)
    frequencies, weights = rule.frequencies[places], rule.weights[places].prod(axis=1)
    has_middle = n % 2 == 1
    constant = float(weights[-1]) if has_middle else 0.0
    pairs = slice(0, n // 2)
    doubled = 2 * weights[pairs]
    total = float(doubled.sum()) + constant
    return FourierMap(
        dimension, n, _product_error(rule, dimension), low, high, frequencies[pairs], doubled / total, constant / total
    )


def _product_error(rule: Rule, dimension: int) -> float:
    r"""A bound on the error of a product of rules, from that along a coordinate.

    With a = k1, b = k1~ <= 1 of the last coordinate and A, B those of the others, |A a - B b| <= |A - B| |a| + |B| |a - b|
    <= e a + |a - b|, e the bound of the others; maximized over the cells.
    """
    error = 0.0
    for _ in range(dimension):
        error = float((error * rule.kernel + rule.cells).max())
    return error + _ROUNDING


@lru_cache(maxsize=64)
def _rule(kernel: Line, n_nodes: int, width: float, rule: str) -> Rule:
    """The rule of so many nodes for a kernel on a line, of points at most `width` apart."""
    is_gaussian = isinstance(kernel, SquaredExponential)
    rules = []
    if is_gaussian and rule != "equally-spaced":
        assert isinstance(kernel, SquaredExponential)
        rules.append(_gauss_hermite(kernel, n_nodes, width))
    if not is_gaussian or rule != "gauss-hermite":
        rules.append(_equally_spaced(kernel, n_nodes, width))
    return min(rules, key=lambda each: float(each.cells.max()))


def _gauss_hermite(kernel: SquaredExponential, n_nodes: int, width: float) -> Rule:
    """The zeros of the Hermite polynomial; besides the grid's, the error has the bound of the remainder term.

    Where the derivative of order 2 q is at most c, the rule is off by at most c q! / (2 q)!; of cos(w t), under a normal w
    of variance 1 / l^2, that is (t / l)^(2 q): the error at a distance t is at most q! (t / l)^(2 q) / (2 q)!.
    """
    from scipy.special import roots_hermite

    zeros, weights = roots_hermite(n_nodes)
    zeros = (zeros - zeros[::-1]) / 2  # symmetric to the last digit
    weights = (weights + weights[::-1]) / 2
    measured = _measured(kernel, math.sqrt(2) / kernel.lengthscale * zeros, weights / weights.sum(), width)
    far = width / _CELLS * np.arange(1, _CELLS + 1) / kernel.lengthscale
    remainder = np.exp(math.lgamma(n_nodes + 1) - math.lgamma(2 * n_nodes + 1) + 2 * n_nodes * np.log(far))
    return measured._replace(cells=np.minimum(measured.cells, remainder + _ROUNDING))


def _equally_spaced(kernel: Line, n_nodes: int, width: float) -> Rule:
    """The step with the least error: first among many, then between the neighbors of the best."""
    from scipy.optimize import minimize_scalar

    places = np.arange(n_nodes) - (n_nodes - 1) / 2
    far = np.linspace(0.0, width, _COARSE + 1)
    exact = kernel(far[:, None], np.zeros(1))

    def spaced(step: float) -> tuple[FloatArray, FloatArray]:
        frequencies = np.asarray(places * step)
        density = kernel.spectral_density(frequencies[:, None])
        return frequencies, np.asarray(density / density.sum())

    def error(logarithm: float) -> float:
        frequencies, weights = spaced(math.exp(logarithm))
        return float(np.abs(np.cos(far[:, None] * frequencies) @ weights - exact).max())

    # The period 2 pi / step is at least the width, or the kernel comes back inside; and at least a lengthscale in all cases.
    widest = math.log(2 * math.pi / max(width, kernel.lengthscale))
    tried = np.linspace(widest - math.log(50.0), widest, 120)
    errors = [error(float(step)) for step in tried]
    best = int(np.argmin(errors))
    span = (float(tried[max(best - 1, 0)]), float(tried[min(best + 1, len(tried) - 1)]))
    refined = minimize_scalar(error, bounds=span, method="bounded", options={"xatol": 1e-6})
    step = float(refined.x) if refined.fun < errors[best] else float(tried[best])
    return _measured(kernel, *spaced(math.exp(step)), width)


def _measured(kernel: Line, frequencies: FloatArray, weights: FloatArray, width: float) -> Rule:
    """The rule with a bound on its error in each cell: that at its ends, and what the curvature of both can add between."""
    far = np.linspace(0.0, width, _CELLS + 1)
    exact = kernel(far[:, None], np.zeros(1))
    approximate = np.zeros(_CELLS + 1)
    half = len(frequencies) // 2
    for frequency, weight in zip(frequencies[:half], weights[:half], strict=True):  # and the opposite ones
        approximate += 2 * weight * np.cos(frequency * far)
    if len(frequencies) % 2:
        approximate += weights[half]
    error = np.abs(approximate - exact)
    between = (width / _CELLS) ** 2 / 8 * (curvature(kernel) + float(weights @ frequencies**2))
    return Rule(frequencies, weights, np.maximum(error[1:], error[:-1]) + between, exact[:-1])


def random_fourier(
    kernel: Kernel, dimension: int, n_features: int, seed: int, low: float = -1.0, high: float = 1.0
) -> FeatureMap:
    r"""Frequencies drawn from the spectrum, of equal weights (Rahimi and Recht 2008): for comparison, in any dimension.

    Args: as in `quadrature_fourier`, where
      kernel: stationary, or an additive one of these.
      n_features: at most so many; an odd number is rounded down.
      seed: of the frequencies, which are public and drawn here, before the run.

    Returns:
      the map; its `error` holds with probability at least 0.999 over the seed (of an additive kernel, for each group). At
      any difference of points the mean of M cosines is off by more than c with probability at most 2 exp(-M c^2 / 2)
      (Hoeffding), which a net of differences and E \|w\|, a bound on all slopes by Markov's inequality, carry over to the
      domain. Never above 2, which always holds.

    Raises:
      ValueError: the kernel has no spectrum, or n_features is below 2.
    """
    check_shape(dimension, n_features, low, high)
    if isinstance(kernel, Additive):
        seeds = np.random.SeedSequence(seed).generate_state(len(kernel.groups), np.uint64)
        return _joined(
            kernel, dimension, n_features, low, high,
            lambda part, d, m, i: random_fourier(part, d, m, int(seeds[i]), low, high),
        )  # fmt: skip
    n_pairs = n_features // 2
    if n_pairs < 1:
        raise ValueError(f"n_features must be at least 2, a cosine and a sine (in each group), got {n_features!r}")
    generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed)))
    normal = generator.standard_normal((n_pairs, dimension))
    match kernel:
        case SquaredExponential(lengthscale=scale):
            drawn, mean = normal / scale, math.sqrt(dimension) / scale
        case Matern(smoothness=nu, lengthscale=scale):  # Student's law in d dimensions
            drawn = normal * np.sqrt(2 * nu / generator.chisquare(2 * nu, (n_pairs, 1))) / scale
            mean = _student_mean(nu) * math.sqrt(dimension) / scale
        case ProductMatern(smoothness=nu, lengthscale=scale):
            drawn = normal * np.sqrt(2 * nu / generator.chisquare(2 * nu, (n_pairs, dimension))) / scale
            mean = _student_mean(nu) * dimension / scale
        case _:
            kernel.spectral_density(np.zeros(dimension))
            raise ValueError(f"random_fourier knows no spectrum of {kernel}: use a squared exponential or Matern kernel")
    weights = np.full(n_pairs, 1 / n_pairs)
    error = _uniform_error(n_pairs, dimension, high - low, mean)
    return FourierMap(dimension, 2 * n_pairs, error, low, high, drawn, weights, 0.0)


def _student_mean(smoothness: float) -> float:
    """sqrt(E[2 nu / chi^2]), or a bound on E of its root: of 1 degree of freedom it is infinite."""
    freedom = 2 * smoothness
    return math.sqrt(freedom / (freedom - 2)) if freedom > 2 else math.inf


def _uniform_error(n_pairs: int, dimension: int, width: float, mean_norm: float) -> float:
    """Uniform error bound of `random_fourier`, the best of a few nets; k and k~ have slopes <= E |w| / chance and E |w|."""
    if not math.isfinite(mean_norm):
        return 2.0
    slope = mean_norm * (1 + 2 / _CHANCE)
    error = 2.0
    for radius in np.geomspace(1e-12, 1.0, 49):
        points = dimension * math.log(max(1.0, math.ceil(width * math.sqrt(dimension) / radius)))
        deviation = math.sqrt(2 * (math.log(4 / _CHANCE) + points) / n_pairs)
        error = min(error, deviation + slope * float(radius))
    return error


@dataclass(frozen=True, eq=False)
class JoinedMap(FeatureMap):
    """Features of groups of coordinates side by side, each over the root of their number.

    Attributes:
      parts: the maps of the groups.
      groups: the coordinates of each.
    """

    parts: tuple[FeatureMap, ...]
    groups: tuple[tuple[int, ...], ...]

    def _rows(self, points: FloatArray) -> FloatArray:
        rows = np.concatenate(
            [part._rows(points[:, list(group)]) for part, group in zip(self.parts, self.groups, strict=True)], axis=1
        )
        rows /= math.sqrt(len(self.parts))
        return rows


def _joined(
    kernel: Additive, dimension: int, n_features: int, low: float, high: float,
    build: Callable[[Kernel, int, int, int], FeatureMap],
) -> JoinedMap:  # fmt: skip
    named = {i for group in kernel.groups for i in group}
    if named != set(range(dimension)):
        raise ValueError(
            f"the groups of an additive kernel must name all coordinates from 0 to {dimension - 1} and no others, "
            f"got {sorted(named)}"
        )
    share = n_features // len(kernel.groups)
    if share < 1:
        raise ValueError(f"n_features must be at least {len(kernel.groups)}, one for each group, got {n_features}")
    parts = tuple(build(kernel.part, len(group), share, i) for i, group in enumerate(kernel.groups))
    m = sum(part.n_features for part in parts)
    error = sum(part.error for part in parts) / len(parts)
    return JoinedMap(dimension, m, error, low, high, parts, kernel.groups)


def _root(n_features: int, dimension: int) -> int:
    """The largest q with q^d at most n_features."""
    root = max(1, round(math.exp(math.log(n_features) / dimension)))
    return root if root**dimension <= n_features else root - 1
