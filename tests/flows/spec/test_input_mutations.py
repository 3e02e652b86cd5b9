"""Specs, data files and evidence that were changed at random end in a result or in one line, soon and in little memory."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest import mock

import pytest
from pydantic import BaseModel

from benchmarks import taken_as_written as written
from benchmarks.input_mutations import GIGABYTE, KINDS, OTHER, endings, main

ROOT = Path(__file__).parents[3]


PROGRAM = """
import json, sys
from benchmarks.input_mutations import endings

first = int(sys.argv[3])
chunks = [*endings(sys.argv[1], range(first, first + int(sys.argv[2])))]
print(json.dumps([[each.what, each.number, each.told] for chunk in chunks for each in chunk.endings]))
print(max(chunk.memory for chunk in chunks))
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


def _whats(kind, n_files):
    return [each.what for chunk in endings(kind, range(n_files)) for each in chunk.endings]


def test_what_escapes_is_counted(monkeypatch):
    """The search is no search without it: a mistake of ours, a hang and a crash end as themselves."""

    def escape(*_):
        raise ZeroDivisionError("x")

    with mock.patch("benchmarks.input_mutations.check_spec", escape):
        assert _whats("spec", 3) == ["escaped: ZeroDivisionError"] * 3
    with mock.patch("benchmarks.input_mutations.one", _exit):
        assert _whats("spec", 2) == ["ended its process: 7"] * 2
    with mock.patch("benchmarks.input_mutations.check_spec", return_value=lambda: "1 became 2"):
        assert _whats("spec", 1) == [OTHER]


SPEC = "name: x\nenvironment: {kind: bernoulli, means: [0.5, 1_0]}\n"


class _Held(BaseModel):
    name: str
    environment: dict
    seed: int = 3


@pytest.mark.parametrize(
    ("text", "means", "wrong"),
    [
        (SPEC, [0.5, 10], None),
        (SPEC, [0.5, 1], "spec.environment.means[1]: '1_0' became 1"),
        (SPEC.replace("0.5", "true"), [1.0, 10], "spec.environment.means[0]: 'true' became 1.0"),
        (SPEC.replace("0.5", "12:30"), [750, 10], "spec.environment.means[0]: '12:30' became 750"),
        (SPEC + "name: x\n", [0.5, 10], "spec.name again: is left out"),
        (SPEC + "sead: 3\n", [0.5, 10], "spec.sead: is left out"),
    ],
)
def test_the_second_reading_sees_what_became_another_value(text, means, wrong):
    held = _Held(name="x", environment={"kind": "bernoulli", "means": means})
    assert written.spec_differs(text, held) == wrong


def test_the_second_reading_of_data_sees_it_too():
    assert written.table_differs(b"a,b\n0,0.5\n", [[0, 0.5]]) is None
    assert written.table_differs(b"a,b\n0,0_1\n", [[0, 1]]) == "row 1: '0_1' became 1"
    assert written.table_differs(b"a,b\n0,0.5\n1,1\n", [[0, 0.5]]) == "2 rows became 1"
    assert written.columns_differ(b"a,a\n0,1\n", {"a": [0]}) == "2 columns are named 'a'"
    assert written.json_differs(b'{"a": true}', {"a": 1}) == "file.a: True became 1"
    assert "a name stands twice" in written.json_differs(b'{"a": 1, "a": 2}', {"a": 2})


def test_what_was_seen_is_not_seen_again(tmp_path, capsys, monkeypatch):
    log = tmp_path / "seen.jsonl"
    asked = ["6", "--kind", "spec", "--log", str(log)]
    # Children begin with the memory of this process, which holds all tests before.
    monkeypatch.setattr("benchmarks.input_mutations.GIGABYTE", 1 << 40)
    assert main(asked) == 0
    first = capsys.readouterr().out
    with mock.patch("benchmarks.input_mutations.one", _exit):
        assert main(asked) == 0
        assert capsys.readouterr().out == first
        monkeypatch.setattr("benchmarks.input_mutations._code", lambda: "other code")
        assert main(asked) == 1
