"""Whole audits: honest algorithms pass, faulty ones fail, audits without power say so."""

from dataclasses import replace

import numpy as np
import pytest
from nightly import first

from bandana.algorithms.catalog import CATALOG, find
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.problem import Problem
from bandana.audits.audit import audit
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.outcome import DETERMINISTIC, MIN_REPLAYS, MU, SAMPLING, Effort, Verdict
from bandana.audits.replays.attacks import TRANSCRIPT
from bandana.audits.seeds import derive
from bandana.audits.summary import summarize
from bandana.audits.trial import Trial
from bandana.flows.spec.spec import AuditSpec
from bandana.privacy_core import Gaussian, Interval, PhaseSum, RenyiDP, Span

UNIT = Interval(0.0, 1.0)
EFFORT = Effort(replays=20_000, confidence=0.95, delta=1e-5, examples=60, seed=3)
LITTLE = replace(EFFORT, replays=4000)
ENTRY = find("adar-ucb")


def test_an_audit_and_a_spec_refuse_the_same():
    assert Effort(MIN_REPLAYS, 0.95, 1e-5, 1, 0).replays == AuditSpec(replays=MIN_REPLAYS).replays == MIN_REPLAYS
    with pytest.raises(ValueError, match=f"replays must be at least {MIN_REPLAYS}, got {MIN_REPLAYS - 1}"):
        Effort(MIN_REPLAYS - 1, 0.95, 1e-5, 1, 0)
    with pytest.raises(ValueError, match=f"greater than or equal to {MIN_REPLAYS}"):
        AuditSpec(replays=MIN_REPLAYS - 1)


@pytest.fixture(scope="module")
def table():
    return RewardTable(np.random.default_rng(0).integers(0, 2, (32, 2)).astype(float), UNIT)


def _audit(table, calibration="printed", change=lambda algorithm: algorithm, controls=None, effort=EFFORT):
    settings = ENTRY.settings(Problem(2, UNIT), calibration, RenyiDP(2.0, 1.0))
    controls = CONTROLS["adar-ucb"] if controls is None else controls
    trial = Trial(change(ENTRY.build(settings)), ENTRY.promise(settings), table, ENTRY.probes(2))
    return audit(trial, controls, effort)


@pytest.mark.parametrize("calibration", first(1, ["tight", "printed"]))
def test_honest_adar_ucb_passes_and_every_planted_fault_is_caught_both_ways(table, calibration):
    result = _audit(table, calibration)
    assert result.verdict is Verdict.PASS, result.reasons
    assert result.numbers[MU].accounted == pytest.approx(1.0, rel=1e-11)
    assert result.numbers[MU].accounted <= result.claim.gaussian.mu
    assert 0.9 < result.numbers[MU].measured < 1
    assert result.strongest.view == TRANSCRIPT
    for control in result.controls:
        assert set(control.caught_by) == {SAMPLING, DETERMINISTIC}, control
    about = {
        "label": "x",
        "algorithm": "adar-ucb",
        "calibration": calibration,
        "privacy_model": "central",
        "parameters": {},
    }
    shown = summarize(result, about)
    assert shown["mu"]["claimed"] >= shown["mu"]["accounted"] >= shown["mu"]["measured"]
    assert all(a >= b for a, b in zip(shown["tradeoff"]["measured"], shown["tradeoff"]["measured"][1:], strict=False))


def test_a_ledger_from_which_a_cost_is_derived_knows_the_length_of_the_stream(table, monkeypatch):
    def beyond(algorithm, table, ledger, coins):
        stop = np.full(ledger.n_reps, table.n_users + 1)
        ledger.release(Gaussian(1.0, 1.0), np.zeros((ledger.n_reps, 1)), records=Span(stop - 1, stop))

    monkeypatch.setattr("bandana.audits.seeds.run", beyond)
    with pytest.raises(ValueError, match="records must lie in a stream of 32, got a span to 33"):
        derive(None, table, seed=0, n_reps=4)


def test_one_score_that_is_no_number_spoils_the_verdict(table):
    result = _audit(table, controls=(), effort=replace(EFFORT, replays=1000, examples=2))
    assert not any("NaN" in caveat for caveat in result.all_caveats)
    (name, (data, neighbor)), *_ = result.scores.items()
    data = data.copy()
    data[17] = np.nan
    spoiled = replace(result, scores={**result.scores, name: (data, neighbor)})
    assert "some scores are NaN: a bound from them means nothing" in spoiled.all_caveats
    assert spoiled.verdict is Verdict.INCONCLUSIVE


def test_every_private_entry_of_the_catalog_has_controls():
    assert {entry.label for entry in CATALOG if entry.promise} == set(CONTROLS)


def _undernoised(algorithm):
    weak = PhaseSum(Gaussian(1.0, 0.7))
    return replace(algorithm, sums=weak, first_sums=weak)


def test_a_smaller_noise_is_refuted_by_accountant_measurement_and_search(table):
    result = _audit(table, change=_undernoised, controls=())
    assert result.verdict is Verdict.FAIL
    text = " ".join(result.reasons)
    assert "accounted exceeds claimed" in text
    assert "measured exceeds claimed" in text
    assert "counterexample" in text


def test_a_lying_ledger_is_refuted_by_measurement(table):
    lying = CONTROLS["adar-ucb"][2].plant
    result = _audit(table, change=lying, controls=())
    assert result.numbers[MU].accounted <= 1
    assert result.verdict is Verdict.FAIL
    assert "measured exceeds accounted" in " ".join(result.reasons)


def test_an_audit_without_controls_is_inconclusive(table):
    result = _audit(table, controls=(), effort=LITTLE)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.reasons == ("no planted fault proves the audit's power",)


def test_an_audit_that_misses_a_fault_is_inconclusive(table):
    harmless = replace(CONTROLS["adar-ucb"][0], name="nothing-wrong", plant=lambda honest: honest)
    result = _audit(table, controls=(harmless,), effort=LITTLE)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert len(result.reasons) == 1
    assert result.reasons[0].startswith("the audit missed the planted fault nothing-wrong: ")
    assert "no counterexample was found" in result.reasons[0]


def test_the_same_effort_gives_the_same_numbers(table):
    one, two = (_audit(table, controls=(), effort=LITTLE) for _ in range(2))
    assert one.bounds == two.bounds


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("replays", 10, "replays must be at least 1000, got 10"),
        ("confidence", 1.0, "confidence must lie strictly between 0 and 1, got 1.0"),
        ("delta", 0.0, "delta must lie strictly between 0 and 1, got 0.0"),
        ("examples", 0, "examples must be at least 1, got 0"),
    ],
)
def test_efforts_that_certify_nothing_are_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        replace(EFFORT, **{field: value})


def test_scores_of_the_first_view_alone_say_that_nothing_depends_on_the_canary(table):
    """One value in all transcripts is a caveat, one value in all actions is none: they may say nothing."""
    result = _audit(table, controls=(), effort=LITTLE)
    assert result.bounds[0].view == TRANSCRIPT
    for is_transcript in (True, False):
        scores = {
            name: tuple(np.zeros_like(side) for side in pair) if name.startswith(TRANSCRIPT) == is_transcript else pair
            for name, pair in result.scores.items()
        }
        said = [caveat for caveat in replace(result, scores=scores).all_caveats if caveat.startswith("every score is 0")]
        assert len(said) == is_transcript
