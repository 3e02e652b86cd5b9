"""Gaussian with Laplace noise on one record."""

import pytest

from bandana.privacy_core import GaussianDP, GaussianEvent, LaplaceEvent, account

DELTA = 1e-5


@pytest.mark.parametrize("k", [1, 10])
def test_a_mixture_lies_between_its_gaussians_and_the_sum(k):
    gaussians = account({GaussianEvent(4.0): k}).epsilon_at(DELTA)
    both = account({GaussianEvent(4.0): k, LaplaceEvent(2.0): 1}).epsilon_at(DELTA)
    assert gaussians < both < gaussians + 0.5


def test_a_mixture_below_the_delta_that_the_library_gets_wrong_is_still_bounded():
    mixture = account({GaussianEvent(4.0): 1, LaplaceEvent(2.0): 1})
    gaussian_and_pure = GaussianDP(0.25).epsilon(9e-12) + 0.5
    assert mixture.epsilon_at(1.1e-8) < mixture.epsilon_at(9e-9) < mixture.epsilon_at(9e-12) <= gaussian_and_pure
