"""Audits that stop when they have seen enough."""

import numpy as np
import pytest
from own_cases import UNIT, EveryRound

from bandana.algorithms.environments.tables import random_table
from bandana.audits.bounds.evalues import ApproxClaims, GaussianClaims
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.replays.watch import watch
from bandana.privacy_core import Gaussian, GaussianDP, LocalSum, Relation

PAIR = canary_pairs(random_table(4, 2, UNIT, 0), (0,))[0]
MUS = np.arange(0.05, 4.0, 0.05)


def _bandit(mu):
    return EveryRound(LocalSum(Gaussian(1.0, 1 / mu, Relation.REPLACE_REWARD)))


def test_a_claim_that_is_far_off_is_refuted_early_and_one_that_holds_never():
    """One that is off by 2 % needs more replays than one that is off by 100 %."""
    found = {
        mu: watch(_bandit(mu), PAIR, GaussianClaims(MUS), 1.0, most_replays=100_000, level=0.05, seed=3)
        for mu in (1.0, 1.02, 2.0)
    }
    assert not found[1.0].is_refuted
    assert found[1.0].n_replays == 98_304
    assert 0.9 <= found[1.0].lower <= 1.0
    assert found[2.0].is_refuted
    assert found[2.0].n_replays == 16_384 < found[1.02].n_replays


def test_plain_claims_are_watched_in_the_same_way():
    epsilon = GaussianDP(1.0).epsilon(1e-2)
    claims = ApproxClaims(np.arange(0.1, 8.0, 0.1), 1e-2)
    honest = watch(_bandit(1.0), PAIR, claims, epsilon, most_replays=40_000, level=0.05, seed=1)
    weak = watch(_bandit(1.5), PAIR, claims, epsilon, most_replays=40_000, level=0.05, seed=1)
    assert (honest.is_refuted, weak.is_refuted) == (False, True)
    assert honest.lower > 0.8 * epsilon


@pytest.mark.nightly
def test_looking_after_every_block_raises_no_false_alarms():
    """60 watched audits of a claim that holds with equality, at level 0.2: above 24 alarms have a probability of 1e-4."""
    alarms = sum(
        watch(_bandit(1.0), PAIR, GaussianClaims(MUS), 1.0, most_replays=24_576, level=0.2, seed=seed).is_refuted
        for seed in range(60)
    )
    assert alarms <= 24


def test_the_same_seed_sees_the_same():
    one, two = (
        watch(_bandit(1.0), PAIR, GaussianClaims(MUS), 1.0, most_replays=20_000, level=0.05, seed=5) for _ in range(2)
    )
    assert np.array_equal(one.history, two.history)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"most_replays": 100}, "most_replays must be a whole number of at least 16384, got 100"),
        ({"level": 1.0}, "level must lie strictly between 0 and 1"),
        ({"claimed": 0.01}, "claimed must be at least the first tested value, 0.05, got 0.01"),
    ],
)
def test_what_cannot_be_watched_is_refused(change, message):
    request = {"claimed": 1.0, "most_replays": 20_000, "level": 0.05, "seed": 0, **change}
    with pytest.raises(ValueError, match=message):
        watch(_bandit(1.0), PAIR, GaussianClaims(MUS), request.pop("claimed"), **request)
