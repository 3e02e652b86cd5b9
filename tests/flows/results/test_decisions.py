"""What tests for the best arm decided: in the table of cells, in the report's document, and on its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bandana
from bandana.audits.reporting.intervals import share_interval
from bandana.audits.reporting.sections.decisions import tests_table as table_of_tests
from bandana.flows.cells import replays
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import parse_spec

SPEC = {
    "name": "tests", "seed": 3, "environment": {"kind": "bernoulli", "means": [0.2, 0.5]}, "horizon": 3000,
    "replications": 40, "block_size": 20, "twins": False, "references": False,
    "algorithms": [
        {"algorithm": "adap-tt", "model": "none"},
        {"algorithm": "adap-tt", "privacy": {"epsilon": 1.0}, "calibrations": ["as-known", "tight"]},
        {"algorithm": "dp-bai", "privacy": {"epsilon": 1.0}, "calibrations": "tight", "budget": 100},
        {"algorithm": "ucb"},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return bandana.run(SPEC, data=tmp_path_factory.mktemp("tests"), executor="local")


def test_the_table_of_cells_has_rounds_and_errors(found):
    frame = found.frame().set_index("cell")
    tight, known, budget = (frame.loc[f"{name} eps=1"] for name in ("adap-tt tight", "adap-tt as-known", "dp-bai tight"))
    assert 20 < tight["test_rounds"] < known["test_rounds"] <= 3000
    assert tight["test_undecided"] == 0
    assert tight["test_rounds"] > tight["test_least"] > 5
    assert tight["test_error_bound"] == 0.05
    assert (budget["test_rounds"], budget["test_undecided"]) == (100, 0)
    assert 0 < budget["test_error_bound"] < 0.5
    assert frame["test_wrong"].max() <= 0.25, "above by chance with probability below 1e-6: 10 wrong of 40 at 0.05"
    assert frame.loc["ucb"].filter(like="test_").isna().all()


def test_the_page_says_what_was_decided(found, tmp_path):
    (page, *_) = found.report(tmp_path / "report.json")
    cells = json.loads(page.read_text("utf-8"))["benchmark"]["cells"]
    assert [cell["label"] for cell in cells if cell["decision"] is None] == ["ucb"]
    blocks = table_of_tests(cells, 40, "", "rounds")
    assert len(blocks[0]["rows"]) == 4
    assert "d_epsilon" in str(blocks[1])
    assert table_of_tests([cell for cell in cells if cell["decision"] is None], 40, "", "rounds") == []


def test_an_audit_of_a_test_with_a_budget_says_that_it_plays_without():
    """Its few rounds are the budget: what was asked for is more than there are."""
    cells = {cell.entry.label: cell for cell in cells_of(parse_spec(json.dumps(SPEC), "spec", Path())) if cell.is_private}
    told = replays._played_with(cells["dp-bai"], cells["dp-bai"].in_audit(), None, None)
    assert told == "; replays play with no budget"
    assert "replays play with beta_scale = " in replays._played_with(
        cells["adap-tt"], cells["adap-tt"].in_audit(), None, None
    )


def test_the_interval_of_a_share_covers_none_and_all():
    assert share_interval(0, 100) == pytest.approx((0, 0, 0.0362), abs=1e-4)
    assert share_interval(100, 100)[1:] == pytest.approx((0.9638, 1), abs=1e-4)
    assert share_interval(5, 100) == pytest.approx((0.05, 0.0164, 0.1128), abs=1e-4)
