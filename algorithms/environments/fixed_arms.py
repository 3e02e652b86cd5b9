"""A pool of one context without its points: finitely many arms, for algorithms that know of no kernel."""

from __future__ import annotations

import numpy as np

from bandana.algorithms.environments.drawn import Drawn
from bandana.algorithms.environments.kernel_functions import PooledFunction
from bandana.algorithms.protocol import FloatArray, IntArray


class FixedArms(Drawn):
    """Arms whose rewards are those of a pool's points, drawn one by one and summed over a phase.

    Attributes:
      means: (n_actions,) values of the function; clipping moves the mean of a reward by `clipping_bias` at most.
      n_users: rounds that can be asked for.
      n_actions: how many points.
      reward_range: where every reward lies.
      names: what the actions are called.

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

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) sums of the rewards of so many users."""
        rows = np.repeat(np.arange(len(actions)), n_records)
        rewards = self._function.drawn(self.means[actions[rows]], np.ones(len(rows), dtype=np.int64))
        return np.asarray(np.bincount(rows, rewards, minlength=len(actions)), dtype=float)
