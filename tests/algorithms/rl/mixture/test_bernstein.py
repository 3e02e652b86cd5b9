"""Bernstein's radius, and the proxy of a variable by its variance and range: by hand, by simulation, where they gain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mixture_models import vtr
from test_ucrl_vtr import MODEL, K

from bandana.algorithms.rl.mixture import bernstein
from bandana.algorithms.rl.mixture.value_targets_numba import proxy


def radius(union, growth, least, product, d=3):
    found = np.full((1, 1), np.inf)
    inverse = np.zeros((1, 1, d, d))
    inverse[0, 0, 0, 0] = 1 / least
    bernstein.shorten(
        found, np.array([union]), np.array([[growth]]), inverse, np.array([product]), bernstein.CHOICES, bernstein.BALL
    )
    return float(found[0, 0])


def test_with_a_large_least_eigenvalue_it_is_the_radius_of_1_sub_gaussian_noise():
    assert radius(5.0, 8.0, 1e12, 1.0) == pytest.approx(math.sqrt(2 * 5.0 + 8.0), rel=0.04)


def test_by_hand():
    """One choice b = 2, phi = (e^2 - 3) / 4: both branches, and none where the ball holds no mass."""
    phi = (math.exp(2) - 3) / 4
    choice = np.array([(2.0, phi)])

    def found(least):
        radii = np.full((1, 1), 1e9)
        inverse = np.eye(1)[None, None] / least
        bernstein.shorten(radii, np.array([4.0]), np.array([[1.0]]), inverse, np.array([1.0]), choice, 0.25)
        return radii[0, 0]

    for least in (1e4, 30.0):
        log = 4.0 + 0.5 * (1.0 + math.log(2 * phi)) - math.log(1 - 1 / (2 * phi * least * 0.25))
        most = 2 * phi * 0.75 * 2 * math.sqrt(least)
        expected = 2 * math.sqrt(phi * log) if most > 2 * math.sqrt(phi * log) else 2 * phi * log / most + most / 2
        assert found(least) == pytest.approx(expected)
    assert found(0.1) == 1e9


@pytest.mark.parametrize("ridge", [1.0, 300.0])
def test_sums_stay_within_it_at_all_times(ridge):
    """Skewed variables of variance 1 and range 5, in three dimensions: of 2,000 runs at most 5 % may leave it, none does."""
    rng, n, t, d = np.random.default_rng(0), 2000, 400, 3
    chance = (1 - math.sqrt(1 - 4 / 25)) / 2  # of the upper value: 25 q (1 - q) = 1
    x = rng.standard_normal((n, t, d))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    e = 5 * ((rng.random((n, t)) < chance) - chance)
    left, gram, total = np.zeros(n, dtype=bool), ridge * np.tile(np.eye(d), (n, 1, 1)), np.zeros((n, d))
    for step in range(t):
        gram += x[:, step, :, None] * x[:, step, None, :]
        total += e[:, step, None] * x[:, step]
        if step % 20 == 19:
            inverse = np.linalg.inv(gram)
            norm = np.sqrt(np.einsum("ri,rij,rj->r", total, inverse, total))
            growth = np.linalg.slogdet(gram)[1] - d * math.log(ridge)
            bound = np.full((n, 1), np.inf)
            bernstein.shorten(
                bound, np.array([math.log(20)]), growth[:, None], inverse[:, None], np.array([5.0]), bernstein.CHOICES,
                bernstein.BALL,
            )  # fmt: skip
            left |= norm > bound[:, 0]
    assert left.mean() <= 0.05
    assert ridge == 1.0 or float(np.max(bound)) < 5 / 2 * math.sqrt(2 * math.log(20) + float(growth.max()))


@pytest.mark.parametrize("span", [0.5, 3.0])
def test_no_variable_has_a_larger_moment_than_its_proxy(span):
    """Random variables with three values in the range: log E exp(t X) <= proxy t^2 / 2."""
    rng, t = np.random.default_rng(1), np.linspace(-30, 30, 121) / span
    for _ in range(2000):
        values, weights = span * (2 * rng.random(3) - 1), rng.dirichlet(np.full(3, 0.3))
        centered = values - weights @ values
        log = np.log(np.exp(t[:, None] * centered) @ weights)
        assert (log <= proxy(weights @ centered**2, span) * t**2 / 2 + 1e-12).all()


def test_the_proxy_grows_with_the_variance_and_lies_between_it_and_the_range():
    variances = np.linspace(0, 4.0, 1001)
    found = np.array([proxy(v, 2.0) for v in variances])
    assert found[0] == 0.0
    assert found[-1] == proxy(5.0, 2.0) == 4.0
    assert (np.diff(found) > 0).all()
    assert (found >= variances).all()
    w = math.sqrt(0.5)
    assert proxy(2.0, 2.0) == pytest.approx(4 * w / math.atanh(w))


def test_variances_shorten_the_width_where_noise_hides_all_directions():
    """At epsilon 1 the shift is large: the chance part falls below that of Hoeffding's width, and what noise adds stays."""
    algorithm = vtr("joint tight", MODEL, K, is_plus=True, parts={"weights": "variance"})
    _, released = algorithm.init(1)
    algorithm.learn(released, np.zeros((1, 4, 3, 4)), 5)
    added = algorithm.shift(5).added
    log_det = 3 * np.log(added)[None]
    hoeffding = algorithm.regression.radius(log_det, 5)[0]
    shift = algorithm.shift(5)
    by_noise = np.sqrt(3) * np.sqrt(shift.largest) + algorithm.regression.bounds(5)[1] / np.sqrt(shift.least)
    assert (released.width[0, :2] < hoeffding[:2]).all()
    assert (released.width[0, :2] > by_noise[:2]).all()
    assert released.width[0, 2:] == pytest.approx(hoeffding[2:])
