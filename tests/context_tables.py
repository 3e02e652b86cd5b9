"""Tables of contexts inside the unit ball."""

import numpy as np

from bandana.algorithms.environments.tables import ContextTable


def context_table(n_users, n_actions, dimension, reward_range, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n_users, n_actions, dimension))
    features *= rng.random((n_users, n_actions, 1)) / np.linalg.norm(features, axis=2, keepdims=True)
    rewards = reward_range.low + reward_range.width * rng.random((n_users, n_actions))
    return ContextTable(features, rewards, reward_range)
