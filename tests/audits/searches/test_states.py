"""Released states of any kind are compared replicate by replicate."""

import datetime
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from bandana.audits.searches.states import StateLog, _mark, first_parting, leaves, unread

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
        (0.0 * ROWS, -0.0),
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([0] * N, [0] * (N - 1) + [False]), (np.zeros(2), np.zeros(3)), (np.zeros(N), np.zeros(N, dtype=int)),
        (np.ma.array(ROWS, mask=ROWS < 3), np.ma.array(ROWS, mask=ROWS < 4)), ((0, "a"), [0, "a"]), ({"a": "x"}, {"b": "x"}),
    ],
)  # fmt: skip
def test_types_shapes_masks_and_names_count(one, other):
    logs = [StateLog(None, N) for _ in range(2)]
    for log, state in zip(logs, (one, other), strict=True):
        log.marks.append({name: _mark(leaf, N) for name, leaf in leaves({"kept": state})})
        log.last.append(ROWS * 0)
    nobody = np.full(N, -1)
    assert (first_parting(*logs, nobody).record >= 0).any()
    assert (first_parting(logs[0], logs[0], nobody).record < 0).all()


def test_what_cannot_be_compared_is_named():
    assert "lock" in unread({"x": np.zeros(N), "lock": threading.Lock()})
    assert unread({"x": np.zeros(N), "when": datetime.date(2020, 1, 1)}) == ""
