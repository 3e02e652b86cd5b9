"""GP-UCB: the worst record is the theorem's, batches are runs, vanishing noise leaves the twin, and the twin learns."""

from __future__ import annotations

import dataclasses
import math
from itertools import product

import numpy as np
import pytest
from context_tables import context_table
from doubles import ConstantNoise, OwnNoiseLedger

from bandana.algorithms.bandits.kernel.gp_ucb import READINGS, GPUCBSettings
from bandana.algorithms.catalog import find
from bandana.algorithms.epochs import GrowingEpochs, _Later
from bandana.algorithms.observers import ActionLog, ContextualRegretCurve
from bandana.algorithms.problem import Problem
from bandana.algorithms.protocol import Record
from bandana.algorithms.rkhs.features import feature_map
from bandana.algorithms.rkhs.kernels import Additive, Linear, SquaredExponential
from bandana.algorithms.run import run
from bandana.audits.searches.deterministic import search
from bandana.privacy_core import (
    ApproxDP,
    BudgetExceeded,
    Carried,
    FactorizedSum,
    GaussianDP,
    Interval,
    LiveLedger,
    NoPrivacy,
    Relation,
    ReproducibleNoise,
    ScriptedLedger,
    Span,
    TreeSum,
    TrustModel,
)

SYMMETRIC, UNIT = Interval(-1.0, 1.0), Interval(0.0, 1.0)
N_ACTIONS, HORIZON = 4, 60
KERNEL = SquaredExponential(0.5)
MAPS = {m: feature_map(KERNEL, 2, m) for m in (4, 9, 36)}  # by loops, by loops, by LAPACK
TABLES = {span: context_table(HORIZON, N_ACTIONS, 2, span) for span in (SYMMETRIC, UNIT)}
LIMIT = GaussianDP.from_epsilon_delta(1.0, 1e-5).mu
PRIVATE = {
    f"{trust} {calibration}": (trust, calibration)
    for trust, calibrations in (
        (TrustModel.JOINT, ("printed", "tree", "tight")),
        (TrustModel.LOCAL, ("printed", "tight")),
    )
    for calibration in calibrations
}
each = pytest.mark.parametrize("name", list(PRIVATE))


def built(name, span=SYMMETRIC, m=9, horizon=HORIZON, **more):
    return GPUCBSettings(N_ACTIONS, MAPS[m], horizon, span, **more).private(ApproxDP(1.0, 1e-5), *PRIVATE[name])


def played(algorithm, ledger, span=SYMMETRIC):
    log = ActionLog()
    sensitive, released = run(algorithm, TABLES[span], ledger, observers=[log])
    return np.array(log.actions).T, sensitive, released


@each
@pytest.mark.parametrize("span", [SYMMETRIC, UNIT], ids=str)
def test_the_worst_record_pays_what_the_noise_says(name, span):
    """A tree of 60 steps has 6 nodes above the first record, which one JointGaussian release each touches."""
    algorithm = built(name, span)
    ledger = OwnNoiseLedger([1, 2, 3])
    played(algorithm, ledger, span)
    nodes = 6 if ("printed" in name and "joint" in name) or "tree" in name else 1
    assert list(ledger.worst_record().values()) == [nodes]
    half, scale = span.width / 2, algorithm.sums.mechanism.scale
    found = ledger.guarantee().mu
    if name != "local printed":
        assert found == pytest.approx(math.sqrt(nodes) * (1 + half**2) / scale, rel=1e-9)
    assert found <= LIMIT * (1 + 1e-12)
    if "printed" not in name:
        assert found == pytest.approx(LIMIT, rel=1e-9)
    assert ledger.guarantee().relation is Relation.REPLACE_RECORD


@each
@pytest.mark.parametrize("m", [4, 36])
def test_a_replicate_of_a_batch_is_its_lone_run(name, m):
    algorithm = built(name, m=m)
    actions, _, released = played(algorithm, OwnNoiseLedger([5, 6, 7]))
    for row, seed in enumerate([5, 6, 7]):
        alone, _, one = played(algorithm, OwnNoiseLedger([seed]))
        assert np.array_equal(alone[0], actions[row])
        np.testing.assert_allclose(one.estimate[0], released.estimate[row], rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(one.width[0], released.width[row], rtol=1e-10)


@pytest.mark.parametrize("m", [9, 36])
def test_without_noise_they_are_their_twin(m):
    twin, *_ = played(GPUCBSettings(N_ACTIONS, MAPS[m], HORIZON, UNIT).twin(), OwnNoiseLedger([0]), UNIT)
    assert len(set(twin[0].tolist())) == N_ACTIONS
    for name in PRIVATE:
        close = built(name, UNIT, m)
        sums = dataclasses.replace(close.sums, mechanism=close.sums.mechanism.scaled(1e-12))
        quiet = dataclasses.replace(close, sums=sums, deviation=None if close.deviation is None else 0.0)
        assert np.array_equal(twin, played(quiet, OwnNoiseLedger([0]), UNIT)[0]), name


def test_the_twin_has_no_privacy_and_says_so():
    ledger = LiveLedger(1, ConstantNoise())
    played(GPUCBSettings(N_ACTIONS, MAPS[9], HORIZON, SYMMETRIC).twin(), ledger)
    assert isinstance(ledger.guarantee(), NoPrivacy)


@each
def test_the_neighbor_script_acts_alike(name):
    """Given what was released, a changed record changes nothing that others see."""
    algorithm, table = built(name), TABLES[SYMMETRIC]
    neighbor = table.replaced(9, np.full(N_ACTIONS, -1.0), covariates=-table.features[9])
    live = LiveLedger(8, ReproducibleNoise(np.random.SeedSequence(3)), keeps_transcript=True)
    first, second = ActionLog(), ActionLog()
    run(algorithm, table, live, observers=[first])
    scripted = ScriptedLedger(8, live.transcript)
    run(algorithm, neighbor, scripted, observers=[second])
    scripted.finish()
    assert (scripted.diverged < 0).all()
    mine, theirs = np.array(first.actions), np.array(second.actions)
    assert np.array_equal(np.delete(mine, 9, axis=0), np.delete(theirs, 9, axis=0))
    assert (scripted.log_ratio != 0).all()


def test_the_budget_refuses_before_noise_is_drawn():
    noise = ConstantNoise()
    ledger = LiveLedger(1, noise, budget=GaussianDP(0.99 * LIMIT, relation=Relation.REPLACE_RECORD))
    with pytest.raises(BudgetExceeded):
        played(built("joint tight"), ledger)
    assert noise.calls == 0


# --- the catalog's lines ---------------------------------------------------------------------------------------------

PROBLEM = Problem(3, UNIT, 64, dimension=2, kernel=KERNEL)
JOINT = find("gp-ucb joint")


def test_readings_are_chosen_by_name():
    level = ApproxDP(1.0, 1e-5)
    scales = [
        JOINT.build(JOINT.settings(PROBLEM, "printed", level, reading=name, n_features=4)).sums.mechanism.scale
        for name in READINGS
    ]
    default = JOINT.build(JOINT.settings(PROBLEM, "printed", level, n_features=4))
    assert default.sums.mechanism.scale == scales[4]
    assert len(set(scales)) == 4, "at epsilon = 1 the fourth and the fifth agree"
    with pytest.raises(ValueError, match=r"reading must be one of lemma-2, sketch, .* got 'lemma-3'"):
        JOINT.settings(PROBLEM, "printed", level, reading="lemma-3")


def test_where_a_reading_is_false_the_ledger_shows_more_than_the_claim():
    settings = JOINT.settings(PROBLEM, "printed", ApproxDP(0.01, 1e-5), reading="lemma-12", n_features=4)
    ledger = OwnNoiseLedger([1])
    run(JOINT.build(settings), context_table(64, 3, 2, UNIT), ledger)
    claim = JOINT.promise(settings)
    assert claim.theorem == "Lemma 2"
    assert claim.stated.epsilon == 0.01
    assert claim.trust is TrustModel.JOINT
    assert ledger.guarantee().epsilon(1e-5) > 100 * claim.stated.epsilon


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (PROBLEM, 4),
        (dataclasses.replace(PROBLEM, kernel=Linear(3.0), dimension=6), 6),
        (dataclasses.replace(PROBLEM, kernel=Additive(KERNEL, ((0,), (1,), (2,), (3,))), dimension=4), 8),
    ],
)
def test_audits_play_with_few_features(problem, expected):
    settings = JOINT.settings(problem, "tight", ApproxDP(1.0, 1e-5))
    assert settings.parameters["n_features"] == 100
    audited = JOINT.build(JOINT.in_audit(settings))
    assert audited.n_features == expected
    assert audited.sums.mechanism == JOINT.build(settings).sums.mechanism
    few = JOINT.in_audit(settings.with_parameters(n_features=expected))
    assert few.parameters["n_features"] == expected


# --- an unknown horizon ----------------------------------------------------------------------------------------------


def doubling(name, m=4, first=8):
    """Built once: the epochs of a run are those of a lone algorithm's."""
    return GrowingEpochs(lambda rounds: built(name, m=m, horizon=rounds), first, growth=2)


def test_epochs_double():
    algorithm = doubling("joint tight", first=3)
    assert [algorithm.epoch_of(t) for t in (0, 2, 3, 8, 9, 20, 21)] == [0, 0, 1, 1, 2, 2, 3]
    assert [algorithm.start_of(e) for e in range(4)] == [0, 3, 9, 21]
    assert (algorithm.n_actions, algorithm.reward_range, algorithm.context_dimension) == (4, SYMMETRIC, 2)


@each
def test_a_record_pays_in_one_epoch(name):
    """60 rounds in epochs of 8, 16, 32 and 4 of 64: each is calibrated for its own length, the most costly one counts."""
    algorithm = doubling(name)
    ledger = OwnNoiseLedger([1, 2], keeps_transcript=True)
    played(algorithm, ledger)
    epoch_of = [
        (algorithm.epoch_of(int(e.records.start[0])), algorithm.epoch_of(int(e.records.stop[0]) - 1))
        for e in ledger.transcript
    ]
    assert all(first == last for first, last in epoch_of), "no release reads records of two epochs"
    assert [t for t, e in enumerate(epoch_of) if t == 0 or e != epoch_of[t - 1]] == [0, 8, 24, 56]
    found = ledger.guarantee().mu
    if "printed" in name:
        assert found < LIMIT
    else:
        assert found == pytest.approx(LIMIT, rel=1e-9)


def test_an_epoch_is_a_run_of_its_own():
    algorithm = doubling("joint tight")
    whole = OwnNoiseLedger([1, 2], keeps_transcript=True)
    actions, _, released = played(algorithm, whole)
    assert released.clock.tolist() == [HORIZON, HORIZON]
    table = TABLES[SYMMETRIC]
    second = type(table)(table.features[8:24], table.rewards[8:24], SYMMETRIC)
    outputs = iter([e.output for e in whole.transcript[8:24]])

    class Again(OwnNoiseLedger):
        def release(self, mechanism, value, *, records, reps=None, carried=None):
            super().release(mechanism, value, records=records, reps=reps, carried=carried)
            return next(outputs)

    log = ActionLog()
    _, model = run(built("joint tight", m=4, horizon=16), second, Again([0, 0]), observers=[log])
    assert np.array_equal(np.array(log.actions).T, actions[:, 8:24])
    assert model.clock.tolist() == [16, 16]


def test_the_audit_without_statistics_finds_nothing_in_epochs():
    claim = GaussianDP(LIMIT * (1 + 1e-9))
    assert search(doubling("joint tight", first=2), SYMMETRIC, claim, 60, private_records=True) is None
    assert search(doubling("joint tree", first=2), SYMMETRIC, claim, 60, private_records=True) is None


def test_epochs_want_one_round_at_a_time():
    algorithm = doubling("joint tight")
    sensitive, released = algorithm.init(1)
    zero = np.zeros(1, dtype=np.int64)
    record = Record(zero, zero + 2, np.zeros((1, 4, 2)), np.zeros((1, 1), dtype=np.int64), np.ones((1, 1)))
    with pytest.raises(ValueError, match="one round at a time"):
        algorithm.absorb(sensitive, released, record, OwnNoiseLedger([0]))
    with pytest.raises(ValueError, match="first must be"):
        doubling("joint tight", first=0)


# --- regret ----------------------------------------------------------------------------------------------------------


class Bumps:
    """Users bring 10 points of the square; the mean reward is 0.9 near (0.4, 0.4) and falls to 0.1 far from it."""

    n_actions, context_dimension, reward_range = 10, 2, UNIT

    def __init__(self, n_users, seed):
        self.n_users, self._generator = n_users, np.random.default_rng(seed)

    def clipped(self, reward_range):
        return self

    def contexts(self, user):
        self._points = self._generator.uniform(-1, 1, (len(user), self.n_actions, 2))
        return self._points

    def mean_rewards(self, user, contexts):
        return 0.1 + 0.8 * np.exp(-((contexts - 0.4) ** 2).sum(axis=2) / 0.5)

    def respond(self, user, n_records, actions):
        means = self.mean_rewards(user, self._points)[np.arange(len(actions)), actions]
        return (self._generator.random(len(actions)) < means).astype(float)


# --- mixtures of calibrations ----------------------------------------------------------------------------------------

MIXTURES = [
    (name, dict(zip(options, choice, strict=True)))
    for name, options in ((f"gp-ucb {trust}", find(f"gp-ucb {trust}").part_options) for trust in ("joint", "local"))
    for choice in product(*options.values())
]
each_mixture = pytest.mark.parametrize(
    ("name", "parts"), MIXTURES, ids=lambda value: value if isinstance(value, str) else "-".join(value.values())
)


def mixed(name, parts, epsilon=1.0, horizon=HORIZON, **more):
    entry = find(name)
    problem = Problem(N_ACTIONS, SYMMETRIC, horizon, dimension=2, kernel=KERNEL)
    settings = entry.settings(problem, parts, ApproxDP(epsilon, 1e-5), n_features=9, **more)
    return entry.build(settings), entry.promise(settings).gaussian


@each_mixture
def test_every_mixture_keeps_the_claim(name, parts):
    algorithm, claim = mixed(name, parts)
    ledger = OwnNoiseLedger([1, 2])
    played(algorithm, ledger)
    spent = ledger.guarantee().mu
    assert spent <= claim.mu * (1 + 1e-9)
    assert (spent > 0.99 * claim.mu) == (parts["noise"] == "tight")
    if parts["noise"] == "printed":
        printed, _ = mixed(name, "printed")
        other = OwnNoiseLedger([1, 2])
        played(printed, other)
        assert spent == pytest.approx(other.guarantee().mu, rel=1e-9), "another sum spends the same budget"


@pytest.mark.parametrize(("name", "parts"), [mixture for mixture in MIXTURES if len(set(mixture[1].values())) > 1][::2])
def test_the_audit_without_statistics_finds_nothing_in_mixtures(name, parts):
    algorithm, claim = mixed(name, parts)
    assert search(algorithm, SYMMETRIC, GaussianDP(claim.mu * (1 + 1e-9)), 15, private_records=True) is None


@each_mixture
def test_every_width_covers_the_noise(name, parts):
    """The largest norms of 200 runs' noise, in all rounds; each bound fails with probability 1e-3 at most."""
    algorithm, _ = mixed(name, parts, failure=1e-3)
    sums, n_reps = algorithm.sums, 200
    state, ledger = sums.init(n_reps, (9, 10)), LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(4)))
    one = np.ones(n_reps, dtype=np.int64)
    for step in range(1, HORIZON + 1):
        state, noise, _ = sums.close(sums.add(state, np.zeros((n_reps, 9, 10)), one), ledger)
        matrix, vector = algorithm.regression.bounds(step)
        assert np.linalg.norm(noise[:, :, :9], 2, axis=(1, 2)).max() < matrix
        assert np.linalg.norm(noise[:, :, 9], axis=1).max() < vector


def test_each_part_changes_one_thing():
    kinds = {}
    for name, parts in MIXTURES:
        algorithm, _ = mixed(name, parts)
        kinds[name, *parts.values()] = algorithm
    joint = {key[1:]: algorithm for key, algorithm in kinds.items() if key[0] == "gp-ucb joint"}
    for noise, total, width in joint:
        algorithm = joint[noise, total, width]
        assert isinstance(algorithm.sums, TreeSum if total == "tree" else FactorizedSum)
        assert (algorithm.deviation is None) == (width == "exact")
        assert algorithm.sums == joint[noise, total, "exact"].sums
    matrix, tree = joint["printed", "tree", "printed"].matrix_norm, joint["tight", "tree", "printed"]
    assert tree.matrix_norm == matrix
    assert tree.deviation == pytest.approx(tree.sums.mechanism.scale * math.sqrt(1 + math.ceil(math.log2(HORIZON))))


def regret(calibration=None, horizon=1000, n_reps=6):
    env = Bumps(horizon, 1)
    curve = ContextualRegretCurve(env, np.array([horizon // 4, horizon]), n_reps)
    settings = GPUCBSettings(10, MAPS[36], horizon, UNIT, norm_bound=1.0, beta_scale=0.2)
    promise = ApproxDP(10.0, 1e-5)
    algorithm = settings.private(promise, TrustModel.JOINT, calibration) if calibration else settings.twin()
    run(algorithm, env, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(2))), observers=[curve])
    return curve.curve.mean(axis=0)


def test_the_twins_regret_is_sublinear():
    quarter, full = regret()
    assert full < 2.5 * quarter, "four times as many rounds: sqrt(T) doubles it"
    assert full < 0.15 * uniform(1000)


def uniform(horizon):
    """What uniform play loses: 0.36 a round."""
    env = Bumps(4000, 3)
    means = env.mean_rewards(None, env.contexts(np.zeros(4000)))
    return horizon * float((means.max(axis=1) - means.mean(axis=1)).mean())


def test_less_noise_is_less_regret():
    twin = regret()[1]
    assert 1.2 * twin < regret("tight")[1] < 0.8 * regret("printed")[1]


def test_a_ledger_of_an_epoch_counts_on_from_its_first_record():
    class Heard:
        n_reps = 1

        def release(self, mechanism, value, **said):
            return said

    carried = Carried("sums", np.array([1, 3]))
    said = _Later(Heard(), 5).release(None, None, records=Span(np.array([2, 4]), np.array([3, 5])), carried=carried)
    assert (said["records"].start.tolist(), said["records"].stop.tolist()) == ([7, 9], [8, 10])
    assert (said["carried"].label, said["carried"].start.tolist(), said.get("reps")) == ("sums", [6, 8], None)
