"""The noise has the distribution and scale that its cost assumes; false-alarm probability 1e-20 a test."""

from __future__ import annotations

import numpy as np
import pytest
from noise_fit import N_SAMPLES, is_distributed_as
from scipy import stats

from bandana.privacy_core import Exact, Gaussian, Laplace, ReproducibleNoise

SHAPES = [(N_SAMPLES,), (N_SAMPLES // 100, 100), (N_SAMPLES // 50, 5, 10), (1, N_SAMPLES)]
CASES = [
    (Gaussian(1.0, 1.0), stats.norm(scale=1.0)),
    (Gaussian(2.0, 0.75), stats.norm(scale=1.5)),
    (Gaussian(0.25, 40.0).scaled(2.0), stats.norm(scale=20.0)),
    (Laplace(1.0, 1.0), stats.laplace(scale=1.0)),
    (Laplace(3.0, 0.5), stats.laplace(scale=1.5)),
]


def noise_of(mechanism, shape, seed=5):
    value = np.linspace(-3.0, 3.0, N_SAMPLES).reshape(shape)
    kept = value.copy()
    output = mechanism.draw(ReproducibleNoise(np.random.SeedSequence(seed)), value)
    assert np.array_equal(value, kept), "the exact value must not be touched"
    assert output.shape == shape
    return output - value


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("mechanism", "distribution"), CASES)
def test_the_scale_is_right_and_30_percent_off_is_seen(mechanism, distribution, shape):
    noise = noise_of(mechanism, shape)
    assert is_distributed_as(noise, distribution)
    assert not is_distributed_as(noise * 1.3, distribution)
    assert not is_distributed_as(noise * 0.7, distribution)


@pytest.mark.parametrize("mechanism", [Gaussian(1.0, 1.0), Laplace(1.0, 1.0)])
def test_coordinates_are_independent(mechanism):
    noise = noise_of(mechanism, (N_SAMPLES // 4, 4))
    correlation = np.corrcoef(noise.T) - np.eye(4)
    # Each entry is near N(0, 1 / 25000): 10 standard deviations, false alarm below 1e-21 for all six.
    assert np.abs(correlation).max() < 10 / np.sqrt(N_SAMPLES // 4)


def test_the_same_seed_gives_the_same_noise():
    first, again, other = (noise_of(Gaussian(1.0, 1.0), (N_SAMPLES,), seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.isclose(first, other).mean() > 0.01


def test_exact_draws_nothing():
    value = np.arange(6.0).reshape(2, 3)
    output = Exact().draw(None, value)  # type: ignore[arg-type]  # it must not ask for noise
    assert np.array_equal(output, value)
    assert output is not value


class TestTheHelper:
    normal = stats.norm()

    def samples(self):
        return np.random.default_rng(3).standard_normal(N_SAMPLES)

    def test_keeps_the_truth(self):
        assert is_distributed_as(self.samples(), self.normal)

    def test_sees_a_shift(self):
        assert not is_distributed_as(self.samples() + 0.1, self.normal)

    def test_sees_another_family_of_the_same_deviation(self):
        laplace = np.random.default_rng(3).laplace(scale=np.sqrt(0.5), size=N_SAMPLES)
        assert not is_distributed_as(laplace, self.normal)

    def test_sees_no_noise(self):
        assert not is_distributed_as(np.zeros(N_SAMPLES), self.normal)

    def test_refuses_a_sample_with_other_power(self):
        with pytest.raises(ValueError, match="got 10"):
            is_distributed_as(np.zeros(10), self.normal)
