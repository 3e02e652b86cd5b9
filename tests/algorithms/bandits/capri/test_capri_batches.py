"""CAPRI in batches, without noise, and on a neighbor: what does not depend on the constants."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from doubles import OwnNoiseLedger
from pools import KERNEL, SYMMETRIC, UNIT, pool_of, stream_of, table_of

from bandana.algorithms.bandits.capri.forms import CAPRI
from bandana.algorithms.observers import ActionLog, ContextualRegretCurve
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, LiveLedger, NoPrivacy, ReproducibleNoise, ScriptedLedger, TrustModel

POOL, HORIZON = pool_of(), 60
TABLE = table_of(POOL, HORIZON)
PRIVATE = {
    f"{trust} {calibration}": CAPRI(POOL, KERNEL, HORIZON, UNIT, beta_scale=scale).private(
        ApproxDP(20.0, 1e-5), trust, calibration
    )
    for trust in (TrustModel.JOINT, TrustModel.LOCAL)
    for calibration, scale in (("tight", 0.1), ("printed", 1e-4), ("printed-lemma-6-6", 1e-4))
}
each = pytest.mark.parametrize("name", list(PRIVATE))


def played(algorithm, ledger, table=TABLE):
    log = ActionLog()
    _, released = run(algorithm, table, ledger, observers=[log])
    return np.array(log.actions).T, released


@each
@pytest.mark.parametrize("coins", [None, [3, 1, 4, 2**40]], ids=["shared coins", "own coins"])
def test_a_replicate_of_a_batch_is_its_lone_run(name, coins):
    seeds = [5, 6, 7, 8]
    actions, released = played(with_coins(PRIVATE[name], coins), OwnNoiseLedger(seeds))
    assert len({active.tobytes() for active in released.active}) > 1, "replicates part, and have plans of their own"
    for row, seed in enumerate(seeds):
        alone, one = played(with_coins(PRIVATE[name], coins and [coins[row]]), OwnNoiseLedger([seed]))
        assert np.array_equal(alone[0], actions[row])
        assert np.array_equal(one.active[0], released.active[row])
        np.testing.assert_allclose(one.estimate[0], released.estimate[row], rtol=1e-10)


def with_coins(algorithm, coins):
    return dataclasses.replace(algorithm, coins=None if coins is None else np.array(coins))


UNIFORM = CAPRI(POOL, KERNEL, HORIZON, UNIT).private(ApproxDP(1.0, 1e-5), TrustModel.JOINT, "printed")
"""Printed noise: nothing is eliminated, and all users of one table are given uniform actions."""


def test_replicates_without_coins_of_their_own_play_alike_whatever_the_noise():
    actions, released = played(UNIFORM, OwnNoiseLedger([*range(1, 9)]))
    assert released.active.all()
    assert (actions == actions[0]).all()
    assert len(released.plans) == 1


def test_replicates_with_coins_of_their_own_are_independent():
    """Two of them play each of 60 users alike with probability 1/3: 0.65 is five deviations above."""
    actions, released = played(with_coins(UNIFORM, np.arange(20)), OwnNoiseLedger([*range(20)]))
    alike = (actions[:, None] == actions[None]).mean(axis=2)[np.triu_indices(20, 1)]
    assert alike.max() < 0.65
    assert abs(alike.mean() - 1 / 3) < 0.02
    assert len(released.plans) == 20
    codes = released.codes.reshape(20, -1)
    assert all((codes[0] != other).any() for other in codes[1:]), "S and R are their own, too"


def test_a_seed_draws_all_coins_anew():
    other = dataclasses.replace(UNIFORM, seed=1)
    assert (other.coin(3) != UNIFORM.coin(3)).all()
    everything = np.ones((4, 3), dtype=bool)
    points = [algorithm.imitation(1, everything, 0, part).tolist() for algorithm in (UNIFORM, other) for part in (0, 1)]
    assert len(set(map(tuple, points))) == 4, "S and R are drawn apart"


def test_imitated_users_follow_the_pools_law_and_the_active_actions():
    pool = pool_of(law=[0.5, 0.5, 0.0, 0.0])
    algorithm = CAPRI(pool, KERNEL, 10**6, UNIT).twin()
    active = np.array([[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1]], dtype=bool)
    counts = np.bincount(algorithm.imitation(3, active, 7, 1), minlength=12)  # 8000 users
    assert counts.sum() == 8000
    assert not counts[[2, *range(6, 12)]].any()
    np.testing.assert_allclose(counts[[0, 1, 3, 4, 5]] / 8000, [1 / 4, 1 / 4, 1 / 6, 1 / 6, 1 / 6], atol=0.025)


@pytest.mark.parametrize("trust", [TrustModel.JOINT, TrustModel.LOCAL])
def test_without_noise_they_are_their_twin(trust):
    settings = CAPRI(POOL, KERNEL, HORIZON, UNIT, beta_scale=0.02)
    twin, released = played(settings.twin(), OwnNoiseLedger([0]))
    assert released.active.sum() < 12
    honest = settings.private(ApproxDP(1.0, 1e-5), trust, "tight")
    weak = dataclasses.replace(honest.gathering, mechanism=honest.gathering.mechanism.scaled(1e-12))
    silent = dataclasses.replace(honest, gathering=weak)
    actions, close = played(silent, OwnNoiseLedger([0]))
    assert np.array_equal(twin, actions)
    np.testing.assert_allclose(close.estimate, released.estimate, atol=1e-9)


def test_the_twin_has_no_privacy_and_says_so():
    ledger = OwnNoiseLedger([0])
    played(CAPRI(POOL, KERNEL, HORIZON, UNIT).twin(), ledger)
    assert isinstance(ledger.guarantee(), NoPrivacy)


@each
def test_the_neighbor_script_acts_alike_and_moves_by_no_more_than_the_sensitivity(name):
    """Every record of the first two epochs, another context and the other reward."""
    algorithm = PRIVATE[name]
    live = LiveLedger(4, ReproducibleNoise(np.random.SeedSequence(3)), keeps_transcript=True)
    log = ActionLog()
    run(algorithm, TABLE, live, observers=[log])
    largest, declared = 0.0, algorithm.gathering.mechanism.sensitivity
    for record in range(24):
        other = POOL.points[(int(POOL.index_of(TABLE.features[[record]])[0]) + 1 + record % 3) % 4]
        neighbor = TABLE.replaced(record, 1.0 - TABLE.rewards[record], covariates=other)
        scripted, shadow = ScriptedLedger(4, live.transcript, keeps_values=True), ActionLog()
        run(algorithm, neighbor, scripted, observers=[shadow])
        scripted.finish()
        assert (scripted.diverged < 0).all()
        mine, theirs = np.array(log.actions), np.array(shadow.actions)
        assert np.array_equal(np.delete(mine, record, axis=0), np.delete(theirs, record, axis=0))
        for release, value in zip(live.transcript, scripted.values, strict=True):
            moved = release.mechanism.change(release.value, value)
            assert (moved[~release.reads(record)] == 0).all()
            largest = max(largest, moved.max())
    assert 0.3 * declared < largest <= declared * (1 + 1e-12)


def regret(algorithm, pool, horizon, n_reps=4):
    env = stream_of(pool, horizon)
    curve = ContextualRegretCurve(env, np.array([horizon // 4, horizon]), n_reps)
    run(algorithm, env, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(2))), observers=[curve])
    uniform = horizon * (env.values.max(axis=1, keepdims=True) - env.values).mean()
    return curve.curve.mean(axis=0), uniform


USUAL = {"error_scale": 0.25, "failure": 0.1}


def test_the_twins_regret_is_sublinear():
    """Compares runs for T and for 4 T: within one run much is spent in early epochs, whose lengths depend on T."""
    regrets = []
    for horizon in (4000, 16000):
        (_, full), uniform = regret(CAPRI(POOL, KERNEL, horizon, SYMMETRIC, **USUAL).twin(), POOL, horizon, 2)
        regrets.append(full)
    assert regrets[1] < 3 * regrets[0], "sqrt(T) doubles it"
    assert regrets[1] < 0.4 * uniform


def test_privacy_costs_and_as_printed_nothing_is_ever_eliminated():
    pool, horizon = pool_of(3, 8), 6000
    settings = CAPRI(pool, KERNEL, horizon, SYMMETRIC, **USUAL)
    (_, twin), uniform = regret(settings.twin(), pool, horizon)
    tight, printed, local = (
        regret(settings.private(ApproxDP(8.0, 1e-5), trust, calibration), pool, horizon)[0][1]
        for trust, calibration in (
            (TrustModel.JOINT, "tight"), (TrustModel.JOINT, "printed"), (TrustModel.LOCAL, "tight")
        )
    )  # fmt: skip
    assert twin < tight < local
    assert tight < 0.95 * uniform
    # Two-point gaps of a uniform player: their mean over 24000 rounds is known to 1 %, six deviations are 4 %.
    assert printed == pytest.approx(uniform, rel=0.05)
