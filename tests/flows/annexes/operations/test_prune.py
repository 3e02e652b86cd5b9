"""What `bandana prune` removes, and what it never does; what `bandana doctor` sees."""

import json
import os
import time

import pytest
from typer.testing import CliRunner

from bandana.flows.annexes.operations.doctor import State, examine
from bandana.flows.annexes.operations.prune import PAID, PRESENT, REPORTED, UNREADABLE, YOUNG, prune, seconds_of
from bandana.flows.cells.play import BENCHMARK, benchmark_block
from bandana.flows.cli import app
from bandana.flows.commands.options import FAILURE, USER_MISTAKE
from bandana.flows.folder import scratch
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.mistakes import SpecError

DAY = 86400.0
SPEC = {"replications": 2, "block_size": 1, "horizon": 50, "twins": False, "references": False}


@pytest.fixture
def folder(tmp_path, write_spec):
    """A suite with four blocks, and results of other code: of a report, of a book, and of nobody."""
    found = DataFolder.open(tmp_path / "data")
    store = Store(found.results)
    place = found.suite("small")
    place.mkdir(parents=True)
    (place / "spec.yaml").write_text(write_spec(**SPEC).read_text())
    for cell in Plan.of(load_spec(place / "spec.yaml")).played:
        for block in cell.blocks():
            benchmark_block(block, store)
    store.save(BENCHMARK, "reported", {}, {})
    store.save(BENCHMARK, "paid", {}, {"book": {"place": "x"}})
    store.save(BENCHMARK, "nobodys", {}, {})
    store.save("audit-part", "half", {}, {})
    files = [{"path": f"results/{BENCHMARK}/reported.npz"}, {"path": "evidence/x.npz"}]
    (place / "report.json").write_text(json.dumps({"evidence": {"files": files}}))
    (place / "baseline.json").write_text("{}")
    _age(found, 40)
    return found


def _age(folder, days):
    then = time.time() - days * DAY
    for path in folder.root.rglob("*"):
        os.utime(path, (then, then))


def _names(folder):
    return {path.stem for path in folder.results.rglob("*.npz")}


def test_only_what_is_old_and_of_nobody_is_removed(folder):
    before = _names(folder)
    tried = prune(folder, 30 * DAY, is_dry=True)
    assert _names(folder) == before
    found = prune(folder, 30 * DAY)
    assert before - _names(folder) == {"nobodys", "half"} == {path.stem for path in found.removed}
    assert found.kept == {REPORTED: 1, PAID: 1, PRESENT: 4}
    assert (found.notes, found.removed, found.n_bytes) == ((), tried.removed, tried.n_bytes)
    assert found.n_bytes > 0
    assert (folder.suite("small") / "baseline.json").exists()
    assert prune(folder, 30 * DAY).removed == ()


def test_what_is_young_stays(folder):
    found = prune(folder, 41 * DAY)
    assert (found.removed, found.kept) == ((), {YOUNG: 8})


def test_results_of_a_suite_that_cannot_be_read_stay(folder):
    (folder.suite("small") / "spec.yaml").write_text("name: [")
    found = prune(folder, 30 * DAY)
    assert found.removed == ()
    assert found.kept == {REPORTED: 1, PAID: 1, UNREADABLE: 6}
    assert "small: its spec cannot be read" in found.notes[0]


def test_evidence_under_its_second_name_stays_and_frees_nothing(folder):
    evidence = folder.evidence("small", "adar-ucb")
    evidence.parent.mkdir()
    os.link(folder.results / BENCHMARK / "nobodys.npz", evidence)
    found = prune(folder, 30 * DAY)
    assert "nobodys" in {path.stem for path in found.removed}
    assert evidence.exists()
    size = evidence.stat().st_size
    assert 0 < found.n_bytes < 2 * size  # of the other one alone


@pytest.mark.parametrize("text", ["30", "d", "-3d", "0.5h", "0d", "3y", "1e3d", "9" * 5000 + "d", ""])
def test_a_time_that_is_none_is_refused(text):
    with pytest.raises(SpecError, match=r"--keep: must be a time of at least an hour, such as 30d"):
        seconds_of(text)


def test_times():
    assert [seconds_of(text) for text in ("30d", "12h", "4w", "1.5d")] == [30 * DAY, DAY / 2, 28 * DAY, 1.5 * DAY]


def test_the_command_says_what_it_removed(folder):
    run = CliRunner().invoke
    data = ["--data", str(folder.root)]
    shown = run(app, ["prune", "--dry-run", *data])
    assert (shown.exit_code, "would be removed: 2 results" in shown.stdout) == (0, True)
    done = json.loads(run(app, ["prune", "--keep", "1w", "--json", *data]).stdout)
    assert len(done["removed"]) == 2
    assert "kept: 6 results" in run(app, ["prune", *data]).stdout
    missing = run(app, ["prune", "--data", str(folder.root / "x")])
    assert (missing.exit_code, "does not exist" in missing.stderr) == (USER_MISTAKE, True)


def _found(folder):
    return {each.what: each for each in examine(folder)}


def test_the_doctor_sees_what_would_be_computed_again(folder):
    missing = "are missing, or of other code or versions; a rerun computes them"
    assert _found(folder)["suite small"].words == f"0 of 4 blocks and 1 of 1 audits {missing}"
    next((folder.results / BENCHMARK).glob("[0-9a-f]*-*.npz")).unlink()
    assert _found(folder)["suite small"].words.startswith("1 of 4 blocks")


def test_the_doctor_sees_damage_and_what_was_left_and_exits_with_1(folder):
    healthy = examine(folder)
    assert not [each for each in healthy if each.state is State.BAD], healthy
    for name, content in {
        "prefect/prefect.db": b"no database",
        "books/trial.sqlite": b"SQLite format 3\0" + b"x" * 5000,
    }.items():
        path = folder.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    dead = scratch.prefix("x").replace(f"-{os.getpid()}.", "-999999999.")
    (folder.results / f"{dead}1{scratch.SUFFIX}").write_text("")
    found = _found(folder)
    assert found["prefect/prefect.db"].state is found["books/trial.sqlite"].state is State.BAD
    assert "it is no SQLite file" in found["prefect/prefect.db"].words
    assert "restore it from a copy" in found["books/trial.sqlite"].words
    assert found["unfinished files"].words.startswith("1 of processes that ended")
    done = CliRunner().invoke(app, ["doctor", "--json", "--data", str(folder.root)])
    assert done.exit_code == FAILURE
    assert {each["what"]: each["state"] for each in json.loads(done.stdout)}["prefect/prefect.db"] == "BAD"


def test_the_doctor_needs_no_data_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert examine(None)[-1].words.startswith("there is none yet")
    assert "there is none yet" in " ".join(CliRunner().invoke(app, ["doctor"]).stdout.split())
    assert not os.listdir(tmp_path)


def test_the_doctor_asks_a_server_that_is_named(monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    (server,) = (each for each in examine(None) if each.what.startswith("Prefect at"))
    assert server.state is State.BAD
    assert "does not answer (Connection refused)" in server.words
