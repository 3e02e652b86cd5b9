"""DP-KLUCB and DP-IMED with Gaussian noise: the divergence, the algorithm as written, the ledger, the tail, and regret."""

from __future__ import annotations

import math

import numpy as np
import pytest
from batch_references import kl
from doubles import OwnNoiseLedger
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import bisect, minimize_scalar

from bandana.algorithms.bandits.finite_arm import batches_numba
from bandana.algorithms.bandits.finite_arm.growing_batches import PARTS, dp_imed, gaussian_imed, gaussian_klucb
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog, RegretCurve
from bandana.algorithms.run import run
from bandana.audits.searches.deterministic import search
from bandana.privacy_core import Interval, LiveLedger, PureDP, ReproducibleNoise

UNIT = Interval(0.0, 1.0)
builders = pytest.mark.parametrize("build", [gaussian_klucb, gaussian_imed])
means = st.floats(0.01, 0.99)
variances = st.floats(1e-3, 1e3)


def surprise(p, q, v):
    """The kernel's divergence, without the place of its maximum."""
    return batches_numba.smoothed_divergence(p, q, v)[0]


def divergence(p, q, v):
    """The least kl(r, q) + (r - p)^2 / (2 v) over r, by search."""
    if p >= q:
        return 0.0
    if q in (0, 1):
        return (q - p) ** 2 / (2 * v)
    loss = minimize_scalar(
        lambda r: kl(r, q) + (r - p) ** 2 / (2 * v), bounds=(max(p, 0.0), q), method="bounded", options={"xatol": 1e-13}
    )
    return float(loss.fun)


def as_written(table, noise, mu, growth, is_imed):
    """Actions in plain Python, round by round; `noise` holds standard normal draws, one a batch."""
    horizon, n_arms = len(table), len(table[0])
    draws, actions, kept = iter(noise), [], [[] for _ in range(n_arms)]  # an arm's batches: length and noisy sum

    def estimate(batches):
        variance = [n / 4 + 1 / mu**2 for n, _ in batches]  # of a batch's sum; that of its mean is this over n^2
        weights = [n / of_sum for (n, _), of_sum in zip(batches, variance, strict=True)]
        weights = [weight / weights[-1] for weight in weights]
        size = sum(w * n for w, (n, _) in zip(weights, batches, strict=True))
        p = sum(w * s for w, (_, s) in zip(weights, batches, strict=True)) / size
        return p, size, sum(w * w for w in weights) / mu**2 / size

    def choice():
        if new := [a for a in range(n_arms) if not kept[a]]:
            return new[0]
        known = [estimate(batches) for batches in kept]
        if is_imed:
            best = min(max(max(p for p, _, _ in known), 0.0), 1.0)
            index = [n * divergence(p, best, v) + math.log(n) for p, n, v in known]
            return index.index(min(index))
        keys = []
        for p, n, v in known:
            budget = math.log(len(actions) + 1) / n
            q, tie = 1.0, p + math.sqrt(2 * v * budget)
            if divergence(p, 1 - 1e-9, v) > budget:
                q, low = 0.0, max(p, 0.0)
                if divergence(p, low, v) <= budget:
                    q = bisect(lambda q: divergence(p, q, v) - budget, low, 1 - 1e-9, xtol=1e-12)  # noqa: B023
            keys.append((q, tie if q == 1.0 else 0.0))
        return keys.index(max(keys))

    while len(actions) < horizon:
        a = choice()
        length = max(1, math.ceil(growth * sum(n for n, _ in kept[a])))
        rewards = [row[a] for row in table[len(actions) : len(actions) + length]]
        actions += [a] * len(rewards)
        if len(rewards) == length:
            kept[a].append((length, sum(rewards) + next(draws) / mu))
    return actions


@given(q=means, below=st.floats(0.0, 3.0), v=variances)
def test_the_divergence_is_the_minimum_by_its_definition(q, below, v):
    p = q - below
    assert surprise(p, q, v) == pytest.approx(divergence(p, q, v), rel=1e-7, abs=1e-9)


@given(p=st.floats(-2.0, 1.0), logit=st.floats(-20.0, 20.0), log_v=st.floats(-12.0, 7.0))
@example(p=-0.03111629, logit=3.898, log_v=-3.4447)  # Newton's method from another start circles
@example(p=0.0287, logit=4.6, log_v=-2.485)
def test_the_divergence_is_the_maximum_of_its_dual(p, logit, log_v):
    q, v = 1 / (1 + math.exp(-logit)), math.exp(log_v)

    def slope(s):
        return q * math.exp(-s) / (1 - q + q * math.exp(-s)) - p - s * v

    if p >= q:
        assert surprise(p, q, v) == 0.0
        return
    s = bisect(slope, 0.0, (q - p) / v, xtol=1e-15, maxiter=300)
    assert surprise(p, q, v) == pytest.approx(-s * p - math.log1p(q * math.expm1(-s)) - s * s * v / 2, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("q", [0.0, 1.0])
def test_at_the_ends_of_the_range_the_noise_alone_explains(q):
    assert surprise(q - 0.5, q, 2.0) == pytest.approx(0.0625)
    assert surprise(q, q, 2.0) == 0.0


def test_without_much_noise_it_is_that_of_kl_and_with_much_that_of_the_noise():
    assert surprise(0.3, 0.6, 1e-9) == pytest.approx(kl(0.3, 0.6), rel=1e-6)
    assert surprise(0.3, 0.6, 1e9) == pytest.approx(0.3**2 / 2e9, rel=1e-6)


@given(q=means, below=st.floats(0.0, 0.5), v=variances)
def test_the_largest_mean_is_where_the_divergence_meets_the_budget(q, below, v):
    budget = surprise(q - below, q, v)
    largest = batches_numba.largest_smoothed_mean(q - below, budget, v)
    assert largest == pytest.approx(q, abs=1e-6) or surprise(q - below, largest, v) == pytest.approx(budget, rel=1e-9)
    assert batches_numba.largest_smoothed_mean(-1.0, 1e-9, 1.0) == 0.0, "no mean is within the budget"


def test_a_largest_mean_that_bisection_with_120_digits_gave():
    largest = batches_numba.largest_smoothed_mean(0.028706623176594115, 1.3862943611198906, 0.08333333333333333)
    assert largest == pytest.approx(0.8864910786981538, abs=1e-11)


@builders
@pytest.mark.parametrize(("mu", "growth"), [(0.3, 1.0), (1.0, 0.5), (6.0, 2.0)])
def test_the_algorithm_as_written_plays_the_same_rounds(build, mu, growth):
    for seed in range(2):
        rewards = np.random.default_rng(seed).random((200, 3)) * np.array([0.4, 1.0, 0.7])
        log = ActionLog()
        run(build(3, 2.0, mu**2, UNIT, growth), RewardTable(rewards, UNIT), OwnNoiseLedger([seed]), observers=[log])
        played = np.concatenate([np.repeat(a, n) for a, n in zip(log.actions, log.n_records, strict=True)])
        noise = np.random.default_rng(seed).normal(size=200).tolist()
        assert played.tolist() == as_written(rewards.tolist(), noise, mu, growth, build is gaussian_imed)


@builders
def test_rewards_of_another_range_are_brought_to_the_unit_interval(build):
    rewards = np.random.default_rng(1).random((200, 3)) * np.array([0.4, 1.0, 0.7])
    logs = [ActionLog(), ActionLog()]
    for log, low, width in zip(logs, (0.0, -2.0), (1.0, 4.0), strict=True):
        span = Interval(low, low + width)
        run(build(3, 2.0, 1.0, span, 1.0), RewardTable(low + width * rewards, span), OwnNoiseLedger([5]), observers=[log])
    assert np.array_equal(np.concatenate(logs[0].actions), np.concatenate(logs[1].actions))


@builders
@pytest.mark.parametrize("mu", [0.05, 1.0, 9.0])
def test_every_record_pays_exactly_mu(build, mu):
    ledger = OwnNoiseLedger([1, 2])
    table = RewardTable(np.random.default_rng(5).random((150, 3)), UNIT)
    run(build(3, 2.0, mu**2, UNIT, 0.7), table, ledger)
    assert mu * (1 - 1e-11) <= ledger.guarantee().mu <= mu


@builders
def test_the_deterministic_audit_finds_nothing_in_a_wider_range(build):
    wide = Interval(-2.0, 1.0)
    assert search(build(3, 2.0, 1.0, wide, 0.4), wide, None, max_examples=20) is None


@builders
def test_wrong_parameters_are_refused(build):
    for bad, message in (((2, 1.0, 1.0), "alpha"), ((2, 2.0, -1.0), "epsilon"), ((1, 2.0, 1.0), "n_actions")):
        with pytest.raises(ValueError, match=message):
            build(*bad, UNIT, 1.0)
    with pytest.raises(ValueError, match="growth"):
        build(2, 2.0, 1.0, UNIT, 0.0)
    with pytest.raises(ValueError, match="beta"):
        gaussian_klucb(2, 2.0, 1.0, UNIT, 1.0, beta=0.0)


@pytest.mark.parametrize("mu", [0.25, 1.0])
def test_a_mean_is_far_off_as_seldom_as_its_divergence_says(mu):
    """After 6 batches of an arm of mean 0.6, 200,000 times; five standard errors, false alarm 3e-7 for each exponent."""
    algorithm, n_reps = gaussian_imed(2, 2.0, mu**2, UNIT, 1.0), 200_000
    rng, zeros = np.random.default_rng(3), np.zeros(n_reps, dtype=np.int64)
    _, released = algorithm.init(n_reps)
    for length in (1, 1, 2, 4, 8, 16):
        noisy = rng.binomial(length, 0.6, n_reps) + rng.normal(scale=1 / mu, size=n_reps)
        algorithm.learn(released, np.arange(n_reps), zeros, noisy, np.full(n_reps, length))
    size, v = released.size[0, 0], algorithm.variance * released.noise[0, 0] / released.size[0, 0]
    p = released.total[:, 0] / size
    below = np.array([surprise(x, 0.6, v) for x in p]) * size
    above = np.array([surprise(1 - x, 0.4, v) for x in p]) * size
    for exponent in (0.5, 1.0, 2.0, 4.0):
        for apart in (below, above):
            share = (apart >= exponent).mean()
            assert share <= math.exp(-exponent) + 5 * math.sqrt(math.exp(-exponent) / n_reps)
            assert share > 0.05 * math.exp(-exponent), "the tail says something"


def test_at_equal_mu_gaussian_noise_costs_less_than_laplace_noise():
    """At mu = 0.25 on the arms of Azize and Basu, paired over 100 runs: six standard errors."""
    arms, table = (0.75, 0.625, 0.5, 0.375, 0.25), {}
    pure = PureDP(0.19961307384059926)
    assert pure.gdp().mu == pytest.approx(0.25, rel=1e-9)
    for name, algorithm in (
        ("gaussian", gaussian_imed(5, 2.0, 0.25**2, UNIT, 1.0)),
        ("laplace", dp_imed(5, pure.epsilon, UNIT, PARTS["tight"], 1.0)),
    ):
        environment, noise = np.random.SeedSequence(7).spawn(2)
        curve = RegretCurve(np.array(arms), np.array([100_000]), 100)
        stream = BernoulliArms(arms, 100_000, environment)
        run(algorithm, stream, LiveLedger(100, ReproducibleNoise(noise)), observers=[curve])
        table[name] = curve.curve[:, -1]
    saved = table["laplace"] - table["gaussian"]
    assert saved.mean() > 6 * saved.std() / 10
