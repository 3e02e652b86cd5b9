"""Which tests `make quick` runs, and the costs that it is decided by."""

from itertools import pairwise

import pytest
from quick import CASES, listed, thinned

from benchmarks import test_costs

ROOT = test_costs.ROOT
COSTS = {
    "tests/a.py::test_one": (0.1, 0.2), "tests/a.py::test_two[1]": (0.01, 0.0), "tests/a.py::test_two[2]": (0.5, 0.0),
    "tests/b.py::test_three": (0.01, 0.0),
}  # fmt: skip


class Item:
    def __init__(self, nodeid, *marks):
        self.nodeid, self._marks = nodeid, marks

    def get_closest_marker(self, name):
        return name if name in self._marks else None


@pytest.mark.parametrize("n", [1, 4, 5, 8, 9, 100])
def test_a_few_cases_of_each_test_are_spread_over_all_of_them(n):
    items = [Item(f"a.py::test_it[{i}]") for i in range(n)]
    kept, left_out = thinned(items, set())
    assert sorted([*kept, *left_out], key=items.index) == items
    assert kept[0] is items[0]
    assert min(n, CASES) / 2 <= len(kept) <= CASES
    places = [items.index(item) for item in kept]
    assert len({later - sooner for sooner, later in pairwise(places)}) <= 1


def test_slow_nightly_and_listed_tests_are_left_out():
    items = [Item("a.py::one[x]"), Item("a.py::two"), Item("a.py::three", "slow"), Item("a.py::four[1]", "nightly")]
    assert thinned(items, {"a.py::one"}) == ([items[1]], [items[0], *items[2:]])


def test_a_function_is_listed_by_its_most_costly_case_until_it_is_measured_again():
    known = ["tests/a.py::test_two", "tests/b.py::test_three", "tests/c.py::test_four"]
    assert test_costs.slow_tests(COSTS, known) == ["tests/a.py::test_one", "tests/a.py::test_two", "tests/c.py::test_four"]


def test_the_table_begins_with_what_costs_most():
    lines = list(test_costs.table(COSTS))
    assert lines[0] == "1 processor seconds in 4 tests of 2 files"
    assert lines[1].split() == ["0.8", "tests/a.py", "(3", "tests)"]
    assert lines[4].split() == ["0.5", "0.0", "tests/a.py::test_two[2]"]


def test_listed_tests_are_in_files_that_exist():
    found = listed()
    assert found == sorted(set(found))
    assert [name for name in found if not (ROOT / name.partition("::")[0]).is_file()] == []
