"""Calibrations of CAPRI taken apart: every mixture keeps the claim, and each part changes one thing."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from doubles import OwnNoiseLedger
from nightly import first
from pools import KERNEL, SYMMETRIC, pool_of, table_of

from bandana.algorithms.bandits.capri.forms import PARTS
from bandana.algorithms.bandits.capri.widths import ExactWidth, PrintedWidth
from bandana.algorithms.catalog import find
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.audits.audit import audit
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.outcome import Effort
from bandana.audits.searches.deterministic import search
from bandana.audits.testbeds.catalog import at_test_budget, bed_of, bed_settings
from bandana.audits.trial import Trial
from bandana.privacy_core import ApproxDP, GaussianDP

POOL, HORIZON = pool_of(), 60
OPTIONS = find("capri joint").part_options
MIXTURES = [dict(zip(OPTIONS, choice, strict=True)) for choice in product(*OPTIONS.values())]
NEW = [parts for parts in MIXTURES if parts not in PARTS.values()]
each_model = pytest.mark.parametrize("name", ["capri joint", "capri local"])
each_mixture = pytest.mark.parametrize("parts", MIXTURES, ids=lambda parts: "-".join(parts.values()))


def built(name, calibration, **more):
    entry = find(name)
    problem = Problem(3, SYMMETRIC, HORIZON, dimension=2, kernel=KERNEL, pool=POOL)
    settings = entry.settings(problem, calibration, ApproxDP(1.0, 1e-5), **more)
    return entry.build(settings), entry.promise(settings).gaussian.mu


@each_model
@each_mixture
def test_every_mixture_keeps_the_claim(name, parts):
    algorithm, claimed = built(name, parts, beta_scale=0.02)
    ledger = OwnNoiseLedger([1, 2])
    run(algorithm, table_of(POOL, HORIZON, SYMMETRIC), ledger)
    spent = ledger.guarantee().mu
    assert spent <= claimed * (1 + 1e-12)
    printed = 1 / (2 * math.log(HORIZON) * math.sqrt(math.log(1.25 * math.log(HORIZON) / 1e-5)))
    assert spent == pytest.approx(claimed if parts["noise"] == "tight" else printed, rel=1e-8)
    for epoch in range(3):
        assert np.linalg.norm(algorithm.plan(epoch, np.ones((4, 3), dtype=bool)).codes, axis=1).max() <= 1 + 1e-12


@each_model
def test_named_calibrations_are_their_parts(name):
    for calibration, parts in PARTS.items():
        (one, _), (other, _) = built(name, calibration), built(name, dict(parts))
        for epoch in range(3):
            plans = [algorithm.plan(epoch, np.ones((4, 3), dtype=bool)) for algorithm in (one, other)]
            assert all((plans[0][part] == plans[1][part]).all() for part in (2, 3, 5))
        assert one.gathering == other.gathering
        assert one.width == other.width


@each_model
def test_each_part_changes_one_thing(name):
    active = np.ones((4, 3), dtype=bool)
    found = {tuple(parts.values()): built(name, parts)[0] for parts in MIXTURES}
    for (noise, sensitivity, width), algorithm in found.items():
        exact = found[noise, "exact", width].plan(0, active)
        assert algorithm.gathering == found[noise, "printed", "printed"].gathering
        assert isinstance(algorithm.width, ExactWidth if width == "exact" else PrintedWidth)
        assert algorithm.width == found["tight", "exact", width].width
        plan = algorithm.plan(0, active)
        assert (plan.unit > exact.unit) == (sensitivity == "printed"), "sigma_max is above s_max in a short epoch"
        if width != "exact":
            np.testing.assert_array_equal(plan.width, found["tight", "exact", width].plan(0, active).width)
    shorter = found["tight", "exact", "exact"].plan(0, active).width
    assert (shorter < found["printed", "exact", "exact"].plan(0, active).width).all(), "exact widths count on the noise"


@each_model
@pytest.mark.parametrize("parts", first(1, NEW[::3]), ids=lambda parts: "-".join(parts.values()))
def test_the_deterministic_audit_finds_nothing_in_mixtures(name, parts):
    algorithm, claimed = built(name, parts, beta_scale=0.02)
    assert search(algorithm, SYMMETRIC, GaussianDP(claimed * (1 + 1e-9)), 15, private_records=True) is None


@each_model
def test_a_wrong_law_of_contexts_costs_no_privacy(name):
    """The algorithm is told that hardly any user brings contexts 0 and 1; those of the table, and of the search, do."""
    wrong = pool_of(law=[0.0, 0.01, 0.29, 0.7])
    entry, problem = find(name), Problem(3, SYMMETRIC, HORIZON, dimension=2, kernel=KERNEL, pool=wrong)
    settings = entry.settings(problem, "tight", ApproxDP(1.0, 1e-5), beta_scale=0.02)
    algorithm, claimed = entry.build(settings), entry.promise(settings).gaussian.mu
    ledger = OwnNoiseLedger([1, 2])
    run(algorithm, table_of(POOL, HORIZON, SYMMETRIC), ledger)
    assert ledger.guarantee().mu <= claimed * (1 + 1e-12)
    assert search(algorithm, SYMMETRIC, GaussianDP(claimed * (1 + 1e-9)), 15, private_records=True) is None


@pytest.mark.nightly
@each_model
@pytest.mark.parametrize("parts", NEW[::4], ids=lambda parts: "-".join(parts.values()))
def test_planted_faults_fit_every_mixture(name, parts):
    entry = find(name)
    problem, table = bed_of(entry, 64, 0)
    settings = at_test_budget(entry, bed_settings(entry, problem, parts), table)
    trial = Trial(entry.build(settings), entry.promise(settings), table, (0,))
    found = audit(trial, CONTROLS[name], Effort(20000, 0.95, 1e-5, 100, 0))
    assert str(found.verdict) == "PASS"
