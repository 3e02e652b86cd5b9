"""AdaR-OFUL with constant noise in one dimension, and against the printed algorithm in plain NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from context_tables import context_table
from doubles import ConstantNoise, OwnNoiseLedger

from bandana.algorithms.bandits.contextual.offers import optimistic
from bandana.algorithms.bandits.contextual.oful import adar_oful, oful
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.regression import ridge_numba
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger

SYMMETRIC, UNIT = Interval(-1.0, 1.0), Interval(0.0, 1.0)
LINE = ContextTable(np.ones((15, 2, 1)), np.ones((15, 2)), SYMMETRIC)


def test_one_dimension_by_hand():
    """V = 1 + t; updates where V > 2 V_tau: at t = 2, 6, 14. Noise 2 a block, rewards 1: sums 2 + 2, 6 + 4, 14 + 6."""
    algorithm = adar_oful(2, 1, 15, 2.0, 1.0, SYMMETRIC, "printed", failure=0.1)
    ledger = LiveLedger(1, ConstantNoise(), keeps_transcript=True)
    _, released = run(algorithm, LINE, ledger)
    assert [(int(e.records.start[0]), int(e.records.stop[0])) for e in ledger.transcript] == [(0, 2), (2, 6), (6, 14)]
    assert [float(e.output[0, 0]) for e in ledger.transcript] == pytest.approx([4.0, 6.0, 10.0])
    assert released.estimate[0, 0] == pytest.approx(20 / 15)
    assert released.gram[0, 0, 0] == 16
    log = math.log(15 / 0.1)
    # The bound of Lemma 27 is far below 0 at t = 14: the ridge stands in its place.
    noise = 2 * math.sqrt(3) * math.sqrt(1 + 2 * math.sqrt(log) + 2 * log)
    assert released.width[0] == pytest.approx(math.sqrt(2 * math.log(10) + math.log(15)) + 1 + noise)


def test_the_twin_by_hand():
    table = LINE.with_rewards(np.ones((15, 2)), UNIT)
    _, released = run(oful(2, 1, 15, UNIT, failure=0.1), table, LiveLedger(1, ConstantNoise()))
    assert released.estimate[0, 0] == pytest.approx(7 / 15), "rewards 1 lie 1/2 above the middle"
    assert released.width[0] == pytest.approx(0.5 * math.sqrt(2 * math.log(10) + math.log(15)) + 0.5)
    assert released.n_updates.tolist() == [3]


def test_the_tight_noise_by_hand():
    algorithm = adar_oful(2, 1, 15, 2.0, 1.0, SYMMETRIC, "tight", failure=0.1)
    assert algorithm.sums.n_steps == 4, "log2(1 + 15) updates at most"
    ledger = LiveLedger(1, ConstantNoise(), keeps_transcript=True)
    _, released = run(algorithm, LINE, ledger)
    # Every row of C x + z has the same z = 2: the decoder's row sums are what noise the running sum gets.
    noise = 2 * algorithm.sums.factorization.decoder[2].sum()
    assert released.estimate[0, 0] == pytest.approx((14 + noise) / 15)
    assert all(e.carried is not None for e in ledger.transcript)


def reference(table, horizon, alpha, epsilon, failure, seed, least_share):
    """Algorithm 4 with the reading of Appendix D that the docstring names; rewards in [-1, 1]."""
    rng, d = np.random.default_rng(seed), table.context_dimension
    lam, C = 1.0, 1.0
    V, b, noise, n_updates = lam * np.eye(d), np.zeros(d), np.zeros(d), 0
    V_then, theta, tau, actions = V.copy(), np.zeros(d), 0, []
    for t in range(1, horizon + 1):
        if np.linalg.det(V) > (1 + C) * np.linalg.det(V_then):
            noise = noise + math.sqrt(2 * alpha / epsilon) * rng.standard_normal(d)
            theta, V_then, tau, n_updates = np.linalg.solve(V, b + noise), V.copy(), t - 1, n_updates + 1
        beta = math.sqrt(2 * math.log(1 / failure) + math.log(np.linalg.det(V_then) / lam**d)) + math.sqrt(lam)
        log, spread = math.log(horizon / failure), math.log((tau + 3) * d / failure)
        bottom = lam + least_share * tau / 4 - 8 * spread - 2 * math.sqrt(tau * spread)
        gamma = math.sqrt(2 * alpha * n_updates / epsilon * (d + 2 * math.sqrt(d * log) + 2 * log) / max(bottom, lam))
        x = table.features[t - 1]
        widths = np.sqrt(np.einsum("ai,ij,aj->a", x, np.linalg.inv(V_then), x))
        a = int(np.argmax(x @ theta + (beta + gamma) * widths))
        actions.append(a)
        V = V + np.outer(x[a], x[a])
        b = b + x[a] * table.rewards[t - 1, a]
    return actions, theta, n_updates


@pytest.mark.parametrize("seed", range(5))
def test_the_printed_algorithm_against_plain_numpy(seed):
    horizon, share = 300, 50.0  # a share so large that the bound of Lemma 27 counts, however little it is true
    table = context_table(horizon, 4, 3, SYMMETRIC, seed)
    algorithm = adar_oful(4, 3, horizon, 2.0, 5.0, SYMMETRIC, "printed", failure=0.05, least_share=share)
    log = ActionLog()
    _, released = run(algorithm, table, OwnNoiseLedger([seed]), observers=[log])
    actions, theta, n_updates = reference(table, horizon, 2.0, 5.0, 0.05, seed, share)
    assert [int(a[0]) for a in log.actions] == actions
    assert released.n_updates[0] == n_updates > 5
    np.testing.assert_allclose(released.estimate[0], theta, rtol=1e-9)


@pytest.mark.parametrize("calibration", ["printed", "tight"])
def test_an_update_after_the_last_round_is_not_made(calibration):
    algorithm = adar_oful(2, 1, 14, 2.0, 1.0, SYMMETRIC, calibration)
    ledger = LiveLedger(1, ConstantNoise(), keeps_transcript=True)
    run(algorithm, LINE, ledger, horizon=14)
    assert len(ledger.transcript) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ridge": 0.0}, "ridge must be a finite number above 0, got 0.0"),
        ({"ridge": -1.0}, "ridge must be .* above 0, got -1.0"),
        ({"ridge": math.nan}, "ridge must be .* above 0, got nan"),
        ({"switch": 0.0}, "switch must be .* above 0"),
        ({"failure": 1.0}, "failure must lie strictly between 0 and 1"),
        ({"parameter_bound": 0.0}, "parameter_bound must be .* above 0"),
        ({"beta_scale": -1.0}, "beta_scale must be .* at least 0"),
        ({"alpha": 1.0}, "alpha must be a finite Renyi order above 1"),
        ({"epsilon": 0.0}, "epsilon must be .* above 0"),
        ({"n_actions": 1}, "n_actions must be a whole number of at least 2"),
        ({"dimension": 0}, "dimension must be a whole number of at least 1"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1"),
        ({"calibration": "loose"}, "calibration must be one of printed, tight, got 'loose'"),
        ({"least_share": 0.1}, "least_share belongs to 'printed'"),
        ({"calibration": "printed", "least_share": -0.1}, "least_share must be .* above 0"),
        ({"calibration": "printed", "reward_range": Interval(0.0, 2.0)}, r"printed is made for rewards in \[-1, 1\]"),
    ],
)
def test_refusals(arguments, message):
    usual = {
        "n_actions": 3, "dimension": 2, "horizon": 10, "alpha": 2.0, "epsilon": 1.0, "reward_range": UNIT,
        "calibration": "tight",
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        adar_oful(**(usual | arguments))


def test_so_many_updates_as_the_determinant_has_grown_have_made_noise():
    """Each update multiplies it by 1 + C at least: in a growth of 2.9 log(1 + C) there are two."""
    algorithm = adar_oful(2, 3, 4000, 2.0, 1.0, SYMMETRIC, "tight", failure=0.1, switch=0.5)
    norms, unit = algorithm.noise_norms, math.log(1.5)
    assert norms[2] < norms[3] < norms[4]
    growth = np.array([0.0, 0.9, 1.1, 2.9, 3.1]) * unit
    assert algorithm._largest_norm(growth).tolist() == [norms[0], norms[0], norms[1], norms[2], norms[3]]


def test_whoever_plays_it_without_contexts_is_told():
    with pytest.raises(ValueError, match="decides from contexts, and the stream offers none"):
        optimistic(np.zeros((1, 1)), np.ones((1, 1, 1)), np.ones(1), None)


def test_where_a_matrix_cannot_be_factorized_the_last_estimate_stays(monkeypatch):
    """Rounding may take a huge matrix for singular: its inverse is then the one of rank-one updates."""
    monkeypatch.setattr(ridge_numba, "learn", lambda *arrays: arrays[-1].fill(False))
    algorithm = adar_oful(2, 1, 15, 2.0, 1.0, SYMMETRIC, "printed", failure=0.1)
    _, released = run(algorithm, LINE, LiveLedger(1, ConstantNoise()))
    assert released.n_updates.tolist() == [3]
    assert released.estimate.tolist() == [[0.0]]
    assert released.inverse[0, 0, 0] == pytest.approx(1 / 16)
