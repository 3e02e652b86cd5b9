"""CAPRI against the paper's definition, on cases that can be computed densely; its constants and its refusals."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from pools import KERNEL, SYMMETRIC, UNIT, pool_of, table_of
from scipy.special import ndtri

from bandana.algorithms.bandits.capri import projection
from bandana.algorithms.bandits.capri.forms import CAPRI, printed_betas
from bandana.algorithms.bandits.capri.widths import Epoch, ExactWidth
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.public_coins import uniform
from bandana.algorithms.rkhs.kernels import gram
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, GaussianDP, Interval, LiveLedger, TrustModel

POOL = pool_of()
POINTS = POOL.points.reshape(12, 2)
HORIZON, TAU = 40, 0.8
ALL = np.ones((4, 3), dtype=bool)
TRUST = (TrustModel.JOINT, TrustModel.LOCAL)
PRINTED = ("printed", "printed-lemma-6-6")


def built(name, calibration, span=UNIT, **more):
    settings = CAPRI(POOL, KERNEL, HORIZON, span, ridge=TAU, **more)
    return settings.private(ApproxDP(1.0, 1e-5), TrustModel(name), calibration)


def drawn_points(part, epoch, length, active, seed=0, key=0):
    """The points of S or R, one after the other: each context by one coin, its active action by another one."""
    found = []
    for i in range(length):
        context = int(4 * uniform(seed, key, 1, epoch, part, i)[0])
        actions = np.flatnonzero(active[context])
        found.append(context * 3 + int(actions[int(uniform(seed, key, 2, epoch, part, i)[0] * len(actions))]))
    return np.array(found)


def rooted(matrix, power):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values**power) @ vectors.T


def played(algorithm, table, ledger):
    log = ActionLog()
    sensitive, released = run(algorithm, table, ledger, horizon=len(table.rewards), observers=[log])
    return np.array(log.actions).T, sensitive, released


def test_two_epochs_of_the_twin_are_the_papers_estimator():
    """T = 40: epochs of 7, 14 and 28 rounds; h = M^-1/2 K_SW y and mu = k_S M^-1/2 h, on unique points, with M regular."""
    algorithm = CAPRI(POOL, KERNEL, HORIZON, SYMMETRIC, ridge=TAU, beta_scale=0.02).twin()
    table, active, start = table_of(POOL, HORIZON, SYMMETRIC), ALL.copy(), 0
    for epoch, length in enumerate((7, 14)):
        stop = start + length
        actions, _, released = played(algorithm, ContextTable(table.features[:stop], table.rewards[:stop], SYMMETRIC),
                                      OwnNoiseLedger([0]))  # fmt: skip
        contexts = POOL.index_of(table.features[start:stop])
        expected = [
            int(np.flatnonzero(active[c])[int(uniform(0, 0, 0, start + i)[0] * active[c].sum())])
            for i, c in enumerate(contexts)
        ]
        assert actions[0, start:].tolist() == expected
        w, y = contexts * 3 + np.array(expected), table.rewards[np.arange(start, stop), expected]
        basis, copies = (drawn_points(part, epoch, length, active) for part in (0, 1))
        s = POINTS[np.unique(basis)]
        k_sr = gram(KERNEL, s, POINTS[copies])
        root = rooted(k_sr @ k_sr.T + TAU * gram(KERNEL, s, s), -0.5)
        h = root @ gram(KERNEL, s, POINTS[w]) @ y
        estimate = gram(KERNEL, s, POINTS).T @ root @ h
        np.testing.assert_allclose(released.estimate[0], estimate, atol=1e-9)
        width = algorithm.plan(epoch, active).width
        upper, lower = (estimate + width).reshape(4, 3), (estimate - width).reshape(4, 3)
        active &= upper >= np.where(active, lower, -np.inf).max(axis=1, keepdims=True)
        assert (released.active[0] == active).all()
        start = stop
    assert 4 <= active.sum() < 12, "some actions are gone"


@pytest.mark.parametrize("calibration", ["tight", *PRINTED])
@pytest.mark.parametrize("span", [UNIT, SYMMETRIC, Interval(-3.0, 1.0)], ids=str)
def test_the_sensitivity_over_all_neighbors(calibration, span):
    """Every pair of records: the declared 2 B is attained by tight, and is a bound for printed."""
    algorithm = built("joint", calibration, span)
    half = span.width / 2
    for active in (ALL, np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)):
        for epoch in range(2):
            v = algorithm.plan(epoch, active).codes[active.ravel()]
            values = np.concatenate([half * v, -half * v])
            largest = np.linalg.norm(values[:, None] - values[None], axis=2).max()
            declared = algorithm.gathering.mechanism.sensitivity
            assert declared == pytest.approx(2 * half)
            assert largest <= declared * (1 + 1e-12)
            assert largest == pytest.approx(declared) or calibration != "tight"


def test_contexts_that_are_never_drawn_count_for_the_sensitivity():
    """With the law of the generator on one context, neighbors may still bring the others."""
    pool = pool_of(law=[1.0, 0.0, 0.0, 0.0])
    for calibration in ("tight", "printed"):
        algorithm = CAPRI(pool, KERNEL, HORIZON, UNIT).private(ApproxDP(1.0, 1e-5), TrustModel.JOINT, calibration)
        norms = np.linalg.norm(algorithm.plan(0, ALL).codes, axis=1)
        assert norms.max() <= 1 + 1e-12
        seen = projection.project(algorithm.features, np.arange(3), np.array([3, 2, 2, *[0] * 9]), 1.0)
        assert algorithm._unit(seen, ALL.ravel()) >= seen.norm.max()


@pytest.mark.parametrize(("horizon", "mu", "gain"), [(1024, 0.0195, 13.7), (10**4, 0.0146, 18.4), (10**5, 0.0115, 23.2)])
@pytest.mark.parametrize("name", TRUST)
def test_what_the_printed_noise_is_worth(name, horizon, mu, gain):
    """Mu = epsilon / (2 log T sqrt(log(1.25 log T / delta))), in place of .26805."""
    settings, promise = CAPRI(pool_of(1, 2), KERNEL, horizon, UNIT), ApproxDP(1.0, 1e-5)
    printed, tight = (settings.private(promise, name, c).gathering.mechanism.event.mu for c in ("printed", "tight"))
    assert printed == pytest.approx(1 / (2 * math.log(horizon) * math.sqrt(math.log(1.25 * math.log(horizon) / 1e-5))))
    assert printed == pytest.approx(mu, rel=5e-3)
    assert tight == pytest.approx(0.26805, rel=1e-4)
    assert tight / printed == pytest.approx(gain, rel=5e-3)


def test_the_printed_noise_is_that_of_equation_5():
    """Sigma_0 on h is unit x scale, unit being sigma_max."""
    algorithm = built("joint", "printed", SYMMETRIC)
    plan = algorithm.plan(0, ALL)
    basis, copies = (drawn_points(part, 0, 7, ALL) for part in (0, 1))
    found = projection.project(algorithm.features, basis, np.bincount(copies, minlength=12), TAU)
    assert plan.unit == pytest.approx(found.spread.max())
    sigma = found.spread.max() * 4 * math.log(HORIZON) * math.sqrt(math.log(1.25 * math.log(HORIZON) / 1e-5))
    assert plan.unit * algorithm.gathering.mechanism.scale == pytest.approx(sigma)
    assert plan.unit * built("joint", "tight", SYMMETRIC).gathering.noise_deviation(7) < sigma
    assert built("joint", "tight").plan(0, ALL).unit == pytest.approx(found.norm.max())


def test_the_printed_widths():
    failure, epsilon, delta, log_t = 0.05, 2.0, 1e-6, math.log(HORIZON)
    share = failure / (12 * HORIZON * log_t)
    big = math.log(168 * HORIZON / share)
    beta = 90 * math.sqrt(big) + 52 * math.sqrt(big * math.log(12 / share)) / math.sqrt(TAU)
    beta += 3 * math.sqrt(2 * math.log(6 / share)) + math.sqrt(24 * TAU)
    dp = math.log(1.25 * log_t / delta)
    beta_1 = {
        "printed": log_t * math.sqrt(8 * math.log(log_t * 12 / failure) * dp) / epsilon,
        "lemma-6-6": 8 * log_t / epsilon * math.log(3 / share) * math.sqrt(dp),
    }
    found = printed_betas(epsilon, delta, HORIZON, 12, failure, 1.0, TAU)
    assert found[0] == pytest.approx(beta)
    assert found[1] == pytest.approx(beta_1)
    settings = CAPRI(POOL, KERNEL, HORIZON, SYMMETRIC, ridge=TAU, failure=failure, beta_scale=0.5, error_scale=0.1)
    for name in TRUST:
        for calibration, of_noise in zip(PRINTED, beta_1.values(), strict=True):
            algorithm = settings.private(ApproxDP(epsilon, delta), name, calibration)
            for epoch, length in enumerate((7, 14)):
                plan = algorithm.plan(epoch, ALL)
                of_noise_now = of_noise * (math.sqrt(length) if name == "local" else 1)
                expected = 0.5 * 2 * (0.1 * beta * plan.unit + of_noise_now * plan.unit**2)
                np.testing.assert_allclose(plan.width, expected)


@pytest.mark.parametrize(("bound", "share"), [(1.0, 0.5), (4.0, 0.25)])
def test_equation_7_is_too_narrow_by_a_factor_that_falls_with_the_bound(bound, share):
    """In deviations of the noise of eq. (5): sqrt(8 B) / (4 B) sqrt(log) of sqrt(2 log): not homogeneous in B."""
    _, readings = printed_betas(1.0, 1e-5, 10**5, 500, 0.1, bound, 1.0)
    log_t = math.log(10**5)
    deviation = 4 * bound * log_t * math.sqrt(math.log(1.25 * log_t / 1e-5))
    assert readings["printed"] / deviation == pytest.approx(share * math.sqrt(2 * math.log(log_t * 500 / 0.1)))
    assert 46 < readings["lemma-6-6"] / deviation < 54
    assert 4.2 < -ndtri(0.1 / (2 * 500 * 9)) < 4.9


def test_the_tight_widths_by_hand():
    width = ExactWidth(0.5, 2.0, 0.1, 3)
    features = np.eye(2)
    found = projection.project(features, np.array([0]), np.array([3, 0]), 1.0)  # v(0) = 1/2, v(1) = 0
    rounds = np.array([3.0, 1.0])
    for deviation in (0.0, 0.01, 20.0):
        (first, second) = width.half_widths(Epoch(4, features, found, rounds, np.ones(2, dtype=bool), deviation))
        log = math.log(2 * 2 * 3 / 0.1)
        bias = 2.0 * (1 - 0.25 * 3)
        once = bias + math.sqrt(2 * log * (0.25 * 0.25**2 * 3 + deviation**2 * 0.25)) + 0.5 * 0.25 * log / 3
        log += math.log(2)
        apart = bias + math.sqrt(2 * log * 0.25 * 0.25**2 * 3) + 0.5 * 0.25 * log / 3
        apart += -ndtri(0.1 / (4 * 2 * 3)) * deviation * 0.5
        assert first == pytest.approx(min(once, apart))
        assert second == 2.0, "nothing is learned of it"
    assert apart < once, "where noise is the larger part, the exact quantile is shorter"
    scaled = dataclasses.replace(width, error_scale=0.0)
    only = scaled.half_widths(Epoch(4, features, found, rounds, np.ones(2, dtype=bool), 20.0))
    np.testing.assert_allclose(only, [-ndtri(0.1 / (4 * 2 * 3)) * 10.0, 0.0], atol=1e-12)


def test_the_tight_intervals_cover():
    """4000 replicates of an epoch at failure 0.5: a proved bound, so that far fewer than half miss anywhere."""
    rng = np.random.default_rng(3)
    algorithm = CAPRI(POOL, KERNEL, 400, SYMMETRIC, failure=0.5, norm_bound=1.0).private(
        ApproxDP(3.0, 1e-5), TrustModel.JOINT, "tight"
    )
    plan, n = algorithm.plan(2, ALL), 80
    g = rng.standard_normal(algorithm.features.shape[1])
    f = algorithm.features @ (g / np.linalg.norm(g))
    estimates = np.empty((4000, 12))
    for row in range(4000):
        w = POOL.drawn(n, rng) * 3 + rng.integers(0, 3, n)
        y = np.where(rng.random(n) < (f[w] + 1) / 2, 1.0, -1.0)
        noisy = y @ plan.codes[w] + algorithm.gathering.noise_deviation(n) * rng.standard_normal(plan.codes.shape[1])
        estimates[row] = plan.unit**2 * plan.codes @ noisy
    missed = (np.abs(estimates - f) > plan.width).any(axis=1).mean()
    # Failure 0.5 is shared by six epochs, each has 1/12; a share of 0.1 in 4000 would have a chance below 1e-3.
    assert missed < 0.1
    slack = plan.width / np.abs(estimates - f).mean(axis=0)
    assert slack.max() < 12, "and are no longer than they must be by an order of magnitude"


def test_under_local_privacy_an_epochs_sum_is_that_of_its_messages():
    algorithm, table = built("local", "tight", beta_scale=0.02), table_of(POOL, HORIZON)
    ledger = OwnNoiseLedger([4, 5], keeps_transcript=True)
    part = ContextTable(table.features[:21], table.rewards[:21], UNIT)
    _, _, released = played(algorithm, part, ledger)
    assert len(ledger.transcript) == 21
    assert [int(r.records.start[0]) for r in ledger.transcript] == list(range(21))
    assert all((r.records.stop == r.records.start + 1).all() for r in ledger.transcript)
    second = sum(r.output for r in ledger.transcript[7:21])
    before = played(algorithm, ContextTable(table.features[:7], table.rewards[:7], UNIT), OwnNoiseLedger([4, 5]))[2]
    for rep in range(2):
        plan = before.plans[before.which[rep]]
        np.testing.assert_allclose(released.estimate[rep], plan.unit**2 * plan.codes @ second[rep], atol=1e-9)


def test_an_epoch_that_nobody_follows_releases_nothing():
    """T = 21 cuts off the third epoch of 5, 10, 20; T = 12 ends with the second of 4, 8: its sum is of no use."""
    for horizon, n_epochs in ((21, 2), (12, 1)):
        algorithm = CAPRI(POOL, KERNEL, horizon, UNIT).private(ApproxDP(1.0, 1e-5), TrustModel.JOINT, "tight")
        lengths = projection.epoch_lengths(horizon)
        ledger = LiveLedger(1, ConstantNoise(), keeps_transcript=True)
        played(algorithm, table_of(POOL, horizon), ledger)
        stops = np.cumsum(lengths)
        expected = [int(stop) for stop in stops if stop < horizon]
        assert [int(r.records.stop[0]) for r in ledger.transcript] == expected
        assert len(expected) == n_epochs


@pytest.mark.parametrize("name", TRUST)
def test_the_worst_record_pays_once(name):
    ledger = OwnNoiseLedger([1, 2, 3])
    played(built(name, "tight", beta_scale=0.05), table_of(POOL, HORIZON), ledger)
    assert list(ledger.worst_record().values()) == [1]
    claimed = GaussianDP.from_epsilon_delta(1.0, 1e-5).mu
    assert claimed * (1 - 1e-9) <= ledger.guarantee().mu <= claimed
    assert ApproxDP(1.0, 1e-5).delta >= ledger.guarantee().delta(1.0)


def test_strangers_are_refused_or_taken_for_the_nearest():
    table = table_of(POOL, HORIZON)
    features = table.features.copy()
    features[3] += 0.01
    strange = ContextTable(features, table.rewards, UNIT)
    with pytest.raises(ValueError, match="none of the 4 of the pool"):
        played(built("joint", "tight", strangers="refuse"), strange, OwnNoiseLedger([0]))
    near = played(built("joint", "tight"), strange, OwnNoiseLedger([0]))
    same = played(built("joint", "tight"), table, OwnNoiseLedger([0]))
    assert (near[0] == same[0]).all()
    np.testing.assert_array_equal(near[2].estimate, same[2].estimate)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"calibration": "loose"}, "got 'loose'"),
        ({"horizon": 1}, "horizon must be a whole number of at least 2"),
        ({"ridge": 0.0}, "ridge"),
        ({"norm_bound": -1.0}, "norm_bound"),
        ({"failure": 1.0}, "failure"),
        ({"beta_scale": -1.0}, "beta_scale"),
        ({"error_scale": -1.0}, "error_scale"),
        ({"strangers": "greet"}, "strangers must be one of refuse, nearest, got 'greet'"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"seed": -1}, "seed"),
    ],
)
@pytest.mark.parametrize("calibration", ["tight", "printed"])
@pytest.mark.parametrize("trust", TRUST)
def test_refusals(trust, calibration, arguments, message):
    with pytest.raises(ValueError, match=message):
        private(trust, **({"calibration": calibration} | arguments))


def private(trust, calibration, horizon=40, epsilon=1.0, **more):
    return CAPRI(POOL, KERNEL, horizon, UNIT, **more).private(ApproxDP(epsilon, 1e-5), trust, calibration)


def test_runs_that_do_not_fit_are_refused():
    algorithm = CAPRI(POOL, KERNEL, 20, UNIT).twin()
    with pytest.raises(ValueError, match="built for 20 rounds"):
        played(algorithm, table_of(POOL, 30), OwnNoiseLedger([0]))
    for coins in ([-1], [0.5], [[1]]):
        with pytest.raises(ValueError, match="coins must be whole numbers of at least 0, one a replicate"):
            dataclasses.replace(algorithm, coins=np.array(coins))
    with pytest.raises(ValueError, match="a key for each of 2 replicates, got 3"):
        dataclasses.replace(algorithm, coins=np.arange(3)).init(2)
    with pytest.raises(ValueError, match="one row for each of 12 points"):
        dataclasses.replace(algorithm, features=algorithm.features[:5])
    with pytest.raises(ValueError, match="the stream offers none"):
        algorithm.act(algorithm.init(1)[1], None, 0)
