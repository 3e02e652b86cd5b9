"""The museum of bandits: broken ones are refuted with the default options, honest ones are not.

An exhibit is the bandit of `bandit.py` with one addition, as a user might write it. That a broken one leaks is proved by its
witness, which knows nothing of the audits. `make test` plays the searches that need no statistics; the whole audits, with
the options that `bandana audit-own` has by default, run each night.
"""

import pytest
from nightly import first

from bandana.algorithms.environments.tables import random_table
from bandana.audits.claims import parse
from bandana.audits.outcome import Effort, Verdict
from bandana.audits.own import conformance, white_box
from bandana.audits.searches.walk import n_cases_of, walk
from bandana.audits.trial import Trial
from tests.museum.protocol.bandit import Bandit
from tests.museum.protocol.broken import BROKEN
from tests.museum.protocol.honest import HONEST
from tests.museum.protocol.witness import WITNESSES

ROUNDS, REPLAYS = 32, 20_000
SPREAD = [name for place in range(4) for name in list(BROKEN)[place::4]]
UNDECIDED = 2
"""Honest bandits that may be INCONCLUSIVE."""


def _trial(bandit, text):
    table = random_table(ROUNDS, bandit.n_actions, bandit.reward_range, 0)
    return Trial(bandit, parse(text), table, white_box.find_probes(bandit, table, 0))


def _walked(bandit, text):
    trial = _trial(bandit, text)
    return walk(bandit, trial.table, None, n_cases_of(bandit, trial.table, REPLAYS), 0)


def _verdict(bandit, text):
    trial, effort = _trial(bandit, text), Effort(REPLAYS, 0.95, 1e-5, 100, 0)
    conformance.check(bandit, trial.table, 0)
    white_box.check_scope(bandit, trial.table, trial.claim, 0)
    outcome = white_box.examine(trial, effort, {}, {})
    return outcome.verdict, outcome.reasons


def test_the_museum_is_large_enough():
    assert len(BROKEN) >= 40
    assert len(HONEST) >= 20
    assert set(WITNESSES) == set(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_bandit_leaks(name):
    bandit, claim = BROKEN[name]
    assert WITNESSES[name].event(bandit, parse(claim).gaussian.mu)


@pytest.mark.parametrize("name", first(8, SPREAD))
def test_on_no_witness_does_the_bandit_leak_that_they_are_made_of(name):
    assert not WITNESSES[name].event(Bandit(reward_range=BROKEN[name][0].reward_range), 1.0) or name == "not-clipped"


PRICED = ("released-twice", "multiplier-halved")
"""These declare what they do, and more than is claimed: the accountant refutes them."""


@pytest.mark.parametrize("name", first(11, [name for name in SPREAD if name not in PRICED]))
def test_the_walk_finds_every_leak(name):
    found, _ = _walked(*BROKEN[name])
    assert found is not None
    assert found.lines()


@pytest.mark.parametrize("name", first(3, HONEST))
def test_the_walk_finds_nothing_in_an_honest_bandit(name):
    found, coverage = _walked(*HONEST[name])
    assert found is None
    assert coverage.records == tuple(range(ROUNDS))
    assert coverage.rarest < 0.01


@pytest.mark.nightly
@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_bandit_is_refuted(name):
    """In `make test`: `test_the_walk_finds_every_leak`."""
    verdict, reasons = _verdict(*BROKEN[name])
    assert verdict is Verdict.FAIL, reasons


@pytest.mark.nightly
def test_no_honest_bandit_is_refuted_and_nearly_all_pass():
    """In `make test`: `test_the_walk_finds_nothing_in_an_honest_bandit`. With 95 % for each audit by its confidence."""
    found = {name: _verdict(*HONEST[name]) for name in HONEST}
    refuted = {name: reasons for name, (verdict, reasons) in found.items() if verdict is Verdict.FAIL}
    undecided = {name: reasons for name, (verdict, reasons) in found.items() if verdict is Verdict.INCONCLUSIVE}
    assert not refuted
    assert len(undecided) <= UNDECIDED, undecided
