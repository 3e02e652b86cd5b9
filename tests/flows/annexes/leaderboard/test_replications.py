"""Rows with skewed regret play on, by a stated rule: the first replications stay what they are."""

import numpy as np
import pytest
from test_leaderboard import make, play

from bandana.flows.annexes.leaderboard import replications, tuning
from bandana.flows.annexes.leaderboard.benchmark_folder import read
from bandana.flows.annexes.leaderboard.replications import finished, is_skewed, longer, longer_plan
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.results.summaries import summarize_cell
from bandana.flows.running.side_by_side import Workers


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Blocks of three, of which six replications come first."""
    place = tmp_path_factory.mktemp("skewed")
    benchmark = read(make(place / "tiny", horizon=60))
    data = place / "data"
    data.mkdir()
    folder = DataFolder.open(data)
    with Workers(1) as workers:
        tuning.play([benchmark.problems[0].plan], Store(folder.results), workers)
    return benchmark, data, Store(folder.results)


def test_skewness_is_that_of_the_sample():
    assert is_skewed(np.array([0.0] * 19 + [1.0]))
    assert not is_skewed(np.arange(20.0))
    assert not is_skewed(np.ones(20))
    assert not is_skewed(np.array([652.2] * 19 + [np.nextafter(652.2, 653)])), "a sum's last digit hangs on the processor"


def test_a_skewed_row_plays_on_with_the_same_first_replications(played, monkeypatch):
    benchmark, data, store = played
    plan = benchmark.problems[0].plan
    assert all(finished(cell, store)[0] is cell for cell in plan.cells)
    # As if every row were skewed, and twelve replications were enough.
    monkeypatch.setattr(replications, "is_skewed", lambda values: True)
    monkeypatch.setattr(replications, "ENOUGH", 12)
    more = longer_plan(plan, store)
    assert [cell.name for cell in more.cells] == [cell.name for cell in plan.cells]
    cell = more.cells[0]
    short = plan.cells[0]
    assert [block.key for block in cell.blocks()][:2] == [block.key for block in short.blocks()]
    same = longer(short, summarize_cell(short, store))
    assert [block.key for block in same.blocks()] == [block.key for block in cell.blocks()]
    assert finished(short, store) is None, "a row that must play on is not finished"
    with Workers(1) as workers:
        tuning.play([more], store, workers)
    all_of_it, summary = finished(short, store)
    assert len(summary["finals"]) == all_of_it.spec.replications == 12
    np.testing.assert_array_equal(summary["finals"][:6], summarize_cell(short, store)["finals"])
    board = play(benchmark, data)
    rows = {row["label"]: row for row in board["problems"][0]["rows"]}
    assert rows[short.name]["replications"] == 12
    assert rows["uniform play"]["replications"] == 6


def test_a_row_with_enough_replications_plays_no_further(played, monkeypatch):
    benchmark, _, store = played
    monkeypatch.setattr(replications, "is_skewed", lambda values: True)
    monkeypatch.setattr(replications, "ENOUGH", 6)
    assert longer_plan(benchmark.problems[0].plan, store) is None


def test_rows_of_the_shipped_benchmark_have_replications_by_which_skewness_can_show():
    """The skewness of n values is at most (n - 2) / sqrt(n - 1): with fewer than 8 it never exceeds 2."""
    from test_columns import SHIPPED

    for problem in read(SHIPPED).problems:
        n = problem.spec.replications
        assert (n - 2) / np.sqrt(n - 1) > 2 * replications.SKEWED
        if n < replications.ENOUGH:
            assert n % problem.spec.block_size == 0, "else the first blocks would change when a row plays on"
        for environment in problem.spec.environment:
            assert getattr(environment, "people", "drawn") == "drawn"
