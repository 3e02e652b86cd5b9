"""The documents of a suite: what is in the store, of the whole experiment and of each audit, in the formats asked for."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import yaml
from small_spec import SMALL

from bandana.audits.reporting import render_pdf, validate
from bandana.audits.reporting.sections.strength import Promise, strength_of
from bandana.flows.cells.audits import audit_cell
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.results.audit_report import FORMATS, write_document
from bandana.flows.results.report import regret_tables
from bandana.flows.results.report_document import assemble, audit_documents, people_of, write_appendix
from bandana.flows.spec.spec import DeploymentSpec, parse_spec, standing_alone


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """A spec on public and on private data, with its results; (spec, text, store)."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "people.csv").write_text("stay,go\n" + "0.9,0.4\n0.8,0.3\n" * 250)
    tree = yaml.safe_load(SMALL)
    tree["environment"] = [tree["environment"], {"kind": "table", "path": "people.csv"}]
    tree["audit"] |= {"replays": 2000, "examples": 10}
    text = yaml.safe_dump(tree)
    spec, store = parse_spec(text, "small.yaml", folder), Store(folder / "results")
    for cell in cells_of(spec):
        for block in cell.blocks():
            benchmark_block(block, store)
        if cell.is_private:
            audit_cell(cell, store)
    return spec, text, store


@pytest.fixture(scope="module")
def document(suite):
    found = assemble(Plan.of(suite[0]), *suite[1:])
    validate(json.loads(json.dumps(found, allow_nan=False)))
    return found


def test_environments_and_cells_belong_together(document):
    assert [e["label"] for e in document["environments"]] == ["bernoulli", "people.csv"]
    assert [cell["environment"] for cell in document["benchmark"]["cells"]] == ["bernoulli"] * 2 + ["people.csv"] * 2


def test_private_regret_is_withheld_and_says_so(document):
    shown = [cell["final_mean"] is not None for cell in document["benchmark"]["cells"]]
    assert shown == [True, True, False, False]
    assert "Regret on people.csv is withheld" in document["benchmark"]["withheld"]
    assert document["environments"][1]["means"] == []


def test_a_bound_stands_beside_the_regret_and_is_withheld_with_it(document):
    for cell in document["benchmark"]["cells"]:
        if cell["environment"] == "people.csv" or cell["role"] != "algorithm":
            assert cell["bound"] is cell["bound_text"] is None
        else:
            assert (np.array(cell["mean"]) <= np.array(cell["bound"]) + 1e-9).all()
            assert "Theorem" in cell["bound_text"]


def test_fixed_rows_have_no_bound_even_where_all_may_be_shown(suite):
    spec, _, _ = suite
    table = spec.environment[1].model_copy(update={"public": ("values",)})
    public = spec.model_copy(update={"environment": [table]})
    assert all(cell.regret_bound(np.array([100])) is None for cell in cells_of(public))


def test_the_budget_never_exceeds_the_claim(document):
    for cell in document["benchmark"]["cells"]:
        if cell["epsilon"] is None:
            assert cell["mu_claimed"] is cell["mu_spent"] is None
        else:
            assert cell["mu_spent"] == sorted(cell["mu_spent"])
            assert 0 < cell["mu_spent"][-1] <= cell["mu_claimed"] * (1 + 1e-9)


def test_each_audit_has_a_power_curve_through_its_smallest_factor(document):
    for entry in document["audits"]:
        curve, smallest = entry["power"], entry["measurement"]["smallest_factor"]
        assert curve["caught"][curve["factors"].index(smallest)] >= 0.9


def test_each_audit_is_a_document_of_its_own(suite, document):
    spec = suite[0]
    singles = audit_documents(Plan.of(spec), document)
    assert [f"audits/{name}.html" for name in singles] == [entry["path"] for entry in document["related"]]
    for entry, single in zip(document["audits"], singles.values(), strict=True):
        validate(single)
        assert single["kind"] == "audit"
        assert single["audits"] == [entry]
        assert single["benchmark"] is None
        assert len(single["environments"]) == 1
        (file,) = single["evidence"]["files"]
        assert file in document["evidence"]["files"]
        assert single["related"][0]["path"] == "../report.html"


def test_a_report_names_files_and_not_where_they_lie(tmp_path):
    """Also if it is made again from the spec in the data folder, in which places are absolute."""
    folder = tmp_path / "home of änn" / ("long " * 20).strip()
    folder.mkdir(parents=True)
    (folder / "people.csv").write_text("stay,go\n" + "0.9,0.4\n" * 500)
    tree = yaml.safe_load(SMALL) | {"environment": {"kind": "table", "path": "people.csv"}, "baseline": "before/b.json"}
    text = yaml.safe_dump(tree)
    spec, store = parse_spec(text, "small.yaml", folder), Store(tmp_path / "results")
    for block in cells_of(spec)[0].blocks():
        benchmark_block(block, store)
    again = standing_alone(spec, text)
    assert yaml.safe_load(again)["environment"]["path"] == str(folder / "people.csv")
    for written in (text, again):
        shown = assemble(Plan.of(parse_spec(written, "small.yaml", folder)), written, store)["spec"]
        assert "people.csv" in shown
        assert "home of" not in shown


def test_the_same_results_make_the_same_document(suite, document):
    assert assemble(Plan.of(suite[0]), *suite[1:]) == document


def test_links_lead_to_a_format_that_is_written(suite):
    spec, text, store = suite
    only = spec.model_copy(update={"report": spec.report.model_copy(update={"formats": ["json", "pdf"]})})
    found = assemble(Plan.of(only), text, store)
    assert all(entry["path"].endswith(".pdf") for entry in found["related"])


def test_formats_limit_what_is_written_and_older_files_go(tmp_path, document):
    single = document | {"benchmark": None, "audits": [], "regressions": None}
    stem = tmp_path / "audits" / "tight-eps-0.1"
    assert set(write_document(single, stem, FORMATS)) == set(FORMATS)
    assert sorted(path.name for path in stem.parent.iterdir()) == [f"{stem.name}.{kind}" for kind in sorted(FORMATS)]
    assert write_document(single, stem, ["json"]) == {"json": stem.parent / f"{stem.name}.json"}
    assert [path.name for path in stem.parent.iterdir()] == [f"{stem.name}.json"]


def test_the_table_of_regret_has_everything_at_the_end_and_the_curves_everything_else(document):
    tables = regret_tables(document)
    cells, grid = document["benchmark"]["cells"], document["benchmark"]["grid"]
    assert [row["label"] for row in tables["regret"]] == [cell["label"] for cell in cells]
    for row, cell in zip(tables["regret"], cells, strict=True):
        for name, key in (("mu_spent", "mu_spent"), ("final_bound", "bound"), ("final_lower_bound", "lower_bound")):
            assert row[name] == (None if cell[key] is None else cell[key][-1])
        if cell["epsilon"] is not None:
            assert row["mu_spent"] > 0
            assert row["promise_epsilon"] == cell["promise"]["epsilon"] > 0
            assert row["noise"].startswith("secure" if row["environment"] == "people.csv" else "reproducible")
        if cell["mean"] is not None:
            assert row["final_quantile_10"] <= row["final_quantile_50"] <= row["final_quantile_90"]
        assert not any(isinstance(value, list | dict) for value in row.values())
    points = tables["regret-curves"]
    assert len(points) == len(cells) * len(grid)
    assert [point["round"] for point in points[: len(grid)]] == grid
    assert [point["mean"] for point in points[: len(grid)]] == cells[0]["mean"]
    assert all(point["mean"] is None for point in points if point["label"].endswith("people.csv"))
    assert regret_tables(document | {"benchmark": None}) == {}


def test_environments_name_whose_data_they_are(document):
    assert [each["data"] for each in document["environments"]] == ["simulated", "private"]


def test_declaring_a_deployment_changes_the_report_and_no_number(suite, document):
    spec, text, store = suite
    declared = DeploymentSpec(curator="An office", purpose="Reminders", people=400)
    found = assemble(Plan.of(spec.model_copy(update={"deployment": declared})), text, store)
    validate(json.loads(json.dumps(found, allow_nan=False)))
    assert found["deployment"]["curator"] == "An office"
    assert found["deployment"]["retention"] is None
    assert found["people"] == {"count": 400, "source": "declared by the operator"}
    assert found | {"deployment": None, "people": document["people"]} == document


def test_the_demo_has_one_strong_one_moderate_and_one_weak_promise_to_the_people_in_its_data():
    text = files("bandana.flows").joinpath("demo.yaml").read_text()
    plan = Plan.of(parse_spec(text, "demo.yaml", Path()))
    people, delta = people_of(plan), plan.spec.audit.delta
    assert people["count"] == 2834
    assert "the 100,000 rounds of a run are simulated, each drawn from these people" in people["source"]
    made = [Promise(cell.name, cell.claim().epsilon_at(delta), delta, None, "", "") for cell in plan.private]
    assert [strength_of(promise, people["count"]).word for promise in made] == ["strong", "moderate", "weak"]
    assert delta * plan.spec.horizon <= 0.1, "far below 1/n, whether people or rounds are counted"


def test_people_are_the_rounds_where_each_is_a_person_of_its_own(suite):
    people = people_of(Plan.of(suite[0]))
    assert (people["count"], people["source"][:21]) == (suite[0].horizon, "the rounds of one run")
    assert all(environment.n_people is None for environment in Plan.of(suite[0]).environments)


def test_the_pdf_with_its_appendix_lies_beside_the_four_pages_and_is_longer(suite, document):
    spec, text, store = suite
    place = write_appendix(spec, text, DataFolder(store.path("benchmark", "any").parents[2]))
    assert place.parent.name == spec.name
    assert place.read_bytes().startswith(b"%PDF")
    assert len(place.read_bytes()) > len(render_pdf(document))
