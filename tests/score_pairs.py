"""Log-likelihood ratios of mechanisms whose privacy is known exactly, drawn on both sides."""

import numpy as np


def gaussian(mu, n, seed):
    """(data, neighbor) of N(0, 1) against N(mu, 1): mu-GDP, and of the largest delta that this allows."""
    generator = np.random.default_rng(seed)
    return tuple(mu * generator.normal(side * mu, 1, n) - mu**2 / 2 for side in (0, 1))


def laplace(epsilon, n, seed):
    """(data, neighbor) of Laplace noise on a value that moves by 1; ratios are exact, with no telling last bit."""
    generator = np.random.default_rng(seed)
    return tuple(epsilon * np.clip(2 * generator.laplace(side, 1 / epsilon, n) - 1, -1, 1) for side in (0, 1))


def worst_case(epsilon, delta, n, seed):
    """(data, neighbor) of the pair that all (epsilon, delta)-DP pairs are coarser views of; delta 0: randomized response."""
    generator = np.random.default_rng(seed)
    sides = []
    for sign in (-1, 1):
        coin = np.where(generator.random(n) < 1 / (1 + np.exp(-epsilon)), sign, -sign) * epsilon
        sides.append(np.where(generator.random(n) < delta, sign * np.inf, coin))
    return tuple(sides)
