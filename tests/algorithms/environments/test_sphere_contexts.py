"""Contexts drawn from the sphere, and the assumption on contexts that no law meets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.algorithms.environments import contexts
from bandana.algorithms.environments.contexts import check_assumption_2, uniform_sphere_law
from bandana.algorithms.environments.sphere import LinearLink, SphereContexts
from bandana.algorithms.environments.tables import sphere_table
from bandana.privacy_core import Interval

SYMMETRIC, UNIT = Interval(-1.0, 1.0), Interval(0.0, 1.0)


def draw(dimension, n_actions, n_reps, seed=0):
    env = SphereContexts(np.eye(dimension)[0], n_actions, 10, np.random.SeedSequence(seed))
    return env.contexts(np.zeros(n_reps, dtype=np.int64))


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_law_of_the_sphere(dimension):
    drawn = draw(dimension, 10, 20_000)
    assert np.allclose(np.linalg.norm(drawn, axis=2), 1.0)
    exact, found = uniform_sphere_law(dimension, 10), check_assumption_2(drawn)
    assert exact.least_eigenvalue == 1 / dimension
    assert exact.variance == pytest.approx(2 * (dimension - 1) / (dimension**2 * (dimension + 2)))
    # 200000 vectors: relative errors of a few in a thousand; 5 % is beyond ten deviations.
    assert found.least_eigenvalue == pytest.approx(exact.least_eigenvalue, rel=0.05)
    assert found.variance == pytest.approx(exact.variance, rel=0.05, abs=1e-12)
    assert found.is_unit
    assert exact.holds == found.holds == (dimension == 1)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_moments_that_are_summed_once_are_those_of_all_vectors(dimension, monkeypatch):
    features = np.random.default_rng(dimension).standard_normal((900, 7, dimension))
    features /= np.linalg.norm(features, axis=2, keepdims=True)
    features[:300] = features[0, 0]
    directions, flat = np.random.default_rng(1).standard_normal((4, dimension)), features.reshape(-1, dimension)
    assert contexts._fourth_moments(flat)(directions) == pytest.approx(
        np.einsum("nk,nd->kd", (flat @ directions.T) ** 3, flat) / len(flat), rel=1e-10, abs=1e-12
    )
    summed = check_assumption_2(features)
    monkeypatch.setattr(contexts, "_FEW_DIMENSIONS", 0)
    assert summed.variance == pytest.approx(check_assumption_2(features).variance, rel=1e-9, abs=1e-12)


def test_what_the_check_says():
    law = uniform_sphere_law(5, 10)
    assert law.variance_limit == pytest.approx(0.04 / (8 * math.log(40)))
    assert str(law) == ("Assumption 2 does not hold: least eigenvalue 0.2, variance 0.04571, at most 0.001355 allowed")
    assert "not of norm 1" in str(check_assumption_2(np.full((3, 2, 1), 0.5)))


@settings(max_examples=60)
@given(st.integers(2, 4), st.integers(2, 9), st.integers(0, 10**6), st.floats(0.0, 20.0))
def test_no_law_of_unit_vectors_meets_the_assumption(dimension, n_support, seed, pull):
    """The proof in the module, on laws of few vectors, also such as lie close to each other or to a frame."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((1, n_support, dimension)) + pull * np.eye(dimension)[rng.integers(0, dimension)]
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    law = check_assumption_2(vectors)
    assert not law.holds
    least, variance = law.least_eigenvalue, law.variance
    assert least * (1 - least) <= dimension * variance * (1 + 1e-6) + 1e-12, "the inequality of the proof"


def test_the_ascent_begins_at_the_directions_of_the_proof(monkeypatch):
    """So that what it finds obeys the inequality whatever its random starts are: before the first step, by hand."""
    monkeypatch.setattr(contexts, "_STARTS", 0)
    monkeypatch.setattr(contexts, "_STEPS", 1)
    n_apart = 0
    for seed in range(60):
        flat = np.random.default_rng(seed).standard_normal((5, 3)) + 1.0
        flat /= np.linalg.norm(flat, axis=1, keepdims=True)
        v, *others = np.linalg.eigh(flat.T @ flat)[1].T
        sides = [(v + sign * u) / math.sqrt(2) for sign in (1, -1) for u in others]
        largest = [float(np.var((flat @ z) ** 2)) for z in (v, *others, *sides)]
        assert check_assumption_2(flat[None]).variance == pytest.approx(max(largest), rel=1e-9)
        n_apart += np.argmax(largest) >= 3
    assert n_apart > 20, "a sum or a difference decides"


def test_rewards_follow_the_linear_model():
    theta = np.array([0.3, -0.2, 0.1])
    n_reps = 50_000
    for noise in ("two-point", "uniform"):
        env = SphereContexts(theta, 4, 5, np.random.SeedSequence(1), LinearLink(UNIT, noise))
        user = np.zeros(n_reps, dtype=np.int64)
        x = env.contexts(user)
        actions = np.argmax(x @ theta, axis=1)
        answers = env.respond(user, user + 1, actions)
        means = env.mean_rewards(user, x)[np.arange(n_reps), actions]
        assert means == pytest.approx(0.5 + (x @ theta)[np.arange(n_reps), actions])
        # Residuals of deviation at most 1/2: six deviations.
        assert abs((answers - means).mean()) < 6 * 0.5 / math.sqrt(n_reps)
        assert answers.min() >= 0
        assert answers.max() <= 1
        assert (env.respond(user, user, actions) == 0).all()


def test_fixed_actions_are_those_of_the_replicate():
    theta, users = np.array([0.6, -0.3]), np.zeros(500, dtype=np.int64)
    env = SphereContexts(theta, 4, 5, np.random.SeedSequence(1), is_fixed=True)
    first = env.contexts(users).copy()
    assert np.allclose(np.linalg.norm(first, axis=2), 1.0)
    assert len(np.unique(first[:, 0, 0])) == 500, "each replicate has its own"
    answers = env.respond(users, users + 1, users)
    assert np.array_equal(env.contexts(users + 1), first)
    assert set(answers.tolist()) == {-1.0, 1.0}
    fresh = SphereContexts(theta, 4, 5, np.random.SeedSequence(1))
    assert np.array_equal(fresh.contexts(users), first), "they are drawn as fresh ones are"
    gaps = SphereContexts(theta, 4, 5, np.random.SeedSequence(1), is_fixed=True).uniform_gaps(500)
    assert gaps == pytest.approx((first @ theta).max(axis=1) - (first @ theta).mean(axis=1))
    assert gaps.mean() == pytest.approx(fresh.uniform_gap, rel=0.1), "on average they cost what fresh ones do"


@pytest.mark.parametrize("n", [2, 3, 10])
def test_what_uniform_play_loses_in_closed_form(n):
    """In three dimensions a product is uniform (Archimedes), the largest of n is (n - 1) / (n + 1); in one it is a coin."""
    for theta, expected in (([0.0, 0.5, 0.0], 0.5 * (n - 1) / (n + 1)), ([0.5], 0.5 * (1 - 2.0 ** (1 - n)))):
        assert SphereContexts(theta, n, 5, np.random.SeedSequence(1)).uniform_gap == pytest.approx(expected)


def test_bent_means_rise_and_fall():
    """Rewards in [0, 1], bend 2: a mean is 1/2 + m - 4 m^2, 0 at m = -1/4 and largest at m = 1/8. 50,000 replicates."""
    theta, n = np.array([0.15, 0.2]), 50_000
    link = LinearLink(UNIT, bend=2.0)
    assert (0.5 + link.shape(np.array([-0.25, 0.125, 0.25]))).tolist() == [0.0, 0.5625, 0.5]
    env, user = SphereContexts(theta, 2, 5, np.random.SeedSequence(1), link, is_fixed=True), np.zeros(n, dtype=np.int64)
    x = env.contexts(user)
    means, products = env.mean_rewards(user, x), x @ theta
    assert means == pytest.approx(0.5 + products - 4 * products**2, abs=1e-12)
    assert env.uniform_gaps(n) == pytest.approx(np.abs(means[:, 0] - means[:, 1]) / 2)
    residuals = env.respond(user, user + 1, user) - means[:, 0]
    for weights in (np.ones(n), products[:, 0], products[:, 0] ** 2):  # six deviations: false alarm 2e-9
        assert abs((weights * residuals).sum()) < 6 * math.sqrt((weights**2 * means[:, 0] * (1 - means[:, 0])).sum())
    fit = (products[:, 0] * (means[:, 0] - 0.5)).sum() / (products[:, 0] ** 2).sum()
    assert fit == pytest.approx(1.0, abs=0.05), "least squares finds theta all the same"
    with pytest.raises(ValueError, match="bend is for actions that are fixed"):
        SphereContexts(theta, 2, 5, np.random.SeedSequence(1), link)
    with pytest.raises(ValueError, match=r"theta has norm 0\.26; .* at most 0\.25"):
        SphereContexts([0.26], 2, 5, np.random.SeedSequence(1), link, is_fixed=True)
    with pytest.raises(ValueError, match="bend must be a finite number of at least 0, got -1"):
        LinearLink(bend=-1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"theta": [1.0, 0.5]}, "theta has norm 1.11803; .* at most 1"),
        ({"theta": [0.6], "link": LinearLink(UNIT)}, "at most 0.5"),
        ({"theta": [np.nan]}, "finite numbers"),
        ({"n_actions": 1}, "n_actions must be a whole number of at least 2"),
        ({"n_users": 0}, "n_users must be a whole number of at least 1"),
    ],
)
def test_refusals(arguments, message):
    given_ = {"theta": [1.0], "n_actions": 2, "n_users": 3, "seed": np.random.SeedSequence(0)} | arguments
    with pytest.raises(ValueError, match=message):
        SphereContexts(**given_)
    with pytest.raises(ValueError, match="'two-point' or 'uniform', got 'normal'"):
        LinearLink(noise="normal")


def test_the_table_for_audits():
    table = sphere_table(40, 3, 2, UNIT, np.random.SeedSequence(0))
    assert table.features.shape == (40, 3, 2)
    assert np.allclose(np.linalg.norm(table.features, axis=2), 1.0)
    assert np.unique(table.rewards).tolist() == [0.0, 1.0]
    again = sphere_table(40, 3, 2, UNIT, np.random.SeedSequence(0))
    assert np.array_equal(again.features, table.features)


def test_what_may_not_be_asked():
    env = SphereContexts([1.0], 2, 3, np.random.SeedSequence(0))
    ones = np.ones(2, dtype=np.int64)
    with pytest.raises(ValueError, match="after the contexts"):
        env.respond(0 * ones, ones, 0 * ones)
    env.contexts(0 * ones)
    with pytest.raises(ValueError, match="asked alone"):
        env.respond(0 * ones, 2 * ones, 0 * ones)
    assert env.clipped(Interval(-2.0, 1.0)) is env
    with pytest.raises(ValueError, match="declare a reward range that holds it"):
        env.clipped(UNIT)
