"""Lower bounds for kernels by hand: one pair, the linear kernel, contexts of a pool; and the functions of the proof."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from bandana.algorithms import catalog
from bandana.algorithms.lower_bounds import contextual, kernels
from bandana.algorithms.lower_bounds.lower_bound import Privacy, Reach
from bandana.algorithms.lower_bounds.selection import lower_bound
from bandana.algorithms.lower_bounds.two_problems import summed_errors
from bandana.algorithms.problem import Problem
from bandana.algorithms.rkhs.kernels import Linear, Matern, SquaredExponential, gram
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import ApproxDP, Interval, TrustModel

RANGE = Interval(-1.0, 1.0)
GRID = np.array([10, 1000, 100_000])
JOINT, LOCAL = TrustModel.JOINT, TrustModel.LOCAL


def test_the_spread_of_one_pair_by_hand():
    # K = [[1, k], [k, 1]], P = (1, -1): P^T K^-1 P = 2 / (1 - k); functions of norm 1 differ by at most sqrt(2 (1 - k)).
    kernel = SquaredExponential(0.5)
    k = math.exp(-2.0)  # at a distance of 1
    assert kernels.most_spread(kernel, [[[0.0], [1.0]]]) == pytest.approx(math.sqrt((1 - k) / 2))
    # The linear kernel: f(x) = <w, x> of norm l |w|; g = 3 opposite pairs on the axes, |w| = s sqrt 3.
    opposite = np.stack([np.eye(3), -np.eye(3)], axis=1)
    assert kernels.most_spread(Linear(1.0), opposite) == pytest.approx(1 / math.sqrt(3))
    assert kernels.most_spread(Linear(2.0), opposite) == pytest.approx(1 / math.sqrt(12))
    # Twice the same point, and a pair on the same side, whose values a linear function cannot choose.
    assert kernels.most_spread(kernel, [[[0.3], [0.3]]]) == 0
    assert kernels.most_spread(Linear(1.0), [[[0.5], [1.0]]]) == 0


@pytest.mark.parametrize("kernel", [SquaredExponential(0.4), Matern(1.5, 0.8), Linear(1.5)])
def test_every_pattern_of_the_proof_is_a_function_of_the_class(kernel):
    pairs = np.array([[[1.0, 0.0], [-1.0, 0.0]], [[0.0, 1.0], [0.0, -1.0]]])
    s, points = kernels.most_spread(kernel, pairs), pairs.reshape(-1, 2)
    inner = gram(kernel, points, points)
    norms = []
    for signs in itertools.product((1.0, -1.0), repeat=2):
        values = s * np.repeat(signs, 2) * np.tile([1.0, -1.0], 2)
        weights = np.linalg.lstsq(inner, values, rcond=1e-9)[0]
        assert inner @ weights == pytest.approx(values)
        norms.append(math.sqrt(weights @ inner @ weights))
    assert max(norms) == pytest.approx(1.0)  # by symmetry the largest eigenvalue is reached


def test_the_linear_kernel_has_the_bound_of_linear_rewards():
    for privacy in (Privacy(), Privacy(mu=0.1, trust=JOINT), Privacy(epsilon=0.5, trust=LOCAL)):
        found = kernels.minimax_bound(GRID, Linear(1.0), 2, RANGE, privacy).values
        # With d = 2 groups it is the other's; one group alone, with s = 1, may be worse.
        assert (found >= contextual.minimax_bound(GRID, 2, RANGE, privacy).values - 1e-9).all()


def test_a_pool_of_one_context_by_hand():
    # Every user brings it: n = T, of which the share 1 - 1 / (2 sqrt T) is counted; s = sqrt((1 - k) / 2).
    kernel, horizon = SquaredExponential(0.5), 400.0
    pool = Pool(np.array([[[0.0], [0.5], [1.0]]]), np.ones(1))
    s = math.sqrt((1 - math.exp(-2.0)) / 2)
    privacy = Privacy(epsilon=1e-3, trust=JOINT)
    least = 2 * s / 2 * (1 - 1 / 40) * float(summed_errors(horizon, s, privacy))
    assert kernels.pooled_bound([horizon], kernel, pool, RANGE, privacy).values == pytest.approx([least], rel=1e-6)


@pytest.mark.parametrize(("rounds", "chance"), [(3, 0.3), (50, 0.1), (2000, 0.25)])
def test_random_numbers_of_users_lose_no_more_than_is_taken_off(rounds, chance):
    n = np.arange(rounds + 1)
    mean = rounds * chance
    for privacy in (Privacy(), Privacy(epsilon=0.1, trust=JOINT), Privacy(mu=0.3, trust=JOINT)):
        expected = (binom.pmf(n, rounds, chance) * summed_errors(n, 0.2, privacy)).sum()
        assert max(0.0, 1 - 0.5 / math.sqrt(mean)) * summed_errors(mean, 0.2, privacy) <= expected + 1e-12


@pytest.mark.parametrize("label", ["gp-ucb non-private", "gp-ucb joint", "gp-ucb local", "capri joint", "capri local"])
def test_every_kind_of_kernel_bandit_has_a_bound(label):
    entry, kernel = catalog.find(label), Matern(1.5, 0.8)
    points = np.linspace(-1, 1, 12).reshape(3, 4, 1)
    pool = Pool(points, np.array([0.5, 0.25, 0.25])) if "pooled" in entry.plays_on else None
    problem = Problem(4, RANGE, 1000, dimension=1, kernel=kernel, pool=pool)
    level = ApproxDP(1.0, 1e-5) if entry.is_private else None
    settings = entry.settings(problem, "tight" if entry.is_private else None, level)
    found = lower_bound(settings, entry.promise(settings) if entry.promise else None, None, GRID)
    assert found.reach is Reach.WORST_PROBLEM
    assert (np.diff(found.values) > 0).all()
    assert found.values[-1] > 1
    assert ("pool" in found.text) == (pool is not None)


def test_private_kernel_bounds_grow_as_privacy_does():
    values = [
        kernels.minimax_bound([10**4], SquaredExponential(0.3), 2, RANGE, Privacy(mu=mu, trust=trust)).values[0]
        for trust in (JOINT, LOCAL)
        for mu in (0.01, 0.1, 1.0, 30.0)
    ]
    assert values[:4] == sorted(values[:4], reverse=True)
    assert values[4:] == sorted(values[4:], reverse=True)
    assert values[4] > values[0]
