"""Alarms: what they tell, and that a failed audit leaves an event, artifacts and a failed flow run behind."""

import json

import pytest
import yaml

from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.results import baseline
from bandana.flows.results.baseline import Baseline
from bandana.flows.results.gate import Row
from bandana.flows.spec.spec import load_spec
from bandana.flows.suites.alarms import (
    AUDIT_FAILED,
    GATE_FAILED,
    AlarmRaised,
    Findings,
    conclude,
    events,
    markdown,
    slug,
    table,
)


def _entry(label, verdict, reasons=("claimed >= accounted >= measured",)):
    main = {"quantity": "mu", "claimed": 1.0, "accounted": 1.0, "measured": 1.25 if verdict == "FAIL" else 0.9}
    return {"label": label, "verdict": verdict, "main": main, "mu": main, "reasons": list(reasons),
            "deterministic": {"counterexample": None}, "spent": "nothing else is told"}  # fmt: skip


_FAILED = _entry("adar-ucb tight eps=1", "FAIL", ["measured exceeds claimed: mu >= 1.25, the claim allows 1"])
_PASSED = _entry("ucb", "PASS")
_WORSE = Row(
    label="ucb", quantity="final regret", baseline=10.0, now=20.0, difference=10.0, low=8.0, high=12.0, is_worse=True
)


def test_nothing_wrong_returns_what_was_done():
    done = {"audits": [_PASSED]}
    assert conclude(Findings("small", [_PASSED], [{**_WORSE, "is_worse": False}]), done) is done


def test_the_summary_counts_what_is_wrong():
    assert Findings("s", [_PASSED, _FAILED], [_WORSE]).summary == (
        "1 of 2 audits did not pass; 1 of 1 comparisons are worse than the baseline"
    )
    assert Findings("s", [_entry("a", "INCONCLUSIVE")]).summary == "1 of 1 audits did not pass"


def test_an_event_names_the_audit_and_carries_the_three_numbers():
    audit, gate = events(Findings("Small.1", [_PASSED, _FAILED], [_WORSE]))
    assert (audit["event"], gate["event"]) == (AUDIT_FAILED, GATE_FAILED)
    assert audit["resource"]["prefect.resource.id"] == "bandana.audit.small-1.adar-ucb-tight-eps-1"
    assert audit["payload"] == {
        "suite": "Small.1", "label": "adar-ucb tight eps=1", "verdict": "FAIL", "quantity": "mu",
        "claimed": 1.0, "accounted": 1.0, "measured": 1.25, "reasons": list(_FAILED["reasons"]),
    }  # fmt: skip
    assert gate["payload"]["rows"] == [_WORSE]


def test_the_page_says_what_broke_why_and_where_the_report_lies():
    text = markdown(Findings("small", [_PASSED, _FAILED], [_WORSE], ["b: gone"], {"html": "/data/report.html"}))
    for words in ("## FAIL: adar-ucb tight eps=1", "measured exceeds claimed", "measured 1.25", "/data/report.html",
                  "ucb: final regret 10 -> 20, +10 [+8, +12]", "b: gone"):  # fmt: skip
        assert words in text
    assert "PASS" not in text


def test_the_table_has_one_row_a_cell():
    rows = table(Findings("small", [_PASSED, _FAILED], [_WORSE]))
    assert [(row["cell"], row["verdict"], row["against the baseline"]) for row in rows] == [
        ("ucb", "PASS", "final regret: 10 -> 20"),
        ("adar-ucb tight eps=1", "FAIL", "not compared"),
    ]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


@pytest.mark.parametrize(("text", "expected"), [("A b=1.5", "a-b-1-5"), ("demo", "demo"), ("...", "suite")])
def test_artifact_keys_are_lower_case_with_dashes(text, expected):
    assert slug(text) == expected


def test_an_alarm_can_be_pickled():
    import pickle

    alarm = pickle.loads(pickle.dumps(AlarmRaised("one audit", {"audits": []})))
    assert (str(alarm), alarm.done) == ("one audit", {"audits": []})


def _server(path, **asked):
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        answer = client._client.post(path, json=asked)
        answer.raise_for_status()
        return answer.json()


def _last_run(folder):
    """The latest suite of this data folder: other tests' suites are kept by the same server."""
    found = _server("/flow_runs/filter", flows={"name": {"any_": ["suite"]}}, sort="START_TIME_DESC")
    return next(run for run in found if run["parameters"]["data"] == str(folder.root))


@pytest.mark.slow
def test_a_failed_audit_fails_the_run_after_its_report(prefect_server, write_spec, tmp_path, monkeypatch):
    """The audit and the report are stand-ins; everything that Prefect keeps is read back from its server."""
    import bandana.flows.suites.suite

    steps = []
    monkeypatch.setattr(bandana.flows.suites.suite, "run_step", lambda step, *_: steps.append(step) or [_PASSED, _FAILED])
    monkeypatch.setattr(
        bandana.flows.suites.suite, "report", lambda *_, **__: steps.append("report") or {"html": "/data/report.html"}
    )
    path = write_spec(name="Alarming")
    folder = DataFolder.open(tmp_path / "data")
    done = bandana.flows.suites.suite.suite(
        Plan.of(load_spec(path)), path.read_text(), str(folder.root), ["audit", "report"]
    )
    assert steps == ["audit", "report"]
    assert done["alarm"] == "1 of 2 audits did not pass"
    assert done["files"] == {"html": "/data/report.html"}
    run = _last_run(folder)
    assert (run["state"]["type"], run["state"]["message"]) == ("FAILED", "Alarming: 1 of 2 audits did not pass")
    found = _server("/artifacts/filter", artifacts={"flow_run_id": {"any_": [run["id"]]}})
    artifacts = {item["key"]: item for item in found}
    assert sorted(artifacts) == ["alarming-alarm", "alarming-cells"]
    assert "measured exceeds claimed" in artifacts["alarming-alarm"]["data"]
    assert "## FAIL: adar-ucb tight rdp(2, 1)" in artifacts["alarming-alarm"]["data"]
    cells = json.loads(artifacts["alarming-cells"]["data"])
    assert [(row["cell"], row["verdict"]) for row in cells][1:] == [("adar-ucb tight rdp(2, 1)", "FAIL")]
    assert [row["verdict"] for row in cells] == ["PASS", "FAIL"]
    wanted = {"event": {"name": [AUDIT_FAILED]}, "resource": {"id": ["bandana.audit.alarming.adar-ucb-tight-eps-1"]}}
    (event,) = _server("/events/filter", filter=wanted)["events"]
    assert event["payload"]["measured"] == 1.25
    assert f"prefect.flow-run.{run['id']}" in [related["prefect.resource.id"] for related in event["related"]]


@pytest.mark.slow
def test_the_gate_fails_a_run_that_is_worse_than_its_baseline(prefect_server, write_spec, tmp_path):
    """The baseline's regret is a quarter of what is in the store; without a baseline the gate passes and says so."""
    import bandana.flows.suites.suite

    path, folder = write_spec(name="gated"), DataFolder.open(tmp_path / "data")
    spec, store = load_spec(path), Store(folder.results)
    for cell in cells_of(spec):
        for block in cell.blocks():
            benchmark_block(block, store)
    done = bandana.flows.suites.suite.suite(Plan.of(spec), path.read_text(), str(folder.root), ["gate"])
    assert done["alarm"] is None
    assert "no baseline yet" in done["gate"]["notes"][0]
    run = _last_run(folder)
    assert (run["state"]["type"], run["name"], sorted(run["tags"])) == ("COMPLETED", "gated", ["bandana", "by-hand"])
    tree = json.loads(baseline.record(Plan.of(spec), "", store).to_json())
    for cell in tree["cells"]:
        for name in ("value", "standard_error", "low", "high"):
            cell["regret"]["final"][name] /= 4
    baseline.write(baseline.place_of(spec, folder), Baseline.model_validate(tree))
    done = bandana.flows.suites.suite.suite(Plan.of(spec), path.read_text(), str(folder.root), ["gate"])
    assert done["alarm"] == "2 of 2 comparisons are worse than the baseline"
    assert _last_run(folder)["state"]["type"] == "FAILED"


def test_flows_of_steps_are_named_by_suite_and_step(write_spec, monkeypatch):
    from bandana.flows.results.report import report
    from bandana.flows.suites import step_flows

    given = []

    class Flow:
        def with_options(self, name, flow_run_name, task_runner):
            return lambda step, suites, data: given.append((name, flow_run_name, step, suites))

    monkeypatch.setattr(step_flows, "_flow", Flow())
    one, two = (Plan.of(load_spec(write_spec(name=name))) for name in ("named", "other"))
    step_flows.run_step("benchmark", [one], "data")
    step_flows.run_step("audit", [one, two], "data")
    step_flows.run_step("audit", [], "data")
    assert given == [
        ("benchmark", "named: benchmark", "benchmark", ["named"]),
        ("audit", "2 suites: audit", "audit", ["named", "other"]),
    ]
    assert report.flow_run_name.format(plan=one) == "named: report"


def test_a_spec_may_name_the_place_of_its_baseline(small_text, tmp_path):
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(yaml.safe_load(small_text) | {"baseline": "kept/baseline.json"}))
    spec = load_spec(tmp_path / "spec.yaml")
    assert baseline.place_of(spec, DataFolder(tmp_path / "data")) == tmp_path / "kept" / "baseline.json"
