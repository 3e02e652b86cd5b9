"""Bounds on contrasts of means: coverage on the laws that are hardest, sharpness, and the edges of the range."""

import numpy as np
import pytest
from nightly import one_of_each
from scipy.stats import binom, norm

from bandana.audits.bounds.means import Moments, berry_esseen_lower, betting_lower, contrast_lower

REPEATS, LEVEL = 1000, 0.1
TOO_MANY = binom.ppf(1 - 1e-6, REPEATS, LEVEL)


def coins(p, q, weight, n, generator):
    """Gains in {0, 1}, and losses in {0, weight}."""
    return (generator.random(n) < q).astype(float), weight * (generator.random(n) < p)


LAWS = [
    (0.3, 0.5, 1.0, 400), (0.01, 0.03, 3.0, 400), (0.001, 0.01, 20.0, 2000), (0.0, 0.002, 1.0, 500), (0.5, 0.5, 0.1, 100)
]  # fmt: skip
BOUNDS = [betting_lower, berry_esseen_lower, contrast_lower]


@pytest.mark.parametrize(
    "case",
    one_of_each(
        [(bound, *law) for law in LAWS for bound in BOUNDS],
        lambda case: case[0],
        lambda case: "-".join([case[0].__name__, *map(str, case[1:])]),
    ),
)
def test_a_contrast_is_hardly_ever_overstated(case):
    """In at most 10 % of 1000 samples (the test fails by chance < 1e-6), though the moments are wrong by half."""
    bound, p, q, weight, n = case
    generator = np.random.default_rng(1)
    variance = q * (1 - q) + weight**2 * p * (1 - p)
    wrong = 0
    for _ in range(REPEATS):
        gain, loss = coins(p, q, weight, n, generator)
        guessed = () if bound is berry_esseen_lower else (Moments(1.5 * weight * p, 0.5 * variance),)
        wrong += bound(gain, loss, 1.0, weight, *guessed, LEVEL) > q - weight * p
    assert wrong <= TOO_MANY


def test_a_constant_certifies_itself_at_most():
    """Sure gains, by bets, to within about log(1 / level) / n; no deviation, no use of Berry-Esseen; sure losses."""
    ones, zeros = np.ones(1000), np.zeros(1000)
    assert 0.98 < betting_lower(ones, zeros, 1.0, 0.0, Moments(0.0, 1e-9), 0.05) < 1
    assert berry_esseen_lower(ones, zeros, 1.0, 0.0, 0.05) == 0
    assert contrast_lower(zeros, ones, 1.0, 1.0, Moments(0.5, 0.1), 0.05) == pytest.approx(-1, abs=0.02)


def test_large_samples_are_almost_as_good_as_the_normal_approximation():
    generator = np.random.default_rng(2)
    n, deviation = 10**5, np.sqrt(0.25 + 0.21)
    gain, loss = coins(0.3, 0.5, 1.0, n, generator)
    exact = (gain - loss).mean() - norm.ppf(0.95) * deviation / np.sqrt(n)
    moments = Moments(0.3, deviation**2)
    found = contrast_lower(gain, loss, 1.0, 1.0, moments, 0.05)
    assert found == berry_esseen_lower(gain, loss, 1.0, 1.0, 0.05)
    assert exact - 0.15 * deviation / np.sqrt(n) < found < exact
    assert betting_lower(gain, loss, 1.0, 1.0, moments, 0.05) < found


def test_few_samples_and_rare_ones_are_left_to_the_bets():
    generator = np.random.default_rng(3)
    for p, n in ((0.5, 100), (0.001, 10**4)):
        gain, loss = coins(p, 2 * p, 1.0, n, generator)
        moments = Moments(p, 3 * p)
        assert contrast_lower(gain, loss, 1.0, 1.0, moments, 0.05) == betting_lower(gain, loss, 1.0, 1.0, moments, 0.05)


@pytest.mark.parametrize("level", [0.0, 1.0, np.nan])
def test_levels_that_are_none_are_refused(level):
    some = np.linspace(0, 1, 100)
    with pytest.raises(ValueError, match="level"):
        betting_lower(some, some, 1.0, 1.0, Moments(0.5, 0.1), level)
    with pytest.raises(ValueError, match="level"):
        berry_esseen_lower(some, some, 1.0, 1.0, level)
