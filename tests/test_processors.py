"""The same program on another processor: equal keys, actions and verdicts, and numbers that differ by rounding alone.

The other processor is this one with other kernels (`tests.processors`). Room: values and bounds come from sums of at most
some thousand terms, each rounded to 1.1e-16, after matrix roots with condition up to 1e3 or so: 1e-12 of the largest number
of a run, and 1e-9 is a thousand times that. What is chosen by its last bits, be it a seed, an action, a rank or an attack,
differs by as much as noise does.

`make test` compares a few seconds of it; everything is compared with the most different processor by `make test-numeric`,
and with every one at night.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import processor_results, processors

ROOM = 1e-9
VARIABLES = {"OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"}
ROOT = Path(__file__).parents[1]


def _results(changes, *words):
    environment = {key: value for key, value in os.environ.items() if key not in VARIABLES}
    command = [sys.executable, "-m", "tests.processor_results", *words]
    done = subprocess.run(command, cwd=ROOT, env={**environment, **changes}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def here():
    return _results({})


@pytest.fixture(scope="module")
def few():
    """In this process, which is a processor too; as JSON has it."""
    return json.loads(json.dumps(processor_results.few()))


def differences(one, other):
    """Names of what is not equal, with by how much numbers differ, relative to the largest of their list."""
    found = {name: None for name, value in one["exact"].items() if other["exact"][name] != value}
    for name, numbers in one["close"].items():
        first, second = np.array(numbers), np.array(other["close"][name])
        if first.shape != second.shape:
            found[name] = np.inf
        elif first.size and (off := np.abs(first - second).max() / max(np.abs(first).max(), 1e-300)) > ROOM:
            found[name] = off
    return found


def assert_equal(here, other):
    assert set(here["exact"]) == set(other["exact"])
    assert set(here["close"]) == set(other["close"])
    assert differences(here, other) == {}


@pytest.mark.skipif(not processors.other_processor(), reason="this processor can stand for no other")
def test_another_processor_computes_the_same_few(few):
    assert_equal(few, _results(processors.other_processor(), "few"))


SETTINGS = [pytest.param(changes, id=name) for name, changes in processors.settings().items()]


@pytest.mark.nightly
@pytest.mark.parametrize("changes", SETTINGS)
def test_another_processor_computes_the_same(here, changes):
    """In `make test`: a few entries; `make test-numeric` plays the last of these."""
    assert_equal(here, _results(changes))


def test_what_differs_is_named(few):
    changed = json.loads(json.dumps(few))
    assert differences(few, changed) == {}
    changed["exact"]["keys"] = {}
    name = "run of adar-ucb"
    largest = max(map(abs, few["close"][name]))
    changed["close"][name][0] += 0.5 * ROOM * largest
    assert differences(few, changed) == {"keys": None}
    changed["close"][name][0] += 2 * ROOM * largest
    changed["close"]["calibrations"].append(1.0)
    assert set(differences(few, changed)) == {"keys", name, "calibrations"}


def test_a_few_results_hold_numbers(few):
    """An empty list could not differ."""
    assert all(few["close"].values())
    assert len(few["exact"]["keys"]) > 1


@pytest.mark.nightly
def test_results_hold_numbers_of_every_kind(here):
    """In `make test`: the few."""
    assert all(here["close"].values())
    assert len(here["exact"]["keys"]) > 100
    verdicts = [value[0] for name, value in here["exact"].items() if name.startswith("audit of ")]
    assert verdicts.count("PASS") >= 4


def _kernels(changes):
    """What the libraries take in such an environment."""
    code = (
        "from tests import processors as p; import numpy as np, json; print(json.dumps([sorted(p.own_cores()), "
        "np.show_config(mode='dicts')['SIMD Extensions'].get('found', [])]))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **changes}, capture_output=True, check=True)
    return json.loads(done.stdout)


def test_the_other_processor_takes_other_kernels():
    """Otherwise nothing would be compared: OpenBLAS and NumPy ignore what they do not know."""
    changes = processors.other_processor()
    if not changes:
        pytest.skip("this processor can stand for no other")
    cores, found = _kernels(changes)
    if "OPENBLAS_CORETYPE" in changes:
        assert cores == [changes["OPENBLAS_CORETYPE"]]
    assert not set(changes.get("NPY_DISABLE_CPU_FEATURES", "").split()) & set(found)
