"""Every later version reads what 1.0 wrote: evidence, reports, baselines, specs and stored results, kept in `tests/data`."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bandana.audits.evidence import read
from bandana.audits.reporting import validate
from bandana.flows.cli import app
from bandana.flows.folder.store import Store
from bandana.flows.results import baseline
from bandana.flows.spec.spec import load_spec

KEPT = Path(__file__).parent / "data" / "written_by_1.0"
SUITE = KEPT / "suites" / "small"
EVIDENCE = {
    KEPT / "own" / "noisy-count.evidence.npz": "NOT REFUTED",
    SUITE / "evidence" / "adar-ucb-tight-eps-1.npz": "PASS",
}


@pytest.mark.parametrize("place", EVIDENCE, ids=lambda place: place.stem)
def test_evidence_is_read_with_its_claim_and_verdict(place):
    outcome = read(place).outcome
    assert outcome.verdict == EVIDENCE[place]
    for three in outcome.numbers.values():
        assert three.claimed >= three.measured


def test_evidence_of_own_code_is_verified(tmp_path):
    pytest.importorskip("bandana.flows.annexes.compliance")
    place = Path(shutil.copy(next(iter(EVIDENCE)), tmp_path))
    done = CliRunner().invoke(app, ["verify", str(place)])
    assert done.exit_code == 4, done.output  # partly compared: nothing differs, and the code itself is not here
    changed = bytearray(place.read_bytes())
    changed[len(changed) // 2] ^= 1
    place.write_bytes(bytes(changed))
    assert CliRunner().invoke(app, ["verify", str(place)]).exit_code in (2, 3)


@pytest.mark.parametrize("place", [SUITE / "report.json", KEPT / "own" / "noisy-count.json"], ids=lambda place: place.stem)
def test_reports_keep_their_schema(place):
    document = json.loads(place.read_text("utf-8"))
    validate(document)
    assert document["schema"].startswith("bandana/report/")


def test_spec_and_baseline_are_read():
    spec = load_spec(SUITE / "spec.yaml")
    kept = baseline.read(SUITE / "baseline.json")
    assert (spec.name, spec.horizon, spec.replications) == ("small", 200, 6)
    assert kept is not None
    assert json.loads(kept.to_json()) == json.loads((SUITE / "baseline.json").read_text("utf-8"))


def test_stored_results_are_whole():
    store = Store(KEPT / "results")
    for kind, count in (("benchmark", 10), ("audit", 1)):
        keys = [path.stem for path in (KEPT / "results" / kind).glob("*.npz")]
        assert len(keys) == count
        for key in keys:
            if kind == "benchmark":
                arrays, about = store.load(kind, key)
                assert arrays
                assert about
            else:
                assert read(KEPT / "results" / kind / f"{key}.npz").outcome.verdict == "PASS"
