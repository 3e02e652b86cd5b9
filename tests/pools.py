"""A small pool, and users from it."""

from __future__ import annotations

import numpy as np

from bandana.algorithms.environments.kernel_functions import PooledFunction, random_function
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.rkhs.kernels import SquaredExponential
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import Interval

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


def stream_of(pool, n_users, seed=1):
    """Rewards at the ends of [-1, 1], their mean a function of the kernel's space with values up to 0.9."""
    values = random_function(KERNEL, pool.points[0], np.random.SeedSequence(1))(pool.points)
    values *= 0.9 / np.abs(values).max()
    return PooledFunction(pool, values, n_users, np.random.SeedSequence(seed), SYMMETRIC, law="two-point")


class IndexChecker:
    """The algorithm, whose every index is compared with what it bounds."""

    def __init__(self, algorithm, values, n_reps=40):
        self._algorithm, self._values, self.failed = algorithm, values, np.zeros(n_reps, dtype=bool)

    def __getattr__(self, name):
        return getattr(self._algorithm, name)

    def absorb(self, sensitive, released, record, ledger):
        sensitive, released = self._algorithm.absorb(sensitive, released, record, ledger)
        self.failed |= (released.upper < self._values - 1e-9).any(axis=1)
        return sensitive, released
