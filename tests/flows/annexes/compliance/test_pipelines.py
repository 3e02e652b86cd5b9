"""Verdicts for other people's pipelines: SARIF, in-toto, annotations, the GitHub action and the pre-commit hooks.

GitHub itself cannot run here: the action's shell steps run in a folder of their own, and what it writes is checked against
the schema of SARIF. The predicate of in-toto has no JSON schema: its fields are compared with its specification by hand.
"""

import copy
import json
import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import jsonschema
import pytest
import yaml
from documentation import ROOT
from typer.testing import CliRunner

from bandana.flows.annexes.compliance import pipelines
from bandana.flows.cli import app

DATA = ROOT / "tests" / "data"
REPORT = DATA / "written_by_1.0" / "own" / "noisy-count.json"
SCHEMA = json.loads((DATA / "sarif-schema-2.1.0.json").read_text("utf-8"))
ACTION = yaml.safe_load((ROOT / "deploy" / "action" / "action.yml").read_text("utf-8"))
BROKEN = "def count(data, seed):\n    return sum(data)\n"


def report(verdict="NOT REFUTED", **changes):
    document = json.loads(REPORT.read_text("utf-8"))
    document["audits"][0] |= {"verdict": verdict, **changes}
    return document


@pytest.mark.parametrize(
    ("verdict", "level", "kind", "result"),
    [
        ("PASS", "none", "pass", "PASSED"),
        ("NOT REFUTED", "none", "pass", "PASSED"),
        ("INCONCLUSIVE", "warning", "fail", "WARNED"),
        ("FAIL", "error", "fail", "FAILED"),
    ],
)
def test_each_verdict_has_its_words_in_both_formats(verdict, level, kind, result):
    document = report(verdict)
    written = pipelines.sarif([document])
    jsonschema.validate(written, SCHEMA)
    one = written["runs"][0]["results"][0]
    assert (one["level"], one["kind"]) == (level, kind)
    assert one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "noisy.py"
    said = pipelines.in_toto({REPORT: document})["predicate"]
    assert said["result"] == result
    assert sum(len(said[name]) for name in ("passedTests", "warnedTests", "failedTests")) == 1


def test_a_planted_mistake_is_seen_by_the_schema():
    written = pipelines.sarif([report()])
    for change in ({"level": "bad"}, {"message": {}}, {"kinds": "pass"}):
        wrong = copy.deepcopy(written)
        wrong["runs"][0]["results"][0] |= change
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, SCHEMA)


def test_the_statement_names_evidence_and_report_by_their_hashes():
    statement = pipelines.in_toto({REPORT: report()})
    assert (statement["_type"], statement["predicateType"]) == (
        "https://in-toto.io/Statement/v1", "https://in-toto.io/attestation/test-result/v0.1",
    )  # fmt: skip
    evidence = REPORT.with_name("noisy-count.evidence.npz")
    assert statement["subject"] == [{"name": evidence.name, "digest": {"sha256": sha256(evidence.read_bytes()).hexdigest()}}]
    configuration = {"name": REPORT.name, "digest": {"sha256": sha256(REPORT.read_bytes()).hexdigest()}}
    assert statement["predicate"]["configuration"] == [configuration]


def test_an_annotation_is_one_line_however_its_text_is_written():
    entry = report("FAIL", label="a,b:c.py:f", coverage=["100 %", "two"], reasons=["why"])["audits"][0]
    assert pipelines.annotation(entry) == "::error file=a%2Cb%3Ac.py,line=1::100 %25%0Atwo%0Awhy"
    catalog = report(label="adar-ucb tight", coverage=["x"])["audits"][0]
    assert pipelines.annotation(catalog) == "::notice::x"


def test_the_command_refuses_what_is_no_report(tmp_path):
    (tmp_path / "x.json").write_text('{"schema": "bandana/leaderboard/5"}')
    (tmp_path / "y.json").write_text(json.dumps(report("PERHAPS")))
    for name, words in (("x.json", "is no report"), ("y.json", "PERHAPS"), ("z.json", "cannot be read")):
        done = CliRunner().invoke(app, ["ci", str(tmp_path / name)])
        assert done.exit_code == 2
        assert words in done.stderr


def step(name):
    return next(each for each in ACTION["runs"]["steps"] if each["name"] == name)


def test_the_action_is_composite_and_names_only_its_own_inputs():
    assert ACTION["runs"]["using"] == "composite"
    for each in ACTION["runs"]["steps"]:
        assert ("run" in each) != ("uses" in each)
        assert "shell" in each or "uses" in each
        assert "${{" not in each.get("run", "")  # inputs reach the shell as variables, never as code
    used = set(re.findall(r"inputs\.([a-z]+)", (ROOT / "deploy" / "action" / "action.yml").read_text("utf-8")))
    assert used == set(ACTION["inputs"])


def played(name, folder, **inputs):
    """A shell step of the action, in a folder of its own."""
    given = {key: about["default"] for key, about in ACTION["inputs"].items()} | inputs
    each = step(name)
    variables = {key: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: given[m[1]], text) for key, text in each["env"].items()}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", each["run"]]
    return subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path, **variables},
                          capture_output=True, text=True, timeout=500, check=False)  # fmt: skip


def test_the_action_s_audit_fails_for_a_broken_release_and_writes_all_that_it_promises(tmp_path):
    pytest.importorskip("bandana.flows.annexes.anything")
    (tmp_path / "broken.py").write_text(BROKEN)
    pair = {"data": "[1, 0, 1]", "neighbor": "[1, 0, 0]", "claim": "pure(epsilon=1)"}
    done = played("Audit", tmp_path, release="broken.py:count", **pair)
    assert done.returncode == 1, done.stderr
    assert "::error file=broken.py,line=1::FAIL" in done.stdout
    results = tmp_path / ACTION["inputs"]["results"]["default"]
    jsonschema.validate(json.loads((results / "bandana.sarif").read_text()), SCHEMA)
    assert json.loads((results / "test-result.json").read_text())["predicate"]["result"] == "FAILED"
    assert (results / "own" / "broken-count.evidence.npz").is_file()
    mistake = played("Audit", tmp_path, release="nowhere.py:count", **pair)
    assert mistake.returncode == 2
    assert "nowhere.py cannot be read" in mistake.stderr


def test_the_action_s_tests_run_with_the_plugin(tmp_path):
    test = "def test_it(private):\n    private(count, [1], [0], 'pure(epsilon=1)')\n"
    (tmp_path / "test_it.py").write_text(f"{BROKEN}\n\n{test}")
    done = played("Tests with assert_private", tmp_path, tests="-q -p no:cacheprovider test_it.py")
    assert done.returncode == 1
    assert "FAIL" in done.stdout


def test_the_hooks_are_a_manifest_of_pre_commit(tmp_path):
    clientlib = pytest.importorskip("pre_commit.clientlib", reason="pip install pre-commit")
    hooks = {hook["id"]: hook for hook in clientlib.load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))}
    assert set(hooks) == {"bandana-audit", "bandana-check"}
    (tmp_path / "bad.yaml").write_text("name: x\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for spec, code in ((ROOT / "experiments" / "smoke.yaml", 0), (tmp_path / "bad.yaml", 2)):
        command = f"{hooks['bandana-check']['entry']} {spec}"
        done = subprocess.run(["bash", "-c", command], env={**os.environ, "PATH": path}, capture_output=True, text=True,
                              timeout=300, check=False)  # fmt: skip
        assert done.returncode == code, done.stderr
