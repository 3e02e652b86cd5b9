"""Audits of CAPRI: the least favorable pair is the theorem's, and each planted fault costs what its arithmetic says."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.worst_pools import extrapolating_pool
from bandana.algorithms.rkhs.kernels import Matern, SquaredExponential
from bandana.algorithms.rkhs.pool import Pool
from bandana.audits.audit import audit
from bandana.audits.faults.capri import CAPRI_CONTROLS
from bandana.audits.faults.fault import BOTH
from bandana.audits.neighbors import worst_pair
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import DETERMINISTIC, Effort
from bandana.audits.replays.replay import replay
from bandana.audits.searches.deterministic import search
from bandana.audits.testbeds.catalog import at_test_budget, bed_of, bed_settings
from bandana.audits.trial import Trial

ROUNDS, REPLAYS = 64, 3000
OWN = {control.name: control for control in CAPRI_CONTROLS["capri joint"][6:]}
FINITE = [
    "square-for-root",
    "half-the-sensitivity",
    "generated-contexts-only",
    "noise-on-coefficients",
    "noise-at-each-point",
]


@cache
def trial(name, calibration):
    """At a budget at which the ledger composes to mu = 1."""
    entry = find(name)
    problem, table = bed_of(entry, ROUNDS, 0)
    settings = at_test_budget(entry, bed_settings(entry, problem, calibration), table)
    return Trial(entry.build(settings), entry.promise(settings), table, (0,))


JOINT, LOCAL, PRINTED = ("capri joint", "tight"), ("capri local", "tight"), ("capri joint", "printed")


@pytest.fixture
def bed(request):
    """Built when a test needs it: each worker collects every test."""
    return trial(*request.param)


def costliest(bed):
    """The first user brings the context that is never drawn, on both sides, and the reward goes from end to end."""
    pairs = canary_pairs(bed.table, bed.probes, private_records=True)
    (pair,) = (pair for pair in pairs if "product" in pair.description)
    sides = [bed.algorithm.pool.nearest(table.features[[0]])[0] for table in (pair.data, pair.neighbor)]
    assert sides == [0, 0]
    assert bed.algorithm.pool.law[0] == 0
    return pair


def seen(algorithm, pair):
    """Mu, from the means of the log likelihood ratio: they differ by mu^2, each with deviation mu / sqrt(n)."""
    sides = [replay(algorithm, pair, bool(s), REPLAYS, np.random.SeedSequence(s)).log_ratio for s in (0, 1)]
    return math.sqrt(sides[1].mean() - sides[0].mean())


def due(algorithm):
    """Mu of the pair: the first user is given the coin's action of context 0, and y moves by the width of the range."""
    action = int(algorithm.coin(0)[0] * algorithm.n_actions)
    code = algorithm.plan(0, np.ones((algorithm.n_contexts, algorithm.n_actions), dtype=bool)).codes[action]
    return np.linalg.norm(code) / algorithm.gathering.mechanism.scale


@pytest.mark.parametrize("bed", [JOINT, LOCAL, PRINTED], ids=["joint", "local", "printed"], indirect=True)
def test_the_worst_pair_reaches_the_claim(bed):
    found = worst_pair.find(bed.algorithm, bed.table, (0,), 0, private_records=True)
    assert 0.98 < found.mu_analytic <= 1 + 1e-9
    assert found.pair.hidden_record == found.pair.record, "with a context that the generator never draws"


@pytest.mark.parametrize("bed", [JOINT, LOCAL], ids=["joint", "local"], indirect=True)
def test_the_honest_one_costs_what_its_sensitivity_says(bed):
    mu = due(bed.algorithm)
    assert 0.9 < mu <= 1
    # Six deviations of the difference of both means, sqrt(2 / n), divided by 2 mu.
    assert seen(bed.algorithm, costliest(bed)) == pytest.approx(mu, abs=6 * math.sqrt(2 / REPLAYS) / 2)


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("bed", [JOINT, LOCAL], ids=["joint", "local"], indirect=True)
def test_each_fault_costs_what_its_arithmetic_says(bed, name):
    faulty = OWN[name].plant(bed.algorithm)
    mu, honest = due(faulty), bed.algorithm
    if name == "half-the-sensitivity":
        assert mu == pytest.approx(2 * due(honest))
    if name == "square-for-root":
        unit = honest.plan(0, np.ones((4, 2), dtype=bool)).unit
        assert mu == pytest.approx(due(honest) / unit)
    assert mu > 1.4
    if mu < 4:
        assert seen(faulty, costliest(bed)) == pytest.approx(mu, abs=6 * math.sqrt(2 / REPLAYS) / 2)


def test_no_fault_changes_the_estimate_without_noise():
    """Planted are faults of privacy alone: codes and readers still make the paper's estimator."""
    active = np.ones((4, 2), dtype=bool)
    honest = trial(*JOINT).algorithm.plan(0, active)
    expected = honest.unit**2 * honest.readers @ honest.codes.T
    for name in FINITE:
        plan = OWN[name].plant(trial(*JOINT).algorithm).plan(0, active)
        np.testing.assert_allclose(plan.unit**2 * plan.readers @ plan.codes.T, expected, atol=1e-6, err_msg=name)


def test_the_pool_that_audits_play_on():
    pool = extrapolating_pool(3, 4)
    assert pool.points.shape == (4, 3, 4)
    assert pool.law.tolist() == [0, *[pytest.approx(1 / 3)] * 3]
    assert np.linalg.norm(pool.points, axis=2).max() < 1


def test_what_must_see_which_fault():
    for controls in CAPRI_CONTROLS.values():
        own = {control.name: control.caught_by for control in controls}
        assert all(len(own[name]) == 2 for name in FINITE)
        assert own["real-contexts"] == (DETERMINISTIC,)


@pytest.mark.nightly
def test_a_whole_audit():
    outcome = audit(trial(*JOINT), tuple(OWN.values()), Effort(2000, 0.95, 1e-5, 100, 0))
    assert str(outcome.verdict) == "PASS"
    assert all(control.is_caught for control in outcome.controls)


def test_a_fault_that_changes_nothing_is_not_planted():
    """Where the generator draws every context, the maximum over those that it draws is the maximum over all."""
    entry = find("capri joint")
    pool = extrapolating_pool(2, 2)
    everywhere = Pool(pool.points, np.full(4, 0.25))
    problem, table = bed_of(entry, ROUNDS, 0)
    settings = bed_settings(entry, replace(problem, pool=everywhere), "tight")
    algorithm = entry.build(settings)
    control = OWN["generated-contexts-only"]
    assert not control.is_fault(algorithm)
    assert control.is_fault(trial(*JOINT).algorithm)
    active = np.ones((4, 2), dtype=bool)
    assert np.array_equal(control.plant(algorithm).plan(0, active).codes, algorithm.plan(0, active).codes)
    far = replace(problem, kernel=SquaredExponential(0.1))  # functions learned on what is drawn say nothing of the rest
    assert not control.is_fault(entry.build(bed_settings(entry, far, "tight")))
    outcome = audit(Trial(algorithm, entry.promise(settings), table, (0,)), (control,), Effort(1000, 0.95, 1e-5, 5, 1))
    assert not outcome.controls
    assert outcome.about.not_planted == {control.name: ()}


@pytest.mark.parametrize(("calibration", "is_fault"), [("printed", False), ("tight", True)])
def test_a_factor_that_the_printed_bound_hides_is_not_planted(calibration, is_fault):
    """On a rough kernel sigma_max is 1.37 times s_max: noise that is too small by sqrt 2 spends 1.04 of what is declared."""
    entry = find("capri joint")
    problem, _ = bed_of(entry, ROUNDS, 0)
    points = np.random.Generator(np.random.SFC64(0)).random((4, 8, 2))
    rough = replace(problem, n_actions=8, kernel=Matern(1.5, 0.8), pool=Pool(points, np.full(4, 0.25)))
    algorithm = entry.build(bed_settings(entry, rough, calibration))
    planted = [control for control in CAPRI_CONTROLS["capri joint"] if control.is_fault(algorithm)]
    caught_by = {control.name: control.caught_by for control in planted}
    assert len(caught_by) == len(planted)  # of each name, what is planted is one
    assert "noise-halved" in caught_by
    for name in ("noise-sqrt2", "square-for-root"):
        assert (name in caught_by) == is_fault
    assert caught_by["released-again"] == (BOTH if is_fault else (DETERMINISTIC,))


def test_a_second_release_that_the_printed_bound_covers_breaks_the_proof_all_the_same():
    """The value that a release without a reader gets again has moved: no replay shows it, the deterministic audit does."""
    entry = find("capri joint")
    problem, table = bed_of(entry, ROUNDS, 0)
    settings = bed_settings(entry, replace(problem, kernel=Matern(1.5, 0.8)), "printed")
    algorithm = entry.build(settings)
    (again,) = (c for c in CAPRI_CONTROLS["capri joint"] if c.name == "released-again" and c.caught_by == (DETERMINISTIC,))
    found = search(again.plant(algorithm), table.reward_range, entry.promise(settings).gaussian, 40)
    assert found is not None
    assert search(algorithm, table.reward_range, entry.promise(settings).gaussian, 40) is None
