"""Algorithms that installed packages add through the entry-point group `bandana.algorithms`."""

import importlib
import sys

import pytest
import yaml
from small_spec import SMALL
from typer.testing import CliRunner

from bandana.algorithms import catalog, plugins
from bandana.flows.cells.audits import audit_key
from bandana.flows.cells.play import benchmark_block
from bandana.flows.cli import app
from bandana.flows.folder.store import Store
from bandana.flows.keys import identity
from bandana.flows.keys.closure import Code, Name
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import load_spec

ENTRY = """\
from friendly_bandits.greedy import Greedy

from bandana.algorithms.entry import Entry
from bandana.algorithms.parameters import Parameter, declared
from bandana.audits.claims import parse


def build(settings):
    return Greedy(settings.problem.n_actions, settings.parameters["mu"])


def promise(settings):
    return parse(f"gdp(mu={settings.parameters['mu']}, relation=reward)", source="a paper")


ENTRIES = [
    Entry(
        "friendly", "friendly-bandits", "central", "gdp", (), "all actions are mu-GDP", "a paper", build, ("finite",),
        declared(Parameter("mu", "Budget.", 1.0)), promise, stated="gdp(mu={mu}, relation=reward)",
    ),
]
"""
GREEDY = """\
from dataclasses import dataclass

import numpy as np

from bandana.privacy_core import Gaussian, Interval, PhaseSum, Relation


@dataclass(frozen=True)
class Greedy:
    n_actions: int
    mu: float
    reward_range: Interval = Interval(0.0, 1.0)

    @property
    def sums(self):
        return PhaseSum(Gaussian(1.0, 1 / self.mu, Relation.REPLACE_REWARD))

    def init(self, n_reps):
        return self.sums.init(n_reps), (np.zeros(n_reps), np.zeros(n_reps, dtype=int))

    def act(self, released, context, step):
        return np.where(released[0] > 0.5 * released[1], 0, released[1] % self.n_actions)

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=int)

    def absorb(self, sensitive, released, record, ledger):
        phase = self.sums.add(sensitive, record.rewards[:, 0], record.n_records)
        phase, noisy, _ = self.sums.close(phase, ledger)
        return phase, (released[0] + noisy, released[1] + 1)
"""
POINTS = """\
[bandana.algorithms]
friendly = friendly_bandits.entries:ENTRIES
absent = friendly_bandits.absent:ENTRY
ucb = friendly_bandits.twice:ENTRY
seven = friendly_bandits.twice:SEVEN
"""


def forget():
    for cached in (plugins.loaded, plugins.packages, catalog.added):
        cached.cache_clear()
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.partition(".")[0] == "friendly_bandits"]:
        del sys.modules[name]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package with one algorithm and three entry points that cannot be used."""
    package, about = tmp_path / "friendly_bandits", tmp_path / "friendly_bandits-1.0.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "__init__.py").touch()
    (package / "entries.py").write_text(ENTRY)
    (package / "greedy.py").write_text(GREEDY)
    twice = "from dataclasses import replace\n\nfrom friendly_bandits.entries import ENTRIES\n\n"
    (package / "twice.py").write_text(twice + 'ENTRY = replace(ENTRIES[0], name="ucb")\nSEVEN = 7\n')
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: friendly-bandits\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(identity, "CODE", Code())
    forget()
    yield package
    monkeypatch.undo()
    forget()


@pytest.fixture
def cell(installed, tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(SMALL), "algorithms": [{"algorithm": "friendly", "mu": 0.5}]}))
    return lambda: cells_of(load_spec(path))[0]


def test_an_installed_algorithm_is_listed_with_its_package(installed):
    done = CliRunner().invoke(app, ["list"])
    assert done.exit_code == 0
    assert "friendly (friendly-bandits)" in done.stdout
    assert "warning: absent of the package friendly-bandits cannot be used: friendly_bandits.absent:ENTRY: " in done.stderr
    assert "the name 'ucb' is taken" in done.stderr
    assert "seven of the package friendly-bandits cannot be used: it must be a bandana.algorithms.entry.Entry" in done.stderr
    assert done.stderr.count("\n") == 3
    assert CliRunner().invoke(app, ["list", "friendly"]).exit_code == 0


def test_an_unknown_name_shows_the_plugins_that_are_broken(installed):
    with pytest.raises(ValueError, match="absent of the package friendly-bandits cannot be used"):
        catalog.of_name("absent")


def test_it_is_played_with_its_claim(cell, tmp_path):
    found = cell()
    assert found.name == "friendly"
    assert found.claim().gaussian.mu == 0.5
    assert benchmark_block(found.blocks()[0], Store(tmp_path / "results"))[1]["mu"] == pytest.approx(0.5)


def test_the_code_of_its_package_is_part_of_its_keys(cell, installed, monkeypatch):
    parts = identity.CODE.closure([Name("friendly_bandits.entries", "build")]).parts
    assert {"friendly_bandits.entries:build", "friendly_bandits.greedy"} <= set(parts)
    found = cell()
    keys = found.blocks()[0].key, audit_key(found)
    (installed / "greedy.py").write_text(GREEDY.replace("> 0.5", "> 0.25"))
    monkeypatch.setattr(identity, "CODE", Code())
    assert not {found.blocks()[0].key, audit_key(found)} & set(keys)
