"""DP-TT: costs beside slow exact ones and d_epsilon, the test beside plain Python, its errors beside what is proved."""

from __future__ import annotations

import math

import best_arm_references as plain
import numpy as np
import pytest
from doubles import OwnNoiseLedger
from nightly import first
from scipy.stats import binom

from bandana.algorithms.bandits.best_arm.top_two import adap_tt, dp_tt, gaussian_tt, transport_top_two
from bandana.algorithms.bandits.best_arm.transport import MEANS, TransportRules, two_exponentials
from bandana.algorithms.bandits.best_arm.transport_numba import transport_costs
from bandana.algorithms.catalog import find
from bandana.algorithms.decision import decision
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.lower_bounds.divergences import bernoulli_kl, private_kl
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.privacy_core import Exact, Gaussian, Interval, Laplace, LiveLedger, PureDP, RenyiDP, ReproducibleNoise

UNIT = Interval(0.0, 1.0)


def cost(rules, high, high_k, low, low_k):
    """The transport cost of an arm of estimate `high` over one of `low`, after so many episodes each."""
    of, out = rules.costs, np.empty((1, 2))
    at = np.array([[high, low]]), np.array([[high_k - 1, low_k - 1]]), np.zeros(1, dtype=np.int64)

    transport_costs(*at, of.table, of.slack, of.sizes, MEANS, of.tilts, out)
    return out[0, 1]


def rules_of(noise, horizon=1 << 16, growth=2.0, scale=1.0):
    return TransportRules(3, noise, 1.0, 0.1, growth, horizon, scale)


def test_two_exponential_variables_exceed_the_threshold_as_seldom_as_it_says():
    for level in (0.5, 5.0, 20.0):
        c = two_exponentials(level)
        assert (1 + c) * math.exp(-c) == pytest.approx(math.exp(-level), rel=1e-9)
    sums = np.random.default_rng(1).exponential(size=(2, 200_000)).sum(axis=0)
    assert (sums >= two_exponentials(3.0)).mean() == pytest.approx(math.exp(-3), rel=0.05)


@pytest.mark.parametrize("noise", [Exact(), Laplace(1.0, 4.0), Gaussian(1.0, 3.0)])
def test_costs_are_never_above_the_exact_ones_and_close_to_them(noise):
    """Exact: convex in u, minimized by golden sections; the maximum over tilts by fine grids, 0.1 % below it at most."""
    rules, rng = rules_of(noise), np.random.default_rng(5)
    b = noise.scale if isinstance(noise, Laplace) else 0.0

    def chernoff(k, x):
        """The function u -> the largest exponent of Chernoff's bound for a mean above u, after k episodes."""
        n = np.array([plain.doubling(e + 1) for e in range(k)], dtype=float)
        precision = 1 / (1 / (4 * n) + (noise.deviation / n) ** 2)
        w = precision / precision.sum() / n
        largest = min(12.0, (1 - 1e-6) / b) if b else 12.0
        parts = np.concatenate([np.linspace(0, 1, 3000), np.geomspace(1e-6, 1, 3000), 1 - np.geomspace(1e-9, 1, 500)])
        tilt = parts * largest / w.max()
        tilted = w * tilt[:, None]
        of_noise = -np.log1p(-np.minimum((b * tilted) ** 2, 1 - 1e-9)) if b else (noise.scale * tilted) ** 2 / 2
        moved, known = np.expm1(tilted), tilt * x - of_noise.sum(axis=1)
        return lambda u: float((known - np.log1p(u * moved) @ n).max())

    for _ in range(25):
        k, m = rng.integers(4, 14, 2)
        high, low = np.sort(rng.random(2))[::-1] + rng.normal(size=2) * 0.05
        above, below = chernoff(k, high), chernoff(m, 1 - low)
        exact = plain.least(lambda u, above=above, below=below: above(u) + below(1 - u), 26) if high > low else 0.0
        found = cost(rules, high, int(k), low, int(m))
        assert found <= exact * (1 + 1e-3) + 1e-9
        assert found >= exact * 0.985 - 0.02


def test_a_cost_without_noise_is_that_of_divergences():
    """Both arms have n rewards: the cost is min over u of n (kl(0.7, u) + kl(0.4, u))."""
    k, n = 12, 2**11
    u = np.linspace(0.4, 0.7, 10_001)
    exact = n * (bernoulli_kl(0.7, u) + bernoulli_kl(0.4, u)).min()
    assert 0.99 * exact <= cost(rules_of(Exact()), 0.7, k, 0.4, k) <= exact * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 1.0])
def test_costs_of_many_rewards_tend_to_the_divergence_of_the_lower_bound(epsilon):
    """With noise they are below n min over u of (d_epsilon + d_epsilon), of all rewards, and above half of it."""
    k, n = 16, 2**15
    u = np.linspace(0.3, 0.7, 4001)
    bound = n * (private_kl(0.7, u, epsilon) + private_kl(0.3, u, epsilon)).min()
    found = cost(rules_of(Laplace(1.0, 1 / epsilon)), 0.7, k, 0.3, k)
    assert 0.5 * bound <= found <= bound


def test_costs_turn_with_the_arms_and_vanish_where_nothing_leads():
    rules = rules_of(Laplace(1.0, 2.0))
    assert cost(rules, 0.4, 5, 0.4, 6) == cost(rules, 0.2, 5, 0.4, 6) == 0.0
    assert cost(rules, 0.6, 8, 0.1, 9) == pytest.approx(cost(rules, 0.9, 9, 0.4, 8), rel=2e-3)
    assert cost(rules, 0.6, 8, 0.1, 9) < cost(rules, 0.6, 9, 0.1, 9) < cost(rules, 0.65, 9, 0.1, 9)
    assert math.isfinite(cost(rules, 90.0, 2, -90.0, 2))


def test_what_an_estimate_tells_errs_as_seldom_as_chernoff_says():
    """Costs between arms of equal means exceed c with probability at most (1 + c) exp(-c); rewards of 0, 1/3 and 1 too."""
    rules, rng, n_tests = rules_of(Laplace(1.0, 1.5)), np.random.default_rng(2), 20_000
    lengths, shares = rules.episodes
    estimates = []
    for values, p in (([0.0, 1.0], [0.7, 0.3]), ([0.0, 1 / 3, 1.0], [0.5, 0.3, 0.2])):
        mean = np.zeros(n_tests)
        for k in range(6):
            sums = np.array(values) @ rng.multinomial(lengths[k], p, size=n_tests).T + rng.laplace(scale=1.5, size=n_tests)
            mean = (1 - shares[k]) * mean + shares[k] * sums / lengths[k]
        estimates.append(mean)
    mean = np.stack(estimates, axis=1)
    of, out = rules.costs, np.empty((n_tests, 2))

    best = np.zeros(n_tests, dtype=np.int64)
    transport_costs(mean, np.full((n_tests, 2), 5), best, of.table, of.slack, of.sizes, MEANS, of.tilts, out)
    for c in (2.0, 4.0, 6.0):
        assert (out[:, 1] >= c).sum() <= binom.isf(1e-6, n_tests, (1 + c) * math.exp(-c))
    assert (out[:, 1] >= 0.5).sum() > 500, "costs are not all zero"


@pytest.mark.parametrize("seed", first(2, [2, 3, 0, 1]))
def test_dp_tt_is_its_pseudocode(seed):
    rng = np.random.default_rng(seed)
    means = [[0.02, 0.3, 0.04], [0.1, 0.15, 0.9], [0.5, 0.52, 0.51], [0.6, 0.1, 0.2]][seed]
    table = (rng.random((900, 3)) < means).astype(float)
    draws = rng.laplace(scale=0.5, size=100)

    class Given:
        """The noise that the plain algorithm has."""

        n_reps, at = 1, 0

        def release(self, mechanism, value, *, records, reps=None, carried=None):
            self.at += 1
            return value + draws[self.at - 1]

    algorithm, log = dp_tt(3, 2.0, 0.2, UNIT, len(table)), ActionLog()
    _, released = run(algorithm, RewardTable(table, UNIT), Given(), observers=[log])
    actions = np.concatenate([np.full(n[0], a[0]) for n, a in zip(log.n_records, log.actions, strict=True)])
    expected, arm, stopped = plain.dp_tt(table.tolist(), iter(draws), algorithm.sums.mechanism.scale, 0.2)
    assert actions.tolist() == expected
    assert released.stopped[0] == stopped
    assert (stopped > 0) == (seed != 2), "both ways to end are seen"
    assert stopped == 0 or arm == int(np.argmax(means)) == decision(algorithm, released).arm[0]


EVERY = {
    "exact": lambda: transport_top_two(3, 0.1, UNIT, 30_000),
    "laplace": lambda: dp_tt(3, 0.3, 0.1, UNIT, 30_000),
    "gaussian": lambda: gaussian_tt(3, 2.0, 0.1, 0.1, UNIT, 30_000, growth=1.4),
    "uniform": lambda: dp_tt(3, 0.3, 0.1, UNIT, 30_000, sampling="uniform"),
    "other range": lambda: dp_tt(3, 0.3, 0.1, Interval(-1.0, 3.0), 30_000),
}


@pytest.mark.parametrize("name", EVERY)
def test_tests_stop_and_are_wrong_as_seldom_as_proved(name):
    """At error 0.1 and with 400 tests, more than 71 would be wrong with probability 1e-6 at most."""
    algorithm = EVERY[name]()
    span = algorithm.reward_range
    arms = BernoulliArms([0.08, 0.2, 0.05], 30_000, np.random.SeedSequence(3))
    if span != UNIT:
        rng = np.random.default_rng(3)
        rows = rng.random((30_000, 3)) < [0.08, 0.2, 0.05]
        arms = RewardTable(span.low + span.width * rows.astype(float), span)
    _, released = run(algorithm, arms, LiveLedger(400, ReproducibleNoise(np.random.SeedSequence(4))))
    decided = decision(algorithm, released)
    assert (decided.stopped > 0).mean() > 0.9
    assert ((decided.arm != 1) & (decided.stopped > 0)).sum() <= binom.isf(1e-6, 400, 0.1)


def test_thresholds_scaled_down_break_the_promise_and_promise_nothing():
    algorithm = dp_tt(2, 1.0, 0.1, UNIT, 4000, beta_scale=0.1)
    assert algorithm.error_bound(np.zeros(2)) is None
    arms = BernoulliArms([0.05, 0.052], 4000, np.random.SeedSequence(3))
    _, released = run(algorithm, arms, LiveLedger(400, ReproducibleNoise(np.random.SeedSequence(4))))
    decided = decision(algorithm, released)
    assert ((decided.arm == 0) & (decided.stopped > 0)).sum() > binom.isf(1e-6, 400, 0.1)


@pytest.mark.parametrize("means", [[0.01, 0.015, 0.04], [0.96, 0.985, 0.99]])
def test_a_test_of_small_or_large_rates_stops_in_half_of_the_rounds_of_adap_tt(means):
    """Paired runs: the same rewards and the same noise, 100 tests; half of AdaP-TT's mean is above five standard errors."""
    times, horizon = [], 400_000
    for build in (dp_tt, adap_tt):
        algorithm = build(3, 1.0, 0.1, UNIT, horizon)
        arms = BernoulliArms(means, horizon, np.random.SeedSequence(3))
        _, released = run(algorithm, arms, LiveLedger(100, ReproducibleNoise(np.random.SeedSequence(4))))
        stopped = decision(algorithm, released).stopped
        times.append(np.where(stopped > 0, stopped, horizon))
    spared = times[1] / 2 - times[0]
    assert spared.mean() > 5 * spared.std() / 10


def test_noise_does_not_hide_the_best_arm_for_ever():
    """The first estimate of the best arm is 12 too small, and two others are equally good: it is pulled again in time."""
    table = RewardTable((np.random.default_rng(1).random((60_000, 3)) < [0.9, 0.4, 0.4]).astype(float), UNIT)

    class Spoiled:
        """Exact releases, but for the first one."""

        n_reps, noise = 1, -12.0

        def release(self, mechanism, value, *, records, reps=None, carried=None):
            noise, self.noise = self.noise, 0.0
            return value + noise

    algorithm = dp_tt(3, 0.5, 0.1, UNIT, 60_000)
    decided = decision(algorithm, run(algorithm, table, Spoiled())[1])
    assert decided.arm[0] == 0
    assert 0 < decided.stopped[0] < 60_000


@pytest.mark.parametrize("label", ["dp-tt", "dp-tt renyi"])
def test_the_worst_record_pays_the_claim_once(label):
    entry, table = find(label), RewardTable(np.random.default_rng(1).random((500, 4)), UNIT)
    level = PureDP(0.7) if entry.guarantee == "pure" else RenyiDP(2.0, 0.49)
    ledger = OwnNoiseLedger([1, 2, 3])
    run(entry.build(entry.settings(Problem(4, UNIT, 500), "tight", level)), table, ledger)
    assert sum(ledger.worst_record().values()) == 1
    paid = ledger.guarantee()
    assert (paid.epsilon if entry.guarantee == "pure" else paid.mu) == pytest.approx(0.7)


def test_growth_below_what_tables_hold_is_refused():
    with pytest.raises(ValueError, match=r"growth must be at least 1.05 for transport costs, got 1.01"):
        dp_tt(2, 1.0, 0.1, UNIT, 10, growth=1.01)


@pytest.mark.parametrize("noise", [Exact(), Laplace(1.0, 4.0), Gaussian(1.0, 3.0)])
def test_the_scale_of_a_lead_is_that_at_which_it_is_just_certain(noise):
    """Short tests of audits stop by it: at a smaller scale any lead would end them before a sum is released again."""
    scale = rules_of(noise).scale_of(0.75)
    k, rounds = np.full((1, 3), 2), np.array([6])
    for factor, is_certain in ((0.99, False), (1.01, True)):
        mean = 0.5 + np.array([[0.375, -0.375, -0.375]]) * factor
        assert rules_of(noise, scale=scale).judge(k, mean, rounds).is_certain.tolist() == [is_certain]
