"""Lower bounds on the length of tests: by hand for two arms, against brute force for three, and beside tests that stop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from bandana.algorithms.bandits.best_arm.halving import dp_bai, sequential_halving
from bandana.algorithms.bandits.best_arm.top_two import adap_tt, adar_tt
from bandana.algorithms.decision import decision
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.lower_bounds import best_arm
from bandana.algorithms.lower_bounds.divergences import bernoulli_kl, private_kl
from bandana.algorithms.lower_bounds.lower_bound import Privacy
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise, TrustModel

UNIT = Interval(0.0, 1.0)


def length(means, privacy=None, error=0.05, span=UNIT):
    return best_arm.least_rounds(means, span, privacy or Privacy(), error)


def test_two_arms_that_mirror_each_other_by_hand():
    """By symmetry both have half of the rounds and meet at 1/2: kl(0.1, 0.9) / kl(0.4, 1/2)."""
    expected = 0.8 * math.log(9) / float(bernoulli_kl(0.4, 0.5))
    assert length([0.4, 0.6], error=0.1).rounds == pytest.approx(expected, rel=1e-4)
    assert length([0.8, 1.2], error=0.1, span=Interval(0.0, 2.0)).rounds == pytest.approx(expected, rel=1e-4)
    private = 0.8 * math.log(9) / float(private_kl(0.4, 0.5, 0.1))
    assert length([0.4, 0.6], Privacy(epsilon=0.1), error=0.1).rounds == pytest.approx(private, rel=1e-4)


@pytest.mark.parametrize("epsilon", [None, 0.05])
def test_three_arms_are_those_of_a_search_over_all_shares(epsilon):
    means = [0.7, 0.5, 0.4]
    told = bernoulli_kl if epsilon is None else lambda p, q: private_kl(p, q, epsilon)

    def least(best, other, p):
        def cost(u):
            return best * told(means[0], u) + other * told(p, u)

        return minimize_scalar(cost, bounds=(p, means[0]), method="bounded").fun

    shares = [(a, b) for a in np.linspace(0.3, 0.65, 36) for b in np.linspace(0.15, 0.55, 41) if a + b < 1]
    most = max(min(least(a, b, 0.5), least(a, 1 - a - b, 0.4)) for a, b in shares)
    found = length(means, Privacy(epsilon=epsilon)).rounds
    assert found == pytest.approx(0.9 * math.log(19) / most, rel=0.02), "shares in steps of 1 %"
    assert found <= 0.9 * math.log(19) / most, "a search over some shares finds no more than the maximum"


def test_gaussian_privacy_counts_where_noise_hides_changes():
    assert best_arm.gaussian_length(0.02, 1e-3, 0.05) > 10 * best_arm.gaussian_length(0.02, 1e-2, 0.05)
    assert length([0.5, 0.52], Privacy(mu=1e-3)).rounds > 4 * length([0.5, 0.52]).rounds
    assert length([0.5, 0.52], Privacy(mu=1.0)).rounds == length([0.5, 0.52]).rounds
    # One n and one m by hand: it is a maximum over all.
    n, m = 150.0, 20.0
    by_hand = (n + 1) * (0.95 - ndtr(ndtri(0.05 + binom.sf(m, n, 0.1)) + m * 0.05))
    assert by_hand > 20
    assert best_arm.gaussian_length(0.2, 0.05, 0.05) >= 0.9 * by_hand


def test_nothing_is_said_where_nothing_is_known():
    assert length([0.5, 0.5, 0.2]) is None
    assert length([0.5, 0.6], error=0.5) is None
    assert length([0.5, 0.6], Privacy(epsilon=1.0, trust=TrustModel.LOCAL)) is None
    assert length([0.5, 1.0]).rounds > 0, "a best mean at the end of the range"
    assert "d_epsilon" in length([0.5, 0.6], Privacy(epsilon=1.0)).text


@pytest.mark.parametrize("privacy", [Privacy(epsilon=0.1), Privacy(mu=0.1)])
def test_no_test_beats_its_bound(privacy):
    """Mean of 200 tests, which is above the bound by many standard errors."""
    horizon, means = 100_000, [0.5, 0.6, 0.45]
    algorithm = (
        adap_tt(3, 0.1, 0.05, UNIT, horizon) if privacy.epsilon else adar_tt(3, 2.0, 0.01, 0.05, UNIT, horizon)
    )  # mu = sqrt(2 * 0.01 / 2)
    arms = BernoulliArms(means, horizon, np.random.SeedSequence(1))
    _, released = run(algorithm, arms, LiveLedger(200, ReproducibleNoise(np.random.SeedSequence(2))))
    stopped = decision(algorithm, released).stopped
    assert (stopped > 0).all()
    assert stopped.mean() > length(means, privacy).rounds


def errors(means, rounds, privacy=None):
    return best_arm.least_errors(means, UNIT, privacy or Privacy(), rounds)


def test_errors_of_two_arms_stay_above_the_bound_exactly():
    """Equal groups of two arms in random order, and the larger sum wins: its error is a sum over binomial probabilities."""
    for gap in (0.1, 0.3):
        for n in (5, 50, 200):
            k = np.arange(n + 1)
            best, other = binom.pmf(k, n, 0.5 + gap / 2), binom.cdf(k, n, 0.5 - gap / 2)
            tied = binom.pmf(k, n, 0.5 - gap / 2)
            wrong = float((best * (1 - other + tied / 2)).sum())
            found = errors([0.5 - gap / 2, 0.5 + gap / 2], 2 * n).share
            assert found < wrong, "no test is better"
            assert gap == 0.3 or found > wrong / 6, "and the bound is not far off where few answers are certain"


def test_the_bound_on_errors_solves_its_equation():
    """Two arms that mirror each other: u = 1/2, and kl(1/2, 1 - e) is half of rounds kl(1/2, 0.6)."""
    found = errors([0.6, 0.4], 100).share
    told = 100 * float(bernoulli_kl(0.5, 0.6))
    assert float(bernoulli_kl(0.5, 1 - found)) == pytest.approx(told, rel=1e-4)
    private = errors([0.6, 0.4], 100, Privacy(epsilon=0.1)).share
    assert float(bernoulli_kl(0.5, 1 - private)) == pytest.approx(100 * float(private_kl(0.5, 0.6, 0.1)), rel=1e-4)
    assert private > 2 * found
    # Of many alike arms more is asked than of two: the largest of all j is taken.
    assert errors([0.6, *[0.4] * 9], 100).share > errors([0.6, 0.4], 100).share


def test_errors_where_nothing_can_be_told_or_everything_is():
    assert errors([0.6, 0.5, 0.5], 0).share == pytest.approx(2 / 3, abs=1e-5)
    assert errors([1.0, 0.0], 100_000).share < 1e-300
    assert errors([0.5, 0.5], 10) is None
    assert errors([0.6, 0.5], 10, Privacy(epsilon=1.0, trust=TrustModel.LOCAL)) is None
    assert errors([0.6, 0.5], 10, Privacy(mu=1.0)).share == errors([0.6, 0.5], 10).share


@pytest.mark.parametrize("epsilon", [None, 0.2])
def test_no_test_of_a_budget_errs_less_often(epsilon):
    """2000 tests of four arms: their errors are more than twice the bound, which is far above 1 / 2000."""
    means, rounds = [0.55, 0.45, 0.45, 0.45], 600
    build = sequential_halving(4, UNIT, rounds) if epsilon is None else dp_bai(4, epsilon, UNIT, rounds)
    arms = BernoulliArms(means, rounds, np.random.SeedSequence(1))
    _, released = run(build, arms, LiveLedger(2000, ReproducibleNoise(np.random.SeedSequence(2))))
    wrong = (decision(build, released).arm != 0).mean()
    assert 0.005 < errors(means, rounds, Privacy(epsilon=epsilon)).share < wrong / 2
