"""Whole suites on arms with features and on users who bring their actions: benchmark, audits, tracking and report."""

import json
import re
import shutil

import pytest
import yaml
from small_spec import SMALL_LINEAR, SMALL_SPHERE

from bandana.audits.reporting import validate
from bandana.flows.plan.plan import Plan
from bandana.flows.spec.spec import load_spec

pytestmark = pytest.mark.slow
SHORT = {"rounds": 16, "replays": 1000, "examples": 5}
"""An audit of arms with features that passes with every seed that was tried; one of users needs its own."""
SUITES = {"lines": yaml.safe_dump(yaml.safe_load(SMALL_LINEAR) | {"audit": SHORT}), "spheres": SMALL_SPHERE}
PRIVATE = {"lines": ["adar-gope tight eps=1", "adar-gope pure tight eps=1"], "spheres": ["linucb joint tight eps=4.377"]}
TITLES = {
    "lines": ["adar-gope tight rdp(2, 1)", "adar-gope pure tight pure(1)"],
    "spheres": ["linucb joint tight dp(4.377, 1e-05)"],
}
"""The same cells, as pages and MLflow name them."""


@pytest.fixture(scope="module", params=list(SUITES))
def done(request, bandana, laid_out, tmp_path_factory):
    """(name of the suite, its spec, its data, the report's document), after `bandana run --audit`."""
    folder = tmp_path_factory.mktemp(request.param)
    spec, data = folder / "spec.yaml", folder / "data"
    spec.write_text(SUITES[request.param])
    shutil.copytree(laid_out, data)
    ended = bandana("run", spec, "--audit", "--executor", "local", "--data", data)
    assert ended.exit_code == 0, ended.output
    assert "Traceback" not in ended.stderr
    assert re.search(r"^ +read: replayed [\d,]+ of [\d,]+ (round|episode)s; walked [\d,]+ of ", ended.output, re.MULTILINE)
    return request.param, spec, data, json.loads((data / "suites" / request.param / "report.json").read_text())


def test_the_report_is_valid_and_every_audit_passed(done):
    name, spec, data, document = done
    validate(document)
    assert [cell["label"] for cell in document["benchmark"]["cells"]] == [
        cell.name for cell in Plan.of(load_spec(spec)).played
    ]
    assert [entry["label"] for entry in document["audits"]] == PRIVATE[name]
    assert {entry["verdict"] for entry in document["audits"]} == {"PASS"}
    assert (data / "suites" / name / "report.pdf").read_bytes().startswith(b"%PDF")
    for title in TITLES[name]:
        assert title in (data / "suites" / name / "report.html").read_text()


def test_the_description_says_what_is_played_on(done):
    name, _, _, document = done
    (environment,) = document["environments"]
    if name == "lines":
        assert "3 arms with known features in 2 dimensions, given" in environment["description"]
        assert environment["means"] == [0.75, 0.75, 0.8]
    else:
        assert re.search(r"Assumption 2 does not hold: least eigenvalue 0\.3333", environment["description"])
        assert environment["means"] == []


def test_the_budget_never_exceeds_the_claim(done):
    for cell in done[3]["benchmark"]["cells"]:
        if cell["epsilon"] is None:
            assert cell["mu_claimed"] is cell["mu_spent"] is None
        else:
            assert 0 < cell["mu_spent"][-1] <= cell["mu_claimed"] * (1 + 1e-9)


def test_each_cell_is_tracked_with_its_parameters_and_its_epsilons_side_by_side(done):
    from mlflow import MlflowClient

    name, spec, data, _ = done
    client = MlflowClient(f"sqlite:///{data}/mlflow/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name(name).experiment_id], "tags.role = 'cell'")
    by_name = {run.info.run_name: run.data for run in runs}
    cells = list(Plan.of(load_spec(spec)).played)
    assert sorted(by_name) == sorted(cell.title for cell in cells)
    assert {cell.title for cell in cells if cell.is_private} == set(TITLES[name])
    for cell in cells:
        run = by_name[cell.title]
        assert run.tags["cell"] == cell.name
        assert run.params["algorithm"] == cell.entry.name
        for parameter, value in cell.parameters().items():
            assert type(value)(run.params[parameter]) == value
        assert "regret/final" in run.metrics
        epsilons = [
            run.metrics.get(metric)
            for metric in ("privacy/epsilon_claimed", "privacy/epsilon_accounted", "audit/epsilon_measured")
        ]
        if not cell.is_private:
            assert epsilons == [None] * 3
            continue
        assert run.tags["verdict"] == "PASS"
        assert epsilons[0] == pytest.approx(cell.claim().epsilon_at(1e-5))
        assert epsilons[0] * (1 + 1e-9) >= epsilons[1]
        assert epsilons[1] * (1 + 1e-9) >= epsilons[2] > 0
