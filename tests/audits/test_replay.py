"""Replays: the score is the exact privacy loss, whatever the block order."""

import numpy as np
import pytest
from scipy.stats import kstest

from algorithms.bandits.finite_arm import adar_ucb, ucb
from algorithms.environments.tables import RewardTable
from audits import replay as replay_module
from audits.attacks import learned_log_odds, likelihood_ratio
from audits.neighbors import canary_pairs
from audits.replay import Replays, replay
from privacy_core import Interval

UNIT = Interval(0.0, 1.0)


@pytest.fixture(scope="module")
def table():
    return RewardTable(np.random.default_rng(0).integers(0, 2, (40, 3)).astype(float), UNIT)


def _adar(epsilon, calibration="printed"):
    return adar_ucb(3, 2.0, epsilon, 3.1, UNIT, calibration)


@pytest.mark.parametrize("calibration", ["printed", "tight"])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_the_score_of_an_honest_run_is_the_gaussian_privacy_loss(table, epsilon, calibration):
    """log p'/p of a mu-GDP Gaussian release is N(-mu^2/2, mu^2) on D and N(+mu^2/2, mu^2) on D' (p > 1e-6)."""
    pair = canary_pairs(table, (3,))[0]
    mu = np.sqrt(epsilon)
    for side, sign in ((False, -1), (True, 1)):
        scores = likelihood_ratio(replay(_adar(epsilon, calibration), pair, side, 20_000, np.random.SeedSequence(1)))
        assert kstest(scores, "norm", args=(sign * mu**2 / 2, mu)).pvalue > 1e-6


def test_printed_first_pulls_have_half_the_mu(table):
    scores = replay(_adar(1.0), canary_pairs(table, (0,))[0], True, 20_000, np.random.SeedSequence(2)).log_ratio
    assert kstest(scores, "norm", args=(0.125, 0.5)).pvalue > 1e-6


def test_an_outlier_is_clipped_to_the_range(table):
    inside, outside = canary_pairs(table, (3,))
    seed = np.random.SeedSequence(3)
    np.testing.assert_array_equal(
        replay(_adar(1.0), inside, True, 500, seed).log_ratio,
        replay(_adar(1.0), outside, True, 500, np.random.SeedSequence(3)).log_ratio,
    )


def test_a_twin_is_told_apart_with_certainty(table):
    twin = ucb(3, 3.1, UNIT, doubling=True)
    pair = canary_pairs(table, (3,))[0]
    assert (replay(twin, pair, False, 100, np.random.SeedSequence(4)).log_ratio == -np.inf).all()
    assert (replay(twin, pair, True, 100, np.random.SeedSequence(4)).log_ratio == np.inf).all()


def test_blocks_have_their_own_seeds(table, monkeypatch):
    monkeypatch.setattr(replay_module, "BLOCK", 100)
    pair = canary_pairs(table, (3,))[0]
    long = replay(_adar(1.0), pair, False, 250, np.random.SeedSequence(5))
    short = replay(_adar(1.0), pair, False, 200, np.random.SeedSequence(5))
    np.testing.assert_array_equal(long.log_ratio[:200], short.log_ratio)
    assert len(np.unique(long.log_ratio)) == 250


def test_learned_log_odds_know_only_what_they_learned():
    data = Replays(np.zeros(4), np.array([1, 1, 1, 2]))
    neighbor = Replays(np.zeros(4), np.array([2, 2, 2, 1]))
    scored = learned_log_odds(data, neighbor, Replays(np.zeros(3), np.array([1, 2, 7])))
    assert scored[0] == pytest.approx(np.log(1.5 / 3.5))
    assert scored[1] == pytest.approx(np.log(3.5 / 1.5))
    assert scored[2] == 0


def test_no_replays_are_refused(table):
    with pytest.raises(ValueError, match="n_replays must be at least 1, got 0"):
        replay(_adar(1.0), canary_pairs(table, (3,))[0], False, 0, np.random.SeedSequence(6))
