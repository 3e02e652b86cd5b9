"""Neighbors that an audit searches for: without a record, with one more, without a user; and which of them tells most.

Seeds are fixed; the leaks lie far above the noise.
"""

import numpy as np
import pytest

from bandana.flows.annexes.anything.outputs.calls import BrokenSubject, inspect_call
from bandana.flows.annexes.anything.pairs.neighbors import (
    MOST,
    most_telling,
    n_records,
    one_more_or_less,
    taken,
    without_users,
)
from bandana.flows.annexes.anything.pairs.subject import Subject


def noisy_sum(data, seed):
    return float(np.sum(data)) + np.random.default_rng(seed).laplace()


def against(function, data):
    caller = inspect_call(function, data, data, 0)
    return lambda other: Subject(caller, data, other)


@pytest.mark.parametrize(
    ("data", "rest"),
    [
        ([3, 1, 2], [3, 2]),
        ((3, 1, 2), (3, 2)),
        ({"age": [3, 1, 2], "name": ["x", "y", "z"]}, {"age": [3, 2], "name": ["x", "z"]}),
        ([{"age": 3}, {"age": 1}, {"age": 2}], [{"age": 3}, {"age": 2}]),
    ],
)
def test_a_record_is_removed_from_data_of_any_kind(data, rest):
    assert n_records(data) == 3
    assert taken(data, [0, 2]) == rest


def test_rows_are_removed_from_an_array():
    data = np.arange(6.0).reshape(3, 2)
    assert taken(data, [0, 2]).tolist() == [[0, 1], [4, 5]]


@pytest.mark.parametrize("data", [3, "abc", [], {}, {"a": [1], "b": [1, 2]}, {"a": 1}, np.float64(2)])
def test_what_has_no_records_is_refused(data):
    with pytest.raises(BrokenSubject, match="nobody can say what its records are"):
        n_records(data)


def test_every_record_of_few_is_removed_and_added():
    data = [0.0, 1.0, 2.0]
    tried = one_more_or_less(against(noisy_sum, data), data, 0)
    assert [one.neighbor for one in tried.subjects[:2]] == [[1.0, 2.0], [0.0, 1.0, 2.0, 0.0]]
    assert len(tried.subjects) == 6
    assert tried.words == "each of 3 records removed, and a copy of it added"


def test_of_many_records_the_extreme_ones_are_tried():
    data = np.random.default_rng(0).random(200)
    data[123], data[45] = 5.0, -5.0
    tried = one_more_or_less(against(noisy_sum, data), data, 0)
    assert len(tried.subjects) == 2 * MOST
    assert {"record 123 removed", "record 45 removed"} <= {one.words for one in tried.subjects}
    assert tried.words.startswith(f"{MOST} of 200 records")


def test_the_most_telling_record_is_found():
    data = [0.0, 0.0, 0.0, 9.0, 0.0]
    found, words = most_telling(one_more_or_less(against(noisy_sum, data), data, 0), 1000, 0, 60.0)
    assert "record 3" in found.words
    assert words.startswith(
        "each of 5 records removed, and a copy of it added: 10 neighbors, 200 runs each; the most telling"
    )
    assert words.endswith(f"{found.words}, in full")


def test_all_records_of_a_user_are_removed():
    data, users = [0.0, 3.0, 0.0, 3.0, 3.0], ["a", "b", "a", "b", "b"]
    found, words = most_telling(without_users(against(noisy_sum, data), data, users, 0), 1000, 0, 60.0)
    assert {one.words for one in without_users(against(noisy_sum, data), data, users, 0).subjects} == {
        "user 'a' removed, 2 records", "user 'b' removed, 3 records",
    }  # fmt: skip
    assert found.neighbor == [0.0, 0.0]
    assert "each of 2 users" in words


@pytest.mark.parametrize("users", [["a", "b"], ["a", "a", "a"]])
def test_users_that_do_not_fit_are_refused(users):
    with pytest.raises(BrokenSubject, match="users: "):
        without_users(against(noisy_sum, [0.0, 0.0, 0.0]), [0.0, 0.0, 0.0], users, 0)


def test_outputs_of_another_length_tell_the_neighbor():
    def one_each(data, seed):
        return (np.asarray(data) + np.random.default_rng(seed).laplace(size=len(data))).tolist()

    data = [0.0, 0.0, 0.0]
    found, _ = most_telling(one_more_or_less(against(one_each, data), data, 0), 1000, 0, 60.0)
    outputs = [found.caller.runs(side, [1])[0] for side in (found.data, found.neighbor)]
    assert len(outputs[0]) != len(outputs[1])
