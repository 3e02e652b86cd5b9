"""Evidence of releases, functions and local algorithms: nothing differs, and what takes own code is named so."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scores_alone import assert_partly_compared, left_out
from typer.testing import CliRunner

from bandana.audits.audit import audit as audit_trial
from bandana.audits.claims import parse
from bandana.audits.evidence import describe, read, seal, write
from bandana.audits.outcome import Effort, Setup
from bandana.audits.subjects import subjects
from bandana.flows.annexes.compliance.evidence.recompute import verify
from bandana.flows.annexes.compliance.evidence.standalone import PARTLY
from bandana.flows.annexes.compliance.verify import Request, check
from bandana.flows.cli import app
from bandana.flows.commands.options import DIFFERS

EXAMPLES = Path(__file__).parents[4] / "examples"
OWN_CODE = "own code: repeat the audit"
OWN = """\
import numpy as np

def noisy(data, seed, scale=1.0):
    return float(np.sum(data)) + np.random.default_rng(seed).laplace(0, scale)

def too_little(data, seed):
    return noisy(data, seed, 0.25)
"""


@pytest.fixture
def evidence_of(request, tmp_path, monkeypatch):
    """Audits by the command, without first calls, of a process each; the place of the evidence."""
    pytest.importorskip("bandana.flows.annexes.anything")
    request.getfixturevalue("before_forks")
    monkeypatch.setattr("bandana.flows.annexes.anything.releases.apart", lambda *_: None)
    monkeypatch.setattr("bandana.flows.annexes.anything.pairs.stages._FIRST_CALLS", 1e-9)
    monkeypatch.setenv("BANDANA_DATA", str(tmp_path / "bandana_data"))
    (tmp_path / "mine.py").write_text(OWN)

    def call(what, *words, claim, replays=2000):
        name = f"{tmp_path / 'mine.py'}:{what}" if ":" not in what else f"{EXAMPLES}/{what}"
        command = "audit-release" if ":" not in what else "audit-own"
        given = [command, name, *words, "--claim", claim, "--replays", str(replays), "--json"]
        return Path(json.loads(CliRunner().invoke(app, given).stdout)["files"]["evidence"])

    return call


def test_the_evidence_of_a_release_is_verified_and_a_changed_claim_is_not(evidence_of):
    place = evidence_of("too_little", "--data", "[0]", "--neighbor", "[1]", claim="pure(epsilon=1.5)")
    outcome = read(place).outcome
    result = CliRunner().invoke(app, ["verify", str(place), "--json"])
    lines = {line["what"]: line for line in json.loads(result.stdout)["lines"]}
    assert result.exit_code == PARTLY, "nothing differs, and it is own code"
    assert tuple(json.loads(result.stdout)["not_compared"]) == left_out(OWN_CODE)
    measured = outcome.numbers[outcome.main].measured
    assert float(lines["output; the given pair: epsilon"]["recomputed"]) == pytest.approx(measured, rel=1e-9)
    assert lines["verdict"]["recomputed"] == "FAIL"
    milder = replace(outcome, claim=parse("pure(epsilon=100, relation=pair)"))
    place.write_bytes(seal(describe(outcome) | {"claim": describe(milder)["claim"]}, scores(milder)))
    assert CliRunner().invoke(app, ["verify", str(place)]).exit_code == DIFFERS


def scores(outcome):
    pairs = outcome.scores.items()
    return {
        f"{name}_{side}": np.float32(x) for name, pair in pairs for side, x in zip(("data", "neighbor"), pair, strict=True)
    }


@pytest.mark.parametrize(("relation", "users"), [("add-remove", ()), ("user", ("--users", "['a', 'b', 'a', 'b']"))])
def test_evidence_of_searched_neighbors_is_compared(evidence_of, relation, users):
    claim = f"pure(epsilon=1, relation={relation})"
    found = check(Request(evidence_of("noisy", *users, "--data", "[0, 1, 0, 3]", claim=claim))).verification
    assert_partly_compared(found, reason=OWN_CODE)
    assert found.verdict == "FAIL"


@pytest.mark.parametrize(("claim", "is_refuted"), [("gdp(mu=1)", False), ("gdp(mu=0.5)", True)])
def test_evidence_of_an_algorithm_on_a_given_pair_is_compared(evidence_of, tmp_path, claim, is_refuted):
    rewards = np.zeros((16, 2))
    np.save(tmp_path / "a.npy", rewards)
    rewards[3] = 1.0
    np.save(tmp_path / "b.npy", rewards)
    pair = ("--pair", str(tmp_path / "a.npy"), str(tmp_path / "b.npy"))
    found = check(Request(evidence_of("own_bandit.py:bandit", *pair, claim=claim, replays=4000))).verification
    assert_partly_compared(found, reason=OWN_CODE)
    assert (found.verdict == "FAIL") is is_refuted


@pytest.mark.parametrize(("name", "verdict"), [("play", "NOT REFUTED"), ("leaky", "FAIL")])
def test_evidence_of_a_function_is_compared(evidence_of, name, verdict):
    place = evidence_of(f"black_box.py:{name}", "--rounds", "16", claim="gdp(mu=1, relation=reward)", replays=3000)
    assert_partly_compared(found := verify(place))
    assert found.verdict == verdict


def test_evidence_of_a_local_audit_agrees_with_its_scores(tmp_path):
    subject, effort = subjects()["block local"](), Effort(replays=8000, confidence=0.95, delta=1e-5, examples=20, seed=1)
    about = Setup(probes=subject.trial.probes, seed=effort.seed, code_sha256="0" * 64)
    named = {"kind": "catalog", "name": subject.label}
    write(tmp_path / "e.npz", audit_trial(subject.trial, subject.controls[:1], effort, subject=named, about=about))
    found = verify(tmp_path / "e.npz")
    assert_partly_compared(found, "claim (needs the catalog)")
    assert sum(line.what.startswith("one_run; ") for line in found.lines) == 4
