"""Bundles: packed, signed, checked by `bandana verify` and by the verifier that they bring, and seen once changed."""

import ast
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from forger import remember
from scores_alone import NEED_THE_ALGORITHM, assert_partly_compared
from small_spec import SMALL
from typer.testing import CliRunner

import bandana
from bandana.audits.evidence import seal
from bandana.audits.evidence.archive import UnusableEvidence
from bandana.flows.annexes.compliance.evidence import one_file
from bandana.flows.annexes.compliance.evidence.bundle import (
    README,
    archive_of,
    check_files,
    payload_of,
    read_bundle,
    statement_of,
    to_sign,
)
from bandana.flows.annexes.compliance.evidence.lines import Line, Verification
from bandana.flows.annexes.compliance.evidence.signature import PUBLIC_KEY, key_id, new_key, public_pem, read_private, sign
from bandana.flows.annexes.compliance.evidence.standalone import PARTLY, check, conclude, exit_code, main
from bandana.flows.annexes.compliance.packing import pack, report_of
from bandana.flows.annexes.compliance.verify import Request
from bandana.flows.annexes.compliance.verify import check as answer_of
from bandana.flows.cli import app
from bandana.flows.commands.options import DIFFERS, FAILURE, USER_MISTAKE
from bandana.flows.folder.settings import DataFolder
from bandana.flows.running import child

AUDIT = {"rounds": 16, "replays": 4000, "examples": 5}


@pytest.fixture(scope="module", autouse=True)
def _remembering(drawn):
    """What the first test of this module finds by running it again, the others find there.

    Pages hold true figures: a process of its own verifies them too.
    """
    with pytest.MonkeyPatch.context() as patch:
        remember(patch)
        yield


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """A data folder with a finished suite: benchmark, audit and report."""
    data = tmp_path_factory.mktemp("data")
    spec = {**yaml.safe_load(SMALL), "audit": AUDIT, "report": {"formats": ["html", "json"]}}
    result = bandana.run(spec, data=data, audit=True, executor="local")
    folder = DataFolder(data)
    result.report(folder.suite("small"))
    return folder


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    """No fork: threads of Typst, which an earlier test of this process may have started, are lost in one, and it waits."""
    monkeypatch.setattr(child, "run", lambda function, *_: child.Returned(function(), ""))


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("mine", "other"):
        new_key(folder / name)
    return folder


@pytest.fixture(scope="module")
def signed(suite, keys, tmp_path_factory):
    place = tmp_path_factory.mktemp("bundle") / "small.bundle.zip"
    pack(report_of("small", suite), place, keys / "mine")
    return place.read_bytes()


@pytest.fixture
def file(signed, tmp_path):
    place = tmp_path / "b.zip"
    place.write_bytes(signed)
    return place


def repacked(content, change, key=None):
    """A bundle whose files were changed, with a new manifest that fits them; signed if there is a key."""
    bundle = read_bundle(content) if isinstance(content, Path) else content
    files = dict(bundle.files)
    if key is None:
        files.pop(PUBLIC_KEY, None)
    else:
        files[PUBLIC_KEY] = public_pem(key.public_key())
    change(files)
    manifest = statement_of(files, bundle.predicate)
    return archive_of(files, manifest, None if key is None else sign(manifest, key))


def _named(found):
    return {line.what for line in found.differences}


# --- an honest bundle ------------------------------------------------------------------------------------------------


def test_the_command_verifies_a_bundle_in_a_process_of_its_own(file, keys):
    words = [sys.executable, "-m", "bandana", "verify", str(file), "--key", str(keys / "mine.pub")]
    root = str(Path(bandana.__file__).parents[1])
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": root})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "run again: adar-ucb tight eps=1\n"
    assert "b.zip: verified, " in done.stdout


def test_an_honest_bundle_is_verified_with_its_page_and_its_regret(file, keys):
    done = CliRunner().invoke(app, ["verify", str(file), "--key", str(keys / "mine.pub"), "--replay", "4", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    lines = {line["what"]: line for line in found["lines"]}
    assert found["verdict"] == "PASS"
    assert (found["is_verified"], found["not_compared"]) == (True, [])
    named = {"signature", "hashes", "report", "claim", "regret", "manifest", "files", "verifier", "page", "spec"}
    assert named | {"bounds and verdict", *NEED_THE_ALGORITHM} <= {*found["compared"]}
    claimed = {words.partition(" (")[0] for words in found["only_the_sender_knows"]}
    assert claimed <= {"origin", "requirements.lock", "commit", "machine", "replications", "all other scores"}
    assert lines["signature"]["recomputed"] == "of the given key"
    for what in ("report.html", "spec.yaml", "bandana-verify.py", "report: form", "file report.json",
                 "regret of adar-ucb tight eps=1 on bernoulli", "regret of ucb on bernoulli"):  # fmt: skip
        assert lines[what]["is_ok"] is True, what
    assert found["replayed"]["n_drawn"] == 4
    assert any(line["what"].startswith("replayed: ") for line in found["lines"])


def test_a_verification_derives_the_plan_of_the_experiment_once(file, counts):
    """Its report is assembled again, its audits are run again, and its pages are rendered again."""
    assert answer_of(Request(file)).again is not None
    assert counts == {"plans": 1, "environments": 1}


def test_the_same_content_gives_the_same_bytes(file):
    bundle = read_bundle(file)
    key = dict(bundle.files)
    assert archive_of(key, bundle.manifest, None) == archive_of(dict(reversed(key.items())), bundle.manifest, None)


def test_the_manifest_is_an_in_toto_statement_in_a_dsse_envelope(file, keys):
    bundle = read_bundle(file)
    statement = bundle.statement
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert {item["name"] for item in statement["subject"]} == {*bundle.files}
    assert bundle.predicate["audits"] == [
        {"label": "adar-ucb tight eps=1", "claim": "all actions are (2, 1)-RDP", "verdict": "PASS"}
    ]
    payload, ((name, signature),) = payload_of(bundle.signature)
    assert payload == bundle.manifest
    assert to_sign(b"{}") == b"DSSEv1 28 application/vnd.in-toto+json 2 {}"
    key = read_private(keys / "mine").public_key()
    assert name == key_id(key)
    key.verify(signature, to_sign(payload))


def test_an_unsigned_bundle_says_so(suite, tmp_path, keys):
    place = tmp_path / "b.zip"
    done = CliRunner().invoke(app, ["bundle", "small", "--data", str(suite.root), "--out", str(place)])
    assert done.exit_code == 0, done.output
    assert "signature none: anybody can make such a bundle" in done.stdout
    found = answer_of(Request(place)).verification
    assert found.is_verified, (found.differences, found.not_compared)
    assert found.claimed[0] == "signature (this bundle is unsigned: nobody answers for it)"
    (line,) = [line for line in check(place).lines if line.what == "signature"]
    assert (line.recomputed, line.is_ok, line.is_claimed) == ("this bundle is unsigned: nobody answers for it", None, True)
    assert _named(check(place, (keys / "mine.pub").read_bytes())) == {"signature"}


def test_report_and_audit_and_lone_evidence_are_verified_where_they_lie(suite):
    """The report quotes its spec, and evidence in its folder takes the spec that lies above it."""
    folder = suite.suite("small")
    for place in (folder / "report.json", folder / "audits" / "adar-ucb-tight-eps-1.json"):
        assert_partly_compared(check(place), "claim (needs the catalog)", after=("report (needs the algorithms)",))
        found = answer_of(Request(place)).verification
        assert found.is_verified, (found.differences, found.not_compared)
    evidence = suite.evidence("small", "adar-ucb-tight-eps-1")
    assert_partly_compared(check(evidence), "claim (needs the catalog)")
    assert answer_of(Request(evidence)).verification.is_verified
    files = json.loads((folder / "report.json").read_text())["evidence"]["files"]
    assert files[0]["path"] == "evidence/adar-ucb-tight-eps-1.npz"


# --- the verifier in one file ----------------------------------------------------------------------------------------

ALONE = """
import runpy, sys
from importlib.abc import MetaPathFinder

class Nothing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in {"numpy", "scipy"} | sys.stdlib_module_names and not top.startswith("_"):
            raise ImportError(f"{top} is not installed")

sys.meta_path.insert(0, Nothing())
del sys.argv[:1]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def _alone(folder, *arguments):
    """Runs the verifier of a bundle where nothing but NumPy and SciPy is installed; its own modules come first."""
    words = [sys.executable, "-I", "-c", ALONE, str(folder / "bandana-verify.py"), *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)


def test_the_verifier_in_the_bundle_finds_the_same_with_numpy_and_scipy_alone(file, tmp_path, suite):
    bundle = read_bundle(file)
    (tmp_path / "bandana-verify.py").write_bytes(bundle.files[one_file.NAME])
    evidence = suite.evidence("small", "adar-ucb-tight-eps-1")
    for place in (evidence, file):
        done = _alone(tmp_path, place)
        assert done.returncode == PARTLY, done.stderr
        found = check(place)
        assert done.stdout.split("\n")[0] == conclude(place, found) or place == file
        for line in found.lines:
            assert line.recomputed in done.stdout or line.what == "signature"
    assert "not checked: that needs the package cryptography" in done.stdout


def test_the_verifier_in_the_bundle_takes_the_key_that_must_have_signed(file, keys):
    assert main([str(file), "--key", str(keys / "mine.pub")]) == PARTLY
    assert main([str(file), "--key", str(keys / "other.pub")]) == DIFFERS


def test_a_bundle_opens_with_a_page_for_the_reviewer_that_nobody_may_change(file, tmp_path, suite):
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist()[0] == README
    bundle = read_bundle(file)
    text = bundle.files[README].decode()
    assert "Each person is promised that the results reveal little about any one reward (one round); " in text
    assert "audit: 1 " in text
    assert "## What signing proves" in text
    assert "$" not in text
    for name in {*bundle.files} - {README}:
        folder = name.split("/")[0] + "/" if "/" in name else f"{name.split('.')[0]}.*"
        assert f"`{name}`" in text or f"`{folder}`" in text, f"{name} stands in the table of files"
    other = {name: content for name, content in bundle.files.items() if name != PUBLIC_KEY} | {README: b"All is well."}
    place = tmp_path / "other.zip"
    place.write_bytes(archive_of(other, statement_of(other, bundle.predicate), None))
    again = answer_of(Request(place, is_quick=True)).verification
    assert [line.what for line in again.differences] == [README]


def test_an_archive_whose_end_was_lost_is_not_printed_as_bytes(file, tmp_path):
    (tmp_path / "cut.zip").write_bytes(file.read_bytes()[:-20] + b"\x00\xff" * 10)
    line = check_files(read_bundle(tmp_path / "cut.zip"))[0]
    assert (line.stated, line.is_ok) == ("none at its end", False)


def test_the_verifier_imports_nothing_else_and_is_made_of_these_sources():
    text = one_file.source()
    names = {}
    exec(text.partition("\nclass Modules")[0], names)
    allowed = {"numpy", "scipy", "bandana", *sys.stdlib_module_names}
    later = {"cryptography", "dp_accounting", "opendp"}
    for name, source in names["SOURCES"].items():
        tree = ast.parse(source)
        for node in ast.walk(tree):
            names_of = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names_of += [node.module] if isinstance(node, ast.ImportFrom) else []
            tops = {found.partition(".")[0] for found in names_of}
            assert tops <= (allowed if node in tree.body else allowed | later), name
    root = Path(bandana.__file__).parent
    here = one_file.__package__.removeprefix("bandana.")
    for name in ("audits.outcome", "audits.bounds.coin_flips", f"{here}.recompute", "privacy_core.accounting.accountant"):
        assert names["SOURCES"][f"bandana.{name}"] == (root / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
    assert len(text) < 600_000


# --- changed bundles -------------------------------------------------------------------------------------------------


def test_any_flipped_byte_is_seen(signed, tmp_path):
    """All bytes count, those of the archive's own tables too: its hash covers them."""
    rng = np.random.default_rng(0)
    place = tmp_path / "b.zip"
    for where in [*rng.integers(0, len(signed), 25).tolist(), 10, len(signed) - 70, len(signed) - 3]:
        changed = bytearray(signed)
        changed[where] ^= 1 << int(rng.integers(8))
        place.write_bytes(bytes(changed))
        try:
            bundle = read_bundle(place)
        except UnusableEvidence:
            continue
        assert bundle.sha256 != bundle.sha256_found, where


def _edit(name, change):
    def edit(files):
        document = json.loads(files[name])
        change(document)
        files[name] = json.dumps(document).encode()

    return edit


def _forged_evidence(files):
    name = "evidence/adar-ucb-tight-eps-1.npz"
    with np.load(io.BytesIO(files[name])) as archive:
        arrays = {key: archive[key] for key in archive.files}
    description = json.loads(bytes(arrays.pop("description")))
    description["bounds"] = description["bounds"][1:]
    files[name] = seal(description, arrays)


def _audit(document):
    return document["audits"][0]


CHANGES = {
    "verdict": _edit("report.json", lambda d: _audit(d).update(verdict="NOT REFUTED")),
    "measured": _edit("report.json", lambda d: _audit(d)["mu"].update(measured=0.1)),
    "claimed": _edit("report.json", lambda d: _audit(d)["claim"].update(statement="all actions are (2, 0.1)-RDP")),
    "bound": _edit("report.json", lambda d: _audit(d)["measurement"]["bounds"][0].update(lower=0.2)),
    "fault": _edit("report.json", lambda d: _audit(d)["controls"][0].update(measured=5.0)),
    "fault dropped": _edit("report.json", lambda d: _audit(d)["controls"].pop()),
    "audit dropped": _edit("report.json", lambda d: d["audits"].clear()),
    "regret": _edit("report.json", lambda d: d["benchmark"]["cells"][0].update(final_mean=0.0)),
    "curve": _edit("report.json", lambda d: d["benchmark"]["cells"][1]["mean"].__setitem__(3, 0.0)),
    "evidence dropped": lambda files: files.pop("evidence/adar-ucb-tight-eps-1.npz"),
    "evidence swapped": lambda files: files.update({"evidence/adar-ucb-tight-eps-1.npz": files["report.json"]}),
    "evidence forged": _forged_evidence,
    "hash of evidence": _edit("report.json", lambda d: d["evidence"]["files"][0].update(sha256="0" * 64)),
    "numbers of evidence": _edit("report.json", lambda d: d["evidence"]["files"][0].update(numbers="0" * 64)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_repacked_bundle_with_other_numbers_is_not_verified(file, keys, name):
    """The forger packs anew, with a manifest that fits, and even signs with a key of their own."""
    file.write_bytes(repacked(file, CHANGES[name], read_private(keys / "other")))
    try:
        found = check(file)
    except UnusableEvidence:
        return
    assert found.is_refused
    assert exit_code(found) == DIFFERS
    assert not {what for what in _named(found) if what.startswith(("file ", "SHA-256"))}, "the manifest fits"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda files: files.update({"report.html": files["report.html"] + b"<!-- -->"}), "report.html"),
        (lambda files: files.update({"bandana-verify.py": b"print('verified')"}), "bandana-verify.py"),
        (lambda files: files.update({"spec.yaml": files["spec.yaml"] + b"\nseed: 8"}), "spec.yaml"),
    ],
)
def test_pages_spec_and_verifier_are_those_that_the_report_gives(file, change, what):
    file.write_bytes(repacked(file, change))
    done = CliRunner().invoke(app, ["verify", str(file), "--json"])
    assert done.exit_code == DIFFERS
    assert [line["what"] for line in json.loads(done.stdout)["lines"] if line["is_ok"] is False] == [what]


def test_an_older_report_is_refused_and_not_compared_in_fewer_fields(file):
    whole = read_bundle(file)
    for schema in ("bandana/report/9", "bandana/report/13"):
        file.write_bytes(repacked(whole, _edit("report.json", lambda document, to=schema: document.update(schema=to))))
        done = CliRunner().invoke(app, ["verify", str(file), "--json"])
        (line,) = [line for line in json.loads(done.stdout)["lines"] if line["is_ok"] is False]
        assert done.exit_code == DIFFERS
        assert (line["what"], line["stated"]) == ("report: form", schema)
        assert line["recomputed"] == "other code: not comparable; verify it with the version that made it"
    file.write_bytes(repacked(whole, _edit("report.json", lambda document: _audit(document).pop("measured_epsilon"))))
    assert "adar-ucb tight eps=1: measured_epsilon" in _named(check(file))
    assert _named(answer_of(Request(file)).verification) == {"report: form"}


def test_the_signature_names_who_packed(file, keys, tmp_path):
    mine, other = ((keys / f"{name}.pub").read_bytes() for name in ("mine", "other"))
    assert not check(file, mine).is_refused
    assert answer_of(Request(file, key=keys / "mine.pub", is_quick=True)).verification.compared[0] == "signature"
    assert _named(check(file, other)) == {"signature"}
    file.write_bytes(repacked(file, lambda files: None, read_private(keys / "other")))
    assert not check(file).is_refused, "without --key nobody knows whose key it must be"
    assert _named(check(file, mine)) == {"signature"}
    bundle = read_bundle(file)
    stolen = tmp_path / "stolen.zip"
    stolen.write_bytes(archive_of(bundle.files, bundle.manifest, None))
    assert _named(check(stolen)) == {"signature"}, "it brings a key, and no signature"
    # The signature of another manifest, put beside this one.
    elsewhere = sign(statement_of({"report.json": b"{}"}, {}), read_private(keys / "other"))
    stolen.write_bytes(archive_of(bundle.files, bundle.manifest, elsewhere))
    assert _named(check(stolen)) == {"signature"}


def test_a_file_beside_the_manifest_is_named(file):
    bundle = read_bundle(file)
    files = {**bundle.files, "more.txt": b"trust me"}
    file.write_bytes(archive_of(files, bundle.manifest, json.dumps(bundle.signature).encode()))
    assert _named(check(file)) == {"file more.txt"}


def test_a_manifest_that_states_other_verdicts_is_named(file):
    bundle = read_bundle(file)
    predicate = {**bundle.predicate, "audits": [{"label": "adar-ucb tight eps=1", "claim": "", "verdict": "FAIL"}]}
    files = {name: content for name, content in bundle.files.items() if name != PUBLIC_KEY}
    file.write_bytes(archive_of(files, statement_of(files, predicate), None))
    assert _named(check(file)) == {"manifest", "manifest: audits[0].claim", "manifest: audits[0].verdict"}


@pytest.mark.parametrize("item", [{"name": 1}, {"digest": {"sha256": None}}])
def test_a_manifest_without_a_name_or_a_hash_is_refused(file, item):
    bundle = read_bundle(file)
    statement = bundle.statement
    manifest = json.dumps({**statement, "subject": [{**statement["subject"][0], **item}]}).encode()
    file.write_bytes(archive_of(bundle.files, manifest, None))
    with pytest.raises(UnusableEvidence, match="names a file without its SHA-256"):
        read_bundle(file)


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/evil",
        "a/../../evil",
        "C:evil",
        "a//b",
        ".",
        "a\\b",
        "a\nb",
        "REPORT.json",
        "report.json/evil",
        "e" * 201,
    ],
)
def test_a_bundle_unpacks_nowhere_else(file, name):
    bundle = read_bundle(file)
    file.write_bytes(archive_of({**bundle.files, name: b""}, bundle.manifest, None))
    with pytest.raises(UnusableEvidence, match="names of files are not plain"):
        read_bundle(file)


def test_bad_input_ends_in_one_line(file, keys, tmp_path, suite):
    def line(*words):
        done = CliRunner().invoke(app, list(map(str, words)))
        assert done.exit_code == USER_MISTAKE, done.output
        assert "Traceback" not in done.output
        assert done.stderr.count("\n") == 1
        return done.stderr

    (tmp_path / "text.pub").write_text("no key")
    assert "--key: is no public key that can be read" in line("verify", file, "--key", tmp_path / "text.pub")
    assert "cannot be read" in line("verify", file, "--key", tmp_path / "none.pub")
    assert "only a bundle is signed" in line("verify", suite.suite("small") / "report.json", "--key", keys / "mine.pub")
    assert "there is no report at" in line("bundle", "nothing", "--data", suite.root)
    assert "is no private key" in line("bundle", "small", "--data", suite.root, "--key", keys / "mine.pub")
    assert "the key cannot be written: File exists" in line("key", "new", keys / "mine")
    (tmp_path / "report.json").write_text("{}")
    assert "is no report" in line("verify", tmp_path / "report.json")
    (tmp_path / "report.json").write_bytes((suite.suite("small") / "report.json").read_bytes())
    assert "lies beside it" in line("verify", tmp_path / "report.json")
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("manifest.json", "{}")
    assert "cannot be read as a bundle: lacks '_type'" in line("verify", tmp_path / "z.zip")


def test_a_private_key_is_for_its_owner_alone(keys):
    assert (keys / "mine").stat().st_mode & 0o077 == 0
    assert b"PRIVATE KEY" in (keys / "mine").read_bytes()
    assert b"PRIVATE" not in (keys / "mine.pub").read_bytes()


@pytest.mark.parametrize(
    ("lines", "verdict", "code"),
    [
        ((True,), "PASS", 0), ((True,), "NOT REFUTED", 0), ((True,), "FAIL", FAILURE), ((True,), "INCONCLUSIVE", FAILURE),
        ((True,), "no audit", FAILURE), ((True, None), "PASS", PARTLY), ((True, None), "FAIL", PARTLY),
        ((True, None, False), "PASS", DIFFERS), ((False,), "FAIL", DIFFERS),
    ],
)  # fmt: skip
def test_exit_codes_of_what_was_compared_and_of_the_verdict(lines, verdict, code):
    """What only the sender can know changes none of them."""
    said = [Line(str(place), "", "", is_ok, "part") for place, is_ok in enumerate(lines)]
    for more in ([], [Line("origin", "", "who", None, "origin", is_claimed=True)]):
        found = Verification((*said, *more), verdict)
        assert exit_code(found) == code
        assert found.is_verified is (code in (0, FAILURE))
