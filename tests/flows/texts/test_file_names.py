"""Names of files from names that people give, and a whole run on files and folders with awkward names."""

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
import yaml
from whole_evidence import assert_follows_from_its_scores

from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.file_names import file_name
from bandana.flows.texts.mistakes import SpecError
from bandana.flows.tracking.store.address import TrackingAddress

_ROOT = Path(__file__).parents[3]
AWKWARD = [
    "böse daten [v1] (final).csv", "böse daten [v1] (final) .csv", "100% #1.csv", "what?.csv", "a'b\"c.csv", "a\\b.csv",
    "$HOME `x`.csv", "データ.csv", "データ2.csv", "..", "-rf", "con:1|2*.csv", "<b>&amp;.csv", "a\nb.csv", "",
    "x" * 250 + ".csv", "x" * 250 + "y.csv",
]  # fmt: skip


def test_awkward_names_become_plain_ones_that_differ():
    found = [file_name(f"adar-ucb tight eps=1 on {name}") for name in AWKWARD]
    assert len(set(found)) == len(AWKWARD)
    for name in found:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,135}", name), name


def test_plain_names_stay_readable():
    assert file_name("adar-ucb tight eps=1.5 on my data_2.csv") == "adar-ucb-tight-eps-1.5-on-my-data_2.csv"
    assert file_name("ucb on a#1.csv").startswith("ucb-on-a-1.csv-")


@pytest.mark.parametrize("path", sorted((_ROOT / "experiments").glob("*.yaml")), ids=lambda path: path.name)
def test_files_of_ready_specs_keep_their_names(path):
    for cell in cells_of(load_spec(path)):
        assert cell.slug == cell.name.replace(" ", "-").replace("=", "-")


def _table(path, n_users, seed):
    rewards = np.random.Generator(np.random.SFC64(seed)).integers(0, 2, (n_users, 2))
    path.write_text("ja [1] #2,nein <b>'\"$\n" + "".join(f"{a},{b}\n" for a, b in rewards), encoding="utf-8")


def test_two_files_whose_names_differ_too_little_are_refused(write_spec, tmp_path):
    for name in ("a b.csv", "a-b.csv"):
        _table(tmp_path / name, 30, 1)
    tables = [{"kind": "table", "path": name} for name in ("a b.csv", "a-b.csv")]
    spec = load_spec(write_spec(environment=tables, horizon=30))
    with pytest.raises(SpecError, match=r"'ucb on a b\.csv' and 'ucb on a-b\.csv' would have one name; give .* labels"):
        cells_of(spec)


def test_a_folder_that_no_database_can_lie_in_is_refused(tmp_path):
    with pytest.raises(SpecError, match=r"--data: .*what\?.* holds a '\?'"):
        TrackingAddress.parse(None, tmp_path / "what?")


class _Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("href", "src") and value]


def _bandana(folder, *words):
    done = subprocess.run(
        [sys.executable, "-c", "from bandana.flows.cli import main; main()", *map(str, words)],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
def test_awkward_names_work_from_the_check_to_the_evidence(tmp_path, monkeypatch):
    """A folder, a spec, two tables and a data folder with every sign that shells, URLs, SQL, HTML and typst know."""
    monkeypatch.setenv("PYTHONPATH", str(_ROOT))
    signs = "böse daten [v1] (final) 100% #1 'q' \"d\" $x *_~ <b>&amp;`c` @"
    folder = tmp_path / signs
    folder.mkdir()
    tables = [f"{signs}.csv", f"{signs.replace('#', '?')}.csv"]
    for seed, name in enumerate(tables):
        _table(folder / name, 200, seed)
    tree = {
        "name": "names", "title": signs, "seed": 7, "horizon": 100, "replications": 4,
        "environment": [
            {"kind": "table", "path": tables[0], "public": ["values"]},
            {"kind": "table", "path": tables[1]},
        ],
        "algorithms": [
            {"algorithm": "ucb"},
            {"algorithm": "adar-ucb", "calibrations": ["tight"], "privacy": {"alpha": 2, "epsilon": 1}},
        ],
        "audit": {"rounds": 8, "replays": 2000, "examples": 5},
        "report": {"formats": ["html", "pdf", "json"]},
    }  # fmt: skip
    spec, data = folder / f"{signs}.yaml", folder / f"data {signs}"
    spec.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    words = (spec.name, "--data", data.name, "--workers", 2)
    assert f"{spec.name}: correct" in _bandana(folder, "check", spec.name)
    told = _bandana(folder, "run", *words)
    shown = subprocess.run(
        ["bash", "-c", "printf '%s\\n' " + told.rpartition(" ui ")[2].strip()], capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines() == ["--data", data.name]
    _bandana(folder, "audit", *words)
    suite = data / "suites" / "names"
    document = json.loads((suite / "report.json").read_text("utf-8"))
    assert [item["name"] for item in document["environments"]] == tables
    pages = [suite / "report.html", *sorted((suite / "audits").glob("*.html"))]
    assert len(pages) == 3
    for page in pages:
        text = page.read_text("utf-8")
        assert "<b>&amp;`c`" not in text  # escaped
        for link in _Links(text).found:
            parts = urlsplit(link)
            if parts.path and not parts.scheme:
                assert (page.parent / unquote(parts.path)).exists(), link
    assert (suite / "report.pdf").read_bytes().startswith(b"%PDF")
    for path in sorted((suite / "evidence").glob("*.npz")):
        assert_follows_from_its_scores(path)
    assert "names" in _bandana(folder, "report", spec.name, "--data", data.name)
    assert "correct" in _bandana(folder, "check", suite / "spec.yaml")

    with closing(sqlite3.connect(data / "mlflow" / "mlflow.db")) as database:
        places = [Path(unquote(urlsplit(uri).path)) for (uri,) in database.execute("select artifact_uri from runs")]
    assert len(places) >= 5  # four cells and their suite
    assert all(place.is_relative_to(data) for place in places)
    # The curves of both cells on the public table, and the suite; a cell whose regret is withheld keeps no curves.
    assert sum(place.exists() and any(place.iterdir()) for place in places) >= 3
    assert not (folder / "mlruns").exists()
