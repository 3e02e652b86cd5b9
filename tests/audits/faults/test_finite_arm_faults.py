"""Each planted fault of the pure-DP baselines is caught by the audits that must catch it, and the honest one by none."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import ConstantNoise
from nightly import first, one_of_each

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adap_ucb
from bandana.algorithms.bandits.finite_arm.successive_elimination import dp_se
from bandana.algorithms.catalog import CATALOG
from bandana.algorithms.environments.tables import RewardTable, random_table
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.audits.audit import audit
from bandana.audits.claims import Quantity, parse
from bandana.audits.faults import catalog
from bandana.audits.neighbors import worst_pair
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING, Effort, Verdict, accounted_as
from bandana.audits.plan import plan_bounds
from bandana.audits.replays.measure import measure
from bandana.audits.searches import deterministic, noise
from bandana.audits.seeds import derive
from bandana.audits.trial import Trial
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise

UNIT = Interval(0.0, 1.0)
ROUNDS, REPLAYS = 32, 20_000
CLAIM = parse("pure(epsilon=1, relation=reward)")
EPSILON = Quantity("epsilon")
TABLE = random_table(ROUNDS, 2, UNIT, 0)


def in_audit(entry):
    """The algorithm as audits play it, and the records that they change."""
    settings = entry.settings(Problem(2, UNIT, ROUNDS), entry.calibrations[0], CLAIM.stated)
    return entry.build(entry.in_audit(settings)), entry.probes(2)


HONEST = {
    entry.label: in_audit(entry) for entry in CATALOG if (entry.family, entry.guarantee) == ("bandits/finite_arm", "pure")
}
CONTROLS = {name: catalog.CONTROLS[name] for name in HONEST}
FAULTS = [(name, control) for name, controls in CONTROLS.items() for control in controls]


def measured(name, algorithm, enough):
    effort = Effort(REPLAYS, 0.95, 1e-5, 1, 1)
    plan = tuple(planned for planned in plan_bounds(CLAIM.stated, 1e-5) if planned.quantity == EPSILON)
    probes = HONEST[name][1]
    pairs = (*canary_pairs(TABLE, probes), worst_pair.find(algorithm, TABLE, probes, 1).pair)
    return measure(algorithm, pairs, effort, plan, enough=enough).lower(EPSILON)


def of(kind):
    chosen = [fault for fault in FAULTS if kind in fault[1].caught_by]
    return pytest.mark.parametrize(("name", "control"), chosen, ids=[f"{name}-{control.name}" for name, control in chosen])


def test_each_baseline_has_faults_for_each_audit():
    for controls in CONTROLS.values():
        for kind in (SAMPLING, DETERMINISTIC, NOISE):
            assert any(kind in control.caught_by for control in controls)


@pytest.mark.parametrize(
    "fault",
    one_of_each(
        [fault for fault in FAULTS if SAMPLING in fault[1].caught_by],
        lambda fault: fault[0],
        lambda fault: f"{fault[0]}-{fault[1].name}",
    ),
)
def test_replays_catch_it(fault):
    name, control = fault
    assert measured(name, control.plant(HONEST[name][0]), 1.0) > 1


@of(DETERMINISTIC)
def test_the_audit_without_statistics_catches_it(name, control):
    assert deterministic.search(control.plant(HONEST[name][0]), UNIT, None, 60, shrinks=False) is not None


@of(NOISE)
def test_the_audit_of_the_noise_catches_it(name, control):
    assert noise.examine(control.plant(HONEST[name][0]), TABLE) is not None


@pytest.mark.parametrize("name", first(1, ["dp-se", *(name for name in HONEST if name != "dp-se")]))
def test_the_honest_one_is_blamed_by_none(name):
    """With 95 % for this seed, and 1e-6."""
    algorithm = HONEST[name][0]
    accounted = accounted_as(EPSILON, derive(algorithm, TABLE, 0, 8))
    assert 1 - 1e-9 < accounted <= 1
    found = measured(name, algorithm, np.inf)
    assert 0.7 < found <= accounted
    assert deterministic.search(algorithm, UNIT, None, 60, shrinks=False) is None
    assert noise.examine(algorithm, TABLE) is None


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*HONEST, "adap-ucb-tight"])
def test_the_whole_audit_passes_and_has_power(name):
    entry = name.removesuffix("-tight")
    algorithm, probes = HONEST[entry]
    if name != entry:
        algorithm = adap_ucb(2, 1.0, 3.1, UNIT, "tight")
    found = audit(Trial(algorithm, CLAIM, TABLE, probes), CONTROLS[entry], Effort(REPLAYS, 0.95, 1e-5, 60, 0))
    assert found.verdict is Verdict.PASS
    assert all(control.is_caught for control in found.controls)


def test_elimination_with_one_scalar_draw_is_a_function_of_the_data():
    """The public defect: fixed rewards, any seed, the same actions."""
    honest = dp_se(2, 1.0, 0.9, UNIT, 1 / 64)
    (control,) = (c for c in CONTROLS["dp-se"] if c.name == "one-noise-for-all")
    table = RewardTable(np.tile([0.9, 0.1], (400, 1)), UNIT)

    def played(algorithm):
        log = ActionLog()
        ledger = LiveLedger(300, ReproducibleNoise(np.random.SeedSequence(1)))
        run(algorithm, table, ledger, observers=[log])
        rows = zip(*(np.repeat(a, 1) for a in log.actions), strict=True)
        return {tuple(row) for row in rows}

    assert len(played(control.plant(honest))) == 1
    assert len(played(honest)) > 1


def test_a_first_pull_without_noise_decides_the_third_action():
    """The public defect: the third action is arm 1 where the second reward was 1, and arm 0 where it was 0."""
    (control,) = (c for c in CONTROLS["adap-ucb"] if c.name == "first-pull-exact")
    faulty = control.plant(HONEST["adap-ucb"][0])
    for second in (0.0, 1.0):
        log = ActionLog()
        table = RewardTable([[0.5, 0.5], [0.0, second], [0.5, 0.5]], UNIT)
        run(faulty, table, LiveLedger(200, ReproducibleNoise(np.random.SeedSequence(1))), observers=[log])
        assert set(log.actions[2].tolist()) == {int(second)}


def test_controls_leave_the_honest_algorithm_as_it_is():
    for name, control in FAULTS:
        before = repr(HONEST[name][0])
        control.plant(HONEST[name][0])
        assert repr(HONEST[name][0]) == before
    ledger = LiveLedger(1, ConstantNoise())
    run(HONEST["dp-se"][0], TABLE, ledger)
    assert ledger.noise.calls > 2
