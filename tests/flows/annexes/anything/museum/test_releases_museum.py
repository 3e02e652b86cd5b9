"""A museum of releases: what an audit with default options must find in each file beside this one, and must not.

An audit fails an honest release with probability at most 0.05; seeds are fixed. A witness proves each leak: an event of one
side that the claim does not allow.
"""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "releases"))

import amounts  # noqa: F401  (each lists its releases)
import containers  # noqa: F401
import forms  # noqa: F401
import seeds  # noqa: F401
import shares  # noqa: F401
import starts  # noqa: F401
from exhibits import DATA, EXHIBITS, NEIGHBOR

from bandana.flows.annexes.anything.outputs.calls import by_signature
from bandana.flows.annexes.anything.releases import ReleaseRequest, audit_release

FOLDER = Path(__file__).parent / "releases"
QUICK = {
    "attribute_of_an_estimator", "type_of_numbers", "shows_its_seed", "three_shares", "exact_at_first", "estimator",
    "shows_a_public_seed",
}  # fmt: skip
"""Audited in `make test`; all others are nightly."""
BROKEN = [name for name, one in EXHIBITS.items() if one.is_broken]
HONEST = [name for name in EXHIBITS if name not in BROKEN]


def marked(names):
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.nightly) for name in names]


def audited(name, **options):
    one = EXHIBITS[name]
    file = FOLDER / f"{one.function.__module__}.py"
    request = ReleaseRequest(one.claim, f"{file}:{name}", data=repr(DATA), neighbor=repr(NEIGHBOR), **options)
    return audit_release(request).outcome


def test_there_are_many():
    assert len(BROKEN) >= 60
    assert len(HONEST) >= 30


def happens(name, data, n):
    """How often the event of a release's witness happens in n runs, of a process each if it is one of a first call."""
    one = EXHIBITS[name]
    caller, numbers = by_signature(one.function), np.random.default_rng(3).integers(0, 2**32, n).tolist()
    if not one.first:
        return sum(bool(one.witness(caller.tried(data, seed))) for seed in numbers)
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        return sum(pool.starmap(_event, [(name, data, seed) for seed in numbers], chunksize=1))


def _event(name, data, seed):
    one = EXHIBITS[name]
    return bool(one.witness(by_signature(one.function).tried(data, seed)))


@pytest.mark.parametrize("name", [name for name in BROKEN if EXHIBITS[name].witness])
def test_a_witness_proves_each_leak(name):
    """The claim allows the event e times as often on one side as on the other; here it happens never there."""
    one = EXHIBITS[name]
    n = 10 if one.first else 40 if one.rarest > 0.5 else 4000
    often, never = happens(name, NEIGHBOR, n), happens(name, DATA, n)
    if never > often:
        often, never = never, often
    assert never <= 0.02 * n
    assert often >= 0.3 * one.rarest * n


@pytest.mark.parametrize("name", marked(BROKEN))
def test_a_broken_release_fails(name):
    # First calls take a process each: on a loaded machine the default time has room for too few of them to bound.
    more = {"seconds": 600.0} if EXHIBITS[name].first else {}
    assert audited(name, **more).verdict == "FAIL"


@pytest.mark.parametrize("name", [name for name in HONEST if name in QUICK])
def test_an_honest_release_of_few_runs_does_not(name):
    outcome = audited(name, replays=4000)
    assert outcome.verdict == "NOT REFUTED", outcome.reasons
    assert all(control.is_caught for control in outcome.tried)


@pytest.mark.nightly
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_release_does_not(name):
    """In `make test`: fewer runs of two of them."""
    outcome = audited(name)
    assert outcome.verdict == "NOT REFUTED", outcome.reasons
    assert all(control.is_caught for control in outcome.tried)
