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
    signs = np.linspace(-1, 1, n)
    parts = np.abs(count), np.abs(noise[:, n]), np.abs(noise[:, :n]).sum(axis=1), np.abs(noise[:, :n] @ signs)
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
    assert min(_exceeded(noise, layout, [0.4 * error for error in errors])) > _MOST, "0.4 of them are too small"


# --- optimism ------------------------------------------------------------------------------------------------------------


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
    holds = (released.values >= env.best.values - 1e-9) & (released.lower <= env.best.values + 1e-9)
    assert holds.all(axis=(1, 2)).sum() >= 78
    half = dataclasses.replace(algorithm, beta_scale=0.0)
    _, released = run(half, env, LiveLedger(80, ReproducibleNoise(np.random.SeedSequence(3))))
    assert (released.values < env.best.values - 1e-9).any(), "without a width they are not"


def drawn_statistics(generator, env, layout, noise, n_reps):
    """(n_reps, H, S, A, width) noisy statistics after 0 to 1e6 visits to each row, and the errors that noise may have."""
    shape = (n_reps, *env.mean_rewards.shape)
    visits = np.floor(10 ** generator.uniform(0, 6, shape)).astype(int) * generator.integers(0, 8, shape).clip(0, 1)
    table = np.zeros((*shape, layout.width))
    table[..., : layout.n_states] = generator.multinomial(visits, np.broadcast_to(env.transitions, (*table.shape[:-1], 3)))
    table[..., layout.n_states] = generator.binomial(visits, env.mean_rewards) - layout.reward_center * visits
    if layout.count_weight:
        table[..., -1] = layout.count_weight * visits
    return table + noise(table.shape)


@pytest.mark.parametrize("law", ["none", "normal", "laplace"])
def test_the_best_values_lie_between_both_bounds_in_random_processes(law):
    """20 processes of three states with 20 draws each: one fails with probability 1 / 1000, 6 of 400 do so below 1e-5."""
    generator, deviation, fails, gaps, close = np.random.default_rng(4), 0.0 if law == "none" else 5.0, 0, [], 0
    layout = with_visits(3) if law == "normal" else Layout(3)
    share = 0.001 / (12 * 18)
    draw = generator.standard_normal if law != "laplace" else lambda shape: generator.laplace(0.0, 1.0, shape)
    errors = (layout.laplace_errors(5.0, 1, share) if law == "laplace" else layout.gaussian_errors(deviation, share),)
    algorithm = UCBVISettings(3, 2, 3, 10**6, looks=2, bonus="bernstein", failure=0.001).twin()
    algorithm = dataclasses.replace(algorithm, layout=layout, errors=errors)
    for seed in range(20):
        after = generator.dirichlet(np.full(3, 0.4), (3, 3, 2))
        env = FiniteMDP(after, generator.random((3, 3, 2)), 1, np.random.SeedSequence(seed))
        noisy = drawn_statistics(generator, env, layout, lambda shape: deviation * draw(shape), 20)
        for scale in (1.0, 0.0):
            _, released = algorithm.init(20)
            released.n_looks[:] = 1
            dataclasses.replace(algorithm, beta_scale=scale).plan(noisy, released)
            wrong = (released.values < env.best.values - 1e-9) | (released.lower > env.best.values + 1e-9)
            if scale:
                fails += wrong.any(axis=(1, 2)).sum()
                gaps.append((released.values - released.lower)[:, :3].mean())
            else:
                close += wrong.any(axis=(1, 2)).sum()
    assert fails < 6
    assert close > 300, "without a width they do not"
    assert np.mean(gaps) < 1.5, "of 2 on average: the bounds are not the trivial ones"


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
    count, reward, *_ = np.max(np.array(algorithm.errors), axis=0)
    log, k = math.log(9 * 10_000 / 0.1), 10_000
    width, noise = 2 * math.sqrt(log / 2), 2 * count + 2 * reward
    by_hand = 2 * 100 + 2 * math.sqrt(2 * k) * width + 2 * (1 + math.log(k)) * noise
    with_width = math.sqrt(log / 2) + math.sqrt(log / 2)
    assert with_width == pytest.approx(width)
    assert regret_bound(algorithm, [k]) == pytest.approx([min(k, by_hand)])


def test_the_bound_of_variances_by_hand():
    """Two steps, one state, one action: C = 1 in the first step, 0 in the second one."""
    algorithm = UCBVISettings(1, 1, 2, 10**6, failure=0.1, bonus="bernstein").private(ApproxDP(1.0, 1e-5), JOINT, "tight")
    count, reward, total, function = np.max(np.array(algorithm.errors), axis=0)
    log, k = math.log(15 * 2 * 10**6 / 0.1), 10**6
    assert algorithm.log == pytest.approx(log)
    width = [2 * (math.sqrt(log / 2) + math.sqrt(2 * log)) + math.sqrt((math.log(2) + log) / 2), 2 * math.sqrt(log / 2)]
    rewards = 2 * count + 2 * reward
    noise = [rewards + 2 * (function + 2 * math.sqrt(log * total) + 3 * log) + 4 * total, rewards]
    cost = 2 * math.sqrt(2 * k) * sum(width) + 2 * (1 + math.log(k)) * sum(noise)
    expected = 2 * 1000 * (2 + 1) + cost + math.sqrt(k * math.log(10) / 2)
    assert expected < 3 * k
    assert regret_bound(algorithm, [k]) == pytest.approx([expected])


@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
def test_rows_that_count_rewards_as_they_are_have_the_same_values(bonus):
    """Without noise and widths: the values of printed rows are those of rows with rewards less 1/2."""
    env, found = world(1), []
    for layout in (Layout(S), published(S)):
        algorithm = dataclasses.replace(
            UCBVISettings(S, A, H, 10, looks=2, bonus=bonus).twin(), layout=layout, beta_scale=0.0
        )
        table = np.zeros((1, H, S, A, layout.width))
        table[..., :S] = 100 * env.transitions
        table[..., S] = 100 * (env.mean_rewards - layout.reward_center)
        table[..., S + 1 :] = 100.0
        _, released = algorithm.init(1)
        released.n_looks[:] = 1
        algorithm.plan(table, released)
        found.append(released.values[0])
    np.testing.assert_allclose(found, [env.best.values] * 2, atol=1e-12)


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
