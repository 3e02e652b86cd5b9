"""Users who bring actions drawn from the unit sphere, with rewards that a link draws from the product with a parameter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import betainc

from bandana.algorithms.environments.contexts import ContextLaw, uniform_sphere_law
from bandana.algorithms.environments.drawn import DrawnContexts, action_names
from bandana.algorithms.logistic import mean_of, slope_of
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.regression import ridge_numba
from bandana.privacy_core import Interval
from bandana.privacy_core.checks import at_least


class Link(Protocol):
    """The law of a reward, given the product <theta, action>."""

    @property
    def reward_range(self) -> Interval:
        """Where every reward lies."""

    @property
    def rewards(self) -> str:
        """Name of the rewards in errors."""

    @property
    def offset(self) -> float:
        """Mean reward less `shape`."""

    def check(self, norm: float) -> None:
        """Raises a ValueError where a parameter of that norm takes mean rewards out of the range."""

    def shape(self, products: FloatArray) -> FloatArray:
        """Mean rewards less `offset`, in the shape of the products."""

    def answers(self, theta: FloatArray, offered: FloatArray, actions: IntArray, uniform: FloatArray) -> FloatArray:
        """(n_reps,) rewards to the actions (n_reps,) among `offered` (n_reps, n_actions, d), a uniform number each."""

    def fresh_gap(self, norm: float, dimension: int, n_actions: int) -> float:
        """Expected regret of a round of uniform play among fresh actions, with a parameter of that norm.

        A uniform direction's product with theta is |theta| (2 B - 1), B a Beta((d - 1)/2, (d - 1)/2) of distribution F; in
        one dimension B is a fair coin.
        """


@dataclass(frozen=True)
class LinearLink:
    """Mean rewards of the range's middle plus the product.

    Attributes:
      reward_range: where every reward lies.
      noise: `two-point`, rewards at the ends of the range; or `uniform`, on the widest interval around the mean.
    """

    reward_range: Interval = Interval(-1.0, 1.0)  # noqa: RUF009  (frozen)
    noise: str = "two-point"
    rewards: ClassVar[str] = "rewards"

    def __post_init__(self) -> None:
        if self.noise not in ("two-point", "uniform"):
            raise ValueError(f"noise must be 'two-point' or 'uniform', got {self.noise!r}")

    @property
    def offset(self) -> float:
        """The middle of the range."""
        return (self.reward_range.low + self.reward_range.high) / 2

    def check(self, norm: float) -> None:
        """A norm of at most half of the range."""
        half = self.reward_range.width / 2
        if norm > half * (1 + 1e-12):
            raise ValueError(
                f"theta has norm {norm:.6g}; for mean rewards in {self.reward_range} it must be at most {half:g}, half its "
                "width"
            )

    def shape(self, products: FloatArray) -> FloatArray:
        """The products themselves."""
        return products

    def answers(self, theta: FloatArray, offered: FloatArray, actions: IntArray, uniform: FloatArray) -> FloatArray:
        """(n_reps,) rewards with linear means."""
        out, span = np.empty(len(actions)), self.reward_range
        ridge_numba.linear_answers(
            theta, offered, actions, uniform, self.offset, span.low, span.high, self.noise == "two-point", out
        )
        return out

    def fresh_gap(self, norm: float, dimension: int, n_actions: int) -> float:
        """Expected regret of uniform play, see `Link`."""
        if dimension == 1:
            return norm * (1 - 2.0 ** (1 - n_actions))
        half = (dimension - 1) / 2
        below, _ = quad(lambda x: betainc(half, half, x) ** n_actions, 0, 1, epsabs=1e-10, limit=200)
        return norm * (1 - 2 * below)  # E max of 2 B - 1 is 2 int (1 - F^n) - 1


@dataclass(frozen=True)
class LogisticLink:
    """Rewards of 1 with probability sigma(<theta, action>), else 0; the norm of theta is the largest log-odds."""

    reward_range: ClassVar[Interval] = Interval(0.0, 1.0)
    rewards: ClassVar[str] = "Bernoulli rewards"
    offset: ClassVar[float] = 0.0

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

    def fresh_gap(self, norm: float, dimension: int, n_actions: int) -> float:
        """E max sigma - 1/2, E max sigma = sigma(|theta|) - int of sigma'(|theta| (2 x - 1)) 2 |theta| F(x)^n."""
        if dimension == 1:
            low, high = mean_of([-norm, norm])
            return float(high - (high - low) * 2.0**-n_actions - 0.5)
        half = (dimension - 1) / 2
        below, _ = quad(
            lambda x: float(slope_of(norm * (2 * x - 1))) * 2 * norm * betainc(half, half, x) ** n_actions,
            0, 1, epsabs=1e-10, limit=200,
        )  # fmt: skip
        return float(mean_of(norm)) - below - 0.5


class SphereContexts(DrawnContexts):
    """Users bring actions drawn from the uniform unit sphere; a link draws the reward from <theta, action>.

    Attributes:
      theta: (d,) finite; what its norm may be, the link says.
      n_users: rounds that can be asked for.
      n_actions: of each user.
      context_dimension: d.
      reward_range: where every reward lies.
      names: what the actions are called.
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

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) rewards to the actions among the contexts last offered; 0 where no record is asked for.

        Raises:
          ValueError: more than one record at once, or contexts were not asked for.
        """
        self._check_asked_alone(n_records, actions)
        assert self._offered is not None
        answers = self._link.answers(self.theta, self._offered, actions, self._generator.random(len(actions)))
        answers[n_records == 0] = 0.0
        return answers

    def mean_rewards(self, user: IntArray, contexts: FloatArray) -> FloatArray:
        """(n_reps, n_actions) mean rewards of the given contexts."""
        return np.asarray(self._link.offset + self._link.shape(contexts @ self.theta))

    @cached_property
    def uniform_gap(self) -> float:
        """Expected regret of a round of uniform play among fresh actions."""
        return self._link.fresh_gap(float(np.linalg.norm(self.theta)), self.context_dimension, self.n_actions)

    def uniform_gaps(self, n_reps: int) -> FloatArray:
        """(n_reps,) expected regret of a round of uniform play; with fixed actions, with each replicate's own."""
        if not self._is_fixed:
            return np.full(n_reps, self.uniform_gap)
        means = self._link.shape(self.contexts(np.zeros(n_reps, dtype=np.int64)) @ self.theta)
        return np.asarray(means.max(axis=1) - means.mean(axis=1))
