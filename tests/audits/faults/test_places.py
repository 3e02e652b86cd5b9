"""Faults at random places: found wherever they are, and a search that does not cover them is told so."""

import pytest
from nightly import first

from bandana.algorithms.environments.tables import random_table
from bandana.audits.audit import audit
from bandana.audits.claims import parse
from bandana.audits.faults.places import SELDOM, planted_at_random
from bandana.audits.outcome import DETERMINISTIC, Effort, Verdict
from bandana.audits.searches import deterministic
from bandana.audits.searches.walk import n_cases_of, rarest_of, values_of, walk
from bandana.audits.trial import Trial
from tests.museum.protocol.bandit import Bandit

BANDIT = Bandit()
TABLE = random_table(32, 2, BANDIT.reward_range, 0)
N_CASES = n_cases_of(BANDIT, TABLE, 40_000)
NAMES = ("reward-shown-later", "value-shown", "two-rewards-shown", "reward-shown-seldom")


def _planted(seed, n_cases=N_CASES):
    inside, _ = values_of(BANDIT, TABLE)
    return planted_at_random(32, tuple(inside), rarest_of(TABLE, n_cases), seed, has_digits=True)


@pytest.mark.parametrize("seed", first(2, range(10)))
def test_wherever_they_are_they_are_found(seed):
    """The rarest has probability 0.01 and is met 1,024 times: it is missed in one audit of a thousand at most."""
    for control in _planted(seed):
        found, _ = walk(control.plant(BANDIT), TABLE, None, N_CASES, seed)
        assert found is not None, control.fault


def test_places_differ_between_seeds_and_one_seed_gives_the_same():
    words = [tuple(control.fault for control in _planted(seed)) for seed in range(4)]
    assert len(set(words)) == 4
    assert words[1] == tuple(control.fault for control in _planted(1))
    assert tuple(control.name for control in _planted(0)) == NAMES
    assert f"probability {SELDOM:g}" in words[0][-1]


def test_with_few_cases_the_rare_fault_is_as_rare_as_what_is_covered():
    assert "probability 0.25" in _planted(0, 1024)[-1].fault


def test_without_releases_no_digits_tell_when():
    controls = planted_at_random(32, (0.0, 1.0), 0.01, 0, has_digits=False)
    assert tuple(control.name for control in controls) == NAMES[:3]


def test_a_missed_place_is_inconclusive(monkeypatch):
    monkeypatch.setattr(deterministic, "walk", lambda *given: (None, None))
    late = next(control for control in _planted(3) if control.name == "value-shown")
    hidden = late.plant(BANDIT)
    object.__setattr__(hidden, "value", 0.123456)
    trial = Trial(BANDIT, parse("gdp(mu=1, relation=reward)"), TABLE, (0, 2))
    control = type(late)(late.name, late.fault, lambda honest: hidden, (DETERMINISTIC,), is_sampled=False)
    outcome = audit(trial, (control,), Effort(1000, 0.95, 1e-5, 2, 0))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert any("missed the planted fault value-shown: no counterexample was found" in c for c in outcome.all_caveats)
