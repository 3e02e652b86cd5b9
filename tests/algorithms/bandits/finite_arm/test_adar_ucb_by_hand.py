"""AdaR-UCB against the paper's pseudocode, and against sums done by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from adar_ucb_reference import play
from doubles import ConstantNoise, OwnNoiseLedger

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb, ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger

UNIT = Interval(0.0, 1.0)


def actions_of(algorithm, table, ledger, jump=True):
    log = ActionLog()
    states = run(algorithm, table, ledger, observers=[log], jump=jump)
    rows = [
        np.concatenate([np.full(n[r], a[r]) for n, a in zip(log.n_records, log.actions, strict=True)])
        for r in range(ledger.n_reps)
    ]
    return np.stack(rows), states


def test_twelve_rounds_without_noise():
    """Arm 0 always pays, arm 1 never. alpha = 2, epsilon = 4, beta = 1, two arms.

    Index = mean + sqrt((1/(2h) + (alpha/epsilon)/h^2) log t), h = N/2, which is 1/2 after a first pull.
    t=3:  0: 1 + sqrt((1 + 2) 1.099) = 2.82; 1: 1.82                                -> 0 for 1 round
    t=4:  0: 1 + sqrt((.5 + .5) 1.386) = 2.18; 1: sqrt(3 * 1.386) = 2.04            -> 0 for 2
    t=6:  0: 1 + sqrt((.25 + .125) 1.792) = 1.82; 1: sqrt(3 * 1.792) = 2.32         -> 1 for 1
    t=7:  0: 1 + sqrt(.375 * 1.946) = 1.85; 1: sqrt(1 * 1.946) = 1.39               -> 0 for 4
    t=11: 0: 1 + sqrt((.125 + .03125) 2.398) = 1.61; 1: sqrt(2.398) = 1.55          -> 0 for 8, two are left
    """
    table = RewardTable(np.tile([1.0, 0.0], (12, 1)), UNIT)
    algorithm = adar_ucb(2, 2.0, 4.0, 1.0, UNIT, "printed")
    by_hand = [0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    found, (sensitive, released) = actions_of(algorithm, table, LiveLedger(1, ConstantNoise(0.0)))
    assert found.tolist() == [by_hand]
    assert play(table.rewards.tolist(), [0.0] * 12, 2.0, 4.0, 1.0) == by_hand
    assert released.mean.tolist() == [[1.0, 0.0]]
    assert released.pulls.tolist() == [[10, 2]]
    assert released.left.tolist() == [6]
    assert released.clock.tolist() == [12]
    assert sensitive.phase.total.tolist() == [2.0], "what was not released stays sensitive"


def test_twelve_rounds_with_constant_noise():
    """Every draw is -1: scale 1/2 on a sum (1 on a first pull), so an episode of n rounds loses 1/(2n).

    The indices above, less 1 (first pull), 1/2, 1/4, 1/8 for n = 1, 1, 2, 4:
    t=3: 1.82 / 0.82 -> 0;  t=4: 1.68 / 1.04 -> 0 for 2;  t=6: 1.57 / 1.32 -> 0 for 4;
    t=10: 0: 7/8 + sqrt((.125 + .03125) 2.303) = 1.47; 1: sqrt(3 * 2.303) - 1 = 1.63 -> 1 for 1
    t=11: 0: 7/8 + sqrt(.15625 * 2.398) = 1.49; 1: sqrt(2.398) - 1/2 = 1.05 -> 0 to the end
    """
    table = RewardTable(np.tile([1.0, 0.0], (12, 1)), UNIT)
    algorithm = adar_ucb(2, 2.0, 4.0, 1.0, UNIT, "printed")
    by_hand = [0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
    found, (_, released) = actions_of(algorithm, table, LiveLedger(1, ConstantNoise(-1.0)))
    assert found.tolist() == [by_hand]
    assert play(table.rewards.tolist(), [-1.0] * 12, 2.0, 4.0, 1.0) == by_hand
    assert released.mean == pytest.approx(np.array([[0.875, -0.5]]), rel=1e-11)


@pytest.mark.parametrize("n_arms", [2, 3, 5])
@pytest.mark.parametrize(("alpha", "epsilon", "beta"), [(2.0, 4.0, 1.0), (5.0, 0.5, 3.1), (1.5, 30.0, 4.0)])
def test_the_papers_pseudocode(n_arms, alpha, epsilon, beta):
    different = set()
    for seed in range(6):
        rewards = np.random.default_rng(seed).random((300, n_arms)) * np.linspace(0.3, 1.0, n_arms)
        table = RewardTable(rewards, UNIT)
        algorithm = adar_ucb(n_arms, alpha, epsilon, beta, UNIT, "printed")
        found, _ = actions_of(algorithm, table, OwnNoiseLedger([seed]))
        noise = np.random.default_rng(seed).standard_normal(300)
        assert found[0].tolist() == play(table.rewards.tolist(), noise.tolist(), alpha, epsilon, beta)
        different.add(tuple(found[0]))
    assert len(different) > 1


@pytest.mark.parametrize("calibration", ["printed", "tight"])
def test_a_phase_of_the_right_scale_is_released(calibration):
    """In a range of width 3 the noise is three times that of rewards in [0, 1]."""
    wide = Interval(-1.0, 2.0)
    table = RewardTable(np.full((8, 2), 0.5), wide)
    algorithm = adar_ucb(2, 2.0, 4.0, 1.0, wide, calibration)
    ledger = LiveLedger(1, ConstantNoise(1.0), keeps_transcript=True)
    run(algorithm, table, ledger)
    first = 3.0 if calibration == "printed" else 1.5
    noise = [float(entry.output[0] - entry.value[0]) for entry in ledger.transcript]
    assert noise == pytest.approx([first, first] + [1.5] * (len(noise) - 2), rel=1e-11)
    assert len(noise) > 3


def test_tight_weights_episodes_by_inverse_variance():
    """v_k = 1/(4 n_k) + s^2 / n_k^2 for the episodes 1, 1, 2, 4, 8 of one arm; constant noise 1."""
    alpha, epsilon, lengths = 3.0, 1.5, [1, 1, 2, 4, 8]
    scale = math.sqrt(alpha / (2 * epsilon))
    rewards = np.zeros((17, 2))
    rewards[:, 0] = np.linspace(0.5, 1.0, 17)
    table = RewardTable(rewards, UNIT)
    algorithm = adar_ucb(2, alpha, epsilon, 1e-9, UNIT, "tight")
    ledger = LiveLedger(1, ConstantNoise(1.0), keeps_transcript=True)
    found, (_, released) = actions_of(algorithm, table, ledger)
    assert found[0].tolist() == [0, 1] + [0] * 15
    starts = [0, 2, 3, 5, 9]
    sums = [float(table.rewards[s : s + n, 0].sum()) for s, n in zip(starts, lengths, strict=True)]
    episode_means = [(total + scale) / n for total, n in zip(sums, lengths, strict=True)]
    weights = [1 / (1 / (4 * n) + scale**2 / n**2) for n in lengths]
    estimate = sum(w * m for w, m in zip(weights, episode_means, strict=True)) / sum(weights)
    assert released.mean[0, 0] == pytest.approx(estimate, rel=1e-10)
    assert released.deviation[0, 0] == pytest.approx(sum(weights) ** -0.5, rel=1e-10)


def test_the_twin_is_ucb1():
    """Without noise and in one-round episodes: mean + sqrt(2 log t / n) at beta = 4."""
    rewards = np.random.default_rng(8).random((200, 3)) * [0.5, 0.7, 0.9]
    table = RewardTable(rewards, UNIT)
    found, _ = actions_of(ucb(3, 4.0, UNIT), table, LiveLedger(1, ConstantNoise()))
    total, n, expected = [0.0] * 3, [0] * 3, []
    for t in range(1, 201):
        index = [total[a] / n[a] + math.sqrt(2 * math.log(t) / n[a]) if n[a] else math.inf for a in range(3)]
        chosen = index.index(max(index))
        expected.append(chosen)
        total[chosen] += float(table.rewards[t - 1, chosen])
        n[chosen] += 1
    assert found[0].tolist() == expected


@pytest.mark.parametrize("doubling", [True, False])
def test_episodes_double_or_last_one_round(doubling):
    table = RewardTable(np.random.default_rng(1).random((500, 3)), UNIT)
    log = ActionLog()
    run(ucb(3, 4.0, UNIT, doubling=doubling), table, LiveLedger(1, ConstantNoise()), observers=[log])
    pulls = [0, 0, 0]
    for n, a in zip(log.n_records[:-1], log.actions[:-1], strict=True):
        assert n[0] == (max(pulls[a[0]], 1) if doubling else 1)
        pulls[a[0]] += int(n[0])
    assert sum(pulls) + int(log.n_records[-1][0]) == 500
    if doubling:
        assert len(log.actions) <= 3 * (1 + math.log2(500 / 3)) + 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_arms": 1}, "n_actions must be at least 2, got 1"),
        ({"alpha": 1.0}, "alpha must be a Renyi order above 1, got 1.0"),
        ({"alpha": float("nan")}, "alpha must be a Renyi order above 1, got nan"),
        ({"epsilon": 0.0}, "epsilon must be .* got 0.0"),
        ({"beta": -1.0}, "beta must be .* got -1.0"),
        ({"calibration": "loose"}, "calibration must be 'printed' or 'tight', got 'loose'"),
    ],
)
def test_refusals(change, message):
    arguments = {"n_arms": 2, "alpha": 2.0, "epsilon": 1.0, "beta": 4.0, "calibration": "tight"}
    with pytest.raises(ValueError, match=message):
        adar_ucb(reward_range=UNIT, **{**arguments, **change})
