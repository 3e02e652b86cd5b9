r"""Finitely many features of a kernel: maps phi with <phi(x), phi(y)> near k(x, y), of norm at most 1 as privacy needs it.

A stationary kernel is the mean of cos(w^T (x - y)) over its spectrum (`kernels`). Positive weights that sum to 1, at
frequencies that lie symmetric about 0, give k~(x - y) = sum_i weight_i cos(w_i^T (x - y)). The frequencies w and -w say the
same: the features are sqrt(2 weight) cos and sqrt(2 weight) sin of half of the *whole* grid, and of the frequency 0, if it
is on the grid, one constant. So there are as many features as frequencies, and \|phi(x)\|^2 = sum weight (cos^2 + sin^2) = 1
exactly. A grid of frequencies in d dimensions must keep the pairs of unlike signs: whoever halves each coordinate first
approximates another kernel, whose error does not fall with m.

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
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from algorithms.numerics.kernels import (
    Additive,
    Kernel,
    Linear,
    Matern,
    ProductMatern,
    SquaredExponential,
    checked_points,
    curvature,
    gram,
)
from algorithms.numerics.lookup import Rows
from algorithms.protocol import FloatArray
from privacy_core.checks import at_least

AnyMap = TypeVar("AnyMap", bound="DomainMap")
Line = SquaredExponential | Matern
"""Kernels on a line that have a rule."""
RULES = ("gauss-hermite", "equally-spaced", "best")
_CELLS = 1 << 15
_COARSE = 256
_ROUNDING = 1e-14
_MOST_ENTRIES = 1 << 21
_CHANCE = 1e-3
_LEAST_VALUE = 1e-10
_PROJECTED_ROUNDING = 1e-9


class FeatureMap(Protocol):
    """A map of the points of a domain to vectors of norm at most 1 whose inner products are near a kernel."""

    @property
    def dimension(self) -> int:
        """D, of the points."""
        ...

    @property
    def n_features(self) -> int:
        """M, of the vectors."""
        ...

    @property
    def error(self) -> float:
        """The largest |k(x, y) - <phi(x), phi(y)>| over the domain, or a bound on it; 0 where it is exact."""
        ...

    @property
    def low(self) -> float:
        """The domain is [low, high]^d."""
        ...

    @property
    def high(self) -> float:
        """See `low`."""
        ...

    def __call__(self, points: FloatArray) -> FloatArray:
        """(..., n_features) of the points (..., d).

        Points that are shared by the replicates, (n_reps, ...) with stride 0, are mapped once, and the result is shared
        in the same way. Not to be written to.

        Raises:
          ValueError: a point is not finite or not of the domain.
        """
        ...


class _Remembered(NamedTuple):
    points: FloatArray
    features: FloatArray


@dataclass(frozen=True, eq=False)
class DomainMap:
    """What all maps share: the domain is checked, replicates share, and the last unchangeable points are remembered."""

    dimension: int
    n_features: int
    error: float
    low: float
    high: float
    _last: list[_Remembered] = field(default_factory=list, repr=False, init=False)

    def __call__(self, points: FloatArray) -> FloatArray:
        """See `FeatureMap`."""
        array = np.asarray(points, dtype=float)
        if array.ndim > 1 and array.shape[0] > 1 and array.strides[0] == 0:
            shared = self(array[0])
            return np.broadcast_to(shared, (array.shape[0], *shared.shape))
        if not _is_unchangeable(array):
            return self._mapped(array)
        for known in self._last:
            if _is_same(known.points, array):
                return known.features
        features = self._mapped(array)
        features.setflags(write=False)
        self._last[:] = [_Remembered(array, features)]
        return features

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": []}

    def _mapped(self, points: FloatArray) -> FloatArray:
        array = checked_points(points, self.dimension, self.low, self.high)
        rows = self._rows(array.reshape(-1, self.dimension))
        return rows.reshape(*array.shape[:-1], self.n_features)

    def _rows(self, points: FloatArray) -> FloatArray:
        """(n, n_features) of the points (n, d) of the domain."""
        raise NotImplementedError


def _is_unchangeable(array: FloatArray) -> bool:
    """Whether nothing can write to it: neither it nor what it is a view of."""
    part: object = array
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return False
        part = part.base
    return part is None


def _is_same(known: FloatArray, array: FloatArray) -> bool:
    """Whether both are views of the same memory: what is kept alive is not given away again."""
    return known.ctypes.data == array.ctypes.data and known.shape == array.shape and known.strides == array.strides


# --- Fourier features ------------------------------------------------------------------------------------------------


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
class FourierMap(DomainMap):
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
    kernel: Kernel,
    dimension: int,
    n_features: int,
    low: float = -1.0,
    high: float = 1.0,
    largest_error: float | None = None,
    rule: str = "gauss-hermite",
) -> DomainMap:
    """Features on a grid of frequencies; of an additive kernel those of its groups side by side.

    Args:
      kernel: a squared exponential, a product Matern, a Matern on a line, or an additive one of these.
      dimension: d, of the points.
      n_features: at most so many; the map has q^d, with the largest q that fits. Of an additive kernel each group gets
        its share.
      low: the domain is [low, high]^d.
      high: see `low`.
      largest_error: None, or what `error` may be at most.
      rule: gauss-hermite, of the squared exponential (other kernels take the other rule); equally-spaced; or best, which is
        the one with the smaller error.

    Returns:
      the map; its `error` is computed on a grid of differences, with what the curvature can add between two of its points.

    Raises:
      ValueError: the kernel has no product spectrum, n_features is too small for the largest error, or an argument is out of
        range; the message says what to change.
    """
    _check_shape(dimension, n_features, low, high)
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, got {rule!r}")
    if isinstance(kernel, Additive):
        found: DomainMap = _joined(
            kernel, dimension, n_features, low, high,
            lambda part, d, m, _: quadrature_fourier(part, d, m, low, high, rule=rule),
        )  # fmt: skip
    else:
        line = _on_a_line(kernel, dimension)
        n_nodes = _root(n_features, dimension)
        # Of one node there is the frequency 0 alone: k~ = 1.
        found = _grid(_rule(line, n_nodes, high - low, rule), dimension, low, high)
    return _accurate(found, largest_error, kernel)


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
    found = []
    if is_gaussian and rule != "equally-spaced":
        assert isinstance(kernel, SquaredExponential)
        found.append(_gauss_hermite(kernel, n_nodes, width))
    if not is_gaussian or rule != "gauss-hermite":
        found.append(_equally_spaced(kernel, n_nodes, width))
    return min(found, key=lambda each: float(each.cells.max()))


def _gauss_hermite(kernel: SquaredExponential, n_nodes: int, width: float) -> Rule:
    """The zeros of the Hermite polynomial; besides the grid's, the error has the bound of the remainder term.

    Where the derivative of order 2 q is at most c, the rule is off by at most c q! / (2 q)!; of cos(w t), under a normal w
    of variance 1 / l^2, that is (t / l)^(2 q): the error at a distance t is at most q! (t / l)^(2 q) / (2 q)!.
    """
    from scipy.special import roots_hermite

    zeros, weights = roots_hermite(n_nodes)
    zeros = (zeros - zeros[::-1]) / 2  # symmetric to the last digit
    weights = (weights + weights[::-1]) / 2
    found = _measured(kernel, math.sqrt(2) / kernel.lengthscale * zeros, weights / weights.sum(), width)
    far = width / _CELLS * np.arange(1, _CELLS + 1) / kernel.lengthscale
    remainder = np.exp(math.lgamma(n_nodes + 1) - math.lgamma(2 * n_nodes + 1) + 2 * n_nodes * np.log(far))
    return found._replace(cells=np.minimum(found.cells, remainder + _ROUNDING))


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


# --- random features -------------------------------------------------------------------------------------------------


def random_fourier(
    kernel: Kernel,
    dimension: int,
    n_features: int,
    seed: int,
    low: float = -1.0,
    high: float = 1.0,
    largest_error: float | None = None,
) -> DomainMap:
    r"""Frequencies drawn from the spectrum, all of one weight (Rahimi and Recht 2008): for comparison, and for any
    dimension.

    Args:
      kernel: stationary, or an additive one of these.
      dimension: d, of the points.
      n_features: at most so many; an odd number is rounded down.
      seed: of the frequencies, which are public and drawn here, before the run.
      low: the domain is [low, high]^d.
      high: see `low`.
      largest_error: None, or what `error` may be at most.

    Returns:
      the map; its `error` holds with probability at least 0.999 over the seed (of an additive kernel, for each group). At
      any difference of points the mean of M cosines is off by more than c with probability at most 2 exp(-M c^2 / 2)
      (Hoeffding), which a net of differences and E \|w\|, a bound on all slopes by Markov's inequality, carry over to the
      domain. Never above 2, which always holds.

    Raises:
      ValueError: the kernel has no spectrum, n_features is below 2 or too small for the largest error.
    """
    _check_shape(dimension, n_features, low, high)
    if isinstance(kernel, Additive):
        seeds = np.random.SeedSequence(seed).generate_state(len(kernel.groups), np.uint64)
        found: DomainMap = _joined(
            kernel, dimension, n_features, low, high,
            lambda part, d, m, i: random_fourier(part, d, m, int(seeds[i]), low, high),
        )  # fmt: skip
        return _accurate(found, largest_error, kernel)
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
    found = FourierMap(dimension, 2 * n_pairs, error, low, high, drawn, weights, 0.0)
    return _accurate(found, largest_error, kernel)


def _student_mean(smoothness: float) -> float:
    """sqrt(E[2 nu / chi^2]), or a bound on E of its root: of 1 degree of freedom it is infinite."""
    freedom = 2 * smoothness
    return math.sqrt(freedom / (freedom - 2)) if freedom > 2 else math.inf


def _uniform_error(n_pairs: int, dimension: int, width: float, mean_norm: float) -> float:
    """See `random_fourier`: the best of a few nets; slopes of k and k~ are at most E |w| / chance and E |w|."""
    if not math.isfinite(mean_norm):
        return 2.0
    slope = mean_norm * (1 + 2 / _CHANCE)
    found = 2.0
    for radius in np.geomspace(1e-12, 1.0, 49):
        points = dimension * math.log(max(1.0, math.ceil(width * math.sqrt(dimension) / radius)))
        deviation = math.sqrt(2 * (math.log(4 / _CHANCE) + points) / n_pairs)
        found = min(found, deviation + slope * float(radius))
    return found


# --- sums, lines, finite sets ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class JoinedMap(DomainMap):
    """Features of groups of coordinates side by side, each over the root of their number.

    Attributes:
      parts: the maps of the groups.
      groups: the coordinates of each.
    """

    parts: tuple[DomainMap, ...]
    groups: tuple[tuple[int, ...], ...]

    def _rows(self, points: FloatArray) -> FloatArray:
        rows = np.concatenate(
            [part._rows(points[:, list(group)]) for part, group in zip(self.parts, self.groups, strict=True)], axis=1
        )
        rows /= math.sqrt(len(self.parts))
        return rows


def _joined(
    kernel: Additive, dimension: int, n_features: int, low: float, high: float,
    build: Callable[[Kernel, int, int, int], DomainMap],
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


@dataclass(frozen=True, eq=False)
class LinearMap(DomainMap):
    """The points over the lengthscale: exact.

    Attributes:
      lengthscale: what they are divided by.
    """

    lengthscale: float

    def _rows(self, points: FloatArray) -> FloatArray:
        return points / self.lengthscale


def linear(kernel: Linear, dimension: int, low: float = -1.0, high: float = 1.0) -> LinearMap:
    """The features of the linear kernel.

    Raises:
      ValueError: a point of the domain has features of norm above 1.
    """
    _check_shape(dimension, dimension, low, high)
    longest = math.sqrt(dimension) * max(abs(low), abs(high))
    if longest > kernel.lengthscale * (1 + 1e-12):
        raise ValueError(
            f"lengthscale of a linear kernel must be at least {longest:.6g}, the norm of the farthest corner of [{low:g}, "
            f"{high:g}]^{dimension}, so that features have norm at most 1; got {kernel.lengthscale:g}"
        )
    return LinearMap(dimension, dimension, 0.0, low, high, kernel.lengthscale)


@dataclass(frozen=True, eq=False)
class FiniteMap(DomainMap):
    """Features of the points of a finite set, by a table.

    Attributes:
      points: (n, d), all that may be asked for.
      features: (n, n_features)
    """

    points: FloatArray
    features: FloatArray
    _table: Rows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_table", Rows(self.points))

    def _rows(self, points: FloatArray) -> FloatArray:
        found = self._table.find(points)
        if (found < 0).any():
            stranger = points[int(np.argmax(found < 0))].tolist()
            raise ValueError(
                f"points must be among the {len(self.points)} of the finite set, to the last digit; got {stranger}: add it "
                "to the set, or use features of the whole domain"
            )
        return self.features[found]


@dataclass(frozen=True, eq=False)
class ProjectedMap(DomainMap):
    """Features of any point: its part in the span of the most important functions on a finite set.

    Attributes:
      kernel: what they are features of.
      points: (n, d), the set.
      turn: (n_features, n), what the kernel with the set is multiplied with.
    """

    kernel: Kernel
    points: FloatArray
    turn: FloatArray

    def _rows(self, points: FloatArray) -> FloatArray:
        out = np.empty((len(points), self.n_features))
        step = max(1, _MOST_ENTRIES // self.points.size)
        for start in range(0, len(points), step):
            rows = gram(self.kernel, points[start : start + step], self.points) @ self.turn.T
            rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))  # of rounding only
            out[start : start + step] = rows
        return out


def projected_on(
    kernel: Kernel,
    points: FloatArray,
    n_features: int,
    largest_error: float | None = None,
    low: float = -1.0,
    high: float = 1.0,
) -> ProjectedMap:
    r"""Features of all points by a finite set W: those of `exact_on` there, and what projecting makes of them elsewhere.

    With the largest eigenvalues L and vectors U of the Gram matrix of W, phi(x) = L^(-1/2) U^T k_W(x): the coordinates of
    the projection of k(x, .) on the span of the functions U^T k_W. So \|phi(x)\|^2 <= k(x, x) for every x, whatever the
    kernel and the dimension (Nystrom's method; Williams and Seeger 2001).

    Args:
      kernel: any with k(x, x) <= 1 on the domain.
      points: (n, d), the set: what users may bring, or a net of the domain.
      n_features: at most so many, the most important; never one whose eigenvalue is below 1e-10 of the largest.
      largest_error: None, or what `error` may be at most.
      low: the domain is [low, high]^d.
      high: see `low`.

    Returns:
      the map; its `error` is that on W.

    Raises:
      ValueError: see `exact_on`; or a point lies outside of the domain.
    """
    at_least("n_features", n_features, 1)
    known = exact_on(kernel, points)
    d = known.dimension
    checked_points(known.points, d, low, high)
    if isinstance(kernel, Linear):
        linear(kernel, d, low, high)  # refuses what is too long somewhere in the domain
    sizes = np.sqrt((known.features**2).sum(axis=0))  # of an eigenvector times the root of its value: descending
    rank = min(n_features, int((sizes**2 > _LEAST_VALUE * sizes[0] ** 2).sum()))
    turn = (known.features[:, :rank] / sizes[:rank] ** 2).T
    found = ProjectedMap(d, rank, 0.0, low, high, kernel, known.points, turn)
    left = kernel(known.points, known.points) - (found(known.points) ** 2).sum(axis=1)  # of a positive semidefinite matrix
    error = float(np.abs(left).max()) + _PROJECTED_ROUNDING
    return _accurate(replace(found, error=error), largest_error, kernel)


def exact_on(
    kernel: Kernel, points: FloatArray, n_features: int | None = None, largest_error: float | None = None
) -> FiniteMap:
    """Features on a finite set W: the rows of a square root of its Gram matrix, from the largest eigenvalues down.

    Args:
      kernel: any.
      points: (n, d), the set.
      n_features: at most so many; None: as many as the Gram matrix has eigenvalues that are more than rounding.
      largest_error: None, or what `error` may be at most.

    Returns:
      the map. What is left of the Gram matrix is positive semidefinite too, so that features have norm at most k(x,
      x)^(1/2), and no entry is off by more than the largest of the diagonal: that is `error`.

    Raises:
      ValueError: points are not of shape (n, d) or not finite, k(x, x) is above 1, or n_features too small.
    """
    array = np.array(points, dtype=float)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"points must be of shape (n, d), n >= 1, got {array.shape}")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"points must be finite, got {float(array[place])!r} at index {place}")
    array.setflags(write=False)
    matrix = gram(kernel, array, array)
    if matrix.diagonal().max() > 1 + 1e-9:
        row = int(np.argmax(matrix.diagonal()))
        raise ValueError(
            f"k(x, x) must be at most 1, got {matrix[row, row]:.6g} at point {row}: raise the lengthscale of a linear "
            f"kernel to {float(np.linalg.norm(array, axis=1).max()):.6g}"
        )
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = max(1, int((values > len(values) * np.finfo(float).eps * max(values[0], 0.0)).sum()))
    if n_features is not None:
        rank = min(rank, at_least("n_features", n_features, 1))
    features = vectors[:, :rank] * np.sqrt(np.maximum(values[:rank], 0.0))
    features /= np.maximum(1.0, np.linalg.norm(features, axis=1, keepdims=True))  # of rounding only
    error = (
        float(np.abs(features @ features.T - matrix).max()) if len(matrix) <= _COARSE else _diagonal_error(matrix, features)
    )
    low, high = float(array.min()), float(array.max())
    found = FiniteMap(array.shape[1], rank, error, low, high, array, features)
    return _accurate(found, largest_error, kernel)


def _diagonal_error(matrix: FloatArray, features: FloatArray) -> float:
    return float(np.abs(matrix.diagonal() - (features**2).sum(axis=1)).max()) + _ROUNDING * len(matrix)


def feature_map(
    kernel: Kernel, dimension: int, n_features: int, largest_error: float | None = None, low: float = -1.0, high: float = 1.0
) -> DomainMap:
    """The features that an algorithm takes unless it is told otherwise: quadrature by the best rule; exact ones where known.

    Args:
      kernel: linear, or one that `quadrature_fourier` knows.
      dimension: d, of the points.
      n_features: at most so many.
      largest_error: None, or what `error` may be at most.
      low: the domain is [low, high]^d.
      high: see `low`.

    Raises:
      ValueError: see `quadrature_fourier` and `linear`.
    """
    if isinstance(kernel, Linear):
        if n_features < dimension:
            raise ValueError(f"n_features of a linear kernel must be at least the dimension {dimension}, got {n_features}")
        return linear(kernel, dimension, low, high)
    sizes = [len(group) for group in kernel.groups] if isinstance(kernel, Additive) else [dimension]
    least = len(sizes) << max(sizes)
    if n_features < least:
        where = "coordinate of a group" if isinstance(kernel, Additive) else "coordinate"
        raise ValueError(
            f"n_features must be at least {least}, two frequencies along each {where}, got {n_features}: raise it, or use "
            "an additive kernel where the dimension is large"
        )
    return quadrature_fourier(kernel, dimension, n_features, low, high, largest_error, "best")


# --- what all check --------------------------------------------------------------------------------------------------


def _check_shape(dimension: int, n_features: int, low: float, high: float) -> None:
    at_least("dimension", dimension, 1)
    at_least("n_features", n_features, 1)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"low must be below high, and both finite; got low = {low!r}, high = {high!r}")


def _root(n_features: int, dimension: int) -> int:
    """The largest q with q^d at most n_features."""
    found = max(1, round(math.exp(math.log(n_features) / dimension)))
    return found if found**dimension <= n_features else found - 1


def _accurate(found: AnyMap, largest_error: float | None, kernel: Kernel) -> AnyMap:
    """The map, if it is accurate enough."""
    if largest_error is not None and not found.error <= largest_error:
        raise ValueError(
            f"{found.n_features} features approximate the kernel ({kernel}) on [{found.low:g}, {found.high:g}]^"
            f"{found.dimension} only to {found.error:.3g}, and largest_error is {largest_error:g}: raise n_features, the "
            "lengthscale or largest_error, or use an additive kernel where d is large"
        )
    return found
