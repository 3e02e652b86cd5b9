"""The catalog lines of batched LSVI-UCB, its regret bounds, and what it learns."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.mdp.models import LinearModel
from bandana.algorithms.observers import EpisodicRegretCurve
from bandana.algorithms.problem import Problem
from bandana.algorithms.rl.linear_mdp.batches import static
from bandana.algorithms.rl.linear_mdp.entries import ENTRIES
from bandana.algorithms.rl.linear_mdp.forms import LSVI, PARTS, SCHEMES
from bandana.algorithms.rl.linear_mdp.regret_bound import is_proved, regret_bound, switching_factor
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, Interval, LiveLedger, PureDP, ReproducibleNoise

UNIT = Interval(0.0, 1.0)
LENGTH, N_STATES, N_ACTIONS, EPISODES = 3, 2, 2, 4096
TABULAR = LinearModel(np.eye(4).reshape(N_STATES, N_ACTIONS, 4), LENGTH)
PROBLEM = Problem(N_ACTIONS, UNIT, EPISODES, model=TABULAR)
TWIN, JOINT, PURE = ENTRIES
LEVEL = ApproxDP(1.0, 1e-5)


def world(episodes, seed=1):
    """Action 1 leads to state 1 nine times out of ten; rewards 0.9 for staying there, 0.2 for not going."""
    after = np.zeros((LENGTH, N_STATES, N_ACTIONS, N_STATES))
    after[:, :, 0] = [0.9, 0.1]
    after[:, :, 1] = [0.1, 0.9]
    rewards = np.zeros((LENGTH, N_STATES, N_ACTIONS))
    rewards[:, 1, 1], rewards[:, 0, 0] = 0.9, 0.2
    return FiniteMDP(after, rewards, episodes, np.random.SeedSequence(seed), law="bernoulli")


def regret(algorithm, episodes=EPISODES, n_reps=8):
    """Mean regret after a quarter and after all episodes, and the last released state."""
    env = world(episodes)
    curve = EpisodicRegretCurve(env.best.gaps, np.array([episodes // 4, episodes]), n_reps)
    ledger = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(2)))
    _, released = run(algorithm, env, ledger, observers=[curve])
    return *curve.curve.mean(axis=0), released


UNIFORM = EPISODES * 1.0
"""About what a policy loses that never uses what it learned: one unit of reward an episode."""


# --- learning --------------------------------------------------------------------------------------------------------


def test_the_twins_regret_is_sublinear_with_the_width_that_is_proved():
    quarter, full, _ = regret(LSVI(TABULAR, EPISODES).twin())
    assert full < 3 * quarter
    assert full < 0.5 * UNIFORM


@pytest.mark.parametrize(("episodes", "epsilon"), [(EPISODES, 4.0), (50_000, 0.5)])
def test_static_batches_are_as_many_as_appendix_e_1_says(episodes, epsilon):
    """B = (K epsilon)^(2/5) / (d^(3/5) H^(1/5)), rounded up; the twin's are those of epsilon = 1."""
    for algorithm, budget in (
        (LSVI(TABULAR, episodes, batches="static").twin(), 1.0),
        (LSVI(TABULAR, episodes, batches="static").private(ApproxDP(epsilon, 1e-5), "tight"), epsilon),
    ):
        number = math.ceil((episodes * budget) ** 0.4 / (4**0.6 * LENGTH**0.2))
        assert algorithm.schedule == static(episodes, number)


def test_with_a_smaller_width_the_twin_makes_few_mistakes():
    quarter, full, _ = regret(LSVI(TABULAR, EPISODES, beta_scale=0.1).twin())
    assert full < 0.05 * UNIFORM
    assert full < 1.6 * quarter


@pytest.mark.parametrize("batches", SCHEMES)
def test_tight_learns(batches):
    """At epsilon = 10, with a tenth of its width."""
    tight = LSVI(TABULAR, EPISODES, batches=batches, beta_scale=0.1, n_batches=7).private(ApproxDP(10.0, 1e-5), "tight")
    assert regret(tight)[1] < 0.55 * UNIFORM


def test_printed_stays_uniform_where_tight_learns():
    """At epsilon = 10, also with a tenth of its width."""
    printed = LSVI(TABULAR, EPISODES, beta_scale=0.1).private(ApproxDP(10.0, 1e-5), "printed")
    _, full, released = regret(printed)
    assert full > 0.9 * UNIFORM
    assert (released.values[:, :-1] == LENGTH).all(), "every value is still the largest possible one"


def test_pure_privacy_costs_more():
    joint = LSVI(TABULAR, EPISODES, beta_scale=0.03).private(ApproxDP(10.0, 1e-5), "tight")
    pure = LSVI(TABULAR, EPISODES, beta_scale=0.03).private(PureDP(10.0), "tight")
    assert regret(LSVI(TABULAR, EPISODES, beta_scale=0.03).twin())[1] < regret(joint)[1] < regret(pure)[1] < UNIFORM


OPTIMISTIC = {
    "twin": lambda: LSVI(TABULAR, 400).twin(),
    "joint": lambda: LSVI(TABULAR, 400).private(ApproxDP(50.0, 1e-5), "tight"),
    "pure": lambda: LSVI(TABULAR, 400).private(PureDP(50.0), "tight"),
}


@pytest.mark.parametrize("name", OPTIMISTIC)
def test_values_are_optimistic(name):
    """In 200 replicates; each fails with probability at most 1 / 400."""
    algorithm, env = OPTIMISTIC[name](), world(400)
    _, released = run(algorithm, env, LiveLedger(200, ReproducibleNoise(np.random.SeedSequence(3))))
    assert ((released.values >= env.best.values - 1e-9).all(axis=(1, 2))).sum() >= 199
    half = dataclasses.replace(algorithm, beta_scale=0.0)
    _, released = run(half, env, LiveLedger(200, ReproducibleNoise(np.random.SeedSequence(3))))
    assert (released.values < env.best.values - 1e-9).any(), "without a width they are not"


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_the_bound_holds_and_is_no_more_than_the_trivial_one():
    algorithm = LSVI(TABULAR, EPISODES, batches="static", n_batches=64).twin()
    quarter, full, _ = regret(algorithm)
    low, high = regret_bound(algorithm, [EPISODES // 4, EPISODES])
    assert quarter <= low <= 6 * EPISODES / 4
    assert full <= high <= 6 * EPISODES


def test_the_bound_of_the_twin_is_sublinear_in_the_end():
    """sqrt K batches: bounds of a hundred times as many episodes are less than forty times as large."""
    small, large = (
        float(regret_bound(LSVI(TABULAR, k, batches="static", n_batches=int(k**0.5)).twin(), k))
        for k in (2 * 10**7, 2 * 10**9)
    )
    assert small < 0.1 * 6 * 2 * 10**7
    assert large < 20 * small


def test_the_bound_by_hand():
    """One step, one feature: a = 1, growth log(1 + K) / log 2, no value follows, so no martingale."""
    model = LinearModel(np.ones((1, 2, 1)), 1)
    algorithm = LSVI(model, 10**6, batches="static", n_batches=1000, failure=0.1).twin()
    k = 10**6
    growth = np.log1p(k) / np.log(2)
    width = algorithm.widths(999)[0]
    assert regret_bound(algorithm, k) == pytest.approx(1000 * (1 + growth) + np.sqrt(8) * width * np.sqrt(k * growth))


def test_the_bound_of_three_steps_by_hand():
    """Values of at most 3, 2 and 1; after the first step and after the second one they are what chance decides on."""
    k, n = 10**6, 1000
    algorithm = LSVI(LinearModel(np.ones((1, 2, 1)), 3), k, batches="static", n_batches=1000, failure=0.1).twin()
    growth = np.log1p(k) / np.log(2)
    widths = np.max([algorithm.widths(look) for look in range(1, len(algorithm.schedule.looks) + 1)], axis=0)
    cost = sum(max(cap, np.sqrt(8) * width) for cap, width in zip((3, 2, 1), widths, strict=True)) * np.sqrt(k * growth)
    expected = 6 * n * (1 + growth) + cost + np.sqrt(k * (2**2 + 1**2) * np.log(10) / 2)
    assert expected < 6 * k
    assert regret_bound(algorithm, k) == pytest.approx(expected, rel=1e-9)


def test_the_bound_of_determinants_by_hand():
    """Without noise one may have fallen by 1 + C; with noise by (s b / (s' a))^d more."""
    k, d = 10**8, 1
    model = LinearModel(np.ones((1, 2, 1)), 1)
    algorithm = LSVI(model, k, failure=0.1, switch=0.5).twin()
    assert switching_factor(algorithm) == pytest.approx(1.5)
    growth = np.log1p(k) / np.log(2)
    width = max(algorithm.widths(look)[0] for look in range(1, 10_000))
    expected = 10_000 * (1 + growth) + np.sqrt(8 * 1.5) * width * np.sqrt(k * growth)
    assert expected < k
    assert regret_bound(algorithm, k) == pytest.approx(expected, rel=1e-9)
    noisy = LSVI(model, 10_000, failure=0.1, switch=0.5).private(LEVEL, "tight")
    looks = [noisy.regularizer(look) for look in range(1, 100)]
    ratios = [late.added * early.largest / early.added for i, late in enumerate(looks) for early in looks[: i + 1]]
    assert switching_factor(noisy) == pytest.approx(1.5 * (max(ratios) / looks[0].least) ** d)


def test_the_bound_of_determinants_grows_with_the_root_of_the_episodes():
    """For ten times as many episodes it is less than four times as large: sqrt 10, and logarithms."""
    model = LinearModel(np.ones((1, 2, 1)), 1)
    runs = (LSVI(model, k, batches="determinant") for k in (10**7, 10**8))
    small, large = (float(regret_bound(each.private(LEVEL, "tight"), each.horizon)) for each in runs)
    assert small < 0.7 * 10**7
    assert large < 4 * small


@pytest.mark.parametrize(("dimension", "share"), [(2, 0.24), (4, 0.44), (8, 0.88)])
def test_in_reach_only_static_batches_have_a_bound(dimension, share):
    """Noise may hide a direction in each dimension: at K = 1e8 that makes the bound of determinants the trivial one."""
    k, length = 10**8, 5
    model = LinearModel(np.eye(dimension).reshape(dimension // 2, 2, dimension), length)
    determinants, static = (LSVI(model, k, batches=name).private(LEVEL, "tight") for name in ("determinant", "static"))
    trivial = k * sum(static.caps)
    assert regret_bound(determinants, k) == pytest.approx(trivial)
    assert regret_bound(static, k) == pytest.approx(share * trivial, rel=0.03), "the page's table"
    assert LSVI(model, k).private(LEVEL, "tight") == static, "which is the default then"


def test_the_schedule_with_the_smaller_bound_is_the_default():
    """Determinants win under little noise; nothing is proved of widths that are scaled down, or said of few episodes."""
    model, k = LinearModel(np.ones((1, 2, 1)), 1), 10**6

    def built(level, batches=None, episodes=k, **more):
        return LSVI(model, episodes, batches=batches, **more).private(level, "tight")

    for level, schemes in ((PureDP(1000.0), ("determinant", "static")), (PureDP(10.0), ("static", "determinant"))):
        smaller, larger = (built(level, scheme) for scheme in schemes)
        assert regret_bound(smaller, k) < 0.95 * regret_bound(larger, k)
        assert built(level) == smaller
    for more in ({"beta_scale": 0.5}, {"episodes": 100}, {"n_batches": 9}):
        assert built(LEVEL, **more) == built(LEVEL, "determinant", **more)


def test_as_many_updates_are_paid_for_as_determinants_need():
    tight = LSVI(TABULAR, EPISODES).private(LEVEL, "tight")
    assert is_proved(tight)
    fewer = dataclasses.replace(tight.schedule, most_updates=tight.schedule.most_updates - 1)
    assert not is_proved(dataclasses.replace(tight, schedule=fewer))
    _, _, released = regret(tight)
    assert 1 < released.n_updates.max() <= tight.schedule.most_updates


def test_what_is_not_proved_is_not_bounded():
    for algorithm in (
        LSVI(TABULAR, 100, batches="geometric").twin(),
        LSVI(TABULAR, EPISODES, n_batches=9).private(LEVEL, "tight"),
        LSVI(TABULAR, EPISODES).private(LEVEL, {**PARTS["printed"], "schedule": "determinant"}),
        LSVI(TABULAR, 100, batches="static", beta_scale=0.5).twin(),
    ):  # fmt: skip
        assert not is_proved(algorithm)
        with pytest.raises(ValueError, match="proved for static batches"):
            regret_bound(algorithm, 100)


# --- the catalog's lines ---------------------------------------------------------------------------------------------


def test_defaults_are_each_calibrations_own():
    built = {c: JOINT.build(JOINT.settings(PROBLEM, c, LEVEL)) for c in ("printed", "tight")}
    assert len(set(built["printed"].schedule.batches)) == 1
    assert built["tight"].schedule.looks == tuple(range(64, EPISODES, 64))
    twin = TWIN.build(TWIN.settings(PROBLEM))
    assert twin.schedule.looks == built["tight"].schedule.looks
    assert built["tight"].schedule.most_updates < twin.schedule.most_updates, "noise hides some growth"
    assert built["tight"].failure == 1 / EPISODES
    chosen = JOINT.build(JOINT.settings(PROBLEM, "tight", LEVEL, batches="determinant", n_batches=5, switch=2.0))
    assert chosen.schedule.most_updates == 4
    assert chosen.schedule.log_growth == pytest.approx(np.log(3))
    assert PURE.build(PURE.settings(PROBLEM, "tight", PureDP(1.0))).matrices.n_steps == 63


def test_bounds_are_told_where_they_are_proved():
    grid = np.array([64, EPISODES])
    printed = JOINT.bound(JOINT.settings(PROBLEM, "printed", LEVEL), None, grid)
    assert printed.values.tolist() == [9 * 64, 9 * EPISODES]
    assert "eq. (22)" in printed.text
    own = TWIN.bound(TWIN.settings(PROBLEM, batches="static"), None, grid)
    assert "with a width of our own" in own.text
    tight = JOINT.bound(JOINT.settings(PROBLEM, "tight", LEVEL), None, grid)
    assert "by determinants" in tight.text
    assert tight.values[1] == 6 * EPISODES, "of so few episodes it is the trivial one"
    assert PURE.bound(PURE.settings(PROBLEM, "tight", PureDP(1.0), batches="geometric"), None, grid) is None


def test_bad_settings_are_refused():
    wide = dataclasses.replace(PROBLEM, reward_range=Interval(0.0, 2.0))
    with pytest.raises(ValueError, match=r"rewards in \[0, 1\], got the range \[0, 2\]"):
        TWIN.build(TWIN.settings(wide))
    with pytest.raises(ValueError, match=r"n_batches must be a whole number of at least 1, got 2\.5"):
        TWIN.build(TWIN.settings(PROBLEM, n_batches=2.5))
    with pytest.raises(ValueError, match="plays on linear-mdp problems"):
        TWIN.settings(Problem(2, UNIT, 100))


def test_audits_play_four_batches():
    few = JOINT.in_audit(JOINT.settings(dataclasses.replace(PROBLEM, horizon=8), "printed", LEVEL))
    assert JOINT.build(few).schedule.looks == (2, 4, 6)
    with pytest.raises(ValueError, match="a single batch"):
        JOINT.build(JOINT.settings(dataclasses.replace(PROBLEM, horizon=8), "printed", LEVEL))
