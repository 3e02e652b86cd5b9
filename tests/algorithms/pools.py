"""A small pool, tables of users from it, and a stream that draws them."""

from __future__ import annotations

import numpy as np

from algorithms.environments.tables import ContextTable
from algorithms.numerics.kernels import SquaredExponential, gram
from algorithms.numerics.pool import Pool
from privacy_core import Interval

SYMMETRIC, UNIT = Interval(-1.0, 1.0), Interval(0.0, 1.0)
KERNEL = SquaredExponential(0.7)


def pool_of(n_contexts=4, n_actions=3, seed=0, law=None):
    """Contexts in one coordinate, actions in the other."""
    rng = np.random.default_rng(seed)
    places = np.stack(np.broadcast_arrays(rng.uniform(-1, 1, (n_contexts, 1)), rng.uniform(-1, 1, (1, n_actions))), axis=2)
    return Pool(places / np.sqrt(2), np.full(n_contexts, 1 / n_contexts) if law is None else np.array(law))


def table_of(pool, n_users, span=UNIT, seed=1):
    """Users by the law, rewards at both ends of the range."""
    rng = np.random.default_rng(seed)
    brought = pool.drawn(n_users, rng)
    rewards = span.low + span.width * rng.integers(0, 2, (n_users, pool.n_actions))
    return ContextTable(pool.points[brought], rewards, span)


class PooledFunction:
    """Rewards at the ends of the range, their mean a function of the kernel's space."""

    def __init__(self, pool, kernel, n_users, seed, span=SYMMETRIC, share=0.9):
        points = pool.points.reshape(-1, pool.dimension)
        values = gram(kernel, points, points[:12]) @ np.cos(np.arange(len(points[:12])))
        middle = (span.low + span.high) / 2
        self.means = middle + share * span.width / 2 * (values / np.abs(values).max()).reshape(pool.points.shape[:2])
        self.pool, self.n_users, self.n_actions = pool, n_users, pool.n_actions
        self.reward_range, self.context_dimension = span, pool.dimension
        self._rng = np.random.default_rng(seed)
        self._brought = np.zeros(0, dtype=np.int64)

    def clipped(self, reward_range):
        return self

    def contexts(self, user):
        self._brought = self.pool.drawn(len(user), self._rng)
        return self.pool.points[self._brought]

    def respond(self, user, n_records, actions):
        share = (self.means[self._brought, actions] - self.reward_range.low) / self.reward_range.width
        return self.reward_range.low + self.reward_range.width * (self._rng.random(len(actions)) < share)

    def mean_rewards(self, user, contexts):
        return self.means[self._brought]
