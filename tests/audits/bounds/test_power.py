"""The smallest fault that an audit catches: checked on audits that it was not estimated on."""

import math

import numpy as np
import pytest
from nightly import first

from bandana.audits.bounds.methods import bound
from bandana.audits.bounds.power import _composed_pair, _mu_at, share_caught, smallest_factor_caught
from bandana.privacy_core import GaussianDP
from tests.score_pairs import gaussian, laplace

CASES = [
    ("mu-curve", {}, 0.5, 5000, lambda f, n, seed: gaussian(0.5 * f, n, seed)),
    ("mu-threshold", {}, 1.0, 2000, lambda f, n, seed: gaussian(f, n, seed)),
    ("renyi", {"alpha": 2.0}, 0.5, 5000, lambda f, n, seed: gaussian(math.sqrt(0.5 * f), n, seed)),
    ("rho", {}, 0.5, 2000, lambda f, n, seed: gaussian(math.sqrt(f), n, seed)),
    (
        "epsilon-coins", {"delta": 0.01}, 1.0, 2000,
        lambda f, n, seed: gaussian(GaussianDP.from_epsilon_delta(f, 0.01).mu, n, seed),
    ),
    ("epsilon-coins", {"delta": 0.0}, 1.0, 2000, lambda f, n, seed: laplace(f, n, seed)),
    ("pure-event", {}, 1.0, 3000, lambda f, n, seed: laplace(f, n, seed)),
]  # fmt: skip


@pytest.mark.parametrize(("method", "parameters", "claimed", "n", "draw"), first(1, CASES))
def test_the_factor_is_caught_nearly_always_and_a_third_of_it_is_not(method, parameters, claimed, n, draw):
    """In 40 other audits at least 85 % refute at the factor, and less than 60 % at a third of the way to it."""
    factor = smallest_factor_caught(method, parameters, 0.05, claimed, n)
    assert 1 < factor < 4

    def caught(f):
        found = [bound(method, *draw(f, n, 5000 + seed), 0.05, **parameters) for seed in range(40)]
        return np.mean(np.array(found) > claimed)

    assert caught(factor) >= 0.85
    assert caught(1 + (factor - 1) / 3) < 0.6


def test_what_adds_up_to_a_pure_epsilon_in_parts_needs_a_larger_fault():
    """Seven Laplace releases of a seventh each, drawn one by one: 85 % of 40 audits refute at the factor, few before it."""

    def caught(f):
        drawn = ([laplace(f / 7, 4000, (part, seed)) for part in range(7)] for seed in range(40))
        sides = ([sum(side) for side in zip(*parts, strict=True)] for parts in drawn)
        return np.mean([bound("epsilon-coins", *both, 0.05, delta=0.0) > 1.0 for both in sides])

    whole, parts = (smallest_factor_caught("epsilon-coins", {"delta": 0.0}, 0.05, 1.0, 4000, n_parts=n) for n in (1, 7))
    assert parts - 1 > 2 * (whole - 1)
    assert caught(parts) >= 0.85
    assert caught(1 + (parts - 1) / 3) < 0.6


@pytest.mark.parametrize("n_parts", [2, 9, 3000])
def test_a_composition_on_a_grid_has_the_mean_and_the_variance_of_its_parts(n_parts):
    """A part of e loses e - 1 + exp(-e) nats on average; `np.exp` of the data's ratios has the mean 1."""
    data, neighbor = _composed_pair(1.5, 200_000, np.random.default_rng(0), n_parts)
    lost = n_parts * (1.5 / n_parts - 1 + math.exp(-1.5 / n_parts))
    for side, mean in ((data, -lost), (neighbor, lost)):
        assert side.mean() == pytest.approx(mean, abs=5 * side.std() / math.sqrt(200_000) + 1e-4)
    assert np.exp(data).mean() == pytest.approx(1, abs=5 * np.exp(data).std() / math.sqrt(200_000))
    assert np.abs(data).max() <= 1.5 * (1 + 1e-12)


def test_more_replays_catch_less():
    factors = [smallest_factor_caught("mu-curve", {}, 0.05, 0.5, n, n_trials=10) for n in (1000, 10_000, 100_000)]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] - 1 > 5 * (factors[2] - 1)


@pytest.mark.nightly
def test_a_million_replays_are_not_simulated_but_scaled():
    at_limit, beyond = (smallest_factor_caught("mu-curve", {}, 0.05, 1.0, n, n_trials=10) for n in (200_000, 3_200_000))
    assert beyond - 1 == pytest.approx((at_limit - 1) / 4, rel=1e-6)


def test_a_stricter_level_or_share_needs_more():
    factor = smallest_factor_caught("mu-curve", {}, 0.05, 0.5, 5000)
    assert smallest_factor_caught("mu-curve", {}, 0.001, 0.5, 5000) > factor
    assert smallest_factor_caught("mu-curve", {}, 0.05, 0.5, 5000, share=0.5) < factor
    assert smallest_factor_caught("mu-curve", {}, 0.05, 0.5, 5000) == factor


@pytest.mark.parametrize(("method", "parameters", "mu"), [
    ("mu-curve", {}, 0.5), ("rho", {}, 1.0),
    ("epsilon-coins", {"delta": 0.01}, GaussianDP.from_epsilon_delta(0.5, 0.01).mu),
])  # fmt: skip
def test_a_pair_that_shows_half_needs_twice_the_mu(method, parameters, mu):
    whole = smallest_factor_caught(method, parameters, 0.05, 0.5, 2000, n_trials=10)
    half = smallest_factor_caught(method, parameters, 0.05, 0.5, 2000, n_trials=10, shown=mu / 2)
    if method == "mu-curve":
        assert half == pytest.approx(2 * whole)
    elif method == "rho":
        assert half == pytest.approx(4 * whole)
    else:
        mu = GaussianDP.from_epsilon_delta(0.5 * whole, 0.01).mu
        assert half == pytest.approx(GaussianDP(2 * mu).epsilon(0.01) / 0.5)


def test_a_pair_that_shows_nothing_catches_no_factor():
    assert smallest_factor_caught("mu-curve", {}, 0.05, 0.5, 2000, n_trials=10, shown=0.0) == math.inf


@pytest.mark.nightly
def test_what_no_factor_of_64_shows_is_infinite():
    assert smallest_factor_caught("mu-curve", {}, 0.05, 1e-4, 1000) == math.inf
    assert smallest_factor_caught("epsilon-coins", {"delta": 0.0}, 0.05, 8.0, 500) == math.inf
    assert smallest_factor_caught("hockey-stick", {"epsilon": 1.0}, 0.05, 0.999, 500) == math.inf
    assert 1 < smallest_factor_caught("hockey-stick", {"epsilon": 0.5}, 0.05, 0.2, 5000) < 2


def test_what_is_refused():
    for arguments, words in (
        (("mu", {}, 0.05, 1.0, 1000), "name must be one of"), (("mu-curve", {}, 0.0, 1.0, 1000), "level must"),
        (("mu-curve", {}, 0.05, 0.0, 1000), "claimed must be a finite number above 0"),
        (("mu-curve", {}, 0.05, 1.0, 99), "n must be a whole number of at least 100, got 99"),
        (("mu-curve", {}, 0.05, 1.0, 1000, 1.0), "share must"), (("mu-curve", {}, 0.05, 1.0, 1000, 0.9, 5), "n_trials must"),
        (("mu-curve", {}, 0.05, 1.0, 1000, 0.9, 20, 1.0, 0), "n_parts must be a whole number of at least 1"),
        (("mu-curve", {"delta": 1}, 0.05, 1.0, 1000), "takes no parameter 'delta'"),
        (("renyi", {}, 0.05, 1.0, 1000), "renyi needs the parameter 'alpha'"),
        (("hockey-stick", {}, 0.05, 0.1, 1000), "hockey-stick needs the parameter 'epsilon'"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            smallest_factor_caught(*arguments)


@pytest.mark.parametrize(("method", "parameters", "claimed", "n", "draw"), first(1, CASES))
def test_the_share_caught_is_that_of_other_audits(method, parameters, claimed, n, draw):
    """60 other audits; each share has a standard deviation of 0.08 at most. It may be understated, but not overstated."""
    smallest = smallest_factor_caught(method, parameters, 0.05, claimed, n)
    factors = [1.0, 1 + (smallest - 1) / 2, smallest, min(64.0, 2 * smallest)]
    shares = share_caught(method, parameters, 0.05, claimed, n, smallest, factors)
    assert shares == sorted(shares)
    assert shares[0] <= 0.1
    assert shares[2] >= 0.9
    assert shares[3] == 1.0
    found = np.array([bound(method, *draw(factors[1], n, 9000 + seed), 0.05, **parameters) for seed in range(60)])
    assert np.mean(found > claimed) > shares[1] - 0.25
    assert method != "mu-curve" or abs(np.mean(found > claimed) - shares[1]) < 0.25


def test_the_share_caught_by_a_pair_that_shows_half_needs_twice_the_mu():
    whole, half = (smallest_factor_caught("mu-curve", {}, 0.05, 0.5, 2000, n_trials=10, shown=s) for s in (0.5, 0.25))
    factors = np.linspace(1.0, 1.5, 6)
    shares = share_caught("mu-curve", {}, 0.05, 0.5, 2000, whole, factors)
    assert share_caught("mu-curve", {}, 0.05, 0.5, 2000, half, 2 * factors) == pytest.approx(shares, abs=0.03)


def test_what_share_caught_refuses():
    for smallest, factors, words in ((math.inf, [1.0], "smallest must lie in"), (1.1, [0.5], "factors must lie in")):
        with pytest.raises(ValueError, match=words):
            share_caught("mu-curve", {}, 0.05, 0.5, 2000, smallest, factors)


def test_the_mu_of_a_delta():
    for mu in (0.3, 1.5, 6.0):
        assert _mu_at(float(GaussianDP(mu).delta(0.7)), 0.7) == pytest.approx(mu, rel=1e-6)
    assert _mu_at(1.0, 0.7) == math.inf
