"""Planted faults of tests for the best arm are caught by the audits that must catch them, and the honest one by none."""

from __future__ import annotations

import pytest

from bandana.algorithms.catalog import CATALOG
from bandana.audits.faults.best_arm import BEST_ARM_CONTROLS
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING
from bandana.audits.searches import deterministic, noise
from bandana.audits.testbeds.catalog import bed_of, bed_settings

CASES = [(entry, calibration) for entry in CATALOG if entry.label in BEST_ARM_CONTROLS for calibration in entry.calibrations]
IDS = [f"{entry.label}-{calibration}" for entry, calibration in CASES]
each = pytest.mark.parametrize(
    ("entry", "calibration"),
    [
        pytest.param(*case, id=name, marks=[] if name in ("adap-tt-tight", "dp-bai-tight") else pytest.mark.nightly)
        for case, name in zip(CASES, IDS, strict=True)
    ],
)


def honest(entry, calibration):
    problem, table = bed_of(entry, 64, 0)
    settings = bed_settings(entry, problem, calibration)
    return entry.build(settings), problem.reward_range, table


def test_every_private_entry_has_faults_for_each_audit():
    private = {entry.label for entry in CATALOG if entry.family == "bandits/best_arm" and entry.is_private}
    assert set(BEST_ARM_CONTROLS) == private
    for controls in BEST_ARM_CONTROLS.values():
        for kind in (SAMPLING, DETERMINISTIC, NOISE):
            assert any(kind in control.caught_by for control in controls)


@each
def test_the_deterministic_audit_catches_what_it_must(entry, calibration):
    algorithm, span, _ = honest(entry, calibration)
    for control in BEST_ARM_CONTROLS[entry.label]:
        if DETERMINISTIC in control.caught_by:
            assert deterministic.search(control.plant(algorithm), span, None, 60, shrinks=False) is not None, control.name


@each
def test_the_noise_audit_catches_what_it_must_and_nobody_blames_the_honest_one(entry, calibration):
    """The noise audit blames an honest one with probability 1e-6 at most, for this seed."""
    algorithm, span, table = honest(entry, calibration)
    for control in BEST_ARM_CONTROLS[entry.label]:
        if NOISE in control.caught_by:
            assert noise.examine(control.plant(algorithm), table) is not None, control.name
    assert noise.examine(algorithm, table) is None
    assert deterministic.search(algorithm, span, None, 60, shrinks=False) is None
