"""Curves and conversions against mpmath at 50 digits, at parameters that the reference file does not hold."""

from __future__ import annotations

import math
from functools import cache

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.privacy_core import ZCDP, GaussianDP, GaussianEvent, LaplaceEvent, PrivacyCurve, PureDP, RenyiDP
from bandana.privacy_core.accounting.gaussian import delta_of, epsilon_of, log_delta, mu_of

MUS = [0.01, 0.013, 0.037, 0.07, 0.23, 0.37, 0.77, 1.3, 2.9, 7.3, 13.0, 31.0]
DELTAS = [0.3, 1e-2, 3e-4, 1e-7, 2e-12, 1e-20, 5e-44, 1e-100]


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


def normal_cdf(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def exact_delta(mu, epsilon):
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    return normal_cdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * normal_cdf(-mu / 2 - epsilon / mu)


def exact_epsilon(mu, delta):
    """By the Illinois method on log delta, between 0 and the zCDP bound."""
    target = mp.log(mp.mpf(delta))
    if mp.log(exact_delta(mu, 0)) <= target:
        return mp.mpf(0)
    high = mp.mpf(mu) ** 2 / 2 + mp.mpf(mu) * mp.sqrt(-2 * target)
    return mp.findroot(
        lambda epsilon: mp.log(exact_delta(mu, epsilon)) - target,
        (mp.mpf(0), high),
        solver="anderson",
        tol=1e-35,
        maxsteps=200,
    )


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_of_gaussians(mu, delta):
    exact = exact_epsilon(mu, delta)
    if exact == 0:
        assert epsilon_of(mu, delta) == 0
        return
    assert abs(epsilon_of(mu, delta) / exact - 1) <= 1e-12
    assert GaussianDP(mu).epsilon(delta) == GaussianDP(mu).epsilon_at(delta) == epsilon_of(mu, delta)
    assert abs(PrivacyCurve.of({GaussianEvent(3 / mu): 9}).epsilon(delta) / exact - 1) <= 1e-12


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("distance", [0.0, 0.01, 0.6, 2.2, 5.0, 13.0, 21.0])
def test_delta_of_gaussians(mu, distance):
    """At epsilon = mu^2/2 + distance mu, where delta is about exp(-distance^2 / 2)."""
    epsilon = mu * mu / 2 + distance * mu
    exact = exact_delta(mu, epsilon)
    assert abs(delta_of(mu, epsilon) / exact - 1) <= 1e-12
    assert abs(log_delta(mu, epsilon) - mp.log(exact)) <= 1e-12


@settings(max_examples=300)
@given(st.floats(-6, 2.5).map(lambda e: 10.0**e), st.floats(-1.0, 28.0))
def test_delta_of_any_gaussian(mu, distance):
    epsilon = max(0.0, mu * mu / 2 + distance * mu)
    exact = exact_delta(mu, epsilon)
    assert abs(log_delta(mu, epsilon) - mp.log(exact)) <= 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.02, 0.7, 3.0, 12.0, 90.0])
@pytest.mark.parametrize("delta", [0.9, 0.04, 1e-6, 1e-14, 1e-60])
def test_the_mu_of_a_pair_is_rounded_down(epsilon, delta):
    mu = mu_of(epsilon, delta)
    with mp.workdps(150):
        assert exact_delta(mu, epsilon) <= delta < exact_delta(mu * (1 + 4e-12), epsilon)


@pytest.mark.parametrize("mu", [0.05, 0.9, 4.0, 20.0])
@pytest.mark.parametrize("fpr", [1e-300, 1e-40, 1e-9, 0.02, 0.5, 0.97, 1 - 1e-9])
def test_the_trade_off_of_gaussians(mu, fpr):
    quantile = mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(fpr)) if fpr > 1e-30 else _upper_quantile(fpr)
    exact = normal_cdf(quantile - mp.mpf(mu))
    assert abs(GaussianDP(mu).tradeoff(fpr) / exact - 1) <= 1e-10


@cache
def _upper_quantile(fpr):
    with mp.workdps(400):
        return mp.findroot(lambda x: mp.log(normal_cdf(-x)) - mp.log(mp.mpf(fpr)), math.sqrt(-2 * math.log(fpr)))


def exact_renyi_epsilon(divergence, alpha, delta):
    alpha, delta = mp.mpf(alpha), mp.mpf(delta)
    return divergence + mp.log(1 - 1 / alpha) - mp.log(delta * alpha) / (alpha - 1)


@pytest.mark.parametrize("rho", [1e-6, 3e-4, 0.02, 0.6, 5.0, 400.0])
@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-9, 1e-40])
def test_zcdp_at_its_best_order(rho, delta):
    def at(x):
        alpha = 1 + mp.exp(x)
        return exact_renyi_epsilon(mp.mpf(rho) * alpha, alpha, delta)

    found = ZCDP(rho).epsilon_at(delta)
    grid = min(mp.linspace(-8, 25, 400), key=at)
    best = min(at(x) for x in mp.linspace(grid - 0.1, grid + 0.1, 200))
    assert abs(found - max(best, 0)) <= 1e-6 * max(best, mp.mpf(1e-6))
    if best > 0:
        assert found <= best * (1 + mp.mpf(1e-12)), "no order does better"


@pytest.mark.parametrize("alpha", [1.0001, 1.5, 7.0, 300.0, 1e6])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-4), (2.0, 1e-9), (30.0, 1e-80)])
def test_rdp_converted(alpha, epsilon, delta):
    exact = exact_renyi_epsilon(mp.mpf(epsilon), alpha, delta)
    assert abs(RenyiDP(alpha, epsilon).epsilon_at(delta) - max(exact, 0)) <= 1e-12 * max(1, abs(exact))


def exact_pure_renyi(epsilon, alpha):
    epsilon, alpha = mp.mpf(epsilon), mp.mpf(alpha)
    return mp.log((mp.sinh(alpha * epsilon) - mp.sinh((alpha - 1) * epsilon)) / mp.sinh(epsilon)) / (alpha - 1)


def exact_laplace_renyi(epsilon, alpha):
    epsilon, alpha = mp.mpf(epsilon), mp.mpf(alpha)
    both = alpha * mp.exp((alpha - 1) * epsilon) + (alpha - 1) * mp.exp(-alpha * epsilon)
    return mp.log(both / (2 * alpha - 1)) / (alpha - 1)


orders = st.floats(-6, 3).map(lambda e: 1 + 10.0**e)


@settings(max_examples=300)
@given(st.floats(-8, 2).map(lambda e: 10.0**e), orders)
def test_the_renyi_divergence_of_pure_dp(epsilon, alpha):
    exact = exact_pure_renyi(epsilon, alpha)
    found = PureDP(epsilon).rdp(alpha)
    assert found >= exact * (1 - mp.mpf(1e-10)), "never too small"
    assert found <= exact * (1 + mp.mpf(1e-9)) or epsilon <= 1.001e-4


@settings(max_examples=300)
@given(st.floats(-8, 2).map(lambda e: 10.0**e), orders)
def test_the_renyi_divergence_of_laplace_noise(epsilon, alpha):
    event = LaplaceEvent(1 / epsilon)
    exact = exact_laplace_renyi(event.epsilon, alpha)
    assert event.rdp(alpha) >= exact * (1 - mp.mpf(1e-10)), "never too small"
    assert event.rdp(alpha) <= exact * (1 + mp.mpf(1e-9)) or epsilon <= 1.001e-4
    assert exact <= event.rho * mp.mpf(alpha) * (1 + mp.mpf(1e-12)), "the zCDP parameter covers every order"


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-8, 1e-10), (1e-6, 1e-12), (1e-3, 1e-9), (0.4, 1e-5), (3.0, 0.1), (60.0, 1e-3)]
)
def test_pure_dp_at_delta(epsilon, delta):
    exact = mp.log(mp.exp(mp.mpf(epsilon)) - mp.mpf(delta) * (1 + mp.exp(mp.mpf(epsilon))))
    assert abs(PureDP(epsilon).epsilon_at(delta) / exact - 1) <= 1e-12


@pytest.mark.parametrize("epsilon", [1e-7, 0.03, 0.9, 1.1, 6.0, 40.0])
def test_the_gdp_of_pure_dp(epsilon):
    mu = PureDP(epsilon).gdp().mu
    corner = normal_cdf(-mp.mpf(mu) / 2)
    # The corner in terms of epsilon, ln((1 - x) / x), is far better conditioned than the quantile.
    assert abs(mp.log((1 - corner) / corner) / mp.mpf(epsilon) - 1) <= 1e-12


@pytest.mark.parametrize(("mu", "epsilon"), [(1.0, 1e300), (1e-110, 1.0)])
def test_delta_far_beyond_what_a_number_holds(mu, epsilon):
    assert GaussianDP(mu).delta(epsilon) == 0


@pytest.mark.parametrize("rho", [1e34, 1e60])
def test_zcdp_beyond_all_reason(rho):
    assert ZCDP(rho).epsilon_at(1e-5) == pytest.approx(rho)
