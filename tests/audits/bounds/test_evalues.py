"""E-processes: validity by linear programs and by simulation, power, and what they refuse."""

import numpy as np
import pytest
from nightly import first
from scipy.optimize import linprog
from scipy.special import ndtri
from scipy.stats import binom

from bandana.audits.bounds import evalues
from bandana.audits.bounds.evalues import ApproxClaims, EProcess, GaussianClaims, RenyiClaims, lower_of
from bandana.audits.bounds.samples import BINS, block_cuts, edges_of, learn_ratio
from bandana.privacy_core import GaussianDP, PureDP
from tests.score_pairs import gaussian, laplace, worst_case

MU = GaussianDP.from_epsilon_delta(1, 1e-5).mu


def is_ever_refuted(claim, data, neighbor, *, is_learned=False, level=0.05):
    """Whether the wealth against one claim reaches 1/level at the end of any block."""
    process = EProcess(claim, is_learned=is_learned)
    for start, stop in block_cuts(len(data)):
        process.update(data[start:stop], neighbor[start:stop])
    return np.array(process.history).max() >= -np.log(level)


def renyi_lower(data, neighbor, *, is_learned=False, level=0.05):
    """The divergence of order 2 that is refuted at the end, on a grid of 3 % steps."""
    process = EProcess(RenyiClaims(2.0, np.geomspace(1e-3, 32, 351)), is_learned=is_learned)
    for start, stop in block_cuts(len(data)):
        process.update(data[start:stop], neighbor[start:stop])
    return process.lower(level)


def some_past(seed, n_bins=9):
    """Log ratios that do not fall, and counts, of a past that need not be like the future."""
    generator = np.random.default_rng(seed)
    return np.sort(generator.normal(0, 2, n_bins)), generator.integers(0, 400, (2, n_bins)).astype(float) + 1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (0.5, 0.0), (1.0, 1e-3), (3.0, 0.3)])
def test_no_pair_that_the_approximate_claim_allows_has_means_above_two(seed, epsilon, delta):
    """The least favorable pair on nine bins is a linear program: P, Q, and the parts of Q above E P and of P above E Q."""
    log_data, log_neighbor = ApproxClaims(np.array([epsilon]), delta).pairs(*some_past(seed))
    n = log_data.shape[1]
    eye, zero, grow = np.eye(n), np.zeros((n, n)), np.exp(epsilon)
    ones, none = np.ones((1, n)), np.zeros((1, n))
    worst = linprog(
        -np.concatenate([np.exp(log_data[0]), np.exp(log_neighbor[0]), np.zeros(2 * n)]),
        A_ub=np.block([
            [-grow * eye, eye, -eye, zero], [eye, -grow * eye, zero, -eye],
            [none, none, ones, none], [none, none, none, ones],
        ]),
        b_ub=np.concatenate([np.zeros(2 * n), [delta, delta]]),
        A_eq=np.block([[ones, none, none, none], [none, ones, none, none]]), b_eq=[1, 1],
    )  # fmt: skip
    assert -worst.fun <= 2 + 1e-9
    assert np.exp(log_data).min() > 0
    assert np.exp(log_neighbor).min() > 0


def random_pairs(seed, n_bins=9, repeats=300):
    """Pairs of laws, from nearly equal ones to nearly disjoint ones."""
    generator = np.random.default_rng(seed)
    for _ in range(repeats):
        p = generator.dirichlet(np.ones(n_bins))
        tilt = np.exp(generator.normal(0, generator.choice([0.1, 0.5, 2.0]), n_bins))
        yield p, p * tilt / (p * tilt).sum()


@pytest.mark.parametrize("alpha", first(1, [2.0, 1.5, 8.0]))
def test_no_pair_has_means_above_two_at_its_own_renyi_divergence(alpha):
    for seed in range(3):
        for p, q in random_pairs(seed):
            rho = max(np.log((p**alpha * q ** (1 - alpha)).sum()), np.log((q**alpha * p ** (1 - alpha)).sum())) / (alpha - 1)
            log_data, log_neighbor = RenyiClaims(alpha, np.array([rho])).pairs(*some_past(seed))
            assert p @ np.exp(log_data[0]) + q @ np.exp(log_neighbor[0]) <= 2 + 1e-9


def smallest_mu(p, q):
    """Best of all Neyman-Pearson tests between two laws on few points; that of the convex hull is the largest of these."""
    order = np.argsort(q / p)[::-1]
    fpr, tpr = np.cumsum(p[order])[:-1], np.cumsum(q[order])[:-1]
    return float(np.max(ndtri(tpr) - ndtri(fpr)))


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_no_pair_has_means_above_two_at_its_own_gdp(seed):
    """The trade-off curve of a pair on few points is piecewise linear with corners on the curve of its smallest mu."""
    for p, q in random_pairs(seed):
        claim = GaussianClaims(np.array([max(smallest_mu(p, q), 1e-6)]))
        log_data, log_neighbor = claim.pairs(*some_past(seed))
        assert p @ np.exp(log_data[0]) + q @ np.exp(log_neighbor[0]) <= 2 + 1e-9


HONEST = [
    (ApproxClaims(np.array([0.5]), 0.02), lambda seed: worst_case(0.5, 0.02, 500, seed)),
    (GaussianClaims(np.array([1.0])), lambda seed: gaussian(1.0, 500, seed)),
    (RenyiClaims(2.0, np.array([0.25])), lambda seed: gaussian(0.5, 500, seed)),
    (ApproxClaims(np.array([1.0]), 1e-3), lambda seed: worst_case(1.0, 1e-3, 1000, seed)),
    (ApproxClaims(np.array([1.0]), 0.0), lambda seed: laplace(1.0, 1000, seed)),
    (ApproxClaims(np.array([GaussianDP(1.0).epsilon(0.1)]), 0.1), lambda seed: gaussian(1.0, 1000, seed)),
    (GaussianClaims(np.array([PureDP(1.0).gdp().mu])), lambda seed: worst_case(1.0, 0, 500, seed)),
    (RenyiClaims(4.0, np.array([PureDP(1.0).rdp(4.0)])), lambda seed: worst_case(1.0, 0, 500, seed)),
]
"""A claim of each kind first, and what spends it."""


@pytest.mark.parametrize(
    ("claim", "draw", "is_learned"),
    first(4, [*((*one, False) for one in HONEST[:3]), (*HONEST[0], True), *((*one, False) for one in HONEST[3:]),
              *((*one, True) for one in HONEST[1:])]),
)  # fmt: skip
def test_an_honest_mechanism_is_hardly_ever_refuted_at_any_time(claim, draw, is_learned):
    """In at most 5 % of 120 runs watched block by block (the test fails by chance < 1e-6)."""
    wrong = sum(is_ever_refuted(claim, *draw(seed), is_learned=is_learned) for seed in range(120))
    assert wrong <= binom.ppf(1 - 1e-6, 120, 0.05)


def test_tossed_sides_of_unequal_number_keep_the_error():
    """200 runs of randomized response at its epsilon, each side drawn by a coin (chance < 1e-6)."""
    wrong = 0
    for seed in range(200):
        data, neighbor = worst_case(1.0, 0, 600, seed)
        coins = np.random.default_rng(1000 + seed).random(600) < 0.5
        process = EProcess(ApproxClaims(np.array([1.0]), 0.0), is_tossed=True)
        for start, stop in block_cuts(600):
            side = coins[start:stop]
            process.update(data[start:stop][~side], neighbor[start:stop][side])
        wrong += process.lower(0.05) > 0
    assert wrong <= binom.ppf(1 - 1e-6, 200, 0.05)


@pytest.mark.nightly
def test_equal_sides_certify_nothing():
    """Scores of noise alone, ratio learned: above 0 in at most 5 % of 60 runs (chance < 1e-6)."""
    wrong = 0
    for seed in range(60):
        data, neighbor = np.random.default_rng(seed).normal(size=(2, 2000))
        wrong += evalues.epsilon_lower(data, neighbor, 1e-5, 0.05, is_learned=True) > 0
    assert wrong <= binom.ppf(1 - 1e-6, 60, 0.05)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_structural_leak_certifies_more_the_longer_one_looks(delta):
    found = [evalues.epsilon_lower(np.full(n, -np.inf), np.full(n, np.inf), delta, 0.05) for n in (1000, 10_000, 100_000)]
    assert found[0] > 4
    assert found[1] > found[0] + 1
    assert found[2] > found[1] + 1
    assert found[2] < np.log(100_000)


def test_a_refuted_claim_stays_refuted_and_one_may_stop():
    data, neighbor = gaussian(2.0, 4000, 1)
    process, blocks = EProcess(ApproxClaims(np.array([0.1, 0.2]), 1e-5)), block_cuts(4000)
    for start, stop in blocks[:6]:
        process.update(data[start:stop], neighbor[start:stop])
    assert process.lower(0.05) == 0.2
    process.update(neighbor[:4000], data[:4000])  # contrary evidence comes too late
    assert process.lower(0.05) == 0.2


def test_the_bound_is_the_end_of_the_refuted_beginning():
    wealth = np.array([[0.0, 0, 0, 0], [9.0, 1, 9, 9], [0.0, 4, 0, 0]])
    values = np.array([0.1, 0.2, 0.3, 0.4])
    assert lower_of(values, wealth, 0.05) == 0.4
    assert lower_of(values, wealth, 0.01) == 0.1
    assert lower_of(values, np.flip(wealth, 1) * 0, 0.05) == 0


def test_float32_scores_and_ties_do_no_harm():
    data, neighbor = (s.astype(np.float32) for s in gaussian(1.0, 20_000, 1))
    assert 0.9 < evalues.mu_lower(data, neighbor, 0.05) <= 1
    rounded = [np.round(s, 1) for s in (data, neighbor)]
    assert 0.9 < evalues.mu_lower(*rounded, 0.05, is_learned=True) <= 1


@pytest.mark.parametrize(
    ("bound", "truth", "n", "share"),
    first(3, [
        pytest.param(lambda x, y: evalues.epsilon_lower(x, y, 1e-5, 0.05), 1.0, 10**5, 0.65, id="epsilon"),
        pytest.param(lambda x, y: evalues.mu_lower(x, y, 0.05), MU, 10**5, 0.94, id="mu"),
        pytest.param(renyi_lower, MU**2, 10**5, 0.85, id="renyi"),
        pytest.param(lambda x, y: evalues.epsilon_lower(x, y, 1e-5, 0.05), 1.0, 10**6, 0.80, id="epsilon-1e6"),
        pytest.param(lambda x, y: evalues.mu_lower(x, y, 0.05), MU, 10**6, 0.98, id="mu-1e6"),
    ]),
)  # fmt: skip
def test_sharpness_on_the_gaussian_calibrated_to_epsilon_one(bound, truth, n, share):
    """Medians of five runs."""
    found = [bound(*gaussian(MU, n, seed)) / truth for seed in range(5)]
    assert np.median(found) >= share
    assert np.median(found) <= 1


def test_sharpness_with_a_learned_ratio_and_on_laplace():
    learned = [evalues.epsilon_lower(*gaussian(MU, 10**5, seed), 1e-5, 0.05, is_learned=True) for seed in range(5)]
    assert 0.6 <= np.median(learned) <= 1
    exact = [evalues.epsilon_lower(*laplace(1.0, 10**5, seed), 0.0, 0.05) for seed in range(5)]
    assert 0.975 <= np.median(exact) <= 1


def test_one_score_everywhere_certifies_nothing():
    for value in (0.0, np.inf):
        same = np.full(200, value)
        for is_learned in (False, True):
            assert evalues.epsilon_lower(same, same, 1e-5, 0.05, is_learned=is_learned) == 0
            assert evalues.mu_lower(same, same, 0.05, is_learned=is_learned) == 0
            assert renyi_lower(same, same, is_learned=is_learned) == 0


def test_what_is_refused():
    fine = np.linspace(-1, 1, 200)
    for bad, words in (
        (fine[:-1], "equally many"), (np.append(fine[:-1], np.nan), "NaN"), (fine[None], "one axis"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            evalues.epsilon_lower(fine, bad, 1e-5, 0.05)
    with pytest.raises(ValueError, match="at least 100 scores"):
        evalues.mu_lower(fine[:50], fine[:50] + 1, 0.05)
    for level in (0.0, 1.0, -1, np.nan):
        with pytest.raises(ValueError, match="level"):
            evalues.mu_lower(fine, fine + 1, level)
    for delta in (-0.1, 1.0, np.nan):
        with pytest.raises(ValueError, match="delta"):
            evalues.epsilon_lower(fine, fine + 1, delta, 0.05)
    with pytest.raises(ValueError, match="epsilons must be"):
        ApproxClaims(np.array([0.2, 0.1]), 0.0)
    with pytest.raises(ValueError, match="alpha"):
        RenyiClaims(1.0, np.array([0.1]))


# --- what is learned of scores ----------------------------------------------------------------------------------------


def test_the_learned_ratio_is_the_true_one_where_scores_are_gaussian():
    """On any scale of the scores; within 0.1 between the quantiles of 1 % and 99 %."""
    data, neighbor = gaussian(0.5, 20_000, 1)
    ratio = learn_ratio(np.exp(data), np.exp(neighbor))
    places = np.linspace(-1.2, 1.2, 41)
    assert np.abs(ratio(np.exp(places)) - places).max() < 0.1
    assert (np.diff(ratio(np.sort(np.exp(data)))) >= 0).all()


def test_the_learned_ratio_follows_scores_that_are_not_gaussian():
    data, neighbor = worst_case(2.0, 0.01, 20_000, 1)
    found = learn_ratio(data, neighbor)(np.array([-np.inf, -2.0, 2.0, np.inf]))
    assert found[1:3] == pytest.approx([-2, 2], abs=0.15)
    assert found[0] < -3.5
    assert found[3] > 3.5


def test_a_value_that_many_share_has_a_bin_of_its_own():
    edges = edges_of(np.concatenate([np.random.default_rng(1).normal(size=50_000), np.full(30, 0.3), np.full(2000, 0.5)]))
    assert len(edges) < 2 * BINS
    assert np.count_nonzero((edges >= 0.5) & (edges <= 0.5002)) >= 2
