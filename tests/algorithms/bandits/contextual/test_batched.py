"""LinUCB from shuffled bits: the encoding, what a record can move, a naive copy that agrees, and its bound."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from doubles import OwnNoiseLedger
from naive_copies import assert_as_good

from bandana.algorithms.bandits.contextual.batched import Encoding, batched_lin_ucb, shuffled
from bandana.algorithms.bandits.contextual.lin_ucb import LinUCBSettings
from bandana.algorithms.catalog import find
from bandana.algorithms.environments.sphere import LinearLink, SphereContexts
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.observers import ActionLog, ContextualRegretCurve
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.audits.claims import Quantity
from bandana.audits.outcome import accounted_as
from bandana.privacy_core import ApproxDP, Interval, JointGaussian, LiveLedger, ReproducibleNoise, TrustModel

UNIT, PROMISE = Interval(0.0, 1.0), ApproxDP(2.0, 1e-5)


def table(horizon, seed, n_actions=4, d=2):
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(horizon, n_actions, d))
    contexts /= np.linalg.norm(contexts, axis=2)[..., None]
    means = 0.5 + 0.4 * contexts @ np.eye(d)[0]
    return ContextTable(contexts, (rng.random(means.shape) < means).astype(float), UNIT), means


def built(horizon, batch, promise=PROMISE, n_actions=4, d=2, **more):
    return shuffled(batched_lin_ucb(n_actions, d, horizon, UNIT, batch=batch, **more), promise, 16)


def naive(stream, algorithm, rng):
    """One run: users write rounded numbers as bits, and add fair ones; the server counts, regresses, is optimistic."""
    h, n_bits, b = 1 / 16, algorithm.sums.mechanism.n_bits, algorithm.batch
    gram, vector, theta, inverse, width = np.zeros((2, 2)), np.zeros(2), np.zeros(2), None, 0.0
    counts, actions = np.zeros(5), []
    steps = h * np.array([math.sqrt(2), 1, math.sqrt(2), 1, 1])
    least = np.array([0, -0.5, 0, -0.5, -0.5])
    for t in range(stream.n_users):
        offered = stream.features[t]
        bonus = 0.0 if inverse is None else width * np.sqrt(np.einsum("ai,ij,aj->a", offered, inverse, offered))
        actions.append(int(np.argmax(offered @ theta + bonus)))
        x, y = offered[actions[-1]], stream.rewards[t, actions[-1]] - 0.5
        entries = np.array([x[0] * x[0], x[0] * x[1], x[1] * x[1], y * x[0], y * x[1]])
        counts += np.floor((entries - least) / steps + rng.random(5))
        if (t + 1) % b == 0:
            k = (t + 1) // b
            counts += rng.binomial(n_bits, 0.5, size=5)
            sums = (counts - k * n_bits / 2) * steps + (t + 1) * least
            gram, vector = np.array([[sums[0], sums[1]], [sums[1], sums[2]]]), sums[3:]
            q = algorithm.regression.bounds(k)[0]
            gram = gram + (1 + 2 * q) * np.eye(2)
            theta, inverse = np.linalg.solve(gram, vector), np.linalg.inv(gram)
            width = float(algorithm.regression.radius(np.array([np.linalg.slogdet(gram)[1]]), k)[0]) * algorithm.beta_scale
    return np.array(actions)


def test_a_naive_copy_agrees():
    """Mean rewards of 300 runs each on one table differ by less than 5 standard errors: false alarm 6e-7."""
    horizon, n_reps = 120, 300
    stream, means = table(horizon, 3)
    algorithm = built(horizon, 10, ApproxDP(30.0, 1e-2), beta_scale=0.1)
    log, rng = ActionLog(), np.random.default_rng(4)
    run(algorithm, stream, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(5))), observers=[log])
    copies = [naive(stream, algorithm, rng) for _ in range(n_reps)]
    assert_as_good(means, np.array(log.actions).T, copies, most_spread=0.01, deviations=10)


def test_encoded_sums_are_right_within_their_rounding():
    """5,000 users: each entry's error is a sum of as many centered ones, each within a step: 6 deviations at most."""
    encoding, rng = Encoding(3, 0.5, 8), np.random.default_rng(1)
    x = rng.normal(size=(5000, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    statistic = JointGaussian.statistic(x, rng.choice([-0.5, 0.5], size=5000))
    counts = encoding.encode(statistic, np.arange(5000))
    assert counts.min() >= 0
    assert counts.max() <= encoding.most
    found = encoding.decode(counts.sum(axis=0)[None], 5000)[0]
    error = found - statistic.sum(axis=0)
    assert np.abs(error).max() < 6 * math.sqrt(5000) / 2 * math.sqrt(2) / 8
    assert np.abs(error).max() > 0
    assert (found[:, :3] == found[:, :3].T).all()


def test_no_pair_of_records_moves_the_counts_by_more_than_the_sensitivity():
    """20,000 random pairs, and the least favorable one, which comes within the rounding."""
    encoding, rng = Encoding(2, 0.5, 32), np.random.default_rng(2)
    angle, y = rng.uniform(0, 2 * math.pi, size=(2, 20_000)), rng.choice([-0.5, 0.5], size=(2, 20_000))
    # <x, x'> = Y^2 with opposite rewards
    angle[:, 0], y[:, 0] = (0.0, math.acos(0.25)), (0.5, -0.5)
    user = np.zeros(20_000, dtype=int)
    counts = [
        encoding.encode(JointGaussian.statistic(np.stack([np.cos(a), np.sin(a)], axis=1), b), user)
        for a, b in zip(angle, y, strict=True)
    ]
    moved = np.linalg.norm(counts[0] - counts[1], axis=1)
    assert moved.max() <= encoding.sensitivity_l2
    assert moved[0] > encoding.sensitivity_l2 - 2 * math.sqrt(5)
    assert np.abs(counts[0] - counts[1]).max() <= encoding.most


def test_a_record_pays_for_one_batch():
    stream, _ = table(40, 1)
    ledger = OwnNoiseLedger([1, 2])
    ledger.trust = TrustModel.SHUFFLE
    run(built(40, 8), stream, ledger)
    assert list(ledger.worst_record().values()) == [1]
    epsilon = accounted_as(Quantity("epsilon", PROMISE.delta), tuple(ledger.worst_record().items()))
    assert 0.95 * PROMISE.epsilon < epsilon <= PROMISE.epsilon
    assert ledger.curve().trust is TrustModel.SHUFFLE


def dropouts(stream, batch, share):
    """The form whose bits are made for those who answer, and the transcript of a run of it."""
    twin = replace(batched_lin_ucb(4, 2, stream.n_users, UNIT, batch=batch), dropout=share)
    algorithm, ledger = shuffled(twin, PROMISE, 16), OwnNoiseLedger([1])
    ledger.trust = TrustModel.SHUFFLE
    return algorithm, ledger


def test_bits_of_those_who_answer_hide_a_record_and_those_of_the_silent_do_not_count():
    """With bits for the whole batch, those who answer add too few: their claim is false."""
    stream, _ = table(40, 1)
    algorithm, ledger = dropouts(stream, 20, 0.25)
    assert algorithm.sums.mechanism.n_bits % algorithm.n_answers == 0 == algorithm.n_answers - 15
    run(algorithm, stream, ledger)
    epsilon = accounted_as(Quantity("epsilon", PROMISE.delta), tuple(ledger.worst_record().items()))
    assert 0.95 * PROMISE.epsilon < epsilon <= PROMISE.epsilon
    for_all = built(40, 20).sums.mechanism
    too_few = replace(for_all, n_bits=for_all.n_bits // 20 * 15)
    assert accounted_as(Quantity("epsilon", PROMISE.delta), ((too_few.event, 1),)) > 1.1 * PROMISE.epsilon


def test_silent_users_leave_no_trace():
    """Two of ten, the fifth and the tenth: the twin's sums are those of the others; in whole numbers of ones, too."""
    stream, _ = table(20, 2)
    twin = replace(batched_lin_ucb(4, 2, 20, UNIT, batch=10), dropout=0.29)
    answers = [t for t in range(20) if t % 10 not in (4, 9)]
    log, ledger = ActionLog(), LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(1)), keeps_transcript=True)
    run(twin, stream, ledger, observers=[log])
    expected = np.zeros((2, 3))
    for t in answers[:8]:
        a = int(log.actions[t][0])
        x, y = stream.features[t, a], stream.rewards[t, a] - 0.5
        expected += np.outer(x, [*x, y])
    np.testing.assert_allclose(ledger.transcript[0].output[0], expected, atol=1e-12)
    changed = stream.rewards.copy()
    changed[[4, 9, 14, 19]] = 1 - changed[[4, 9, 14, 19]]
    outputs = []
    for rewards in (stream.rewards, changed):
        algorithm, _ = dropouts(stream, 10, 0.2)
        own = LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(1)), keeps_transcript=True)
        run(algorithm, ContextTable(stream.features, rewards, UNIT), own)
        outputs.append([release.output for release in own.transcript])
    assert all(np.array_equal(*pair) for pair in zip(*outputs, strict=True))
    with pytest.raises(ValueError, match="no dropouts"):
        twin.regret_bound(20)
    with pytest.raises(ValueError, match="dropout must be at least 0 and below 1, got 1"):
        replace(twin, dropout=1.0)


def test_a_last_batch_that_is_not_full_is_not_released():
    stream, _ = table(23, 1)
    ledger = LiveLedger(2, ReproducibleNoise(np.random.SeedSequence(1)), keeps_transcript=True)
    run(built(23, 10), stream, ledger)
    assert [(int(r.records.start[0]), int(r.records.stop[0])) for r in ledger.transcript] == [(0, 10), (10, 20)]


def test_batches_of_one_without_noise_are_linucb():
    stream, _ = table(60, 2)
    logs = [ActionLog(), ActionLog()]
    for algorithm, log in zip(
        (batched_lin_ucb(4, 2, 60, UNIT, batch=1), LinUCBSettings(4, 2, 60, UNIT).twin()), logs, strict=True
    ):
        run(algorithm, stream, LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(1))), observers=[log])
    assert np.array_equal(logs[0].actions, logs[1].actions)


def test_the_noise_stays_below_its_bounds():
    """2,000 draws of the noise of three batches: each bound fails with probability 0.4 / 16 at most."""
    algorithm = built(80, 20, failure=0.4)
    matrix, vector = algorithm.regression.bounds(3)
    rng, encoding, mechanism = np.random.default_rng(3), algorithm.encoding, algorithm.sums.mechanism
    counts = rng.binomial(3 * mechanism.n_bits, 0.5, size=(2000, 5)) - 3 * mechanism.n_bits / 2
    noise = encoding.decode(counts, 0)
    spectral = np.abs(np.linalg.eigvalsh(noise[:, :, :2])).max(axis=1)
    assert (spectral > matrix).mean() < 0.025
    assert (np.linalg.norm(noise[:, :, 2], axis=1) > vector).mean() < 0.025
    assert spectral.max() > 0.5 * matrix, "the bound is not idle"


def test_the_bound_holds():
    """Failure 0.01, eight runs at little privacy; one of B = 1 without noise by hand."""
    entry, horizon, n_reps = find("linucb-batched shuffle"), 2000, 8
    problem = Problem(5, UNIT, horizon, dimension=2)
    settings = entry.settings(problem, "tight", ApproxDP(50.0, 1e-2), failure=0.01, batch=50)
    env = SphereContexts([0.3, -0.3], 5, horizon, np.random.SeedSequence(1), LinearLink(UNIT))
    curve = ContextualRegretCurve(env, np.array([horizon]), n_reps)
    run(entry.build(settings), env, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(2))), observers=[curve])
    found = entry.bound(settings, None, np.array([1, horizon])).values
    assert found[0] == 1
    assert curve.curve.max() < found[1]
    twin = batched_lin_ucb(5, 2, 10**6, UNIT, batch=100, failure=0.01)
    growth = 2 * math.log1p(10**6 / 2)
    width = 0.5 * math.sqrt(2 * math.log(200) + 2 * math.log(10**6 / 2 + 1)) + 0.5
    by_hand = 100 * (2 + growth / math.log(2)) + 2 * math.sqrt(2) * width * math.sqrt(10**6 * growth / math.log(2))
    assert float(twin.regret_bound(10**6)) == pytest.approx(by_hand)


@pytest.mark.parametrize(("change", "message"), [({"batch": 0}, "batch must"), ({"ridge": 0.0}, "ridge must be")])
def test_refusals(change, message):
    with pytest.raises(ValueError, match=message):
        batched_lin_ucb(2, 2, 10, UNIT, **change)
