"""The command that holds the page's verdicts against reports."""

from __future__ import annotations

import json

import pytest

from benchmarks import verdicts
from benchmarks.verdicts import Verdict, rows_of


def report(tmp_path, low, high):
    cells = [
        {
            "label": label,
            "algorithm": label,
            "replications": 5,
            "final_mean": mean,
            "final_low": mean - 1,
            "final_high": mean + 1,
        }
        for label, mean in (("tight", 20.0), ("printed", 30.0), ("uniform play", 40.0), ("else", 10.0))
    ]
    middle = (low + high) / 2
    pairs = [
        {"kind": "calibration", "cell": "tight", "other": "printed", "mean": middle, "low": low, "high": high},
        {"kind": "reference", "cell": "tight", "other": "uniform play", "mean": -20.0, "low": -21.0, "high": -19.0},
    ]
    place = tmp_path / "suites" / "s" / "report.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"benchmark": {"cells": cells, "comparisons": pairs}}))
    return tmp_path


def verdict(against, outcome):
    return Verdict(suite="s", says="tight is better", cells=["tight"], against=against, outcome=outcome)


@pytest.mark.parametrize(
    ("against", "outcome"), [("printed", "better"), ("uniform play", "better"), ("else", "worse"), ("printed", "worse")]
)
def test_a_verdict_holds_if_the_report_says_the_same(tmp_path, against, outcome):
    (row,) = rows_of(report(tmp_path, -12, -8), [verdict(against, outcome)])
    assert row.holds == ((against, outcome) != ("printed", "worse"))


def test_an_interval_that_holds_zero_is_not_resolved(tmp_path):
    (row,) = rows_of(report(tmp_path, -12, 8), [verdict("printed", "better")])
    assert (row.found, row.holds) == ("not resolved", False)


def test_equal_means_that_the_whole_interval_is_near(tmp_path):
    (near,) = rows_of(report(tmp_path, 0.1, 1.4), [verdict("printed", "equal within 5 %")])
    (far,) = rows_of(report(tmp_path, -0.1, 1.6), [verdict("printed", "equal within 5 %")])
    assert (near.holds, far.holds, far.found) == (True, False, "not resolved")
    (wide,) = rows_of(report(tmp_path, -0.1, 1.6), [verdict("printed", "equal within 10 %")])
    assert wide.holds


def test_the_command_fails_where_a_verdict_does_not_hold(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(verdicts, "verdicts", lambda: [verdict("printed", "better")])
    assert verdicts.main(report(tmp_path, -12, -8)) == 0
    assert "every verdict holds" in capsys.readouterr().out
    assert verdicts.main(report(tmp_path, 8, 12)) == 1
    assert "DOES NOT HOLD: the page says better" in capsys.readouterr().out


def test_a_cell_that_is_not_there_is_named(tmp_path):
    missing = verdict("printed", "better").model_copy(update={"cells": ["loose"]})
    with pytest.raises(ValueError, match="s has no cell 'loose'; it has: tight, printed"):
        list(rows_of(report(tmp_path, -1, 1), [missing]))
