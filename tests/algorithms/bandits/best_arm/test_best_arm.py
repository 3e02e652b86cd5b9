"""Best-arm identification: tables by hand, plain Python beside it, errors and stopping times beside what is proved."""

from __future__ import annotations

import math

import best_arm_references as plain
import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from scipy.stats import binom

from bandana.algorithms.bandits.best_arm.halving import dp_bai, gaussian_bai, sequential_halving
from bandana.algorithms.bandits.best_arm.rules import DifferenceRules, episode_lengths, noise_exponent
from bandana.algorithms.bandits.best_arm.top_two import adap_tt, adar_tt, top_two
from bandana.algorithms.catalog import find
from bandana.algorithms.decision import decision
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.privacy_core import Exact, Gaussian, Interval, Laplace, LiveLedger, PureDP, RenyiDP, ReproducibleNoise

UNIT = Interval(0.0, 1.0)


def played(algorithm, stream, ledger, **more):
    log = ActionLog()
    _, released = run(algorithm, stream, ledger, observers=[log], **more)
    actions = [
        np.concatenate([np.full(n[r], a[r]) for n, a in zip(log.n_records, log.actions, strict=True)])
        for r in range(ledger.n_reps)
    ]
    return np.array(actions), decision(algorithm, released)


def test_episodes_double_and_grow():
    assert episode_lengths(2.0, 8).tolist() == [1, 1, 2, 4, 8]
    assert episode_lengths(1.5, 6).tolist() == [1, 1, 1, 2, 3]
    assert episode_lengths(3.0, 3).tolist() == [1, 2, 6]


@pytest.mark.parametrize("mechanism", [Exact(), Gaussian(1.0, 2.0), Laplace(1.0, 2.0)])
def test_the_exponent_of_noise_is_that_of_its_density(mechanism):
    x = np.linspace(-400, 400, 800_001)
    if isinstance(mechanism, Exact):
        assert noise_exponent(mechanism, np.array([0.3])).tolist() == [0.0]
        return
    is_laplace = isinstance(mechanism, Laplace)
    density = np.exp(-np.abs(x) / 2) / 4 if is_laplace else np.exp(-(x**2) / 8) / math.sqrt(8 * math.pi)
    expected = math.log((density * np.exp(0.3 * x)).sum() * (x[1] - x[0]))
    assert noise_exponent(mechanism, np.array([0.3]))[0] == pytest.approx(expected, rel=1e-6)
    if is_laplace:
        assert noise_exponent(mechanism, np.array([0.5, 0.6])).tolist() == [math.inf, math.inf]


def test_pooled_tables_of_gaussian_noise_by_hand():
    """Episodes of 1, 1 and 2 rewards, s = 1: proxies 5/4, 5/4 and 3/8, so that the third weighs 10/3 times the others."""
    tables = DifferenceRules(3, Gaussian(1.0, 1.0), 1.0, 0.1, 2.0, 4).tables
    assert tables.episodes.lengths.tolist() == [1, 1, 2, 4]
    assert tables.episodes.shares.tolist() == pytest.approx([1, 1 / 2, 5 / 8])
    assert tables.spread.tolist() == pytest.approx([5 / 4, 5 / 8, 15 / 64])
    # Gaussian on both sides: the least over lambda is sqrt(2 v L), v = 5/4 + 15/64, L = log(2 * 3 * 3 / 0.1).
    exact = math.sqrt(2 * (5 / 4 + 15 / 64) * math.log(2 * 3 * 3 / 0.1))
    assert exact <= tables.threshold[0, 2] <= 1.001 * exact
    assert np.allclose(tables.threshold, tables.threshold.T)


def test_a_test_of_two_arms_by_hand():
    """Without noise, rewards 0 and 1 in equal groups: it stops as soon as the arms' episodes allow a lead of 1."""
    algorithm = top_two(2, 0.2, UNIT, 200, sampling="uniform")
    actions, decided = played(algorithm, RewardTable(np.tile([0.0, 1.0], (200, 1)), UNIT), LiveLedger(1, ConstantNoise(0.0)))
    needed, episodes = algorithm.rules.tables.threshold, [0, 0]
    expected = 0
    for turn in range(20):  # the arms take turns, the first one first
        arm = turn % 2
        expected += int(algorithm.rules.tables.episodes.lengths[episodes[arm]])
        episodes[arm] += 1
        if min(episodes) and needed[episodes[1] - 1, episodes[0] - 1] <= 1:
            break
    assert (decided.arm.tolist(), decided.stopped.tolist()) == ([1], [expected])
    assert 4 <= expected < 100
    assert (actions[0][expected:] == 1).all()


@pytest.mark.parametrize("seed", range(4))
def test_adap_tt_is_its_pseudocode(seed):
    """Rewards of 0, 1/2 and 1, whose sums are exact: both decide alike, on a test that stops and on one that does not."""
    rng = np.random.default_rng(seed)
    table = (rng.random((3000, 3)) < [0.05, 0.95, 0.1]).astype(float) if seed % 2 else rng.integers(0, 3, (400, 3)) / 2
    draws = [rng.laplace(scale=0.5, size=100) for _ in range(4)]
    algorithm = adap_tt(3, 2.0, 0.3, UNIT, len(table), "as-known")

    class Given:
        """The noise that the plain algorithm has, in units of the scale."""

        n_reps, at = 1, 0

        def release(self, mechanism, value, *, records, reps=None, carried=None):
            self.at += 1
            return value + draws[seed][self.at - 1]

    actions, decided = played(algorithm, RewardTable(table, UNIT), Given())
    expected, arm, stopped = plain.adap_tt(table.tolist(), iter(draws[seed]), algorithm.sums.mechanism.scale, 0.3)
    assert actions[0].tolist() == expected
    assert (decided.arm[0], decided.stopped[0]) == (arm, stopped)
    assert (stopped > 0) == (seed % 2 == 1), "both ways to end are seen"


@pytest.mark.parametrize("n_arms", [2, 3, 5, 8])
def test_dp_bai_is_its_pseudocode(n_arms):
    rng = np.random.default_rng(n_arms)
    table, draws = (rng.random((203, n_arms)) < 0.5).astype(float), rng.laplace(size=50)
    given = iter(draws)

    class Given:
        n_reps = 1

        def release(self, mechanism, value, *, records, reps=None, carried=None):
            return value + next(given)

    actions, decided = played(dp_bai(n_arms, 1.0, UNIT, 203, "as-known"), RewardTable(table, UNIT), Given())
    expected, arm, stopped = plain.dp_bai(table.tolist(), iter(draws))
    assert actions[0].tolist() == expected
    assert (decided.arm[0], decided.stopped[0]) == (arm, stopped)


EVERY = {
    "two": lambda: top_two(3, 0.1, UNIT, 30_000),
    "laplace": lambda: adap_tt(3, 0.3, 0.1, UNIT, 30_000),
    "gaussian": lambda: adar_tt(3, 2.0, 0.1, 0.1, UNIT, 30_000, growth=1.4),
    "uniform": lambda: adap_tt(3, 0.3, 0.1, UNIT, 30_000, sampling="uniform"),
}


@pytest.mark.parametrize("name", EVERY)
def test_tests_stop_and_are_wrong_as_seldom_as_proved(name):
    """At error 0.1 and with 400 tests, more than 71 would be wrong with probability 1e-6 at most."""
    algorithm = EVERY[name]()
    arms = BernoulliArms([0.45, 0.55, 0.4], 30_000, np.random.SeedSequence(3))
    _, released = run(algorithm, arms, LiveLedger(400, ReproducibleNoise(np.random.SeedSequence(4))))
    decided = decision(algorithm, released)
    assert (decided.stopped > 0).mean() > 0.9
    assert ((decided.arm != 1) & (decided.stopped > 0)).sum() <= binom.isf(1e-6, 400, 0.1)


def test_thresholds_scaled_down_break_the_promise_and_promise_nothing():
    """A control: at a tenth of the threshold tests on two nearly equal arms err more often than 10 %."""
    algorithm = adap_tt(2, 1.0, 0.1, UNIT, 4000, beta_scale=0.1)
    assert algorithm.error_bound(np.zeros(2)) is None
    arms = BernoulliArms([0.5, 0.505], 4000, np.random.SeedSequence(3))
    _, released = run(algorithm, arms, LiveLedger(400, ReproducibleNoise(np.random.SeedSequence(4))))
    decided = decision(algorithm, released)
    assert ((decided.arm == 0) & (decided.stopped > 0)).sum() > binom.isf(1e-6, 400, 0.1)


@pytest.mark.parametrize(
    "build",
    [
        lambda: sequential_halving(5, UNIT, 1500),
        lambda: dp_bai(5, 0.5, UNIT, 1500, "as-known"),
        lambda: dp_bai(5, 0.5, UNIT, 1500),
        lambda: gaussian_bai(5, 2.0, 0.25, UNIT, 1500),
    ],
)
def test_errors_of_a_budget_stay_below_their_bound(build):
    """With 400 tests: the bound is below 1/2, and is passed by chance with probability at most 1e-6."""
    algorithm, means = build(), np.array([0.3, 0.4, 0.35, 0.62, 0.2])
    arms = BernoulliArms(means, 1500, np.random.SeedSequence(3))
    _, released = run(algorithm, arms, LiveLedger(400, ReproducibleNoise(np.random.SeedSequence(4))))
    bound = algorithm.error_bound(means)
    assert bound < 0.5
    assert (decision(algorithm, released).arm != 3).sum() <= binom.isf(1e-6, 400, bound)


@pytest.mark.parametrize("label", ["adap-tt", "adap-tt renyi", "dp-bai", "dp-bai renyi"])
def test_the_worst_record_pays_the_claim_once(label):
    entry, table = find(label), RewardTable(np.random.default_rng(1).random((500, 4)), UNIT)
    level = PureDP(0.7) if entry.guarantee == "pure" else RenyiDP(2.0, 0.49)
    for calibration in entry.calibrations:
        ledger = OwnNoiseLedger([1, 2, 3])
        run(entry.build(entry.settings(Problem(4, UNIT, 500), calibration, level)), table, ledger)
        assert sum(ledger.worst_record().values()) == 1
        paid = ledger.guarantee()
        assert (paid.epsilon if entry.guarantee == "pure" else paid.mu) == pytest.approx(0.7)


@pytest.mark.parametrize("calibration", ["as-known", "tight"])
def test_noise_does_not_hide_the_best_arm_for_ever(calibration):
    """The first estimate of the best arm is 12 too small, and two others are equally good: it is pulled again in time."""
    table = RewardTable((np.random.default_rng(1).random((60_000, 3)) < [0.9, 0.4, 0.4]).astype(float), UNIT)

    class Spoiled:
        """Exact releases, but for the first one."""

        n_reps, noise = 1, -12.0

        def release(self, mechanism, value, *, records, reps=None, carried=None):
            noise, self.noise = self.noise, 0.0
            return value + noise

    _, decided = played(adap_tt(3, 0.5, 0.1, UNIT, 60_000, calibration), table, Spoiled())
    assert decided.arm[0] == 0
    assert 0 < decided.stopped[0] < 60_000


def test_top_two_stops_sooner_than_equal_groups():
    """Paired runs on five arms, 200 tests: the mean difference is above five standard errors."""
    times = []
    for sampling in ("top-two", "uniform"):
        algorithm = adap_tt(5, 0.5, 0.1, UNIT, 60_000, sampling=sampling, growth=1.3)
        arms = BernoulliArms([0.2, 0.3, 0.3, 0.35, 0.45], 60_000, np.random.SeedSequence(3))
        _, released = run(algorithm, arms, LiveLedger(200, ReproducibleNoise(np.random.SeedSequence(4))))
        times.append(decision(algorithm, released).stopped)
        assert (times[-1] > 0).all()
    spared = times[1] - times[0]
    assert spared.mean() > 5 * spared.std() / math.sqrt(200)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: adap_tt(2, 0.0, 0.1, UNIT, 10), "epsilon must be"),
        (lambda: adap_tt(2, 1.0, 1.0, UNIT, 10), "error must lie"),
        (lambda: adap_tt(2, 1.0, 0.1, UNIT, 10, growth=1.0), "growth must be above 1"),
        (lambda: adap_tt(2, 1.0, 0.1, UNIT, 10, "loose"), "calibration must be"),
        (lambda: adap_tt(2, 1.0, 0.1, UNIT, 10, sampling="none"), "sampling must be"),
        (lambda: adar_tt(2, 1.0, 1.0, 0.1, UNIT, 10), "alpha must be"),
        (lambda: adap_tt(1, 1.0, 0.1, UNIT, 10), "n_actions must be"),
        (lambda: dp_bai(5, 1.0, UNIT, 14), "budget must be at least 15"),
        (lambda: find("dp-bai").build(find("dp-bai").settings(Problem(2, UNIT, 9), "tight", PureDP(1.0), budget=10)),
         r"budget must be at most the horizon \(9\), got 10"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_labels_turn_a_recommendation_into_the_streams_arm():
    algorithm, labels = dp_bai(2, 1.0, UNIT, 50), np.array([[1, 0], [0, 1]])
    table = RewardTable(np.tile([1.0, 0.0], (50, 1)), UNIT)
    _, released = run(algorithm, table, LiveLedger(2, ConstantNoise(0.0)), labels=labels)
    assert decision(algorithm, released).arm.tolist() == [1, 0]
    assert decision(algorithm, released, labels).arm.tolist() == [0, 0]
    assert decision(find("ucb").build(find("ucb").settings(Problem(2, UNIT, 50))), None) is None
    assert decision(algorithm, released).stopped.tolist() == [50, 50]
