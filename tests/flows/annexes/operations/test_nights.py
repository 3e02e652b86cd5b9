"""The diary of scheduled suites, and the page of each night."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow import MlflowClient

from bandana.flows.annexes.operations.nights import SHOWN, Night, diary, page, sparkline
from bandana.flows.annexes.operations.schedule import nightly_benchmark
from bandana.flows.folder.settings import DataFolder
from bandana.flows.tracking.experiments import NIGHTS
from bandana.flows.tracking.tracker import Tracker

CELL = "adar-ucb tight eps=1"


def night(day, verdict="PASS", regret=20.0, alarm="", code="a" * 64):
    return Night(datetime(2026, 11, day, 2, tzinfo=UTC), code, alarm, {CELL: verdict}, {CELL: {"final regret": regret}})


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([], ""),
        ([3.0], "▅"),
        ([3.0, 3.0, None], "▅▅·"),
        ([0.0, 7.0, 3.5, None, 1.0], "▁█▅·▂"),
        ([-1.0, 1.0], "▁█"),
    ],
)
def test_a_sparkline_by_hand(values, shown):
    assert sparkline(values) == shown


@given(st.lists(st.none() | st.floats(-1e9, 1e9), max_size=40))
def test_a_sparkline_has_one_bar_a_night_in_the_order_of_values(values):
    bars = sparkline(values)
    assert len(bars) == len(values)
    known = sorted((value, bar) for value, bar in zip(values, bars, strict=True) if value is not None)
    assert [bar for _, bar in known] == sorted(bar for _, bar in known)


def test_the_first_night_has_nothing_to_compare_with():
    shown = page("nightly", [night(1)], {"report (html)": "/data/report.html"})
    assert shown.startswith("# nightly: all well, 1 x PASS\n")
    assert "nothing to compare with" in shown
    assert f"| {CELL} | PASS |\n" in shown
    assert f"| {CELL} | final regret | 20 |\n" in shown
    assert not {"▅", "■", "nights", "change"} & set(shown.split()), "one night has no trend"
    assert "- report (html): `/data/report.html`" in shown


def test_a_night_is_held_against_the_one_before():
    nights = [night(1), night(2, "INCONCLUSIVE", 30.0), night(3, "FAIL", 25.0, "1 of 1 audits did not pass", "b" * 64)]
    shown = page("nightly", nights, {})
    assert shown.startswith("# nightly: 1 of 1 audits did not pass\n")
    assert "The night before, 2026-11-02 02:00 UTC: all was well; other code (aaaaaaaaaaaa -> bbbbbbbbbbbb)." in shown
    assert f"| {CELL} | FAIL | INCONCLUSIVE | ■□✗ |" in shown
    assert f"| {CELL} | final regret | 25 | -5 | ▁█▅ |" in shown


def test_no_more_nights_are_shown_than_fit():
    shown = page("nightly", [night(1 + k % 28, regret=float(k)) for k in range(40)], {})
    assert f"| last {SHOWN} nights |" in shown
    assert f"| {'■' * SHOWN} |" in shown


def test_evidence_of_a_first_night_is_none_yet_and_later_is_a_factor():
    row = {"label": CELL, "quantity": "epsilon at delta 1e-05", "lower": 0.0, "claimed": 4.377, "is_refuted": False,
           "log10_enough": 1.6, "n_nights": 1, "n_replays": 1000, "log10_evidence": [0.0]}  # fmt: skip
    first = page("nightly", [replace(night(1), fresh=[row])], {})
    assert "From the second night on" in first
    assert "39.8" not in first
    later = row | {"n_nights": 3, "n_replays": 3000, "lower": 1.25, "log10_evidence": [0.0, 0.5, 0.3]}
    shown = page("nightly", [replace(night(1), fresh=[later, row | {"label": "new"}])], {})
    assert f"| {CELL} | ε at δ 1e-05 ≥ 1.25 | 4.377 | 2 of 39.8 ▁█▅ | 3 |" in shown
    assert "| new | - | 4.377 | - | 1 |" in shown
    assert "1,000 or 3,000 replays" in shown


@pytest.mark.slow
@pytest.mark.usefixtures("seeded_nights")
def test_two_nights_leave_two_lines_and_a_page(prefect_server, write_spec, tmp_path):
    from prefect.client.orchestration import get_client

    data = tmp_path / "data"
    spec = str(write_spec(name="two-nights"))
    for _ in range(2):
        nightly_benchmark(spec, str(data))
    first, second = diary(DataFolder(data), "two-nights")
    assert first.numbers == second.numbers != {}
    assert first.alarm == second.alarm == ""
    with get_client(sync_client=True) as client:
        asked = {"artifacts": {"key": {"any_": ["two-nights-night"]}}, "sort": "CREATED_DESC"}
        latest, *_ = client._client.post("/artifacts/filter", json=asked).json()
    assert latest["data"].startswith("# two-nights: all well")
    assert "The night before" in latest["data"]
    assert "## All nights together" in latest["data"]
    assert "http://127.0.0.1:5000/reports/two-nights/report.html" in latest["data"]
    assert [row["n_nights"] for row in (*first.fresh, *second.fresh)] == [1, 2]
    assert str(data / "suites" / "two-nights" / "report.html") in latest["data"]
    private = [label for label in second.numbers if "eps=" in label]
    assert private
    assert " eps=" not in latest["data"]
    assert "rdp(2, " in latest["data"]
    experiments = {each.name for each in MlflowClient(tracking_uri=Tracker(data).address.uri).search_experiments()}
    assert experiments == {"Default", f"two-nights{NIGHTS}"}
