r"""Bandits whose mean reward is a function of points of [-1, 1]^d, for learners that know a kernel.

`GapFunctions` are the random functions of Dubey's Figures 1 and 2: f = sum alpha_i k(x_i, .), four centers x_i uniform in a
ball and alpha uniform in the unit ball of the 1-norm, so that the norm of f is at most 1; users bring points of which one is
good (f >= 0.8) and the others are not (f <= 0.6); rewards are Bernoulli. The paper's ball has radius 2 and its kernel
lengthscale 1: here the unit ball and 0.5. Not stated there and chosen here: alpha and centers are drawn again until some
share of the ball is good; the good point stands at a random place; where f < 0 the probability is 0; each replicate has a
function of its own.

`PooledFunction` has values on a finite public pool (`rkhs.pool`): contexts are drawn from the pool's law, rewards are the
value plus noise. A pool of one context is a fixed decision set, which replicates and rounds share without a copy. On such
sets: `random_function`, of a chosen kernel's space and norm, and the functions of Dubey's Table 1 (`benchmark_functions`).
`FixedArms` is such a pool without its points, for algorithms that know of no kernel.

Gaussian noise has no bounds and declared ranges have: rewards are clipped to the range, which moves their means.
`clipping_bias` says by how much at most; regret is counted with the function itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.environments.drawn import DrawnContexts, action_names
from bandana.algorithms.environments.real_arms import OneByOne, clipped_mean
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.rkhs.kernels import Kernel, gram
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import Interval
from bandana.privacy_core.checks import at_least, non_negative, positive

LAWS = ("two-point", "gaussian")
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class KernelFunction:
    """f = sum of weights times the kernel at centers.

    Attributes:
      kernel: of the space that f lies in.
      centers: (n, d)
      weights: (n,)
    """

    kernel: Kernel
    centers: FloatArray
    weights: FloatArray

    def __call__(self, points: FloatArray) -> FloatArray:
        """(...) values at the points (..., d)."""
        array = np.asarray(points, dtype=float)
        rows = array.reshape(-1, array.shape[-1])
        return np.asarray(gram(self.kernel, rows, self.centers) @ self.weights).reshape(array.shape[:-1])

    @property
    def norm(self) -> float:
        """Norm of f in the kernel's space, the root of weights^T K weights; it bounds |f| where k(x, x) <= 1."""
        return math.sqrt(max(0.0, float(self.weights @ gram(self.kernel, self.centers, self.centers) @ self.weights)))


def random_function(kernel: Kernel, centers: ArrayLike, seed: np.random.SeedSequence, norm: float = 1.0) -> KernelFunction:
    """Normal weights at the given centers, scaled to the norm.

    Args:
      kernel: of its space: how smooth it is.
      centers: (n, d)
      seed: of the weights.
      norm: in the kernel's space; values lie in [-norm, norm].
    """
    places = np.array(centers, dtype=float)
    if places.ndim != 2 or not places.size:
        raise ValueError(f"centers must be of shape (n, d), n >= 1, got {places.shape}")
    drawn = KernelFunction(kernel, places, np.random.Generator(np.random.SFC64(seed)).standard_normal(len(places)))
    return KernelFunction(kernel, places, drawn.weights * positive("norm", norm) / drawn.norm)


def ball_points(generator: np.random.Generator, shape: tuple[int, ...], dimension: int, radius: float = 1.0) -> FloatArray:
    """(*shape, dimension) points that are uniform in the ball around 0."""
    drawn = generator.standard_normal((*shape, dimension))
    reach = radius * generator.random((*shape, 1)) ** (1 / dimension)
    return np.asarray(drawn * reach / np.linalg.norm(drawn, axis=-1, keepdims=True))


class PooledFunction(DrawnContexts):
    """Users bring a context of a finite public pool; an action's mean reward is a function's value at its point.

    Attributes: those of `DrawnContexts`, and
      pool: contexts, points and law.
      values: (n_contexts, n_actions) of the function; (n_functions, n_contexts, n_actions) where each replicate has its own.
      clipping_bias: the most that clipping moves a mean reward; 0 with two-point rewards.

    Args:
      noise: standard deviation of Gaussian rewards, before they are clipped.
      law: `two-point`, at the ends of the range; or `gaussian`.
    """

    def __init__(
        self,
        pool: Pool,
        values: ArrayLike,
        n_users: int,
        seed: np.random.SeedSequence,
        reward_range: Interval,
        *,
        law: str = "gaussian",
        noise: float = 0.1,
    ) -> None:
        array = np.array(values, dtype=float)
        if array.shape[-2:] != pool.points.shape[:2] or array.ndim > 3 or not array.size:
            raise ValueError(
                f"values must be of shape {pool.points.shape[:2]}, one a point of the pool, or so for each replicate; "
                f"got {array.shape}"
            )
        if law not in LAWS:
            raise ValueError(f"law must be one of {', '.join(LAWS)}, got {law!r}")
        slack = _ROUNDING * reward_range.width
        if not (array.min() >= reward_range.low - slack and array.max() <= reward_range.high + slack):
            raise ValueError(
                f"values lie between {array.min():.6g} and {array.max():.6g}; they must be finite and in the reward range "
                f"{reward_range}: widen it"
            )
        self.pool = pool
        self.values: FloatArray = np.clip(array, reward_range.low, reward_range.high)
        self.values.setflags(write=False)
        self.n_users = at_least("n_users", n_users, 1)
        self.n_actions, self.context_dimension = pool.n_actions, pool.dimension
        self.reward_range = reward_range
        self.names = action_names(pool.n_actions)
        self._is_two_point = law == "two-point"
        self._noise = 0.0 if self._is_two_point else non_negative("noise", noise)
        self.clipping_bias = clipping_bias(self.values, self._noise, reward_range)
        self._generator = np.random.Generator(np.random.SFC64(seed))
        self._index: IntArray = np.zeros(0, dtype=np.int64)

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) points of a context drawn for each replicate; a single one is shared, without a copy.

        Raises:
          ValueError: more replicates than functions, where each replicate has its own.
        """
        if self.values.ndim == 3 and len(user) > len(self.values):
            raise ValueError(f"there are {len(self.values)} functions, one for each replicate; got {len(user)} replicates")
        if self.pool.n_contexts == 1:
            self._index = np.zeros(len(user), dtype=np.int64)
            self._offered = np.broadcast_to(self.pool.points[0], (len(user), *self.pool.points.shape[1:]))
        else:
            self._index = self.pool.drawn(len(user), self._generator)
            self._offered = _unchangeable(self.pool.points[self._index])
        return self._offered

    def _answers(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        return self.drawn(self._at(self._index)[np.arange(len(actions)), actions], n_records)

    def _at(self, index: IntArray) -> FloatArray:
        """(n_reps, n_actions) values of each replicate's function in the contexts with these indices (n_reps,)."""
        return self.values[index] if self.values.ndim == 2 else self.values[np.arange(len(index)), index]

    def drawn(self, means: FloatArray, n_records: IntArray) -> FloatArray:
        """(n,) rewards with these means (n,); 0 where no record is asked for."""
        if self._is_two_point:
            return _two_point(self._generator, means, self.reward_range, n_records)
        answers = self.reward_range.clip(means + self._noise * self._generator.standard_normal(len(means)))
        return np.where(n_records > 0, answers, 0.0)

    def mean_rewards(self, user: IntArray, contexts: FloatArray) -> FloatArray:
        """(n_reps, n_actions) the function's values at the given contexts of the pool."""
        index = self._index if contexts is self._offered else self.pool.index_of(contexts)
        return self._at(index)

    @property
    def action_gaps(self) -> FloatArray:
        """(..., n_actions) expected regret of a round in which an action is played whatever the context."""
        return np.asarray(self.pool.law @ (self.values.max(axis=-1, keepdims=True) - self.values))


def clipping_bias(values: FloatArray, noise: float, reward_range: Interval) -> float:
    """The largest |E clip(v + noise Z) - v| over the values v, with Z normal, in closed form."""
    return 0.0 if noise == 0 else float(np.abs(clipped_mean(np.asarray(values), noise, reward_range) - values).max())


GOOD, OTHERS = 0.8, 0.6
"""Least value of f at the good point, and largest at the others."""
_CENTERS = 4
_TRIED = 4096
_SAMPLED = 1 << 15
_LEAST_GOOD = 32
_MOST_KEPT = 4096
_MOST_TRIES = 50


class _Drawn(NamedTuple):
    """One function with what users may bring of it."""

    function: KernelFunction
    good: FloatArray
    others: FloatArray


def _draw_gap_function(kernel: Kernel, dimension: int, generator: np.random.Generator) -> _Drawn:
    for _ in range(_MOST_TRIES):
        centers = ball_points(generator, (_TRIED, _CENTERS), dimension)
        parts = generator.exponential(size=(_TRIED, _CENTERS + 1))
        weights = parts[:, :-1] / parts.sum(axis=1, keepdims=True)
        weights *= 1 - 2 * generator.integers(0, 2, weights.shape)
        at_centers = np.einsum("nij,nj->ni", kernel(centers[:, :, None, :], centers[:, None, :, :]), weights)
        for place in np.flatnonzero(at_centers.max(axis=1) >= GOOD):
            function = KernelFunction(kernel, centers[place], weights[place])
            points = ball_points(generator, (_SAMPLED,), dimension)
            values = function(points)
            good, others = points[values >= GOOD][:_MOST_KEPT], points[values <= OTHERS][:_MOST_KEPT]
            if len(good) >= _LEAST_GOOD and len(others) >= _LEAST_GOOD:
                return _Drawn(function, good, others)
    raise ValueError(
        f"kernel ({kernel}) in {dimension} dimensions: no random function among {_MOST_TRIES * _TRIED} is above {GOOD} on "
        f"a share of {_LEAST_GOOD / _SAMPLED:.2g} of the ball and below {OTHERS} elsewhere: change the lengthscale or "
        "lower the dimension"
    )


class GapFunctions(DrawnContexts):
    """Random functions with a gap, one for each replicate; users bring a good point among others, in a random order.

    Attributes: those of `DrawnContexts`, and
      kernel: of the space that they lie in.
    """

    def __init__(self, kernel: Kernel, dimension: int, n_actions: int, n_users: int, seed: np.random.SeedSequence) -> None:
        self.kernel = kernel
        self.context_dimension = at_least("dimension", dimension, 1)
        self.n_actions = at_least("n_actions", n_actions, 2)
        self.n_users = at_least("n_users", n_users, 1)
        self.reward_range = Interval(0.0, 1.0)
        self.names = action_names(n_actions)
        self._generator = np.random.Generator(np.random.SFC64(seed))
        self._points: FloatArray | None = None
        self._values: FloatArray = np.zeros((0, 0))
        self._counts: IntArray = np.zeros((0, 2), dtype=np.int64)
        self._means: FloatArray = np.zeros((0, 0))

    def _begin(self, n_reps: int) -> FloatArray:
        """(n_reps, n, d) points of each replicate, the good ones first."""
        drawn = [_draw_gap_function(self.kernel, self.context_dimension, self._generator) for _ in range(n_reps)]
        self._counts = np.array([(len(each.good), len(each.others)) for each in drawn])
        most = int(self._counts.sum(axis=1).max())
        points, values = np.zeros((n_reps, most, self.context_dimension)), np.zeros((n_reps, most))
        for r, each in enumerate(drawn):
            n = int(self._counts[r].sum())
            points[r, :n] = np.concatenate([each.good, each.others])
            values[r, :n] = np.clip(each.function(points[r, :n]), 0.0, 1.0)
        self._points, self._values = points, values
        return points

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) fresh points; `respond` answers to the last ones that were asked for.

        Raises:
          ValueError: another number of replicates than before: each has a function of its own.
        """
        n_reps = len(user)
        points = self._begin(n_reps) if self._points is None else self._points
        if len(points) != n_reps:
            raise ValueError(f"the stream began with {len(points)} replicates, each with its function; got {n_reps}")
        good, others = self._counts[:, :1], self._counts[:, 1:]
        uniform = self._generator.random((n_reps, self.n_actions))
        chosen = good + (uniform * others).astype(np.int64)
        rows = np.arange(n_reps)
        place = self._generator.integers(0, self.n_actions, n_reps)
        chosen[rows, place] = (uniform[rows, place] * good[:, 0]).astype(np.int64)
        self._offered = _unchangeable(points[rows[:, None], chosen])
        self._means = self._values[rows[:, None], chosen]
        return self._offered

    def _answers(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        return _two_point(self._generator, self._means[np.arange(len(actions)), actions], self.reward_range, n_records)

    def mean_rewards(self, user: IntArray, contexts: FloatArray) -> FloatArray:
        """(n_reps, n_actions) f of the contexts last offered, where it is negative 0.

        Raises:
          ValueError: other contexts.
        """
        if contexts is not self._offered:
            raise ValueError("contexts must be those that were offered last")
        return self._means

    def uniform_gaps(self, n_reps: int) -> FloatArray:
        """(n_reps,) expected regret of a round of uniform play on the function of each replicate, drawn if need be.

        A user brings one good point and n - 1 others, each drawn uniformly from those that there are.
        """
        if self._points is None:
            self._begin(n_reps)
        gaps = np.empty(n_reps)
        for r, ((n_good, n_others), values) in enumerate(zip(self._counts, self._values, strict=True)):
            good, others = values[:n_good].mean(), values[n_good : n_good + n_others].mean()
            gaps[r] = (1 - 1 / self.n_actions) * (good - others)
        return gaps


def gap_points(n_users: int, n_actions: int, dimension: int, seed: np.random.SeedSequence) -> FloatArray:
    """(n_users, n_actions, d) points of the ball, for a fixed data set."""
    return ball_points(np.random.Generator(np.random.SFC64(seed)), (n_users, n_actions), dimension)


def product_pool(
    n_contexts: int, n_actions: int, dimensions: tuple[int, int], seed: np.random.SeedSequence, unseen: int = 0
) -> Pool:
    """Every pair (c, x) of contexts and actions drawn from balls of radius 1/sqrt 2: points of the unit ball.

    Args:
      n_contexts: how many c; each is drawn with the same probability.
      n_actions: how many x.
      dimensions: of c and of x; the points have their sum.
      seed: of both.
      unseen: how many of the c, those of the largest first coordinate, are never drawn. A record may hold them all the same:
        privacy must cover them, and what is learned of them is extrapolated.
    """
    generator = np.random.Generator(np.random.SFC64(seed))
    shape = (at_least("n_contexts", n_contexts, 1), at_least("n_actions", n_actions, 2))
    if not 0 <= unseen < n_contexts:
        raise ValueError(f"unseen must be 0 to {n_contexts - 1}, fewer than there are contexts, got {unseen!r}")
    c = ball_points(generator, shape[:1], dimensions[0], math.sqrt(0.5))
    x = ball_points(generator, shape[1:], dimensions[1], math.sqrt(0.5))
    points = np.concatenate([np.repeat(c[:, None], shape[1], axis=1), np.repeat(x[None], shape[0], axis=0)], axis=2)
    law = np.full(n_contexts, 1 / (n_contexts - unseen))
    law[np.argsort(c[:, 0])[n_contexts - unseen :]] = 0.0
    return Pool(points, law)


def _unchangeable(points: FloatArray) -> FloatArray:
    """The points, not to be written to: feature maps remember such ones, which are asked for twice in a round."""
    points.setflags(write=False)
    return points


def _two_point(generator: np.random.Generator, means: FloatArray, reward_range: Interval, n_records: IntArray) -> FloatArray:
    low, width = reward_range.low, reward_range.width
    answers = np.where(generator.random(len(means)) < (means - low) / width, reward_range.high, low)
    return np.where(n_records > 0, answers, 0.0)


class FixedArms(OneByOne):
    """Finitely many arms whose rewards are those of a pool's points.

    Attributes:
      means: (n_actions,) values of the function; clipping moves the mean of a reward by `clipping_bias` at most.
      reward_range: where every reward lies.

    Raises:
      ValueError: the pool has several contexts, so that an arm would be a different point for each user.
    """

    def __init__(self, function: PooledFunction) -> None:
        if function.pool.n_contexts > 1:
            raise ValueError(f"arms are the points of a pool with one context, got {function.pool.n_contexts}")
        self._function = function
        self.means: FloatArray = function.values[0]
        self.n_users, self.n_actions, self.names = function.n_users, function.n_actions, function.names
        self.reward_range = function.reward_range

    def drawn(self, users: IntArray, actions: IntArray) -> FloatArray:
        """(n,) one reward of each user."""
        return self._function.drawn(self.means[actions], np.ones(len(actions), dtype=np.int64))
