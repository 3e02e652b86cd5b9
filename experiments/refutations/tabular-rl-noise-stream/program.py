"""One user's report to a private tabular learner, re-created from the description of its public code.

A user plays one episode and reports how often they visited each pair of state and action. `shared` adds one Laplace draw to
all of them, as the code does, which draws one number an episode; `separate` adds one to each.
"""

import numpy as np

N_PAIRS = 4


def shared(data, seed, epsilon):
    """All counts with the same noise."""
    return counts(data) + np.random.default_rng(seed).laplace(0, 1 / epsilon)


def separate(data, seed, epsilon):
    """Each count with noise of its own, for two episodes whose visits all differ."""
    return counts(data) + np.random.default_rng(seed).laplace(0, 2 * len(data) / epsilon, N_PAIRS)


def counts(visits):
    """Visits of each pair."""
    return np.bincount(visits, minlength=N_PAIRS)
