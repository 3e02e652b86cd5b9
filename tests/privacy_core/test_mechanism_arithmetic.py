"""Densities, distances and scales of the mechanisms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bandana.privacy_core import Exact, Gaussian, GaussianEvent, Laplace, LaplaceEvent, NonPrivateEvent

SHAPES = [(7,), (7, 1), (7, 3), (4, 3, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("mechanism", "density"),
    [(Gaussian(2.0, 0.7), stats.norm(scale=1.4)), (Laplace(0.5, 3.0), stats.laplace(scale=1.5))],
)
def test_log_density_ratio(mechanism, density, shape):
    rng = np.random.default_rng(11)
    output, value, neighbor = rng.normal(size=(3, *shape))
    expected = density.logpdf(output - neighbor) - density.logpdf(output - value)
    expected = expected.reshape(shape[0], -1).sum(axis=1)
    found = mechanism.log_density_ratio(output, value, neighbor)
    assert found.shape == (shape[0],)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("mechanism", [Gaussian(1.0, 2.0), Laplace(1.0, 2.0)])
def test_log_density_ratio_of_equal_values_is_zero(mechanism):
    value = np.random.default_rng(2).normal(size=(5, 3))
    assert (mechanism.log_density_ratio(value + 1.7, value, value.copy()) == 0).all()


def test_distances():
    value = np.zeros((2, 2, 2))
    neighbor = np.array([[[3.0, 0.0], [0.0, -4.0]], [[1.0, -1.0], [1.0, -1.0]]])
    assert Gaussian(1.0, 1.0).change(value, neighbor).tolist() == [5.0, 2.0]
    assert Laplace(1.0, 1.0).change(value, neighbor).tolist() == [7.0, 4.0]
    assert Exact().change(value, neighbor).tolist() == [5.0, 2.0]
    assert Gaussian(1.0, 1.0).change(np.array([1.0, -2.0]), np.array([0.5, 2.0])).tolist() == [0.5, 4.0]


def test_scale_is_sensitivity_times_multiplier_and_the_multiplier_alone_is_the_price():
    assert Gaussian(3.0, 0.5).scale == 1.5
    assert Laplace(3.0, 0.5).scale == 1.5
    assert Gaussian(3.0, 0.5).sensitivity == Laplace(3.0, 0.5).sensitivity == 3.0
    assert Gaussian(3.0, 0.5).event == Gaussian(7.0, 0.5).event == GaussianEvent(0.5)
    assert Laplace(3.0, 0.5).event == LaplaceEvent(0.5)
    assert GaussianEvent(0.5).mu == 2.0
    assert GaussianEvent(0.5).rho == 2.0
    assert LaplaceEvent(0.5).epsilon == 2.0
    assert LaplaceEvent(0.5).rho == 2.0
    assert NonPrivateEvent().rho == math.inf


def test_scaled():
    more = Gaussian(3.0, 0.5).scaled(4.0)
    assert more == Gaussian(3.0, 2.0)
    assert more.event.mu == Gaussian(3.0, 0.5).event.mu / 4
    with pytest.raises(ValueError, match="noise_multiplier"):
        Gaussian(3.0, 0.5).scaled(0.0)


def test_exact():
    assert Exact().scale == 0.0
    assert Exact().sensitivity == math.inf
    assert Exact().event == NonPrivateEvent()
    assert Exact().scaled(3.0) == Exact()
    with pytest.raises(ValueError, match="factor"):
        Exact().scaled(-1.0)
    value = np.array([[1.0, 2.0], [1.0, 2.0]])
    neighbor = np.array([[1.0, 2.0], [1.0, 2.5]])
    assert Exact().log_density_ratio(value, value, neighbor).tolist() == [0.0, -math.inf]
