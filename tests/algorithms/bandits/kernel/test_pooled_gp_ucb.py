"""GP-UCB on a pool: counts and sums against features, by hand, its noise, its width, and what it refuses."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from pools import KERNEL, SYMMETRIC, UNIT, IndexChecker, pool_of, stream_of, table_of

from bandana.algorithms.bandits.kernel.gp_ucb import GPUCB, GPUCBSettings
from bandana.algorithms.bandits.kernel.pooled_forms import PooledSettings
from bandana.algorithms.bandits.kernel.posterior_numba import posterior
from bandana.algorithms.environments.kernel_functions import PooledFunction
from bandana.algorithms.observers import ActionLog, ContextualRegretCurve
from bandana.algorithms.rkhs.features import exact_on
from bandana.algorithms.rkhs.finite_sets import triangular_features
from bandana.algorithms.rkhs.information_gain import gain_bounds
from bandana.algorithms.rkhs.kernels import SquaredExponential
from bandana.algorithms.rkhs.pool import Pool
from bandana.algorithms.run import run
from bandana.privacy_core import (
    ApproxDP,
    FactorizedSum,
    GaussianDP,
    Interval,
    LiveLedger,
    LocalSum,
    NoPrivacy,
    Relation,
    ReproducibleNoise,
    TrustModel,
)

POOL, HORIZON = pool_of(), 60
each = pytest.mark.parametrize("model", ["joint", "local"])


def built(model, span=UNIT, horizon=HORIZON, epsilon=1.0, **more):
    return PooledSettings(POOL, KERNEL, horizon, span, **more).private(ApproxDP(epsilon, 1e-5), TrustModel(model))


def played(algorithm, ledger, table):
    log = ActionLog()
    sensitive, released = run(algorithm, table, ledger, observers=[log])
    return np.array(log.actions).T, sensitive, released


def test_the_posterior_is_that_of_features():
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (7, 2))
    points[6] = points[2]  # a point that is there twice makes the kernel's matrix singular
    gram, features = KERNEL(points[:, None], points[None]), exact_on(KERNEL, points[:6])(points)
    weights = rng.uniform(0, 5, (3, 7)) * (rng.random((3, 7)) < 0.7)
    sums, ridge = rng.standard_normal((3, 7)) * (weights > 0), 0.3
    mean, deviation, log_det = np.empty((3, 7)), np.empty((3, 7)), np.empty(3)
    posterior(gram, weights, sums, ridge, mean, deviation, log_det)
    for r in range(3):
        V = ridge * np.eye(features.shape[1]) + features.T * weights[r] @ features
        np.testing.assert_allclose(mean[r], features @ np.linalg.solve(V, features.T @ sums[r]), rtol=1e-7, atol=1e-9)
        norms = np.einsum("ai,ij,aj->a", features, np.linalg.inv(V), features)
        np.testing.assert_allclose(deviation[r], np.sqrt(norms), rtol=1e-6)
        assert log_det[r] == pytest.approx(np.linalg.slogdet(V / ridge)[1], rel=1e-6, abs=1e-8)


@dataclasses.dataclass(frozen=True)
class Led(GPUCB):
    """GP-UCB that is told what to play, and notes what it thinks of every action."""

    leader: list[int] = dataclasses.field(kw_only=True)
    noted: list[np.ndarray] = dataclasses.field(kw_only=True)

    def act(self, released, context, step):
        x = self.offered(context)
        norms = np.sqrt(np.einsum("rai,rij,raj->ra", x, released.inverse, x))
        self.noted.append((np.einsum("ri,rai->ra", released.estimate, x) + released.width[:, None] * norms)[0])
        return np.array([self.leader[len(self.noted) - 1]])


@pytest.mark.numeric
def test_the_twin_is_gp_ucb_on_exact_features():
    """Each of its actions is the best of the features' too; in a tie of exact numbers, rounding may prefer any."""
    points = POOL.points.reshape(-1, POOL.dimension)
    table = table_of(POOL, HORIZON)
    on_features = GPUCBSettings(POOL.n_actions, exact_on(KERNEL, points), HORIZON, UNIT, beta_scale=0.3).twin()
    twin = PooledSettings(POOL, KERNEL, HORIZON, UNIT, beta_scale=0.3).twin()
    mine, _, released = played(twin, OwnNoiseLedger([0]), table)
    fields = {field.name: getattr(on_features, field.name) for field in dataclasses.fields(on_features)}
    led = Led(**fields, leader=mine[0].tolist(), noted=[])
    _, _, model = played(led, OwnNoiseLedger([0]), table)
    indexes = np.array(led.noted)
    chosen, ordered = indexes[np.arange(HORIZON), mine[0]], np.sort(indexes, axis=1)
    assert (ordered[:, -1] - chosen).max() < 1e-9
    assert (ordered[1:, -1] - ordered[1:, -2] > 1e-4).all(), "in all rounds but the first one action is best"
    assert len(set(mine[0].tolist())) > 1
    index = exact_on(KERNEL, points)(points) @ model.estimate[0]
    mean = np.empty((1, len(points)))
    posterior(twin.gram, released.weights, released.sums, 1.0, mean, np.empty_like(mean), np.empty(1))
    np.testing.assert_allclose(mean[0], index, rtol=1e-6, atol=1e-8)


def test_counts_and_sums_by_hand():
    table = table_of(POOL, 3)
    twin = PooledSettings(POOL, KERNEL, 3, UNIT).twin()
    actions, _, released = played(twin, OwnNoiseLedger([0]), table)
    counts, sums = np.zeros(12), np.zeros(12)
    for user, action in enumerate(actions[0]):
        place = 3 * int(POOL.index_of(table.features[user][None])[0]) + action
        counts[place] += 1
        sums[place] += table.rewards[user, action] - 0.5
    assert np.array_equal(released.weights[0], counts)
    np.testing.assert_allclose(released.sums[0], sums, atol=1e-15)


def test_the_width_by_hand():
    algorithm = built("joint", SYMMETRIC, failure=0.1, norm_bound=0.5, beta_scale=2.0)
    weights, q = np.array([[4.0, 0.0, 9.0] + [0.0] * 9]), 3.0
    wanted = math.sqrt(2 * math.log(20) + 0.7) + 0.5
    wanted += 0.5 * math.sqrt(16 / 4 + 36 / 9) + 1.0 * q * math.sqrt(1 / 4 + 1 / 9)
    assert algorithm.width(weights, np.array([0.7]), q, q)[0] == pytest.approx(2 * wanted, rel=1e-12)
    assert algorithm.width(weights, np.array([0.7]), 0.0, 0.0)[0] == pytest.approx(
        2 * (math.sqrt(2 * math.log(20) + 0.7) + 0.5), rel=1e-12
    )


def test_constant_noise_shifts_every_number():
    """With noise 1 on all and q in place, a count of n becomes n + 1 + q, and one that is below 1 then is none."""
    algorithm = dataclasses.replace(built("local"), quantile=0.0)
    table = table_of(POOL, 1)
    _, _, released = played(dataclasses.replace(algorithm, horizon=1), LiveLedger(1, ConstantNoise()), table)
    scale = algorithm.sums.mechanism.scale
    assert sorted(set(released.weights[0].tolist())) == pytest.approx([scale, scale + 1])
    y = table.rewards[0].max() if table.rewards[0].max() > 0 else 0.0
    assert released.sums[0].min() in (pytest.approx(0.5 * (scale - 1)), pytest.approx(0.5 * scale)), y
    low = LiveLedger(1, ConstantNoise(-1.0))
    _, _, released = played(dataclasses.replace(algorithm, horizon=1), low, table)
    assert (released.weights == 0).all()
    assert (released.sums == 0).all()


@each
@pytest.mark.parametrize("span", [SYMMETRIC, UNIT, Interval(-0.2, 1.2)], ids=str)
def test_the_worst_record_pays_exactly_the_promise(model, span):
    algorithm = built(model, span)
    ledger = OwnNoiseLedger([1, 2])
    played(algorithm, ledger, table_of(POOL, HORIZON, span))
    assert list(ledger.worst_record().values()) == [1]
    assert ledger.guarantee().mu == pytest.approx(GaussianDP.from_epsilon_delta(1.0, 1e-5).mu, rel=1e-9)
    assert ledger.guarantee().relation is Relation.REPLACE_RECORD
    assert algorithm.sums.mechanism.sensitivity == 2.0
    assert isinstance(algorithm.sums, FactorizedSum if model == "joint" else LocalSum)


def test_no_two_records_differ_by_more_than_the_sensitivity_and_some_do_by_as_much():
    algorithm, distances = built("joint"), []
    table = table_of(POOL, 200, seed=4)
    values = []
    for user in range(200):
        one = dataclasses.replace(algorithm, horizon=1)
        alone = type(table)(table.features[user : user + 1], table.rewards[user : user + 1], UNIT)
        ledger = LiveLedger(1, ConstantNoise(), keeps_transcript=True)
        run(one, alone, ledger)
        values.append(ledger.transcript[0].value.ravel())
    norm = np.linalg.norm(values[0])
    for value in values[1:]:
        distances.append(np.linalg.norm(value - values[0]) * math.sqrt(2) / norm)  # a row of the factorization scales it
    assert max(distances) == pytest.approx(2.0, rel=1e-9)


def test_rewards_are_clipped_though_the_stream_would_not():
    algorithm = built("joint")
    record = _Recorder()
    run(algorithm, table_of(POOL, HORIZON), OwnNoiseLedger([0]), observers=[record])
    wild = record.last._replace(rewards=np.array([[50.0]]))
    assert np.abs(algorithm.contribution(wild)).max() == 1.0
    done = record.last._replace(n_records=np.zeros(1, dtype=np.int64))
    assert not algorithm.contribution(done).any()


class _Recorder:
    def observe(self, record):
        self.last = record


@each
def test_a_replicate_of_a_batch_is_its_lone_run(model):
    algorithm, table = built(model), table_of(POOL, HORIZON)
    actions, _, released = played(algorithm, OwnNoiseLedger([5, 6, 7]), table)
    for row, seed in enumerate([5, 6, 7]):
        alone, _, one = played(algorithm, OwnNoiseLedger([seed]), table)
        assert np.array_equal(alone[0], actions[row])
        np.testing.assert_allclose(one.upper[0], released.upper[row], rtol=1e-10)


@each
def test_without_noise_it_is_its_twin(model):
    table = table_of(POOL, HORIZON)
    twin, *_ = played(PooledSettings(POOL, KERNEL, HORIZON, UNIT).twin(), OwnNoiseLedger([0]), table)
    close = built(model)
    quiet = dataclasses.replace(close, sums=dataclasses.replace(close.sums, mechanism=close.sums.mechanism.scaled(1e-12)))
    assert np.array_equal(twin, played(quiet, OwnNoiseLedger([0]), table)[0])
    ledger = LiveLedger(1, ConstantNoise())
    played(PooledSettings(POOL, KERNEL, HORIZON, UNIT).twin(), ledger, table)
    assert isinstance(ledger.guarantee(), NoPrivacy)


def test_the_mean_reward_lies_below_the_index_as_the_width_promises():
    """In all rounds of 40 runs, at all points that were brought; each run may fail with probability 0.05."""
    pool = pool_of(3, 3, seed=2)
    stream = stream_of(pool, 80)
    algorithm = PooledSettings(pool, KERNEL, 80, SYMMETRIC, failure=0.05, norm_bound=3.0).private(
        ApproxDP(4.0, 1e-5), TrustModel.JOINT
    )
    checker = IndexChecker(algorithm, stream.values.ravel())
    run(checker, stream, LiveLedger(40, ReproducibleNoise(np.random.SeedSequence(3))))
    assert checker.failed.sum() <= 2 + 3 * math.sqrt(2)


def test_less_noise_is_less_regret_and_the_twin_learns():
    """Eight points that are hardly alike; at random, 2000 rounds would cost about 930."""
    pool, kernel = Pool(np.linspace(-1, 1, 8)[None, :, None], np.ones(1)), SquaredExponential(0.1)
    values, arguments = np.array([[-0.5, 0.0, -0.3, 0.5, 0.1, -0.4, 0.2, 0.0]]), {"beta_scale": 0.3, "norm_bound": 1.0}
    found = []
    for epsilon in (0.5, 20.0, None):
        if epsilon is None:
            algorithm = PooledSettings(pool, kernel, 2000, SYMMETRIC, **arguments).twin()
        else:
            algorithm = PooledSettings(pool, kernel, 2000, SYMMETRIC, **arguments).private(
                ApproxDP(epsilon, 0.1), TrustModel.JOINT
            )
        stream = PooledFunction(pool, values, 2000, np.random.SeedSequence(1), SYMMETRIC, law="two-point")
        curve = ContextualRegretCurve(stream, np.array([1000, 2000]), 8)
        run(algorithm, stream, LiveLedger(8, ReproducibleNoise(np.random.SeedSequence(1))), observers=[curve])
        found.append(curve.curve.mean(axis=0))
    much, little, none = found
    assert much[1] > 1.5 * little[1] > 1.5 * none[1]
    assert none[1] - none[0] < 0.5 * none[0]
    assert little[1] - little[0] < 0.5 * little[0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ridge": 0.0}, "ridge must be"),
        ({"failure": 1.5}, "failure must lie"),
        ({"norm_bound": -1.0}, "norm_bound must be"),
        ({"beta_scale": -0.1}, "beta_scale must be"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"horizon": 0}, "horizon must be"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_refusals(changed, message):
    with pytest.raises(ValueError, match=message):
        built("joint", **changed)


def test_a_trust_model_of_neither_kind_is_refused():
    with pytest.raises(ValueError, match="trust must be one of joint, local"):
        PooledSettings(POOL, KERNEL, 10, UNIT).private(ApproxDP(1.0, 1e-5), TrustModel.CENTRAL)


def test_a_stranger_is_refused_or_taken_for_the_nearest():
    table = table_of(POOL, HORIZON)
    strange = table.replaced(3, table.rewards[3], covariates=table.features[3] + 1e-3)
    with pytest.raises(ValueError, match="is none of the 4 of the pool"):
        played(built("joint", is_strict=True), OwnNoiseLedger([0]), strange)
    near, *_ = played(built("joint"), OwnNoiseLedger([0]), strange)
    same, *_ = played(built("joint"), OwnNoiseLedger([0]), table)
    assert np.array_equal(near, same)


def test_the_regret_bound_by_hand():
    """The formula of its docstring, at numbers of rounds where it is less than the trivial bound."""
    pool = Pool(np.array([[[-0.5], [0.5]], [[0.0], [0.9]]]), np.ones(2) / 2)
    horizon, failure = 100_000, 0.1
    algorithm = PooledSettings(pool, KERNEL, horizon, SYMMETRIC, failure=failure, ridge=2.0).private(
        ApproxDP(1e3, 1e-2), TrustModel.JOINT
    )
    n, span, half = len(algorithm.gram), 2.0, 1.0
    q, bound = max(algorithm.bound(1), algorithm.bound(horizon)), algorithm.norm_bound
    assert q > 0
    for rounds in (horizon // 2, horizon):
        features, error = triangular_features(algorithm.gram)
        gain = 2 * float(gain_bounds(features, rounds, 2.0)) + rounds * error / 2.0
        assert gain < n * math.log(1 + rounds / (2.0 * n))
        width = half * math.sqrt(2 * math.log(2 / failure) + n * math.log(1 + (rounds / n + 2 * q) / 2.0))
        width += math.sqrt(2.0) * bound + min(bound, half) * math.sqrt(2 * q * n) + half * q * math.sqrt(n)
        expected = span + max(span, 2 * width) * math.sqrt(rounds * gain / math.log(2))
        assert expected < span * rounds
        assert float(algorithm.regret_bound(rounds)) == pytest.approx(expected)
