"""Policies on a private regression: rules by hand, a naive copy that plays the same rounds, and what a record pays."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from doubles import OwnNoiseLedger

from bandana.algorithms.bandits.contextual.action_rules import BonusOptimization, InverseGap, PolicyOptimization
from bandana.algorithms.bandits.contextual.regression_policies import RegressionPolicy, ends_of
from bandana.algorithms.catalog import find
from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.audits.faults.fault import planted_as
from bandana.privacy_core import ApproxDP, Interval, LiveLedger, ReproducibleNoise

RANGE, PROMISE = Interval(-1.0, 1.0), ApproxDP(6.0, 1e-3)
NAMES = ("squarecb", "fastcb", "bpo", "vpo")
HORIZON, N_ACTIONS, DIMENSION, N_REPS = 150, 4, 2, 3


def built(name, model="joint", horizon=HORIZON, **parameters):
    entry = find(name, model)
    problem = Problem(N_ACTIONS, RANGE, horizon, dimension=DIMENSION)
    given = ("tight", PROMISE) if model == "joint" else ()
    return entry.build(entry.settings(problem, *given, **parameters))


def table(seed=3):
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(HORIZON, N_ACTIONS, DIMENSION))
    contexts /= np.linalg.norm(contexts, axis=2)[..., None]
    means = contexts @ np.array([0.5, -0.8])
    return ContextTable(contexts, np.where(rng.random(means.shape) < (1 + means) / 2, 1.0, -1.0), RANGE), means


class Overheard(RegressionPolicy):
    """Tells the noisy sums that it decides from."""

    def _learn(self, model, statistic, step):
        HEARD.append(statistic.copy())
        super()._learn(model, statistic, step)


HEARD: list[np.ndarray] = []


def sigma(z):
    return 1 / (1 + math.exp(-z))


def naive_probabilities(name, losses, sizes, coin, gamma_scale=10.0, rate_scale=128.0, bonus=0.01, rate=0.1):
    """The rules as in the papers' pseudo-code; losses: predictor -> action -> loss, sizes: of the batches."""
    n, f, t = len(losses[-1]), losses[-1], sum(sizes)
    if name in ("squarecb", "fastcb"):
        best, gamma = min(range(n), key=lambda a: f[a]), gamma_scale * math.sqrt(n * t)
        unit = f[best] if name == "fastcb" else 1
        p = [unit / (n * unit + gamma * (f[a] - f[best])) for a in range(n)]
        p[best] = 0
        p[best] = 1 - sum(p)
        return p
    if name == "vpo":
        eta = rate_scale * min(1 / n, 1 / math.sqrt(n * sizes[-1]))
        weights = [math.exp(-math.floor(coin * sizes[-1]) * eta * (f[a] - min(f))) for a in range(n)]
        return [weight / sum(weights) for weight in weights]
    weights, exposure, total = [1 / n] * n, [0.0] * n, 0
    for f, size in zip(losses, sizes, strict=True):
        total += size
        bonuses = [min(1, bonus * math.sqrt(total / n) / (1 + exposure[a])) for a in range(n)]
        exposure = [exposure[a] + size * weights[a] for a in range(n)]
        weights = [weights[a] * math.exp(-rate * size * max(0, f[a] - bonuses[a])) for a in range(n)]
        weights = [weight / sum(weights) for weight in weights]
    return weights


def naive(name, algorithm, stream, sums, coins):
    """One run, one round after the other, from noisy sums (n_releases, d, d + 1) and coins (n_users, n_coins)."""
    ends, thetas, actions, bound = list(algorithm.ends), [], [], 3.0
    for t in range(stream.n_users):
        if t in ends:
            k = ends.index(t) + 1
            shift = 1 + algorithm.matrix_norm * algorithm.sums.noise_deviation(k)
            thetas.append(np.linalg.solve(sums[k - 1][:, :2] + shift * np.eye(2), sums[k - 1][:, 2]))
        p = [1 / N_ACTIONS] * N_ACTIONS
        if thetas:
            logits = [[float(theta @ x) for x in stream.features[t]] for theta in thetas]
            if name == "fastcb":
                losses = [[sigma(-max(-bound, min(bound, z))) for z in row] for row in logits]
            else:
                losses = [[0.5 - z / 2 for z in row] for row in logits]
            sizes = [end - start for start, end in zip([0, *ends], ends[: len(thetas)], strict=False)]
            p = naive_probabilities(name, losses, sizes, coins[t][0])
        chosen, below = 0, p[0]
        while chosen < N_ACTIONS - 1 and coins[t][-1] >= below:
            chosen += 1
            below += p[chosen]
        actions.append(chosen)
    return actions


@pytest.mark.parametrize("name", NAMES)
def test_a_naive_copy_plays_the_same_rounds(name):
    """Given the noisy sums and the coins; and the sums' noise is no larger than declared, 8 deviations at most."""
    honest, (stream, _) = built(name), table()
    algorithm = planted_as(Overheard)(honest)
    HEARD.clear()
    log, coins = ActionLog(), Coins(np.random.SeedSequence(7), N_REPS)
    run(algorithm, stream, LiveLedger(N_REPS, ReproducibleNoise(np.random.SeedSequence(5))), observers=[log], coins=coins)
    sums, played = np.stack(HEARD[1:], axis=1), np.array(log.actions).T  # the first is before any release
    assert sums.shape == (N_REPS, len(honest.ends), 2, 3)
    drawn = np.stack([coins.draw(np.full(N_REPS, t), 0, honest.n_coins) for t in range(HORIZON)], axis=1)
    for r in range(N_REPS):
        assert naive(name, honest, stream, sums[r], drawn[r]) == played[r].tolist()
    if name != "fastcb":
        last = honest.ends[-1]
        x = stream.features[np.arange(last), played[0, :last]]
        error = (sums[0, -1, :, :2] - x.T @ x)[0, 1]
        assert 0 < abs(error) < 8 * honest.sums.noise_deviation(len(honest.ends))


@pytest.mark.parametrize("name", NAMES)
def test_the_twin_learns(name):
    """More than ten standard errors above uniform play, and above half of what the best actions give."""
    twin, (stream, means) = built(name, "none"), table()
    log = ActionLog()
    ledger = LiveLedger(64, ReproducibleNoise(np.random.SeedSequence(5)))
    run(twin, stream, ledger, observers=[log], coins=Coins(np.random.SeedSequence(1), 64))
    late = slice(HORIZON // 2, None)
    gained = np.take_along_axis(means[None], np.array(log.actions).T[:, :, None], axis=2)[:, late].mean(axis=(1, 2))
    assert gained.mean() > means[late].mean() + 10 * gained.std() / 8
    assert gained.mean() > means[late].max(axis=1).mean() / 2


@pytest.mark.parametrize("name", NAMES)
def test_a_record_pays_for_one_release(name):
    """One Gaussian event, of exactly the promise, whatever is released later."""
    ledger = OwnNoiseLedger([1, 2, 3])
    run(built(name), table()[0], ledger, coins=Coins(np.random.SeedSequence(1), 3))
    assert list(ledger.worst_record().values()) == [1]
    assert ledger.guarantee().epsilon(PROMISE.delta) == pytest.approx(PROMISE.epsilon)


def test_batches_end_at_public_rounds():
    assert ends_of(16, 2).tolist() == [1, 3, 7, 15]
    assert ends_of(15, 2).tolist() == [1, 3, 7]
    assert ends_of(8, 1).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert ends_of(12, 1.3).tolist() == [1, 2, 3, 5, 7, 10]
    assert ends_of(1, 2).tolist() == [1]


def test_inverse_gaps_by_hand():
    """K = 2, t = 2, gamma = 2 sqrt(2 x 2) = 4: 1 / (2 + 4 / 2) for the worse one, and with the least loss 1/4 in front."""
    losses, ends, coins = np.array([[[0.75, 0.25]]]), np.array([2]), np.zeros((1, 1))
    assert InverseGap(2.0).probabilities(losses, ends, coins).tolist() == [[0.25, 0.75]]
    assert InverseGap(2.0, is_relative=True).probabilities(losses, ends, coins).tolist() == [[0.1, 0.9]]
    equal = np.array([[[0.5, 0.5 - 1e-12, 0.5, 0.5]]])
    assert InverseGap(2.0).probabilities(equal, ends, coins)[0] == pytest.approx([0.25] * 4)


def test_vanilla_optimization_by_hand():
    """The second batch has two rounds: eta = 2 min(1/2, 1/2) = 1, and the first coin chooses q_0 or q_1."""
    losses, ends = np.array([[[1.0, 0.0]], [[1.0, 0.0]]]), np.array([1, 3])
    p = PolicyOptimization(2.0).probabilities(losses, ends, np.array([[0.49, 0.0], [0.5, 0.0]]))
    assert p == pytest.approx(np.array([[0.5, 0.5], [1 / (1 + math.e), math.e / (1 + math.e)]]))


def test_bonuses_by_hand():
    """Batches of 1 and 1: bonuses sqrt(1/2) at first, then sqrt(2/2) / (1 + q_1), q_1 = 1/2."""
    losses, ends = np.array([[[1.0, 0.8], [1.0, 0.9]]]), np.array([1, 2])
    first = 1 - math.sqrt(0.5), 0.8 - math.sqrt(0.5)
    logits = [-(first[0] + 1 / 3), -(first[1] + 0.9 - 2 / 3)]
    weights = np.exp(logits)
    p = BonusOptimization(1.0, 1.0).probabilities(losses, ends, np.zeros((1, 1)))
    assert p[0] == pytest.approx(weights / weights.sum())
    never = BonusOptimization(1e6, 1.0).probabilities(losses, ends, np.zeros((1, 1)))
    assert never.tolist() == [[0.5, 0.5]], "no loss is above a bonus of 1"


@pytest.mark.parametrize("n_reps", [1, 15, 16, 17, 40])
def test_each_replicate_of_bonus_optimization_is_as_if_it_were_alone(n_reps):
    losses = np.random.default_rng(n_reps).normal(0.5, 0.3, (n_reps, 5, N_ACTIONS))
    rule, ends = BonusOptimization(0.01, 0.1), np.array([1, 2, 4, 9, 20])
    alone = [rule.probabilities(each[None], ends, np.zeros((1, 1)))[0] for each in losses]
    assert rule.probabilities(losses, ends, np.zeros((n_reps, 1))).tolist() == [p.tolist() for p in alone]
    for each, p in zip(losses, alone, strict=True):
        assert p == pytest.approx(naive_probabilities("bpo", each, np.diff(ends, prepend=0), 0.0), rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_inverse_gaps_lose_what_is_proved(seed):
    """E f*_a - min f* <= 2 K / gamma + (gamma / 2) E (f - f*)^2, for any predictions and truth."""
    rng = np.random.default_rng(seed)
    predicted, true = rng.random((2, 50, 5))
    predicted = true + rng.choice([0.01, 0.1, 1.0]) * (predicted - true)
    rule, ends = InverseGap(rng.choice([0.1, 1.0, 10.0])), np.array([3])
    p, gamma = rule.probabilities(predicted[:, None], ends, np.zeros((50, 1))), rule.gamma(5, 3)
    lost = (p * true).sum(axis=1) - true.min(axis=1)
    assert (lost <= 2 * 5 / gamma + gamma / 2 * (p * (predicted - true) ** 2).sum(axis=1) + 1e-12).all()
    assert p.sum(axis=1) == pytest.approx(1)
    assert (p >= 0).all()


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [("squarecb", {"growth": 0.5}, "growth must be a finite number of at least 1, got 0.5")],
)
def test_refusals(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        built(name, **parameters)
    with pytest.raises(ValueError, match="no bound is proved"):
        built(name).regret_bound(5)
    with pytest.raises(ValueError, match="decides from contexts"):
        built(name).act(None, None, 0, np.zeros((1, 1)))
    with pytest.raises(ValueError, match="gamma_scale must"):
        replace(built(name).rule, gamma_scale=-1.0)


def test_a_coin_on_a_bound_belongs_to_the_action_above_it():
    """All losses are equal before the first release, so each of four actions has a quarter of [0, 1)."""
    algorithm = built("squarecb")
    _, released = algorithm.init(4)
    coins = np.zeros((4, 2)) + np.array([0.0, 0.25, 0.5, 0.75])[:, None]
    assert algorithm.act(released, np.zeros((4, N_ACTIONS, DIMENSION)), 0, coins).tolist() == [0, 1, 2, 3]
