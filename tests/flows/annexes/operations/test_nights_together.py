"""Evidence over nights: what no single night shows adds up, and an honest algorithm is hardly ever refuted."""

import math

import numpy as np
import pytest
from own_cases import UNIT, EveryRound

from bandana.algorithms.environments.tables import random_table
from bandana.audits.bounds.evalues import EProcess, GaussianClaims
from bandana.audits.claims import Quantity
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.flows.annexes.operations.evidence_of_nights import Night, NightlyClaims, Together, bet, holds, replayed
from bandana.privacy_core import Gaussian, LocalSum, Relation

PAIR = canary_pairs(random_table(4, 2, UNIT, 0), (0,))[0]
CLAIMS = NightlyClaims(Quantity("mu"), 1.0)
LEVEL = 0.05


def scores(mu, n, rng):
    """Log-likelihood ratios of both sides of a pair that is exactly mu-GDP."""
    return rng.normal(-mu * mu / 2, mu, n), rng.normal(mu * mu / 2, mu, n)


def nights(n_nights, play, claims=CLAIMS):
    found = []
    for k in range(n_nights):
        found.append(bet(claims, found, *play(k)))
    return found


def test_a_leak_that_no_night_shows_alone_is_caught_by_all_nights_together():
    """A night of 160 replays wins about 0.3 nats, give or take 0.8, and needs 3; a hundred nights win thirty."""
    leaking = EveryRound(LocalSum(Gaussian(1.0, 1 / 1.15, Relation.REPLACE_REWARD)))
    played = [replayed(leaking, PAIR, 160, seed) for seed in range(100)]
    found = nights(100, lambda k: played[k])
    together = Together(CLAIMS, found, LEVEL)
    assert together.is_refuted
    assert together.lower >= 1.0
    at_claim = int(np.argmin(np.abs(CLAIMS.values - 1.0)))
    assert max(night.log_e[at_claim] for night in found) < -math.log(LEVEL), "no night's own e-value is enough"


def test_more_nights_certify_more():
    rng = np.random.default_rng(5)
    found = nights(16, lambda _: scores(1.0, 4096, rng))
    lower = [Together(CLAIMS, found[:n], LEVEL).lower for n in (0, 1, 2, 4, 16)]
    assert lower == sorted(lower)
    assert lower[0] == lower[1] == 0.0, "the first night only teaches"
    assert 0.7 < lower[2] < lower[4] < 1.0


@pytest.mark.parametrize(
    ("quantity", "claimed"),
    [(Quantity("mu"), 1.0), (Quantity("epsilon", delta=0.1269), 1.0), (Quantity("divergence", alpha=2.0), 1.0)],
)
def test_a_claim_that_holds_with_equality_is_hardly_ever_refuted(quantity, claimed):
    """Ville bounds each of 60 false alarms by 0.2, over 6 nights each: more than 24 have a probability below 1e-4.

    A Gaussian pair with mu = 1 has delta 0.1269 at epsilon 1, and the Renyi divergence 1 of order 2.
    """
    rng, claims = np.random.default_rng(1), NightlyClaims(quantity, claimed)
    alarms = sum(Together(claims, nights(6, lambda _: scores(1.0, 256, rng), claims), 0.2).is_refuted for _ in range(60))
    assert alarms <= 24


def test_nights_bet_as_one_process_does_whose_blocks_they_are():
    rng = np.random.default_rng(3)
    blocks = [scores(1.1, 512, rng) for _ in range(5)]
    process = EProcess(GaussianClaims(CLAIMS.values))
    for block in blocks:
        process.update(*block)
    together = Together(CLAIMS, nights(5, lambda k: blocks[k]), LEVEL)
    assert np.allclose(together.history, np.array(process.history)[[0, 1, 2, 3, 4, 5]], rtol=1e-12, atol=1e-12)


def test_two_overlapping_nights_bet_from_the_same_past_and_both_count():
    rng = np.random.default_rng(4)
    first = bet(CLAIMS, [], *scores(1.0, 512, rng))
    one, other = (bet(CLAIMS, [first], *scores(1.0, 512, rng)) for _ in range(2))
    together = Together(CLAIMS, [first, one, other], LEVEL)
    assert np.allclose(together.history[-1], one.log_e + other.log_e)
    assert together.n_replays == 3 * 512


def test_shapes_of_a_stored_night_are_checked():
    night = bet(CLAIMS, [], *scores(1.0, 128, np.random.default_rng(0)))
    assert holds(night, CLAIMS)
    assert not holds(Night(127, night.log_e, night.counts, night.sums), CLAIMS)
    assert not holds(Night(128, night.log_e[1:], night.counts, night.sums), CLAIMS)
    assert not holds(Night(128, night.log_e * np.nan, night.counts, night.sums), CLAIMS)
    with pytest.raises(ValueError, match="claimed"):
        NightlyClaims(Quantity("mu"), 0.0)
