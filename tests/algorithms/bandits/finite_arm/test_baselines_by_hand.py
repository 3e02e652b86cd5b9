"""The pure-DP baselines against their papers' pseudocode, and against runs done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_references import adap as adap_reference
from baseline_references import dp_se as dp_se_reference
from baseline_references import dp_ucb as dp_ucb_reference
from doubles import ConstantNoise, OwnNoiseLedger

from bandana.algorithms.bandits.finite_arm.episodic_ucb import EpisodicUCB, adap_klucb, adap_ucb, ucb
from bandana.algorithms.bandits.finite_arm.indices import LAPLACE
from bandana.algorithms.bandits.finite_arm.successive_elimination import dp_se, successive_elimination
from bandana.algorithms.bandits.finite_arm.tree_ucb import dp_ucb, tree_ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.run import run
from bandana.privacy_core import Exact, Interval, Laplace, LiveLedger, PhaseSum, TreeSum

UNIT = Interval(0.0, 1.0)


def actions_of(algorithm, table, ledger, jump=True):
    log = ActionLog()
    states = run(algorithm, table, ledger, observers=[log], jump=jump)
    rows = [
        np.concatenate([np.full(n[r], a[r]) for n, a in zip(log.n_records, log.actions, strict=True)])
        for r in range(ledger.n_reps)
    ]
    return np.stack(rows), states


@pytest.mark.parametrize(
    ("noise", "by_hand"), [(0.0, [0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]), (-2.0, [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])]
)
def test_adap_ucb_for_twelve_rounds(noise, by_hand):
    """Arm 0 always pays, arm 1 never; epsilon = 2, alpha = 1. Width sqrt(log(2t) / (2n)) + log(t) / (2n).

    Without noise:
    t=3:  0: 1 + .947 + .549 = 2.50; 1: 1.50                                   -> 0 for 1 round
    t=4:  0: 1 + 1.020 + .693 = 2.71; 1: 1.71                                  -> 0 for 2
    t=6:  0, n = 2: 1 + .788 + .448 = 2.24; 1: 1.115 + .896 = 2.01             -> 0 for 4
    t=10: 0, n = 4: 1 + .612 + .288 = 1.90; 1: 1.224 + 1.151 = 2.38            -> 1 for 1
    t=11: 0: 1.92; 1: 2.44                                                     -> 1 for 2
    With -2 on every draw a sum loses 1, first pulls too, so at t = 10 arm 0 has 1.90 - 1/4 = 1.65 and arm 1 has 1.38.
    """
    table = RewardTable(np.tile([1.0, 0.0], (12, 1)), UNIT)
    found, (_, released) = actions_of(adap_ucb(2, 2.0, 1.0, UNIT, "printed"), table, LiveLedger(1, ConstantNoise(noise)))
    assert found.tolist() == [by_hand]
    assert adap_reference(table.rewards.tolist(), [noise] * 12, 2.0, 1.0, False) == by_hand
    assert released.tail[0, 0] == pytest.approx(0.5 / 4, rel=1e-11)


def test_adap_klucb_for_twelve_rounds():
    """Arm 1 always pays: its index is 1. Arm 0 is moved to 1 from log(t) / 2 >= 1 on, t >= 8: then the uncut mean decides.

    t=10: 0: log(10) / 2 = 1.15; 1, n = 4: 1 + log(10) / 8 = 1.29, so arm 1 keeps the tie.
    """
    table = RewardTable(np.tile([0.0, 1.0], (12, 1)), UNIT)
    by_hand = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    found, _ = actions_of(adap_klucb(2, 2.0, 1.0, UNIT), table, LiveLedger(1, ConstantNoise(0.0)))
    assert found.tolist() == [by_hand]
    assert adap_reference(table.rewards.tolist(), [0.0] * 12, 2.0, 1.0, True) == by_hand


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("n_arms", [2, 5])
@pytest.mark.parametrize(("epsilon", "alpha"), [(4.0, 1.0), (0.5, 3.1), (30.0, 0.7)])
@pytest.mark.parametrize("is_kl", [False, True])
def test_adap_plays_the_papers_pseudocode(seed, n_arms, epsilon, alpha, is_kl):
    rewards = np.random.default_rng(seed).random((400, n_arms)) * np.linspace(0.3, 1.0, n_arms)
    table = RewardTable(rewards, UNIT)
    settings = (n_arms, epsilon, alpha, UNIT)
    algorithm = adap_klucb(*settings) if is_kl else adap_ucb(*settings, "printed")
    found, _ = actions_of(algorithm, table, OwnNoiseLedger([seed]))
    noise = np.random.default_rng(seed).laplace(size=400)
    assert found[0].tolist() == adap_reference(table.rewards.tolist(), noise.tolist(), epsilon, alpha, is_kl)


def test_dp_se_for_three_epochs():
    """Arm 0 always pays, arm 1 never; epsilon = 4, failure = 1/2, epochs 1/200 as long as printed.

    R_1 = floor(128 log(32) / 200) + 1 = 3,    2h + 2c = 1.52 + .46 > 1
    R_2 = floor(512 log(128) / 200) + 1 = 13,  2h + 2c = .86 + .16 > 1
    R_3 = floor(2048 log(288) / 200) + 1 = 58, 2h + 2c = .44 + .04 < 1: arm 1 is out after 2 (3 + 13 + 58) = 148 rounds.
    """
    table = RewardTable(np.tile([1.0, 0.0], (200, 1)), UNIT)
    by_hand = [0] * 3 + [1] * 3 + [0] * 13 + [1] * 13 + [0] * 58 + [1] * 58 + [0] * 52
    ledger = LiveLedger(1, ConstantNoise(1.0), keeps_transcript=True)
    found, (_, released) = actions_of(dp_se(2, 4.0, 0.5, UNIT, 1 / 200), table, ledger)
    assert found.tolist() == [by_hand]
    assert dp_se_reference(table.rewards.tolist(), [1.0] * 9, 4.0, 0.5, 1 / 200) == by_hand
    assert released.active.tolist() == [[True, False]]
    assert [float(entry.value[0]) for entry in ledger.transcript] == [3, 0, 13, 0, 58, 0]
    assert [float(entry.output[0] - entry.value[0]) for entry in ledger.transcript] == pytest.approx([0.25] * 6, rel=1e-11)


def test_dp_se_at_the_printed_length():
    """R_1 = floor(128 log(8 * 5 * 1e7)) + 1 = 2536 pulls of each of 5 arms at epsilon = 1."""
    sensitive, released = dp_se(5, 1.0, 1e-7, UNIT).init(3)
    assert released.left.tolist() == [2536] * 3
    assert dp_se(5, 0.05, 1e-7, UNIT).init(1)[1].left.tolist() == [int(320 * np.log(4 * 5 * 1e7)) + 1]
    assert sensitive.phase.total.shape == (3,)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("n_arms", [2, 5])
@pytest.mark.parametrize(("epsilon", "failure", "scale"), [(1.0, 0.1, 1 / 64), (0.1, 0.5, 1 / 200), (8.0, 1e-3, 1 / 500)])
def test_dp_se_plays_the_papers_pseudocode(seed, n_arms, epsilon, failure, scale):
    rewards = np.random.default_rng(seed).random((2000, n_arms)) * np.linspace(0.1, 1.0, n_arms)
    table = RewardTable(rewards, UNIT)
    found, _ = actions_of(dp_se(n_arms, epsilon, failure, UNIT, scale), table, OwnNoiseLedger([seed]))
    noise = np.random.default_rng(seed).laplace(size=100)
    assert found[0].tolist() == dp_se_reference(table.rewards.tolist(), noise.tolist(), epsilon, failure, scale)


def test_the_trees_prefixes_carry_one_noise_a_digit():
    """Constant noise 1 a node of scale 4 / epsilon = 2: after t rounds every arm's sum holds 2 popcount(t) too much."""
    algorithm = dp_ucb(2, 2.0, 4.0, UNIT, 8)
    for t in range(2, 9):
        _, released = run(algorithm, RewardTable(np.full((t, 2), 0.5), UNIT), LiveLedger(1, ConstantNoise(1.0)))
        extra = released.total - 0.5 * released.pulls
        assert extra == pytest.approx(np.full((1, 2), 2.0 * t.bit_count()), rel=1e-10)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("n_arms", [2, 4])
@pytest.mark.parametrize(("epsilon", "beta"), [(1.0, 4.0), (20.0, 2.0), (400.0, 1.0)])
def test_dp_ucb_plays_its_pseudocode(seed, n_arms, epsilon, beta):
    rewards = np.random.default_rng(seed).random((300, n_arms)) * np.linspace(0.3, 1.0, n_arms)
    table = RewardTable(rewards, UNIT)
    found, _ = actions_of(dp_ucb(n_arms, epsilon, beta, UNIT, 300), table, OwnNoiseLedger([seed]))
    noise = np.random.default_rng(seed).laplace(size=(300, n_arms))
    assert found[0].tolist() == dp_ucb_reference(table.rewards.tolist(), noise.tolist(), epsilon, beta)


def test_the_twin_of_dp_ucb_is_ucb1():
    table = RewardTable(np.random.default_rng(8).random((400, 3)) * [0.5, 0.7, 0.9], UNIT)
    found, _ = actions_of(tree_ucb(3, 4.0, UNIT, 400), table, LiveLedger(1, ConstantNoise()))
    expected, _ = actions_of(ucb(3, 4.0, UNIT), table, LiveLedger(1, ConstantNoise()))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("more", [(adap_ucb, "printed"), (adap_ucb, "tight"), (adap_klucb,)])
def test_noise_is_that_of_the_range(more):
    """In a range of width 3 at epsilon = 2 every sum, the first ones too, gets noise of scale 3/2."""
    wide = Interval(-1.0, 2.0)
    ledger = LiveLedger(1, ConstantNoise(1.0), keeps_transcript=True)
    build, *calibration = more
    run(build(2, 2.0, 3.1, wide, *calibration), RewardTable(np.full((8, 2), 0.5), wide), ledger)
    found = [float(entry.output[0] - entry.value[0]) for entry in ledger.transcript]
    assert found == pytest.approx([1.5] * len(found), rel=1e-11)
    assert len(found) > 3


@pytest.mark.parametrize(
    "build",
    [
        lambda span: adap_ucb(3, 1.0, 2.0, span, "printed"),
        lambda span: adap_ucb(3, 1.0, 2.0, span, "tight"),
        lambda span: adap_klucb(3, 1.0, 2.0, span),
        lambda span: dp_se(3, 1.0, 0.1, span, 1 / 100),
        lambda span: dp_ucb(3, 40.0, 4.0, span, 512),
    ],
    ids=["adap-ucb", "adap-ucb-tight", "adap-klucb", "dp-se", "dp-ucb"],
)
def test_rewards_of_another_range_are_measured_in_units_of_it(build):
    """Powers of two: every number scales exactly."""
    rewards = np.random.default_rng(3).random((512, 3)) * [0.2, 0.6, 1.0]
    wide = Interval(-4.0, 4.0)
    unit, _ = actions_of(build(UNIT), RewardTable(rewards, UNIT), OwnNoiseLedger([5, 6]))
    scaled, _ = actions_of(build(wide), RewardTable(8 * rewards - 4, wide), OwnNoiseLedger([5, 6]))
    assert np.array_equal(unit, scaled)
    assert len(np.unique(unit)) == 3


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: adap_ucb(1, 1.0, 3.1, UNIT, "tight"), "n_actions must be at least 2, got 1"),
        (lambda: adap_klucb(2, 0.0, 3.1, UNIT), "epsilon must be .* got 0.0"),
        (lambda: adap_ucb(2, 1.0, -1.0, UNIT, "printed"), "beta must be .* got -1.0"),
        (lambda: adap_ucb(2, 1.0, 3.1, UNIT, "loose"), "calibration must be 'printed' or 'tight', got 'loose'"),
        (lambda: dp_se(2, -1.0, 0.1, UNIT), "epsilon must be .* got -1.0"),
        (lambda: dp_se(2, 1.0, 1.5, UNIT), "failure must .* got 1.5"),
        (lambda: dp_se(2, 1.0, 0.5, UNIT, 0.0), "length_scale must be .* got 0.0"),
        (lambda: successive_elimination(1, 0.5, UNIT), "n_actions must be at least 2, got 1"),
        (lambda: dp_ucb(2, 0.0, 4.0, UNIT, 8), "epsilon must be .* got 0.0"),
        (lambda: dp_ucb(2, 1.0, 0.0, UNIT, 8), "beta must be .* got 0.0"),
        (lambda: dp_ucb(1, 1.0, 4.0, UNIT, 8), "n_actions must be at least 2, got 1"),
        (lambda: dp_ucb(2, 1.0, 4.0, UNIT, 0), "n_steps must be .* got 0"),
        (
            lambda: type(tree_ucb(2, 4.0, UNIT, 8))(2, UNIT, TreeSum(Laplace(1.0, 1.0), 8, honaker=True), 4.0),
            "sums must be a plain tree",
        ),
        (
            lambda: EpisodicUCB(2, UNIT, PhaseSum(Exact()), PhaseSum(Exact()), 1.0, True, True, 3.1, LAPLACE),
            "looks at the last episode alone",
        ),
    ],
)
def test_refusals(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_tree_is_not_played_longer_than_it_was_built_for():
    table = RewardTable(np.full((9, 2), 0.5), UNIT)
    with pytest.raises(ValueError, match="built for 8 steps, this is step 9"):
        run(dp_ucb(2, 1.0, 4.0, UNIT, 8), table, LiveLedger(1, ConstantNoise()))
