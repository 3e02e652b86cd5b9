"""Environments whose mean reward is a function of points: their functions, what users bring, and what they answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandana.algorithms.environments.benchmark_functions import camelback, decision_set, michalewicz, styblinski_tang
from bandana.algorithms.environments.kernel_functions import (
    GOOD,
    OTHERS,
    GapFunctions,
    KernelFunction,
    PooledFunction,
    _draw_gap_function,
    ball_points,
    clipping_bias,
    product_pool,
    random_function,
)
from bandana.algorithms.environments.logged import diabetes_table
from bandana.algorithms.protocol import ContextualStream
from bandana.algorithms.rkhs.features import feature_map
from bandana.algorithms.rkhs.kernels import Additive, Matern, ProductMatern, SquaredExponential, gram
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import Interval

UNIT, SYMMETRIC = Interval(0.0, 1.0), Interval(-1.0, 1.0)
PAPER = SquaredExponential(0.5)
ONE = np.ones(1, dtype=np.int64)


def seed(n):
    return np.random.SeedSequence(n)


def users(n, user=0):
    return np.full(n, user, dtype=np.int64)


# --- functions ---------------------------------------------------------------------------------------------------------


def test_a_random_function_has_norm_1_unless_told_otherwise():
    k, centers = SquaredExponential(0.5), np.array([[0.0], [0.3]])
    x = np.linspace(-1, 1, 7)[:, None]
    assert random_function(k, centers, seed(1))(x) == pytest.approx(random_function(k, centers, seed(1), 1.0)(x))


@pytest.mark.parametrize("kernel", [PAPER, Matern(1.5, 0.4), ProductMatern(0.5, 0.4)], ids=str)
@given(n=st.integers(1, 10), norm=st.sampled_from([0.5, 1.0, 3.0]), which=st.integers(0, 10**6))
def test_a_random_function_has_the_norm_and_is_bounded_by_it(kernel, n, norm, which):
    centers = ball_points(np.random.default_rng(which), (n,), 2)
    f = random_function(kernel, centers, seed(which), norm)
    assert f.norm == pytest.approx(norm, rel=1e-9)
    x = ball_points(np.random.default_rng(which + 1), (3, 20), 2)
    values = f(x)
    assert values.shape == (3, 20)
    assert np.abs(values).max() <= norm * (1 + 1e-12)
    assert values[1] == pytest.approx(gram(kernel, x[1], centers) @ f.weights)


def test_smoother_kernels_have_smoother_functions():
    """Second differences at a step of 1e-3, away from no center: of a Matern 1/2 kink they do not fall with the step."""
    x = np.linspace(-1, 1, 2001)[:, None]
    steps = [
        np.abs(np.diff(random_function(k, np.zeros((1, 1)), seed(0))(x), 2)).max()
        for k in (Matern(0.5, 0.4), Matern(1.5, 0.4), PAPER)
    ]
    assert steps[0] > 100 * steps[1] > 100 * steps[2]


def test_points_of_a_ball_are_uniform():
    """The cube of the radius is uniform in 3 dimensions: a mean of 20000 within 5 deviations (false alarm 6e-7)."""
    x = ball_points(np.random.default_rng(0), (20_000,), 3, 2.0)
    volume = (np.linalg.norm(x, axis=1) / 2) ** 3
    assert volume.max() <= 1
    assert volume.mean() == pytest.approx(0.5, abs=5 / math.sqrt(12 * 20_000))
    assert x.mean(axis=0) == pytest.approx(np.zeros(3), abs=0.05)


# --- random functions with a gap ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(4))
def test_a_gap_function_is_in_the_unit_ball_of_its_space(which):
    f = _draw_gap_function(PAPER, 2, np.random.Generator(np.random.SFC64(seed(which)))).function
    assert f.centers.shape == (4, 2)
    assert np.linalg.norm(f.centers, axis=1).max() <= 1
    assert np.abs(f.weights).sum() <= 1
    assert GOOD <= f.norm <= 1


def test_users_bring_one_good_point_at_a_random_place():
    env = GapFunctions(PAPER, 2, 25, 100, seed(3))
    assert isinstance(env, ContextualStream)
    places = []
    for user in range(100):
        x = env.contexts(users(6, user))
        means = env.mean_rewards(users(6, user), x)
        assert x.shape == (6, 25, 2)
        assert np.linalg.norm(x, axis=2).max() <= 1
        assert ((means >= GOOD).sum(axis=1) == 1).all()
        assert ((means <= OTHERS).sum(axis=1) == 24).all()
        places.append(means.argmax(axis=1))
    counts = np.bincount(np.concatenate(places), minlength=25)
    assert counts.max() < 60  # of 600 over 25 places: 24 expected, 60 has probability below 1e-8
    assert counts.min() > 2


@pytest.mark.parametrize("kind", ["gap", "pool"])
def test_features_of_what_was_offered_are_computed_once(kind):
    gap = kind == "gap"
    env = GapFunctions(PAPER, 2, 5, 10, seed(3)) if gap else PooledFunction(POOL, VALUES, 10, seed(0), SYMMETRIC)
    phi, x = feature_map(PAPER, 2, 16), env.contexts(users(4))
    assert phi(x) is phi(x)
    assert phi(env.contexts(users(4, 1))) is not phi(x)


def test_each_replicate_has_a_function_of_its_own_and_answers_by_it():
    env = GapFunctions(PAPER, 2, 4, 10, seed(5))
    total, means = np.zeros((3, 4)), np.zeros((3, 4))
    for user in range(4000):
        x = env.contexts(users(3, user))
        action = users(3, user % 4)
        total[:, user % 4] += env.respond(users(3, user), np.ones(3, dtype=np.int64), action)
        means[:, user % 4] += env.mean_rewards(users(3, user), x)[:, user % 4]
    assert total / 1000 == pytest.approx(means / 1000, abs=5 * 0.5 / math.sqrt(1000))  # 5 deviations
    assert len({tuple(row) for row in env.contexts(users(3))[:, 0].tolist()}) == 3


def test_gap_functions_begin_anew_with_the_same_seed():
    one, same, other = (GapFunctions(PAPER, 2, 5, 10, seed(n)) for n in (1, 1, 2))
    a, b, c = (env.contexts(users(2)) for env in (one, same, other))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    with pytest.raises(ValueError, match="began with 2 replicates"):
        one.contexts(users(3))
    with pytest.raises(ValueError, match="offered last"):
        one.mean_rewards(users(2), a.copy())


# --- the functions of the table -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("build", "uniform"), [(camelback, 4319), (styblinski_tang, 5640), (michalewicz, 8539)])
def test_uniform_play_loses_what_it_loses_in_the_table(build, uniform):
    """In 1e4 rounds, over the domain; a mean of 1e5 points is within 0.2 % of the truth."""
    f = build()
    x = np.random.default_rng(0).uniform(-1, 1, (100_000, f.dimension))
    assert 1e4 * (f.highest - f(x).mean()) == pytest.approx(uniform, rel=5e-3)


@pytest.mark.parametrize(
    "f", [camelback(), styblinski_tang(3), michalewicz(4), michalewicz(4, is_squared=True)], ids=lambda f: f.name
)
def test_extremes_are_extremes(f):
    x = np.random.default_rng(0).uniform(-1, 1, (50_000, f.dimension))
    near = np.clip(f.best + 1e-3 * np.random.default_rng(1).standard_normal((5000, f.dimension)), -1, 1)
    values = np.concatenate([f(x), f(near)])
    assert f(f.best[None])[0] == f.highest
    assert f.lowest - 1e-9 <= values.min()
    assert values.max() <= f.highest + 1e-12
    assert f(x.reshape(100, 500, -1)).shape == (100, 500)


def test_values_that_are_known():
    assert camelback().highest == pytest.approx(1.0316284534898774 / 5, abs=1e-12)
    assert styblinski_tang(1)(np.array([0.0])) == 0.0
    assert styblinski_tang(4).best == pytest.approx(np.full(4, -2.903534027771177 / 4), abs=1e-8)
    # z = 1 in each of two coordinates: (1 - 16 + 5)/2 over -39.16617
    assert styblinski_tang(2)(np.array([0.25, 0.25])) == pytest.approx(5 / 39.16616570377142)
    ten = michalewicz(10, is_squared=True)
    z = (ten.best + 1) * np.pi / 2
    assert -sum(np.sin(z[i]) * np.sin((i + 1) * z[i] ** 2 / np.pi) ** 20 for i in range(10)) == pytest.approx(
        -9.6601517, abs=1e-6
    )


@pytest.mark.parametrize("f", [styblinski_tang(4), michalewicz(4)], ids=lambda f: f.name)
def test_sums_over_coordinates_are_sums(f):
    """Which an additive kernel can learn: f(x, y) - f(x, y') does not depend on the other coordinates."""
    x = np.random.default_rng(2).uniform(-1, 1, (2, 4))
    mixed = x.copy()
    mixed[:, 2] = x[::-1, 2]
    assert f(mixed).sum() == pytest.approx(f(x).sum(), rel=1e-12)
    assert f.is_additive
    assert not camelback().is_additive


def test_a_decision_set_holds_the_best_point_once():
    f = camelback()
    pool = decision_set(f, 50, seed(0))
    values = f(pool.points)
    assert pool.points.shape == (1, 50, 2)
    assert values.max() == f.highest
    assert (values == f.highest).sum() == 1
    assert len({int(f(decision_set(f, 50, seed(n)).points).argmax()) for n in range(20)}) > 5


# --- pools ---------------------------------------------------------------------------------------------------------------


def test_a_product_pool_pairs_every_context_with_every_action():
    pool = product_pool(6, 9, (2, 1), seed(1))
    c, x = pool.points[:, :, :2], pool.points[:, :, 2:]
    assert pool.points.shape == (6, 9, 3)
    assert (c == c[:, :1]).all()
    assert (x == x[:1]).all()
    assert np.linalg.norm(pool.points, axis=2).max() <= 1
    assert pool.law.tolist() == pytest.approx([1 / 6] * 6)


def test_contexts_that_are_never_drawn_are_the_outermost():
    pool, all_drawn = (product_pool(6, 3, (1, 1), seed(1), unseen) for unseen in (2, 0))
    np.testing.assert_array_equal(pool.points, all_drawn.points)
    assert sorted(pool.law.tolist()) == pytest.approx([0, 0, 0.25, 0.25, 0.25, 0.25])
    assert pool.points[pool.law == 0, 0, 0].min() > pool.points[pool.law > 0, 0, 0].max()
    with pytest.raises(ValueError, match="unseen must be 0 to 5, fewer than there are contexts, got 6"):
        product_pool(6, 3, (1, 1), seed(1), 6)


POOL = Pool(np.random.default_rng(0).uniform(-1, 1, (3, 4, 2)), np.array([0.6, 0.4, 0.0]))
VALUES = np.random.default_rng(1).uniform(-0.9, 0.9, (3, 4))


@pytest.mark.parametrize(("law", "noise"), [("two-point", 0.0), ("gaussian", 0.3), ("gaussian", 0.0)])
def test_rewards_have_the_function_s_values_as_means(law, noise):
    span = SYMMETRIC if law == "two-point" else Interval(-3.0, 3.0)
    env = PooledFunction(POOL, VALUES, 10, seed(0), span, law=law, noise=noise)
    assert isinstance(env, ContextualStream)
    n = 40_000
    x = env.contexts(users(n))
    which = POOL.index_of(x)
    assert np.bincount(which, minlength=3) / n == pytest.approx(POOL.law, abs=0.02)
    assert np.array_equal(env.mean_rewards(users(n), x), VALUES[which])
    assert np.array_equal(env.mean_rewards(users(5), x[:5].copy()), VALUES[which[:5]])
    actions = np.arange(n) % 4
    rewards = env.respond(users(n), np.ones(n, dtype=np.int64), actions)
    assert span.low <= rewards.min()
    assert rewards.max() <= span.high
    deviation = noise if law == "gaussian" else 1.0
    for c in range(2):
        for a in range(4):
            told = rewards[(which == c) & (actions == a)]
            assert told.mean() == pytest.approx(VALUES[c, a], abs=5 * deviation / math.sqrt(len(told)) + 1e-12)
    if law == "two-point":
        assert set(np.unique(rewards)) == {-1.0, 1.0}
    assert env.clipping_bias < 1e-9
    assert env.respond(users(n), np.zeros(n, dtype=np.int64), actions).tolist() == [0.0] * n


def test_each_replicate_may_have_values_of_its_own():
    """Replicate r is answered by table r, and 0.5 and -0.5 are told apart by 2000 rewards at 20 deviations."""
    tables = np.stack([np.full((3, 4), 0.5), np.full((3, 4), -0.5)])
    tables[:, :, 0] *= -1
    env = PooledFunction(POOL, tables, 2000, seed(0), SYMMETRIC, law="two-point")
    total = np.zeros(2)
    for user in range(2000):
        x = env.contexts(users(2, user))
        assert env.mean_rewards(users(2, user), x).tolist() == [[-0.5, 0.5, 0.5, 0.5], [0.5, -0.5, -0.5, -0.5]]
        total += env.respond(users(2, user), np.ones(2, dtype=np.int64), users(2, 1))
    assert total / 2000 == pytest.approx([0.5, -0.5], abs=0.1)
    assert env.action_gaps == pytest.approx(np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]]))
    with pytest.raises(ValueError, match="there are 2 functions, one for each replicate; got 3"):
        env.contexts(users(3))


def test_a_fixed_decision_set_is_shared_without_a_copy():
    """By all replicates and all rounds; and a feature map computes its features once."""
    pool = decision_set(camelback(), 30, seed(0))
    env = PooledFunction(pool, camelback()(pool.points), 10, seed(0), Interval(-1.4, 0.5))
    first, second = env.contexts(users(1000)), env.contexts(users(1000, 1))
    assert first.shape == (1000, 30, 2)
    assert first.strides[0] == 0
    assert np.shares_memory(first, second)
    assert not first.flags.writeable
    phi = feature_map(SquaredExponential(0.2), 2, 100)
    assert np.shares_memory(phi(first), phi(second))
    assert env.mean_rewards(users(1000), second).shape == (1000, 30)


@given(v=st.floats(-1, 1), noise=st.floats(0.01, 2.0), low=st.floats(-2.0, -1.0), high=st.floats(1.0, 2.0))
def test_the_bias_of_clipping_is_the_integral(v, noise, low, high):
    z = np.linspace(-9, 9, 40_001)
    weight = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    expected = abs(float((np.clip(v + noise * z, low, high) * weight).sum()) - v)
    assert clipping_bias(np.array([v]), noise, Interval(low, high)) == pytest.approx(expected, abs=1e-7)


def test_clipping_is_done_and_its_bias_said():
    pool = Pool(np.array([[[0.0], [1.0]]]), np.ones(1))
    env = PooledFunction(pool, [[0.0, 1.0]], 10, seed(0), UNIT, noise=0.5)
    env.contexts(users(100_000))
    rewards = env.respond(users(100_000), np.ones(100_000, dtype=np.int64), np.ones(100_000, dtype=np.int64))
    assert rewards.max() == 1.0
    assert env.clipping_bias == pytest.approx(1 - rewards.mean(), abs=5 * 0.3 / math.sqrt(1e5))
    assert env.clipping_bias > 0.15


# --- real patients --------------------------------------------------------------------------------------------------------


def test_the_diabetes_table_shows_patients():
    table = diabetes_table(seed(0), 60, 8)
    assert table.features.shape == (60, 8, 10)
    assert table.context_dimension == 10
    assert np.linalg.norm(table.features, axis=2).max() <= 1
    assert table.rewards.min() >= 0
    assert table.rewards.max() <= 1
    flat = table.features.reshape(-1, 10)
    told = {}
    for point, reward in zip(flat.tolist(), table.rewards.ravel().tolist(), strict=True):
        assert told.setdefault(tuple(point), reward) == reward  # a patient has one answer
    assert 200 < len(told) <= 442
    assert all(len({tuple(row) for row in shown.tolist()}) == 8 for shown in table.features)
    assert np.array_equal(diabetes_table(seed(0), 30, 8).features, table.features[:30])


def test_the_usual_kernel_of_the_diabetes_data_explains_them():
    """Ridge regression on 80 additive features: about half of the variance of patients that were not seen."""
    table = diabetes_table(seed(1), 1, 442)
    x, y = table.features[0], table.rewards[0]
    phi = feature_map(Additive.of_coordinates(SquaredExponential(0.8), 10), 10, 80)(x)
    seen, rest = slice(0, 300), slice(300, 442)
    weights = np.linalg.solve(phi[seen].T @ phi[seen] + 0.1 * np.eye(80), phi[seen].T @ (y[seen] - y[seen].mean()))
    error = y[rest] - y[seen].mean() - phi[rest] @ weights
    assert (error**2).sum() < 0.65 * ((y[rest] - y[rest].mean()) ** 2).sum()


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: random_function(PAPER, np.zeros(3), seed(0)), r"centers must be of shape \(n, d\)"),
        (lambda: random_function(PAPER, np.zeros((1, 2)), seed(0), -1.0), "norm must be .* got -1.0"),
        (lambda: GapFunctions(PAPER, 2, 1, 10, seed(0)), "n_actions must be .* at least 2, got 1"),
        (lambda: GapFunctions(PAPER, 2, 5, 0, seed(0)), "n_users must be .* got 0"),
        (lambda: GapFunctions(PAPER, 2, 5, 10, seed(0)).clipped(Interval(0.0, 0.5)), "declare a reward range that holds it"),
        (lambda: GapFunctions(PAPER, 2, 5, 10, seed(0)).respond(users(1), ONE, users(1)), "asked alone, after the contexts"),
        (lambda: PooledFunction(POOL, VALUES[:2], 5, seed(0), SYMMETRIC), r"values must be of shape \(3, 4\)"),
        (lambda: PooledFunction(POOL, VALUES, 5, seed(0), UNIT), "in the reward range .* widen it"),
        (lambda: PooledFunction(POOL, np.full((3, 4), np.nan), 5, seed(0), UNIT), "must be finite and in the reward range"),
        (
            lambda: PooledFunction(POOL, VALUES, 5, seed(0), SYMMETRIC, law="cauchy"),
            "law must be one of two-point, gaussian",
        ),
        (lambda: PooledFunction(POOL, VALUES, 5, seed(0), SYMMETRIC, noise=-1.0), "noise must be .* got -1.0"),
        (lambda: PooledFunction(POOL, VALUES, 5, seed(0), SYMMETRIC).clipped(UNIT), "declare a reward range that holds it"),
        (lambda: PooledFunction(POOL, VALUES, 5, seed(0), SYMMETRIC).respond(users(1), ONE, users(1)), "asked alone"),
        (lambda: styblinski_tang(0), "dimension must be .* got 0"),
        (lambda: diabetes_table(seed(0), 5, 443), "there are 442 patients; n_actions must be 2 to 442, got 443"),
        (lambda: diabetes_table(seed(0), 0), "n_users must be .* got 0"),
    ],
)
def test_what_does_not_fit_is_refused(build, told):
    with pytest.raises(ValueError, match=told):
        build()


def test_a_kernel_whose_functions_have_no_gap_is_said(monkeypatch):
    from bandana.algorithms.environments import kernel_functions

    monkeypatch.setattr(kernel_functions, "_MOST_TRIES", 2)
    with pytest.raises(ValueError, match="change the lengthscale or lower the dimension"):
        _draw_gap_function(SquaredExponential(0.01), 2, np.random.default_rng(0))


def test_a_kernel_function_is_what_its_parts_say():
    f = KernelFunction(PAPER, np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([1.0, -0.5]))
    assert f(np.array([0.0, 0.0])) == pytest.approx(1 - 0.5 * math.exp(-2))
    assert f.norm == pytest.approx(math.sqrt(1 + 0.25 - math.exp(-2)))


@pytest.mark.parametrize("end", [-1.0, 1.0])
def test_what_rounding_takes_out_of_the_range_is_put_back(end):
    """A billionth of the range, the end of that room included, and no more."""
    values = VALUES.copy()
    values[0, 0] = end + math.copysign(1e-9 * SYMMETRIC.width, end)
    assert PooledFunction(POOL, values, 10, seed(0), SYMMETRIC).values[0, 0] == end
    values[0, 0] = end + math.copysign(1.1e-9 * SYMMETRIC.width, end)
    with pytest.raises(ValueError, match="widen it"):
        PooledFunction(POOL, values, 10, seed(0), SYMMETRIC)
