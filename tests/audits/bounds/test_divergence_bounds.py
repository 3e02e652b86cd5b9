"""Divergences, single events and an accountant's curve: coverage, known answers, sharpness, and what is refused."""

import math

import numpy as np
import pytest
from nightly import first
from scipy.stats import binom

from bandana.audits.bounds.divergence_bounds import (
    ORDERS,
    hockey_stick_lower,
    plan_renyi,
    pure_epsilon_lower,
    renyi_lower,
    rho_lower,
)
from bandana.privacy_core import GaussianDP
from tests.score_pairs import gaussian, laplace, worst_case


def randomized_response(epsilon, alpha):
    """Renyi divergence of its two sides."""
    rho = 1 / (1 + math.exp(-epsilon))
    return math.log(rho**alpha * (1 - rho) ** (1 - alpha) + (1 - rho) ** alpha * rho ** (1 - alpha)) / (alpha - 1)


# --- Renyi and zCDP ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.2, 2.0, 6.0])
def test_no_plan_claims_more_than_the_divergence(alpha):
    """Means of gain and loss under random pairs on few points, exactly; the plan comes from another pair."""
    generator = np.random.default_rng(1)
    for _ in range(100):
        ratio = np.sort(generator.normal(0, 2, 9))
        plan = plan_renyi(ratio, generator.integers(0, 400, (2, 9)) + 1.0, alpha, 1000)
        p, q = generator.dirichlet(np.ones(9), 2)
        gain, loss = plan.values(ratio)
        winner, loser = (q, p) if plan.sign > 0 else (p, q)
        divergence = math.log((winner**alpha * loser ** (1 - alpha)).sum()) / (alpha - 1)
        assert (winner @ gain - loser @ loss) / plan.unit <= math.exp((alpha - 1) * divergence) * (1 + 1e-9)


def test_last_bits_do_not_choose_the_direction():
    """Replays that mirror each other promise the same in both directions: the first is taken, however the bits fall."""
    generator = np.random.default_rng(2)
    for _ in range(50):
        half = np.sort(generator.uniform(0, 3, 6))
        ratio = np.concatenate([-half[::-1], half])
        counts = generator.integers(1, 400, 12).astype(float)
        noisy = ratio * (1 + 4e-16 * generator.integers(-1, 2, 12))
        assert plan_renyi(noisy, np.stack([counts, counts[::-1]]), 2.0, 1000).sign == 1


@pytest.mark.parametrize(
    ("draw", "divergence"),
    first(1, [
        (lambda n, seed: worst_case(1.0, 0, n, seed), lambda alpha: randomized_response(1.0, alpha)),
        (lambda n, seed: gaussian(0.5, n, seed), lambda alpha: alpha / 8),
        (lambda n, seed: gaussian(2.0, n, seed), lambda alpha: 2 * alpha),
        (lambda n, seed: worst_case(4.0, 0, n, seed), lambda alpha: randomized_response(4.0, alpha)),
        (lambda n, seed: tuple(np.random.default_rng(seed).normal(size=(2, n))), lambda alpha: 0.0),
    ]),
)  # fmt: skip
def test_divergences_are_hardly_ever_overstated(draw, divergence):
    """In at most 10 % of 150 audits, each (the test fails by chance < 1e-5); rho's truth is the largest over its orders."""
    pairs = [draw(500, seed) for seed in range(150)]
    too_many = binom.ppf(1 - 1e-6, 150, 0.1)
    for is_learned in (False, True):
        for alpha in (1.5, 4.0):
            wrong = sum(renyi_lower(*pair, alpha, 0.1, is_learned=is_learned) > divergence(alpha) + 1e-12 for pair in pairs)
            assert wrong <= too_many
        rho = max(divergence(alpha) / alpha for alpha in ORDERS)
        assert sum(rho_lower(*pair, 0.1, is_learned=is_learned) > rho + 1e-12 for pair in pairs[:60]) <= too_many


@pytest.mark.parametrize("is_learned", first(1, [True, False]))
def test_sharpness_on_a_gaussian_at_a_hundred_thousand_replays(is_learned):
    """Medians of seven."""
    pairs = [gaussian(1.0, 10**5, seed) for seed in range(7)]
    assert 0.92 <= np.median([renyi_lower(*pair, 2.0, 0.05, is_learned=is_learned) for pair in pairs]) <= 1
    assert 0.93 <= np.median([rho_lower(*pair, 0.05, is_learned=is_learned) for pair in pairs]) / 0.5 <= 1


def test_the_order_of_rho_is_chosen_by_what_tells_most():
    """One output in 20 is randomized response of epsilon 3, the others say nothing: low orders hardly see it."""
    is_telling = np.random.default_rng(1).random((2, 20_000)) < 0.05
    data, neighbor = is_telling * worst_case(3.0, 0, 20_000, 1)

    def rho(alpha):
        return math.log(0.95 + 0.05 * math.exp((alpha - 1) * randomized_response(3.0, alpha))) / (alpha - 1) / alpha

    assert 2 * rho(1.25) < rho_lower(data, neighbor, 0.05) <= max(map(rho, ORDERS))


def test_either_direction_is_found():
    """The neighbor drops an output that the data set has: only one divergence is infinite."""
    generator = np.random.default_rng(1)
    common, dropped = generator.normal(size=(2, 5000)) * 1e-3, generator.random(5000) < 0.2
    data = np.where(dropped, -np.inf, common[0])
    assert renyi_lower(data, common[1] + 0.2, 2.0, 0.05) > 0.3
    assert renyi_lower(-common[1] - 0.2, -data, 2.0, 0.05) > 0.3


# --- events -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", first(1, [0.5, 0.0, 2.0]))
def test_delta_is_hardly_ever_overstated(epsilon):
    """In at most 10 % of 200 audits of each (chance < 1e-6)."""
    too_many = binom.ppf(1 - 1e-6, 200, 0.1)
    assert sum(
        hockey_stick_lower(*gaussian(1.0, 400, seed), epsilon, 0.1) > GaussianDP(1.0).delta(epsilon) for seed in range(200)
    ) <= too_many  # fmt: skip
    worst = max(0.02, 0.02 + 0.98 * (1 - math.exp(epsilon - 1)) / (1 + math.exp(-1)))
    assert sum(
        hockey_stick_lower(*worst_case(1.0, 0.02, 400, seed), epsilon, 0.1) > worst + 1e-12 for seed in range(200)
    ) <= too_many  # fmt: skip


@pytest.mark.parametrize("truth", first(1, [1.0, 0.0, 3.0]))
def test_one_event_hardly_ever_overstates_epsilon(truth):
    """In at most 10 % of 300 audits (chance < 1e-6)."""
    wrong = sum(pure_epsilon_lower(*worst_case(truth, 0, 400, seed), 0.1) > truth for seed in range(300))
    assert wrong <= binom.ppf(1 - 1e-6, 300, 0.1)


def test_sharpness_of_events_at_a_hundred_thousand_replays():
    """Medians of nine."""
    truth = GaussianDP(1.0).delta(0.5)
    found = [hockey_stick_lower(*gaussian(1.0, 10**5, seed), 0.5, 0.05) for seed in range(9)]
    assert 0.96 <= np.median(found) / truth <= 1
    assert 0.97 <= np.median([pure_epsilon_lower(*laplace(1.0, 10**5, seed), 0.05) for seed in range(9)]) <= 1


def test_a_rare_output_that_betrays_its_side_is_found():
    """One output in 200 has a last bit that only the neighbor sets; nothing else tells."""
    for seed in range(5):
        data, neighbor = np.random.default_rng(seed).random((2, 10**5))
        neighbor[neighbor > 0.995] = 2.0
        assert 3.5 < pure_epsilon_lower(data, neighbor, 0.05) < math.log(500)
        assert 3.5 < pure_epsilon_lower(-neighbor, -data, 0.05) < math.log(500)


def test_numpy_laplace_betrays_itself_by_its_low_order_bits():
    """1 + noise is a multiple of 2^-53, noise alone has finer bits: epsilon is infinite, and a cast to float32 hides it."""
    generator = np.random.default_rng(1)
    data, neighbor = generator.laplace(0, 1, 10**5), 1 + generator.laplace(0, 1, 10**5)

    def has_no_finer_bits(outputs):
        return (np.ldexp(outputs.astype(float), 53) % 1 == 0).astype(float)

    assert pure_epsilon_lower(has_no_finer_bits(data), has_no_finer_bits(neighbor), 0.05) > 8
    rounded = [has_no_finer_bits(side.astype(np.float32)) for side in (data, neighbor)]
    assert pure_epsilon_lower(*rounded, 0.05) < 1


@pytest.mark.parametrize(
    "bound",
    [
        lambda x, y: renyi_lower(x, y, 2.0, 0.05),
        lambda x, y: renyi_lower(x, y, 2.0, 0.05, is_learned=True),
        lambda x, y: rho_lower(x, y, 0.05),
        lambda x, y: hockey_stick_lower(x, y, 0.5, 0.05),
        lambda x, y: pure_epsilon_lower(x, y, 0.05),
    ],
)
def test_scores_without_and_with_all_information(bound):
    for value in (0.0, np.inf):
        assert bound(np.full(200, value), np.full(200, value)) == 0
    assert bound(np.full(5000, -np.inf), np.full(5000, np.inf)) > 0.5
    data, neighbor = gaussian(1.0, 5000, 1)
    found = bound(data, neighbor)
    assert bound(data.astype(np.float32), neighbor.astype(np.float32)) == pytest.approx(found, rel=0.1, abs=0.01)


def test_an_epsilon_beyond_all_samples_has_no_delta():
    data, neighbor = np.full(5000, -np.inf), np.full(5000, np.inf)
    assert hockey_stick_lower(data, neighbor, 3.0, 0.05) > 0.5
    assert hockey_stick_lower(data, neighbor, 20.0, 0.05) == 0
    assert hockey_stick_lower(data, neighbor, 1e4, 0.05) == 0


# --- what is refused --------------------------------------------------------------------------------------------------


def test_what_is_refused():
    fine = np.linspace(-1, 1, 200)
    bounds = {
        "alpha": lambda x, y, value=2.0, level=0.05: renyi_lower(x, y, value, level),
        "epsilon": lambda x, y, value=0.5, level=0.05: hockey_stick_lower(x, y, value, level),
        "seed": lambda x, y, value=0, level=0.05: pure_epsilon_lower(x, y, level, seed=value),
        "train_share": lambda x, y, value=0.3, level=0.05: pure_epsilon_lower(x, y, level, train_share=value),
    }
    wrong = {"alpha": (1.0, 0.5, np.nan, np.inf), "epsilon": (-0.1, np.nan), "seed": (-1,), "train_share": (0.0, 1.0)}
    for name, bound in bounds.items():
        for value in wrong[name]:
            with pytest.raises(ValueError, match=f"{name} must .*got {value}"):
                bound(fine, fine, value)
        with pytest.raises(ValueError, match="neighbor must hold no NaN"):
            bound(fine, np.append(fine[:-1], np.nan))
        with pytest.raises(ValueError, match="equally many"):
            bound(fine, fine[:150])
        with pytest.raises(ValueError, match="at least 100 scores for this bound, got 99"):
            bound(fine[:99], fine[:99])
        with pytest.raises(ValueError, match="level must"):
            bound(fine, fine, level=1.5)
