"""Specs, data files and evidence that were changed at random end in a result or in one line, soon and in little memory."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest import mock

import pytest

from benchmarks.input_mutations import GIGABYTE, KINDS, endings

ROOT = Path(__file__).parents[3]


PROGRAM = """
import json, sys
from benchmarks.input_mutations import endings

found, most = endings(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
print(json.dumps([[each.what, each.number, each.told] for each in found]))
print(most)
"""


def _check(kind, n_files, seed):
    """In a program of its own: a process of these tests holds far more memory than the files take."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind, str(n_files), str(seed)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    found, most = map(json.loads, done.stdout.splitlines()[-2:])
    assert len(found) == n_files
    bad = [each for each in found if each[0] not in ("result", "refused")]
    assert not bad, bad[:5]
    counts = Counter(what for what, *_ in found)
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
