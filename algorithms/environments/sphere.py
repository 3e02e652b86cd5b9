"""Users who bring actions drawn from the unit sphere, with rewards that a link draws from the product with a parameter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from bandana.algorithms.environments.contexts import ContextLaw, uniform_sphere_law
from bandana.algorithms.environments.drawn import DrawnContexts, action_names
from bandana.algorithms.logistic import mean_of, slope_of
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.regression import ridge_numba
from bandana.privacy_core import Interval
from bandana.privacy_core.checks import at_least


@dataclass(frozen=True)
class LinearLink:
    """Mean rewards of the range's middle plus the product m, less `bend` m^2 / h; h is half of the range's width.

    With a bend, rewards first rise and then fall with the product: the mean is largest at m = h / (2 bend). Uniform
    directions are symmetric, E[x m^2] = 0: least squares finds theta all the same, and its best action is not the best.

    Attributes:
      reward_range: where every reward lies.
      noise: `two-point`, rewards at the ends of the range; or `uniform`, on the widest interval around the mean.
      bend: at least 0; 0: linear.
    """

    reward_range: Interval = Interval(-1.0, 1.0)  # noqa: RUF009  (frozen)
    noise: str = "two-point"
    bend: float = 0.0
    rewards: ClassVar[str] = "rewards"

    def __post_init__(self) -> None:
        if self.noise not in ("two-point", "uniform"):
            raise ValueError(f"noise must be 'two-point' or 'uniform', got {self.noise!r}")
        if not 0 <= self.bend < math.inf:
            raise ValueError(f"bend must be a finite number of at least 0, got {self.bend!r}")

    @property
    def offset(self) -> float:
        """The middle of the range."""
        return (self.reward_range.low + self.reward_range.high) / 2

    def check(self, norm: float) -> None:
        """A norm n with n (1 + bend n / h) <= h: a mean falls at most so far below the middle."""
        most = self.reward_range.width / (1 + math.sqrt(1 + 4 * self.bend))
        if norm > most * (1 + 1e-12):
            raise ValueError(
                f"theta has norm {norm:.6g}; for mean rewards in {self.reward_range} it must be at most {most:.6g}"
            )

    def shape(self, products: FloatArray) -> FloatArray:
        """The products themselves, bent."""
        return products - self.bend * products**2 / (self.reward_range.width / 2)

    def slope(self, product: float) -> float:
        """Derivative of the mean reward."""
        return 1.0 - 4 * self.bend * product / self.reward_range.width

    def answers(self, theta: FloatArray, offered: FloatArray, actions: IntArray, uniform: FloatArray) -> FloatArray:
        """(n_reps,) rewards with these means."""
        out, span = np.empty(len(actions)), self.reward_range
        bend, is_two_point = 2 * self.bend / span.width, self.noise == "two-point"
        ridge_numba.linear_answers(
            theta, offered, actions, uniform, self.offset, bend, span.low, span.high, is_two_point, out
        )  # fmt: skip
        return out


@dataclass(frozen=True)
class LogisticLink:
    """Rewards of 1 with probability sigma(<theta, action>), else 0; the norm of theta is the largest log-odds."""

    reward_range: ClassVar[Interval] = Interval(0.0, 1.0)
    rewards: ClassVar[str] = "Bernoulli rewards"
    offset: ClassVar[float] = 0.0
    bend: ClassVar[float] = 0.0

    def check(self, norm: float) -> None:
        """Any norm will do."""

    def shape(self, products: FloatArray) -> FloatArray:
        """Probabilities of a 1."""
        return mean_of(products)

    def answers(self, theta: FloatArray, offered: FloatArray, actions: IntArray, uniform: FloatArray) -> FloatArray:
        """(n_reps,) rewards of 0 or 1."""
        x = np.empty((len(actions), len(theta)))
        ridge_numba.take(offered, actions, x)
        return (uniform < mean_of(x @ theta)).astype(float)

    def slope(self, product: float) -> float:
        """Derivative of the mean reward."""
        return float(slope_of(product))


Link = LinearLink | LogisticLink


class SphereContexts(DrawnContexts):
    """Users bring actions drawn from the uniform unit sphere; a link draws the reward from <theta, action>.

    Attributes: those of `DrawnContexts`, and
      theta: (d,) finite; what its norm may be, the link says.
      law: `ContextLaw` of the contexts.

    Args:
      seed: of contexts and rewards.
      link: linear or logistic.
      is_fixed: whether all users of a replicate bring the same actions, drawn once, so that what is not played is not
        learned about; else each brings fresh ones, which point everywhere, whatever is played.
    """

    def __init__(
        self,
        theta: ArrayLike,
        n_actions: int,
        n_users: int,
        seed: np.random.SeedSequence,
        link: Link = LinearLink(),
        *,
        is_fixed: bool = False,
    ) -> None:
        array = np.asarray(theta, dtype=float)
        if link.bend and not is_fixed:
            raise ValueError("bend is for actions that are fixed: give is_fixed=True")
        if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
            raise ValueError(f"theta must be a vector of finite numbers, got {array!r}")
        link.check(float(np.linalg.norm(array)))
        self.theta: FloatArray = array
        self.n_users = at_least("n_users", n_users, 1)
        self.n_actions = at_least("n_actions", n_actions, 2)
        self.context_dimension = len(array)
        self.reward_range, self._rewards = link.reward_range, link.rewards
        self.names = action_names(n_actions)
        self.law: ContextLaw = uniform_sphere_law(len(array), n_actions)
        self._link, self._is_fixed = link, is_fixed
        self._generator = np.random.Generator(np.random.SFC64(seed))

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) contexts; `respond` answers to the last ones that were asked for."""
        if not (self._is_fixed and self._offered is not None and len(self._offered) == len(user)):
            drawn = self._generator.standard_normal((len(user), self.n_actions, self.context_dimension))
            ridge_numba.normalize(drawn.reshape(-1, self.context_dimension))
            self._offered = drawn
        return self._offered

    def _answers(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        assert self._offered is not None
        answers = self._link.answers(self.theta, self._offered, actions, self._generator.random(len(actions)))
        answers[n_records == 0] = 0.0
        return answers

    def mean_rewards(self, user: IntArray, contexts: FloatArray) -> FloatArray:
        """(n_reps, n_actions) mean rewards of the given contexts."""
        return np.asarray(self._link.offset + self._link.shape(contexts @ self.theta))

    @cached_property
    def uniform_gap(self) -> float:
        """Expected regret of a round of uniform play among fresh actions.

        A uniform direction's product with theta is |theta| (2 B - 1), B a Beta((d - 1)/2, (d - 1)/2) of distribution F; in
        one dimension B is a fair coin. Means m grow with it, and are symmetric around m(0), their average:
        E max m = m(|theta|) - int of m'(|theta| (2 x - 1)) 2 |theta| F(x)^n.
        """
        from scipy.integrate import quad

        norm, half, n = float(np.linalg.norm(self.theta)), (self.context_dimension - 1) / 2, self.n_actions
        low, high = self._link.shape(np.array([-norm, norm]))
        if self.context_dimension == 1:
            return float((high - low) * (0.5 - 2.0**-n))
        below, _ = quad(
            lambda x: self._link.slope(norm * (2 * x - 1)) * 2 * norm * betainc(half, half, x) ** n,
            0, 1, epsabs=1e-10, limit=200,
        )  # fmt: skip
        return float((high - low) / 2 - below)

    def uniform_gaps(self, n_reps: int) -> FloatArray:
        """(n_reps,) expected regret of a round of uniform play; with fixed actions, with each replicate's own."""
        if not self._is_fixed:
            return np.full(n_reps, self.uniform_gap)
        means = self._link.shape(self.contexts(np.zeros(n_reps, dtype=np.int64)) @ self.theta)
        return np.asarray(means.max(axis=1) - means.mean(axis=1))
