"""What privacy costs: the twin is sublinear, the tight calibration beats the printed one."""

from __future__ import annotations

import numpy as np
import pytest

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb, ucb
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.observers import RegretCurve
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise

UNIT = Interval(0.0, 1.0)
N_REPS = 300


def regret(algorithm, horizon, grid, means=(0.2, 0.8)):
    arms, noise = np.random.SeedSequence(7).spawn(2)
    curve = RegretCurve(np.array(means), np.array(grid), N_REPS)
    ledger = LiveLedger(N_REPS, ReproducibleNoise(noise))
    run(algorithm, BernoulliArms(means, horizon, arms), ledger, observers=[curve])
    return curve.curve


@pytest.mark.parametrize(
    "algorithm",
    [
        ucb(2, 3.1, UNIT, doubling=True),
        adar_ucb(2, 2.0, 1.0, 3.1, UNIT, "tight"),
        adar_ucb(2, 2.0, 1.0, 3.1, UNIT, "printed"),
    ],
    ids=["twin", "tight", "printed"],
)
def test_regret_is_sublinear(algorithm):
    """A hundred times the rounds cost at most 6 times as much; logarithmic growth is a factor of 5/3."""
    early, late = regret(algorithm, 100_000, [1_000, 100_000]).mean(axis=0)
    assert 1 < early < 0.6 * 1_000 / 2
    assert early < late < 6 * early


def test_ucb1_is_sublinear():
    early, late = regret(ucb(2, 4.0, UNIT), 5_000, [500, 5_000]).mean(axis=0)
    assert 1 < early < late < 3 * early


def test_tight_costs_less_than_printed_and_the_twin_least():
    """Differences of means in units of their standard error; 8 of them are a false alarm of 1e-15."""
    twin, tight, printed = (
        regret(algorithm, 20_000, [20_000])[:, 0]
        for algorithm in (
            ucb(2, 3.1, UNIT, doubling=True),
            adar_ucb(2, 2.0, 0.01, 3.1, UNIT, "tight"),
            adar_ucb(2, 2.0, 0.01, 3.1, UNIT, "printed"),
        )
    )
    for less, more in ((twin, tight), (tight, printed)):
        error = ((less.var() + more.var()) / N_REPS) ** 0.5
        assert more.mean() - less.mean() > 8 * error
