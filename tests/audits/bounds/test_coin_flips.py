"""Guessed coins: exact tails, coverage on the closest pairs, sharpness, and what the seed may do."""

import numpy as np
import pytest
from nightly import first
from scipy.special import expit
from scipy.stats import binom

from bandana.audits.bounds import coin_flips
from bandana.audits.bounds.coin_flips import Design, Guesses, epsilon_lower, guess, toss
from bandana.privacy_core import GaussianDP
from tests.score_pairs import gaussian, laplace, worst_case

MU = GaussianDP.from_epsilon_delta(1, 1e-5).mu
EQUAL_WEIGHTS = Design(0.0, 0.0, 0.5, 0.1)
NO_PAST = (np.zeros(0), np.zeros(0))


def guesses(n_right, n_wrong, plan=EQUAL_WEIGHTS, n_tosses=None):
    """Equally weighted guesses of which so many are right."""
    return Guesses(np.repeat([-1.0, 1.0], [n_right, n_wrong]), np.zeros(0), plan, n_tosses or n_right + n_wrong)


def test_equal_weights_at_delta_zero_are_the_binomial_test():
    for n_right, n_wrong, epsilon in ((80, 20, 0.9), (80, 20, 1.0), (800, 200, 1.25), (8, 2, 0.01)):
        p = binom.sf(n_right - 1, n_right + n_wrong, expit(epsilon))
        assert guesses(n_right, n_wrong).is_refuted(epsilon, 0.0, p + 1e-6)
        assert not guesses(n_right, n_wrong).is_refuted(epsilon, 0.0, p - 1e-6)


def test_the_bound_is_where_the_test_turns():
    found = guesses(800, 200).epsilon_lower(0.0, 0.05)
    assert binom.sf(799, 1000, expit(found)) == pytest.approx(0.05, rel=1e-3)
    assert guesses(800, 200).is_refuted(found, 0.0, 0.05)
    assert not guesses(800, 200).is_refuted(found + 1e-4, 0.0, 0.05)
    assert guesses(500, 500).epsilon_lower(0.0, 0.05) == 0
    assert Guesses(np.zeros(50), np.zeros(50), EQUAL_WEIGHTS, 100).epsilon_lower(0.0, 0.05) == 0


def test_tails_of_unequal_weights_are_those_of_the_convolution():
    """To 1e-9, also when the largest weights are right for sure."""
    scores = np.random.default_rng(1).normal(size=400)
    counted = Guesses(scores[scores < 0], scores[scores > 0], Design(0.2, 1.5, 0.5, 0.1), 400)
    rho = 0.7
    for given in (0.0, 3.0, 90.0):
        left, _ = counted._after(np.array([given]))
        law = np.ones(1)
        for level, n in zip(counted.levels.astype(int), left[0].astype(int), strict=True):
            one = np.zeros(level * n + 1)
            one[::level] = binom.pmf(np.arange(n + 1), n, rho)
            law = np.convolve(law, one)
        tail = np.cumsum(law[::-1])[::-1]
        sure = int((counted.count - left[0]) @ counted.levels)
        for quantile in (0.5, 0.99, 0.99999):
            at = int(np.searchsorted(1 - tail, quantile))
            counted.right = sure + at
            found = np.exp(counted._log_tails(np.log(rho / (1 - rho)), np.array([given])))[0]
            assert tail[at] <= found <= tail[at] + 2e-9


def test_what_is_refuted_stays_so_for_less():
    data, neighbor = worst_case(2.0, 0.05, 4000, 1)
    counted = guess(data, neighbor, 0.05, 0.05)
    refuted = [counted.is_refuted(epsilon, 0.05, 0.05) for epsilon in np.linspace(0, 3, 31)]
    assert refuted == sorted(refuted, reverse=True)
    assert 10 < sum(refuted) < 21
    assert [counted.is_refuted(1.5, delta, 0.05) for delta in (0.0, 0.01, 0.05, 0.5)] == [True, True, True, False]


CLOSEST = [(0.5, 0.02), (1.0, 0.0), (0.0, 0.05), (2.0, 0.3), (0.2, 1e-3)]


@pytest.mark.parametrize(
    ("epsilon", "delta", "is_learned"),
    first(2, [(*CLOSEST[0], False), (*CLOSEST[1], True), *((*one, False) for one in CLOSEST[1:]), (*CLOSEST[0], True),
              *((*one, True) for one in CLOSEST[2:])]),
)  # fmt: skip
def test_the_closest_pair_is_hardly_ever_refuted(epsilon, delta, is_learned):
    """In at most 10 % of 250 audits (the test fails by chance < 1e-6), the default seed everywhere."""
    wrong = 0
    for seed in range(250):
        counted = guess(*worst_case(epsilon, delta, 600, seed), delta, 0.1, is_learned=is_learned)
        wrong += counted.is_refuted(epsilon, delta, 0.1)
    assert wrong <= binom.ppf(1 - 1e-6, 250, 0.1)


def test_a_lone_infinity_is_given_away_at_the_least_favourable_rate():
    """Half of delta on each side, where only infinite scores are guessed: wrong in at most 10 % of 300 (chance < 1e-6)."""
    plan, wrong = Design(20.0, 0.0, 0.0, 0.5), 0
    for seed in range(300):
        data, neighbor = worst_case(0.0, 0.01, 500, seed)
        wrong += Guesses(data, neighbor, plan, 1000).is_refuted(0.0, 0.01, 0.1)
    assert wrong <= binom.ppf(1 - 1e-6, 300, 0.1)


def test_coins_differ_from_audit_to_audit_and_not_from_call_to_call():
    pasts = [(np.random.default_rng(seed).normal(size=10), np.zeros(3)) for seed in range(400)]
    tosses = [toss(5000, 0, past) for past in pasts]
    assert tosses == [toss(5000, 0, past) for past in pasts]
    heads = np.array([neighbor for _, neighbor, _ in tosses])
    n = tosses[0][2]
    assert all(a + b == m == n and max(a, b) <= 5000 for a, b, m in tosses)
    assert heads.mean() == pytest.approx(n / 2, abs=6 * np.sqrt(n / 4 / 400))  # fails by chance < 1e-8
    assert heads.std() == pytest.approx(np.sqrt(n / 4), rel=0.25)
    assert toss(5000, 1, NO_PAST) != toss(5000, 0, NO_PAST)
    with pytest.raises(ValueError, match="seed must be a whole number of at least 0, got -1"):
        toss(5000, -1, NO_PAST)


@pytest.mark.parametrize(
    ("draw", "truth", "delta", "is_learned", "least"),
    first(2, [
        (lambda seed: worst_case(1.0, 0.01, 10**5, seed), 1.0, 0.01, False, 0.97),
        (lambda seed: gaussian(MU, 10**5, seed), 1.0, 1e-5, True, 0.65),
        (lambda seed: gaussian(MU, 10**5, seed), 1.0, 1e-5, False, 0.68),
        (lambda seed: laplace(1.0, 10**5, seed), 1.0, 0.0, False, 0.98),
        (lambda seed: laplace(1.0, 10**5, seed), 1.0, 0.0, True, 0.97),
    ]),
)  # fmt: skip
def test_sharpness_at_a_hundred_thousand_replays(draw, truth, delta, is_learned, least):
    """Medians of nine."""
    found = [epsilon_lower(*draw(seed), delta, 0.05, is_learned=is_learned) / truth for seed in range(9)]
    assert least <= np.median(found) <= 1


@pytest.mark.parametrize("n", [10_000, 200_000])
def test_raw_outputs_of_laplace_noise_lose_nothing_with_more_samples(n):
    """Their log odds are flat in both tails: a regression that knows straight lines alone would bet on the tails."""
    generator = np.random.default_rng(5)
    data, neighbor = generator.laplace(0, 1, n), generator.laplace(1, 1, n)
    assert 0.9 < epsilon_lower(data, neighbor, 0.0, 0.05, is_learned=True) < 1


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_sides_that_never_meet_certify_the_logarithm_of_their_number(delta):
    for n in (1000, 10**5):
        found = epsilon_lower(np.full(n, -np.inf), np.full(n, np.inf), delta, 0.05)
        assert np.log(n) - 1 < found < np.log(2 * n / np.log(20))


@pytest.mark.parametrize(("delta", "is_learned"), first(2, [(0.0, True), (1e-3, False), (0.0, False), (1e-3, True)]))
def test_uninformative_scores_certify_nothing(delta, is_learned):
    """Noise: above 0 in at most 5 % of 60 audits (chance < 1e-6). One score everywhere: never."""
    wrong = sum(
        epsilon_lower(*np.random.default_rng(seed).normal(size=(2, 1000)), delta, 0.05, is_learned=is_learned) > 0
        for seed in range(60)
    )
    assert wrong <= binom.ppf(1 - 1e-6, 60, 0.05)
    for value in (0.0, -3.0, np.inf):
        assert epsilon_lower(np.full(200, value), np.full(200, value), delta, 0.05, is_learned=is_learned) == 0


def test_single_precision_and_rounded_scores_do_no_harm():
    data, neighbor = laplace(1.0, 20_000, 1)
    found = epsilon_lower(data, neighbor, 1e-4, 0.05)
    assert epsilon_lower(data.astype(np.float32), neighbor.astype(np.float32), 1e-4, 0.05) == pytest.approx(found, abs=0.05)
    assert 0.8 < epsilon_lower(np.round(data, 1), np.round(neighbor, 1), 1e-4, 0.05) <= 1
    assert 0.7 < epsilon_lower(np.sign(data), np.sign(neighbor), 1e-4, 0.05, is_learned=True) <= 1


def test_what_is_refused():
    fine = np.linspace(-1, 1, 200)
    for bad, words in (
        (fine[:-1], "equally many scores, got 200 and 199"), (np.append(fine[:-1], np.nan), "neighbor must hold no NaN"),
        (fine[None], "neighbor must have one axis"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            epsilon_lower(fine, bad, 1e-5, 0.05)
    with pytest.raises(ValueError, match="at least 100 scores for this bound, got 50"):
        epsilon_lower(fine[:50], fine[:50], 1e-5, 0.05)
    for delta in (-0.1, 1.0, np.nan):
        with pytest.raises(ValueError, match=f"delta must lie in \\[0, 1\\), got {delta}"):
            epsilon_lower(fine, fine, delta, 0.05)
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1, got 0"):
        epsilon_lower(fine, fine, 1e-5, 0)
    with pytest.raises(ValueError, match="seed"):
        epsilon_lower(fine, fine, 1e-5, 0.05, seed=0.5)
    assert coin_flips.epsilon_lower(list(fine), tuple(fine), 0.0, 0.05) >= 0
