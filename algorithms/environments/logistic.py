"""Users who bring vectors, and answer yes or no: rewards of 0 or 1 whose log-odds are linear in the chosen vector."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import betainc

from bandana.algorithms.environments.drawn import DrawnContexts, action_names
from bandana.algorithms.logistic import mean_of, slope_of
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.regression import ridge_numba
from bandana.privacy_core import Interval
from bandana.privacy_core.checks import at_least


class LogisticContexts(DrawnContexts):
    """Users bring actions drawn from the uniform unit sphere; a reward is 1 with probability sigma(<theta, action>), else 0.

    Attributes:
      theta: (d,)
      n_users: rounds that can be asked for.
      n_actions: of each user.
      context_dimension: d.
      names: what the actions are called.

    Args:
      theta: finite, of any norm: its norm is the largest log-odds.
      n_actions: of each user.
      n_users: rounds that can be asked for.
      seed: of contexts and rewards.
      is_fixed: whether all users of a replicate bring the same actions, drawn once; else each has fresh ones.
    """

    reward_range = Interval(0.0, 1.0)
    _rewards = "Bernoulli rewards"

    def __init__(
        self, theta: ArrayLike, n_actions: int, n_users: int, seed: np.random.SeedSequence, *, is_fixed: bool = False
    ) -> None:
        array = np.asarray(theta, dtype=float)
        if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
            raise ValueError(f"theta must be a vector of finite numbers, got {array!r}")
        self.theta: FloatArray = array
        self.n_users = at_least("n_users", n_users, 1)
        self.n_actions = at_least("n_actions", n_actions, 2)
        self.context_dimension = len(array)
        self.names = action_names(n_actions)
        self._is_fixed = is_fixed
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
        x = np.empty((len(actions), self.context_dimension))
        ridge_numba.take(self._offered, actions, x)
        answers = (self._generator.random(len(actions)) < mean_of(x @ self.theta)) & (n_records > 0)
        return answers.astype(float)

    def mean_rewards(self, user: IntArray, contexts: FloatArray) -> FloatArray:
        """(n_reps, n_actions) mean rewards of the given contexts."""
        return mean_of(contexts @ self.theta)

    def uniform_gaps(self, n_reps: int) -> FloatArray:
        """(n_reps,) expected regret of a round of uniform play; with fixed actions, with each replicate's own."""
        if self._is_fixed:
            means = self.mean_rewards(np.zeros(n_reps, dtype=np.int64), self.contexts(np.zeros(n_reps, dtype=np.int64)))
            return np.asarray(means.max(axis=1) - means.mean(axis=1))
        return np.full(n_reps, self._fresh_gap())

    def _fresh_gap(self) -> float:
        """Expected largest mean of fresh actions, less 1/2, which is the expected mean of one.

        A uniform direction's product with theta is |theta| (2 B - 1), B a Beta((d - 1)/2, (d - 1)/2) of distribution F; in
        one dimension B is a fair coin. E max sigma = sigma(|theta|) - int of sigma'(|theta| (2 x - 1)) 2 |theta| F(x)^n.
        """
        norm, d, n = float(np.linalg.norm(self.theta)), self.context_dimension, self.n_actions
        if d == 1:
            low, high = mean_of([-norm, norm])
            return float(high - (high - low) * 2.0**-n - 0.5)
        half = (d - 1) / 2
        below, _ = quad(
            lambda x: float(slope_of(norm * (2 * x - 1))) * 2 * norm * betainc(half, half, x) ** n,
            0, 1, epsabs=1e-10, limit=200,
        )  # fmt: skip
        return float(mean_of(norm)) - below - 0.5
