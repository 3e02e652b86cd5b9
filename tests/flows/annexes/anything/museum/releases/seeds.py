"""Releases that show where their noise comes from, or draw it from too few seeds."""

from __future__ import annotations

import random
import secrets
from functools import cache

import numpy as np
from exhibits import bit, broken, honest, noisy
from numpy.random import default_rng


def recomputed(data, seed):
    return noisy(data, default_rng(seed))


@broken(lambda output: output["mean"] == recomputed([1.0], output["seed"]))
def shows_its_seed(data, seed):
    return {"mean": noisy(data, default_rng(seed)), "seed": seed}


@broken(lambda output: output["mean"] == recomputed([1.0], int(output["run"].removeprefix("run-"))))
def names_itself_by_its_seed(data, seed):
    return {"mean": noisy(data, default_rng(seed)), "run": f"run-{seed}"}


@broken(lambda output: output[0] == recomputed([1.0], output[1]))
def shows_a_seed_of_its_own(data):
    seed = secrets.randbits(64)
    return [noisy(data, default_rng(seed)), seed]


@broken(lambda output: abs(output[0] - 1 - _laplace_before(output[1])) < 1e-9)
def shows_its_generator(data, seed):
    rng = default_rng(seed)
    return [noisy(data, rng), rng]


def _laplace_before(rng):
    """What the generator drew last."""
    before = default_rng(0)
    before.bit_generator.state = rng.bit_generator.state
    before.bit_generator.advance(2**128 - 1)
    return before.laplace()


@broken(lambda output: output["mean"] == _from_state(output["state"]))
def shows_a_state(data, seed):
    rng = random.Random(seed)
    state = rng.getstate()
    return {"mean": bit(data) + rng.expovariate(1.0) - rng.expovariate(1.0), "state": state}


def _from_state(state):
    rng = random.Random()
    rng.setstate(state)
    return 1 + rng.expovariate(1.0) - rng.expovariate(1.0)


@cache
def _near_16():
    """All noise of seeds of 16 bits, as a difference from 1 shows it."""
    return {1.0 + float(np.random.default_rng(seed).laplace()) - 1.0 for seed in range(2**16)}


@broken(lambda output: output - 1.0 in _near_16())
def seeds_of_16_bits(data, seed):
    return noisy(data, default_rng(seed % 2**16))


def _quantile(uniform):
    return float(-np.sign(uniform - 0.5) * np.log1p(-2 * abs(uniform - 0.5)))


@broken(lambda output: _is_of_20_bits(output - 1.0))
def uniforms_of_20_bits(data, seed):
    return bit(data) + _quantile((random.Random(seed).getrandbits(20) + 0.5) / 2**20)


def _is_of_20_bits(noise):
    uniform = 0.5 + np.sign(noise) * -np.expm1(-abs(noise)) / 2
    return abs(uniform * 2**20 - 0.5 - round(uniform * 2**20 - 0.5)) < 1e-7


@broken(lambda output: abs(output[0] - output[1] - 1) < 1e-9)
def noise_used_twice(data, seed):
    noise = float(default_rng(seed).laplace())
    return [bit(data) + noise, noise]


@honest
def shows_a_public_seed(data, seed):
    """A random projection, whose seed is public; the noise comes from elsewhere."""
    children = np.random.SeedSequence(seed).spawn(2)
    public = int(default_rng(children[0]).integers(2**31))
    sign = 1 if default_rng(public).random() < 0.5 else -1
    return {"projected": sign * bit(data) + float(default_rng(children[1]).laplace()), "projection": public}


@honest
def wide_counts(data, seed):
    return bit(data) + round(float(default_rng(seed).laplace(0, 1000)))


@honest
def geometric(data, seed):
    rng = default_rng(seed)
    return int(bit(data) + rng.geometric(1 - np.exp(-1)) - rng.geometric(1 - np.exp(-1)))


@honest
def noise_from_the_system(data):
    return noisy(data, default_rng())


@honest
def counts_of_runs(data, seed):
    """A whole number that is large and no seed."""
    rng = default_rng(seed)
    return {"mean": noisy(data, rng), "run": int(rng.integers(2**40))}
