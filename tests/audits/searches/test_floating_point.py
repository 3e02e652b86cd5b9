"""Floating-point noise gives values away by its lowest bits; noise on a grid, or rounded, does not."""

import numpy as np
import pytest
from floating_point import Finding, examine

from bandana.privacy_core import ReproducibleNoise, SecureNoise

N, LEVEL = 100_000, 0.05


def laplace(value, n, seed):
    """A mechanism of epsilon 1."""
    return np.random.default_rng(seed).laplace(value, 1.0, n)


def normal(value, n, seed):
    """Classical noise of (1, 1e-5)-DP."""
    return np.random.default_rng(seed).normal(value, np.sqrt(2 * np.log(1.25e5)), n)


def reproducible(value, n, seed):
    return ReproducibleNoise(np.random.SeedSequence(seed)).add_laplace(np.full(n, value), 1.0, 1.0)


def rounded(sampler):
    return lambda value, n, seed: sampler(value, n, seed).astype(np.float32)


@pytest.mark.parametrize(("sampler", "least"), [(laplace, 8.19), (normal, 6.85), (reproducible, 8.19)])
@pytest.mark.parametrize("seed", range(2))
def test_floating_point_noise_hides_nothing(sampler, least, seed):
    found = examine(sampler, 0.0, 1.0, N, LEVEL, seed)
    assert found.epsilon_of_bits >= least
    assert found.epsilon_of_size <= 1
    assert found.event in ("whether (x - w) + w = x", "sizes and low-order bits together")
    assert found.refutes(8.0 if sampler is not normal else 6.0)


@pytest.mark.parametrize("sampler", [laplace, normal])
def test_rounding_to_single_precision_hides_the_bits(sampler):
    """Epsilon is 1, and a normal law shows less here; a bound above has a probability of 5 %, stated for this seed."""
    found = examine(rounded(sampler), 0.0, 1.0, N, LEVEL, 1)
    assert found.epsilon_of_bits <= 1
    assert not found.refutes(1.0)


def test_secure_noise_hides_its_bits():
    """Its noise cannot be seeded: a bound above epsilon, 1 + 2^-13, has a probability of at most 1e-9."""
    found = examine(lambda value, n, seed: SecureNoise().add_laplace(np.full(n, value), 1.0, 1.0), 0.0, 1.0, N, 1e-9, 0)
    assert 0.5 < found.epsilon_of_size <= 1 + 2**-13
    assert found.epsilon_of_bits <= 1 + 2**-13


@pytest.mark.nightly
def test_secure_gaussian_noise_hides_its_bits():
    """At a level of 1e-9 no event shows much of a normal law whose values lie a fifth of a deviation apart."""
    found = examine(lambda value, n, seed: SecureNoise().add_gaussian(np.full(n, value), 4.8, 4.8), 0.0, 1.0, N, 1e-9, 0)
    assert found.epsilon_of_bits < 1


def test_several_coordinates_give_themselves_away_together():
    found = examine(
        lambda value, n, seed: np.random.default_rng(seed).laplace(value, 2.0, (n, 2)), (0.0, 0.0), (1.0, 1.0), N, LEVEL, 0
    )
    assert found.epsilon_of_bits > 7
    assert "coordinate" in found.event
    assert found.epsilon_of_size <= 1


def test_one_seed_one_finding():
    assert examine(laplace, 0.0, 1.0, 4000, LEVEL, 3) == examine(laplace, 0.0, 1.0, 4000, LEVEL, 3)


def test_what_cannot_be_examined_is_refused():
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 2000, got 1999"):
        examine(laplace, 0.0, 1.0, 1999, LEVEL, 0)
    with pytest.raises(ValueError, match=r"the sampler must return 2000 outputs, got \[5, 5\]"):
        examine(lambda value, n, seed: np.zeros(5), 0.0, 1.0, 2000, LEVEL, 0)
    with pytest.raises(ValueError, match="level"):
        examine(laplace, 0.0, 1.0, 2000, 1.5, 0)
    assert Finding(2.0, 0.5, "bits", 0.05).refutes(1.9)
    assert not Finding(2.0, 0.5, "bits", 0.05).refutes(2.0)
