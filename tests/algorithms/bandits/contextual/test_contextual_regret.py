"""Contextual twins learn: regret below a straight line; and the price of privacy is in the right order."""

from __future__ import annotations

import numpy as np
import pytest

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCBSettings
from bandana.algorithms.bandits.contextual.oful import adar_oful, oful
from bandana.algorithms.environments.sphere import SphereContexts
from bandana.algorithms.observers import ContextualRegretCurve
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, Interval, LiveLedger, ReproducibleNoise, TrustModel

SYMMETRIC = Interval(-1.0, 1.0)
HORIZON, N_ACTIONS, DIMENSION, N_REPS = 2000, 10, 3, 16
SHAPE = (N_ACTIONS, DIMENSION, HORIZON)


def regret(algorithm):
    env = SphereContexts([0.6, -0.6, 0.4], N_ACTIONS, HORIZON, np.random.SeedSequence(1))
    curve = ContextualRegretCurve(env, np.array([HORIZON // 4, HORIZON]), N_REPS)
    run(algorithm, env, LiveLedger(N_REPS, ReproducibleNoise(np.random.SeedSequence(2))), observers=[curve])
    return curve.curve.mean(axis=0)


@pytest.mark.parametrize("twin", [oful(*SHAPE, SYMMETRIC), LinUCBSettings(*SHAPE, SYMMETRIC).twin()])
def test_the_twins_regret_is_sublinear(twin):
    quarter, full = regret(twin)
    assert full < 2.5 * quarter, "four times as many rounds: sqrt(T) doubles it"
    # Uniform play loses about E max <theta, x> = 0.7 a round.
    assert full < 0.1 * 0.7 * HORIZON


def test_less_noise_is_less_regret():
    twin = regret(oful(*SHAPE, SYMMETRIC))[1]
    tight = regret(adar_oful(*SHAPE, 2.0, 1.0, SYMMETRIC, "tight"))[1]
    printed = regret(adar_oful(*SHAPE, 2.0, 1.0, SYMMETRIC, "printed"))[1]
    assert twin < tight < printed
    settings, promise = LinUCBSettings(*SHAPE, SYMMETRIC), ApproxDP(1.0, 1e-5)
    factorized = regret(settings.private(promise, TrustModel.JOINT, "tight"))[1]
    tree = regret(settings.private(promise, TrustModel.JOINT, "tree"))[1]
    assert factorized < tree
