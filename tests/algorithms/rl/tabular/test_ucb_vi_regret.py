"""Errors of noisy counts, optimism, regret bounds, and what UCB-VI learns."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import binom

from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.observers import EpisodicRegretCurve
from bandana.algorithms.rl.tabular.forms import UCBVISettings
from bandana.algorithms.rl.tabular.regret_bound import is_proved, regret_bound
from bandana.algorithms.rl.tabular.statistics import Layout, published, with_visits
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, LiveLedger, PureDP, ReproducibleNoise, TrustModel

JOINT, LOCAL = TrustModel.JOINT, TrustModel.LOCAL
S, A, H, EPISODES = 2, 2, 3, 2048
DRAWS, FAILURE = 40_000, 0.05
UNIFORM = EPISODES * 1.0
"""About what a policy loses that never uses what it learned: one unit of reward an episode."""


def world(episodes, seed=1):
    """Action 1 leads to state 1 nine times out of ten; rewards 0.9 for staying there, 0.2 for not going."""
    after = np.zeros((H, S, A, S))
    after[:, :, 0] = [0.9, 0.1]
    after[:, :, 1] = [0.1, 0.9]
    rewards = np.zeros((H, S, A))
    rewards[:, 1, 1], rewards[:, 0, 0] = 0.9, 0.2
    return FiniteMDP(after, rewards, episodes, np.random.SeedSequence(seed), law="bernoulli")


def regret(algorithm, episodes=EPISODES, n_reps=4):
    """Mean regret after a quarter and after all episodes."""
    env = world(episodes)
    curve = EpisodicRegretCurve(env.best.gaps, np.array([episodes // 4, episodes]), n_reps)
    run(algorithm, env, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(2))), observers=[curve])
    return curve.curve.mean(axis=0)


# --- errors --------------------------------------------------------------------------------------------------------------


def _exceeded(noise, layout, errors):
    """How many rows of noise (n, width) exceed each of the errors."""
    n = layout.n_states
    total = noise[:, :n].sum(axis=1)
    own = noise[:, n + 1] / layout.count_weight if layout.count_weight else 0.0
    count = layout.count_share * own + (1 - layout.count_share) * total
    parts = np.abs(count), np.abs(noise[:, n]), np.abs(noise[:, :n]).sum(axis=1)
    return [int((part > error).sum()) for part, error in zip(parts, errors, strict=True)]


_MOST = int(binom.isf(1e-7, DRAWS, FAILURE))
"""A true bound is exceeded more often with probability at most 1e-7."""


@pytest.mark.parametrize("layout", [Layout(4), with_visits(4), with_visits(9)])
def test_gaussian_noise_exceeds_its_bounds_as_rarely_as_is_said(layout):
    noise = 2.0 * np.random.default_rng(1).standard_normal((DRAWS, layout.width))
    found = _exceeded(noise, layout, layout.gaussian_errors(2.0, FAILURE))
    assert max(found) <= _MOST
    assert min(found[:2]) >= DRAWS * FAILURE * 0.8, "the first two are exact quantiles"


@pytest.mark.parametrize("n_summed", [1, 3, 40])
@pytest.mark.parametrize("layout", [Layout(4), published(4)])
def test_laplace_noise_exceeds_its_bounds_as_rarely_as_is_said(layout, n_summed):
    generator = np.random.default_rng(2)
    noise = sum(generator.laplace(0.0, 2.0, (DRAWS, layout.width)) for _ in range(n_summed))
    errors = layout.laplace_errors(2.0, n_summed, FAILURE)
    assert max(_exceeded(noise, layout, errors)) <= _MOST
    assert max(_exceeded(noise, layout, [0.5 * error for error in errors])) > _MOST, "half of them are too small"


# --- optimism ------------------------------------------------------------------------------------------------------------


def test_the_bonus_of_bernstein_grows_with_values():
    """n P v + max(3 sqrt(l n Var_P v), 9 C l) grows in v on [0, C]: random laws and pairs v <= w."""
    generator, cap = np.random.default_rng(3), 4.0
    for _ in range(2000):
        counts = generator.integers(0, 200, 5) * generator.integers(0, 2, 5)
        log = generator.uniform(1.0, 12.0)
        low, high = np.sort(generator.uniform(0, cap, (2, 5)), axis=0)

        def upper(v, m=counts, log=log):
            n = max(m.sum(), 1)
            return m @ v + max(3 * math.sqrt(log * (m @ (v - m @ v / n) ** 2)), 9 * cap * log)

        assert upper(high) >= upper(low) - 1e-9


OPTIMISTIC = {
    "twin": lambda **more: UCBVISettings(S, A, H, 400, **more).twin(),
    "joint": lambda **more: UCBVISettings(S, A, H, 400, **more).private(ApproxDP(50.0, 1e-5), JOINT, "tight"),
    "joint pure": lambda **more: UCBVISettings(S, A, H, 400, **more).private(PureDP(50.0), JOINT, "tight"),
    "local": lambda **more: UCBVISettings(S, A, H, 400, **more).private(ApproxDP(500.0, 1e-5), LOCAL, "tight"),
    "local as-known": lambda **more: UCBVISettings(S, A, H, 400, **more).private(PureDP(500.0), LOCAL, "as-known"),
}


@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
@pytest.mark.parametrize("name", OPTIMISTIC)
def test_values_are_optimistic(name, bonus):
    """In 80 replicates; each fails with probability at most 1 / 400, three of them with probability below 0.002."""
    algorithm, env = OPTIMISTIC[name](bonus=bonus), world(400)
    _, released = run(algorithm, env, LiveLedger(80, ReproducibleNoise(np.random.SeedSequence(3))))
    assert ((released.values >= env.best.values - 1e-9).all(axis=(1, 2))).sum() >= 78
    half = dataclasses.replace(algorithm, beta_scale=0.0)
    _, released = run(half, env, LiveLedger(80, ReproducibleNoise(np.random.SeedSequence(3))))
    assert (released.values < env.best.values - 1e-9).any(), "without a width they are not"


# --- regret --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
def test_the_twins_regret_is_sublinear_and_below_its_bound(bonus):
    algorithm = UCBVISettings(S, A, H, EPISODES, bonus=bonus).twin()
    quarter, full = regret(algorithm)
    assert full < 3.6 * quarter
    assert full < 0.5 * UNIFORM
    low, high = regret_bound(algorithm, [EPISODES // 4, EPISODES])
    assert quarter <= low
    assert full <= high


def test_private_forms_learn_where_pucb_does_not():
    """At epsilon = 10, with a hundredth of the width."""

    def at(promise, trust, calibration):
        return UCBVISettings(S, A, H, EPISODES, beta_scale=0.01).private(promise, trust, calibration)

    joint, pure = (regret(at(p, JOINT, "tight"))[1] for p in (ApproxDP(10.0, 1e-5), PureDP(10.0)))
    local = regret(at(ApproxDP(10.0, 1e-5), LOCAL, "tight"))[1]
    published = regret(at(PureDP(10.0), JOINT, "as-known"))[1]
    twin = regret(UCBVISettings(S, A, H, EPISODES, beta_scale=0.01).twin())[1]
    assert twin < joint < pure < 0.5 * UNIFORM
    assert joint < local < published
    assert published > 0.75 * UNIFORM


def test_the_bound_by_hand():
    """One step, one state, one action: C = 0, so rewards alone; E_n, E_r as they are, E_1 is multiplied by 0."""
    algorithm = UCBVISettings(1, 1, 1, 10_000, failure=0.1).private(ApproxDP(1.0, 1e-5), JOINT, "tight")
    count, reward, _ = np.max(np.array(algorithm.errors), axis=0)
    log, k = math.log(9 * 10_000 / 0.1), 10_000
    width, noise = 2 * math.sqrt(log / 2), 2 * count + 2 * reward
    by_hand = 2 * 100 + 2 * math.sqrt(2 * k) * width + 2 * (1 + math.log(k)) * noise
    with_width = math.sqrt(log / 2) + math.sqrt(log / 2)
    assert with_width == pytest.approx(width)
    assert regret_bound(algorithm, [k]) == pytest.approx([min(k, by_hand)])


def test_bounds_are_sublinear_in_the_end():
    """Under joint privacy a hundred times as many episodes cost less than 40 times as much, at ten times as many looks."""
    for promise in (ApproxDP(1.0, 1e-5), PureDP(1.0)):
        settings = (UCBVISettings(S, A, H, k, looks=looks) for k, looks in ((10**8, 300), (10**10, 3000)))
        small, large = (float(regret_bound(each.private(promise, JOINT, "tight"), each.horizon)) for each in settings)
        assert small < 0.5 * 6 * 10**8
        assert large < 40 * small
    many = UCBVISettings(S, A, H, 10**10, looks=2000).private(ApproxDP(1.0, 1e-5), LOCAL, "tight")
    assert float(regret_bound(many, 10**10)) < 0.9 * 6 * 10**10


def test_no_bound_is_claimed_where_none_is_proved():
    settings = UCBVISettings(S, A, H, EPISODES)
    for algorithm in (
        settings.private(PureDP(1.0), JOINT, "as-known"),
        dataclasses.replace(settings, beta_scale=0.5).twin(),
        UCBVISettings(S, A, H, 1).twin(),
    ):
        assert not is_proved(algorithm)
        with pytest.raises(ValueError, match="a regret bound is proved for"):
            regret_bound(algorithm, [1])
