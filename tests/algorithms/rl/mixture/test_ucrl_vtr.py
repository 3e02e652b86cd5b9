"""UCRL-VTR: the twin against plain NumPy, what noisy sums give, published constants, batches, and that it learns."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from mixture_models import FORMS, UNIT, episode_table, mixture, vtr

from bandana.algorithms.environments.episodes import EpisodeTable
from bandana.algorithms.environments.mdp_instances import hypercube_chain
from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.observers import ActionLog, EpisodicRegretCurve
from bandana.algorithms.regression.noise_norms import GaussianNorms, LaplaceNorms
from bandana.algorithms.rl.mixture.calibrations import READINGS
from bandana.algorithms.run import run
from bandana.privacy_core import EQUAL, GOE, LiveLedger, ReproducibleNoise

K = 12
MODEL, PARAMETERS = mixture(3, 2, 3, 3, seed=4, is_sparse=False)
TABLE = episode_table(MODEL, K, seed=1)

every = pytest.mark.parametrize("name", FORMS)


def by_hand(model, table, n_episodes, failure, ridge=1.0):
    """The twin's actions, final values and estimates, in plain NumPy; one replicate."""
    length, d, bound = model.horizon, model.dimension, model.parameter_bound
    low, high = (np.append(np.cumsum(f(model.rewards, axis=(1, 2))[::-1])[::-1], 0.0) for f in (np.min, np.max))
    half, middle = (high - low)[1:length] / 2, (high + low)[1:length] / 2
    norm = half * 1.0  # mixtures of kernels over sqrt d reach 1
    gram = np.array([ridge * r**2 * np.eye(d) for r in norm])
    moment = np.zeros((length - 1, d))
    actions = []
    for user in range(n_episodes + 1):
        values, policy = np.zeros((length + 1, model.n_states)), np.zeros((length, model.n_states), dtype=int)
        for h in range(length - 1, -1, -1):
            q = model.rewards[h].copy()
            if h < length - 1:
                inverse = np.linalg.inv(gram[h])
                w = inverse @ moment[h]
                x = np.einsum("satd,t->sad", model.features, values[h + 1] - middle[h])
                log_det = np.linalg.slogdet(gram[h])[1] - d * math.log(ridge * norm[h] ** 2)
                width = half[h] * math.sqrt(2 * math.log(2 * (length - 1) / failure) + log_det)
                width += bound * math.sqrt(ridge) * norm[h]
                q += middle[h] + x @ w + width * np.sqrt(np.einsum("sai,ij,saj->sa", x, inverse, x))
            q = np.clip(q, low[h], high[h])
            values[h], policy[h] = q.max(axis=1), q.argmax(axis=1)
        if user == n_episodes:
            return actions, values, [np.linalg.solve(g, m) for g, m in zip(gram, moment, strict=True)]
        state = table.first_states[user]
        for h in range(length):
            action = policy[h, state]
            after = table.next_states[user, h, state, action]
            actions.append(action)
            if h < length - 1:
                x = model.features[state, action].T @ (values[h + 1] - middle[h])
                gram[h] += np.outer(x, x)
                moment[h] += x * (values[h + 1, after] - middle[h])
            state = after
    raise AssertionError


def test_the_twin_against_plain_numpy():
    log = ActionLog()
    _, released = run(vtr("twin", MODEL, K, failure=0.05), TABLE, OwnNoiseLedger([0]), observers=[log])
    actions, values, estimates = by_hand(MODEL, TABLE, K, 0.05)
    assert [int(a[0]) for a in log.actions] == actions
    np.testing.assert_allclose(released.values[0], values, rtol=1e-9)
    np.testing.assert_allclose(released.estimate[0], estimates, rtol=1e-8)


def test_one_episode_by_hand():
    """Two states in which all stay, d = 1: the second step pays 1 in state 0; all numbers on paper."""
    features = np.repeat(np.eye(2)[:, None, :, None], 2, axis=1)  # two actions that do the same, w = 1
    model = MixtureModel(features, np.repeat([[[0.0], [0.0]], [[1.0], [0.0]]], 2, axis=2), 1.0)
    table = EpisodeTable([1], np.ones((1, 2, 2, 2)), np.zeros((1, 2, 2, 2)), UNIT)
    ledger = OwnNoiseLedger([0], keeps_transcript=True)
    algorithm = vtr("twin", model, 1, failure=0.5)
    _, first = algorithm.init(1)
    # V_2 = (1, 0), c = 1/2, x = (1/2, -1/2), Lambda = 1/4: |x| = 1, beta = (1/2) sqrt(2 log 4) + 1/2 > 1, so V_1 = 1.
    assert first.values[0].tolist() == [[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    assert first.width[0, 0] == pytest.approx(0.5 * math.sqrt(2 * math.log(4)) + 0.5)
    _, released = run(algorithm, table, ledger)
    # x = y = -1/2: Lambda = 1/2, w = 1/2.
    assert ledger.transcript[0].value[0].tolist() == [[[0.25, 0.25]]]
    assert released.estimate[0, 0, 0] == pytest.approx(0.5)
    beta = 0.5 * math.sqrt(2 * math.log(4) + math.log(2)) + 0.5
    assert released.width[0, 0] == pytest.approx(beta)
    q = min(1.0, 0.5 - 0.25 + beta * 0.5 * math.sqrt(2))
    assert released.values[0, 0].tolist() == pytest.approx([1.0, q])


@every
def test_the_model_is_that_of_what_was_released(name):
    """What the sums answered, regressed in NumPy with the public shift."""
    algorithm = vtr(name, MODEL, K)
    ledger = LiveLedger(1, ConstantNoise(0.25), keeps_transcript=True)
    sums: list[np.ndarray] = []
    answer = type(algorithm.sums).close

    class Watched(type(algorithm.sums)):
        def close(self, state, ledger, reps=None):
            found = answer(self, state, ledger, reps)
            sums.append(found[1].copy())
            return found

    watched = Watched(**{f: getattr(algorithm.sums, f) for f in algorithm.sums.__dataclass_fields__})
    _, released = run(type(algorithm)(**{**vars_of(algorithm), "sums": watched}), TABLE, ledger)
    assert len(ledger.transcript) == len(sums) == K
    shift, d = algorithm.shift(K), 3
    for b in range(algorithm.targets.n_blocks):
        gram = sums[-1][0, b, :, :d] + shift.added[b] * np.eye(d)
        np.testing.assert_allclose(gram, gram.T)
        np.testing.assert_allclose(released.estimate[0, b], np.linalg.solve(gram, sums[-1][0, b, :, d]), rtol=1e-7)
        np.testing.assert_allclose(released.inverse[0, b], np.linalg.inv(gram), rtol=1e-6, atol=1e-300)
        if not algorithm.is_published:
            floor, n = algorithm.regression.regularizers
            least = shift.least[b] if np.isnan(floor[b]) else floor[b]
            log = 2 * math.log(2 * 2 * n[b] * K) + max(0.0, np.linalg.slogdet(gram)[1] - d * math.log(least))
            width = algorithm.targets.spread[b] * math.sqrt(log) + math.sqrt(3) * math.sqrt(shift.largest[b])
            width += algorithm.regression.noise(K)[1][b] / math.sqrt(shift.least[b])
            assert released.width[0, b] == pytest.approx(width, rel=1e-9)
        else:
            assert released.width[0, b] == algorithm.published(K)[b]


def vars_of(algorithm):
    return {f: getattr(algorithm, f) for f in algorithm.__dataclass_fields__}


def test_the_printed_constants():
    """Corollaries 5 and 6 at H = 3, d = 3, K = 12, epsilon = 1, delta = 1e-5, p = 1/12, C_w = sqrt 3."""
    joint, local = (vtr(f"{trust} printed", MODEL, K) for trust in ("joint", "local"))
    nodes = 5  # ceil(log2 12 + 1)
    sd = 32 * 9 * math.sqrt(2 * 3 * nodes * math.log(24e5) * math.log(4e5) * math.log(16 * 3 * nodes * 1e5))
    assert joint.sums.mechanism.scale == pytest.approx(sd)
    assert joint.sums.mechanism.diagonal_ratio == GOE
    assert local.sums.mechanism.scale == pytest.approx(4 * 27 * math.sqrt(2 * math.log(12e5)))
    assert local.sums.mechanism.diagonal_ratio == EQUAL
    for algorithm, n in ((joint, nodes), (local, K)):
        upsilon = algorithm.sums.mechanism.scale * math.sqrt(n) * (4 * math.sqrt(3) + 2 * math.log(6 * 12 * 3 * 12))
        assert algorithm.shift(7).added == pytest.approx([9 + 2 * upsilon] * 2)
        assert algorithm.shift(0).added == pytest.approx([9.0] * 2)
        hoeffding = math.sqrt(2 * 9 * (math.log(3 * 3 * 12) + 1.5 * math.log(37)))
        width = 3 * (math.sqrt(3) + 1) * math.sqrt(9 + upsilon) + hoeffding
        assert algorithm.published(7) == pytest.approx([width] * 2)


@pytest.mark.parametrize("reading", READINGS)
def test_the_printed_pure_constants(reading):
    """Appendix C.4 by simple composition: 2 H messages or nodes more, each statistic at its sensitivity."""
    matrix, vector = (18.0, 18.0) if reading == "l2-constants" else (9 * 3.0, 18 * math.sqrt(3))
    joint = vtr("pure joint printed", MODEL, K, 0.5, reading).sums.mechanism
    local = vtr("pure local printed", MODEL, K, 0.5, reading).sums.mechanism
    assert (local.scale, local.scale * local.vector_ratio) == pytest.approx((6 * matrix / 0.5, 6 * vector / 0.5))
    assert (joint.scale, joint.vector_ratio) == pytest.approx((5 * local.scale, local.vector_ratio))


def test_noise_falls_on_steps_by_what_it_costs_there():
    algorithm = vtr("joint tight", MODEL, K)
    ratio = algorithm.targets.norm_bound[1] / algorithm.targets.norm_bound[0]
    assert algorithm.shares == pytest.approx((1.0, ratio**1.6))
    assert vtr("pure local tight", MODEL, K).shares == pytest.approx((1.0, ratio ** (4 / 3)))


@pytest.mark.parametrize("name", ["joint tight", "joint tree", "local tight"])
def test_without_noise_it_is_the_twin(name):
    _, twin = run(vtr("twin", MODEL, K), TABLE, OwnNoiseLedger([0]))
    _, found = run(vtr(name, MODEL, K, 1e13), TABLE, OwnNoiseLedger([0]))
    np.testing.assert_allclose(found.values, twin.values, rtol=1e-4)
    np.testing.assert_allclose(found.estimate, twin.estimate, rtol=1e-3)


@every
def test_a_replicate_of_a_batch_is_its_lone_run(name):
    algorithm = vtr(name, MODEL, K)
    seeds = [3, 1, 4]
    _, batch = run(algorithm, TABLE, OwnNoiseLedger(seeds))
    for r, seed in enumerate(seeds):
        _, alone = run(algorithm, TABLE, OwnNoiseLedger([seed]))
        for field in ("policy", "values", "estimate", "width"):
            np.testing.assert_allclose(getattr(alone, field)[0], getattr(batch, field)[r], rtol=1e-11, err_msg=field)


@pytest.mark.parametrize("is_plus", [False, True])
@pytest.mark.parametrize("name", ["twin", "joint printed", "joint tight", "pure local tight"])
def test_the_order_of_actions_changes_nothing(name, is_plus):
    """Actions that change places in the model, the data and the preference change places in the policy, bit for bit."""
    moved = np.array([2, 0, 1])  # action i of the second run is action moved[i] of the first
    model, _ = mixture(3, 3, 3, 3, seed=4)
    orders = np.array([[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]])
    other = MixtureModel(model.features[:, moved], model.rewards[:, :, moved], model.parameter_bound)
    table = episode_table(model, K, seed=1)
    places = EpisodeTable(table.first_states, table.next_states[..., moved], table.rewards[..., moved], UNIT)
    found = []
    for each, order, data in ((model, orders, table), (other, np.argsort(moved)[orders], places)):
        algorithm = dataclasses.replace(vtr(name, each, K, 10.0, is_plus=is_plus), preference=order)
        curve = EpisodicRegretCurve(np.zeros((3, 3, 3)), np.array([K]), len(orders))
        found.append(run(algorithm, data, OwnNoiseLedger([3, 1, 4, 1]), observers=[curve])[1])
    first, second = found
    assert np.array_equal(first.policy, moved[second.policy])
    for field in ("values", "estimate", "inverse", "width"):
        assert np.array_equal(getattr(first, field), getattr(second, field)), field
    assert not np.array_equal(first.policy, second.policy)
    if name == "joint printed":
        assert not np.array_equal(first.policy[1], first.policy[3]), "same noise, another preference: there are no ties"


def test_where_the_noise_beats_the_shift_eigenvalues_are_raised():
    algorithm = vtr("local tight", MODEL, K)
    _, released = algorithm.init(1)
    shift = algorithm.shift(4)
    statistic = np.zeros((1, 2, 3, 4))
    statistic[0, 0, :, :3] = np.diag([-3 * shift.added[0], 1.0, 2.0]) + 0.1
    statistic[..., 3] = [1.0, 2.0, 3.0]
    expected = statistic.copy()
    algorithm.learn(released, statistic, 4)
    values, vectors = np.linalg.eigh(expected[0, 0, :, :3] + shift.added[0] * np.eye(3))
    raised = vectors @ np.diag(np.maximum(values, shift.least[0])) @ vectors.T
    np.testing.assert_allclose(released.inverse[0, 0], np.linalg.inv(raised))
    np.testing.assert_allclose(released.estimate[0, 0], np.linalg.solve(raised, [1.0, 2.0, 3.0]))
    np.testing.assert_allclose(released.inverse[0, 1], np.eye(3) / shift.added[1])
    assert np.isfinite(released.values).all()


class TestNoiseNorms:
    """By simulation: no more than the failure asked for, and not ten times too large."""

    @pytest.mark.parametrize("n_noises", [1, 30])
    @pytest.mark.parametrize("law", ["goe", "laplace"])
    def test_bounds_hold_and_are_no_waste(self, law, n_noises):
        rng, n, d, p = np.random.default_rng(1), 4000, 4, 0.02

        class Sums:
            mechanism = type("Noise", (), {"scale": 2.0})

            def noise_deviation(self, step):
                return 2.0 * math.sqrt(n_noises)

            def noise_variance(self, step):
                return float(n_noises)

        if law == "goe":
            z = rng.normal(0, 2.0, (n_noises, n, d, d)).sum(axis=0)
            matrix, vector = (z + z.transpose(0, 2, 1)) / math.sqrt(2), rng.normal(0, 2.0, (n_noises, n, d)).sum(axis=0)
            bounds = GaussianNorms(d, p).bounds(Sums(), 1)
        else:
            z = rng.laplace(0, 2.0, (n_noises, n, d, d)).sum(axis=0)
            matrix, vector = np.triu(z) + np.triu(z, 1).transpose(0, 2, 1), rng.laplace(0, 2.0, (n_noises, n, d)).sum(axis=0)
            bounds = LaplaceNorms(d, p).bounds(Sums(), 1)
        found = np.abs(np.linalg.eigvalsh(matrix)).max(axis=1), np.linalg.norm(vector, axis=1)
        for norms, bound in zip(found, bounds, strict=True):
            assert (norms > bound).mean() <= p + 3 * math.sqrt(p / n)
            assert bound < 2.5 * np.quantile(norms, 1 - p)


def test_tight_noise_lets_it_learn_where_printed_noise_does_not():
    """Regret of the second half over the first: 1 where nothing is learned. All widths as they are proved."""
    horizon, ratio, regret = 4000, {}, {}
    instance = hypercube_chain(3, 3, 0.3)
    for name, algorithm in {
        "twin": vtr("twin", instance.model, horizon),
        "tight": vtr("joint tight", instance.model, horizon, 10.0),
        "printed": vtr("joint printed", instance.model, horizon, 10.0),
    }.items():
        stream = instance.stream(horizon, np.random.SeedSequence(1))
        curve = EpisodicRegretCurve(stream.best.gaps, np.array([horizon // 2, horizon]), 4)
        run(algorithm, stream, LiveLedger(4, ReproducibleNoise(np.random.SeedSequence(2))), observers=[curve])
        half, regret[name] = curve.curve.mean(axis=0)
        ratio[name] = regret[name] / half - 1
    assert ratio["twin"] < 0.3
    assert ratio["tight"] < 0.6
    assert ratio["printed"] > 0.8
    assert 3 * regret["twin"] < regret["tight"] < regret["printed"] / 2


class TestTheRegretBound:
    def test_its_arithmetic(self):
        """Two regressions that start at an eigenvalue of 1/4; values in [0, 1], C_w = sqrt 3, d = 3."""
        model, _ = mixture(3, 2, 3, 3)
        k, d = 100_000, 3
        found = vtr("twin", model, k, failure=0.1).regret_bound(np.array([1, 10, k]))
        assert found[:2].tolist() == [1.0, 10.0]
        growth = d * math.log1p(k / d)
        width = 0.5 * math.sqrt(2 * math.log(4 / 0.1) + growth) + math.sqrt(3) / 2
        each = 1 + 2 * width * math.sqrt(k * growth / math.log(2))
        assert found[2] == pytest.approx(2 * each + math.sqrt(k * 2 * math.log(10) / 2), rel=1e-9)
        assert found[2] < k

    def test_each_step_loses_at_most_the_range_of_its_own_values(self):
        """Rewards differ between steps, so that ranges [low, high] do."""
        k, d = 100_000, MODEL.dimension
        algorithm = vtr("twin", MODEL, k, failure=0.1)
        lost = [sum(float(np.ptp(step)) for step in np.asarray(MODEL.rewards)[h:]) for h in range(MODEL.horizon)]
        regularizer, square = algorithm.regression.regularizer(k), algorithm.regressor_bounds**2
        width = algorithm.regression.radius(d * np.log(k * square / d + regularizer.largest), k)
        growth = d * np.log1p(k * square / (regularizer.least * d))
        expected = math.sqrt(k * (lost[1] ** 2 + lost[2] ** 2) * math.log(10) / 2)
        for h in range(2):
            expected += lost[h] + max(lost[h], 2 * width[h]) * math.sqrt(k * growth[h] / math.log(2))
        assert float(algorithm.regret_bound(k)) == pytest.approx(min(lost[0] * k, expected), rel=1e-9)
        assert expected < lost[0] * k

    def test_noise_makes_it_larger_and_it_is_never_above_the_trivial_one(self):
        model, _ = mixture(3, 2, 3, 3)
        k = 20_000
        bounds = [vtr("joint tight", model, k, e, failure=0.1).regret_bound(k) for e in (1e4, 1e3, 0.1)]
        assert vtr("twin", model, k, failure=0.1).regret_bound(k) < bounds[0] < bounds[1] <= bounds[2] == k

    def test_where_nothing_is_proved(self):
        with pytest.raises(ValueError, match=r"beta_scale of at least 1, got 0\.5"):
            vtr("twin", MODEL, K, beta_scale=0.5).regret_bound(3)
        with pytest.raises(ValueError, match="printed bounds on sums of Laplace noise are not proved"):
            vtr("pure joint printed", MODEL, K).regret_bound(3)
        with pytest.raises(ValueError, match=r"ridge of at least 1 / \(d H\), got 0\.1"):
            vtr("joint printed", MODEL, K, ridge=0.1).regret_bound(3)
