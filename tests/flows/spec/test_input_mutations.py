"""Specs, data files and evidence that were changed at random end in a result or in one line, soon and in little memory."""

import os
from collections import Counter
from unittest import mock

import pytest

from benchmarks.input_mutations import GIGABYTE, KINDS, endings


def _check(kind, n_files, seed):
    found, most = endings(kind, n_files, seed)
    assert len(found) == n_files
    bad = [each for each in found if each.what not in ("result", "refused")]
    assert not bad, bad[:5]
    counts = Counter(each.what for each in found)
    assert min(counts["result"], counts["refused"]) >= n_files / 50, counts  # neither end is so rare that it was not tried
    assert most < GIGABYTE


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_file_ends_in_a_result_or_in_one_line(kind):
    _check(kind, 100, seed=0)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_changed_files_do(kind):
    _check(kind, 5000, seed=10_000)


def _exit(*_):
    os._exit(7)


def test_what_escapes_is_counted():
    """The search is no search without it: a mistake of ours, a hang and a crash end as themselves."""

    def escape(*_):
        raise ZeroDivisionError("x")

    with mock.patch("benchmarks.input_mutations.check_spec", escape):
        found, _ = endings("spec", 3)
    assert [each.what for each in found] == ["escaped: ZeroDivisionError"] * 3
    with mock.patch("benchmarks.input_mutations.one", _exit):
        found, _ = endings("spec", 1)
    assert [each.what for each in found] == ["ended its process: 7"]
