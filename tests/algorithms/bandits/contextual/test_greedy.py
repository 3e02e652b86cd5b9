"""The greedy regression: a round by hand, a naive copy that agrees, what a record pays, and its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from naive_copies import assert_as_good

from bandana.algorithms.bandits.contextual.greedy import GreedySettings
from bandana.algorithms.catalog import find
from bandana.algorithms.environments.sphere import LinearLink, SphereContexts
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.observers import ActionLog, ContextualRegretCurve
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, Interval, LiveLedger, ReproducibleNoise

UNIT, PROMISE = Interval(0.0, 1.0), ApproxDP(2.0, 1e-5)
KAPPA = 0.15
"""Diversity of greedy choices among ten vectors of the sphere in three dimensions."""


def table(horizon, seed):
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(horizon, 4, 2))
    contexts /= np.linalg.norm(contexts, axis=2)[..., None]
    means = 0.5 + 0.4 * contexts @ np.array([0.6, -0.8])
    return ContextTable(contexts, (rng.random(means.shape) < means).astype(float), UNIT), means


def naive(stream, sigma, q, rng):
    """One run, one round after the other: choose greedily, send (x x^T, y x) with noise, add up, solve."""
    gram, vector, theta, actions = np.zeros((2, 2)), np.zeros(2), np.zeros(2), []
    for t in range(stream.n_users):
        actions.append(int(np.argmax(stream.features[t] @ theta)))
        x, y = stream.features[t, actions[-1]], stream.rewards[t, actions[-1]] - 0.5
        z = rng.normal(scale=sigma, size=(2, 2))
        gram += np.outer(x, x) + (z + z.T) / math.sqrt(2)
        vector += y * x + rng.normal(scale=sigma, size=2)
        theta = np.linalg.solve(gram + (1 + q * math.sqrt(t + 1)) * np.eye(2), vector)
    return np.array(actions)


def test_a_naive_copy_agrees():
    """Mean rewards of 500 runs each on one table differ by less than 5 standard errors: false alarm 6e-7."""
    horizon, n_reps = 120, 500
    stream, means = table(horizon, 3)
    algorithm = GreedySettings(4, 2, horizon, UNIT).private(ApproxDP(40.0, 1e-2))
    sigma, rng, log = algorithm.sums.mechanism.scale, np.random.default_rng(4), ActionLog()
    run(algorithm, stream, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(5))), observers=[log])
    copies = [naive(stream, sigma, algorithm.matrix_norm * sigma, rng) for _ in range(n_reps)]
    assert_as_good(means, np.array(log.actions).T, copies, most_spread=0.01, deviations=10)


def test_one_round_by_hand():
    """One dimension, x = 1, y = 1/2, noise 1 on both: V = 1 + 1 sqrt 2 + (1 + q), theta = (1/2 + 1) / V."""
    algorithm = GreedySettings(2, 1, 2, UNIT, failure=0.1).private(PROMISE)
    stream = ContextTable(np.ones((2, 2, 1)), np.ones((2, 2)), UNIT)
    ledger = LiveLedger(1, ConstantNoise(1.0), keeps_transcript=True)
    _, released = run(algorithm, stream, ledger, horizon=1)
    noise = ledger.transcript[0].output - ledger.transcript[0].value
    gram = 1 + noise[0, 0, 0] + 1 + algorithm.matrix_norm * algorithm.sums.mechanism.scale
    assert released.estimate[0, 0] == pytest.approx((0.5 + noise[0, 0, 1]) / gram)
    assert released.width[0] == 0


def test_a_record_pays_for_one_message():
    """Every user's message is released once: the ledger has one Gaussian event, of exactly the promise."""
    stream, _ = table(40, 1)
    ledger = OwnNoiseLedger([1, 2, 3])
    run(GreedySettings(4, 2, 40, UNIT).private(PROMISE), stream, ledger)
    assert list(ledger.worst_record().values()) == [1]
    assert ledger.guarantee().epsilon(PROMISE.delta) == pytest.approx(PROMISE.epsilon)


def test_greedy_vectors_of_the_sphere_are_diverse():
    """E[x x^T] of the best of ten: E M^2 along theta, (1 - E M^2) / 2 across, M the largest of ten uniform numbers."""
    square = 4 * 10 / 12 - 4 * 10 / 11 + 1
    assert KAPPA < min(square, (1 - square) / 2) < 1.02 * KAPPA
    rng = np.random.default_rng(2)
    drawn = rng.normal(size=(20_000, 10, 3))
    drawn /= np.linalg.norm(drawn, axis=2)[..., None]
    best = drawn[np.arange(len(drawn)), drawn[:, :, 0].argmax(axis=1)]
    assert np.linalg.eigvalsh(best.T @ best / len(best))[0] == pytest.approx((1 - square) / 2, rel=0.05)


def test_the_bound_holds_and_grows_as_the_square_root():
    """Constant failure 0.01, eight runs; the noise's share of the bound doubles while the horizon grows fourfold."""
    entry, horizon, n_reps = find("greedy-ridge local"), 3000, 8
    problem = Problem(10, UNIT, horizon, dimension=3)
    settings = entry.settings(problem, "tight", ApproxDP(200.0, 1e-2), failure=0.01, diversity=KAPPA)
    env = SphereContexts([0.3, -0.3, 0.2], 10, horizon, np.random.SeedSequence(1), LinearLink(UNIT))
    curve = ContextualRegretCurve(env, np.array([horizon]), n_reps)
    ledger = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(2)))
    run(entry.build(settings), env, ledger, observers=[curve])
    bound = entry.bound(settings, None, np.array([1, horizon])).values
    assert bound[0] == 1
    assert curve.curve.max() < bound[1] < horizon
    assert entry.bound(entry.settings(problem, "tight", PROMISE), None, np.array([horizon])) is None
    long = GreedySettings(10, 3, 4_000_000, UNIT, failure=0.01, diversity=KAPPA).private(PROMISE)
    errors = long.error_bound(np.array([1_000_000, 4_000_000]))
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.05)


def test_the_bound_by_hand():
    twin = GreedySettings(3, 2, 5, UNIT, failure=0.4, diversity=0.5).twin()
    assert twin.regret_bound([1, 2]).tolist() == [1, 2]
    error = 0.5 * math.sqrt(2 * math.log(10) + 2 * math.log1p(3 / 2)) + 0.5
    assert float(twin.error_bound(np.array([3]))[0]) == pytest.approx(error)
    heavier = GreedySettings(3, 2, 5, UNIT, ridge=4.0, failure=0.4, diversity=0.5).twin()
    error = 0.5 * math.sqrt(2 * math.log(10) + 2 * math.log1p(3 / (2 * 4))) / 2 + 0.5
    assert float(heavier.error_bound(np.array([3]))[0]) == pytest.approx(error)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"diversity": 0.6}, "diversity must be at most 1 / d = 0.5"), ({"ridge": 0.0}, "ridge must be")],
)
def test_refusals(change, message):
    with pytest.raises(ValueError, match=message):
        GreedySettings(**{"n_actions": 2, "dimension": 2, "horizon": 10, "reward_range": UNIT, **change}).twin()
    with pytest.raises(ValueError, match="diversity must be given"):
        GreedySettings(2, 2, 10, UNIT).twin().regret_bound(5)
