"""An environment with linear means; each statistical test says how often it fails by chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bandana.algorithms.environments.linear import LinearArms, fan_arms, random_arms
from bandana.privacy_core import Interval

FEATURES = [[1.0, 0.0], [0.0, 1.0], [0.6, -0.8]]
THETA = [0.5, -0.4]
RANGES = [Interval(0.0, 1.0), Interval(-1.0, 1.0), Interval(2.0, 5.0)]
kinds = pytest.mark.parametrize("rewards", ["bernoulli", "uniform"])


def arms(rewards="bernoulli", reward_range=None, seed=0):
    return LinearArms(FEATURES, THETA, 10**6, np.random.SeedSequence(seed), rewards=rewards, reward_range=reward_range)


@pytest.mark.parametrize("reward_range", RANGES, ids=str)
def test_means_are_linear(reward_range):
    values = np.array([0.5, -0.4, 0.62])
    middle = (reward_range.low + reward_range.high) / 2
    assert arms(reward_range=reward_range).means == pytest.approx(middle + reward_range.width / 2 * values)
    assert arms().means == pytest.approx([0.75, 0.3, 0.81])


@kinds
@pytest.mark.parametrize("n_records", [1, 2, 700])
@pytest.mark.parametrize("reward_range", RANGES, ids=str)
def test_mean_variance_and_range_of_a_phase(rewards, n_records, reward_range):
    n_reps = 20_000
    environment = arms(rewards, reward_range)
    for action in range(3):
        ask = np.zeros(n_reps, dtype=int), np.full(n_reps, n_records), np.full(n_reps, action)
        drawn = environment.respond(*ask)
        mean, width = environment.means[action], reward_range.width
        assert drawn.min() >= n_records * reward_range.low - 1e-9 * n_records
        assert drawn.max() <= n_records * reward_range.high + 1e-9 * n_records
        p = (mean - reward_range.low) / width
        # A uniform point on 2^16 places of [-h, h] has variance h^2 (1 + 2 / (2^16 - 1)) / 3; h = (width / 2) (1 - 0.62).
        variance = width**2 * p * (1 - p) if rewards == "bernoulli" else (width * 0.19) ** 2 * (1 + 2 / 65535) / 3
        deviation = math.sqrt(n_records * variance)
        # 8 standard errors: false alarm 1e-15. The fourth moment is at most 4 / p (1 - p) < 20 squared variances.
        assert abs(drawn.mean() - n_records * mean) < 8 * deviation / n_reps**0.5
        assert abs(drawn.var() / deviation**2 - 1) < 8 * (20 / n_reps) ** 0.5


@kinds
def test_one_draw_of_many_rounds_has_the_law_of_many_draws(rewards):
    """Third moments of 40 rounds at once and one by one; 8 standard errors, false alarm 1e-15."""
    n_reps, n = 40_000, 40
    at_once = arms(rewards, seed=1).respond(np.zeros(n_reps, dtype=int), np.full(n_reps, n), np.full(n_reps, 2))
    single = arms(rewards, seed=2)
    ones = np.ones(n_reps, dtype=int)
    one_by_one = sum(single.respond(0 * ones, ones, 2 * ones) for _ in range(n))
    for power in (1, 2, 3):
        a, b = ((x - n * single.means[2]) ** power for x in (at_once, one_by_one))
        assert abs(a.mean() - b.mean()) < 8 * math.sqrt((a.var() + b.var()) / n_reps)


@kinds
@pytest.mark.parametrize("n_records", [[0, 1, 1, 0], [0, 3, 5, 0]])
def test_who_is_done_is_answered_zero(rewards, n_records):
    environment = arms(rewards, Interval(2.0, 5.0))
    found = environment.respond(np.zeros(4, dtype=int), np.array(n_records), np.array([0, 0, 1, 0]))
    assert found[[0, 3]].tolist() == [0.0, 0.0]
    assert (found[1:3] >= 2.0 * np.array(n_records)[1:3]).all()


@kinds
def test_the_seed_decides(rewards):
    ask = np.zeros(100, dtype=int), np.full(100, 50), np.ones(100, dtype=int)
    assert np.array_equal(arms(rewards, seed=1).respond(*ask), arms(rewards, seed=1).respond(*ask))
    assert not np.array_equal(arms(rewards, seed=1).respond(*ask), arms(rewards, seed=2).respond(*ask))


def test_the_declared_range_must_hold_the_rewards():
    environment = arms()
    assert environment.clipped(Interval(-1.0, 1.0)) is environment
    with pytest.raises(ValueError, match=r"rewards lie in \[0, 1\].*not \[0, 0.9\]"):
        environment.clipped(Interval(0.0, 0.9))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_mean_that_rounding_put_beyond_the_range_is_its_end(sign):
    """Parameters that were scaled to norm 1 may have a product of 1 + 1e-16 with an arm, which is no chance."""
    env = LinearArms([[sign, 0.0], [0.0, 1.0]], [1.0 + 5e-10, 0.0], 10, np.random.SeedSequence(1))
    assert env.means.tolist() == [(1 + sign) / 2, 0.5]
    ones = np.ones(3, dtype=np.int64)
    assert env.respond(0 * ones, 4 * ones, 0 * ones).tolist() == [4 * (1 + sign) / 2] * 3


def test_random_arms():
    drawn = random_arms(200, 3, np.random.SeedSequence(0))
    assert np.linalg.norm(drawn, axis=1) == pytest.approx(np.ones(200))
    # Each coordinate has variance 1/3 of 200 draws: 8 standard errors.
    assert np.abs(drawn.mean(axis=0)).max() < 8 * math.sqrt(1 / 600)


def test_fan_arms():
    assert fan_arms(2) == pytest.approx(np.eye(2))
    square = fan_arms(5).T @ fan_arms(5) / 5
    assert square == pytest.approx(np.eye(2) / 2), "the uniform design has leverage 2 everywhere"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": [[1.0, 0.0]]}, r"n_actions >= 2, got \(1, 2\)"),
        ({"features": [1.0, 0.0]}, r"got \(2,\)"),
        ({"theta": [0.5]}, r"theta must be of shape \(2,\), as the features, got \(1,\)"),
        ({"features": [[1.0, float("nan")], [0.0, 1.0]]}, r"features must be finite, got nan at index \(0, 1\)"),
        ({"theta": [float("inf"), 0.0]}, r"theta must be finite, got inf at index \(0,\)"),
        ({"features": [[1.0, 0.0], [0.8, 0.8]]}, "arm 1 has 1.13"),
        ({"theta": [1.0, -1.2]}, r"<theta, a> must lie in \[-1, 1\]; arm 2 has 1.56"),
        ({"rewards": "normal"}, "must be 'bernoulli' or 'uniform', got 'normal'"),
        ({"n_users": 0}, "n_users must be at least 1, got 0"),
    ],
)
def test_refusals(change, message):
    arguments = {"features": FEATURES, "theta": THETA, "n_users": 10, "seed": np.random.SeedSequence(0)}
    with pytest.raises(ValueError, match=message):
        LinearArms(**{**arguments, **change})


def test_a_lone_replicate_draws_what_arrays_would():
    features = random_arms(4, 2, np.random.SeedSequence(1))
    alone = LinearArms(features, features[0] / 2, 10**6, np.random.SeedSequence(7))
    generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(7)))
    for i, n in enumerate((2, 7, 40, 1000, 123_456)):
        counts, actions = np.array([n]), np.array([i % 4])
        expected = generator.binomial(counts, alone.means[actions])
        assert np.array_equal(alone.respond(np.array([0]), counts, actions), expected)
