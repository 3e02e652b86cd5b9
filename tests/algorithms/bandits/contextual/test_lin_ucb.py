"""LinUCB: the twin against plain NumPy, and the model that noisy sums give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from context_tables import context_table
from doubles import OwnNoiseLedger

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCBSettings
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.run import run
from bandana.privacy_core import EQUAL, ApproxDP, Interval, TrustModel

SYMMETRIC, UNIT = Interval(-1.0, 1.0), Interval(0.0, 1.0)


def test_the_twin_against_plain_numpy():
    horizon, d, failure = 200, 3, 0.05
    table = context_table(horizon, 4, d, UNIT, 3)
    log = ActionLog()
    _, model = run(LinUCBSettings(4, d, horizon, UNIT, failure=failure).twin(), table, OwnNoiseLedger([0]), observers=[log])
    V, b, actions = np.eye(d), np.zeros(d), []
    for x, rewards in zip(table.features, table.rewards, strict=True):
        inverse = np.linalg.inv(V)
        width = 0.5 * math.sqrt(2 * math.log(2 / failure) + math.log(np.linalg.det(V))) + 0.5
        a = int(np.argmax(x @ inverse @ b + width * np.sqrt(np.einsum("ai,ij,aj->a", x, inverse, x))))
        actions.append(a)
        V, b = V + np.outer(x[a], x[a]), b + x[a] * (rewards[a] - 0.5)
    assert [int(a[0]) for a in log.actions] == actions
    np.testing.assert_allclose(model.estimate[0], np.linalg.solve(V, b), rtol=1e-9)


@pytest.mark.parametrize("calibration", ["as-known", "tight"])
def test_the_model_under_local_privacy_is_that_of_the_messages(calibration):
    horizon, d = 60, 3
    table = context_table(horizon, 4, d, SYMMETRIC, 1)
    algorithm = LinUCBSettings(4, d, horizon, SYMMETRIC).private(ApproxDP(2.0, 1e-5), TrustModel.LOCAL, calibration)
    ledger = OwnNoiseLedger([1, 2], keeps_transcript=True)
    _, model = run(algorithm, table, ledger)
    assert len(ledger.transcript) == horizon
    assert all((e.records.stop == e.records.start + 1).all() for e in ledger.transcript)
    total = sum(e.output for e in ledger.transcript)
    shift, least, largest = algorithm.shift(horizon)
    norm = algorithm.matrix_norm * math.sqrt(horizon) * ledger.transcript[0].mechanism.scale
    assert (shift, least, largest) == pytest.approx((1 + 2 * norm, 1 + norm, 1 + 3 * norm))
    V = total[:, :, :d] + shift * np.eye(d)
    np.testing.assert_allclose(model.estimate, np.linalg.solve(V, total[:, :, d:])[:, :, 0], rtol=1e-8)
    vector = algorithm.vector_norm * math.sqrt(horizon) * ledger.transcript[0].mechanism.scale
    # The least regularizer of the run: for three dimensions that is less than a union over its 60.
    growth = np.linalg.slogdet(V)[1] - d * math.log(algorithm.shift(1)[1])
    expected = np.sqrt(2 * math.log(2 * horizon) + growth) + math.sqrt(largest) + vector / math.sqrt(least)
    np.testing.assert_allclose(model.width, expected, rtol=1e-10)


def test_the_papers_constants():
    local = LinUCBSettings(4, 3, 100, SYMMETRIC).private(ApproxDP(2.0, 1e-5), TrustModel.LOCAL, "as-known").sums.mechanism
    assert local.diagonal_ratio == EQUAL
    assert local.scale == pytest.approx(4 * math.sqrt(2 * math.log(1.25e5)) / 2)
    assert local.vector_scale == pytest.approx(local.scale)
    joint = LinUCBSettings(4, 3, 100, UNIT, failure=0.01).private(ApproxDP(2.0, 1e-5), TrustModel.JOINT, "printed")
    sigma = math.sqrt(16 * 8 * 1.25**2 * math.log(4e5) ** 2 / 4)
    assert joint.sums.mechanism.scale == pytest.approx(sigma)
    log = math.log(2 * 100 / 0.01)
    upsilon = sigma * math.sqrt(2 * 8) * (4 * math.sqrt(3) + 2 * log)
    assert joint.shift(5) == pytest.approx((1 + 2 * upsilon, 1 + upsilon, 1 + 3 * upsilon))
    assert joint.shift(0) == (1, 1, 1)


def test_where_the_noise_beats_the_shift_eigenvalues_are_raised():
    algorithm = LinUCBSettings(2, 2, 10, UNIT).private(ApproxDP(1.0, 1e-5), TrustModel.LOCAL, "tight")
    _, model = algorithm.init(2)
    shift, least, _ = algorithm.shift(4)
    statistic = np.zeros((2, 2, 3))
    statistic[0, :, :2] = [[-3 * shift, 1.0], [1.0, 2.0]]
    statistic[:, :, 2] = [1.0, 2.0]
    algorithm._learn(model, statistic, 4)
    values, vectors = np.linalg.eigh(statistic[0, :, :2] + shift * np.eye(2))
    raised = vectors @ np.diag(np.maximum(values, least)) @ vectors.T
    np.testing.assert_allclose(model.inverse[0], np.linalg.inv(raised))
    np.testing.assert_allclose(model.inverse[1], np.eye(2) / shift)
    assert np.isfinite(model.width).all()


def test_what_a_record_contributes_is_clipped_though_the_stream_would_not():
    class Long(ContextTable):
        def contexts(self, user):
            return 3 * np.asarray(super().contexts(user))

    table = Long(np.ones((6, 2, 1)), np.ones((6, 2)), UNIT)
    ledger = OwnNoiseLedger([1], keeps_transcript=True)
    run(LinUCBSettings(2, 1, 6, UNIT).private(ApproxDP(1.0, 1e-5), TrustModel.LOCAL, "tight"), table, ledger)
    assert [e.value[0].tolist() for e in ledger.transcript] == [[[1.0, 0.5]]] * 6


def private(trust, n_actions=3, dimension=2, horizon=10, epsilon=1.0, delta=1e-5, **more):
    return LinUCBSettings(n_actions, dimension, horizon, UNIT, **more).private(ApproxDP(epsilon, delta), trust, "tight")


@pytest.mark.parametrize("trust", [TrustModel.JOINT, TrustModel.LOCAL])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ridge": 0.0}, "ridge must be a finite number above 0"),
        ({"failure": 0.0}, "failure must lie strictly between 0 and 1"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1"),
        ({"dimension": 0}, "dimension must be a whole number of at least 1"),
    ],
)
def test_refusals(trust, arguments, message):
    with pytest.raises(ValueError, match=message):
        private(trust, **arguments)


@pytest.mark.parametrize(
    ("trust", "calibration", "message"),
    [
        (TrustModel.JOINT, "loose", "calibration must be one of printed, tree, tight, got 'loose'"),
        (TrustModel.LOCAL, "tree", "calibration must be one of as-known, tight, got 'tree'"),
        (TrustModel.CENTRAL, "tight", "trust must be one of joint, local"),
    ],
)
def test_unknown_forms_are_refused(trust, calibration, message):
    with pytest.raises(ValueError, match=message):
        LinUCBSettings(3, 2, 10, UNIT).private(ApproxDP(1.0, 1e-5), trust, calibration)


def test_the_papers_local_noise_is_made_for_rewards_of_size_one():
    with pytest.raises(ValueError, match="width 2 at most"):
        LinUCBSettings(3, 2, 10, Interval(-2.0, 2.0)).private(ApproxDP(1.0, 1e-5), TrustModel.LOCAL, "as-known")
