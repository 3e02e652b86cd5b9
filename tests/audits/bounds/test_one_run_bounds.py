"""Audits of a single run: published formulas, coverage, agreement with brute force, and what is refused."""

import numpy as np
import pytest
from nightly import first
from scipy.special import expit, ndtr
from scipy.stats import binom

from bandana.audits.bounds import one_run
from bandana.audits.bounds.evalues import ApproxClaims, GaussianClaims
from tests.score_pairs import gaussian, worst_case

GRID = np.arange(0.01, 3, 0.01)


def canaries(draw, n, seed):
    """(scores, coins) of independent canaries with a report each."""
    data, neighbor = draw(n, seed)
    is_in = np.random.default_rng(10_000 + seed).random(n) < 0.5
    return np.where(is_in, neighbor, data), is_in


def n_right(scores, is_in, n_guesses):
    """Guesses the coins of the largest scores, either way."""
    chosen = np.argsort(np.abs(scores), kind="stable")[len(scores) - n_guesses :]
    return int(((scores > 0) == is_in)[chosen].sum())


# --- (epsilon, delta) -------------------------------------------------------------------------------------------------


def test_the_p_value_at_delta_zero_is_a_binomial_tail():
    for m, r, v, epsilon in ((100, 100, 70, 0.5), (1000, 40, 40, 2.0), (50, 10, 0, 1.0)):
        assert one_run.p_value(m, r, v, epsilon, 0.0) == pytest.approx(binom.sf(v - 1, r, expit(epsilon)), rel=1e-12)


@pytest.mark.parametrize(("m", "r", "v", "epsilon", "delta"), [(1000, 100, 90, 1.0, 1e-4), (10**5, 3000, 2300, 1.0, 1e-6)])
def test_the_p_value_is_the_formula_over_all_numbers(m, r, v, epsilon, delta):
    beta = binom.sf(v - 1, r, expit(epsilon))
    steps = np.arange(1, m + 1)
    a = np.max((binom.sf(v - steps - 1, r, expit(epsilon)) - beta) / steps)
    assert one_run.p_value(m, r, v, epsilon, delta) == pytest.approx(beta + 2 * m * delta * a, rel=1e-9)


def test_the_p_value_is_small_for_honest_runs_only_as_often_as_it_says():
    """Randomized response at its epsilon, all guessed: below 10 % in at most 10 % of 500 runs (chance < 1e-6)."""
    small = sum(
        one_run.p_value(200, 200, n_right(*canaries(lambda n, s: worst_case(1.0, 0, n, s), 200, seed), 200), 1.0, 0.0) <= 0.1
        for seed in range(500)
    )
    assert small <= binom.ppf(1 - 1e-6, 500, 0.1)


def test_the_bound_on_epsilon_is_refuted_and_the_next_is_not():
    counts = 10**4, 10**4, 7311
    found = one_run.epsilon_lower(*counts, 1e-5, 0.05)
    assert one_run.p_value(*counts, found, 1e-5) <= 0.05 < one_run.p_value(*counts, found + 0.005, 1e-5)
    assert 0.9 < found < 1
    assert one_run.epsilon_lower(100, 100, 50, 0.0, 0.05) == 0
    assert one_run.epsilon_lower(100, 0, 0, 0.0, 0.05) == 0
    assert 3 < one_run.epsilon_lower(1000, 100, 100, 0.0, 0.05) < 4
    assert one_run.epsilon_lower(10**6, 10**6, 10**6, 0.0, 0.05) > 12


@pytest.mark.parametrize(("epsilon", "delta"), first(1, [(0.5, 1e-3), (0.5, 0.0)]))
def test_epsilon_from_one_run_is_hardly_ever_overstated(epsilon, delta):
    """In at most 10 % of 300 runs of 400 canaries, the 200 surest guessed (chance < 1e-6)."""
    wrong = 0
    for seed in range(300):
        v = n_right(*canaries(lambda n, s: worst_case(epsilon, delta, n, s), 400, seed), 200)
        wrong += one_run.p_value(400, 200, v, epsilon, delta) <= 0.1
    assert wrong <= binom.ppf(1 - 1e-6, 300, 0.1)


# --- mu ---------------------------------------------------------------------------------------------------------------


def test_the_recursion_on_one_coin_is_the_tradeoff_curve():
    """One canary, always guessed, right with probability level: refuted once level > Phi(mu / 2) - by hand."""
    for level in (0.6, 0.8, 0.95):
        found = one_run.mu_lower(1, 1, 1, level)
        assert ndtr(found / 2) == pytest.approx(level, abs=1e-3)
        assert ndtr(found / 2) <= level


@pytest.mark.parametrize(("mu", "n_guesses"), first(1, [(0.5, 60), (2.0, 60), (0.5, 400), (2.0, 400)]))
def test_mu_from_one_run_is_hardly_ever_overstated(mu, n_guesses):
    """In at most 10 % of 200 runs of 400 canaries with a report each, and of 200 that share their noise (chance < 1e-6)."""
    wrong = together = 0
    bounds = [one_run.mu_lower(400, n_guesses, v, 0.1) for v in range(n_guesses + 1)]
    for seed in range(200):
        wrong += bounds[n_right(*canaries(lambda n, s: gaussian(mu, n, s), 400, seed), n_guesses)] > mu
        generator = np.random.default_rng(seed)
        is_in = generator.random(400) < 0.5
        shared = mu * is_in.sum() + generator.normal()  # one noisy count: all tell the same
        scores = np.full(400, shared - 200 * mu)
        together += bounds[n_right(scores, is_in, n_guesses)] > mu
    assert max(wrong, together) <= binom.ppf(1 - 1e-6, 200, 0.1)


def test_guesses_that_were_picked_certify_less_than_coins_that_were_all_there():
    assert 0 < one_run.mu_lower(10_000, 1000, 900, 0.05) < one_run.mu_lower(1000, 1000, 900, 0.05)
    assert one_run.mu_lower(1000, 1000, 500, 0.05) == 0
    assert one_run.mu_lower(1000, 1000, 0, 0.05) == 0


# --- one after the other ----------------------------------------------------------------------------------------------


def test_sequential_bounds_are_hardly_ever_overstated():
    """In at most 10 % of 80 runs (chance < 1e-6)."""
    wrong_epsilon = wrong_mu = 0
    for seed in range(80):
        pair = canaries(lambda n, s: worst_case(0.5, 0.01, n, s), 800, seed)
        wrong_epsilon += one_run.sequential_lower(*pair, ApproxClaims(np.array([0.5]), 0.01), 0.1) > 0
        pair = canaries(lambda n, s: gaussian(1.0, n, s), 800, seed)
        wrong_mu += one_run.sequential_lower(*pair, GaussianClaims(np.array([1.0])), 0.1) > 0
    assert max(wrong_epsilon, wrong_mu) <= binom.ppf(1 - 1e-6, 80, 0.1)


def test_canaries_that_depend_on_the_past_do_no_harm():
    """Each canary's noise level is chosen by how the last one went: refuted in at most 10 % of 60 runs (chance < 1e-5)."""
    wrong = 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        is_in = generator.random(600) < 0.5
        scores, epsilon = np.empty(600), 1.0
        for i in range(600):
            is_true = generator.random() < expit(epsilon)
            scores[i] = epsilon if is_true == is_in[i] else -epsilon
            epsilon = 1.0 if is_true else 0.3
        wrong += one_run.sequential_lower(scores, is_in, ApproxClaims(np.array([1.0]), 0.0), 0.1) > 0
    assert wrong <= binom.ppf(1 - 1e-5, 60, 0.1)


def test_sharpness_of_ten_thousand_canaries():
    """Medians of five runs."""
    response, noise = [], []
    for seed in range(5):
        pair = canaries(lambda n, s: worst_case(1.0, 0, n, s), 10**4, seed)
        response.append((
            one_run.epsilon_lower(10**4, 10**4, n_right(*pair, 10**4), 1e-5, 0.05),
            one_run.sequential_lower(*pair, ApproxClaims(GRID, 1e-5), 0.05),
        ))  # fmt: skip
        pair = canaries(lambda n, s: gaussian(1.0, n, s), 10**4, seed)
        noise.append((
            one_run.mu_lower(10**4, 10**4, n_right(*pair, 10**4), 0.05),
            one_run.sequential_lower(*pair, GaussianClaims(GRID), 0.05),
        ))  # fmt: skip
    assert (np.median(response, axis=0) >= (0.9, 0.88)).all()
    assert (np.median(noise, axis=0) >= (0.3, 0.9)).all()
    assert (np.median(response + noise, axis=0) <= 1).all()


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((0, 0, 0), "n_canaries must be a whole number of at least 1, got 0"),
        ((10, 11, 5), "n_guesses must be at most n_canaries = 10, got 11"),
        ((10, 5, 6), "n_right must be at most n_guesses = 5, got 6"),
        ((10, 5, -1), "n_right must be a whole number of at least 0, got -1"),
        ((10, 5.0, 2), "n_guesses must be a whole number"),
    ],
)
def test_counts_that_cannot_be_are_refused(counts, words):
    for bound in (
        lambda *n: one_run.p_value(*n, 1.0, 0.0),
        lambda *n: one_run.epsilon_lower(*n, 0.0, 0.05),
        lambda *n: one_run.mu_lower(*n, 0.05),
    ):
        with pytest.raises(ValueError, match=words):
            bound(*counts)


def test_parameters_out_of_range_are_refused():
    fine, coins = np.linspace(-1, 1, 200), np.arange(200) % 2 == 0
    for epsilon, delta, name in ((-1.0, 0.0, "epsilon"), (1.0, -0.1, "delta"), (1.0, 1.0, "delta"), (np.nan, 0.0, "eps")):
        with pytest.raises(ValueError, match=name):
            one_run.p_value(10, 5, 5, epsilon, delta)
    for level in (0.0, 1.0, np.nan):
        for bound in (
            lambda level: one_run.epsilon_lower(10, 5, 5, 0.0, level),
            lambda level: one_run.mu_lower(10, 5, 5, level),
            lambda level: one_run.sequential_lower(fine, coins, GaussianClaims(GRID), level),
        ):
            with pytest.raises(ValueError, match="level must"):
                bound(level)
    for scores, is_in, words in (
        (fine, coins[:-1], "is_in must hold a bool for each score"), (fine, coins.astype(int), "is_in must hold a bool"),
        (fine[:99], coins[:99], "at least 100 canaries, got 99"), (np.append(fine[:-1], np.nan), coins, "NaN"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            one_run.sequential_lower(scores, is_in, GaussianClaims(GRID), 0.05)
    with pytest.raises(ValueError, match="epsilons must be"):
        ApproxClaims(GRID[::-1], 0.0)
    with pytest.raises(ValueError, match="mus must be"):
        GaussianClaims(np.array([np.inf]))
