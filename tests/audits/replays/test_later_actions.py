"""What users after the canary were given, as rows of numbers: by hand, and the same however the loop jumped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandana.algorithms.protocol import Record
from bandana.audits.replays.later_actions import RUNS, LaterActions, Layout, first_divergence, most_common
from tests.later_features import later_features


def _observed(actions, record, n_actions, cuts):
    """Rows of an observer that sees the rounds of each replicate in stretches of one action."""
    n_reps, n_rounds = actions.shape
    seen = LaterActions(record, n_rounds, n_actions, n_reps)
    user = np.zeros(n_reps, dtype=np.int64)
    while (user < n_rounds).any():
        length = np.zeros(n_reps, dtype=np.int64)
        arms = np.zeros(n_reps, dtype=np.int64)
        for r in np.flatnonzero(user < n_rounds):
            arms[r] = actions[r, user[r]]
            stop = user[r] + 1
            while stop < n_rounds and actions[r, stop] == arms[r] and not cuts[r, stop]:
                stop += 1
            length[r] = stop - user[r]
        seen.observe(Record(user, length, None, arms[:, None], np.zeros((n_reps, 1))))
        user = user + length
    return seen.rows


def test_a_row_by_hand():
    """Ten rounds of three arms, the canary in round 2: the others play 1 1 0 2 2 2 0."""
    actions = np.array([[0, 1, 2, 1, 1, 0, 2, 2, 2, 0]])
    layout = Layout(3, 7)
    assert layout.windows.tolist() == [4, 16, 64, 256]
    assert layout.n_features == 3 + 8 + 6 + 5 + 1
    for rows in (later_features(actions, 2, 3), _observed(actions, 2, 3, np.zeros((1, 10), dtype=bool))):
        row = rows[0]
        assert row[layout.counts].tolist() == [2, 2, 3]
        assert row[layout.early].tolist() == [1, 2, 2, 2, 2, 2, 2, 2]
        assert row[layout.arms].tolist() == [1, 0, 2, 0, -1, -1]
        assert row[layout.starts].tolist() == [2, 3, 6, 7, 7]
        assert row[layout.switches].tolist() == [3]


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 30))
def test_rows_do_not_depend_on_the_jumps(seed, n_actions, n_rounds):
    rng = np.random.default_rng(seed)
    record = int(rng.integers(n_rounds))
    actions = np.repeat(rng.integers(0, n_actions, (5, n_rounds)), rng.integers(1, 4, n_rounds), axis=1)[:, :n_rounds]
    expected = later_features(actions, record, n_actions)
    for share in (0.0, 0.3, 1.0):
        cuts = rng.random(actions.shape) < share
        assert np.array_equal(_observed(actions, record, n_actions, cuts), expected)


@given(st.integers(0, 2**32 - 1))
def test_the_canary_and_who_comes_before_never_count(seed):
    rng = np.random.default_rng(seed)
    actions = rng.integers(0, 3, (4, 12))
    other = actions.copy()
    other[:, :6] = rng.integers(0, 3, (4, 6))
    assert np.array_equal(later_features(actions, 5, 3), later_features(other, 5, 3))


def test_many_arms_have_few_columns():
    for n_actions in range(2, 40):
        layout = Layout(n_actions, 100)
        assert layout.early.stop - layout.early.start <= 12
        assert layout.n_features <= n_actions + 12 + 2 * RUNS
    assert not len(Layout(14, 5).windows)


def test_the_first_divergence_by_hand():
    """The canary stands in round 0; the reference plays 0 0 1 1 1 0."""
    layout = Layout(2, 6)
    sequences = np.array([
        [0, 0, 1, 1, 1, 0],  # the same
        [1, 1, 1, 1, 1, 1],  # another arm at once
        [0, 1, 1, 1, 1, 0],  # changes a round earlier
        [0, 0, 0, 1, 1, 0],  # a round later: it leaves where the reference changes
        [0, 0, 1, 1, 1, 1],  # only the last round differs
    ])  # fmt: skip
    rows = later_features(np.concatenate([np.zeros((5, 1), dtype=int), sequences], axis=1), 0, 2)
    assert first_divergence(rows, layout, rows[0]).tolist() == [6, 0, 1, 2, 5]
    repeated = rows[[4, 0, 0, 1, 4, 0]]
    assert np.array_equal(most_common(repeated, layout), rows[0])
    with pytest.raises(ValueError, match="at least one replay"):
        most_common(rows[:0], layout)


@given(st.integers(0, 2**32 - 1))
def test_the_first_divergence_is_the_first_round_that_differs(seed):
    """Few changes, so that six runs tell all."""
    rng = np.random.default_rng(seed)
    changes = rng.random((6, 21)) < 0.12
    actions = np.cumsum(changes, axis=1) % 2
    layout, rows = Layout(2, 20), later_features(actions, 0, 2)
    later, told = actions[:, 1:], rows[:, layout.switches][:, 0] < RUNS
    differs = later != later[0]
    expected = np.where(differs.any(axis=1), differs.argmax(axis=1), 20)
    both = told & told[0]
    assert np.array_equal(first_divergence(rows, layout, rows[0])[both], expected[both])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"record must lie in \[0, 5\), got 5"):
        LaterActions(5, 5, 2, 3)
    with pytest.raises(ValueError, match="rows must be of shape"):
        LaterActions(0, 5, 2, 3, np.zeros((3, 2), dtype=np.float32))
    with pytest.raises(ValueError, match="n_actions must be a whole number of at least 2"):
        Layout(1, 4)
