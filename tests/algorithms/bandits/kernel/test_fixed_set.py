"""GP-UCB where all users have one public decision set: what is released, against NumPy, its widths, bound, and ties."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from pools import KERNEL, SYMMETRIC, UNIT, IndexChecker, stream_of, table_of

from bandana.algorithms.bandits.kernel.fixed_set import FixedSetGPUCB, FixedSetMessages
from bandana.algorithms.bandits.kernel.pooled_forms import PooledSettings
from bandana.algorithms.bandits.kernel.pooled_gp_ucb import PooledGPUCB
from bandana.algorithms.catalog import find
from bandana.algorithms.observers import ActionLog, ContextualRegretCurve
from bandana.algorithms.problem import Problem
from bandana.algorithms.rkhs.finite_sets import triangular_features
from bandana.algorithms.rkhs.information_gain import gain_bounds
from bandana.algorithms.rkhs.kernels import SquaredExponential
from bandana.algorithms.rkhs.pool import Pool
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, GaussianDP, LiveLedger, NoPrivacy, ReproducibleNoise, TrustModel

HORIZON = 60
POINTS = np.random.default_rng(0).uniform(-0.7, 0.7, (1, 7, 2))
POOL = Pool(POINTS, np.ones(1))
TABLE = table_of(POOL, HORIZON)
each = pytest.mark.parametrize("trust", [TrustModel.JOINT, TrustModel.LOCAL], ids=str)


def settings(span=UNIT, pool=POOL, horizon=HORIZON, **more):
    return PooledSettings(pool, KERNEL, horizon, span, **more)


def built(trust, epsilon=1.0, noise_on="points", **more):
    return settings(**more).private(ApproxDP(epsilon, 1e-5), trust, noise_on)


def played(algorithm, ledger, table=TABLE):
    log = ActionLog()
    _, released = run(algorithm, table, ledger, observers=[log])
    return np.array(log.actions).T, released


def test_one_public_decision_set_is_another_algorithm_than_several():
    assert type(built(TrustModel.JOINT)) is type(settings().twin()) is FixedSetGPUCB
    assert type(built(TrustModel.LOCAL)) is FixedSetMessages
    assert type(built(TrustModel.LOCAL, pool=Pool(np.stack([POINTS[0], -POINTS[0]]), np.ones(2) / 2))) is PooledGPUCB


def test_joint_privacy_may_put_its_noise_on_messages():
    """That is the local algorithm; several contexts, which must be hidden, leave no choice."""
    several = Pool(np.stack([POINTS[0], -POINTS[0]]), np.ones(2) / 2)
    joint, local = built(TrustModel.JOINT, noise_on="messages"), built(TrustModel.LOCAL)
    assert (type(joint), joint.sums) == (FixedSetMessages, local.sums)
    assert built(TrustModel.JOINT, pool=several, noise_on="messages").sums == built(TrustModel.JOINT, pool=several).sums
    with pytest.raises(ValueError, match="noise_on must be one of points, messages"):
        built(TrustModel.JOINT, noise_on="records")


@each
def test_rewards_alone_are_released_at_exactly_the_promise(trust):
    algorithm, ledger = built(trust), OwnNoiseLedger([1, 2], keeps_transcript=True)
    actions, released = played(algorithm, ledger)
    assert {entry.value[0].size for entry in ledger.transcript} == {7 if trust is TrustModel.JOINT else 1}
    assert list(ledger.worst_record().values()) == [1]
    assert ledger.guarantee().mu == pytest.approx(GaussianDP.from_epsilon_delta(1.0, 1e-5).mu, rel=1e-9)
    assert algorithm.sums.mechanism.sensitivity == 2.0
    assert np.array_equal(released.counts, [np.bincount(row, minlength=7) for row in actions])


def test_two_rewards_move_a_release_by_the_sensitivity_at_most():
    for trust in (TrustModel.JOINT, TrustModel.LOCAL):
        algorithm = built(trust)
        record = _last_record(algorithm)
        values = [algorithm.contribution(record._replace(rewards=np.array([[y]]))) for y in (-50.0, 50.0)]
        assert np.linalg.norm(values[0] - values[1]) == 2.0
        assert not algorithm.contribution(record._replace(n_records=np.zeros(1, dtype=np.int64))).any()


def _last_record(algorithm):
    class Recorder:
        def observe(self, record):
            self.last = record

    recorder = Recorder()
    run(algorithm, TABLE, OwnNoiseLedger([0]), observers=[recorder])
    return recorder.last


@each
def test_what_a_record_holds_as_its_decision_set_is_not_read(trust):
    algorithm = built(trust)
    mine, _ = played(algorithm, OwnNoiseLedger([3]))
    theirs, _ = played(
        algorithm, OwnNoiseLedger([3]), TABLE.replaced(5, TABLE.rewards[5], covariates=-TABLE.features[5] / 3)
    )
    assert np.array_equal(mine, theirs)


def test_a_strict_one_refuses_another_decision_set():
    strict = dataclasses.replace(built(TrustModel.JOINT), is_strict=True)
    with pytest.raises(ValueError, match="is none of the 1 of the pool"):
        played(strict, OwnNoiseLedger([0]), TABLE.replaced(3, TABLE.rewards[3], covariates=TABLE.features[3] / 2))


@each
@pytest.mark.parametrize("every", [1, 4])
def test_the_bounds_against_plain_numpy(trust, every):
    algorithm = built(trust, epsilon=5.0, ridge=0.7, norm_bound=1.5, beta_scale=0.4, every=every, failure=0.1)
    ledger = OwnNoiseLedger([1, 2], keeps_transcript=True)
    actions, released = played(algorithm, ledger)
    gram = KERNEL(POINTS[0][:, None], POINTS[0][None])
    phi = np.linalg.cholesky(gram + 1e-13 * np.eye(7))
    for r in range(2):
        counts = np.bincount(actions[r], minlength=7)
        sums, on_sums, scale = released.sums[r], 0.0, 0.5
        if trust is TrustModel.JOINT:
            on_sums = algorithm.bound(HORIZON) * 0.5
        else:
            messages = np.array([entry.output[r, 0] for entry in ledger.transcript])
            np.testing.assert_allclose(sums, 0.5 * np.bincount(actions[r], messages, minlength=7), atol=1e-9)
            scale = 0.5 * math.sqrt(1 + algorithm.sums.mechanism.scale**2)
        assert (sums[counts == 0] == 0).all()
        V = 0.7 * np.eye(7) + phi.T * counts @ phi
        width = scale * math.sqrt(2 * math.log(2 / 0.1) + np.linalg.slogdet(V / 0.7)[1]) + math.sqrt(0.7) * 1.5
        products = phi @ np.linalg.solve(V, phi.T)
        upper = products @ sums + 0.4 * width * np.sqrt(np.diagonal(products))
        upper += 0.4 * on_sums * np.abs(products[:, counts > 0]).sum(axis=1)
        np.testing.assert_allclose(released.upper[r], upper, rtol=1e-4)


def test_the_twin_is_that_of_several_decision_sets():
    """The same users in a pool with a second context that nobody brings."""
    wide = Pool(np.stack([POINTS[0], -POINTS[0]]), np.array([1.0, 0.0]))
    mine, released = played(settings(beta_scale=0.3).twin(), OwnNoiseLedger([0]))
    theirs, other = played(settings(pool=wide, beta_scale=0.3).twin(), OwnNoiseLedger([0]))
    assert np.array_equal(mine, theirs)
    np.testing.assert_allclose(released.upper, other.upper[:, :7], rtol=1e-4)
    ledger = LiveLedger(1, ConstantNoise())
    played(settings().twin(), ledger)
    assert isinstance(ledger.guarantee(), NoPrivacy)


@each
def test_between_two_looks_the_action_stays(trust):
    actions, _ = played(built(trust, every=5, beta_scale=0.2), OwnNoiseLedger([1, 2, 3]))
    blocks = actions.reshape(3, -1, 5)
    assert (blocks == blocks[:, :, :1]).all()
    assert len(np.unique(blocks)) > 2


@each
def test_a_replicate_of_a_batch_is_its_lone_run(trust):
    actions, released = played(built(trust), OwnNoiseLedger([5, 6, 7]))
    for row, seed in enumerate([5, 6, 7]):
        alone, one = played(built(trust), OwnNoiseLedger([seed]))
        assert np.array_equal(alone[0], actions[row])
        np.testing.assert_allclose(one.upper[0], released.upper[row], rtol=1e-10)


def test_ties_go_by_the_preference_of_each_replicate():
    rng = np.random.default_rng(1)
    order = np.array([rng.permutation(7) for _ in range(20)])
    algorithm = dataclasses.replace(settings().twin(), preference=order)
    _, released = algorithm.init(20)
    context = np.broadcast_to(POINTS[0], (20, 7, 2))
    assert np.array_equal(algorithm.act(released, context, 0), order[:, 0]), "at first all points are equally good"
    released.upper[:, 3] *= 1 + 1e-12
    assert np.array_equal(algorithm.act(released, context, 0), order[:, 0]), "but for rounding"
    released.upper[:, 3] *= 1 + 1e-6
    assert set(algorithm.act(released, context, 0)) == {3}
    assert set(settings().twin().act(settings().twin().init(4)[1], context[:4], 0)) == {0}


def test_growing_epochs_hand_the_preference_on():
    problem = Problem(7, UNIT, HORIZON, dimension=2, kernel=KERNEL, pool=POOL)
    entry, order = find("gp-ucb-pool joint"), np.arange(7)[None, ::-1]
    plain = entry.build(entry.settings(problem, "tight", ApproxDP(1.0, 1e-5), epochs="growing"))
    preferring = dataclasses.replace(plain, preference=order)
    for algorithm, first in ((plain, 0), (preferring, 6)):
        actions, _ = played(algorithm, OwnNoiseLedger([2]))
        assert actions[0, 0] == actions[0, 32] == first, "each epoch begins with a tie"


@each
def test_the_mean_reward_lies_below_the_index_as_the_width_promises(trust):
    """In all rounds of 40 runs, at all points; each run may fail with probability 0.05."""
    pool = Pool(np.random.default_rng(2).uniform(-0.7, 0.7, (1, 6, 2)), np.ones(1))
    stream = stream_of(pool, 80)
    algorithm = settings(SYMMETRIC, pool, 80, failure=0.05, norm_bound=3.0).private(ApproxDP(4.0, 1e-5), trust)
    checker = IndexChecker(algorithm, stream.values.ravel())
    run(checker, stream, LiveLedger(40, ReproducibleNoise(np.random.SeedSequence(3))))
    assert checker.failed.sum() <= 2 + 3 * math.sqrt(2)


def test_exact_counts_cost_less_regret_than_noisy_ones():
    """The same promise on the same eight points, with the decision set taken for public and for private."""
    points, kernel = np.linspace(-1, 1, 8)[None, :, None], SquaredExponential(0.1)
    values, found = np.array([-0.5, 0.0, -0.3, 0.5, 0.1, -0.4, 0.2, 0.0]), []
    for is_public in (True, False):
        pool = Pool(points if is_public else np.concatenate([points, points / 2]), np.eye(1 if is_public else 2)[0])
        algorithm = PooledSettings(pool, kernel, 1500, SYMMETRIC, beta_scale=0.3, norm_bound=1.0).private(
            ApproxDP(1.0, 0.1), TrustModel.JOINT
        )
        stream = stream_of(pool, 1500)
        stream.values = np.tile(values, (pool.n_contexts, 1))
        curve = ContextualRegretCurve(stream, np.array([1500]), 12)
        run(algorithm, stream, LiveLedger(12, ReproducibleNoise(np.random.SeedSequence(1))), observers=[curve])
        found.append(curve.curve[:, 0].mean())
    assert found[0] < 0.8 * found[1]


@each
def test_the_regret_bound_by_hand(trust):
    """The formula of its docstring, at numbers of rounds where it is less than the trivial bound."""
    pool, horizon, failure, every = Pool(np.array([[[-0.5], [0.5]]]), np.ones(1)), 40_000, 0.1, 3
    algorithm = settings(SYMMETRIC, pool, horizon, failure=failure, ridge=2.0, every=every).private(
        ApproxDP(1e3, 1e-2), trust
    )
    span, half, s = 2.0, 1.0, algorithm.sums.mechanism.scale
    assert s > 0
    features, error = triangular_features(KERNEL(pool.points[0][:, None], pool.points[0][None]))
    assert error < 1e-15
    assert np.array_equal(algorithm.growth(np.array([100.0])), 2 * gain_bounds(features, np.array([100.0]), 2.0))
    for rounds in (horizon // 2, horizon):
        gain = 2 * float(gain_bounds(features, rounds, 2.0))
        if trust is TrustModel.LOCAL:
            width = math.sqrt(1 + s**2) * half * math.sqrt(2 * math.log(2 / failure) + gain) + math.sqrt(2.0)
        else:
            q = max(algorithm.bound(1), algorithm.bound(horizon))
            width = half * math.sqrt(2 * math.log(2 / failure) + gain) + math.sqrt(2.0) + half * q * math.sqrt(2)
        expected = span + max(span, 2 * width) * math.sqrt((1 + 2 / 2.0) * rounds * gain / math.log(2))
        assert expected < span * rounds
        assert float(algorithm.regret_bound(rounds)) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match=r"at least 1, got 0\.5"):
        dataclasses.replace(algorithm, beta_scale=0.5).regret_bound(10)
