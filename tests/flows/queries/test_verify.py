"""`bandana verify`: a table, one sentence, and an exit code; the algorithm is not needed."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.tables import random_table
from bandana.algorithms.problem import Problem
from bandana.audits.audit import audit
from bandana.audits.contents import numbers_sha256
from bandana.audits.evidence import read, seal, write
from bandana.audits.external.white_box import with_places
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.outcome import Effort
from bandana.audits.trial import Audited, Trial
from bandana.flows.cli import app
from bandana.flows.commands.options import DIFFERS, FAILURE, USER_MISTAKE
from bandana.flows.keys.provenance import Making
from bandana.privacy_core import Interval, RenyiDP

UNIT = Interval(0.0, 1.0)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("evidence") / "e.npz"
    entry = find("adar-ucb")
    settings = entry.settings(Problem(2, UNIT), "tight", RenyiDP(2.0, 1.0))
    effort = Effort(replays=4000, confidence=0.95, delta=1e-5, examples=10, seed=1)
    table = random_table(16, 2, UNIT, 0)
    trial = Trial(entry.build(settings), entry.promise(settings), table, (0, 2))
    about = {"table": "coins", "probes": "0, 2", "seeds": "SeedSequence(1)", "code sha256": "0" * 64}
    controls = with_places(Audited(trial, None, CONTROLS["adar-ucb"]), effort).controls
    write(path, audit(trial, controls, effort, subject={"kind": "catalog", "name": "adar-ucb tight"}, about=about))
    return path.read_bytes()


@pytest.fixture
def file(content, tmp_path):
    path = tmp_path / "e.npz"
    path.write_bytes(content)
    return path


def _verify(path):
    return CliRunner().invoke(app, ["verify", str(path)])


def test_verified_evidence_ends_with_0_and_a_table(file):
    done = _verify(file)
    assert done.exit_code == 0, done.output
    for word in ("stated", "recomputed", "SHA-256", "measured: mu", "verdict", "yes"):
        assert word in done.stdout
    assert " NO " not in done.stdout
    first = done.stdout.split("\n")[:3]
    assert first[0] == "subject   catalog adar-ucb tight"
    assert first[1].startswith("claim     all actions are (2, 1)-RDP; rdp(alpha=2.0, epsilon=1.0, relation=reward")
    assert first[2] == "verdict   PASS, recomputed"
    assert done.stdout.rstrip().endswith("none differs; the verdict is PASS")
    assert "computed  not recorded" in done.stdout
    assert f"numbers   SHA-256 {numbers_sha256(file)}" in done.stdout
    assert done.stdout.rstrip().split("\n")[-1].startswith("e.npz: verified, ")


def test_it_shows_how_the_evidence_came_to_be(file):
    outcome = read(file).outcome
    record = Making().record(is_anonymous=False)
    write(file, replace(outcome, provenance=record))
    done = _verify(file)
    assert done.exit_code == 0, done.output
    assert f" by {record['user']} on {record['host']}" in done.stdout
    for word in (record["processor"], record["system"], f"numpy {record['versions']['numpy']}"):
        assert word in done.stdout
    write(file, replace(outcome, provenance=Making().record(is_anonymous=True)))
    assert f" on {record['host']}\n" not in _verify(file).stdout


def test_machines_read_the_same_as_one_object(file, content):
    done = CliRunner().invoke(app, ["verify", str(file), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["is_verified"] is True
    assert found["verdict"] == "PASS"
    assert found["subject"]["name"] == "adar-ucb tight"
    assert {"what", "stated", "recomputed", "is_ok"} == set(found["lines"][0])
    file.write_bytes(content[:-40] + bytes(40))
    assert CliRunner().invoke(app, ["verify", str(file), "--json"]).exit_code != 0


def test_it_works_with_nothing_but_the_file(file, tmp_path):
    """From an empty folder, without a home, and without leaving anything."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", "from bandana.flows.cli import main; main()", "verify", str(file)],
        capture_output=True, text=True, cwd=folder, check=False, env={"PATH": os.environ["PATH"], "HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "verified" in done.stdout
    assert list(folder.iterdir()) == []


def test_a_changed_number_ends_with_3_and_is_named(file):
    with np.load(file) as archive:
        arrays = {name: archive[name] for name in archive.files}
    description = json.loads(bytes(arrays.pop("description")))
    description["numbers"][0]["measured"] = 0.123
    file.write_bytes(seal(description, arrays))
    done = _verify(file)
    assert done.exit_code == DIFFERS
    assert "NOT verified, 1 of" in done.stdout
    assert done.stdout.rstrip().endswith("lines differ: measured: mu")
    assert "0.123" in done.stdout


def test_a_changed_byte_ends_with_2_or_3(file):
    content = bytearray(file.read_bytes())
    content[-70] ^= 1
    file.write_bytes(bytes(content))
    done = _verify(file)
    assert done.exit_code in (DIFFERS, USER_MISTAKE)
    assert "SHA-256" in done.output


@pytest.mark.parametrize(
    ("change", "verdict"), [({"caveats": ("a caveat",)}, "INCONCLUSIVE"), ({"noise_finding": "a finding"}, "FAIL")]
)
def test_verified_evidence_against_a_claim_ends_with_1(file, change, verdict):
    write(file, replace(read(file).outcome, **change))
    done = _verify(file)
    assert done.exit_code == FAILURE
    assert done.stdout.rstrip().endswith(f"none differs; the verdict is {verdict}")


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("subject", {"kind": "catalog", "name": "my-ucb tight"}),
        ("subject", {"kind": "catalog", "name": "adar-ucb tight eps=0.1"}),
        ("claim", {"source": "another paper"}),
        ("claim", {"theorem": "Theorem 99"}),
        ("claim", {"unit": "all data of all people"}),
        ("controls", ()),
    ],
)
def test_words_that_the_catalog_knows_are_confirmed(file, part, changed):
    """Evidence of these very sources: another version may know other words, and they are then shown and not compared."""
    outcome = read(file).outcome
    outcome = replace(outcome, provenance=Making().record(is_anonymous=True))
    write(file, outcome)
    assert _verify(file).exit_code == 0
    forged = {**changed} if part == "subject" else changed
    forged = replace(outcome.claim, **changed) if part == "claim" else forged
    write(file, replace(outcome, **{part: forged}))
    assert _verify(file).exit_code == DIFFERS


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
