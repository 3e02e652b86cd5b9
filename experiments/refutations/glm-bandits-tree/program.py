"""Noisy running sums of outer products by a binary tree, re-created from the description of public code.

The budget rho follows from epsilon = rho + 2 sqrt(rho log(1/delta)) and is divided evenly among the layers; a node gets a
Gaussian matrix, made symmetric, scaled to the norm `sensitivity` of one outer product.
"""

import math

import numpy as np


def running_sums(data, seed, epsilon, delta, sensitivity):
    """The noisy sum after each record, upper triangles."""
    outer = np.array([np.outer(record, record) for record in np.array(data, dtype=float)])
    n_layers = math.ceil(math.log2(len(outer))) + 1
    sigma = sensitivity / math.sqrt(2 * budget(epsilon, delta) / n_layers)
    rng, size, nodes = np.random.default_rng(seed), outer.shape[1], {}
    for layer in range(n_layers):
        for first in range(0, len(outer), 2**layer):
            noise = rng.normal(0, sigma, (size, size))
            nodes[layer, first] = outer[first : first + 2**layer].sum(axis=0) + (noise + noise.T) / 2
    sums = []
    for count in range(1, len(outer) + 1):
        total, first = np.zeros((size, size)), 0
        for layer in reversed(range(n_layers)):
            if count >> layer & 1:
                total, first = total + nodes[layer, first], first + 2**layer
        sums.append(total[np.triu_indices(size)])
    return np.concatenate(sums)


def budget(epsilon, delta):
    """The rho of which the code's docstring speaks."""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def state(release, epsilon, delta, sensitivity):
    """The claim on all sums together."""
    return f"zcdp(rho={budget(epsilon, delta)})"
