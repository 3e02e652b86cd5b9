"""Audits of promises to users with several records: neighbors differ in all of them, and a user counted as one is caught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bandana.algorithms import catalog
from bandana.algorithms.claim import for_users, per_record
from bandana.algorithms.environments.data_sets import Change
from bandana.algorithms.environments.tables import random_table
from bandana.algorithms.problem import Problem
from bandana.audits.audit import audit
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.releases import counted_as_one_record, of_users
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.neighbors.users import find, placements, user_pairs
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING, Effort, Verdict, all_gaussian
from bandana.audits.searches.deterministic import examine_pair
from bandana.audits.seeds import derive
from bandana.audits.testbeds.blocks import RunningSumBed
from bandana.audits.testbeds.catalog import bed_of as bed_of_entry
from bandana.audits.trial import Trial
from bandana.privacy_core import (
    ApproxDP,
    ByUsers,
    Factorized,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    Interval,
    Participation,
    PureDP,
    Relation,
    RenyiDP,
    calibrate,
)
from bandana.privacy_core.accounting.accountant import accounted_mu

UNIT = Interval(0.0, 1.0)
EFFORT = Effort(replays=5_000, confidence=0.95, delta=1e-5, examples=10, seed=7)


def trial_of(label, privacy, users, rounds=32):
    """A catalog algorithm whose noise is that of the promise to users."""
    entry = catalog.find(label)
    table = random_table(rounds, 2, UNIT, 5)
    settings = entry.in_audit(entry.settings(Problem(2, UNIT, rounds), "tight", per_record(privacy, users)))
    claim = for_users(entry.promise(settings), privacy, users)
    return Trial(entry.build(settings), claim, table, entry.probes(2), users=users)


# --- promises -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("privacy", [PureDP(1.0), RenyiDP(2.0, 1.0), ApproxDP(1.0, 1e-5)], ids=str)
def test_a_promise_to_one_record_that_is_enough_for_users(privacy):
    entry = {PureDP: "adap-ucb", RenyiDP: "adar-ucb"}.get(type(privacy))
    users = Participation(4)
    lone = per_record(privacy, users)
    match privacy:
        case PureDP():
            assert lone.epsilon == 0.25
        case RenyiDP():
            assert GaussianDP.from_renyi(2.0, lone.epsilon).mu == pytest.approx(GaussianDP.from_renyi(2.0, 1.0).mu / 4)
        case ApproxDP():
            mus = [GaussianDP.from_epsilon_delta(each.epsilon, 1e-5).mu for each in (privacy, lone)]
            assert mus[0] == pytest.approx(4 * mus[1])
    if entry is not None:
        claim = trial_of(entry, privacy, users).claim
        assert claim.relation is Relation.USER
        assert claim.stated == replace(privacy, relation=Relation.USER)
        assert "up to 4 records a user" in claim.theorem


# --- neighbors ------------------------------------------------------------------------------------------------------


def test_placements_keep_the_declared_participation():
    for users in (Participation(3), Participation(3, 5), Participation(40), Participation(4, 30)):
        for records in placements(users, 32, probes=(0, 9, 31)):
            assert 1 <= len(records) <= users.most
            assert records[0] >= 0
            assert records[-1] < 32
            assert (np.diff(records) >= users.separation).all()
    assert (0, 1, 2) in placements(Participation(3), 32)
    assert (0, 15, 30) in placements(Participation(3), 32)


def test_a_pair_differs_in_all_records_of_the_user_and_in_no_other():
    table = random_table(16, 2, UNIT, 3)
    for pair in user_pairs(table, Participation(3), (4,)):
        differ = (pair.data.rewards != pair.neighbor.rewards).any(axis=1)
        assert np.flatnonzero(differ).tolist() == [pair.record, *pair.others]
        assert len(pair.others) == 2


# --- noise for users ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "calibration", "is_exact"),
    [("joint", "tight", True), ("joint", "tree", False), ("joint", "printed", False), ("local", "tight", True)],
)
@pytest.mark.parametrize("users", [Participation(3), Participation(3, 5)], ids=str)
def test_sums_whose_structure_is_known_need_less_than_m_times_the_noise(model, calibration, is_exact, users):
    entry, privacy, rounds = catalog.find("linucb", model, "approximate"), ApproxDP(1.0, 1e-5), 32
    problem, table = bed_of_entry(entry, rounds, seed=1)
    settings = entry.settings(problem, calibration, privacy)
    times = entry.times_for(settings, users)
    assert 1 < times < 3
    if model == "local":
        assert times == pytest.approx(np.sqrt(3))
    settings = replace(settings, privacy=per_record(privacy, users, times))
    claim = for_users(entry.promise(settings), privacy, users)
    spent = accounted_mu(derive(entry.build(settings), table, 0, n_reps=2, users=users))
    assert spent <= claim.gaussian.mu * (1 + 1e-9)
    if is_exact:
        assert spent == pytest.approx(claim.gaussian.mu)


# --- audits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "privacy"),
    [
        ("adar-ucb", RenyiDP(2.0, 1.0)),
        pytest.param("adap-ucb", PureDP(0.8), marks=pytest.mark.nightly),
        pytest.param("dp-ucb", PureDP(0.8), marks=pytest.mark.nightly),
    ],
)
def test_the_worst_user_is_measured_and_a_user_counted_as_one_record_is_caught(label, privacy):
    """False alarms: at most 5 % a bound on an honest algorithm, at a fixed seed; the fault is 3 times the claim."""
    users = Participation(3)
    trial = trial_of(label, privacy, users)
    events = derive(trial.algorithm, trial.table, EFFORT.seed, users=users)
    control = counted_as_one_record(users, is_gaussian=all_gaussian(events))
    outcome = audit(trial, (control,), EFFORT)
    assert outcome.verdict is Verdict.PASS, outcome.reasons
    (tried,) = outcome.controls
    assert SAMPLING in tried.caught_by
    assert (DETERMINISTIC in tried.caught_by) == (label == "adar-ucb")
    # The measured loss is beyond anything that one record could show.
    alone = replace(trial, users=None)
    assert outcome.events == events != derive(alone.algorithm, alone.table, EFFORT.seed)


@pytest.mark.parametrize("label", ["adap-ucb", "dp-ucb"])
def test_a_user_has_the_faults_of_records_and_one_more(label):
    mine, users = CONTROLS[label], Participation(4)
    *given, more = of_users(label, mine, users, is_gaussian=False)
    assert more.name == "user-counted-as-one-record"
    changed = {control.name: control.caught_by for control, own in zip(given, mine, strict=True) if control != own}
    assert changed == ({"noise-halved": (NOISE,)} if label == "dp-ucb" else {})


def test_the_least_favorable_user_reaches_the_accounted_loss():
    users = Participation(3)
    trial = trial_of("adar-ucb", RenyiDP(2.0, 1.0), users)
    worst = find(trial.algorithm, trial.table, users, (0,), seed=1)
    assert worst.mu_analytic == pytest.approx(trial.claim.gaussian.mu, rel=1e-6)


def bed_of(multiplier, n_users=8):
    return RunningSumBed(2, UNIT, FactorizedSum(Gaussian(1.0, multiplier), n_users))


def test_a_factorized_sum_for_users():
    users, claim, table = Participation(3), GaussianDP(1.0, relation=Relation.USER), random_table(8, 2, UNIT, 2)
    honest = bed_of(calibrate(claim, ByUsers(Factorized(8), users, longest=1)))
    worst = find(honest, table, users, (0,), seed=1)
    assert worst.mu_analytic == pytest.approx(1.0, rel=1e-6)  # the earliest three records, all one way
    for pair in (worst.pair, *user_pairs(table, users, (0,))):
        assert examine_pair(honest, pair, claim, 0, users) is None
    # Calibrated as if three records were three independent releases.
    wrong = bed_of(calibrate(claim, Factorized(8)) * np.sqrt(3))
    found = examine_pair(wrong, worst.pair, claim, 0, users)
    assert found is not None
    assert "the releases on one user, with up to 3 records a user, compose to" in found.reason
    assert found.describe()["case"]["others"] == list(worst.pair.others)


def test_a_value_that_moves_by_more_than_its_records_is_found():
    users, table = Participation(2), random_table(8, 2, UNIT, 2)
    bed = bed_of(4.0)
    pair = Pair.of_user(table, (0, 1), Change(0.0, 1.0))
    assert examine_pair(bed, pair, None, 0, users) is None
    understated = replace(bed, sums=FactorizedSum(Gaussian(0.6, 4.0), 8))
    found = examine_pair(understated, pair, None, 0, users)
    assert found is not None
    assert found.kind in ("sensitivity", "sequence")
