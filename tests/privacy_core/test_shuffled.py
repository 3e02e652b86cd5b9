"""Counts of shuffled bits: their law, their likelihood ratio, and what the accountant says of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom, chisquare

from bandana.privacy_core import (
    ApproxDP,
    GaussianDP,
    GaussianEvent,
    LiveLedger,
    NearlyGaussianEvent,
    NoNoise,
    PhaseSum,
    PrivacyCurve,
    ReproducibleNoise,
    SecureNoise,
    ShuffledBits,
    account,
)
from bandana.privacy_core.noise.shuffled import bits_for, unit_mu


def exact_delta(n_bits, changes, epsilon):
    """Hockey-stick divergence of products of binomial laws and their shifts, by the definition: sum of (P - e^eps Q)+."""
    largest = max(map(abs, changes))
    z = np.arange(-largest, n_bits + largest + 1)
    first = second = np.ones(1)
    for k in changes:
        first = np.multiply.outer(first, binom.pmf(z, n_bits, 0.5)).ravel()
        second = np.multiply.outer(second, binom.pmf(z - k, n_bits, 0.5)).ravel()
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@pytest.mark.parametrize(("n_bits", "changes"), [(200, (4,)), (200, (-1, 3)), (150, (2, -2)), (60, (1, 1, -1))])
def test_the_account_bounds_the_exact_divergence(n_bits, changes):
    """Every epsilon from 0 to 4; at 0 it is within 10 % also for 60 bits, whose law is coarse."""
    slack, norm = 1e-6, math.sqrt(sum(k * k for k in changes))
    event = ShuffledBits(norm, max(map(abs, changes)), n_bits, len(changes), slack).event
    curve = PrivacyCurve.of({event: 1})
    for epsilon in np.linspace(0, 4, 17):
        exact = exact_delta(n_bits, changes, epsilon)
        assert exact <= curve.delta(float(epsilon)) * (1 + 1e-9)
        assert exact <= exact_delta(n_bits, [-k for k in changes], epsilon) * (1 + 1e-9) + 1e-15, "both directions are alike"
    assert exact_delta(n_bits, changes, 0.0) > 0.9 * curve.delta(0.0), "and the bound is not loose"


def test_the_unit_of_mu_by_hand():
    """Four bits, a change of 1, a tail of 0.13: A = {1, ..., 4}, P = 4 6 4 1, Q = 1 4 6 4 over 15; the best c is 3 or 4."""
    by_hand = max(ndtri(4 / 15) - ndtri(1 / 15), ndtri(10 / 15) - ndtri(5 / 15), ndtri(14 / 15) - ndtri(11 / 15))
    assert unit_mu(4, 1, 0.13) == pytest.approx(by_hand, rel=1e-8)
    # The inverse of the deviation, from above, as bits grow.
    ratios = [unit_mu(n, 8, 1e-9) * math.sqrt(n) / 2 for n in (1000, 10_000, 100_000)]
    assert ratios[0] > ratios[1] > ratios[2] > 1
    assert ratios[2] < 1.0003


@pytest.mark.parametrize(("n_users", "n_coordinates"), [(10, 9), (1, 9), (1, 4000)])
def test_bits_are_as_few_as_the_promise_allows(n_users, n_coordinates):
    promise = ApproxDP(2.0, 1e-5)
    fewest = bits_for(promise, 40.0, 33, n_coordinates, n_users)
    fewer = ShuffledBits(40.0, 33, fewest.n_bits - n_users, n_coordinates, fewest.slack)
    epsilon = [PrivacyCurve.of({one.event: 1}).epsilon(promise.delta) for one in (fewest, fewer)]
    assert epsilon[0] <= promise.epsilon < epsilon[1]
    assert fewest.n_bits % n_users == 0


def test_what_no_bits_can_hide_is_refused():
    with pytest.raises(ValueError, match="add bits"):
        unit_mu(20, 15, 1e-6)
    with pytest.raises(ValueError, match="epsilon = 1e-09 with delta = 1e-05 needs more than 5,000,000 shuffled bits"):
        bits_for(ApproxDP(1e-9, 1e-5), 40.0, 33, 9, 10)
    with pytest.raises(ValueError, match="delta must be at least 1e-30 with shuffled bits, got 5e-324"):
        bits_for(ApproxDP(1.0, 5e-324), 40.0, 33, 9, 10)


@pytest.mark.parametrize("noise", [ReproducibleNoise(np.random.SeedSequence(3)), SecureNoise()], ids=["numpy", "secure"])
def test_added_ones_are_binomial(noise):
    """20,000 draws of 12 bits against the law: false alarm 1e-9. Half of the bits, and biased ones, are seen."""
    drawn = ShuffledBits(1.0, 1, 12, 1, 1e-3).draw(noise, np.full((20_000, 1), 5.0))[:, 0] - 5 + 6
    expected = 20_000 * binom.pmf(np.arange(13), 12, 0.5)
    seen = np.bincount(drawn.astype(int), minlength=13)
    assert chisquare(seen, expected).pvalue > 1e-9
    other = np.bincount(binom.rvs(12, 0.52, size=20_000, random_state=1), minlength=13)
    assert chisquare(other, expected).pvalue < 1e-9


def test_places_of_normal_numbers_have_the_same_law():
    """What noise sources without bits of their own do: 20,000 draws, false alarm 1e-9."""

    class Places(ReproducibleNoise):
        binomial = NoNoise.binomial

    drawn = Places(np.random.SeedSequence(5)).binomial(12, (20_000,))
    assert chisquare(np.bincount(drawn, minlength=13), 20_000 * binom.pmf(np.arange(13), 12, 0.5)).pvalue > 1e-9


def test_the_likelihood_ratio_is_that_of_the_laws():
    mechanism = ShuffledBits(2.0, 2, 30, 2, 1e-6)
    value, neighbor = np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])
    for first, second in itertools.product((10, 15, 22), repeat=2):
        output = value + np.array([[first, second]]) - 15
        there = binom.logpmf(first + 1, 30, 0.5) + binom.logpmf(second - 2, 30, 0.5)
        here = binom.logpmf(first, 30, 0.5) + binom.logpmf(second, 30, 0.5)
        assert mechanism.log_density_ratio(output, value, neighbor)[0] == pytest.approx(there - here)
    assert mechanism.log_density_ratio(value - 15, value, neighbor)[0] == -math.inf, "no bits give so little"
    outputs = np.array([[10.0, 0.0], [1.0, 2.0]])
    alone = [mechanism.log_density_ratio(row[None], value, neighbor)[0] for row in outputs]
    both = mechanism.log_density_ratio(outputs, np.tile(value, (2, 1)), np.tile(neighbor, (2, 1)))
    assert both.tolist() == alone, "each replicate by its own output"
    with pytest.raises(ValueError, match=r"counts must be whole numbers, got 0\.5"):
        mechanism.draw(NoNoise(), np.array([[0.5, 1.0]]))


def test_slacks_add_to_delta_and_gaussians_compose_beside_them():
    event, gaussian = NearlyGaussianEvent(2.0, 1e-6), GaussianEvent(1.0)
    derived = account({event: 2, gaussian: 1})
    mu = math.sqrt(2 * 0.25 + 1)
    assert derived.delta(1.0) == pytest.approx(GaussianDP(mu).delta(1.0) + 2e-6, rel=1e-12)
    assert derived.delta(derived.epsilon(1e-4)) == pytest.approx(1e-4)
    assert derived.epsilon(2e-6) == math.inf
    assert derived.tradeoff(0.1) == pytest.approx((1 - 2e-6) * GaussianDP(mu).tradeoff(0.1 / (1 - 2e-6)))
    assert derived.rdp(2.0) == math.inf
    assert PrivacyCurve.from_dict(derived.to_dict()) == derived
    assert "NearlyGaussian" in str(derived)


def test_no_budget_counts_a_slack():
    ledger = LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(0)), budget=GaussianDP(5.0))
    sums = PhaseSum(ShuffledBits(1.0, 1, 100, 1, 1e-6))
    state = sums.add(sums.init(1, (1,)), np.ones((1, 1)), np.ones(1, dtype=int))
    with pytest.raises(ValueError, match="leave the budget out"):
        sums.close(state, ledger)


def test_scaled_bits_have_so_much_more_noise():
    bits = ShuffledBits(2.0, 1, 100, 3, 1e-9)
    assert bits.scaled(3.0).n_bits == 900
    assert bits.scaled(3.0).scale == pytest.approx(3 * bits.scale)
    assert bits.scaled(0.01).n_bits == 1
    assert bits.noise_multiplier == pytest.approx(math.sqrt(100) / 2 / 2.0)


def test_coordinates_share_the_slack():
    """Each has its tail: of 100 coordinates a hundredth of the slack."""
    event = ShuffledBits(3.0, 2, 60, 100, 1e-3).event
    assert event.slack == 1e-3
    assert 1 / event.noise_multiplier == pytest.approx(3 * unit_mu(60, 2, 1e-5), rel=1e-12)
    assert unit_mu(60, 2, 1e-5) > 1.001 * unit_mu(60, 2, 1e-3)
