"""The power curve of an entry: it runs through the smallest factor, and is missing where there is none."""

import pytest

from bandana.flows.results.power_curve import power_curve
from tests.report_documents import at_test_budget, audit, black_box, undecided


def _small(entry, smallest, n=2000):
    for bound in entry["measurement"]["bounds"]:
        bound |= {"n_data": n, "n_neighbor": n}
    entry["measurement"]["smallest_factor"] = smallest
    return entry


@pytest.mark.parametrize("entry", [audit(), at_test_budget()])
def test_it_runs_through_the_smallest_factor(entry):
    curve = power_curve(_small(entry, 1.3))
    assert curve["quantity"] == "mu"
    assert curve["factors"][0] == 1.0
    assert curve["factors"][-1] == pytest.approx(1.6)
    assert curve["caught"] == sorted(curve["caught"])
    at = dict(zip(curve["factors"], curve["caught"], strict=True))
    assert at[1.3] >= 0.95
    assert curve["caught"][0] < 0.2
    assert curve["caught"][-1] == 1.0


def test_it_is_that_of_a_pair_with_all_replays():
    entry = _small(audit(), 1.3)
    bounds = entry["measurement"]["bounds"]
    full = power_curve(entry)
    bounds.insert(0, {**bounds[0], "n_data": 250, "n_neighbor": 250})
    assert power_curve(entry) == full


def test_the_audit_of_a_function_is_simulated_with_learned_scores():
    curve = power_curve(_small(black_box(), 2.5, n=1000))
    assert curve["quantity"] == "divergence of order 2"
    assert max(curve["caught"]) == 1.0


def test_no_factor_has_no_curve():
    assert power_curve(undecided()) is None
    assert power_curve(audit() | {"measurement": audit()["measurement"] | {"bounds": []}}) is None
