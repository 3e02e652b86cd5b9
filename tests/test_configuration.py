"""The team's settings file: found, checked, overruled by the environment, and named where it matters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bandana import configuration
from bandana.configuration import NAME, ConfigurationError, apply, load, nearest, read
from bandana.flows.folder.settings import data_root, is_anonymous, n_workers

WHOLE = """
data = "data"
[servers]
tracking = "https://mlflow.example.org"
artifacts = "s3://bucket/files"
user = "me"
prefect = "https://prefect.example.org/api"
[defaults]
workers = 3
anonymous = true
"""
VARIABLES = {
    "BANDANA_TRACKING_URI": "https://mlflow.example.org", "BANDANA_ARTIFACT_ROOT": "s3://bucket/files",
    "MLFLOW_TRACKING_USERNAME": "me", "PREFECT_API_URL": "https://prefect.example.org/api", "BANDANA_WORKERS": "3",
    "BANDANA_ANONYMOUS": "1",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    monkeypatch.setattr(os, "environ", {n: v for n, v in os.environ.items() if n not in {*VARIABLES, "BANDANA_DATA"}})
    monkeypatch.setattr(configuration, "_read", {})


def _file(folder: Path, text: str) -> Path:
    path = folder / NAME
    path.write_text(text, "utf-8")
    return path


def test_file_of_a_parent_sets_every_variable(tmp_path):
    path, below = _file(tmp_path, WHOLE), tmp_path / "a" / "b"
    below.mkdir(parents=True)
    apply(below)
    assert {name: os.environ[name] for name in VARIABLES} == VARIABLES
    assert (data_root(), n_workers(), is_anonymous()) == (tmp_path / "data", 3, True)
    settings = read()
    assert settings is not None
    assert settings.path == path
    assert settings.overruled == []
    assert len(settings.applied) == len(VARIABLES) + 1


def test_nearer_file_hides_one_above(tmp_path):
    _file(tmp_path, WHOLE)
    below = tmp_path / "a"
    below.mkdir()
    near = _file(below, 'data = "/elsewhere"\n')
    assert nearest(below) == near
    apply(below)
    assert data_root() == Path("/elsewhere")
    assert "BANDANA_TRACKING_URI" not in os.environ


def test_environment_overrules_and_is_said(tmp_path):
    _file(tmp_path, 'data = "data"\n[defaults]\nworkers = 3\n')
    os.environ["BANDANA_WORKERS"] = "5"
    apply(tmp_path)
    assert n_workers() == 5
    assert str(read()) == f"data from {tmp_path / NAME}; the environment overrules defaults.workers"


def test_without_a_file_nothing_is_set(tmp_path):
    before = dict(os.environ)
    if nearest(tmp_path) is None:  # nobody keeps one above the folder of the tests
        apply(tmp_path)
    assert os.environ == before
    assert read() is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dat = 1\n", "dat: unknown setting 'dat'; did you mean 'data'? known are: data, servers, defaults"),
        ('[servers]\ntrackin = "x"\n', "servers.trackin: unknown setting 'trackin'; did you mean 'tracking'? known are: "),
        ("data = 3\n", "data: must be the path of the data folder, or s3://BUCKET/PREFIX, got 3"),
        ('servers = "x"\n', "servers: must be a table, got 'x'"),
        ('[defaults]\nworkers = "8"\n', "defaults.workers: must be a whole number of at least 1, got '8'"),
        ("[defaults]\nworkers = 0\n", "defaults.workers: must be a whole number of at least 1, got 0"),
        ('[defaults]\nanonymous = "yes"\n', "defaults.anonymous: must be true or false, got 'yes'"),
        ("data = \n", "not valid TOML: "),
    ],
)
def test_mistake_names_field_value_and_remedy(tmp_path, text, words):
    path = _file(tmp_path, text)
    with pytest.raises(ConfigurationError, match="^" + re.escape(f"{path}: {words}")):
        load(path)


def test_every_mistake_has_a_line(tmp_path):
    path = _file(tmp_path, "data = 3\n[defaults]\nworkers = 0\n")
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    assert len(str(caught.value).splitlines()) == 2


def test_password_is_refused_and_not_shown(tmp_path):
    path = _file(tmp_path, '[servers]\ntracking = "https://me:hunter2@mlflow.example.org"\n')
    with pytest.raises(
        ConfigurationError, match=r"servers\.tracking: must be .* without a password, got an address"
    ) as caught:
        load(path)
    assert "hunter2" not in str(caught.value)


def test_file_that_others_may_write_is_refused(tmp_path, monkeypatch):
    path = _file(tmp_path, WHOLE)
    path.chmod(0o666)
    with pytest.raises(ConfigurationError, match="everybody may write it"):
        load(path)
    path.chmod(0o644)
    load(path)
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    if path.stat().st_uid != 0:
        with pytest.raises(ConfigurationError, match="belongs to another user"):
            load(path)
    os.environ["BANDANA_WORKERS"] = "no"
    with pytest.raises(ValueError, match="BANDANA_WORKERS must be a whole number of at least 1, got 'no'"):
        n_workers()


def test_command_ends_with_2_on_a_mistake_and_check_names_the_file(tmp_path):
    path = _file(tmp_path, "dat = 1\n")
    command = [sys.executable, "-m", "bandana"]
    done = subprocess.run([*command, "list"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {path}: dat: unknown setting")
    path.write_text('data = "results"\n', "utf-8")
    spec = tmp_path / "x.yaml"
    spec.write_text(
        "name: x\nseed: 1\nenvironment: {kind: bernoulli, means: [0.7, 0.4]}\nhorizon: 100\nreplications: 2\n"
        "algorithms:\n  - algorithm: ucb\n",
        "utf-8",
    )
    done = subprocess.run([*command, "check", "x.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-2:] == [f"settings: data from {path}", "x.yaml: correct"]
