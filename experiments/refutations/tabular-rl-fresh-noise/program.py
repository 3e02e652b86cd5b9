"""The noisy count of one pair of state and action after each episode, re-created from the description of public code.

`fresh` draws floor(log k) + 1 Laplace numbers for the count after episode k, anew in each episode "to mimic the tree-based
algorithm"; `tree` is a binary tree, whose nodes keep their noise.
"""

import numpy as np


def fresh(data, seed, epsilon):
    """Counts with new noise each time."""
    rng, totals = np.random.default_rng(seed), np.cumsum(data)
    draws = (np.floor(np.log(np.arange(1, len(data) + 1))) + 1).astype(int)
    return [total + rng.laplace(0, 1 / epsilon, n).sum() for total, n in zip(totals, draws, strict=True)]


def tree(data, seed, epsilon):
    """Counts of a tree, of whose nodes an episode enters one on each layer."""
    n_layers = (len(data) - 1).bit_length() + 1
    rng, nodes = np.random.default_rng(seed), {}
    for layer in range(n_layers):
        for first in range(0, len(data), 2**layer):
            exact = sum(data[first : first + 2**layer])
            nodes[layer, first] = exact + rng.laplace(0, n_layers / epsilon)
    totals = []
    for count in range(1, len(data) + 1):
        total, first = 0.0, 0
        for layer in reversed(range(n_layers)):
            if count >> layer & 1:
                total, first = total + nodes[layer, first], first + 2**layer
        totals.append(total)
    return totals
