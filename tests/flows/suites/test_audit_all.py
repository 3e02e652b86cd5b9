"""`bandana audit-catalog`: every subject is kept as evidence, tracked, and shown in one report."""

import json
from dataclasses import replace

import pytest
from whole_evidence import assert_follows_from_its_scores

from bandana.audits.outcome import Effort
from bandana.audits.reporting import validate
from bandana.audits.subjects import EFFORT as USUAL
from bandana.audits.subjects import subjects
from bandana.flows.cells import replays
from bandana.flows.cells.audits import AUDIT
from bandana.flows.folder.store import Store
from bandana.flows.keys.provenance import about_audits
from bandana.flows.suites import audit_all
from bandana.flows.suites.audit_all import SUITE, audit_subject, key_of

EFFORT = Effort(replays=4000, confidence=0.95, delta=1e-5, examples=20, seed=1)


def test_a_subject_is_kept_as_evidence_and_computed_once(tmp_path, monkeypatch):
    store = Store(tmp_path)
    entry, lines = audit_subject("block phases", EFFORT, store)
    assert entry["verdict"] == "PASS", entry["reasons"]
    assert lines[0].startswith("PASS          block phases: all actions are 1-GDP")
    assert_follows_from_its_scores(store.path(AUDIT, key_of("block phases", EFFORT)))
    monkeypatch.setattr(replays, "audit", lambda *_, **__: pytest.fail("computed again"))
    assert audit_subject("block phases", EFFORT, store) == (entry, lines)


@pytest.mark.slow
def test_the_command_audits_what_is_asked_and_writes_one_report(bandana, data, monkeypatch):
    shared = []
    monkeypatch.setattr(audit_all, "cores_each", lambda n_audits: shared.append(n_audits) or 1)
    done = bandana(
        "audit-catalog", "--only", "block phases", "--only", "adar-ucb tight", "--replays", "4000", "--examples", "20",
        "--executor", "local", "--data", data,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.stdout.rstrip().endswith("2 PASS, 0 FAIL, 0 INCONCLUSIVE")
    assert shared == [2], "cores are shared by the audits that are left to do"
    suite = data / "suites" / SUITE
    document = json.loads((suite / "report.json").read_text())
    validate(document)
    assert [entry["label"] for entry in document["audits"]] == ["adar-ucb tight", "block phases"]
    again = 'bandana audit-catalog --only "adar-ucb tight" --only "block phases" --replays'
    assert document["commands"][0].startswith(again)
    assert (suite / "report.pdf").read_bytes().startswith(b"%PDF")
    for name in ("adar-ucb-tight", "block-phases"):
        assert_follows_from_its_scores(suite / "evidence" / f"{name}.npz")
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{data}/mlflow/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name(SUITE).experiment_id], "tags.role = 'cell'")
    by_name = {run.info.run_name: run.data for run in runs}
    assert set(by_name) == {"adar-ucb tight", "block phases"}
    for found in by_name.values():
        metrics = found.metrics
        assert metrics["privacy/mu_claimed"] >= metrics["privacy/mu_accounted"] >= metrics["audit/mu_measured"] > 0.8
        assert metrics["audit/controls_caught"] == metrics["audit/controls_planted"] > 0
        assert 1 < metrics["audit/smallest_factor"] < 1.3
        assert found.tags["verdict"] == "PASS"


@pytest.mark.parametrize(("label", "rounds", "times"), [("lin-priv tight", 31, 1.5), ("dp-ucb tight", 64, 1.0)])
def test_a_subject_whose_faults_need_other_sizes_gets_them(label, rounds, times, monkeypatch):
    monkeypatch.setattr(replays, "_audit", lambda subject, effort: effort)
    subject = subjects()[label]()
    assert subject.trial.table.n_users == rounds
    assert replays.audit_of_subject(subject, EFFORT, about_audits) == replace(EFFORT, replays=round(4000 * times))


def test_all_audits_of_the_catalog_hold_together():
    assert len(subjects()) * (1 - USUAL.confidence) <= 0.05
