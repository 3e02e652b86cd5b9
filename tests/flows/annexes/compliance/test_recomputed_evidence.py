"""What evidence states is recomputed from its scores, and a number that is wrong under a right hash is named."""

import math
from dataclasses import replace

import numpy as np
import pytest
from evidence_cases import EFFORT, SUBJECT, TABLE, about, change_field, change_scores, forge, outcome_of
from own_cases import UNIT
from scores_alone import assert_partly_compared

from bandana.algorithms.catalog import find
from bandana.algorithms.problem import Problem
from bandana.audits.audit import audit
from bandana.audits.evidence import UnusableEvidence, read, to_bytes, write
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.outcome import Verdict
from bandana.audits.trial import Trial
from bandana.flows.annexes.compliance.evidence.recompute import verify
from bandana.flows.annexes.compliance.evidence.standalone import DIFFERS, exit_code
from bandana.privacy_core import RenyiDP


@pytest.fixture(scope="module")
def honest():
    return outcome_of("own_bandit")


@pytest.fixture(scope="module")
def broken():
    return outcome_of("broken_bandit", controls=())


@pytest.fixture
def file(honest, tmp_path):
    path = tmp_path / "evidence.npz"
    write(path, honest)
    return path


def test_honest_evidence_is_compared_line_by_line_as_far_as_its_scores_go(honest, file):
    assert honest.verdict is Verdict.PASS, honest.reasons
    found = verify(file)
    assert_partly_compared(found)
    assert found.compared == ("hashes", "bounds and verdict", "claim")
    assert found.claimed == ("claim (the author's words)", "origin (who, when, on which machine)")
    assert found.subject == SUBJECT
    assert found.claim == "all actions are 1-GDP; gdp(mu=1.0, relation=reward, trust=central)"
    assert found.verdict == "PASS"
    shown = {line.what: line.recomputed for line in found.lines}
    assert shown["verdict"] == "PASS"
    assert shown["claimed: mu"] == "1"
    assert sum(line.what.startswith("transcript; record") for line in found.lines) == 2 * 4


def test_a_failed_audit_is_compared_too_and_says_what_scores_cannot_tell(broken, tmp_path):
    write(tmp_path / "e.npz", broken)
    found = verify(tmp_path / "e.npz")
    assert_partly_compared(found)
    by_name = {line.what: line for line in found.lines}
    assert by_name["verdict"].recomputed == found.verdict == "FAIL"
    assert by_name["searches"].stated == "counterexample, noise finding, coverage"
    assert by_name["searches"].is_ok is None
    assert by_name["mu: accounted >= measured"].recomputed == "broken"


def _swap(description, arrays):
    arrays["transcript0_data"], arrays["transcript0_neighbor"] = arrays["transcript0_neighbor"], arrays["transcript0_data"]


def _with_nan(scores):
    changed = scores.copy()
    changed[17] = math.nan
    return changed


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (change_field("bounds", 0, "lower", value=0.5), "transcript; record 0"),
        (change_field("bounds", 0, "method", value="mu-band"), "transcript; record 0"),
        (change_field("bounds", 0, "method", value="mu-guess"), "transcript; record 0"),
        (change_field("bounds", 0, "parameters", value={"delta": 0.1}), "transcript; record 0"),
        (change_field("bounds", 1, "parameters", "delta", value=0.1), "transcript; record 0"),
        (change_field("bounds", 1, "parameters", "seed", value=7), "transcript; record 0"),
        (change_field("bounds", 0, "level", value=lambda level: level / 2), "transcript; record 0"),
        (change_field("bounds", 0, "level", value=lambda level: level * 2), "failure probability"),
        (change_field("failure", value=0.01), "failure probability"),
        (change_field("effort", "confidence", value=0.99), "failure probability"),
        (change_field("effort", "confidence", value=0.9), "failure probability"),
        (change_field("effort", "replays", value=100_000), "scores"),
        (change_field("numbers", 0, "measured", value=0.5), "measured: mu"),
        (change_field("numbers", 0, "accounted", value=0.9), "accounted: mu"),
        (change_field("numbers", 0, "claimed", value=2.0), "claimed: mu"),
        (change_field("numbers", 1, "measured", value=0.0), "measured: epsilon"),
        (change_field("numbers", value=[]), "quantities"),
        (change_field("claim", "text", value="gdp(mu=0.5, relation=reward)"), "verdict"),
        (change_field("claim", "mu", value=2.0), "claim as GDP: mu"),
        (change_field("events", 0, "count", value=4), "accounted: mu"),
        (change_field("events", 0, "noise_multiplier", value=2.0), "accounted: mu"),
        (change_field("numbers", 0, "claimed", value=0.0), "mu: claimed >= measured"),
        (change_field("verdict", value="FAIL"), "verdict"),
        (change_field("effort", "examples", value=10**6), "form: searched"),
        (change_field("counterexample", value={"summary": "a story"}), "verdict"),
        (change_field("noise_finding", value="a story"), "verdict"),
        (change_field("controls", value=[]), "verdict"),
        (change_field("controls", 0, "measured", value=0.1), "control noise-halved"),
        (change_field("controls", 0, "caught_by", value=[]), "control noise-halved"),
        (change_field("controls", 0, "limit", value=9.0), "control noise-halved"),
        (change_field("caveats", value=["a caveat"]), "verdict"),
        (change_scores("transcript0_data", lambda s: s + 1.0), "transcript; record 0"),
        (change_scores("transcript0_neighbor", lambda s: s[:-1]), "scores transcript0, neighbor"),
        (change_scores("transcript0_data", _with_nan), "scores transcript0, data"),
        (change_scores("actions1_data", lambda s: s + 3), "actions; record 2"),
        (_swap, "transcript; record 0"),
    ],
)
def test_a_number_that_is_wrong_under_a_right_hash_is_named(file, change, line):
    forge(file, change)
    found = verify(file)
    assert found.lines[0].is_ok, "the hash is right"
    assert found.is_refused
    assert exit_code(found) == DIFFERS
    assert any(difference.what.startswith(line) for difference in found.differences), found.differences


def test_a_fail_cannot_be_turned_into_a_pass(broken, tmp_path):
    write(tmp_path / "e.npz", broken)
    forge(tmp_path / "e.npz", lambda description, arrays: description.update(verdict="PASS", counterexample=None))
    found = verify(tmp_path / "e.npz")
    assert [(line.stated, line.recomputed) for line in found.differences if line.what == "verdict"] == [("PASS", "FAIL")]


def test_constant_scores_support_no_pass(file):
    """A forger who makes all scores equal, with counts and bounds to match, is left with INCONCLUSIVE."""

    def change(description, arrays):
        for name in arrays:
            arrays[name] = np.zeros_like(arrays[name])
        for bound in description["bounds"]:
            bound["lower"] = 0.0
        for numbers in description["numbers"]:
            numbers["measured"] = 0.0

    forge(file, change)
    differences = {line.what: line for line in verify(file).differences}
    assert [*differences] == ["form: verdict", "verdict"]
    assert (differences["verdict"].stated, differences["verdict"].recomputed) == ("PASS", "INCONCLUSIVE")
    assert any("every score is 0" in reason for reason in read(file).outcome.reasons)


def test_a_catalog_audit_writes_what_it_keeps(tmp_path):
    entry = find("adar-ucb")
    settings = entry.settings(Problem(2, UNIT), "tight", RenyiDP(2.0, 1.0))
    trial = Trial(entry.build(settings), entry.promise(settings), TABLE, entry.probes(2))
    small = entry.settings(Problem(2, UNIT), "tight", RenyiDP(2.0, 0.1))
    weak = Trial(entry.build(small), entry.promise(small), TABLE, entry.probes(2))
    subject = {"kind": "catalog", "name": "adar-ucb tight"}
    outcome = audit(
        weak, CONTROLS["adar-ucb"][:2], EFFORT, at_test_budget=trial, subject=subject, about=about(*entry.probes(2))
    )
    assert outcome.verdict is Verdict.PASS, outcome.reasons
    assert outcome.controls == ()
    assert len(outcome.at_test_budget.controls) == 2
    assert outcome.failure == outcome.at_test_budget.failure == pytest.approx(0.025)
    write(tmp_path / "e.npz", outcome)
    assert to_bytes(read(tmp_path / "e.npz").outcome) == (tmp_path / "e.npz").read_bytes()
    found = verify(tmp_path / "e.npz")
    assert_partly_compared(found, "claim (needs the catalog)")
    assert sum(line.what.startswith("test budget: transcript") for line in found.lines) == 3 * 4
    assert sum(line.what.startswith("transcript") for line in found.lines) == 3 * 4
    forge(tmp_path / "e.npz", change_field("at_test_budget", "bounds", 0, "lower", value=0.1))
    assert [line.what[:12] for line in verify(tmp_path / "e.npz").differences] == ["test budget:"]
    write(tmp_path / "e.npz", outcome)
    forge(tmp_path / "e.npz", change_field("at_test_budget", "effort", value={}))
    with pytest.raises(UnusableEvidence, match=r"at_test_budget\.effort is no field of evidence"):
        read(tmp_path / "e.npz")
    write(tmp_path / "e.npz", outcome)
    forge(tmp_path / "e.npz", change_field("at_test_budget", "claim", "source", value="another paper"))
    assert "test budget: same audit" in [line.what for line in verify(tmp_path / "e.npz").differences]


@pytest.mark.parametrize("pair", range(4))
def test_all_pairs_but_the_least_favorable_one_may_have_fewer_replays(honest, tmp_path, pair):
    """Whether they may here, only a replay can tell; no other number than the one that the effort allows will do."""
    names = [f"transcript{pair}", f"actions{pair}"]
    for n, is_allowed in ((EFFORT.fewer, pair < 3), (EFFORT.fewer - 1, False)):
        cut = {names[0]: n, names[1]: n - n // 2}
        scores = {name: tuple(side[: cut.get(name)] for side in sides) for name, sides in honest.scores.items()}
        path = tmp_path / f"{n}.npz"
        write(path, replace(honest, scores=scores))
        wrong = [line.what for line in verify(path).lines if line.what.startswith("scores ")]
        assert (not wrong) is is_allowed, wrong
