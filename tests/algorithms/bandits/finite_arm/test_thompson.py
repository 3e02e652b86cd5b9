"""Private Thompson sampling: the posterior by hand, a naive implementation, the ledger, and regret."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from scipy.stats import norm

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb
from bandana.algorithms.bandits.finite_arm.thompson import dp_thompson, thompson
from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog, RegretCurve
from bandana.algorithms.run import run
from bandana.audits.searches.deterministic import search
from bandana.privacy_core import BudgetExceeded, GaussianDP, Interval, LiveLedger, Relation, ReproducibleNoise

UNIT = Interval(0.0, 1.0)
FIVE = (0.75, 0.625, 0.5, 0.375, 0.25)


def coins_of(n_reps, seed=3):
    return Coins(np.random.SeedSequence(seed), n_reps)


def regret(algorithm, grid, n_reps=100):
    arms, noise = np.random.SeedSequence(7).spawn(2)
    curve, ledger = RegretCurve(np.array(FIVE), np.array(grid), n_reps), LiveLedger(n_reps, ReproducibleNoise(noise))
    run(algorithm, BernoulliArms(FIVE, grid[-1], arms), ledger, observers=[curve], coins=coins_of(n_reps))
    return curve.curve


def naive(means, mu, rounds, rng):
    """Regret of one run, in plain Python with a generator of its own; mu None: no noise."""
    n_arms, noise = len(means), 0.0 if mu is None else 1 / mu
    kept = [[] for _ in means]  # an arm's batches: rewards, and their noisy sum
    lost, t = 0.0, 0
    while t < rounds:
        counts, sums = [0] * n_arms, [0.0] * n_arms
        while t < rounds:
            draws = []
            for batches in kept:
                precision = sum(n * n / (n / 4 + noise**2) for n, _ in batches)
                mean = sum(n * s / (n / 4 + noise**2) for n, s in batches) / precision if batches else 0.0
                draws.append(rng.normal(mean, 1 / math.sqrt(precision)) if batches else 0.0)
            arm = t if t < n_arms else int(np.argmax(draws))
            counts[arm], sums[arm] = counts[arm] + 1, sums[arm] + float(rng.random() < means[arm])
            lost, t = lost + max(means) - means[arm], t + 1
            if t >= n_arms and counts[arm] >= max(1, sum(n for n, _ in kept[arm])):
                break
        for arm, n in enumerate(counts):
            if n:
                kept[arm].append((n, sums[arm] + rng.normal(0, noise)))
    return lost


def test_the_posterior_by_hand():
    """Arm 0 pays 1 and arm 1 pays 0; mu = 1/2, so s = 2 and constant noise of 1 adds 2.

    First batch, n = 1 each: weight 1 / (1/4 + 4) = 4/17, sums 3 and 2. A second batch of 1 round of arm 0: again 3.
    """
    table = RewardTable(np.tile([1.0, 0.0], (2, 1)), UNIT)
    algorithm = dp_thompson(2, 2.0, 0.25, UNIT)
    _, released = run(algorithm, table, LiveLedger(1, ConstantNoise(1.0)), coins=coins_of(1))
    assert released.precision[0].tolist() == pytest.approx([4 / 17, 4 / 17])
    assert (released.weighted / released.precision)[0].tolist() == pytest.approx([3.0, 2.0])
    released.fresh[0, 0] = 2
    algorithm.learn(released, np.zeros(1, dtype=np.int64), np.array([[4.0, 7.0]]))
    assert released.precision[0].tolist() == pytest.approx([4 / 17 + 4 / 4.5, 4 / 17]), "a batch without pulls tells nothing"
    assert released.weighted[0].tolist() == pytest.approx([12 / 17 + 2 * 4 / 4.5, 8 / 17])
    assert released.pulls[0].tolist() == [3, 1]


def test_the_arm_has_the_largest_draw():
    """One coin an arm: 0.5 is the mean, 0.975 is 1.96 deviations above; a coin of 0 draws a finite number."""
    algorithm = thompson(3, UNIT, spread=2.0)
    _, released = algorithm.init(2)
    released.clock[:] = 9
    released.precision[:], released.weighted[:] = 4.0, 4.0 * np.array([0.5, 0.4, 0.45])
    coins = np.array([[0.5, 0.5, 0.5], [0.0, 0.6, 0.5]])
    draws = np.array([0.5, 0.4, 0.45]) + 2 * norm.ppf(np.maximum(coins, 2.0**-54)) / 2
    assert algorithm.act(released, None, 0, coins).tolist() == np.argmax(draws, axis=1).tolist() == [0, 1]


@pytest.mark.parametrize("mu", [None, 0.5, 2.0])
def test_a_naive_implementation_has_the_same_regret(mu):
    """Means of 1000 runs and of 250; five standard errors, false alarm 6e-7 for each."""
    means, rounds = FIVE[::2], 120
    ours = thompson(3, UNIT) if mu is None else dp_thompson(3, 2.0, mu**2, UNIT)
    curve, ledger = RegretCurve(np.array(means), np.array([rounds]), 1000), LiveLedger(
        1000, ReproducibleNoise(np.random.SeedSequence(1))
    )  # fmt: skip
    stream = BernoulliArms(means, rounds, np.random.SeedSequence(2))
    run(ours, stream, ledger, observers=[curve], coins=coins_of(1000))
    rng = np.random.default_rng(5)
    theirs = np.array([naive(means, mu, rounds, rng) for _ in range(250)])
    error = math.sqrt(curve.curve.var() / 1000 + theirs.var() / 250)
    assert abs(curve.curve.mean() - theirs.mean()) < 5 * error
    assert 5 * error < 0.3 * theirs.mean(), "the comparison could fail"


def test_every_record_pays_mu_once_and_batches_leave_no_gap():
    table = RewardTable(np.random.default_rng(5).random((200, 3)), UNIT)
    ledger, log = OwnNoiseLedger([1, 2], keeps_transcript=True), ActionLog()
    run(dp_thompson(3, 2.0, 0.25, UNIT), table, ledger, observers=[log], coins=coins_of(2))
    found = ledger.guarantee()
    assert isinstance(found, GaussianDP)
    assert found.relation is Relation.REPLACE_REWARD
    assert 0.5 * (1 - 1e-11) <= found.mu <= 0.5
    played, reached = np.stack(log.actions, axis=1), np.zeros(2, dtype=int)
    for entry in ledger.transcript:
        for row, rep in enumerate(range(2) if entry.reps is None else entry.reps.tolist()):
            start, stop = int(entry.records.start[row]), int(entry.records.stop[row])
            assert start == reached[rep]
            reached[rep] = stop
            sums = [table.rewards[start:stop][played[rep, start:stop] == a, a].sum() for a in range(3)]
            assert entry.value[row].tolist() == pytest.approx(sums)
    assert (reached > 100).all()
    assert len(ledger.transcript) < 40


def test_the_budget_refuses_before_noise_is_drawn():
    table = RewardTable(np.full((20, 2), 0.5), UNIT)
    small = LiveLedger(1, ConstantNoise(), budget=GaussianDP(0.49, relation=Relation.REPLACE_REWARD))
    with pytest.raises(BudgetExceeded):
        run(dp_thompson(2, 2.0, 0.25, UNIT), table, small, coins=coins_of(1))
    assert small.noise.calls == 0


def test_the_deterministic_audit_finds_nothing_in_a_wider_range():
    wide = Interval(-2.0, 1.0)
    algorithm = dp_thompson(2, 2.0, 1.0, wide)
    assert search(algorithm, wide, GaussianDP(1.0, relation=Relation.REPLACE_REWARD), max_examples=20) is None


def test_regret_is_sublinear_and_below_that_of_adar_ucb():
    """20 times the rounds cost less than 6 times as much; the paired difference is six standard errors."""
    ours = regret(dp_thompson(5, 2.0, 0.1, UNIT), [500, 10_000])
    assert ours.mean(axis=0)[1] < 6 * ours.mean(axis=0)[0]
    saved = regret(adar_ucb(5, 2.0, 0.1, 3.1, UNIT, "tight"), [500, 10_000])[:, 1] - ours[:, 1]
    assert saved.mean() > 6 * saved.std() / 10


def test_wrong_parameters_are_refused():
    for build, message in (
        (lambda: dp_thompson(1, 2.0, 1.0, UNIT), "n_actions must be at least 2, got 1"),
        (lambda: dp_thompson(2, 1.0, 1.0, UNIT), "alpha must be a Renyi order above 1, got 1.0"),
        (lambda: dp_thompson(2, 2.0, 0.0, UNIT), "epsilon"),
        (lambda: thompson(2, UNIT, spread=-1.0), "spread"),
    ):
        with pytest.raises(ValueError, match=message):
            build()
