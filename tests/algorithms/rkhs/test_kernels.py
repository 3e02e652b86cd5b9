"""Kernels against their definitions, and their spectra against Bochner's theorem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gamma, kv

from bandana.algorithms.rkhs.kernels import (
    Additive,
    Linear,
    Matern,
    ProductMatern,
    SquaredExponential,
    checked_points,
    curvature,
    gram,
)

STATIONARY = [
    SquaredExponential(0.7), Matern(0.5, 0.7), Matern(1.5, 0.7), Matern(2.5, 0.7), ProductMatern(0.5, 0.4),
    ProductMatern(1.5, 0.4), ProductMatern(2.5, 0.4), Additive.of_coordinates(SquaredExponential(0.3), 3),
    Additive(Matern(1.5, 0.5), ((0, 2), (1,))),
]  # fmt: skip
ON_A_LINE = [SquaredExponential(0.7), Matern(0.5, 0.7), Matern(1.5, 0.7), Matern(2.5, 0.7), ProductMatern(1.5, 0.7)]
seeds = st.integers(0, 10**6)


def points_of(seed, n, dimension):
    return np.random.default_rng(seed).uniform(-1, 1, (n, dimension))


@pytest.mark.parametrize("kernel", STATIONARY, ids=str)
@given(seed=seeds)
def test_a_kernel_is_1_at_a_point_symmetric_and_positive_definite(kernel, seed):
    x = points_of(seed, 12, 3)
    matrix = gram(kernel, x, x)
    assert matrix.diagonal().tolist() == pytest.approx([1.0] * 12, abs=1e-15)
    assert np.array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix).min() > -1e-12
    assert kernel(x[:, None], x[None]) == pytest.approx(matrix)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_matern_kernel_is_the_bessel_function_of_its_definition(nu):
    r = np.linspace(0.01, 4, 50)
    s = np.sqrt(2 * nu) * r / 0.7
    expected = 2 ** (1 - nu) / gamma(nu) * s**nu * kv(nu, s)
    assert Matern(nu, 0.7)(r[:, None], np.zeros(1)) == pytest.approx(expected, rel=1e-12)


def test_values_by_hand():
    x, y = np.array([0.3, 0.0]), np.array([0.0, 0.4])
    assert SquaredExponential(0.5)(x, y) == pytest.approx(np.exp(-0.5))
    assert Matern(0.5, 0.5)(x, y) == pytest.approx(np.exp(-1))
    assert ProductMatern(0.5, 0.5)(x, y) == pytest.approx(np.exp(-1.4))
    assert Linear(2.0)(np.array([1.0, 1.0]), np.array([1.0, -3.0])) == pytest.approx(-0.5)
    assert Additive.of_coordinates(Matern(0.5, 0.1), 2)(x, y) == pytest.approx((np.exp(-3) + np.exp(-4)) / 2)


@pytest.mark.parametrize("kernel", ON_A_LINE, ids=str)
@pytest.mark.parametrize("distance", [0.0, 0.3, 1.1])
def test_the_kernel_is_the_mean_cosine_over_its_spectrum(kernel, distance):
    def density(w):
        return float(kernel.spectral_density(np.array([w])))

    turning = {"weight": "cos", "wvar": distance} if distance else {}
    value = 2 * quad(density, 0, np.inf, **turning)[0]
    assert value == pytest.approx(float(kernel(np.array([distance]), np.zeros(1))), abs=1e-7)


@pytest.mark.parametrize("kernel", [SquaredExponential(0.7), ProductMatern(1.5, 0.3)], ids=str)
def test_a_product_spectrum_is_the_product_of_those_on_lines(kernel):
    w = np.random.default_rng(0).normal(0, 2, (20, 3))
    lines = [kernel.spectral_density(w[:, [j]]) for j in range(3)]
    assert kernel.spectral_density(w) == pytest.approx(np.prod(lines, axis=0), rel=1e-12)


@pytest.mark.parametrize("kernel", ON_A_LINE, ids=str)
def test_no_second_difference_exceeds_the_curvature(kernel):
    h = 1e-4
    t = np.arange(0, 20001) * h
    k = kernel(t[:, None], np.zeros(1))
    seen = np.abs(np.diff(k, 2)).max() / h**2
    assert seen <= curvature(kernel) * (1 + 1e-6)
    assert seen >= 0.9 * curvature(kernel)


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: SquaredExponential(0.0), "lengthscale must be a finite number above 0, got 0.0"),
        (lambda: Matern(1.0, 1.0), "smoothness must be one of 0.5, 1.5, 2.5, got 1.0"),
        (lambda: ProductMatern(1.5, float("nan")), "lengthscale must be .* got nan"),
        (lambda: Linear(-1.0), "lengthscale must be .* got -1.0"),
        (lambda: Additive(SquaredExponential(1.0), ()), "groups must be tuples of coordinates"),
        (lambda: Additive(SquaredExponential(1.0), ((0, -1),)), "groups must be tuples of coordinates"),
        (lambda: Additive(SquaredExponential(1.0), ((0, 0),)), "each coordinate once"),
        (lambda: Additive(Additive(SquaredExponential(1.0), ((0,),)), ((0,),)), "not additive itself"),
        (lambda: Matern(1.5, 1.0).spectral_density(np.zeros(2)), "no product spectrum in 2 dimensions: use a ProductMatern"),
        (lambda: Linear(1.0).spectral_density(np.zeros(1)), "not stationary"),
        (lambda: Additive(SquaredExponential(1.0), ((0,),)).spectral_density(np.zeros(1)), "no product spectrum"),
        (
            lambda: Additive(SquaredExponential(1.0), ((0,), (2,)))(np.zeros(2), np.zeros(2)),
            "points must have 3 coordinates",
        ),
        (lambda: checked_points(np.zeros((2, 3)), 2, -1, 1), r"shape \(..., 2\)"),
        (lambda: checked_points([[0.0, np.nan]], 2, -1, 1), r"finite, got nan at index \(0, 1\)"),
        (lambda: checked_points([[0.0, np.inf]], 2, -1, 1), r"finite, got inf at index \(0, 1\)"),
        (
            lambda: checked_points([[0.0, 0.0], [0.0, 1.5]], 2, -1, 1),
            r"domain \[-1, 1\]\^2, got 1.5 at index \(1, 1\): scale",
        ),
        (lambda: curvature(Linear(1.0)), "only of a squared exponential or Matern kernel"),
    ],
)
def test_what_does_not_fit_is_refused(build, told):
    with pytest.raises(ValueError, match=told):
        build()
