"""What changed between two runs: told from their documents alone, and refused where two numbers cannot be compared."""

import json

import pytest

from bandana.audits.reporting import compare, figures, render_html, render_pdf, validate
from bandana.audits.reporting.difference import difference
from bandana.audits.reporting.document import REGRET
from tests.report_documents import Elements, black_box, failed, hostile, later, make, three, whole, words_of


@pytest.fixture(scope="module")
def compared():
    found = compare(whole(), later())
    validate(json.loads(json.dumps(found, allow_nan=False)))
    return found


def test_a_run_against_itself_is_the_same():
    found = compare(whole(), whole())
    validate(found)
    assert {item["status"] for item in (*found["audits"], *found["cells"])} == {"same"}
    assert not found["settings"]
    assert not found["spec_diff"]
    assert found["evidence"] == {"n_same": 1, "files": []}
    assert "Both runs have the same evidence" in render_html(found)


def test_a_difference_has_the_interval_of_independent_means():
    before = {"final_mean": 10.0, "final_low": 7.0, "final_high": 13.0, "replications": 2000}
    after = {"final_mean": 16.0, "final_low": 12.0, "final_high": 20.0, "replications": 2000}
    found = difference(before, after)
    assert (found["mean"], found["low"], found["high"]) == pytest.approx((6.0, 1.0, 11.0), rel=1e-2)
    assert found["is_resolved"]
    assert not difference(before, after | {"final_mean": 14.9})["is_resolved"]


def test_audits_that_are_new_gone_or_changed(compared):
    assert {audit["label"]: audit["status"] for audit in compared["audits"]} == {
        "tight rdp(2, 1)": "changed",
        "tight rdp(2, 0.01)": "gone",
        "own_bandit.py:bandit": "same",
        "tight rdp(2, 0.0001)": "same",
        "their_bandit.py:play": "same",
        "a new one": "new",
    }
    first = compared["audits"][0]
    assert first["is_worse"]
    assert "verdict: PASS → INCONCLUSIVE" in first["changes"]
    assert "planted fault noise-halved: caught → missed" in first["changes"]
    assert "parameter beta: none → 3.1" in first["changes"]


def test_cells_are_compared_where_they_can_be(compared):
    found = {cell["label"]: cell for cell in compared["cells"]}
    assert found["ucb on bernoulli"]["difference"]["mean"] == -30.0
    assert found["ucb on bernoulli"]["difference"]["is_resolved"]
    assert not found["tight rdp(2, 0.1) on bernoulli"]["difference"]["is_resolved"]
    assert found["tight rdp(2, 1) on people.csv"]["difference"] is None
    assert found["tight rdp(2, 1) on people.csv"]["status"] == "same"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["benchmark"].update(grid=[1, 30, 2000]), "the horizons differ"),
        (lambda d: d["environments"][0].update(means=[0.1, 0.9]), "the data differ"),
        (lambda d: d["benchmark"]["cells"][0].update(dict.fromkeys(REGRET)), "withheld"),
    ],
)
def test_what_cannot_be_compared_says_why(change, reason):
    after = whole()
    change(after)
    cell = compare(whole(), after)["cells"][0]
    assert cell["difference"] is None
    assert f"final regret is not compared: {reason}" in cell["changes"]


def test_a_comparison_tells_settings_spec_and_evidence(compared):
    assert {"name": "provenance: bandana", "before": "0.1.0", "after": "0.2.0"} in compared["settings"]
    assert "+seed: 2" in compared["spec_diff"].splitlines()
    assert compared["evidence"]["files"] == [{"path": "a/b.npz", "before": "dc" * 32, "after": "10" * 32}]
    text = render_html(compared)
    parsed = Elements(text)
    assert not parsed.stack
    words = words_of(text)
    for word in ("1 verdict became worse.", "PASS → INCONCLUSIVE", "−30", "+seed: 2", "not resolved"):
        assert word in words
    assert text.count("<svg") == len(figures(compared)) == 1
    assert render_pdf(compared).startswith(b"%PDF")


def test_rounding_is_no_change():
    after = whole()
    after["audits"][0]["main"] |= three(1.0, 1.0 - 1e-12, 0.99)
    assert compare(whole(), after)["audits"][0]["status"] == "same"
    after["audits"][0]["main"] |= three(1.0, 1.0 - 1e-6, 0.99)
    assert compare(whole(), after)["audits"][0]["changes"] == ["µ, accounted: 1 → 0.999999"]


def test_hostile_words_break_no_comparison():
    found = compare(hostile(make(audits=[failed(), black_box()])), make(audits=[failed()]))
    text = render_html(found)
    parsed = Elements(text)
    assert not parsed.stack
    assert not any(tag == "script" for tag, _ in parsed.found)
    assert render_pdf(found).startswith(b"%PDF")
