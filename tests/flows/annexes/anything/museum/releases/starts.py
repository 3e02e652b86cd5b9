"""Releases that answer otherwise at first, or alone, than later, or among many."""

from __future__ import annotations

import numpy as np
from exhibits import bit, broken, honest, noisy
from numpy.random import default_rng

_calls = {"cold": 0, "warm": 0, "cached": 0}


@broken(lambda output: output == 1.0, first=True)
def exact_at_first(data, seed):
    _calls["cold"] += 1
    return float(bit(data)) if _calls["cold"] == 1 else noisy(data, default_rng(seed))


@broken(lambda output: output == 1.0, first=True)
def exact_at_first_without_a_seed(data):
    _calls["warm"] += 1
    return float(bit(data)) if _calls["warm"] == 1 else noisy(data, default_rng())


@broken(lambda output: output[0] == 1.0)
def exact_if_alone(data, seeds):
    noise = np.array([default_rng(seed).laplace() for seed in np.atleast_1d(seeds)])
    return bit(data) + (noise if len(noise) > 1 else 0 * noise)


@broken(lambda output: output[0] == 1.0)
def exact_in_a_single_run(data, seed, n_runs=1):
    return bit(data) + default_rng(seed).laplace(size=n_runs) * (n_runs > 1)


@honest
def slow_at_first(data, seed):
    if not _calls["cached"]:
        _calls["cached"] = sum(range(100_000))
    return noisy(data, default_rng(seed))


@honest
def many_at_once(data, seeds):
    return bit(data) + np.array([default_rng(seed).laplace() for seed in np.atleast_1d(seeds)])


@honest
def many_runs_of_a_size(data, seed, n_runs=1):
    return bit(data) + default_rng(seed).laplace(size=n_runs)
