"""Audits of algorithms that decide from contexts: pairs, replays, searches, and planted faults."""

from __future__ import annotations

import json

import numpy as np
import pytest
from nightly import first

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCBSettings
from bandana.algorithms.bandits.contextual.oful import RarelySwitchingOFUL, adar_oful, oful
from bandana.algorithms.catalog import CATALOG, find
from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.tables import ContextTable, RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.problem import CONTEXTUAL
from bandana.audits.audit import audit
from bandana.audits.faults.contextual import CONTEXTS_NOT_CLIPPED, CONTEXTUAL_CONTROLS
from bandana.audits.faults.fault import planted_as
from bandana.audits.neighbors import worst_pair
from bandana.audits.neighbors.pairs import Pair, actions_differ, canary_pairs
from bandana.audits.outcome import SAMPLING, Effort
from bandana.audits.own.rescaled import rescaled
from bandana.audits.replays.measure import measure_one_run
from bandana.audits.replays.replay import replay
from bandana.audits.searches import noise
from bandana.audits.searches.counterexample import SENSITIVITY, SEQUENCE
from bandana.audits.searches.deterministic import examine_pair, search
from bandana.audits.searches.request import Request
from bandana.audits.subjects import subjects
from bandana.audits.trial import Trial
from bandana.privacy_core import ApproxDP, GaussianDP, Interval, JointGaussian, Relation, RenyiDP, TrustModel

SYMMETRIC, UNIT = Interval(-1.0, 1.0), Interval(0.0, 1.0)
N_ACTIONS, DIMENSION, HORIZON = 3, 3, 24
SHAPE = (N_ACTIONS, DIMENSION, HORIZON)
EPSILON = 4.377  # (4.377, 1e-5)-DP is 1-GDP for Gaussian noise


def context_table(span, n_users=HORIZON):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((n_users, N_ACTIONS, DIMENSION))
    features /= np.linalg.norm(features, axis=2, keepdims=True)
    return ContextTable(features, span.low + span.width * rng.integers(0, 2, (n_users, N_ACTIONS)), span)


OFUL = {calibration: adar_oful(*SHAPE, 2.0, 1.0, SYMMETRIC, calibration) for calibration in ("printed", "tight")}
PRIVATE = {
    "joint": LinUCBSettings(*SHAPE, UNIT).private(ApproxDP(EPSILON, 1e-5), TrustModel.JOINT, "tight"),
    "joint tree": LinUCBSettings(*SHAPE, UNIT).private(ApproxDP(EPSILON, 1e-5), TrustModel.JOINT, "tree"),
    "local": LinUCBSettings(*SHAPE, UNIT).private(ApproxDP(EPSILON, 1e-5), TrustModel.LOCAL, "tight"),
}


def test_canaries_keep_public_contexts_and_change_private_ones():
    table = context_table(UNIT)
    for pair in canary_pairs(table, (0, 5)):
        assert np.array_equal(pair.data.features, pair.neighbor.features)
        assert pair.hidden_record == -1
    private = canary_pairs(table, (0, 5), private_records=True)
    moved = [pair for pair in private if pair.hidden_record >= 0]
    assert [pair.hidden_record for pair in moved] == [0, 0]
    for pair in moved:
        others = np.arange(HORIZON) != 0
        assert np.array_equal(pair.data.features[others], pair.neighbor.features[others])
        assert np.array_equal(pair.data.rewards[others], pair.neighbor.rewards[others])
    plain = RewardTable(table.rewards, UNIT)
    assert len(canary_pairs(plain, (0, 5), private_records=True)) == len(canary_pairs(plain, (0, 5)))
    assert canary_pairs(plain, (0,))[0].hidden_record == -1


@pytest.mark.parametrize("span", [UNIT, SYMMETRIC, Interval(-0.25, 0.25)], ids=str)
@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_some_canary_reaches_the_sensitivity_of_the_joint_statistic(span, ratio):
    """The largest change over the canaries, contexts that stay included, is the closed form of `JointGaussian`."""
    half = span.width / 2
    mechanism = JointGaussian(1.0, half, 1.0, diagonal_ratio=ratio)
    table, reached = context_table(span), []
    changes = table.changes()
    for change in changes:
        assert all((own == own[0]).all() for own in map(table.covariates_of, change.covariates))
    pairs = [(*map(np.array, c.covariates), c.after > c.before) for c in changes]
    for x, other, moves in [*pairs, (np.eye(3)[0], np.eye(3)[0], True)]:
        one, two = (
            JointGaussian.statistic(v[None], np.array([y])) for v, y in ((x, -half), (other, half if moves else -half))
        )
        reached.append(float(mechanism.change(one, two)[0]))
    assert max(reached) == pytest.approx(mechanism.sensitivity, rel=1e-9)


def test_contexts_of_one_dimension_cannot_turn():
    assert ContextTable(np.ones((2, 2, 1)), np.zeros((2, 2)), UNIT).changes() == []


def test_the_canarys_own_action_does_not_count_where_its_contexts_differ():
    first, second = ActionLog(), ActionLog()
    for log, played in ((first, [0, 1, 0]), (second, [0, 0, 0])):
        for user, action in enumerate(played):
            log.user.append(np.full(2, user))
            log.n_records.append(np.ones(2, dtype=np.int64))
            log.actions.append(np.full(2, action))
    assert actions_differ(first, second).tolist() == [True, True]
    assert actions_differ(first, second, 1).tolist() == [False, False]
    assert actions_differ(first, second, np.array([1, -1])).tolist() == [False, True]
    assert actions_differ(first, second, 2).tolist() == [True, True]


@pytest.mark.parametrize("calibration", first(1, ["tight", "printed"]))
def test_the_likelihood_ratio_of_oful_is_that_of_its_claim(calibration):
    pair = canary_pairs(context_table(SYMMETRIC), (0,))[0]
    sides = [replay(OFUL[calibration], pair, bool(s), 6000, np.random.SeedSequence(s)) for s in (0, 1)]
    gap = sides[1].log_ratio.mean() - sides[0].log_ratio.mean()
    # The first round's record is in every row of the factorized sum up to the last update: nearly all of mu^2 = 1.
    # Each mean has deviation at most 1/sqrt(6000): six of them, twice, is 0.16.
    assert 0.75 < gap < 1.16
    assert not np.isinf(sides[0].log_ratio).any()


@pytest.mark.parametrize("name", list(PRIVATE))
def test_private_records_can_be_replayed(name):
    algorithm, table = PRIVATE[name], context_table(UNIT)
    for pair in canary_pairs(table, (0,), private_records=True):
        seen = replay(algorithm, pair, False, 1000, np.random.SeedSequence(1))
        assert np.isfinite(seen.log_ratio).all()
        assert (seen.log_ratio != 0).all()
        # A message of its own under local privacy; under joint privacy the first record's own release is one of all.
        assert ((seen.report_log_ratio == seen.log_ratio).all()) == (name == "local")


@pytest.mark.parametrize("name", first(1, ["local", "joint", "joint tree"]))
def test_the_worst_pair_reaches_the_claim(name):
    found = worst_pair.find(PRIVATE[name], context_table(UNIT), (0, 5), 0, private_records=True)
    assert found.mu_analytic == pytest.approx(1.0, abs=1e-3)
    assert found.pair.hidden_record == found.pair.record
    assert examine_pair(PRIVATE[name], found.pair, GaussianDP(1.001), 0) is None
    public = worst_pair.find(PRIVATE[name], context_table(UNIT), (0, 5), 0)
    assert public.mu_analytic == pytest.approx(0.8, abs=1e-3), "rewards alone: 2 Y / (1 + Y^2) at Y = 1/2"
    assert public.pair.hidden_record == -1


def test_the_worst_pair_of_oful():
    for algorithm, least in ((OFUL["printed"], 0.999), (OFUL["tight"], 0.9)):
        found = worst_pair.find(algorithm, context_table(SYMMETRIC), (0,), 0)
        assert least < found.mu_analytic <= 1 + 1e-9


def test_the_audit_without_statistics_finds_nothing_in_another_range():
    """The catalog's contract has the unit range; there, too, are the planted faults."""
    assert search(OFUL["tight"], SYMMETRIC, GaussianDP(1.001), 100) is None
    assert noise.examine(OFUL["tight"], context_table(SYMMETRIC)) is None


def test_users_may_bring_more_actions_than_there_are_rounds():
    """No table is longer than the sums were built for: each action need not be played once."""
    algorithm = LinUCBSettings(7, DIMENSION, 4, UNIT).private(ApproxDP(EPSILON, 1e-5), TrustModel.JOINT, "tight")
    assert search(algorithm, UNIT, None, max_examples=20, max_rounds=4, private_records=True) is None


def test_public_contexts_that_are_taken_for_private_are_a_counterexample():
    """AdaR-OFUL protects rewards alone: a neighbor with other contexts is told apart, and the counterexample says where."""
    found = search(OFUL["tight"], SYMMETRIC, GaussianDP(1.0), 200, private_records=True)
    assert found is not None
    assert found.case.replaced_covariates is not None
    assert "and become all [" in "\n".join(found.lines())
    described = json.loads(json.dumps(found.describe()))["case"]
    assert np.array(described["covariates"]).shape == (described["n_rounds"], N_ACTIONS, DIMENSION)
    assert np.array(described["replaced_covariates"]).shape == (N_ACTIONS, DIMENSION)


def test_a_counterexample_without_contexts_is_described_as_before():
    found = search(oful(*SHAPE, SYMMETRIC), SYMMETRIC, GaussianDP(1.0), 20)
    assert found is not None
    assert found.case.covariates is not None
    assert "its contexts are" in found.lines()[1]
    plain = canary_pairs(RewardTable(np.zeros((4, 2)), UNIT), (0,))[0]
    assert isinstance(plain, Pair)


def test_algorithms_behind_other_ledgers_keep_their_contexts():
    assert rescaled(OFUL["tight"], 2.0).context_dimension == DIMENSION
    pair = canary_pairs(context_table(SYMMETRIC), (0,))[0]
    weak = replay(rescaled(OFUL["printed"], 2.0), pair, True, 4000, np.random.SeedSequence(0)).log_ratio.mean()
    assert weak == pytest.approx(0.5 * 0.25, abs=6 * 0.5 / np.sqrt(4000))


def test_one_run_of_many_messages():
    """Under local privacy each message is a canary of its own: rewards alone, 2 Y / (1 + Y^2) = 0.8 of the claim at most."""
    promise = GaussianDP(1.0, trust=TrustModel.LOCAL)
    found = measure_one_run(PRIVATE["local"], context_table(UNIT), promise, Effort(1000, 0.95, 1e-5, 1, 0), 0.05)
    best = max(bound.lower for bound in found.bounds if bound.method == "one-run-sequential-mu")
    assert 0.5 < best <= 0.8


def trial(algorithm):
    return Trial(
        algorithm,
        Claim(
            RenyiDP(2.0, 1.0, relation=Relation.REPLACE_REWARD), GaussianDP(1.0, relation=Relation.REPLACE_REWARD),
            "all actions", "Theorem 9", "Azize and Basu", Relation.REPLACE_REWARD, TrustModel.CENTRAL, "one reward",
        ),
        context_table(SYMMETRIC),
        (0,),
    )  # fmt: skip


@pytest.mark.nightly
def test_a_whole_audit():
    controls = tuple(c for c in CONTEXTUAL_CONTROLS["adar-oful"] if c.name != "noise-sqrt2")
    found = audit(trial(OFUL["printed"]), controls, Effort(4000, 0.95, 1e-5, 60, 0))
    assert str(found.verdict) == "PASS"
    assert {control.name for control in found.controls if control.is_caught} == {control.name for control in controls}
    assert {control.name for control in found.controls if SAMPLING not in control.caught_by} == {CONTEXTS_NOT_CLIPPED.name}


def test_a_fault_that_shows_outside_the_range_alone_is_promised_there():
    subject = subjects()["adar-oful tight"]()
    (fault,) = (control for control in subject.controls if control.name == "not-clipped")
    trial = subject.trial
    honest = Request(trial, Effort(1000, 0.95, 1e-5, 1, 1), 0.05)
    assert honest.shown == pytest.approx([1.0, 1.0], abs=0.05), "inside the range, and outside"
    within, beyond = Request(trial.planted(fault), honest.effort, 0.05).shown
    assert within == pytest.approx(1.0, abs=0.05)
    assert beyond > 2


def _plays_on_contexts(name):
    entry = next((entry for entry in CATALOG if entry.label == name.rpartition(" ")[0]), None)
    return entry is not None and entry.promise is not None and entry.plays_on[0] == CONTEXTUAL


LONG = [name for name in subjects() if _plays_on_contexts(name)]


@pytest.mark.parametrize("name", LONG)
def test_contexts_that_are_not_clipped_are_found_and_no_honest_algorithm_with_them(name):
    subject = subjects()[name]()
    trial = subject.trial
    assert (found := outside(trial, CONTEXTS_NOT_CLIPPED.plant(trial.algorithm))) is not None
    assert found.kind in {SENSITIVITY, SEQUENCE}
    assert max(move.times for move in found.rows if move.is_offending) > 2
    assert outside(trial, trial.algorithm) is None
    assert "contexts are all [" in "\n".join(found.lines()), "a person sees the vectors"


def test_every_algorithm_on_contexts_can_have_that_fault_and_no_other():
    assert [name for name, make in subjects().items() if CONTEXTS_NOT_CLIPPED in make().controls] == LONG
    entries = {entry.label for entry in CATALOG if entry.promise and entry.plays_on[0] == CONTEXTUAL}
    assert {find(name.rpartition(" ")[0]).label for name in LONG} == entries


def test_an_algorithm_that_refuses_long_contexts_is_searched_without_them():
    class Refusing(RarelySwitchingOFUL):
        def act(self, released, context, step):
            if (np.linalg.norm(context, axis=2) > 1.1).any():
                raise ValueError("contexts must have a norm of at most 1")
            return super().act(released, context, step)

    subject = subjects()["adar-oful tight"]()
    assert outside(subject.trial, planted_as(Refusing)(subject.trial.algorithm)) is None
    faulty = planted_as(Refusing)(CONTEXTS_NOT_CLIPPED.plant(subject.trial.algorithm))
    assert outside(subject.trial, faulty) is None


def outside(trial, algorithm):
    """What the search finds after a single case of its own."""
    return search(algorithm, UNIT, None, 1, HORIZON, False, trial.private_records)
