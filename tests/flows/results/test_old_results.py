"""Results of other code or other libraries: recognized, computed again, and told in one line."""

import json

import numpy as np
import pytest
import yaml
from small_spec import SMALL

from bandana.flows.cells.play import BENCHMARK, benchmark_block
from bandana.flows.folder.journal import Journal
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.keys import identity
from bandana.flows.plan.plan import cells_of
from bandana.flows.results.old_results import Old, find_in
from bandana.flows.spec.spec import load_spec

BOTH = ["benchmark", "audit"]
OLD = "0" * 64


@pytest.fixture
def folder(tmp_path):
    return DataFolder.open(tmp_path / "data")


@pytest.fixture
def spec(write_spec):
    return load_spec(write_spec())


def test_results_of_another_numpy_are_counted_and_those_of_another_question_are_not(spec, folder, write_spec, monkeypatch):
    store, cells = Store(folder.results), cells_of(spec)
    assert find_in(cells, BOTH, folder) == Old(0, 0)
    with monkeypatch.context() as patched:
        patched.setattr(np, "__version__", "1.99.0")
        for cell in cells:
            for block in cell.blocks():
                benchmark_block(block, store)
    size = sum(store.sizes(BENCHMARK).values())
    assert find_in(cells, BOTH, folder) == Old(4, size)
    assert find_in(cells, ["audit"], folder) == Old(0, 0)
    assert find_in(cells_of(load_spec(write_spec(horizon=501))), BOTH, folder) == Old(0, 0), "another question"
    assert find_in(cells_of(load_spec(write_spec(replications=4))), BOTH, folder).n == 2
    benchmark_block(cells[0].blocks()[0], store)
    assert find_in(cells, BOTH, folder).n == 3


def test_files_of_older_keys_are_known_from_the_journal(spec, folder):
    """What ran before keys had halves left a journal with the names of its blocks and audits."""
    store, (bare, private), journal = Store(folder.results), cells_of(spec), Journal(folder.journal(spec.name))
    for i, n_reps in enumerate((4, 2)):
        store.save(BENCHMARK, f"{i:064x}", {"x": np.zeros(i)}, {})
        journal.write(
            "block done", cell=bare.name, run_key="0" * 64, block=i, result=f"{i:064x}", n_reps=n_reps, seconds=1.0
        )
    journal.write("block done", cell=private.name, run_key="0" * 64, block=0, result="f" * 64, n_reps=4, seconds=1.0)
    journal.write("block done", cell=bare.name, run_key="0" * 64, block=0, result="e" * 64, n_reps=3, seconds=1.0)
    journal.write("audit done", cell=private.name, run_key="0" * 64, verdict="PASS", seconds=1.0, replays=8000)
    assert find_in([bare, private], BOTH, folder).n == 2, "one block's file is lost, and so is the audit's"
    place = folder.evidence(spec.name, private.slug)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"x" * 100)
    found = find_in([bare, private], BOTH, folder)
    assert found == Old(3, 100 + sum(store.sizes(BENCHMARK).values()))


def test_keys_are_told_from_older_ones(spec):
    cell = cells_of(spec)[1]
    assert identity.is_key(cell.key)
    assert identity.is_key(cell.blocks()[0].key)
    assert not identity.is_key("0" * 64)


def test_the_line_counts_and_says_where_old_files_are(tmp_path, capsys):
    for old in (Old(0, 0), Old(1, 0), Old(12, 2_340_000)):
        old.tell(tmp_path)
    one, many = capsys.readouterr().err.splitlines()
    assert one.startswith("1 result was made by other code or other library versions; it is computed again")
    assert many.startswith("12 results were made by other code or other library versions; they are computed again")
    assert many.endswith(f"(old files stay in {tmp_path}: 2.3 MB)")


@pytest.mark.slow
def test_a_run_on_an_old_folder_says_it_in_one_line_and_computes_again(bandana, data, tmp_path, monkeypatch):
    """The same spec, run with a NumPy that is taken for another one, then with the installed one."""
    tree = yaml.safe_load(SMALL) | {"report": {"formats": ["json"]}}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(tree))
    libraries, told = identity.libraries(), []
    for version in ("1.99", libraries["numpy"]):
        monkeypatch.setattr(identity, "libraries", lambda version=version: libraries | {"numpy": version})
        done = bandana("run", tmp_path / "spec.yaml", "--data", data, "--executor", "local", "--json")
        assert done.exit_code == 0, done.output
        told.append([line for line in done.stderr.splitlines() if "other code or other library versions" in line])
        report = json.loads((data / "suites" / "small" / "report.json").read_text())
        assert [cell["role"] for cell in report["benchmark"]["cells"]].count("algorithm") == 2
    assert [len(lines) for lines in told] == [0, 1]
    assert told[1][0].startswith("10 results were made by other code or other library versions; they are computed again")
    assert len(Store(data / "results").sizes(BENCHMARK)) == 20
