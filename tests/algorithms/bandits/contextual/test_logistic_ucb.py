"""LogisticUCB: records by hand, what one can move, a naive copy that agrees, the steps of its proof, and its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles import OwnNoiseLedger
from naive_copies import assert_as_good

from bandana.algorithms.bandits.contextual.linearized import LinearizedGaussian, Weights, linearized
from bandana.algorithms.bandits.contextual.logistic_ucb import LogisticSettings
from bandana.algorithms.catalog import find
from bandana.algorithms.environments.sphere import LogisticLink, SphereContexts
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.logistic import LogisticProblem, chord_slope, mean_of, slope_of
from bandana.algorithms.observers import ActionLog, ContextualRegretCurve
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.audits.claims import Quantity
from bandana.audits.outcome import accounted_as
from bandana.privacy_core import ApproxDP, GaussianDP, Interval, LiveLedger, ReproducibleNoise
from bandana.privacy_core.accounting.factorization import factorize

UNIT, PROMISE = Interval(0.0, 1.0), ApproxDP(2.0, 1e-5)


def sphere(rng, *shape):
    drawn = rng.normal(size=shape)
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def table(horizon, seed, theta=(2.4, -1.8)):
    """Four vectors in two dimensions for each user, and potential answers of logistic mean."""
    rng = np.random.default_rng(seed)
    contexts = sphere(rng, horizon, 4, 2)
    means = 1 / (1 + np.exp(-contexts @ np.array(theta)))
    return ContextTable(contexts, (rng.random(means.shape) < means).astype(float), UNIT), means


# --- one record ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [0.4, 3.0, 12.0])
def test_the_chord_slope_is_the_least_of_all_chords(bound):
    v = np.linspace(-bound, bound, 4001)
    for z in np.linspace(-bound, bound, 33):
        others = v[np.abs(v - z) > 1e-9]
        slopes = (1 / (1 + np.exp(-others)) - 1 / (1 + math.exp(-z))) / (others - z)
        assert chord_slope(z, bound) == pytest.approx(min(slopes.min(), slope_of(z)), rel=1e-6)
    assert chord_slope(bound, bound) == pytest.approx(math.exp(-bound) / (1 + math.exp(-bound)) ** 2)


def test_a_record_by_hand():
    """S = 2. At pivot 0 w = (sigma(2) - 1/2) / 2 = 0.1904, c = y - 1/2. At <p, x> = -1 w = sigma(2) - sigma(1) = 0.1497."""
    x, y = np.array([[0.6, 0.8]] * 3), np.array([1.0, 0.0, 1.0])
    pivot = np.array([[0.0, 0.0], [0.0, 0.0], [-1.0, -0.5]])
    found = linearized(x, y, pivot, 2.0)
    sigma = [1 / (1 + math.exp(-z)) for z in (0, 1, 2)]
    w, steep = (sigma[2] - 0.5) / 2, sigma[2] - sigma[1]
    assert found[0, :, :2] == pytest.approx(w * np.outer(x[0], x[0]))
    assert found[0, :, 2] == pytest.approx(0.5 * x[0])
    assert found[1, :, 2] == pytest.approx(-0.5 * x[0])
    assert found[2, :, :2] == pytest.approx(steep * np.outer(x[0], x[0]))
    assert found[2, :, 2] == pytest.approx((1 - (1 - sigma[1]) - steep) * x[0])
    assert (round(w, 4), round(steep, 4)) == (0.1904, 0.1497)
    far = linearized(x[:1], y[:1], np.array([[100.0, 0.0]]), 2.0)
    assert far[0, :, :2] == pytest.approx(slope_of(2.0) * np.outer(x[0], x[0])), "log-odds stay within S"


@pytest.mark.parametrize("bound", [0.5, 2.0, 4.0, 10.0])
def test_no_pair_of_records_moves_the_sums_by_more_than_the_sensitivity(bound):
    """100,000 random pairs at random pivots, long and short; at least 0.9 of the sensitivity is met."""
    rng, n = np.random.default_rng(1), 100_000
    noise = LinearizedGaussian.of(bound, 1.0)
    pivot = sphere(rng, n, 2) * rng.choice([0.0, bound, 20 * bound, 400 * bound], size=(n, 1))
    size = np.where(rng.random((2, n, 1)) < 0.5, 1.0, rng.random((2, n, 1)))
    x, y = sphere(rng, 2, n, 2) * size, rng.choice([0.0, 1.0, 0.3], size=(2, n))
    moved = noise.change(*(linearized(x[side], y[side], pivot, bound) for side in (0, 1)))
    assert moved.max() <= noise.sensitivity
    # at pivot 0 the best product of two unit vectors with unlike answers, and along a long pivot nearly orthogonal ones
    weights = Weights(bound)
    t = min(1.0, 0.25 / (weights.vector_ratio * weights.largest) ** 2)
    pair = [np.array([[1.0, 0.0]]), np.array([[t, math.sqrt(1 - t * t)]])]
    apart = [np.array([[math.sqrt(1 - e * e), e]]) for e in (-1e-6, 1e-6)]
    long = np.array([[0.0, 1e6 * bound]])
    found = [
        noise.change(*(linearized(v, np.array([a]), pivot, bound) for v, a in zip(vectors, (1.0, 0.0), strict=True)))[0]
        for vectors, pivot in ((pair, np.zeros((1, 2))), (apart, long))
    ]
    assert 0.9 * noise.sensitivity < max(found) <= noise.sensitivity


def test_the_sensitivity_by_hand():
    """S = 4: C = 0.9114, w(0) = 0.1205, v = 2 C / w(0) = 15.13; at pivot 0 the root of w^2 (1 - t^2) + (1 + t) / (2 v^2)."""
    weights = Weights(4.0)
    sigma = 1 / (1 + math.exp(-4))
    assert weights.least == pytest.approx(sigma * (1 - sigma))
    assert weights.intercept == pytest.approx(sigma - 4 * sigma * (1 - sigma))
    assert weights.largest == pytest.approx((sigma - 0.5) / 4)
    v = weights.vector_ratio
    t = 0.25 / (v * weights.largest) ** 2
    by_hand = math.sqrt(weights.largest**2 * (1 - t * t) + (1 + t) / (2 * v**2))
    assert LinearizedGaussian.of(4.0, 1.0).sensitivity == pytest.approx(by_hand)
    assert (round(weights.intercept, 4), round(weights.largest, 4), round(v, 2)) == (0.9114, 0.1205, 15.13)


def test_a_record_pays_for_one_release_of_exactly_the_promise():
    stream, _ = table(40, 1)
    ledger = OwnNoiseLedger([1, 2])
    run(LogisticSettings(4, 2, 40, UNIT).private(PROMISE), stream, ledger)
    assert list(ledger.worst_record().values()) == [1]
    epsilon = accounted_as(Quantity("epsilon", PROMISE.delta), tuple(ledger.worst_record().items()))
    assert epsilon == pytest.approx(PROMISE.epsilon, rel=1e-6)
    assert epsilon <= PROMISE.epsilon


# --- whole runs ----------------------------------------------------------------------------------------------------------


def naive(stream, algorithm, rng=None):
    """One run of the pseudo-code: be optimistic, linearize the record where it was served, add it up with noise, solve."""
    n, s, a = stream.n_users, algorithm.parameter_bound, algorithm.ridge
    q = algorithm.matrix_norm * algorithm.deviation
    gram, vector, noise = np.zeros((2, 2)), np.zeros(2), np.zeros((n, 2, 3))
    if rng is not None:
        mechanism = algorithm.sums.mechanism
        z = rng.normal(scale=mechanism.scale, size=(n, 2, 2))
        beside = rng.normal(scale=mechanism.vector_scale, size=(n, 2, 1))
        rows = np.concatenate([(z + z.transpose(0, 2, 1)) / math.sqrt(2), beside], axis=2)
        noise = np.einsum("ts,sij->tij", factorize(n).decoder, rows)
    theta, inverse, width, actions = np.zeros(2), np.eye(2) / (a + q), algorithm.confidence(0).radius, []
    for t in range(n):
        offered = stream.features[t]
        bonus = algorithm.beta_scale * width * np.sqrt(np.einsum("ai,ij,aj->a", offered, inverse, offered))
        index = offered @ theta + bonus
        actions.append(int(np.argmax(index >= index.max() - 1e-9 * abs(index.max()))))
        x, y = offered[actions[-1]], stream.rewards[t, actions[-1]]
        z = max(-s, min(s, float(x @ theta)))
        top, here = 1 / (1 + math.exp(-s)), 1 / (1 + math.exp(-abs(z)))
        w = (top - here) / (s - abs(z)) if abs(z) < s else top * (1 - top)
        gram += w * np.outer(x, x)
        vector += (y - 1 / (1 + math.exp(-z)) + w * z) * x
        v = gram + noise[t, :, :2] + (a + q) * np.eye(2)
        theta, inverse, width = (
            np.linalg.solve(v, vector + noise[t, :, 2]),
            np.linalg.inv(v),
            algorithm.confidence(t + 1).radius,
        )
    return np.array(actions)


def test_the_naive_copy_without_noise_plays_the_same():
    stream, _ = table(200, 2)
    algorithm, log = LogisticSettings(4, 2, 200, UNIT, beta_scale=0.05).twin(), ActionLog()
    run(algorithm, stream, LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(1))), observers=[log])
    assert np.array_equal(np.array(log.actions)[:, 0], naive(stream, algorithm))
    assert len(set(np.array(log.actions)[:, 0])) > 1


def test_a_naive_copy_with_noise_agrees():
    """Mean rewards of 400 runs each on one table differ by less than 5 standard errors: false alarm 6e-7."""
    horizon, n_reps = 32, 400
    stream, means = table(horizon, 3)
    algorithm = LogisticSettings(4, 2, horizon, UNIT, beta_scale=0.02).private(ApproxDP(60.0, 1e-2))
    log, rng = ActionLog(), np.random.default_rng(4)
    run(algorithm, stream, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(5))), observers=[log])
    copies = [naive(stream, algorithm, rng) for _ in range(n_reps)]
    assert_as_good(means, np.array(log.actions).T, copies, most_spread=0.02, deviations=5)


def test_rewards_of_any_range_count_in_units_of_their_width():
    stream, _ = table(60, 4)
    wide = ContextTable(stream.features, 4 * stream.rewards - 1, Interval(-1.0, 3.0))
    logs = [ActionLog(), ActionLog()]
    for chosen, log in zip((stream, wide), logs, strict=True):
        algorithm = LogisticSettings(4, 2, 60, chosen.reward_range, beta_scale=0.1).twin()
        run(algorithm, chosen, LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(1))), observers=[log])
    assert np.array_equal(logs[0].actions, logs[1].actions)


# --- the proof -----------------------------------------------------------------------------------------------------------


def test_every_step_of_the_proof_holds():
    """On 3,000 random states: the change of Phi is as stated, and at most what the proof leaves of it."""
    rng, n, d, s = np.random.default_rng(7), 3000, 3, 3.0
    x = sphere(rng, n, d) * rng.random((n, 1))
    gram = rng.normal(size=(n, d, d))
    u_matrix = gram @ gram.transpose(0, 2, 1) + 0.5 * np.eye(d)
    error = 3 * rng.normal(size=(n, d))
    theta = sphere(rng, n, d) * s * rng.random((n, 1))
    inverse = np.linalg.inv(u_matrix)
    p = np.einsum("ri,rij,rj->r", x, inverse, error)
    e = rng.normal(size=n)
    logit = np.einsum("ri,ri->r", x, theta)
    z = np.clip(logit + p + e, -s, s)
    w, y = chord_slope(z, s), rng.integers(0, 2, n)
    eta, rho = y - mean_of(logit), y - mean_of(z) + w * z - w * logit
    h = np.einsum("ri,rij,rj->r", x, inverse, x)
    after = np.linalg.inv(u_matrix + w[:, None, None] * x[:, :, None] * x[:, None, :])
    moved = error + rho[:, None] * x
    change = np.einsum("ri,rij,rj->r", moved, after, moved) - np.einsum("ri,rij,rj->r", error, inverse, error)
    assert change == pytest.approx((2 * rho * p + rho**2 * h - w * p**2) / (1 + w * h), abs=1e-9)
    assert np.abs(rho).max() <= 1
    left = (2 * eta * p - w * p**2 + h + e**2 / 8) / (1 + w * h)
    assert (change <= left + 1e-9).all()
    assert (change > left - 0.01).any(), "nothing is given away for nothing"


@pytest.mark.parametrize("promise", [None, ApproxDP(GaussianDP(8.0).epsilon(1e-5), 1e-5)])
def test_theta_lies_in_every_ellipsoid(promise):
    """100 runs at failure 0.01: none may leave; a right algorithm fails with probability below 0.01 a run, by far."""
    horizon, n_reps, theta = 400, 100, np.array([1.2, -1.6])
    chosen = LogisticSettings(4, 2, horizon, UNIT, logit_bound=2.0, failure=0.01)
    algorithm = chosen.twin() if promise is None else chosen.private(promise)
    assert algorithm.is_proved
    worst = []
    for rounds in (1, 20, 100, 400):
        env = SphereContexts(theta, 4, horizon, np.random.SeedSequence(3), LogisticLink(), is_fixed=True)
        ledger = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(rounds)))
        _, model = run(algorithm, env, ledger, horizon=rounds)
        off = model.estimate - theta
        distance = np.sqrt(np.einsum("ri,rij,rj->r", off, np.linalg.inv(model.inverse), off))
        worst.append((distance / model.width).max())
    assert max(worst) < 1
    assert max(worst) > 0.05, "the radius is not idle"


def test_the_bound_by_hand():
    """The twin, S = 2, d = 2, T = 1e6, failure 0.01: a = b = 1, tau = nu = 0."""
    algorithm = LogisticSettings(5, 2, 10**6, UNIT, logit_bound=2.0, failure=0.01).twin()
    sigma = 1 / (1 + math.exp(-2))
    m, w = sigma * (1 - sigma), (sigma - 0.5) / 2
    growth = 2 * math.log1p(w * 10**6 / 2)
    beta = math.sqrt(4 + (growth + math.log(200) / 2) / m)
    by_hand = beta / math.sqrt(m) / 2 * math.sqrt(10**6 * growth / math.log(2))
    assert float(algorithm.regret_bound(10**6)) == pytest.approx(by_hand)
    assert float(algorithm.regret_bound(1)) == pytest.approx(math.tanh(1.0))


def test_the_floor_of_the_bound_balances_it():
    """What is proved holds at the default floor, and no other floor for which it holds has a radius below 0.8 of its own."""
    chosen = {"logit_bound": 3.0, "failure": 0.01}
    best = LogisticSettings(5, 3, 5000, UNIT, **chosen).private(PROMISE)
    assert best.is_proved
    others = [
        LogisticSettings(5, 3, 5000, UNIT, **chosen, floor=factor * best.ridge).private(PROMISE)
        for factor in (0.1, 0.5, 0.7, 0.85, 1.5, 3.0, 10.0)
    ]
    proved = [other.confidence(5000).radius for other in others if other.is_proved]
    assert 3 <= len(proved) < len(others)
    assert min(proved) > 0.8 * best.confidence(5000).radius


def test_where_a_bound_is_stated():
    entry, grid = find("logistic-ucb joint"), np.array([10, 2000])
    problem = LogisticProblem(4, UNIT, 2000, dimension=2, logit_bound=2.0)

    def bound(problem=problem, **parameters):
        return entry.bound(entry.settings(problem, "tight", PROMISE, **parameters), None, grid)

    assert (np.diff(bound().values) > 0).all()
    assert bound(logit_bound=3.0).values[-1] >= bound().values[-1]
    assert bound(logit_bound=1.0) is None, "theta may be longer than that"
    assert bound(beta_scale=0.9) is None
    assert bound(floor=1.0) is None
    assert bound(Problem(4, UNIT, 2000, dimension=2)) is None, "its means are linear"
    algorithm = entry.build(entry.settings(problem, "tight", PROMISE, floor=1.0))
    with pytest.raises(ValueError, match="floor must be larger"):
        algorithm.regret_bound(10)
    with pytest.raises(ValueError, match="beta_scale of at least 1"):
        LogisticSettings(4, 2, 10, UNIT, beta_scale=0.5).twin().regret_bound(10)


@pytest.mark.nightly
def test_it_loses_less_than_linucb_where_means_are_logistic():
    """Means of 40 runs over 10,000 rounds at mu = 1 and a width of a tenth, on the same users."""
    horizon, n_reps, theta = 10_000, 40, 4 * np.array([0.6, 0.0, 0.8])
    level = ApproxDP(GaussianDP(1.0).epsilon(1e-5), 1e-5)
    problem = LogisticProblem(10, UNIT, horizon, dimension=3, logit_bound=4.0)
    lost = []
    for name in ("linucb joint", "logistic-ucb joint"):
        entry = find(name)
        env = SphereContexts(theta, 10, horizon, np.random.SeedSequence(3), LogisticLink(), is_fixed=True)
        curve = ContextualRegretCurve(env, np.array([horizon]), n_reps)
        algorithm = entry.build(entry.settings(problem, "tight", level, beta_scale=0.1))
        run(algorithm, env, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(5))), observers=[curve])
        lost.append(curve.curve[:, -1])
    assert lost[1].mean() < lost[0].mean()


@pytest.mark.parametrize(
    ("change", "message"),
    [({"logit_bound": 0.0}, "logit_bound must"), ({"n_actions": 1}, "n_actions must"), ({"failure": 2.0}, "failure must")],
)
def test_refusals(change, message):
    with pytest.raises(ValueError, match=message):
        LogisticSettings(**{"n_actions": 2, "dimension": 2, "horizon": 10, "reward_range": UNIT} | change)


def test_a_logistic_problem_has_a_dimension():
    with pytest.raises(ValueError, match="dimension must be given"):
        LogisticProblem(2, UNIT, 10)


def test_the_shift_leaves_the_ridge_and_twice_the_noise_at_most():
    """Noise of norm up to q on a shift of a + q: eigenvalues from a to a + 2 q."""
    regression = LogisticSettings(3, 2, 40, UNIT).private(ApproxDP(1.0, 1e-5)).regression
    q = float(regression.bounds(7)[0])
    assert q > 0
    a = regression.ridge
    assert tuple(map(float, regression.regularizer(7))) == pytest.approx((a + q, a, a + 2 * q), rel=1e-12)
