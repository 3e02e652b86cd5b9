"""Lower confidence bounds: known answers, coverage by simulation, and what they refuse."""

import numpy as np
import pytest
from nightly import first
from scipy.stats import beta, binom, norm

from bandana.audits.bounds.error_rates import (
    Errors,
    _upper,
    choose_threshold,
    clopper_pearson_upper,
    epsilon_lower,
    mu_lower,
)
from bandana.privacy_core import GaussianDP

REPEATS = 2000


def test_clopper_pearson_is_the_beta_quantile():
    for k, n, level in ((0, 10, 0.05), (3, 10, 0.01), (500, 1000, 0.025), (9, 10, 0.3)):
        assert clopper_pearson_upper(k, n, level) == pytest.approx(beta.ppf(1 - level, k + 1, n - k), rel=1e-10)
    assert clopper_pearson_upper(10, 10, 0.05) == 1.0


@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 0.97])
def test_clopper_pearson_covers_exactly(p):
    n, level = 200, 0.05
    k = np.arange(n + 1)
    assert binom.pmf(k[clopper_pearson_upper(k, n, level) < p], n, p).sum() <= level


def test_limits_that_are_kept_are_those_that_are_computed():
    for n, level in ((1, 0.3), (400, 0.025), (1024, 1e-6)):
        k = np.arange(n + 1)
        for _ in range(2):
            np.testing.assert_array_equal(_upper(k, n, level), clopper_pearson_upper(k, n, level))
        assert _upper(k[:1], n, level) == clopper_pearson_upper(0, n, level)


def test_no_errors_at_all_certify_what_the_counts_allow():
    errors = Errors(0.0, 0, 1000, 0, 1000)
    limit = 1 - 0.025 ** (1 / 1000)
    assert mu_lower(errors, 0.05) == pytest.approx(2 * norm.ppf(1 - limit))
    assert epsilon_lower(errors, 1e-5, 0.05) == pytest.approx(np.log((1 - 1e-5 - limit) / limit))


def test_useless_tests_certify_nothing():
    for errors in (
        Errors(0.0, 1000, 1000, 0, 1000),
        Errors(0.0, 500, 1000, 500, 1000),
        Errors(0.0, 700, 1000, 700, 1000),
    ):
        assert mu_lower(errors, 0.05) == 0
        assert epsilon_lower(errors, 1e-5, 0.05) == 0


@pytest.mark.parametrize("mu", first(1, [1.0, 0.3, 3.0]))
def test_bounds_exceed_the_truth_no_more_often_than_stated(mu):
    """Threshold chosen on one half, bound on the other: wrong in at most 5 % of audits (test fails by chance < 1e-6)."""
    generator = np.random.default_rng(1)
    n, delta, wrong_mu, wrong_epsilon = 400, 1e-2, 0, 0
    truth = GaussianDP(mu).epsilon(delta)
    for _ in range(REPEATS):
        data, neighbor = generator.normal(0, 1, (2, n)), generator.normal(mu, 1, (2, n))
        errors = Errors.count(data[1], neighbor[1], choose_threshold(data[0], neighbor[0], 0.05))
        wrong_mu += mu_lower(errors, 0.05) > mu
        errors = Errors.count(data[1], neighbor[1], choose_threshold(data[0], neighbor[0], 0.05, delta))
        wrong_epsilon += epsilon_lower(errors, delta, 0.05) > truth
    limit = binom.ppf(1 - 1e-6, REPEATS, 0.05)
    assert wrong_mu <= limit
    assert wrong_epsilon <= limit


def test_the_bound_is_tight():
    generator = np.random.default_rng(2)
    data, neighbor = generator.normal(0, 1, (2, 50_000)), generator.normal(1, 1, (2, 50_000))
    errors = Errors.count(data[1], neighbor[1], choose_threshold(data[0], neighbor[0], 0.05))
    assert 0.94 < mu_lower(errors, 0.05) <= 1


def test_infinite_scores_are_separated():
    data, neighbor = np.full(1000, -np.inf), np.full(1000, np.inf)
    threshold = choose_threshold(data, neighbor, 0.05)
    errors = Errors.count(data, neighbor, threshold)
    assert (errors.false_positives, errors.false_negatives) == (0, 0)


def test_tied_scores_count_as_neighbor_at_the_threshold():
    assert Errors.count(np.array([1.0, 2, 2]), np.array([2.0, 2, 3]), 2.0) == Errors(2.0, 2, 3, 0, 3)


def test_nan_and_empty_scores_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        choose_threshold(np.array([np.nan]), np.array([0.0]), 0.05)
    with pytest.raises(ValueError, match="at least one score"):
        choose_threshold(np.array([]), np.array([0.0]), 0.05)
