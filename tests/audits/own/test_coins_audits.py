"""Audits of policies that randomize: exact scores given the coins, and coins that stand in for noise are found."""

from __future__ import annotations

import numpy as np
import pytest
from own_cases import UNIT, example
from scipy.stats import kstest

from bandana.algorithms.environments.tables import random_table
from bandana.audits.claims import parse
from bandana.audits.faults.releases import GENERIC
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import Effort, Verdict
from bandana.audits.own.conformance import ProtocolError, check, missing_members
from bandana.audits.own.white_box import check_scope, examine, find_probes
from bandana.audits.replays.one_run import examine as examine_one_run
from bandana.audits.replays.replay import replay
from bandana.audits.trial import Trial
from bandana.privacy_core import GaussianDP

TABLE = random_table(16, 2, UNIT, 0)
CLAIM = parse("gdp(mu=1, relation=reward)")
Thompson = example("own_thompson").Thompson
BROKEN = example("broken_thompson").bandit


def _examine(algorithm, controls, replays=6000):
    check_scope(algorithm, TABLE, CLAIM, 0)
    effort = Effort(replays=replays, confidence=0.95, delta=1e-5, examples=30, seed=4)
    trial = Trial(algorithm, CLAIM, TABLE, find_probes(algorithm, TABLE, 0))
    return examine(trial, effort, {"name": "x"}, {}, controls=controls)


@pytest.mark.parametrize("bandit", [Thompson(), example("own_exp3").bandit], ids=lambda bandit: type(bandit).__name__)
def test_policies_that_randomize_keep_the_protocol(bandit):
    check(bandit, TABLE, 0)
    assert missing_members(bandit) == []


def test_what_a_randomized_policy_lacks_is_listed_with_its_form():
    class Half:
        n_actions, n_coins = 2, 1

    lacks = missing_members(Half())
    assert [text.split(":")[0] for text in lacks] == ["reward_range", "init", "act", "absorb"]
    assert "act: act(released, context, step, coins) -> (n_reps,) actions" in lacks


def test_a_wrong_number_of_coins_is_refused():
    class Wrong(Thompson):
        n_coins = "two"

    with pytest.raises(ProtocolError, match="n_coins must be a whole number of at least 0, got 'two'"):
        check(Wrong(), TABLE, 0)


def test_the_score_given_the_coins_is_the_gaussian_privacy_loss():
    """log p'/p is N(-mu^2/2, mu^2) on D and N(+mu^2/2, mu^2) on D' (p > 1e-6)."""
    pair = canary_pairs(TABLE, (3,))[0]
    for side, sign in ((False, -1), (True, 1)):
        found = replay(Thompson(), pair, side, 4000, np.random.SeedSequence(1))
        reads = found.log_ratio[found.log_ratio != 0]
        assert kstest(reads, "norm", args=(sign / 2, 1)).pvalue > 1e-6
        assert len(reads) == 4000, "the canary answers alike to both arms"


def test_both_sides_of_a_sampling_audit_have_coins_of_their_own():
    pair = canary_pairs(TABLE, (3,))[0]
    sides = [replay(Thompson(), pair, False, 200, np.random.SeedSequence(seed)).actions for seed in (1, 2)]
    assert not np.array_equal(*sides)


def test_thompson_sampling_passes_and_every_generic_fault_is_caught():
    outcome = _examine(Thompson(), GENERIC)
    assert outcome.verdict is Verdict.PASS, outcome.reasons
    assert len(outcome.all_controls) == len(GENERIC)
    assert all(control.is_caught for control in outcome.all_controls)


def test_coins_in_the_place_of_noise_fail():
    check(BROKEN, TABLE, 0)
    outcome = _examine(BROKEN, (), replays=2000)
    assert outcome.verdict is Verdict.FAIL
    text = " ".join(outcome.reasons)
    assert "measured exceeds claimed: mu" in text
    assert "it holds something that no release made public" in str(outcome.counterexample)


def test_one_run_of_canaries_shares_its_coins():
    """An honest policy parts nowhere: other coins in the canaries' replicates would play other arms than the live one."""
    table = random_table(256, 2, UNIT, 1).with_rewards(np.zeros((256, 2)))
    found = examine_one_run(Thompson(), table, np.ones((256, 2)), 3, claim=GaussianDP(1.0), delta=1e-5, level=0.05)
    assert found.n_parted == 0
    assert all(bound.lower <= (1.0 if bound.quantity.name == "mu" else 4.4) for bound in found.bounds)
