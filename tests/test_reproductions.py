"""docs/reproductions.md: its numbers are those of the spec, and its tables and figures come from one script."""

import re
from pathlib import Path

import numpy as np
import pytest

from bandana.flows.running.store import Store
from bandana.flows.spec.plan import cells_of
from bandana.flows.spec.spec import load_spec
from bandana.flows.suites.play import benchmark_block

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([\w-]+ printed) \| ([\d.]+) \| ([\d.]+) ± ([\d.]+) \| (\d+) \| (equal.*|[+-][\d.]+) \|$", re.M)


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import figures

    return figures


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


def test_tight_is_better_wherever_the_page_compares():
    rows = re.findall(r"^\| ([\w -]+) \| ([\d.]+) \| ([\d.]+) ± [\d.]+ \| ([\d.]+) ± [\d.]+ \| ([\d.]+) \|", PAGE, re.M)
    assert {name for name, *_ in rows} == {"adar-ucb", "adap-ucb", "adar-gope", "adar-oful", "linucb joint", "linucb local"}
    for name, epsilon, printed, tight, ratio in rows:
        assert float(printed) > float(tight), (name, epsilon)
        assert float(ratio) == pytest.approx(float(printed) / float(tight), rel=0.02)


def test_tight_gp_ucb_is_better_beyond_both_intervals():
    rows = re.findall(
        r"^\| delta = ([\d.]+) \| ([\d.]+) \| ([\d.]+) ± ([\d.]+) \| ([\d.]+) ± ([\d.]+) \| ([\d.]+) \|", PAGE, re.M
    )
    assert len(rows) == 7
    for delta, epsilon, printed, wide, tight, narrow, ratio in rows:
        assert float(printed) - float(wide) > float(tight) + float(narrow), (delta, epsilon)
        assert float(ratio) == pytest.approx(float(printed) / float(tight), rel=0.02)


def test_differences_are_counted_in_standard_errors_of_both(figures):
    cell = {"final_mean": 110.0, "final_high": 110.0 + 1.96 * 5}
    assert figures.in_standard_errors(cell, 100.0) == pytest.approx(10 / (5 * np.sqrt(2)), rel=1e-3)
    assert figures.interval({"final_mean": 1234.5, "final_high": 1236.6}) == "1234 ± 2"


def test_table_1_is_beaten_where_the_page_says_so():
    """On the pool: below printed at every epsilon, intervals apart; at epsilon 1 below the paper's row of epsilon 10."""
    number = r"([\d.]+) ± ([\d.]+)"
    rows = re.findall(rf"^\| ([\w-]+) \| ([\d.]+) \| (\d+) \| {number} \| {number} \| {number} \|$", PAGE, re.M)
    assert len(rows) == 9
    paper = {(name, float(epsilon)): float(told) for name, epsilon, told, *_ in rows}
    for name, epsilon, _, printed, printed_half, _, _, pool, pool_half in rows:
        assert float(pool) + float(pool_half) < float(printed) - float(printed_half), (name, epsilon)
        if float(epsilon) == 1:
            assert float(pool) + float(pool_half) <= paper[name, 10.0], name
