"""`bandana.run`: a suite played from Python, without a server, under the keys of the command."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from small_spec import SMALL

import bandana
from bandana.algorithms.catalog import known
from bandana.flows.folder.journal import Journal

FEW = {**yaml.safe_load(SMALL), "horizon": 200, "audit": {"rounds": 8, "replays": 1000, "examples": 5}}


def python(text, folder, **options):
    """A program in a process of its own, as a file."""
    program = folder / "program.py"
    program.write_text(text)
    return subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300, cwd=folder, **options)


def contents(folder):
    """Files of the store, by name."""
    return {path.name: path.read_bytes() for path in (folder / "results").rglob("*.npz")}


def journal(folder, event):
    """Cells and numbers of the blocks that an event of the suite's journal names."""
    return [(e["cell"], e["block"]) for e in Journal(folder / "suites/small/log.jsonl").read() if e["event"] == event]


def test_the_import_is_cheap(tmp_path):
    """Nothing of the four layers, and no library, is loaded before a name is asked for."""
    text = "import sys\nbefore = set(sys.modules)\nimport bandana\nprint(*sorted(set(sys.modules) - before))"
    loaded = set(python(text, tmp_path, check=True).stdout.split())
    assert "bandana" in loaded
    assert not {name for name in loaded if name.startswith("bandana.")}
    assert not loaded & {"numpy", "scipy", "pandas", "matplotlib", "pydantic", "prefect", "mlflow", "numba", "typer"}
    assert len(loaded) < 40


def test_the_catalog_has_a_row_for_each_entry():
    table = bandana.catalog()
    assert list(table.label) == [entry.label for entry in known()]
    rows = bandana.catalog("adar-ucb").set_index("guarantee")
    assert rows.parameters["renyi"] == {"beta": "3.1"}
    assert (rows.privacy_model["renyi"], rows.has_bound["renyi"]) == ("central", True)
    assert set(bandana.catalog(model="local", family="kernel").privacy_model) == {"local"}
    with pytest.raises(bandana.SpecError, match="unknown algorithm 'AdaR-UCB'; did you mean 'adar-ucb'"):
        bandana.catalog("AdaR-UCB")


def test_every_public_name_is_there():
    assert set(bandana.__all__) == set(dir(bandana))
    assert all(getattr(bandana, name) is not None for name in set(bandana.__all__) - {"Audit", "audit"})
    with pytest.raises(AttributeError, match="has no attribute 'plot'"):
        _ = bandana.plot


@pytest.mark.slow
def test_a_run_starts_no_server_and_loads_neither_prefect_nor_mlflow(tmp_path):
    text = f"""\
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
import bandana
from bandana.flows.annex import plugs_at
from listening import listening
result = bandana.run({FEW!r}, data="data", audit=True, executor="local")
result.frame(), result.curves(), plugs_at("results") and result.plot("figure.pdf")
print(listening(os.getpid()), sorted({{"prefect", "mlflow", "torch"}} & set(sys.modules)), len(result.names))
"""
    done = python(text, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "set() [] 5"


@pytest.mark.slow
def test_workers_play_the_same_bytes_and_a_script_without_a_guard_runs_once(tmp_path):
    """Also after one of them was killed. `spawn` would run the script again in each, which ends in an error."""
    text = f"""\
import multiprocessing, os, signal, threading, time
import bandana

def kill():
    while not multiprocessing.active_children():
        time.sleep(0.01)
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)

threading.Thread(target=kill, daemon=True).start()
try:
    bandana.run({FEW!r}, data="several", workers=2)
except Exception as error:
    print(type(error).__name__, multiprocessing.active_children())
print(bandana.run({FEW!r}, data="several", workers=2))
"""
    done = python(text, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("BrokenProcessPool []\n<Result of suite"), done.stdout
    assert done.stdout.count("Result of suite") == 1
    bandana.run(FEW, data=tmp_path / "one", executor="local")
    one, several = contents(tmp_path / "one"), contents(tmp_path / "several")
    assert one.keys() == several.keys()
    for name in one:
        with (
            np.load(tmp_path / "one/results/benchmark" / name) as a,
            np.load(tmp_path / "several/results/benchmark" / name) as b,
        ):
            assert all(np.array_equal(a[part], b[part]) for part in a.files if part != "description")


def test_the_command_continues_a_run_and_a_run_continues_the_command(write_spec, data, bandana):
    from bandana import load, run

    spec = write_spec(horizon=200, replications=4, block_size=2, report={"formats": ["json"]})
    run(spec, data=data)
    before = contents(data)
    assert bandana("run", spec, "--data", data).exit_code == 0
    assert contents(data) == before
    assert len(journal(data, "block done")) == len(before)
    more = write_spec(horizon=200, replications=6, block_size=2)
    found = run(more, data=data)
    assert contents(data).items() > before.items()
    assert {block for _, block in journal(data, "block done")[len(before) :]} == {2}
    assert load("small", data=data).frame().equals(found.frame())


def test_tracking_is_off_unless_it_is_asked_for(write_spec, data):
    from bandana.flows.tracking.tracker import Tracker

    spec = write_spec(horizon=100, replications=2, audit__replays=1000, audit__examples=5, audit__rounds=8)
    assert not [e for e in bandana.run(spec, data=data).folder.root.rglob("*") if e.name == "artifacts"]
    assert Tracker.open(data)._store.client.get_experiment_by_name("small") is None
    bandana.run(spec, data=data, track=True, audit=True, executor="local")
    client = Tracker.open(data)._store.client
    runs = client.search_runs([client.get_experiment_by_name("small").experiment_id])
    assert {run.data.tags["cell"] for run in runs} == set(bandana.load("small", data=data).names)
    assert {run.info.run_name for run in runs} == {cell.title for cell in bandana.load("small", data=data).cells}
    (private,) = [run for run in runs if "verdict" in run.data.tags]
    assert private.data.metrics["regret/final"] > 0


def test_a_spec_is_a_path_a_text_or_fields(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = yaml.safe_dump({**FEW, "horizon": 50, "replications": 2})
    (tmp_path / "spec.yaml").write_text(text)
    means = np.array([0.8, 0.4])
    fields = {**FEW, "environment": {"kind": "bernoulli", "means": means}, "horizon": np.int64(50), "replications": 2}
    found = [bandana.run(spec, data="data").frame() for spec in ("spec.yaml", Path("spec.yaml"), text, fields)]
    assert all(frame.equals(found[0]) for frame in found)
    assert len(journal(tmp_path / "data", "block done")) == 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"horizon": -1}, "horizon: must be greater than or equal to 1, got -1"),
        ({"algorithms": [{"algorithm": "adar-ucc"}]}, r"algorithms\[0\]\.algorithm: .*adar-ucc"),
        ({"algorithms": [{"algorithm": max}]}, r"algorithms\[0\]\.algorithm: must be made of numbers.*named by its file"),
        ({"title": {1, 2}}, "title: must be made of numbers, text, lists and dicts, got set"),
    ],
)
def test_a_mistake_in_fields_names_the_field_and_no_line(change, said, tmp_path):
    with pytest.raises(bandana.SpecError, match=said) as caught:
        bandana.run({**FEW, **change}, data=tmp_path)
    assert not re.search(r":\d+:", str(caught.value))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"executor": "dask"}, "executor: must be 'local' or 'processes', got 'dask'"),
        ({"workers": 0}, "workers: must be a whole number of at least 1, got 0"),
        ({"executor": "local", "workers": 2}, "workers: 2 processes need executor='processes'"),
    ],
)
def test_a_mistake_in_an_argument_says_what_is_allowed(options, said, tmp_path):
    with pytest.raises(bandana.SpecError, match=said):
        bandana.run(FEW, data=tmp_path, **options)


def test_what_cannot_be_a_spec_is_refused(tmp_path):
    with pytest.raises(bandana.SpecError, match=r"no-such\.yaml: cannot be read"):
        bandana.run("no-such.yaml", data=tmp_path)
    with pytest.raises(bandana.SpecError, match="give the place of a YAML file, a YAML text or a dict, got int"):
        bandana.run(7, data=tmp_path)
    with pytest.raises(bandana.SpecError, match="nothing to audit"):
        bandana.run({**FEW, "algorithms": [{"algorithm": "ucb"}]}, data=tmp_path, audit=True)


def test_a_suite_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    with pytest.raises(bandana.SpecError, match="has no suite 'smal'; it has none yet"):
        bandana.load("smal", data=tmp_path)
    bandana.run({**FEW, "horizon": 20, "replications": 2}, data=tmp_path)
    with pytest.raises(bandana.SpecError, match="has no suite 'smal'; it has: small"):
        bandana.load("smal", data=tmp_path)
    next((tmp_path / "results/benchmark").iterdir()).unlink()
    with pytest.raises(bandana.SpecError, match="lacks results of"):
        bandana.load("small", data=tmp_path)


def test_the_report_of_a_run_is_the_command_s(tmp_path):
    result = bandana.run({**FEW, "horizon": 50, "replications": 2}, data=tmp_path / "data", audit=True, executor="local")
    (one,) = result.report(tmp_path / "r.json")
    document = json.loads(one.read_text())
    assert document["title"] == "A small experiment"
    assert [entry["label"] for entry in document["audits"]] == ["adar-ucb tight eps=1"]
    written = result.report(tmp_path / "folder")
    assert {path.name for path in written} >= {"report.html", "report.pdf", "report.json"}
    assert (tmp_path / "folder/audits/adar-ucb-tight-eps-1.html") in written
    assert all(path.is_file() for path in written)
