"""UCRL-VTR+: weights against NumPy and by hand, published constants, the ledger, neighbors, batches, and that it learns."""

from __future__ import annotations

import math
from functools import partial

import kernel_references
import numpy as np
import pytest
from doubles import OwnNoiseLedger
from mixture_models import FORMS, episode_table, mixture, vtr
from test_ucrl_vtr import MODEL, TABLE, K
from test_ucrl_vtr_privacy import MU, neighbors, played

from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.observers import EpisodicRegretCurve
from bandana.algorithms.papers import luyo
from bandana.algorithms.protocol import Record
from bandana.algorithms.rl.mixture import value_targets_numba
from bandana.algorithms.run import run
from bandana.privacy_core import LiveLedger, ReproducibleNoise, ScriptedLedger

plus = partial(vtr, is_plus=True)
every = pytest.mark.parametrize("name", FORMS)
VARIANCE = {"weights": "variance"}


def record_of(states, actions):
    one = np.ones(len(states), dtype=np.int64)
    return Record(one, one, None, np.array(actions), np.zeros(np.shape(actions)), np.array(states))


def test_a_square_is_as_sub_gaussian_as_half_its_range():
    """Hoeffding: u lies in [0, B^2]; the weighted regressions' scale is in units of the least deviation."""
    algorithm = plus("joint tight", MODEL, K)
    n = algorithm.targets.n_blocks
    assert algorithm.noise_scale[n:] == pytest.approx([bound**2 / 2 for bound in algorithm.targets.value_bound])
    assert algorithm.noise_scale[:n].tolist() == [1.0] * n
    by_variance = plus("joint tight", MODEL, K, parts=VARIANCE)
    floors = np.sqrt(by_variance.squares.floor)
    assert by_variance.noise_scale[:n] * floors == pytest.approx(np.array(algorithm.targets.spread))


@pytest.mark.parametrize("name", ["joint tree", "joint tight", "local tight", "pure joint tight", "pure local tight"])
@pytest.mark.parametrize("horizon", [3, 12])
def test_half_of_the_failure_is_that_of_all_norms_of_noise(name, horizon):
    """Two bounds in each block of each step, in every episode: what each may fail with, summed, is half of 1 / K."""
    algorithm = plus(name, MODEL, horizon)
    assert len(algorithm.shares) > 1
    assert algorithm.norms.failure * 2 * len(algorithm.shares) * horizon == pytest.approx(algorithm.failure / 2)


def test_the_largest_deviation_is_what_three_squares_of_the_bound_on_values_allow():
    """Printed values lie in [0, H], H = 3, and nothing cuts s^2 = 3 H^2; the exact form knows s^2 <= m^2."""
    assert plus("joint printed", MODEL, K).largest_deviation == pytest.approx(math.sqrt(27))
    exact = plus("joint tight", MODEL, K, parts=VARIANCE)
    assert exact.largest_deviation == pytest.approx(np.array(exact.targets.value_bound))


@pytest.mark.parametrize("weights", ["variance", "proxy"])
@pytest.mark.parametrize("name", ["joint printed", "joint tight"])
@pytest.mark.parametrize("d", [3, 8])
def test_contributions_against_numpy(name, d, weights):
    """Random regressions; the pair of a step, weighted, and that of its squares."""
    model, _ = mixture(4, 3, 4, d, seed=1, is_sparse=False)
    algorithm, rng, n_reps = plus(name, model, K, parts={"weights": weights}), np.random.default_rng(5), 40
    _, released = algorithm.init(n_reps)
    n = algorithm.targets.n_blocks
    x = rng.standard_normal((n_reps, 2 * n, 2 * d, d))
    released.inverse[:] = 1e-4 * np.einsum("rbni,rbnj->rbij", x, x)
    released.estimate[:] = rng.standard_normal(released.estimate.shape)
    released.width[:] = 30 * rng.random(released.width.shape) / (300 if name == "joint printed" else 30)
    low, high = np.array(algorithm.targets.low), np.array(algorithm.targets.high)
    released.values[:] = low[:, None] + rng.random(released.values.shape) * (high - low)[:, None]
    states, actions = rng.integers(4, size=(n_reps, 5)), rng.integers(3, size=(n_reps, 4))
    found = algorithm.contribution(released, record_of(states, actions))
    steps, center, norm, value = algorithm._aims
    square, square_norm, square_value, floor, top, spread = algorithm._levels
    check = algorithm._check_width(released)
    weight = kernel_references.weights_reference(
        model.features, steps, center, square, value, floor, top, spread, released.estimate, released.inverse, check,
        released.width[:, n:], released.values, states, actions,
    )  # fmt: skip
    if name == "joint printed":  # beta-check - beta-hat = 8 (Y - 1) sqrt(d log(1 + K X^2 / (d lambda)) l)
        log = math.log(24 * algorithm.episode_length / algorithm.failure)
        growth = np.log1p(algorithm.horizon * algorithm.regressor_bounds[:n] ** 2 / (d * algorithm.ridge))
        excess = algorithm.beta_scale * 8 * (algorithm._spreads[:n] - 1) * np.sqrt(d * growth * log)
        np.testing.assert_allclose(check - algorithm.beta_scale * algorithm.published(0)[:n], np.tile(excess, (n_reps, 1)))
        assert (excess != 0).all()
    if name == "joint tight" and d == 8:
        assert len(np.unique(weight)) > n_reps, "weights are all at the floor or at the top"
    plain = kernel_references.contribute_reference(
        model.features, steps, center, norm, value, released.values, states, actions
    )  # fmt: skip
    np.testing.assert_allclose(found[:, :n], weight[:, :, None, None] * plain, rtol=1e-9, atol=1e-12)
    for b, h in enumerate(steps):
        squares = (released.values[:, h + 1] - center[b]) ** 2 - square[b]
        z = np.einsum("rtd,rt->rd", model.features[states[:, h], actions[:, h]], squares)
        u = squares[np.arange(n_reps), states[:, h + 1]]
        expected = z[:, :, None] * np.concatenate([z, u[:, None]], axis=1)[:, None, :]
        np.testing.assert_allclose(found[:, n + b], expected, rtol=1e-9, atol=1e-12)
    assert (np.linalg.norm(found[:, :n, :, :d], axis=(2, 3)) <= algorithm.regressor_bounds[:n] ** 2 * (1 + 1e-12)).all()
    assert (np.linalg.norm(found[:, n:, :, :d], axis=(2, 3)) <= algorithm.regressor_bounds[n:] ** 2 * (1 + 1e-12)).all()
    assert square_norm.shape == square_value.shape == (n,)


def test_the_variance_is_estimated_by_both_regressions():
    """Where both know the truth and are certain, s^2 is the variance of the next value."""
    model, parameters = mixture(4, 3, 4, 8, seed=1, is_sparse=False)
    algorithm = plus("twin", model, K)
    _, released = algorithm.init(1)
    n, rng = algorithm.targets.n_blocks, np.random.default_rng(0)
    released.estimate[0, :n] = released.estimate[0, n:] = parameters[list(algorithm.targets.steps)]
    released.width[:] = 0.0
    low, high = np.array(algorithm.targets.low), np.array(algorithm.targets.high)
    released.values[0] = low[:, None] + rng.integers(2, size=(5, 4)) * (high - low)[:, None]
    transitions, seen = model.transitions(parameters), 0
    for state in range(4):
        for action in range(3):
            states, actions = np.full((1, 5), state), np.full((1, 4), action)
            found = algorithm.contribution(released, record_of(states, actions))
            steps, center, norm, value = algorithm._aims
            plain = kernel_references.contribute_reference(
                model.features, steps, center, norm, value, released.values, states, actions
            )  # fmt: skip
            for b, h in enumerate(steps):
                p, after = transitions[h, state, action], released.values[0, h + 1]
                variance = p @ after**2 - (p @ after) ** 2
                floor, top = algorithm.squares.floor[b], algorithm.squares.top[b]
                bounded = value_targets_numba.proxy(variance, algorithm.targets.spread[b])
                np.testing.assert_allclose(found[0, b], plain[0, b] / min(max(bounded, floor), top), rtol=1e-7, atol=1e-9)
                seen += floor < bounded < top
    assert seen > 5


@pytest.mark.parametrize(("trust", "growth"), [("joint", 5), ("local", K)])
def test_the_printed_constants(trust, growth):
    """Corollaries 10 and 11 at H = 3, d = 3, K = 12, epsilon = 1, delta = 1e-5, p = 1/12, C_w = sqrt 3."""
    algorithm = plus(f"{trust} printed", MODEL, K)
    common = 64 * math.sqrt(2 * 3 * 5 * math.log(48e5) * math.log(8e5) * math.log(32 * 3 * 5 * 1e5))
    if trust == "local":
        common = 8 * 3 * math.sqrt(2 * math.log(24e5))
    sds = 3 * common, 81 * common
    noise = algorithm.sums.mechanism
    assert [noise.scale * share for share in noise.shares] == pytest.approx([sds[0]] * 2 + [sds[1]] * 2)
    assert noise.norm_bounds == noise.value_bounds == pytest.approx((math.sqrt(3),) * 2 + (9.0,) * 2)
    upsilons = [sd * math.sqrt(growth) * (4 * math.sqrt(3) + 2 * math.log(24 * 12 * 3 * 12)) for sd in sds]
    expected = [1 + 2 * upsilons[0]] * 2 + [1 + 2 * upsilons[1]] * 2
    assert algorithm.shift(7).added == pytest.approx(expected)
    log = math.log(24 * 8**2 * 3 * 12)  # before episode 8
    (weighted, _, squares, _), check = algorithm.published(7), algorithm.published(7, is_check=True)[0]
    first = 3 * (math.sqrt(3) + 1) * math.sqrt(1 + upsilons[0]) + 4 * math.sqrt(3) * log
    assert weighted == pytest.approx(first + 8 * math.sqrt(3 * math.log(13) * log))
    assert check == pytest.approx(first + 8 * 3 * math.sqrt(math.log(13) * log))
    second = 3 * (math.sqrt(3) + 1) * math.sqrt(1 + upsilons[1]) + 4 * 9 * log
    assert squares == pytest.approx(second + 8 * math.sqrt(3 * 81 * math.log(1 + 12 * 81 / 3) * log))


def test_published_noise_costs_the_worst_of_all_nodes_and_steps():
    """d and H^4 for each of 4 nodes and H - 1 steps: twice each with GOE noise, sqrt 4.5 times with equal variances."""
    joint, local = luyo.vtr_plus_joint_printed_sds(1.0, 1e-5, K, 3, 3), luyo.vtr_plus_local_printed_sds(1.0, 1e-5, 3, 3)
    for name, sds, times in (("joint printed", joint, 4 * 4), ("local printed", local, 4.5)):
        mu = math.sqrt(times * 2 * ((3 / sds[0]) ** 2 + (81 / sds[1]) ** 2))
        assert played(plus(name, MODEL, K)).guarantee().gdp().mu == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize("name", ["joint tree", "joint tight", "local tight", "pure joint tight", "pure local tight"])
def test_exact_calibrations_spend_the_claim_four_fifths_on_the_weighted_ones(name):
    algorithm = plus(name, MODEL, K)
    found, noise, n = played(algorithm).guarantee(), algorithm.sums.mechanism, 2
    if "pure" in name:
        assert found.epsilon == pytest.approx(1.0, rel=1e-9)
    else:
        assert found.gdp().mu == pytest.approx(MU, rel=1e-9)
    halves = noise.norm_bounds[:n], noise.value_bounds[:n], noise.shares[:n]
    extra = (noise.dimension, 1.0) if "pure" in name else (1.0,)
    part = type(noise)(*halves, *extra).sensitivity / noise.sensitivity
    assert part ** (1 if "pure" in name else 2) == pytest.approx(0.8)


@every
def test_no_neighbor_moves_a_release_by_more_than_its_sensitivity(name):
    algorithm = plus(name, MODEL, K)
    ledger, most = played(algorithm), 0.0
    for seed in range(8):
        scripted = ScriptedLedger(2, ledger.transcript, keeps_values=True)
        run(algorithm, neighbors(seed), scripted)
        assert (scripted.diverged == -1).all()
        for one, other in zip(ledger.transcript, scripted.values, strict=True):
            moved = one.mechanism.change(one.value, other)
            assert (moved <= one.mechanism.sensitivity * (1 + 1e-12)).all()
            most = max(most, float(moved.max() / one.mechanism.sensitivity))
    assert most > (1e-5 if "printed" in name else 0.03), "the neighbors move nothing: the test is empty"


@every
def test_a_replicate_of_a_batch_is_its_lone_run(name):
    algorithm = plus(name, MODEL, K)
    seeds = [3, 1, 4]
    _, batch = run(algorithm, TABLE, OwnNoiseLedger(seeds))
    for r, seed in enumerate(seeds):
        _, alone = run(algorithm, TABLE, OwnNoiseLedger([seed]))
        for field in ("policy", "values", "estimate", "width"):
            np.testing.assert_allclose(getattr(alone, field)[0], getattr(batch, field)[r], rtol=1e-11, err_msg=field)


@pytest.mark.parametrize("name", ["joint tight", "joint tree", "local tight"])
def test_without_noise_it_is_the_twin(name):
    _, twin = run(plus("twin", MODEL, K), TABLE, OwnNoiseLedger([0]))
    _, found = run(plus(name, MODEL, K, 1e13), TABLE, OwnNoiseLedger([0]))
    np.testing.assert_allclose(found.values, twin.values, rtol=1e-4)
    np.testing.assert_allclose(found.estimate, twin.estimate, rtol=1e-3, atol=1e-6)


def test_where_all_weights_are_alike_it_is_ucrl_vtr():
    """In dimension 1 the floor is the top; the widths differ by the union over twice as many regressions."""
    model, _ = mixture(3, 2, 3, 1, seed=2, is_sparse=False)
    table = episode_table(model, 30, seed=3)
    _, weighted = run(plus("twin", model, 30, failure=0.2), table, OwnNoiseLedger([0]))
    _, plain = run(vtr("twin", model, 30, failure=0.1), table, OwnNoiseLedger([0]))
    np.testing.assert_allclose(weighted.values, plain.values, rtol=1e-9)
    np.testing.assert_allclose(weighted.estimate[:, :2], plain.estimate, rtol=1e-9)


def test_the_twin_learns():
    horizon = 3000
    model, parameters = mixture(3, 2, 3, 3)
    stream = FiniteMDP(model.transitions(parameters), model.rewards, horizon, np.random.SeedSequence(1))
    curve = EpisodicRegretCurve(stream.best.gaps, np.array([horizon // 30, horizon]), 8)
    algorithm = plus("twin", model, horizon, beta_scale=0.5)
    run(algorithm, stream, LiveLedger(8, ReproducibleNoise(np.random.SeedSequence(2))), observers=[curve])
    first, whole = curve.curve.mean(axis=0)
    assert whole < 0.3 * 30 * first, "linear regret would be 30 times the first"
