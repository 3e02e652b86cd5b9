"""docs/reproductions.md: its numbers are those of the spec, and its tables and figures come from one script."""

import re
from pathlib import Path

import numpy as np
import pytest
from documentation import listed_only

from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.plan.roles import Role
from bandana.flows.spec.spec import load_spec

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([\w-]+ printed) \| ([\d.]+) \| ([\d.]+) ± ([\d.]+) \| (\d+) \| (equal.*|[+-][\d.]+) \|$", re.M)


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import figures

    return figures


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import tables

    return tables


@pytest.mark.parametrize("name", ["adap-ucb", "adap-klucb", "dp-se", "adar-ucb"])
def test_the_regret_on_the_page_is_that_of_the_spec(name, tmp_path):
    shown = {(label, float(epsilon)): float(mean) for label, epsilon, mean, *_ in ROW.findall(PAGE)}
    cells = cells_of(load_spec(ROOT / "experiments" / "azize-basu-figure-2.yaml"))
    (cell,) = [cell for cell in cells if cell.name == f"{name} printed eps=1"]
    blocks = [benchmark_block(block, Store(tmp_path))[0]["regret"][:, -1] for block in cell.blocks()]
    assert len(np.concatenate(blocks)) == 2000
    assert np.concatenate(blocks).mean() == pytest.approx(shown[f"{name} printed", 1.0], rel=1e-3)


def test_the_page_says_how_far_each_number_is_from_its_reference(figures):
    rows = ROW.findall(PAGE)
    expected = [(name, epsilon) for name in figures.REFERENCE for epsilon in figures.EPSILONS]
    assert [(name, float(epsilon)) for name, epsilon, *_ in rows] == expected
    for name, epsilon, mean, half, reference, apart in rows:
        assert int(reference) == figures.REFERENCE[name][figures.EPSILONS.index(float(epsilon))]
        if not apart.startswith("equal"):
            error = np.sqrt(2) * float(half) / 1.96
            assert (float(mean) - int(reference)) / error == pytest.approx(float(apart), rel=0.2, abs=0.3)


def test_every_table_holds_the_cells_of_its_spec(tables):
    places = tables._PLACE.findall(PAGE)
    assert len(places) >= 10
    suites = {place[1] for place in places}
    with listed_only():
        played = {suite: list(Plan.of(load_spec(ROOT / "experiments" / f"{suite}.yaml")).played) for suite in suites}
    for head, suite, environment, _ in places:
        table = PAGE.split(head)[1].split("<!-- end -->")[0]
        names = re.findall(r"^\| (?!cell|--)([^|]+) \| [-\d.]+ ± ", table, re.M)
        cells = [
            cell for cell in played[suite] if cell.role is not Role.TWIN and environment in ("", cell.environment.label)
        ]
        ending = f" on {environment}" if environment else ""
        assert names == [cell.name.removesuffix(ending) for cell in cells], suite


def test_the_pages_of_papers_show_the_numbers_of_the_reproductions(tables):
    n_tables = 0
    for path in tables.PAPERS.glob("*.md"):
        page = path.read_text(encoding="utf-8")
        n_tables += page.count("<!-- numbers: ")
        assert tables.with_numbers(page, PAGE) == page, "run: python docs/tables.py bandana_data"
    assert n_tables >= 10
    with pytest.raises(KeyError, match="no-suite"):
        tables.with_numbers("<!-- numbers: no-suite -->\n<!-- end -->", PAGE)


def test_numbers_are_shown_by_epsilon(tables):
    rows = "| a tight eps=1 | 2.0 ± 0.1 | x |\n| a tight eps=0.1 delta=0.5 | 3.0 ± 0.1 | x |\n| greedy | 4.0 ± 0.1 | |\n"
    assert tables.numbers_of(f"| cell | regret |\n|---|--:|\n{rows}").splitlines() == [
        "| regret at ε | 0.1 | 1 |",
        "|---|--:|--:|",
        "| a tight |  | 2.0 ± 0.1 |",
        "| a tight delta=0.5 | 3.0 ± 0.1 |  |",
        "",
        "Without privacy: greedy 4.0 ± 0.1.",
    ]
    with pytest.raises(ValueError, match="no cell"):
        tables.numbers_of("| cell | regret |\n")


def test_a_table_shows_paired_differences_and_what_is_not_resolved(tables):
    def cell(label, final, role="algorithm"):
        return {"label": label, "algorithm": label, "environment": "arms", "role": role,
                "final_mean": final, "final_low": final - 1, "final_high": final + 1}  # fmt: skip

    def pair(kind, other, mean):
        return {"kind": kind, "cell": "tight", "other": other, "mean": mean, "low": mean - 2, "high": mean + 2}

    cells = [
        cell("printed", 30.0),
        cell("tight", 20.0),
        cell("silent", 19.0, "twin"),
        cell("uniform play", 15.0, "reference"),
    ]
    pairs = [pair("calibration", "printed", -10.0), pair("noise", "silent", 1.0), pair("reference", "uniform play", 5.0)]
    document = {"environments": [{}], "benchmark": {"cells": cells, "comparisons": pairs}}
    assert tables.table_of(document).splitlines() == [
        "| cell | regret | against the first calibration | cost of its noise | than uniform play |",
        "|---|--:|--:|--:|--:|",
        "| printed | 30.0 ± 1.0 |  |  |  |",
        "| tight | 20.0 ± 1.0 | -10.0 (-12.0 to -8.0) | +1.0 (-1.0 to +3.0) (?) | worse |",
        "| uniform play | 15.0 ± 1.0 |  |  |  |",
    ]
    assert tables.filled("a\n<!-- table: none -->\nold\n<!-- end -->\n", Path("nowhere")).count("old") == 1


def test_differences_are_counted_in_standard_errors_of_both(figures):
    cell = {"final_mean": 110.0, "final_low": 110.0 - 1.96 * 5, "final_high": 110.0 + 1.96 * 5}
    assert figures.in_standard_errors(cell, 100.0) == pytest.approx(10 / (5 * np.sqrt(2)), rel=1e-3)
    assert figures.interval({"final_mean": 1234.5, "final_low": 1232.4, "final_high": 1236.6}) == "1234 ± 2"
