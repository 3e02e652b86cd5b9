"""`bandana verify` of evidence: a table, one sentence that lists what was compared and what was not, and an exit code."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from forger import remember
from scores_alone import NEED_THE_ALGORITHM, assert_partly_compared
from typer.testing import CliRunner
from whole_catalog import audited

import bandana
from bandana.algorithms.catalog import find
from bandana.algorithms.environments.tables import random_table
from bandana.algorithms.problem import Problem
from bandana.audits.audit import audit
from bandana.audits.contents import numbers_sha256
from bandana.audits.evidence import read, seal, write
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.outcome import Effort, Setup, Verdict
from bandana.audits.own.white_box import with_places
from bandana.audits.trial import Audited, Trial
from bandana.flows.annexes.compliance.evidence.standalone import PARTLY, exit_code
from bandana.flows.annexes.compliance.verify import Request, check
from bandana.flows.cli import app
from bandana.flows.commands.options import DIFFERS, FAILURE, USER_MISTAKE
from bandana.flows.keys.checkout import sources
from bandana.flows.keys.provenance import Making
from bandana.privacy_core import Interval, RenyiDP

UNIT = Interval(0.0, 1.0)
NEEDS_ITS_SPEC = "needs the experiment: --spec SPEC.yaml"
FEW = Effort(replays=1000, confidence=0.95, delta=1e-5, examples=1, seed=11)


@pytest.fixture(scope="module", autouse=True)
def _remembering():
    """What the first test of this module finds by running it again, the others find there."""
    with pytest.MonkeyPatch.context() as patch:
        remember(patch)
        yield


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """Evidence of a cell of some experiment that lies nowhere: searches and planted faults cannot be run again."""
    path = tmp_path_factory.mktemp("evidence") / "e.npz"
    entry = find("adar-ucb")
    settings = entry.settings(Problem(2, UNIT), "tight", RenyiDP(2.0, 1.0))
    effort = Effort(replays=4000, confidence=0.95, delta=1e-5, examples=10, seed=1)
    table = random_table(16, 2, UNIT, 0)
    trial = Trial(entry.build(settings), entry.promise(settings), table, (0, 2))
    about = Setup("coins", (0, 2), 1, "seeded", "0" * 64)
    controls = with_places(Audited(trial, None, CONTROLS["adar-ucb"]), effort).controls
    write(path, audit(trial, controls, effort, subject={"kind": "catalog", "name": "adar-ucb tight eps=1"}, about=about))
    return path.read_bytes()


@pytest.fixture
def file(content, tmp_path):
    path = tmp_path / "e.npz"
    path.write_bytes(content)
    return path


@pytest.fixture(scope="module")
def rebuilt():
    """Evidence of a subject of `bandana audit-catalog`, which its name alone rebuilds."""
    outcome = audited("block phases", FEW)
    assert outcome.verdict is Verdict.PASS, outcome.reasons
    return outcome


@pytest.fixture
def whole(rebuilt, tmp_path):
    write(tmp_path / "w.npz", rebuilt)
    return tmp_path / "w.npz"


def _verify(path, *options):
    return CliRunner().invoke(app, ["verify", str(path), *options])


def _first(done):
    return done.stdout.split("\n")[0]


def _named(path):
    return {line.what for line in check(Request(path)).verification.differences}


def test_verified_evidence_ends_with_0_and_a_table(whole):
    done = _verify(whole)
    assert done.exit_code == 0, done.output
    for word in ("stated", "recomputed", "SHA-256", "measured: mu", "verdict", "yes"):
        assert word in done.stdout
    assert " NO " not in done.stdout
    first = done.stdout.split("\n")[1:4]
    assert first[0] == "subject   catalog block phases"
    assert first[1] == "claim     all actions are 1-GDP; gdp(mu=1.0, relation=record, trust=central)"
    assert first[2] == "verdict   PASS, recomputed"
    assert f"numbers   SHA-256 {numbers_sha256(whole)}" in done.stdout
    assert _first(done).startswith("w.npz: verified, ")
    assert "none differs; the verdict is PASS. Compared: " in _first(done)
    assert "ot compared: " not in _first(done)
    assert "Only the sender knows: origin (who, when, on which machine); scores (--replay runs blocks" in _first(done)


def test_evidence_without_its_experiment_is_partly_compared_and_ends_with_4(file):
    found = check(Request(file)).verification
    assert_partly_compared(found, reason=NEEDS_ITS_SPEC)
    assert found.compared == ("hashes", "bounds and verdict", "claim")
    done = _verify(file)
    assert done.exit_code == PARTLY, done.output
    assert done.stdout.split("\n")[1] == "subject   catalog adar-ucb tight rdp(2, 1)"
    assert "computed  not recorded" in done.stdout
    assert "e.npz: PARTLY COMPARED, " in _first(done)
    assert "none differs; the verdict is PASS. Compared: hashes; bounds and verdict; claim. Not compared: " in _first(done)
    assert f"Not compared: {', '.join(NEED_THE_ALGORITHM)} ({NEEDS_ITS_SPEC})" in _first(done)


def test_what_quick_leaves_out_is_listed_and_ends_with_4(whole):
    assert_partly_compared(check(Request(whole, is_quick=True)).verification, reason="left out by --quick")
    done = _verify(whole, "--quick")
    assert done.exit_code == PARTLY, done.output
    assert "run again" not in done.output
    for more in (("--replay", "1"), ("--spec", "spec.yaml")):
        done = _verify(whole, "--quick", *more)
        assert done.exit_code == USER_MISTAKE
        assert "--quick: runs nothing again; leave out --replay and --spec" in done.stderr


@pytest.mark.parametrize("lost", [("of",), ("of", "made"), None])
def test_evidence_that_does_not_keep_its_request_is_partly_compared(rebuilt, tmp_path, lost):
    """The audit is run again all the same, and comes out as stated."""
    made = None if lost is None else {name: value for name, value in rebuilt.provenance.items() if name not in lost}
    write(tmp_path / "e.npz", replace(rebuilt, provenance=made))
    found = check(Request(tmp_path / "e.npz")).verification
    assert not found.is_refused, found.differences
    assert [line.what for line in found.lines if line.is_ok is None and not line.is_claimed] == ["replayed: request"]
    assert [part.partition(" ")[0] for part in found.not_compared] == ["setting"]
    assert exit_code(found) == PARTLY


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda made: {"of": {**made["of"], "whole catalog": "block tree"}}, "replayed: request"),
        (lambda made: {"of": {**made["of"], "effort": {**made["of"]["effort"], "examples": 400}}}, "replayed: request"),
        (lambda made: {"made": {**made["made"], "libraries": {}}}, "replayed: request"),
        (lambda made: {"versions": {**made["versions"], "numpy": "1.0.0"}}, "replayed: request"),
    ],
)
def test_a_request_that_is_not_that_of_the_audit_is_refused(rebuilt, tmp_path, change, line):
    write(tmp_path / "e.npz", replace(rebuilt, provenance={**rebuilt.provenance, **change(rebuilt.provenance)}))
    assert line in _named(tmp_path / "e.npz")


def test_evidence_of_other_code_is_refused_and_never_compared_less(rebuilt, tmp_path):
    made = {**rebuilt.provenance, "made": {**rebuilt.provenance["made"], "code": "0" * 64}}
    write(tmp_path / "e.npz", replace(rebuilt, about=replace(rebuilt.about, code_sha256="0" * 64), provenance=made))
    found = check(Request(tmp_path / "e.npz")).verification
    lines = {line.what: line for line in found.lines}
    assert lines["replayed: code"].is_ok is False
    assert lines["replayed: code"].recomputed == "other code: not comparable; verify it with the version that made it"
    assert lines["replayed: searches, coverage"].is_ok is True, "all else is compared too"
    assert found.not_compared == ()
    assert exit_code(found) == DIFFERS


def test_it_shows_how_the_evidence_came_to_be(file):
    outcome = read(file).outcome
    record = Making().record(is_anonymous=False)
    write(file, replace(outcome, provenance=record))
    done = _verify(file)
    assert done.exit_code == PARTLY, done.output
    assert f" by {record['user']} on {record['host']}" in done.stdout
    for word in (record["processor"], record["system"], f"numpy {record['versions']['numpy']}"):
        assert word in done.stdout
    write(file, replace(outcome, provenance=Making().record(is_anonymous=True)))
    assert f" on {record['host']}\n" not in _verify(file).stdout


def test_machines_read_the_same_as_one_object(whole):
    done = _verify(whole, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["is_verified"], found["is_refused"]) == (True, False)
    assert found["verdict"] == "PASS"
    assert found["subject"]["name"] == "block phases"
    assert found["not_compared"] == []
    assert {"hashes", "searches", "planted faults", "power", "setting", "claim"} <= {*found["compared"]}
    assert found["only_the_sender_knows"][0] == "origin (who, when, on which machine)"
    assert found["replayed"] is None
    assert {"what", "stated", "recomputed", "is_ok", "part", "is_claimed"} == set(found["lines"][0])
    content = whole.read_bytes()
    whole.write_bytes(content[:-40] + bytes(40))
    assert _verify(whole, "--json").exit_code == USER_MISTAKE
    whole.write_bytes(content[:-40] + b"0" * 40)
    done = _verify(whole, "--json", "--quick")
    assert done.exit_code == DIFFERS
    found = json.loads(done.stdout)
    assert (found["is_verified"], found["is_refused"]) == (False, True)


def test_it_works_with_nothing_but_the_file(whole, tmp_path):
    """From an empty folder, without a home, and without leaving anything."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    here = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(Path(bandana.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", "from bandana.flows.cli import main; main()", "verify", str(whole)],
        capture_output=True, text=True, cwd=folder, check=False, env=here,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == "run again: block phases\n"
    assert "w.npz: verified" in done.stdout
    assert list(folder.iterdir()) == []


def test_a_changed_number_ends_with_3_and_is_named(file):
    with np.load(file) as archive:
        arrays = {name: archive[name] for name in archive.files}
    description = json.loads(bytes(arrays.pop("description")))
    description["numbers"][0]["measured"] = 0.123
    file.write_bytes(seal(description, arrays))
    done = _verify(file)
    assert done.exit_code == DIFFERS
    assert "e.npz: REFUSED, 2 of" in _first(done)
    assert "lines differ: form: numbers[0].measured; measured: mu. Compared: " in _first(done)
    assert "0.123" in done.stdout


def test_a_changed_byte_ends_with_2_or_3(file):
    content = bytearray(file.read_bytes())
    content[-70] ^= 1
    file.write_bytes(bytes(content))
    done = _verify(file)
    assert done.exit_code in (DIFFERS, USER_MISTAKE)
    assert "SHA-256" in done.output


def test_verified_evidence_that_does_not_speak_for_its_claim_ends_with_1(tmp_path):
    outcome = audited("block doubling", FEW)
    assert outcome.verdict is Verdict.INCONCLUSIVE, "too few replays to catch all faults"
    write(tmp_path / "e.npz", outcome)
    done = _verify(tmp_path / "e.npz")
    assert done.exit_code == FAILURE, done.output
    assert _first(done).startswith("e.npz: verified, ")
    assert "none differs; the verdict is INCONCLUSIVE. Compared: " in _first(done)


@pytest.mark.parametrize(
    ("change", "verdict", "line"),
    [
        ({"caveats": ("a caveat",)}, "INCONCLUSIVE", "replayed: caveats"),
        ({"noise_finding": "a finding"}, "FAIL", "replayed: searches, noise finding"),
        ({"counterexample": {"summary": "a story", "lines": []}}, "FAIL", "replayed: searches, counterexample"),
    ],
)
def test_a_finding_that_no_score_shows_decides_the_verdict_and_is_looked_for_again(file, rebuilt, change, verdict, line):
    """With the verdict and the reasons that follow from it: only a new search can tell that there is nothing to find."""
    write(file, replace(read(file).outcome, **change))
    done = _verify(file)
    assert done.exit_code == PARTLY
    assert f"none differs; the verdict is {verdict}. Compared: " in _first(done)
    write(file, replace(rebuilt, **change))
    assert _named(file) == {line}


@pytest.mark.parametrize(
    ("part", "changed", "line"),
    [
        ("subject", {"kind": "catalog", "name": "my-ucb tight"}, "subject"),
        ("subject", {"kind": "catalog", "name": "adar-ucb tight eps=0.1"}, "subject: level"),
        ("claim", {"source": "another paper"}, "claim: theorem and source"),
        ("claim", {"theorem": "Theorem 99"}, "claim: theorem and source"),
        ("claim", {"unit": "all data of all people"}, "claim: unit"),
        ("claim", {"covers": "the output"}, "claim: statement"),
        ("controls", (), "planted faults"),
    ],
)
@pytest.mark.parametrize("code", ["0" * 64, "here"])
def test_words_other_than_the_catalogs_are_refused_whatever_code_is_stated(file, part, changed, line, code):
    """No field of a file decides what is compared: another version's words are verified with that version."""
    outcome = read(file).outcome
    if code == "here":
        made = Making().record(is_anonymous=True)
        outcome = replace(outcome, provenance=made, about=replace(outcome.about, code_sha256=sources()))
    forged = replace(outcome.claim, **changed) if part == "claim" else changed
    write(file, replace(outcome, **{part: forged}))
    assert line in _named(file)


@pytest.mark.parametrize("kind", ["missing", "text", "folder"])
def test_what_is_no_evidence_ends_with_2(tmp_path, kind):
    path = tmp_path / "x.npz"
    if kind == "text":
        path.write_text("hello")
    if kind == "folder":
        path.mkdir()
    done = _verify(path)
    assert done.exit_code == USER_MISTAKE
    assert "x.npz: " in done.stderr
    assert "Traceback" not in done.output
