"""Released states of any kind are compared replicate by replicate."""

import datetime
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from bandana.audits.searches.states import _mark, leaves, unread

N = 100
ROWS = np.arange(N)


def differing(one, other):
    marks = [{name: _mark(leaf, N) for name, leaf in leaves(state)} for state in (one, other)]
    assert marks[0].keys() == marks[1].keys()
    return np.flatnonzero(np.any([marks[0][name] != marks[1][name] for name in marks[0]], axis=0)).tolist()


def changed(values, place, value):
    found = values.copy()
    found[place] = value
    return found


@pytest.mark.parametrize(
    ("values", "value"),
    [
        (1.0 * ROWS, 0.5), (1j * ROWS, 1 + 7j), (2**60 + ROWS, 2**60 + 8), (ROWS.astype(str), "x"),
        (ROWS.astype("M8[D]"), 300),
        (ROWS.astype(object), "x"), ([str(row) for row in ROWS], "x"), ([{"a": row} for row in ROWS.tolist()], {"a": 3.5}),
        ([datetime.date(2020, 1, 1)] * N, datetime.date(2021, 1, 1)), ([2**70] * N, 2**70 + 1),
    ],
)  # fmt: skip
def test_one_replicate_that_differs_is_found(values, value):
    assert differing({"kept": values}, {"kept": changed(values, 7, value)}) == [7]
    assert differing(SimpleNamespace(kept=values), SimpleNamespace(kept=values.copy())) == []


@pytest.mark.parametrize(
    ("one", "other"), [("a", "b"), (1j, 2j), (None, "x"), (2**70, 2**70 + 1), (frozenset({1}), frozenset({2}))]
)
def test_what_all_replicates_share_differs_in_all(one, other):
    assert len(differing({"kept": one}, {"kept": other})) == N


def test_what_cannot_be_compared_is_named():
    assert "lock" in unread({"x": np.zeros(N), "lock": threading.Lock()})
    assert unread({"x": np.zeros(N), "when": datetime.date(2020, 1, 1)}) == ""
