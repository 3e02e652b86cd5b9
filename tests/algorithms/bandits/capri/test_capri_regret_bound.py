"""CAPRI's regret bound: its half-widths are above all that real coins give, and T_0 is what the printed proof needs."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from nightly import first
from pools import KERNEL, SYMMETRIC, pool_of
from scipy.special import ndtri

from bandana.algorithms.bandits.capri.forms import CAPRI
from bandana.algorithms.bandits.capri.regret_bound import largest_half_width, least_probability, regret_bound
from bandana.algorithms.papers.pavlovic import least_epoch, least_horizon
from bandana.privacy_core import ApproxDP, TrustModel

POOL, HORIZON = pool_of(), 200_000


def algorithm_of(model, pool=POOL, epsilon=5.0, **more):
    settings = CAPRI(pool, KERNEL, HORIZON, SYMMETRIC, failure=0.1, **more)
    return settings.twin() if model is None else settings.private(ApproxDP(epsilon, 1e-5), model, "tight")


@pytest.mark.parametrize("model", [None, TrustModel.JOINT, TrustModel.LOCAL])
@pytest.mark.parametrize("law", [None, [0.4, 0.3, 0.3, 0.0]])
@pytest.mark.parametrize("n_plans", first(1, [8, 40]))
def test_no_plan_has_longer_half_widths(model, law, n_plans):
    """At points that are drawn, for any coins and active actions: some plans of each epoch, of which one in 60 may."""
    algorithm, rng = algorithm_of(model, pool_of(law=law)), np.random.default_rng(0)
    longest = [largest_half_width(algorithm, length) for length in algorithm.lengths]
    assert longest[-1] < 1 or (law is not None and model is TrustModel.LOCAL)
    for epoch in range(2, len(longest)):
        for key in range(n_plans):
            active = rng.random((4, 3)) < rng.random()
            active[np.arange(4), rng.integers(0, 3, 4)] = True
            if key == 0:
                active[:] = True
            drawn = active & (algorithm.pool.law > 0)[:, None]
            widths = algorithm.plan(epoch, active, key).width[drawn.ravel()]
            assert widths.max() <= longest[epoch]
    full = algorithm.plan(epoch, np.ones((4, 3), dtype=bool)).width
    if law is None:
        assert longest[-1] < 4 * full.max(), "and is not much longer than it must be"


def test_a_short_epoch_says_nothing():
    assert largest_half_width(algorithm_of(None), 100) == math.inf


def test_by_hand():
    """One epoch of the local form: 12 points of probability 1/12, nine epochs."""
    algorithm, length = algorithm_of(TrustModel.LOCAL), 50_000
    n_epochs, p = len(algorithm.lengths), 1 / 12
    assert least_probability(algorithm.pool.law, 3) == pytest.approx(p)
    eta = math.sqrt(2 * math.log(4 * 12 * n_epochs / 0.1) / (p * length))
    s = 1 / math.sqrt((1 - eta) * p * length + 1)
    log = math.log(2 * n_epochs / 0.1)
    b, m = 1 / math.sqrt(p * length), math.sqrt(11)
    z = m + math.sqrt(2 * log * (1 + 2 * b * m)) + b * log / 3
    noise = algorithm.gathering.mechanism.scale * math.sqrt(length) * s * s
    share = math.log(2 * 12 * n_epochs / 0.1)
    once = math.sqrt(2 * share * (s * s / (1 - eta) + noise**2)) + s * s * share / 3
    share += math.log(2)
    apart = math.sqrt(2 * share * s * s / (1 - eta)) + s * s * share / 3 - ndtri(0.1 / (4 * 12 * n_epochs)) * noise
    assert largest_half_width(algorithm, length) == pytest.approx(s + z * s / math.sqrt(1 - eta) + min(once, apart))


def test_an_epoch_pays_for_the_half_widths_of_the_one_before():
    algorithm = algorithm_of(TrustModel.JOINT)
    ends = np.cumsum(algorithm.lengths)
    grid = np.array([1, ends[0], ends[-2], HORIZON])
    found = regret_bound(algorithm, grid)
    assert found[:2] == pytest.approx([2, 2 * ends[0]]), "gaps are at most 2 |f|"
    cost = 4 * largest_half_width(algorithm, algorithm.lengths[-2])
    assert cost < 2
    assert found[3] - found[2] == pytest.approx(cost * (HORIZON - ends[-2]))
    assert regret_bound(dataclasses.replace(algorithm, beta_scale=0.99), grid) is None


def test_rates():
    """Four times as many rounds: twice the bound, for the paper's sqrt T, up to logarithms and to early epochs."""
    for model, most in ((TrustModel.JOINT, 2.4), (TrustModel.LOCAL, 2.4)):
        bounds = [
            regret_bound(dataclasses.replace(algorithm_of(model), horizon=horizon), np.array([horizon]))[0]
            for horizon in (10**11, 4 * 10**11)
        ]
        assert 1.9 < bounds[1] / bounds[0] < most


@pytest.mark.parametrize(("n_points", "epoch", "horizon"), [(12, 6.7e4, 5.7e10), (500, 3.5e6, 1.6e14)])
def test_the_printed_theorem_needs_more_rounds_than_anybody_plays(n_points, epoch, horizon):
    p = 1 / n_points
    length = least_epoch(p, 1.0, 0.1)
    assert length == pytest.approx(epoch, rel=0.02)
    for n, is_enough in ((length, True), (length - 1, False)):
        share = math.log(14 * n / 0.1) / (n * p + 1)
        assert (2 * math.sqrt(share) + 4 / 3 * share <= 1 / 9) == is_enough
    found = least_horizon(p, 1.0, 1e-5, n_points)
    assert found == pytest.approx(horizon, rel=0.02)
    first = math.isqrt(found - 1) + 1
    assert least_epoch(p, 1.0, 1e-5 / (n_points * first**2 * 2 * math.log(first))) <= first
