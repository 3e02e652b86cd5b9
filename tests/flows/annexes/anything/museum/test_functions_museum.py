"""A museum of plain functions: what each audit with default options must find, and must not.

An audit fails an honest function with probability at most 0.05; seeds are fixed. A witness proves each leak.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from subjects import BROKEN, HONEST, N_ROUNDS

from bandana.audits.bounds import methods
from bandana.audits.bounds.methods import bounds_on
from bandana.audits.claims import Quantity, parse
from bandana.flows.annexes.anything.files import FUNCTION, Loaded
from bandana.flows.annexes.anything.functions.plays import adapted, play_rewards
from bandana.flows.annexes.anything.own import Request, audit_own
from bandana.privacy_core import Interval

UNIT = Interval(0.0, 1.0)
TOO_RARE = 0.01
"""Leaks in no more than this share of the runs are seen by chance with 20,000 replays."""
QUICK = ("shows record 21", "parity of two rewards", "shows a reward of exactly 0.37", "never clipped")


def witnessed(subject, n=20_000):
    """The claim's quantity as the witness alone proves it, at a level of 1e-4."""
    witness, stated = subject.witness, parse(subject.claim).stated
    play = adapted(subject.play, (N_ROUNDS, 2), UNIT)
    scores = []
    for seed, value in enumerate((witness.before, witness.after)):
        table = np.repeat(witness.others[:, None], 2, axis=1)
        table[witness.record] = value
        actions = play_rewards(play, np.broadcast_to(table, (n, *table.shape)), seed)
        scores.append(witness.event(actions).astype(float))
    found = [
        methods.bound(name, sign * scores[0], sign * scores[1], 1e-4, **parameters)
        for sign in (1, -1)
        for name, parameters in bounds_on(Quantity.of(stated), 0)
    ]
    return max(found), Quantity.of(stated).limit(stated)


def verdict_of(subject, **options):
    source = Path(__file__).with_name("subjects.py").read_text("utf-8")
    loaded = Loaded(FUNCTION, subject.play, Path("subjects.py"), "subject", source)
    outcome = audit_own(Request("subjects.py:subject", subject.claim, **options), loaded)[1]
    return outcome.verdict.value, outcome


def test_the_museum_is_large_enough():
    assert len(BROKEN) >= 30
    assert len(HONEST) >= 15
    assert math.isclose(min(subject.rarest for subject in BROKEN.values()), TOO_RARE)


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_each_leak_has_a_witness(name):
    subject = BROKEN[name]
    measured, limit = witnessed(subject, 100_000 if subject.rarest < 1 else 1500 if name == "one run at a time" else 20_000)
    assert measured > limit


@pytest.mark.parametrize("name", QUICK)
def test_some_broken_functions_fail(name):
    verdict, outcome = verdict_of(BROKEN[name], replays=5000)
    assert verdict == "FAIL", outcome.reasons


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in BROKEN if BROKEN[name].rarest > TOO_RARE])
def test_broken_functions_fail(name):
    """In `make test`: `test_some_broken_functions_fail`, with fewer replays."""
    verdict, outcome = verdict_of(BROKEN[name])
    assert verdict == "FAIL", outcome.reasons


@pytest.mark.nightly
@pytest.mark.parametrize("name", HONEST)
def test_honest_functions_do_not_fail(name):
    """In `make test`: `test_data_independent_play_is_accepted_and_not_refuted`."""
    verdict, outcome = verdict_of(HONEST[name])
    assert verdict != "FAIL", outcome.reasons
