"""Private EXP3: a batch by hand, a naive implementation, the ledger, and regret below the bound on adversarial arms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger

from bandana.algorithms.bandits.finite_arm.exp3 import adversarial_bound, exp3
from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import DriftingRegretCurve
from bandana.algorithms.run import run
from bandana.audits.searches.deterministic import search
from bandana.privacy_core import BudgetExceeded, Interval, LiveLedger, PureDP, Relation, ReproducibleNoise

UNIT = Interval(0.0, 1.0)


def coins_of(n_reps, seed=3):
    return Coins(np.random.SeedSequence(seed), n_reps)


def switching(rounds, n_arms=3):
    """Rewards of an adversary: arm 1 pays in the first third, arm 0 in the second, and arm 1 always from then on."""
    rewards = np.zeros((rounds, n_arms))
    rewards[: rounds // 3, 1] = rewards[rounds // 3 : 2 * rounds // 3, 0] = rewards[2 * rounds // 3 :, 1] = 1.0
    return rewards


def regret(algorithm, rewards, grid, n_reps=200):
    """(n_reps, n_grid) against the arm that is best at the end."""
    best = rewards.sum(axis=0).argmax()
    lost = np.concatenate([np.zeros((1, rewards.shape[1])), np.cumsum(rewards[:, [best]] - rewards, axis=0)])
    curve = DriftingRegretCurve(lost, np.array(grid), n_reps)
    ledger = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(1)))
    run(algorithm, RewardTable(rewards, UNIT), ledger, observers=[curve], coins=coins_of(n_reps))
    return curve.curve


def naive(rewards, epsilon, rng):
    """Regret of one run, in plain Python, with a generator of its own."""
    rounds, n_arms = rewards.shape
    length = math.ceil(1 / epsilon)
    noise, n_batches = 1 / (length * epsilon), math.ceil(rounds / length)
    rate = math.sqrt(math.log(n_arms) / (n_batches * n_arms * (0.5 + 4 * noise**2 / 3 + 2 * noise)))
    mix = min(1.0, 2 * rate * noise * n_arms)
    loss, gained = [0.0] * n_arms, 0.0
    for start in range(0, rounds, length):
        weights = [math.exp(-rate * x) for x in loss]
        p = [(1 - mix) * w / sum(weights) + mix / n_arms for w in weights]
        arm = int(rng.choice(n_arms, p=np.array(p) / sum(p)))
        paid = rewards[start : start + length, arm].sum()
        gained += paid
        loss[arm] += (1 - (paid + rng.laplace(scale=1 / epsilon)) / length) / p[arm]
    return rewards.sum(axis=0).max() - gained


def test_a_batch_by_hand():
    """epsilon = 1/2: batches of 2 rounds, b = 1. Rewards 1, noise 1 a sum: mean 4 / 2, loss 1 - 2 = -1 over p = 1/2."""
    algorithm = exp3(2, 0.5, UNIT, 4)
    assert algorithm.length == 2
    assert algorithm.noise == pytest.approx(1.0)
    assert algorithm.rate == pytest.approx(math.sqrt(math.log(2) / (2 * 2 * (0.5 + 4 / 3 + 2))))
    assert algorithm.mix == pytest.approx(2 * algorithm.rate * 2)
    _, released = run(algorithm, RewardTable(np.ones((2, 2)), UNIT), LiveLedger(1, ConstantNoise(1.0)), coins=coins_of(1))
    assert sorted(released.loss[0].tolist()) == pytest.approx([-2.0, 0.0])
    assert released.left.tolist() == [0]


def test_the_coin_falls_on_an_arm_in_proportion_and_a_batch_keeps_it():
    algorithm = exp3(3, 1.0, UNIT, 10_000)
    _, released = algorithm.init(4)
    released.loss[:] = np.array([0.0, 50.0, 20.0])
    p = algorithm.probabilities(released.loss)[0]
    assert p.sum() == pytest.approx(1.0)
    assert p[1] >= algorithm.mix / 3
    coins = np.array([[p[0] - 1e-9], [p[0] + 1e-9], [p[0] + p[1] + 1e-9], [0.0]])
    assert algorithm.act(released, None, 0, coins).tolist() == [0, 1, 2, 0]
    released.left[3], released.arm[3] = 1, 2
    assert algorithm.act(released, None, 0, coins).tolist() == [0, 1, 2, 2]


def test_a_naive_implementation_has_the_same_regret():
    """Means of 600 and of 300 runs; five standard errors, false alarm 6e-7."""
    rewards, rng = switching(300), np.random.default_rng(5)
    ours = regret(exp3(3, 0.5, UNIT, 300), rewards, [300], n_reps=600)[:, 0]
    theirs = np.array([naive(rewards, 0.5, rng) for _ in range(300)])
    error = math.sqrt(ours.var() / 600 + theirs.var() / 300)
    assert abs(ours.mean() - theirs.mean()) < 5 * error
    assert 5 * error < 0.3 * theirs.mean(), "the comparison could fail"


@pytest.mark.parametrize("epsilon", [None, 0.1, 1.0])
def test_regret_is_below_its_bound_at_every_round(epsilon):
    """Mean of 200 runs minus four standard errors: false alarm 3e-5; the bound is less than what uniform play loses."""
    rewards, grid = switching(6_000), [300, 2_000, 6_000]
    algorithm = exp3(3, epsilon, UNIT, 6_000)
    found, bound = regret(algorithm, rewards, grid), adversarial_bound(algorithm, grid)
    assert (found.mean(axis=0) - 4 * found.std(axis=0) / 200**0.5 <= bound).all()
    assert found.mean(axis=0)[-1] < 0.7 * 6_000 / 3
    if epsilon != 0.1:
        assert bound[-1] < 6_000 / 3
    wide = exp3(3, epsilon, Interval(-3.0, 1.0), 6_000)
    assert adversarial_bound(wide, grid) == pytest.approx(4 * bound)


def test_the_bound_is_that_of_the_docstring_and_nothing_without_enough_mixing():
    algorithm = exp3(4, 0.25, UNIT, 10**6)
    rate = math.sqrt(math.log(4) / (250_000 * 4 * (0.5 + 4 / 3 + 2)))
    mix = 2 * rate * 4
    expected = 4 * (math.log(4) / rate + 250_000 * (rate * 4 * (0.5 + 4 / 3) / (1 - mix) + mix))
    assert float(adversarial_bound(algorithm, 10**6)) == pytest.approx(expected, rel=1e-6)
    bare = type(algorithm)(**{**vars(algorithm), "mix": 0.0})
    assert float(adversarial_bound(bare, 10**6)) == 10**6
    assert float(adversarial_bound(algorithm, 1)) == 1.0


@pytest.mark.parametrize("epsilon", [0.07, 1.0, 5.0])
def test_every_record_pays_epsilon_once_and_batches_leave_no_gap(epsilon):
    table = RewardTable(np.random.default_rng(5).random((150, 3)), UNIT)
    ledger = OwnNoiseLedger([1, 2], keeps_transcript=True)
    run(exp3(3, epsilon, UNIT, 150), table, ledger, coins=coins_of(2))
    found = ledger.guarantee()
    assert isinstance(found, PureDP)
    assert epsilon * (1 - 1e-11) <= found.epsilon <= epsilon
    assert found.relation is Relation.REPLACE_REWARD
    reached = np.zeros(2, dtype=int)
    for entry in ledger.transcript:
        for row, rep in enumerate(range(2) if entry.reps is None else entry.reps.tolist()):
            start, stop = int(entry.records.start[row]), int(entry.records.stop[row])
            assert (start, stop - start) == (reached[rep], math.ceil(1 / epsilon))
            reached[rep] = stop
            assert entry.value[row] in table.rewards[start:stop].sum(axis=0)


def test_the_budget_refuses_before_noise_is_drawn():
    small = LiveLedger(1, ConstantNoise(), budget=PureDP(0.99, relation=Relation.REPLACE_REWARD))
    with pytest.raises(BudgetExceeded):
        run(exp3(2, 1.0, UNIT, 20), RewardTable(np.full((20, 2), 0.5), UNIT), small, coins=coins_of(1))
    assert small.noise.calls == 0


def test_the_deterministic_audit_finds_nothing_in_a_wider_range():
    wide = Interval(-2.0, 1.0)
    assert search(exp3(2, 1.0, wide, 24), wide, None, max_examples=20) is None


def test_wrong_parameters_are_refused():
    honest = exp3(2, 1.0, UNIT, 100)
    for changed, message in (({"n_actions": 1}, "at least 2, got 1"), ({"length": 0}, "at least 1 round, got 0"),
                             ({"mix": 2.0}, "mix must lie"), ({"rate": 0.0}, "rate")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            type(honest)(**{**vars(honest), **changed})
    with pytest.raises(ValueError, match="epsilon"):
        exp3(2, -1.0, UNIT, 100)
