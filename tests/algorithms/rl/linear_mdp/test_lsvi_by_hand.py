"""Batched LSVI-UCB against what can be computed by hand, and against the algorithm as it is written."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from lsvi_cases import (
    HORIZON,
    LENGTH,
    MODEL,
    N_ACTIONS,
    N_STATES,
    PRIVATE,
    TABLE,
    TWINS,
    UNIT,
    D,
    as_written,
    goe_of,
    played,
)

from bandana.algorithms.environments.episodes import EpisodeTable
from bandana.algorithms.mdp.models import LinearModel
from bandana.algorithms.protocol import Record
from bandana.algorithms.rl.linear_mdp.forms import LSVI
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, LiveLedger, PureDP, TreeSum

SCALE = 0.01
"""Value of beta: with it the policy depends on everything."""


def test_one_state_and_one_feature_by_hand():
    """lambda = 1, targets r - 1/2: after k episodes w = sum (r - 1/2) / (1 + k), and the bonus is beta / sqrt(1 + k)."""
    model = LinearModel(np.ones((1, 2, 1)), 1)
    rewards = np.tile(np.array([1.0, 0.0, 1.0, 1.0]).reshape(4, 1, 1, 1), 2)
    data = EpisodeTable(np.zeros(4, dtype=int), np.zeros((4, 1, 1, 2), dtype=int), rewards, UNIT)
    algorithm = LSVI(model, 4, batches="static", n_batches=4, failure=0.3, beta_scale=0.1).twin()
    assert algorithm.schedule.looks == (1, 2, 3)
    _, released = run(algorithm, data, LiveLedger(1, ConstantNoise()), horizon=3)
    weight = (0.5 - 0.5 + 0.5) / 4
    assert released.weights.ravel() == pytest.approx([weight])
    assert released.inverse.ravel() == pytest.approx([1 / 4])
    # |w*| <= 1 + 1/2, Y = 1; no value follows, so no net; three looks.
    beta = 0.1 * (1.5 + 0.5 * math.sqrt(2 * math.log(3 * 3 / 0.3) + math.log(1 + 3)))
    assert algorithm.widths(3) == pytest.approx([beta])
    assert released.values.ravel() == pytest.approx([0.5 + weight + beta / 2, 0.0])
    assert (released.n_looks[0], released.n_updates[0], released.clock[0]) == (3, 3, 3)


def test_before_the_first_update_users_take_all_sequences_of_actions_in_turn():
    algorithm = TWINS["geometric"](n_batches=2)
    assert algorithm.schedule.looks == (HORIZON // 2,)
    actions, *_ = played(algorithm, LiveLedger(2, ConstantNoise()))
    first = [tuple(row) for row in actions[0, : HORIZON // 2].tolist()]
    assert first[:4] == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]
    assert len(set(first[: N_ACTIONS**LENGTH])) == N_ACTIONS**LENGTH
    assert first[N_ACTIONS**LENGTH] == (0, 0, 0)


def test_sequences_of_actions_are_counted_without_overflow():
    model = LinearModel(np.ones((1, 10, 1)), 40)
    algorithm = LSVI(model, 100).twin()
    _, released = algorithm.init(1)
    released.clock[:] = 99
    state = np.zeros(1, dtype=np.int64)
    assert [int(algorithm.act(released, state, step)[0]) for step in (0, 1, 2, 39)] == [9, 9, 0, 0]


@pytest.mark.parametrize("name", ["static", "geometric"])
def test_the_twin_is_the_algorithm_as_written(name):
    algorithm = TWINS[name](beta_scale=SCALE)
    actions, _, released = played(algorithm, LiveLedger(2, ConstantNoise()))
    expected, weights, values = as_written(
        algorithm, TABLE, lambda look: np.zeros((LENGTH, D, D)), lambda look, step: np.zeros(D)
    )
    for r in range(2):
        assert np.array_equal(actions[r], expected)
        np.testing.assert_allclose(released.weights[r], weights, rtol=1e-9)
        np.testing.assert_allclose(released.values[r], values, rtol=1e-9)
    assert len({tuple(row) for row in expected[algorithm.schedule.looks[0] :].tolist()}) > 1


@pytest.mark.parametrize("name", ["joint printed", "joint static", "joint geometric", "pure printed", "pure geometric"])
def test_constant_noise_enters_where_it_should(name):
    """With noise 1 a prefix of a tree holds as many as its nodes, a factorized one the sum of a row of its decoder."""
    algorithm = PRIVATE[name](beta_scale=SCALE)
    value = 0.3
    actions, _, released = played(algorithm, LiveLedger(1, ConstantNoise(value)))
    scale, sums = value * algorithm.matrices.mechanism.scale, algorithm.matrices

    def matrix_noise(look):
        times = look.bit_count() if isinstance(sums, TreeSum) else sums.factorization.decoder[look - 1, :look].sum()
        return np.tile(goe_of(times * scale, algorithm.diagonal_weight), (LENGTH, 1, 1))

    def vector_noise(look, step):
        return np.full(D, value * algorithm.vectors[step].scale)

    expected, weights, values = as_written(algorithm, TABLE, matrix_noise, vector_noise)
    assert np.array_equal(actions[0], expected)
    np.testing.assert_allclose(released.weights[0], weights, rtol=1e-7)
    np.testing.assert_allclose(released.values[0], values, rtol=1e-7)


def test_a_matrix_that_noise_makes_indefinite_is_repaired():
    algorithm = PRIVATE["joint geometric"]()
    _, _, released = played(algorithm, LiveLedger(1, ConstantNoise(-40.0)))
    values = np.linalg.eigvalsh(released.inverse[0])
    assert (values > 0).all()
    added, least, _ = algorithm.regularizer(len(algorithm.schedule.looks))
    assert (values <= 1 / least * (1 + 1e-9)).all()
    largest = np.maximum(-np.log(values * added).sum(axis=1), 0.0)
    np.testing.assert_allclose(released.log_det[0], largest, rtol=1e-9, err_msg="it started from 0")


def test_determinants_update_where_they_have_grown_and_as_often_as_is_paid_for():
    ledger = OwnNoiseLedger(list(range(20)), keeps_transcript=True)
    algorithm = PRIVATE["joint determinant"]()
    _, _, released = played(algorithm, ledger)
    assert (released.n_looks == len(algorithm.schedule.looks)).all()
    assert len(set(released.n_updates.tolist())) > 1, "each replicate has its own updates"
    few = PRIVATE["joint determinant"](n_batches=3)
    _, _, released = played(few, OwnNoiseLedger(list(range(20))))
    assert few.schedule.most_updates == 2
    assert released.n_updates.max() == 2
    once = LSVI(MODEL, HORIZON, batches="determinant", switch=1e9).twin()
    assert played(once, LiveLedger(1, ConstantNoise()))[2].n_updates[0] == 1, "the first one is not waited for"


@pytest.mark.parametrize("name", ["joint determinant", "joint printed", "pure static", "twin geometric"])
def test_the_order_of_actions_changes_nothing(name):
    """Actions that change places in the model, the data and the preference change places in the policy."""
    moved = np.array([2, 0, 1])  # action i of the second run is action moved[i] of the first
    generator = np.random.default_rng(7)
    features = generator.dirichlet(np.ones(D), (N_STATES, 3))
    features[:, 1] = features[:, 0]  # two actions that tie always
    orders = np.array([[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]])
    shape = (HORIZON, LENGTH, N_STATES, 3)
    first_states, after = generator.integers(N_STATES, size=HORIZON), generator.integers(N_STATES, size=shape)
    rewards, found = generator.random(shape), []
    for order, places in ((orders, np.arange(3)), (np.argsort(moved)[orders], moved)):
        chosen = LSVI(LinearModel(features[:, places], LENGTH), HORIZON, beta_scale=SCALE, n_batches=6, **_OPTIONS[name])
        algorithm = chosen.twin() if "twin" in name else chosen.private(*_PROMISES[name])
        data = EpisodeTable(first_states, after[..., places], rewards[..., places], UNIT)
        algorithm = dataclasses.replace(algorithm, preference=order)
        actions, _, released = played(algorithm, OwnNoiseLedger([3, 1, 4, 1]), data)
        found.append((places[actions], places[released.policy], released))
    (actions, policy, first), (same_actions, same_policy, second) = found
    assert np.array_equal(actions, same_actions)
    assert np.array_equal(policy, same_policy)
    for field in ("values", "weights", "inverse", "n_updates"):
        np.testing.assert_allclose(getattr(first, field), getattr(second, field), rtol=1e-9, atol=1e-12, err_msg=field)
    assert not np.array_equal(actions[1], actions[3]), "the same noise and another preference: ties are played otherwise"


_OPTIONS = {"joint determinant": {}, "joint printed": {}, "pure static": {"batches": "static"}, "twin geometric": {}}
_PROMISES = {
    "joint determinant": (ApproxDP(1.0, 1e-5), "tight"), "joint printed": (ApproxDP(1.0, 1e-5), "printed"),
    "pure static": (PureDP(1.0), "tight"),
}  # fmt: skip


def test_bad_preferences_are_refused():
    algorithm = TWINS["static"]()
    for bad in ([[0, 0]], [[0, 2]], [0, 1], [[1, 0, 2]]):
        with pytest.raises(ValueError, match="each row of preference must be a permutation of the 2 actions"):
            dataclasses.replace(algorithm, preference=np.array(bad))
    with pytest.raises(ValueError, match="preference must have a row a replicate, 3, got 1"):
        dataclasses.replace(algorithm, preference=np.array([[1, 0]])).init(3)


def test_rewards_are_moved_into_the_unit_interval():
    """By the algorithm itself too, whatever the record holds."""
    algorithm, found = TWINS["geometric"](), []
    zeros = np.zeros(1, dtype=np.int64)
    for rewards in ([7.0, -3.0, 0.5], [1.0, 0.0, 0.5]):
        states, actions = np.zeros((1, LENGTH + 1), dtype=np.int64), np.zeros((1, LENGTH), dtype=np.int64)
        record = Record(zeros, zeros + 1, None, actions, np.array([rewards]), states)
        sensitive, _ = algorithm.absorb(*algorithm.init(1), record, LiveLedger(1, ConstantNoise()))
        found.append(sensitive.rewards)
    assert np.array_equal(*found)
    assert found[0].sum() == 1.5


# --- arguments -------------------------------------------------------------------------------------------------------


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="calibration must be one of printed, tight, got 'loose'"):
        LSVI(MODEL, HORIZON).private(ApproxDP(1.0, 1e-5), "loose")
    with pytest.raises(ValueError, match="static batches: batches must be static or left out, got 'geometric'"):
        LSVI(MODEL, HORIZON, batches="geometric").private(PureDP(1.0), "printed")
    with pytest.raises(ValueError, match="batches must be one of static, geometric, determinant, got 'other'"):
        LSVI(MODEL, HORIZON, batches="other").twin()
    for bad, told in (
        ({"n_batches": -1}, "n_batches must"), ({"ridge": 0.0}, "ridge must"), ({"failure": 1.0}, "failure must"),
        ({"beta_scale": -1.0}, "beta_scale must"), ({"batches": "determinant", "switch": 0.0}, "switch must"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            LSVI(MODEL, HORIZON, **bad).twin()
        with pytest.raises(ValueError, match=told):
            LSVI(MODEL, HORIZON, **bad).private(ApproxDP(1.0, 1e-5), "tight")
    for horizon in (0, -3):
        with pytest.raises(ValueError, match="horizon must"):
            LSVI(MODEL, horizon).private(ApproxDP(1.0, 1e-5), "tight")
    with pytest.raises(ValueError, match="a single batch nothing is ever learned"):
        LSVI(MODEL, 8).private(ApproxDP(1.0, 1e-5), "printed")


@pytest.mark.parametrize("look", [1, 2])
def test_the_width_by_hand(look):
    """A union bound over values on a grid of steps of 1 / sqrt k: ceil(a sqrt k) of them for each state, a the largest."""
    algorithm = LSVI(MODEL, HORIZON, batches="static", n_batches=3, failure=0.2).twin()
    k, n_looks = algorithm.schedule.looks[look - 1], len(algorithm.schedule.looks)
    ridge = algorithm.regularizer(look).least
    expected = []
    for after, center in zip((2.0, 1.0, 0.0), algorithm.centers, strict=True):
        union = 2 * math.log(3 * LENGTH * n_looks / 0.2)
        net = 2 * N_STATES * math.log(max(math.ceil(after * math.sqrt(k)), 1))
        chance = (1 + after) / 2 * math.sqrt(union + net + D * math.log(1 + k / (D * ridge))) + (after > 0)
        expected.append(math.sqrt(ridge * D) * (1 + after / 2 + abs(center - after / 2)) + chance)
    assert algorithm.widths(look) == pytest.approx(expected)
    assert (2.0 * math.sqrt(k)) % 1 > 0
