"""Every guarantee is monotone, converts only in the true direction, and is never less private than asked."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandana.privacy_core import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    NoPrivacy,
    PureDP,
    RenyiDP,
    account,
    calibrate,
)

mus = st.floats(1e-3, 20.0)
deltas = st.floats(-20, -0.1).map(lambda exponent: 10.0**exponent)
epsilons = st.floats(1e-3, 50.0)
alphas = st.floats(1.01, 200.0)
factors = st.floats(1.001, 10.0)
counts = st.integers(1, 5000)


@given(mus, deltas, factors)
def test_epsilon_grows_with_mu_and_falls_with_delta(mu, delta, factor):
    epsilon = GaussianDP(mu).epsilon(delta)
    assert GaussianDP(mu * factor).epsilon(delta) >= epsilon
    assert GaussianDP(mu).epsilon(delta / factor) >= epsilon
    if epsilon > 0:
        assert GaussianDP(mu * factor).epsilon(delta) > epsilon
        assert GaussianDP(mu).epsilon(delta / factor) > epsilon


@given(mus, epsilons, factors)
def test_delta_grows_with_mu_and_falls_with_epsilon(mu, epsilon, factor):
    delta = GaussianDP(mu).delta(epsilon)
    assert 0 <= delta <= 1
    assert GaussianDP(mu * factor).delta(epsilon) >= delta
    assert GaussianDP(mu).delta(epsilon * factor) <= delta


@given(epsilons, deltas, factors)
def test_mu_grows_with_epsilon_and_delta(epsilon, delta, factor):
    mu = GaussianDP.from_epsilon_delta(epsilon, delta).mu
    assert GaussianDP.from_epsilon_delta(epsilon * factor, delta).mu > mu
    assert GaussianDP.from_epsilon_delta(epsilon, min(delta * factor, 0.9)).mu > mu or delta * factor >= 0.9


@given(st.just(0.0) | epsilons, deltas)
def test_a_pair_is_never_exceeded_and_nearly_met(epsilon, delta):
    guarantee = GaussianDP.from_epsilon_delta(epsilon, delta)
    assert guarantee.epsilon(delta) <= epsilon
    assert guarantee.delta(epsilon) <= delta
    assert guarantee.delta(epsilon) >= delta * (1 - 1e-7)


@given(mus, deltas)
def test_epsilon_and_delta_are_inverse(mu, delta):
    epsilon = GaussianDP(mu).epsilon(delta)
    if epsilon > 0:
        assert GaussianDP(mu).delta(epsilon) == pytest.approx(delta, rel=1e-9)
    else:
        assert GaussianDP(mu).delta(0.0) <= delta * (1 + 1e-9)


@given(mus, deltas, alphas)
def test_conversions_never_promise_more_than_the_exact_curve(mu, delta, alpha):
    exact = GaussianDP(mu)
    assert exact.zcdp().epsilon_at(delta) >= exact.epsilon(delta) * (1 - 1e-12)
    assert RenyiDP(alpha, exact.rdp(alpha)).epsilon_at(delta) >= exact.zcdp().epsilon_at(delta) - 1e-9
    assert GaussianDP.from_renyi(alpha, exact.rdp(alpha)).mu == pytest.approx(mu, rel=1e-14)
    assert exact.zcdp().rdp(alpha) == pytest.approx(exact.rdp(alpha), rel=1e-14)


@given(st.floats(1e-3, 20.0), st.floats(0.0, 0.99))
def test_pure_dp_implies_its_gdp_and_its_zcdp(epsilon, delta):
    pure = PureDP(epsilon)
    assert pure.epsilon_at(delta) <= epsilon
    if delta > 0:
        assert pure.gdp().epsilon(delta) >= pure.epsilon_at(delta) - 1e-9
    randomized_response = 1 / (1 + math.exp(epsilon))
    assert pure.gdp().tradeoff(randomized_response) == pytest.approx(randomized_response, rel=1e-9)
    assert pure.zcdp().rho == pytest.approx(epsilon**2 / 2)


@pytest.mark.parametrize("epsilon", [1e-20, 1e-9, 0.5, 0.999999999, 1.0, 5.0, 30.0, 800.0])
def test_the_gdp_of_pure_dp_at_every_size(epsilon):
    mu = PureDP(epsilon).gdp().mu
    # erf(mu / sqrt 8) = tanh(epsilon / 2); near 0 mu = epsilon sqrt(pi / 2), and far off mu^2 / 8 is epsilon.
    if epsilon <= 1e-9:
        assert mu == pytest.approx(epsilon * math.sqrt(math.pi / 2), rel=1e-12)
    elif epsilon <= 30:
        assert math.erfc(mu / math.sqrt(8)) == pytest.approx(2 / (1 + math.exp(epsilon)), rel=1e-9)
    else:
        assert 0.98 * epsilon < mu**2 / 8 < epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_gdp_of_pure_dp_lies_below_its_two_lines(epsilon):
    fpr = np.linspace(0, 1, 2001)
    lines = np.maximum(1 - math.exp(epsilon) * fpr, math.exp(-epsilon) * (1 - fpr))
    assert (PureDP(epsilon).gdp().tradeoff(fpr) <= lines + 1e-12).all()
    assert (GaussianDP(epsilon).tradeoff(fpr) > lines + 1e-6).any(), "mu = epsilon would promise too much"


@given(mus, counts)
def test_calibrated_gdp(mu, releases):
    found = account({GaussianEvent(calibrate(GaussianDP(mu), releases)): releases})
    assert mu * (1 - 1e-11) <= found.mu <= mu


@given(st.floats(1e-4, 50.0), counts)
def test_calibrated_zcdp(rho, releases):
    found = account({GaussianEvent(calibrate(ZCDP(rho), releases)): releases}).zcdp().rho
    assert rho * (1 - 1e-11) <= found <= rho


@given(alphas, epsilons, counts)
def test_calibrated_renyi(alpha, epsilon, releases):
    found = account({GaussianEvent(calibrate(RenyiDP(alpha, epsilon), releases)): releases}).rdp(alpha)
    assert epsilon * (1 - 1e-11) <= found <= epsilon


@given(epsilons, deltas, counts)
def test_calibrated_approximate_dp(epsilon, delta, releases):
    found = account({GaussianEvent(calibrate(ApproxDP(epsilon, delta), releases)): releases})
    assert found.epsilon(delta) <= epsilon
    assert found.delta(epsilon) >= delta * (1 - 1e-7)


@given(epsilons, counts)
def test_calibrated_pure_dp(epsilon, releases):
    found = account({LaplaceEvent(calibrate(PureDP(epsilon), releases)): releases}).epsilon
    assert epsilon * (1 - 1e-11) <= found <= epsilon


@given(mus)
def test_tradeoff_is_convex_decreasing_and_symmetric(mu):
    fpr = np.linspace(0, 1, 401)
    fnr = GaussianDP(mu).tradeoff(fpr)
    assert fnr[0] == 1
    assert fnr[-1] == 0
    assert (np.diff(fnr) <= 0).all()
    assert (np.diff(fnr, 2) >= -1e-12).all()
    assert (fnr <= 1 - fpr + 1e-15).all()
    inside = (fnr > 1e-12) & (fnr < 1 - 1e-12)
    assert GaussianDP(mu).tradeoff(fnr[inside]) == pytest.approx(fpr[inside], abs=1e-9)


def test_tradeoff_at_a_tiny_false_positive_rate():
    # Phi(-Phi^-1(1e-20) - 12) = Phi(-2.7377...): a form with 1 - 1e-20 would answer 1.
    assert GaussianDP(12.0).tradeoff(1e-20) == pytest.approx(0.003093, rel=1e-3)


@given(st.permutations([(GaussianEvent(1.0), 2), (GaussianEvent(3.0), 5), (GaussianEvent(0.7), 1)]))
def test_the_order_of_composition_does_not_matter(events):
    # 2 * 1 + 5 / 9 + 1 / 0.49
    assert account(dict(events)).mu == pytest.approx(math.sqrt(2 + 5 / 9 + 1 / 0.49), rel=1e-14)


def test_the_order_of_a_mixture_does_not_matter():
    first = account({GaussianEvent(1.0): 2, LaplaceEvent(3.0): 1})
    assert first == account({LaplaceEvent(3.0): 1, GaussianEvent(1.0): 2})


def test_what_is_released_as_it_is_has_no_privacy():
    assert account({GaussianEvent(1.0): 1, NonPrivateEvent(): 1}) == NoPrivacy()
    assert NoPrivacy().epsilon_at(1e-5) == math.inf
    assert account({}) is None


def test_approximate_dp_says_nothing_below_its_delta():
    pair = ApproxDP(1.0, 1e-5)
    assert pair.epsilon_at(1e-5) == 1.0
    # Its trade-off function has the corner (1 - delta0) / (1 + e^epsilon0), on both axes.
    corner = (1 - 1e-5) / (1 + math.e)
    weaker = pair.epsilon_at(1e-3)
    assert weaker < 1.0
    assert 1 - corner - math.exp(weaker) * corner == pytest.approx(1e-3, rel=1e-9)
    assert pair.epsilon_at(1e-6) == math.inf
