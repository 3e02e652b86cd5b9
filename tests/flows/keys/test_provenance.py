"""How results came to be: recorded when they are computed, and shown as it is stored, whatever is installed later."""

import json
import os
import pickle
import platform
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
import yaml
from small_spec import SMALL
from whole_evidence import assert_follows_from_its_scores

from bandana.audits import evidence
from bandana.audits.contents import PROVENANCE, numbers_sha256
from bandana.audits.reporting import origin, render_html, render_pdf, validate
from bandana.flows.cells.audits import audit_cell, evidence_of
from bandana.flows.cells.play import BENCHMARK, benchmark_block
from bandana.flows.folder.settings import is_anonymous
from bandana.flows.folder.store import Store
from bandana.flows.keys import checkout, machine, provenance, versions
from bandana.flows.keys.provenance import Making
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.results.audit_report import write_document
from bandana.flows.results.report_document import assemble, audit_documents
from bandana.flows.results.summaries import benchmark_record, summarize_cell
from bandana.flows.spec.spec import parse_spec

NEWER = {"numpy": "9.8.7"}


# --- the record -------------------------------------------------------------------------------------------


def test_a_record_says_when_with_what_and_by_whom():
    before = datetime.now().astimezone()
    making = Making()
    record = making.record(is_anonymous=False)
    began, ended = (datetime.fromisoformat(record[name]) for name in ("began", "ended"))
    assert began <= ended
    assert abs((began - before).total_seconds()) < 60
    assert record["versions"]["numpy"] == np.__version__
    assert record["versions"]["python"] == platform.python_version()
    assert record["host"] == socket.gethostname()
    assert record["user"]
    assert record["processor"]
    assert provenance.read(json.loads(json.dumps(record, sort_keys=True))) == record
    assert str(Path.home()) not in json.dumps(record)
    assert str(Path(__file__).parents[3]) not in json.dumps(record), "no path is recorded"


def test_a_clock_that_is_set_back_ends_no_computation_before_it_began(monkeypatch):
    class Back(datetime):
        times = iter(
            [datetime.fromisoformat("2026-11-22T10:00:00+00:00"), datetime.fromisoformat("2026-11-22T09:00:00+00:00")]
        )

        @classmethod
        def now(cls, tz=None):
            return next(cls.times)

    monkeypatch.setattr(provenance, "datetime", Back)
    record = Making().record(is_anonymous=True)
    assert record["began"] <= record["ended"] < "2026-11-22T10:10"


def test_an_account_without_a_name_is_its_number(monkeypatch):
    def nobody(_):
        raise KeyError

    monkeypatch.setattr(provenance.pwd, "getpwuid", nobody)
    assert provenance.user() == str(os.getuid())


@pytest.mark.parametrize(
    "stored",
    [None, "text", {}, {"began": "yesterday"}, ["began"]],
    ids=["missing", "text", "empty", "half", "list"],
)
def test_what_cannot_be_read_is_not_recorded(stored):
    assert provenance.read(stored) is None


def test_a_record_of_a_later_version_of_bandana_is_read_as_far_as_it_is_known():
    record = Making().record(is_anonymous=True)
    assert provenance.read({**record, "cooling": "water"}) == record
    assert provenance.read({**record, "ended": "2026-11-22T10:00:00"}) is None, "a time without an offset"
    assert provenance.read({**record, "blas": [{"library": "x"}]}) is None


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have other kernels")
def test_kernels_and_instruction_sets_are_those_in_use_not_those_of_the_processor():
    code = (
        "import json, bandana.flows.keys.machine as m; "
        "print(json.dumps([[item.model_dump() for item in m.blas()], m.features(), m.target()]))"
    )
    asked = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1", "NUMBA_CPU_NAME": "haswell",
             "NPY_DISABLE_CPU_FEATURES": "AVX512_ICL X86_V4"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **asked}
    )
    libraries, features, target = json.loads(done.stdout)
    if any(item["library"].startswith("openblas") for item in libraries):
        assert {(item["kernel"], item["threads"]) for item in libraries} == {("Haswell", 1)}
    assert not {"X86_V4", "AVX512_ICL"} & set(features)
    assert target == "haswell"


def test_a_module_that_is_imported_says_its_own_version(monkeypatch):
    """Another NumPy that lies first on the path is not the one of which the installer knows."""
    monkeypatch.setattr(np, "__version__", "9.8.7")
    assert versions.versions("numpy", "no-such-thing") == {"numpy": "9.8.7", "no-such-thing": "not installed"}


# --- the code ---------------------------------------------------------------------------------------------


def _git(where, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *identity, *words], cwd=where, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A checkout with two packages that are committed; (root, folders of the packages)."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    root = tmp_path / "checkout"
    folders = [root / "core", root / "flows"]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "code.py").write_text("x = 1\n")
    (root / ".gitignore").write_text("*.pyc\nvenv/\n")
    _git(root, "init")
    _git(root, "add", ".")
    _git(root, "commit", "-m", "first")
    return root, folders


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


@needs_git
def test_the_commit_is_named_and_whether_the_sources_are_its_own(repository):
    root, folders = repository
    clean = checkout.Checkout(_git(root, "rev-parse", "HEAD"), is_clean=True)
    assert checkout.read(folders) == clean
    (root / "notes.txt").write_text("no source")
    (folders[0] / "code.pyc").write_text("ignored")
    assert checkout.read(folders) == clean
    for place in (folders[1] / "code.py", folders[0] / "beside.py"):
        place.write_text("x = 2\n")
        assert checkout.read(folders) == clean._replace(is_clean=False)
        _git(root, "stash", "--include-untracked")
    assert checkout.read(folders) == clean
    (folders[0] / "code.py").write_text("x = 2\n")
    _git(root, "add", ".")
    assert checkout.read(folders) == clean._replace(is_clean=False), "staged is not committed"


@needs_git
def test_packages_installed_inside_a_foreign_checkout_have_no_commit(repository):
    root, _ = repository
    installed = root / "venv" / "flows"
    installed.mkdir(parents=True)
    (installed / "code.py").write_text("x = 1\n")
    assert checkout.read([installed]) is None


@needs_git
def test_git_runs_nothing_that_a_repository_names_and_writes_nothing(repository, tmp_path, monkeypatch):
    root, folders = repository
    ran, hook = tmp_path / "ran", tmp_path / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    _git(root, "config", "core.fsmonitor", str(hook))
    hooks = root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction"):
        shutil.copy(hook, hooks / name)
    _git(root, "status")
    assert ran.exists(), "else this test could not fail"
    ran.unlink()
    index = (root / ".git" / "index").read_bytes()
    os.utime(folders[0] / "code.py", (1, 1))  # git would refresh its index
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert checkout.read(folders).is_clean
    assert not ran.exists()
    assert (root / ".git" / "index").read_bytes() == index


def test_without_git_or_where_it_hangs_there_is_no_commit(tmp_path, monkeypatch):
    assert checkout.read([tmp_path]) is None
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(checkout, "_PATIENCE", 0.2)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin{os.pathsep}/usr/bin")
    assert checkout.read([tmp_path]) is None
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert checkout.read([tmp_path]) is None


# --- results ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """A small experiment with its results; (spec, text, data folder)."""
    folder = tmp_path_factory.mktemp("made")
    tree = yaml.safe_load(SMALL)
    tree["audit"] |= {"replays": 2000, "examples": 5}
    tree |= {"replications": 4, "block_size": 2}
    text = yaml.safe_dump(tree)
    spec = parse_spec(text, "small.yaml", folder)
    store = Store(folder / "data" / "results")
    for cell in cells_of(spec):
        for block in cell.blocks():
            benchmark_block(block, store)
        if cell.is_private:
            audit_cell(cell, store)
    return spec, text, folder / "data"


@pytest.fixture
def suite(computed, tmp_path):
    """The same in a copy of the data folder, to change what is stored there; (spec, text, store)."""
    spec, text, data = computed
    shutil.copytree(data, tmp_path / "data")
    return spec, text, Store(tmp_path / "data" / "results")


def restore(store, cell, change):
    """Stores a cell's blocks and its audit again, with another provenance: what another installation had stored."""
    for block in cell.blocks():
        arrays, description = store.load(BENCHMARK, block.key)
        store.path(BENCHMARK, block.key).unlink()
        store.save(BENCHMARK, block.key, arrays, change(description))
    if cell.is_private:
        place = evidence_of(cell, store)
        outcome = evidence.read(place).outcome
        changed = change({PROVENANCE: outcome.provenance}).get(PROVENANCE)
        place.write_bytes(evidence.to_bytes(replace(outcome, provenance=changed)))


def made_with(**other):
    return lambda description: {**description, PROVENANCE: {**description[PROVENANCE], **other}}


def forgotten(description):
    return {name: value for name, value in description.items() if name != PROVENANCE}


def test_each_block_and_each_audit_says_how_it_came_to_be(suite):
    spec, _, store = suite
    for cell in cells_of(spec):
        records = [store.describe(BENCHMARK, block.key)[PROVENANCE] for block in cell.blocks()]
        if cell.is_private:
            found = evidence.read(evidence_of(cell, store))
            assert_follows_from_its_scores(evidence_of(cell, store))
            records.append(found.stated[PROVENANCE])
        for record in records:
            assert provenance.read(record) is not None
            assert record["began"] <= record["ended"]
            assert record["versions"]["numpy"] == np.__version__
            assert record["sources"] == checkout.sources()


def test_the_hash_of_numbers_leaves_out_who_made_them_and_nothing_else(suite):
    spec, _, store = suite
    cell = cells_of(spec)[1]
    places = [store.path(BENCHMARK, cell.blocks()[0].key), evidence_of(cell, store)]
    before = [(numbers_sha256(place), place.read_bytes()) for place in places]
    restore(store, cell, made_with(host="elsewhere"))
    for place, (numbers, content) in zip(places, before, strict=True):
        assert numbers_sha256(place) == numbers
        assert place.read_bytes() != content, "a file's own hash covers who made it"
    assert_follows_from_its_scores(places[1])
    arrays, description = store.load(BENCHMARK, cell.blocks()[0].key)
    for changed in ({**arrays, "regret": arrays["regret"] + 1e-9}, {**arrays, "more": arrays["grid"]}):
        assert numbers_sha256(store.save(BENCHMARK, "changed", changed, description)) != before[0][0]
        store.path(BENCHMARK, "changed").unlink()
    assert numbers_sha256(store.save(BENCHMARK, "changed", arrays, {**description, "mu": 2.0})) != before[0][0]


def test_a_copied_folder_makes_the_same_report_byte_by_byte(suite, tmp_path):
    """A copy has new times of its files; no time of any file is shown."""
    spec, text, _ = suite
    written = []
    for folder in (tmp_path / "data", tmp_path / "copy"):
        if written:
            shutil.copytree(tmp_path / "data" / "results", folder / "results")
            for path in (folder / "results").rglob("*.npz"):
                os.utime(path, (1_000_000_000, 1_000_000_000))
        found = assemble(Plan.of(spec), text, Store(folder / "results"))
        files = write_document(found, folder / "report", ("html", "pdf", "json"))
        written.append({kind: path.read_bytes() for kind, path in files.items()})
    assert written[0] == written[1]


def test_a_report_names_the_software_that_computed_and_not_what_renders_it(suite, monkeypatch):
    """What is installed now does not stand beside numbers that it did not make, such as another NumPy of the same series."""
    spec, text, store = suite
    before = assemble(Plan.of(spec), text, store)
    later = ".".join([*np.__version__.split(".")[:2], "987"])
    monkeypatch.setattr(np, "__version__", later)
    monkeypatch.setattr(versions, "version", lambda name: "9.8.7")
    monkeypatch.setattr(socket, "gethostname", lambda: "another")
    for read in (provenance._versions, machine.blas, machine.features, machine.processor, machine.system, machine.target):
        read.cache_clear()
    try:
        assert Making().record(is_anonymous=False)["versions"]["numpy"] == later, "else this test could not fail"
        after = assemble(Plan.of(spec), text, store)
        assert after == before
        assert not [word for word in (later, "9.8.7") if word in render_html(after)]
        assert after["provenance"]["makers"][0]["versions"]["numpy"] != later
    finally:
        provenance._versions.cache_clear()


def test_a_report_of_results_of_two_versions_lists_both_and_says_so(suite):
    spec, text, store = suite
    twin, private = cells_of(spec)
    own = store.describe(BENCHMARK, twin.blocks()[0].key)[PROVENANCE]
    times = {"began": "2026-12-24T09:00:00+00:00", "ended": "2026-12-24T09:05:00+00:00"}
    another = {"processor": "Another One", "commit": "ab" * 20, "is_clean": False, **times}
    restore(store, private, made_with(versions=own["versions"] | NEWER, **another))
    found = assemble(Plan.of(spec), text, store)
    validate(found)
    counts = [(maker["versions"]["numpy"], maker["blocks"], maker["audits"]) for maker in found["provenance"]["makers"]]
    assert counts == [("9.8.7", 2, 1), (np.__version__, 2, 0)]
    assert found["created"] == "2026-12-24T09:05:00+00:00"
    page = render_html(found)
    assert "Results of this report have different provenance" in page
    assert f"they differ in numpy ({np.__version__}, 9.8.7), processor" in page
    assert "2 blocks, 1 audit" in page
    assert "2026-12-24 09:00 to 09:05 UTC" in page
    assert "processor: Another One" in page
    assert render_pdf(found).startswith(b"%PDF")
    (single,) = audit_documents(Plan.of(spec), found).values()
    assert [maker["versions"]["numpy"] for maker in single["provenance"]["makers"]] == ["9.8.7"]
    assert single["created"] == "2026-12-24T09:05:00+00:00"
    record = benchmark_record(private, summarize_cell(private, store))
    assert record.provenance["made.benchmark.numpy"] == "9.8.7"
    assert record.provenance["made.benchmark.git-commit"].startswith("abab")
    assert record.provenance["made.benchmark.ended"] == "2026-12-24T09:05:00+00:00"


def test_with_another_numpy_results_are_computed_again_and_each_report_is_true(suite, monkeypatch):
    """NumPy is replaced by another version, and put back: each report names the one that made its numbers, and it alone."""
    spec, text, store = suite
    first = assemble(Plan.of(spec), text, store)

    def compute(version):
        monkeypatch.setattr(np, "__version__", version)
        provenance._versions.cache_clear()
        for cell in cells_of(spec):
            for block in cell.blocks():
                benchmark_block(block, store)
            if cell.is_private:
                audit_cell(cell, store)
        return assemble(Plan.of(spec), text, store)

    installed = np.__version__
    try:
        second = compute("1.99.3")
        assert [maker["versions"]["numpy"] for maker in second["provenance"]["makers"]] == ["1.99.3"]
        assert second["provenance"]["began"] > first["provenance"]["ended"]
        assert "1.99.3" in render_html(second)
        assert installed not in render_html(second)
        assert compute(installed) == first, "results of before are found again, with what was recorded then"
    finally:
        provenance._versions.cache_clear()


@pytest.mark.parametrize("how_many", [1, 2], ids=["some", "all"])
def test_results_that_do_not_say_are_shown_as_not_recorded(suite, how_many):
    spec, text, store = suite
    for cell in cells_of(spec)[-how_many:]:
        restore(store, cell, forgotten)
    found = assemble(Plan.of(spec), text, store)
    validate(found)
    assert found["provenance"]["not_recorded"] == {"blocks": 2 * how_many, "audits": 1}
    assert (found["created"] is None) == (how_many == 2)
    page = render_html(found)
    assert "not recorded" in page
    assert ("time not recorded" in page) == (how_many == 2)
    assert render_pdf(found).startswith(b"%PDF")
    private = cells_of(spec)[1]
    assert benchmark_record(private, summarize_cell(private, store)).provenance == {}


# --- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "expected"), [("1", True), ("true", True), ("0", False), ("off", False), ("", False)])
def test_the_environment_says_whether_names_are_left_out(said, expected, monkeypatch):
    monkeypatch.setenv("BANDANA_ANONYMOUS", said)
    assert is_anonymous() is expected


def test_a_worker_elsewhere_leaves_out_names_because_its_store_says_so(computed, tmp_path, monkeypatch):
    """A Dask worker of another machine has another environment than the command."""
    spec, _, _ = computed
    monkeypatch.setenv("BANDANA_ANONYMOUS", "1")
    carried = pickle.dumps(Store(tmp_path))
    monkeypatch.delenv("BANDANA_ANONYMOUS")
    store = pickle.loads(carried)
    twin, private = cells_of(spec)
    described = benchmark_block(twin.blocks()[0], store)[1]
    assert described[PROVENANCE]["user"] is described[PROVENANCE]["host"] is None
    outcome = audit_cell(private, store)
    assert outcome.provenance["user"] is outcome.provenance["host"] is None
    assert benchmark_block(twin.blocks()[1], Store(tmp_path))[1][PROVENANCE]["host"] == socket.gethostname()


def test_a_report_without_names_leaves_out_those_that_are_stored(suite, monkeypatch):
    spec, text, store = suite
    for cell in cells_of(spec):
        restore(store, cell, made_with(user="ann-of-the-lab", host="machine-of-ann"))
    assert "ann-of-the-lab" in json.dumps(assemble(Plan.of(spec), text, store))
    monkeypatch.setenv("BANDANA_ANONYMOUS", "1")
    found = assemble(Plan.of(spec), text, Store(store.path("x", "y").parents[1]))
    assert "of-ann" not in json.dumps(found)
    assert "ann-of" not in json.dumps(found)
    assert "omitted" in dict(origin.facts(found["provenance"]))["user"]


def test_seconds_are_those_of_the_union_of_all_spans():
    """Ten seconds, of which five are computed side by side with two more, one within them, and one after a pause."""

    def record(began, ended):
        return {"began": f"2026-01-01T00:00:{began:02}+00:00", "ended": f"2026-01-01T00:00:{ended:02}+00:00"}

    records = [record(20, 21), None, record(0, 10), record(5, 12), record(2, 3)]
    assert provenance.seconds(records) == 13
    assert provenance.seconds([]) == 0
