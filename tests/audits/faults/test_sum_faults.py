"""Each planted fault of a sum is caught by the audits that must catch it, and utility faults are not taken for leaks."""

import math

import numpy as np
import pytest
from nightly import first, one_of_each
from sum_audit import catches, measured

from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.run import run
from bandana.audits.faults.fault import LITTLE, MUCH
from bandana.audits.faults.sums import CONTROLS_OF_SUMS, UTILITY_FAULTS
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING, accounted_mu
from bandana.audits.replays.replay import replay
from bandana.audits.searches import deterministic, noise
from bandana.audits.seeds import derive
from bandana.audits.testbeds.blocks import UNIT, trials
from bandana.privacy_core import GaussianDP, LiveLedger, ReproducibleNoise

TRIALS = trials()
FAULTS = [(name, control) for name, controls in CONTROLS_OF_SUMS.items() for control in controls]


def _ids(faults):
    return [f"{name}-{control.name}" for name, control in faults]


def _of(audit):
    chosen = [fault for fault in FAULTS if audit in fault[1].caught_by]
    return pytest.mark.parametrize(("name", "control"), chosen, ids=_ids(chosen))


SEEN = [f for f in FAULTS if SAMPLING in f[1].caught_by]
WITH_LITTLE = [f for f in SEEN if f[1].replays <= LITTLE]
MEASURED = [f for f in SEEN if f[1].replays > LITTLE or math.isfinite(f[1].factor)]


def _label(fault):
    return _ids([fault])[0]


def test_every_bed_has_planted_faults():
    assert set(CONTROLS_OF_SUMS) == set(TRIALS)
    assert all(control.caught_by for _, control in FAULTS)
    assert set(UTILITY_FAULTS) <= set(TRIALS)


def test_no_audit_alone_would_do():
    """Each is the only one that must catch some fault, or shares it with one that misses others."""
    for audit in (SAMPLING, DETERMINISTIC, NOISE):
        assert any(audit not in control.caught_by for _, control in FAULTS)
    assert {control.caught_by for _, control in FAULTS} >= {(NOISE,), (SAMPLING, DETERMINISTIC), (SAMPLING, NOISE)}


@pytest.mark.parametrize("fault", one_of_each(WITH_LITTLE, lambda fault: fault[0].split("-")[0], _label))
def test_replays_catch_it(fault):
    name, control = fault
    assert catches(TRIALS[name], control.plant(TRIALS[name].algorithm), SAMPLING, control.replays)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "control"), MEASURED, ids=_ids(MEASURED))
def test_many_replays_catch_small_factors_and_measure_them(name, control):
    """The bound holds with 95 %, stated for this seed; a finite factor is measured to a seventh."""
    found = measured(TRIALS[name], control.plant(TRIALS[name].algorithm), MUCH)
    assert found > 1
    if not math.isinf(control.factor):
        assert 0.85 * control.factor < found <= control.factor


@_of(DETERMINISTIC)
def test_the_audit_without_statistics_catches_it(name, control):
    assert catches(TRIALS[name], control.plant(TRIALS[name].algorithm), DETERMINISTIC, 0)


@_of(NOISE)
def test_the_audit_of_the_noise_catches_it(name, control):
    assert catches(TRIALS[name], control.plant(TRIALS[name].algorithm), NOISE, 0)


ONLY_NOISE = [f for f in FAULTS if f[1].caught_by == (NOISE,)]


@pytest.mark.parametrize(("name", "control"), first(2, [pytest.param(*fault, id=_label(fault)) for fault in ONLY_NOISE]))
def test_shared_noise_is_nothing_that_the_deterministic_audit_or_the_accountant_could_see(name, control):
    trial, faulty = TRIALS[name], control.plant(TRIALS[name].algorithm)
    assert not catches(trial, faulty, DETERMINISTIC, 0)
    assert accounted_mu(derive(faulty, trial.table, seed=0, n_reps=4)) <= trial.claim.mu


NOISE_IS_RIGHT = [f for f in FAULTS if NOISE not in f[1].caught_by]


@pytest.mark.parametrize(("name", "control"), NOISE_IS_RIGHT, ids=_ids(NOISE_IS_RIGHT))
def test_a_fault_elsewhere_is_not_blamed_on_the_noise(name, control):
    """False alarm: 1e-6 a fault."""
    assert noise.examine(control.plant(TRIALS[name].algorithm), TRIALS[name].table) is None


REASONS = {
    "tree-budget-on-one-node": "compose to",
    "tree-levels-off-by-one": "compose to",
    "tree-not-clipped": "times its sensitivity",
    "tree-first-release-exact": "without noise",
    "factorized-columns-not-normalized": "together moved by",
    "factorized-longer-than-built-for": "together moved by",
    "gram-wide-squares-too": "1.84 times its sensitivity",
    "gram-only-decides-from-exact": "not released",
    "gram-joint-refuses-large-noise": "no release made public",
}


@pytest.mark.parametrize("fault", REASONS)
def test_the_audit_without_statistics_says_why(fault):
    name, control = FAULTS[_ids(FAULTS).index(fault)]
    trial = TRIALS[name]
    found = deterministic.search(control.plant(trial.algorithm), trial.table.reward_range, trial.claim, 60, shrinks=False)
    assert REASONS[fault] in str(found)


def test_the_levels_of_a_large_tree_are_seen_by_the_accountant_at_any_effort():
    """At 256 steps one level of nine is a factor of 1.06, which replays see with 1e6 of them only."""
    trial = trials(n_users=256)["tree"]
    (control,) = (c for c in CONTROLS_OF_SUMS["tree"] if c.name == "levels-off-by-one")
    accounted = accounted_mu(derive(control.plant(trial.algorithm), trial.table, seed=0, n_reps=1))
    assert accounted == pytest.approx(math.sqrt(9 / 8))


LEAKLESS = [(name, control) for name, controls in UTILITY_FAULTS.items() for control in controls]


@pytest.mark.parametrize(("name", "control"), LEAKLESS, ids=_ids(LEAKLESS))
def test_a_utility_fault_is_private_and_the_three_numbers_show_it(name, control):
    trial, faulty = TRIALS[name], control.plant(TRIALS[name].algorithm)
    accounted = accounted_mu(derive(faulty, trial.table, seed=0, n_reps=4))
    assert accounted == pytest.approx(control.factor)
    assert accounted < 0.5 * trial.claim.mu
    assert measured(trial, faulty, LITTLE, trial.pairs[:1]) <= accounted
    for audit in (DETERMINISTIC, NOISE):
        assert not catches(trial, faulty, audit, 0)


def test_elimination_with_one_scalar_draw_is_a_function_of_the_data():
    """The public defect: fixed rewards, any seed, the same actions."""
    trial = TRIALS["elimination"]
    (control,) = (c for c in CONTROLS_OF_SUMS["elimination"] if c.name == "one-noise-for-all")
    faulty, pair = control.plant(trial.algorithm), canary_pairs(trial.table, (0,))[0]
    codes = [replay(faulty, pair, side, 500, np.random.SeedSequence(side)).action_code for side in (False, True)]
    assert len(np.unique(codes[0])) == len(np.unique(codes[1])) == 1
    assert codes[0][0] != codes[1][0]
    honest = replay(trial.algorithm, pair, False, 500, np.random.SeedSequence(0)).action_code
    assert len(np.unique(honest)) > 1


def test_shared_noise_makes_differences_of_released_matrices_exact():
    """The public defect: the difference of two consecutive matrices is x x^T."""
    trial = TRIALS["gram-repeated"]
    ledger = LiveLedger(3, ReproducibleNoise(np.random.SeedSequence(0)), keeps_transcript=True)
    run(CONTROLS_OF_SUMS["gram-repeated"][0].plant(trial.algorithm), trial.table, ledger)
    first, second = ledger.transcript[:2]
    np.testing.assert_allclose(second.output - first.output, second.value - first.value, atol=1e-12)


def test_a_control_stays_planted_at_another_budget():
    trial = trials(2.0)["tree"]
    (control,) = (c for c in CONTROLS_OF_SUMS["tree"] if c.name == "budget-on-one-node")
    table = RewardTable(np.full((24, 2), 0.5), UNIT)
    assert accounted_mu(derive(control.plant(trial.algorithm), table, 0, 1)) == pytest.approx(2 * math.sqrt(5))
    found = deterministic.search(control.plant(trial.algorithm), UNIT, GaussianDP(2.0), 60, shrinks=False)
    assert "compose to" in str(found)
