"""The ready-made specs: every entry of the catalog stands in one, and the pages speak of cells that they have."""

from __future__ import annotations

import pytest
from documentation import ROOT, listed_only

from bandana.algorithms.catalog import CATALOG
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.spec.spec import load_spec
from benchmarks.verdicts import verdicts


@pytest.fixture(scope="module")
def cells() -> dict[str, list[Cell]]:
    with listed_only():
        return {path.stem: list(Plan.of(load_spec(path)).played) for path in sorted((ROOT / "experiments").glob("*.yaml"))}


def test_no_entry_of_the_catalog_is_without_a_spec(cells):
    found = {cell.entry.label for suite in cells.values() for cell in suite}
    assert {entry.label for entry in CATALOG} - found == set()


def test_every_verdict_of_the_page_speaks_of_cells_that_its_suite_has(cells):
    listed = verdicts()
    assert listed
    page = " ".join((ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8").split())
    for verdict in listed:
        names = {cell.name for cell in cells[verdict.suite]}
        assert set(verdict.cells) <= names, verdict.suite
        assert f"<!-- table: {verdict.suite}" in page, f"{verdict.suite} is not on the page"
        assert verdict.says in page, f"the page does not say {verdict.says!r}"
