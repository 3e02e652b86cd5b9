"""The refutation campaign: its arithmetic, its cases, and one whole case on a tiny library."""

import importlib
import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from tiny import CASE, write
from typer.testing import CliRunner

from bandana.flows.annexes.anything.refutations import playing
from bandana.flows.annexes.anything.refutations.campaign import (
    CONFIDENCE,
    FAILED,
    confidence_of_each,
    coverage_of,
    n_audits,
    surprises,
)
from bandana.flows.annexes.anything.refutations.case import MEASURED, read, read_all
from bandana.flows.annexes.anything.refutations.serving import WORKER
from bandana.flows.cli import app
from bandana.flows.commands.options import FAILURE, USER_MISTAKE
from bandana.flows.texts.mistakes import SpecError

CAMPAIGN = Path(__file__).parents[5] / "experiments" / "refutations"
CASES = read_all(CAMPAIGN)


@pytest.fixture
def refute(tmp_path, monkeypatch):
    monkeypatch.setenv("BANDANA_DATA", str(tmp_path / "bandana_data"))

    def call(*words):
        return CliRunner().invoke(app, ["refute", "--folder", str(tmp_path / "cases"), *words])

    return call


# --- arithmetic -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 105, 10_000])
def test_the_failure_probabilities_of_all_bounds_add_up_to_the_campaigns(n):
    assert n * (1 - confidence_of_each(n)) == pytest.approx(1 - CONFIDENCE, rel=1e-9)


def test_no_bound_has_no_confidence():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        confidence_of_each(0)


def _document(library, *audits):
    return {"library": library, "audits": [
        {"mechanism": mechanism, "role": role, "verdict": verdict, "reasons": ["why"]} for mechanism, role, verdict in audits
    ]}  # fmt: skip


def test_a_mechanism_counts_once_and_a_fixed_version_not_at_all():
    found = coverage_of([
        _document("a", ("x", "defect", "FAIL"), ("x", "fixed", "NOT REFUTED"), ("y", "search", "NOT REFUTED")),
        _document("a", ("x", "search", "NOT REFUTED"), ("z", "search", "INCONCLUSIVE"), ("w", "fixed", "FAIL")),
        _document("b", ("x", "search", "NOT REFUTED"), ("y", "search", FAILED)),
    ])  # fmt: skip
    assert (found.libraries, found.refuted, found.kept, found.open, found.n_audits) == (2, 1, 2, 2, 8)
    assert str(found) == "5 mechanisms of 2 libraries and papers: 1 refuted, 2 not refuted, 2 open"


def test_what_contradicts_a_case_is_named():
    document = _document(
        "a", ("x", "defect", "FAIL"), ("y", "defect", "NOT REFUTED"), ("y", "fixed", "FAIL"), ("z", "search", "FAIL"),
        ("w", "search", FAILED), ("v", "fixed", "INCONCLUSIVE"),
    )  # fmt: skip
    assert surprises(document) == ["y (defect): NOT REFUTED; why", "y (fixed): FAIL; why", f"w (search): {FAILED}; why"]


# --- cases ------------------------------------------------------------------------------------------------------------


def test_a_grid_gives_an_audit_for_each_combination_with_its_claim(tmp_path):
    text = CASE.replace("grid: {epsilon: [1.0, 2.0]}", "grid: {epsilon: [1.0, 2.0], more: [a, b]}")
    planned = read(write(tmp_path, text)).planned
    assert [(one.claim, one.parameters.get("more")) for one in planned] == [
        ("stated", None), ("pure(epsilon=1.0)", "a"), ("pure(epsilon=1.0)", "b"), ("pure(epsilon=2.0)", "a"),
        ("pure(epsilon=2.0)", "b"),
    ]  # fmt: skip
    assert len({one.name for one in planned}) == 5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("role: defect", "role: broken", "audits[0].role"),
        ("packages: none", "packages: other", "packages must be one of none, got 'other'"),
        ("none: []", "none: [numpy>=2]", "numpy>=2"),
        ("library: tiny", "librari: tiny", "librari"),
        ("runs: 1000", "runs: 0", "runs"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_case_is_named(tmp_path, old, new, message):
    with pytest.raises(SpecError) as raised:
        read(write(tmp_path, CASE.replace(old, new, 1)))
    assert message in str(raised.value)
    assert "case.yaml" in str(raised.value)


@pytest.mark.parametrize("name", CASES)
def test_cases_of_the_campaign_say_what_they_must(name):
    case = CASES[name]
    roles = {one.role for one in case.planned}
    assert name.startswith("search-") == (roles == {"search"})
    if "defect" in roles:
        assert case.cause
        assert case.remedy
    labels = [(one.name, one.packages, one.release, str(one.data), str(one.neighbor)) for one in case.planned]
    assert len(set(labels)) == len(labels)
    assert all(link.startswith("https://github.com/") for link in case.reported)
    assert f"`refutations/{name}/case.yaml`" in (CAMPAIGN.parent / "README.md").read_text(encoding="utf-8")


def test_recorded_results_are_those_of_this_campaign():
    """All bounds were taken at the level of as many audits as there are, with one seed, and nothing is a surprise."""
    documents = {name: json.loads((CAMPAIGN / name / MEASURED).read_text(encoding="utf-8")) for name in CASES}
    assert {document["n_audits"] for document in documents.values()} == {n_audits(CASES)}
    assert len({document["seed"] for document in documents.values()}) == 1
    for name, case in CASES.items():
        entries = documents[name]["audits"]
        assert [(entry["mechanism"], entry["role"], entry["parameters"]) for entry in entries] == [
            (one.mechanism, one.role, one.parameters) for one in case.planned
        ]
        assert [entry["packages"] for entry in entries] == [case.packages[one.packages] for one in case.planned]
        assert not surprises(documents[name])
        for entry in entries:
            assert 1 - entry["confidence"] == pytest.approx((1 - CONFIDENCE) / n_audits(CASES))
            assert (entry["measured"] > entry["claimed"]) == (entry["verdict"] == "FAIL")
    assert sum(any(one.role == "defect" for one in case.planned) for case in CASES.values()) >= 10


# --- environments -----------------------------------------------------------------------------------------------------


def test_an_environment_is_made_once_and_holds_nothing_of_this_product(tmp_path):
    python = playing.python_with([], tmp_path)
    assert playing.python_with([], tmp_path) == python
    assert len(list(tmp_path.iterdir())) == 1
    tried = subprocess.run([python, "-c", "import numpy"], capture_output=True, text=True, check=False)
    assert "No module named 'numpy'" in tried.stderr


def test_a_package_that_cannot_be_installed_is_named(tmp_path):
    with pytest.raises(SpecError, match=r"packages: .*no-such-package==1\.0: "):
        playing.python_with(["./no-such-package==1.0"], tmp_path)
    assert not list(tmp_path.glob("*/installed.json"))


# --- the worker -------------------------------------------------------------------------------------------------------


def test_the_worker_keeps_the_line_protocol(tmp_path):
    place = write(tmp_path)
    words = [sys.executable, str(WORKER), str(place / "program.py"), "release", json.dumps({"name": "honest", "epsilon": 1})]
    done = subprocess.run(words, input="[0, 1]\n3\n4\n3\n", capture_output=True, text=True, check=True)
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert first == third != second


def test_an_exception_is_an_output(tmp_path):
    place = write(tmp_path)
    words = [
        sys.executable,
        str(WORKER),
        str(place / "program.py"),
        "release",
        json.dumps({"name": "failing", "epsilon": 1}),
    ]
    done = subprocess.run(words, input="[0, 1]\n3\n", capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == "raised ValueError"


# --- the whole --------------------------------------------------------------------------------------------------------


def test_a_case_is_played_in_its_own_packages_at_the_campaigns_level(tmp_path, refute):
    place = write(tmp_path / "cases")
    done = refute("--record")
    assert done.exit_code == 0, done.output
    assert "3 audits in 1 cases; all bounds hold together at 95% confidence, each at 0.983333" in done.output
    assert "2 mechanisms of 1 libraries and papers: 1 refuted, 1 not refuted" in done.output
    document = json.loads((place / MEASURED).read_text())
    assert [entry["verdict"] for entry in document["audits"]] == ["FAIL", "NOT REFUTED", "NOT REFUTED"]
    assert [entry["claimed"] for entry in document["audits"]] == [1.0, 1.0, 2.0]
    kept = tmp_path / "bandana_data" / "refutations" / "tiny"
    assert json.loads((kept / MEASURED).read_text()) == document
    for entry in document["audits"]:
        assert sha256((kept / entry["evidence"]).read_bytes()).hexdigest() == entry["evidence_sha256"]
    checked = CliRunner().invoke(app, ["verify", str(kept / document["audits"][0]["evidence"])])
    assert "none differs; the verdict is FAIL" in checked.output, checked.output


def test_a_case_that_is_contradicted_ends_with_1(tmp_path, refute):
    alone = CASE[: CASE.index("  - {mechanism: honest")]
    write(tmp_path / "cases", alone.replace("name: broken", "name: honest"))
    done = refute("tiny", "--json")
    assert done.exit_code == FAILURE
    assert json.loads(done.stdout)[0]["audits"][0]["verdict"] == "NOT REFUTED"


def test_code_that_does_not_start_is_one_line(tmp_path, refute):
    write(tmp_path / "cases", program="import no_such_library\n")
    done = refute()
    assert done.exit_code == FAILURE
    assert "not as the case says: tiny: broken (defect): NOT AUDITED; " in done.output
    assert "No module named 'no_such_library'" in done.output


@pytest.mark.parametrize(
    ("words", "message"), [(("tini",), "no case 'tini'"), ((), "holds no case: a case is a folder with case.yaml")]
)
def test_a_wrong_name_and_an_empty_folder_are_one_line(tmp_path, refute, words, message):
    if words:
        write(tmp_path / "cases")
    done = refute(*words)
    assert done.exit_code == USER_MISTAKE
    assert message in done.output


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["opendp-randomized-response", "tabular-rl-noise-stream", "self-play-local-privatizer"])
def test_a_recorded_refutation_is_made_again(name, tmp_path, monkeypatch):
    """In `make test`: a whole case on a tiny library."""
    monkeypatch.setenv("BANDANA_DATA", str(tmp_path / "bandana_data"))
    done = CliRunner().invoke(app, ["refute", name, "--folder", str(CAMPAIGN), "--seed", "1"])
    assert done.exit_code == 0, done.output


def test_the_page_shows_the_recorded_results(monkeypatch):
    monkeypatch.syspath_prepend(str(CAMPAIGN.parents[1] / "docs"))
    table = importlib.import_module("refutations_table")
    page = table.PAGE.read_text(encoding="utf-8")
    assert table.filled(page) == page
    rows = table.searched(table.read_all(CAMPAIGN), table.documents())
    assert table.SEARCHED.read_text(encoding="utf-8") == table.text_of(rows)
    assert all(f"| `{name}` |" in page for name in CASES if not name.startswith("search-"))
    assert table.FIGURE.stat().st_size < 80_000


def test_nothing_is_recorded_in_installed_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["refute", "--record"])
    assert done.exit_code == 2
    assert "--record: these cases are installed; copy them" in done.stderr
