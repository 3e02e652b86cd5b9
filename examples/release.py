"""Two releases of a count, functions (data, seed) -> number, for `bandana audit-release`."""

import numpy as np


def count(data, seed):
    """The number of ones with Laplace noise of scale 1, which is 1-DP if one person is added, removed or replaced."""
    return float(np.sum(data)) + np.random.default_rng(seed).laplace(0.0, 1.0)


def rounded(data, seed):
    """The same with a mistake: somebody rounded the noise towards zero, which returns the exact count too often."""
    return int(np.sum(data)) + int(np.random.default_rng(seed).laplace(0.0, 1.0))
