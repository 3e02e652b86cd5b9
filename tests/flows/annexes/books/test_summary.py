"""A report shows what all runs on private data have spent, beside those of its suite, by the book that the spec names."""

import math

import pytest
import yaml

from bandana.audits.reporting import validate
from bandana.flows.annexes.books.summary import books_of
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.own.data import pinned
from bandana.flows.plan.plan import Plan
from bandana.flows.results.report_document import assemble
from bandana.flows.spec.spec import load_spec
from bandana.privacy_core import GaussianDP

DELTA = 1e-6
MU = 0.1
"""GDP parameter of a run that is (2, 0.01)-RDP."""


def spec_of(folder, name, epsilons):
    (folder / "people.csv").write_text("stay,go\n" + "0,1\n1,0\n" * 150)
    tree = {
        "name": name, "seed": 7, "horizon": 200, "replications": 2,
        "environment": {"kind": "table", "path": "people.csv",
                        "data": {"book": "trial", "budget": {"epsilon": 3, "delta": DELTA}}},
        "algorithms": [{"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": epsilons}}],
    }  # fmt: skip
    place = folder / f"{name}.yaml"
    place.write_text(yaml.safe_dump(tree))
    return pinned(load_spec(place), folder / "data"), place.read_text("utf-8")


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Two suites that spent from one book: one cell, then two."""
    root = tmp_path_factory.mktemp("books")
    folder = DataFolder.open(root / "data")
    specs = [spec_of(root, "monday", [0.01]), spec_of(root, "tuesday", [0.0225, 0.04])]
    for spec, _ in specs:
        for cell in Plan.of(spec).played:
            for block in cell.blocks():
                benchmark_block(block, Store(folder.results))
    return folder, specs


def epsilon_of(*mus):
    return GaussianDP(math.sqrt(sum(mu**2 for mu in mus))).epsilon(DELTA)


def test_all_runs_stand_beside_those_of_the_suite_and_its_most_costly_cell(played):
    folder, specs = played
    spec, text = specs[1]
    document = assemble(Plan.of(spec), text, Store(folder.results))
    validate(document)
    (found,) = document["books"]
    assert (found["environment"], found["name"], found["problem"]) == ("people.csv", "trial", None)
    assert (found["budget"], found["delta"]) == (3.0, DELTA)
    # Secure noise is drawn a little larger than its charge needs.
    assert found["spent"] == pytest.approx(epsilon_of(*[MU] * 2, *[1.5 * MU] * 2, *[2 * MU] * 2), rel=0.01)
    assert found["suite_spent"] == pytest.approx(epsilon_of(*[1.5 * MU] * 2, *[2 * MU] * 2), rel=0.01)
    assert found["most_costly_cell"] == pytest.approx(epsilon_of(2 * MU, 2 * MU), rel=0.01)
    assert found["most_costly_cell"] < found["suite_spent"] < found["spent"] < found["budget"]
    assert document["benchmark"]["cells"][0]["noise"].startswith("secure")


def test_a_book_that_cannot_be_read_is_named_with_the_reason(played, tmp_path):
    folder, specs = played
    place = folder.root / "books" / "trial.sqlite"
    aside = place.rename(tmp_path / "aside.sqlite")
    try:
        (found,) = books_of(specs[0][0], is_played=True)
        assert books_of(specs[0][0], is_played=False) == [], "nobody opened it yet"
        assert found["spent"] is None
        assert "does not exist" in found["problem"]
        validate(assemble(Plan.of(specs[0][0]), specs[0][1], Store(folder.results)))
    finally:
        aside.rename(place)


def test_a_spec_without_a_book_has_none(played):
    spec = played[1][0][0]
    item = spec.environment[0].model_copy(update={"data": None})
    assert books_of(spec.model_copy(update={"environment": [item]}), is_played=True) == []
