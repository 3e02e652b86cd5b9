"""DP-KLUCB and DP-IMED: kernels, the pseudo-code, the ledger, the tail that the bounds rest on, and regret."""

from __future__ import annotations

import math

import kernel_references
import numpy as np
import pytest
from batch_references import batches as reference
from batch_references import d
from doubles import ConstantNoise, OwnNoiseLedger
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.algorithms.bandits.finite_arm import batches_numba
from bandana.algorithms.bandits.finite_arm.batch_bounds import batch_bound, schedule_of
from bandana.algorithms.bandits.finite_arm.episodic_ucb import adap_klucb
from bandana.algorithms.bandits.finite_arm.growing_batches import PARTS, dp_imed, dp_klucb
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog, RegretCurve
from bandana.algorithms.run import run
from bandana.audits.searches.deterministic import search
from bandana.privacy_core import Exact, Interval, LiveLedger, PureDP, ReproducibleNoise

UNIT = Interval(0.0, 1.0)
FIVE = (0.75, 0.625, 0.5, 0.375, 0.25)
KNOWN, TIGHT = PARTS["as-known"], PARTS["tight"]
unit = st.floats(0.0, 1.0)
epsilons = st.floats(1e-3, 20.0)
builders = pytest.mark.parametrize("build", [dp_klucb, dp_imed])
estimators = pytest.mark.parametrize("parts", [KNOWN, TIGHT], ids=["sum", "weighted"])


def regret(algorithm, grid, means=FIVE, n_reps=200):
    """(n_reps, n_grid) with the same draws for every algorithm as far as it asks for the same."""
    arms, noise = np.random.SeedSequence(7).spawn(2)
    curve = RegretCurve(np.array(means), np.array(grid), n_reps)
    stream = BernoulliArms(means, grid[-1], arms)
    run(algorithm, stream, LiveLedger(n_reps, ReproducibleNoise(noise)), observers=[curve])
    return curve.curve


# --- kernels -------------------------------------------------------------------------------------------------------------


@given(p=unit, q=unit, epsilon=epsilons)
def test_the_divergence_is_the_infimum_by_its_definition(p, q, epsilon):
    low, high = min(p, q), max(p, q)
    assert batches_numba.divergence(low, high, epsilon) == pytest.approx(d(low, high, epsilon), rel=1e-7, abs=1e-9)


@given(p=unit, budget=st.floats(1e-6, 20.0), epsilon=epsilons | st.just(math.inf))
def test_the_largest_mean(p, budget, epsilon):
    found = batches_numba.largest_mean(p, budget, epsilon)
    assert found == pytest.approx(kernel_references.largest_mean_reference(p, budget, epsilon), abs=1e-8)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n_arms=st.integers(2, 6), epsilon=epsilons, beta=st.floats(0.2, 4.0))
def test_the_chosen_arms_are_those_of_the_indices(seed, n_arms, epsilon, beta):
    """Where no index is 1, so that none tie; for a reward range from -1 to 3."""
    rng, n_reps = np.random.default_rng(seed), 10
    size = rng.integers(1, 10**6, (n_reps, n_arms)).astype(float)
    total = size * rng.uniform(-1.2, 3.2, (n_reps, n_arms))
    clock, zeros, out = rng.integers(0, 10**6, n_reps), np.zeros(n_reps, dtype=np.int64), np.empty(n_reps, dtype=np.int64)
    largest, least = kernel_references.index_reference(total, size, clock, beta, epsilon, -1.0, 4.0)
    batches_numba.optimistic_arms(total, size, size, zeros, zeros, clock, beta, epsilon, 0.0, -1.0, 4.0, out)
    rows = np.arange(n_reps)
    assert largest[rows, out] == pytest.approx(largest.max(axis=1), abs=1e-8)
    batches_numba.least_divergent_arms(total, size, size, zeros, zeros, epsilon, 0.0, -1.0, 4.0, out)
    assert least[rows, out] == pytest.approx(least.min(axis=1), rel=1e-7)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n_arms=st.integers(2, 6),
    epsilon=st.sampled_from([0.01, 1.0, 10.0, math.inf]),
    variance=st.sampled_from([0.0, 1e-6, 0.01, 1.0, 1e4]),
    deviation=st.sampled_from([0.0, 0.1, 3.0, 100.0]),
    shift=st.sampled_from([-1.0, -0.5, 0.0, 0.5]),
)
def test_an_index_that_is_not_searched_is_less_than_the_chosen_one(seed, n_arms, epsilon, variance, deviation, shift):
    """Equal to the search of every index, also where means lie outside of the range or indices tie at 0 or at 1."""
    rng, n_reps = np.random.default_rng(seed), 50
    size = 2.0 ** rng.integers(0, 14, (n_reps, n_arms))
    noise = rng.integers(1, 14, (n_reps, n_arms)).astype(float)
    total = size * (shift + rng.integers(0, 5, (n_reps, n_arms)) / 4) + deviation * rng.normal(size=(n_reps, n_arms))
    clock, zeros, out = rng.integers(0, 10**6, n_reps), np.zeros(n_reps, dtype=np.int64), np.empty(n_reps, dtype=np.int64)
    batches_numba.optimistic_arms(total, size, noise, zeros, zeros, clock, 1.0, epsilon, variance, 0.0, 1.0, out)
    for r in range(n_reps):
        level, mean, spread = math.log(max(clock[r] + 1, 2)), total[r] / size[r], variance * noise[r] / size[r]
        indices = [batches_numba.largest_index(mean[a], level / size[r, a], epsilon, spread[a]) for a in range(n_arms)]
        assert out[r] == indices.index(max(indices))


def test_the_middle_of_a_batch_keeps_its_arm_and_an_unplayed_arm_goes_first():
    size, arm = np.array([[4.0, 4.0, 0.0], [4.0, 4.0, 0.0]]), np.array([1, 1])
    left, clock, out = np.array([3, 0]), np.array([9, 9]), np.empty(2, dtype=np.int64)
    batches_numba.optimistic_arms(size, size, size, arm, left, clock, 1.0, 1.0, 0.0, 0.0, 1.0, out)
    assert out.tolist() == [1, 2]
    batches_numba.least_divergent_arms(size, size, size, arm, left, 1.0, 0.0, 0.0, 1.0, out)
    assert out.tolist() == [1, 2]


def test_what_is_released_by_hand():
    """Arm 0 always pays; epsilon = 2, so noise of 3 is 1.5 a batch; one batch for each of 1, 1, 2 rounds.

    Weights 1 / (1/4 + 1 / (2 n)): 4/3 and 2 for n = 1 and 2. Weighted sums: 2.5, 5, then 5 (4/3) / 2 + 3.5 = 41/6.
    """
    table = RewardTable(np.tile([1.0, 0.0], (5, 1)), UNIT)
    for parts, total, size in ((KNOWN, 8.5, 4.0), (TIGHT, 41 / 6, 10 / 3)):
        _, released = run(dp_imed(2, 2.0, UNIT, parts, 1.0), table, LiveLedger(1, ConstantNoise(3.0)), horizon=2)
        for _ in range(2):
            n = max(1, int(released.pulls[0, 0]))
            released.pulls[0, 0] += n
            zero = np.zeros(1, dtype=np.int64)
            dp_imed(2, 2.0, UNIT, parts, 1.0).learn(released, zero, zero, np.array([n + 1.5]), np.array([n]))
        assert (released.total[0, 0], released.size[0, 0]) == (pytest.approx(total), pytest.approx(size))


# --- the pseudo-code, and the ledger -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("build", "parts"), [(dp_klucb, KNOWN), (dp_imed, KNOWN), (dp_imed, TIGHT)])
@pytest.mark.parametrize(("epsilon", "growth"), [(0.2, 1.0), (1.0, 0.5), (8.0, 2.0)])
def test_the_pseudo_code_plays_the_same_rounds(build, parts, epsilon, growth):
    for seed in range(2):
        rewards = np.random.default_rng(seed).random((200, 3)) * np.array([0.4, 1.0, 0.7])
        log, ledger = ActionLog(), OwnNoiseLedger([seed])
        run(build(3, epsilon, UNIT, parts, growth), RewardTable(rewards, UNIT), ledger, observers=[log])
        found = np.concatenate([np.repeat(a, n) for a, n in zip(log.actions, log.n_records, strict=True)])
        noise = np.random.default_rng(seed).laplace(size=200).tolist()
        weighted = parts is TIGHT
        assert found.tolist() == reference(rewards.tolist(), noise, epsilon, growth, weighted, build is dp_imed)


@builders
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_every_record_is_read_once_and_pays_epsilon(build, epsilon):
    table = RewardTable(np.random.default_rng(5).random((150, 3)), UNIT)
    ledger = OwnNoiseLedger([1, 2], keeps_transcript=True)
    run(build(3, epsilon, UNIT, KNOWN, 0.7), table, ledger)
    found = ledger.guarantee()
    assert isinstance(found, PureDP)
    assert epsilon * (1 - 1e-11) <= found.epsilon <= epsilon
    reached = np.zeros(2, dtype=int)
    for entry in ledger.transcript:
        for row, rep in enumerate(range(2) if entry.reps is None else entry.reps.tolist()):
            start, stop = int(entry.records.start[row]), int(entry.records.stop[row])
            assert start == reached[rep], "batches follow one another without a gap"
            reached[rep] = stop
            assert entry.value[row] in table.rewards[start:stop].sum(axis=0), "a batch holds its own rewards alone"


@builders
def test_the_deterministic_audit_finds_nothing_in_a_wider_range(build):
    wide = Interval(-2.0, 1.0)
    assert search(build(3, 1.0, wide, TIGHT if build is dp_imed else KNOWN, 0.4), wide, None, max_examples=20) is None


@pytest.mark.parametrize(("build", "bad"), [(dp_imed, {"growth": 0.0}), (dp_klucb, {"growth": 1.0, "beta": -1.0})])
def test_wrong_parameters_are_refused(build, bad):
    with pytest.raises(ValueError, match=r"growth|beta"):
        build(2, 1.0, UNIT, KNOWN, **bad)
    with pytest.raises(ValueError, match="n_actions must be at least 2, got 1"):
        build(1, 1.0, UNIT, KNOWN, 1.0)
    with pytest.raises(ValueError, match="epsilon"):
        build(2, -1.0, UNIT, KNOWN, 1.0)


# --- the tail and the bounds ---------------------------------------------------------------------------------------------


@estimators
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_mean_is_far_off_as_seldom_as_its_tail_says(parts, epsilon):
    """After 6 batches of an arm of mean 0.6, 200,000 times; five standard errors, false alarm 3e-7 for each exponent."""
    algorithm, n_reps = dp_imed(2, epsilon, UNIT, parts, 1.0), 200_000
    rng, zeros = np.random.default_rng(3), np.zeros(n_reps, dtype=np.int64)
    _, released = algorithm.init(n_reps)
    schedule = schedule_of(algorithm, 32)
    for length in (1, 1, 2, 4, 8, 16):
        noisy = rng.binomial(length, 0.6, n_reps) + rng.laplace(scale=1 / epsilon, size=n_reps)
        algorithm.learn(released, np.arange(n_reps), zeros, noisy, np.full(n_reps, length))
    size = released.size[0, 0]
    assert schedule.pulls[5] == 32
    assert schedule.size[5] == pytest.approx(size)
    p = np.clip(released.total[:, 0] / size, 0, 1)
    below = np.array([batches_numba.divergence(min(x, 0.6), 0.6, epsilon) for x in p]) * size
    above = np.array([batches_numba.divergence(min(1 - x, 0.4), 0.4, epsilon) for x in p]) * size
    for exponent in (0.5, 1.0, 2.0, 4.0):
        most = math.exp(schedule.log_tail(np.full(len(schedule.pulls), exponent))[5])
        for apart in (below, above):
            assert (apart >= exponent).mean() <= most + 5 * math.sqrt(most / n_reps)
    assert math.exp(schedule.log_tail(np.full(len(schedule.pulls), 40.0))[5]) < 1e-6, "the tail says something"


@pytest.mark.parametrize(
    "algorithm",
    [
        dp_imed(2, None, UNIT, TIGHT, 1.0), dp_imed(2, 1.0, UNIT, KNOWN, 1.0), dp_imed(2, 1.0, UNIT, TIGHT, 0.5),
        dp_klucb(2, None, UNIT, KNOWN, 1.0, 3.0), dp_klucb(2, 1.0, UNIT, KNOWN, 1.0, 3.0),
    ],
)  # fmt: skip
def test_regret_is_below_its_bound_and_the_bound_below_the_whole(algorithm):
    """Mean of 200 runs, and four standard errors: false alarm 3e-5 for each."""
    grid, means = [1_000, 1_000_000], (0.2, 0.8)
    found, bound = regret(algorithm, grid, means), batch_bound(algorithm, grid, means)
    assert (found.mean(axis=0) - 4 * found.std(axis=0) / 200**0.5 <= bound).all()
    assert bound[1] < 0.6 * 1_000_000 / 100
    assert bound[1] < 12 * max(bound[0], 60)
    wide = Interval(-3.0, 1.0)
    scaled = type(algorithm)(**{**vars(algorithm), "reward_range": wide, "sums": _scaled(algorithm.sums, 4.0)})
    assert batch_bound(scaled, grid, [-3 + 4 * m for m in means]) == pytest.approx(4 * bound)
    assert batch_bound(algorithm, 100, [0.5, 0.5]) == 0.0
    assert batch_bound(algorithm, 1, means) == pytest.approx(0.6), "one round costs the largest gap at most"


def _scaled(sums, factor):
    if isinstance(sums.mechanism, Exact):
        return sums
    mechanism = sums.mechanism
    return type(sums)(type(mechanism)(mechanism.sensitivity * factor, mechanism.noise_multiplier, mechanism.relation))


# --- regret --------------------------------------------------------------------------------------------------------------


@builders
@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.25, 1.0, 10.0])
def test_it_costs_less_than_adap_klucb_on_the_figure_of_azize_and_basu(build, epsilon):
    """Paired over 100 runs of 1e6 rounds: six standard errors, and at least a third less in `tight` of AdaP-KLUCB too."""
    parts = TIGHT if build is dp_imed else KNOWN
    ours = regret(build(5, epsilon, UNIT, parts, 1.0), [1_000_000], n_reps=100)[:, 0]
    for calibration in ("printed", "tight"):
        saved = regret(adap_klucb(5, epsilon, 3.1, UNIT, calibration), [1_000_000], n_reps=100)[:, 0] - ours
        assert saved.mean() > 6 * saved.std() / 100**0.5
        assert saved.mean() > ours.mean() / 2


def test_weighted_batches_spare_dp_imed_its_worst_runs():
    """At epsilon = 0.1 in 300 runs of 1e6 rounds: the worst tenth of the runs."""
    plain, weighted = (
        np.sort(regret(dp_imed(5, 0.1, UNIT, parts, 0.5), [1_000_000], n_reps=300)[:, 0])[-30:] for parts in (KNOWN, TIGHT)
    )
    assert weighted.mean() < plain.mean() / 2
