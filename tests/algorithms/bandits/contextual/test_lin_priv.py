"""LinPriv: its rounds by hand, what a record pays, the norm of its noise, and its place in the catalog."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger

from bandana.algorithms.bandits.contextual.lin_priv import lin_priv
from bandana.algorithms.catalog import find
from bandana.algorithms.environments.sphere import LinearLink, SphereContexts
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.observers import ContextualRegretCurve
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LaplaceEvent, LiveLedger, PureDP, ReproducibleNoise

SYMMETRIC, UNIT = Interval(-1.0, 1.0), Interval(0.0, 1.0)


def test_three_rounds_by_hand():
    """One dimension, both vectors 1, rewards 1, lambda = 1: the sums are 1, 2, the Gram matrix 2, 3; no last update.

    T = 3 has two levels: b = 2 * 1 * 2 / 4 = 1. Noise of 1 a node adds 1 after one round and 1 after two: theta = 2/2, 3/3.
    """
    algorithm = lin_priv(2, 1, 3, 4.0, SYMMETRIC, failure=0.1)
    table = ContextTable(np.ones((3, 2, 1)), np.ones((3, 2)), SYMMETRIC)
    ledger = LiveLedger(1, ConstantNoise(1.0), keeps_transcript=True)
    _, released = run(algorithm, table, ledger)
    assert [float(entry.value[0, 0]) for entry in ledger.transcript] == [1, 2]
    assert [float(entry.output[0, 0] - entry.value[0, 0]) for entry in ledger.transcript] == pytest.approx([1, 1])
    assert released.estimate[0, 0] == pytest.approx(1.0)
    assert released.n_updates.tolist() == [2]
    width = math.sqrt(2 * math.log(10) + math.log(3)) + 1 + algorithm.noise_norms[2] / math.sqrt(3)
    assert released.width[0] == pytest.approx(width)


@pytest.mark.parametrize(("horizon", "epsilon"), [(2, 1.0), (33, 0.3), (64, 8.0)])
def test_the_worst_record_pays_epsilon(horizon, epsilon):
    algorithm = lin_priv(3, 2, horizon, epsilon, UNIT)
    rng = np.random.default_rng(1)
    contexts = rng.normal(size=(horizon, 3, 2))
    contexts /= np.linalg.norm(contexts, axis=2)[..., None]
    ledger = OwnNoiseLedger([1, 2])
    run(algorithm, ContextTable(contexts, rng.random((horizon, 3)), UNIT), ledger)
    ((event, count),) = ledger.worst_record().items()
    assert isinstance(event, LaplaceEvent)
    # The last round's update is not made: a horizon that is a power of two lacks its largest node.
    levels = horizon.bit_length()
    assert count == levels - (horizon & (horizon - 1) == 0)
    assert ledger.guarantee().epsilon == pytest.approx(epsilon * count / levels)
    assert ledger.guarantee().epsilon <= epsilon


def test_the_noise_of_a_sum_stays_below_its_bound():
    """4,000 draws of the noise after 7 and 8 rounds: each bound fails with probability 0.2 / 8 at most."""
    algorithm = lin_priv(2, 3, 8, 1.0, UNIT, failure=0.2)
    rng, scale = np.random.default_rng(2), algorithm.sums.mechanism.scale
    assert scale == pytest.approx(math.sqrt(3) * 4)
    for step, nodes in ((7, 3), (8, 1), (4, 1), (6, 2)):
        norms = np.linalg.norm(scale * rng.laplace(size=(4000, nodes, 3)).sum(axis=1), axis=1)
        rate = (norms > algorithm.noise_norms[step]).mean()
        assert rate < 0.025 + 5 * math.sqrt(0.025 / 4000)
    assert algorithm.noise_norms[8] < algorithm.noise_norms[7]


def test_with_little_privacy_it_learns_and_stays_below_its_bound():
    entry = find("lin-priv")
    horizon, grid = 1500, np.array([300, 1500])
    curves = []
    for epsilon in (1e4, 1.0):
        settings = entry.settings(Problem(4, UNIT, horizon, dimension=2), "tight", PureDP(epsilon))
        environment = SphereContexts([0.3, 0.3], 4, horizon, np.random.SeedSequence(1), LinearLink(UNIT))
        curve = ContextualRegretCurve(environment, grid, 20)
        ledger = LiveLedger(20, ReproducibleNoise(np.random.SeedSequence(2)))
        run(entry.build(settings), environment, ledger, observers=[curve])
        curves.append(curve.curve.mean(axis=0))
        assert (curves[-1] <= entry.bound(settings, None, grid).values).all()
    assert curves[0][1] < 0.6 * curves[1][1], "noise at epsilon = 1 is far above the sums"
    assert curves[0][1] - curves[0][0] < 4 * curves[0][0] * 0.8, "sublinear"


@pytest.mark.parametrize(
    ("change", "message"),
    [({"epsilon": 0.0}, "epsilon must be"), ({"ridge": 0.0}, "ridge must be"), ({"failure": 2.0}, "failure must")],
)
def test_refusals(change, message):
    with pytest.raises(ValueError, match=message):
        lin_priv(**{"n_actions": 2, "dimension": 2, "horizon": 10, "epsilon": 1.0, "reward_range": UNIT, **change})
