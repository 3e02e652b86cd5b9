"""Yes-or-no answers to vectors: their probabilities, what uniform play loses, and which contexts stay."""

from __future__ import annotations

import numpy as np
import pytest
from nightly import first

from bandana.algorithms.environments.sphere import LogisticLink, SphereContexts
from bandana.privacy_core import Interval


def environment(n_users=10, seed=1, theta=(1.5, -2.0), **more):
    return SphereContexts(theta, 4, n_users, np.random.SeedSequence(seed), LogisticLink(), **more)


@pytest.mark.parametrize("n", first(1, [40_000, 200_000]))
def test_answers_have_the_probabilities_that_regret_is_counted_with(n):
    """Answers to an arm of random contexts: within 5 standard errors of their mean, false alarm 6e-7."""
    env = environment()
    user, ones = np.zeros(n, dtype=int), np.ones(n, dtype=int)
    contexts = env.contexts(user)
    assert np.linalg.norm(contexts, axis=2) == pytest.approx(1.0)
    means = env.mean_rewards(user, contexts)
    by_hand = 1 / (1 + np.exp(-(1.5 * contexts[..., 0] - 2 * contexts[..., 1])))
    assert means == pytest.approx(by_hand)
    answers = env.respond(user, ones, np.full(n, 2))
    assert set(np.unique(answers)) == {0.0, 1.0}
    p = means[:, 2]
    assert abs((answers - p).sum()) < 5 * np.sqrt((p * (1 - p)).sum())
    weighted = ((answers - p) * (p - 0.5)).sum()
    assert abs(weighted) < 5 * np.sqrt((p * (1 - p) * (p - 0.5) ** 2).sum()), "and at each probability"


@pytest.mark.parametrize("theta", [(3.0,), (1.5, -2.0), (1.0, 1.0, 1.0, 1.0, 2.0)])
def test_what_uniform_play_loses_by_simulation(theta):
    """50,000 users: within 5 standard errors, false alarm 6e-7."""
    env, user = environment(theta=theta), np.zeros(50_000, dtype=int)
    means = env.mean_rewards(user, env.contexts(user))
    gaps = means.max(axis=1) - means.mean(axis=1)
    assert env.uniform_gaps(3).shape == (3,)
    assert abs(gaps.mean() - env.uniform_gaps(1)[0]) < 5 * gaps.std() / np.sqrt(len(gaps))


def test_fixed_contexts_stay_and_each_replicate_has_its_own():
    env, user = environment(is_fixed=True), np.zeros(3, dtype=int)
    first = env.contexts(user).copy()
    assert np.array_equal(env.contexts(user + 1), first)
    assert not np.array_equal(first[0], first[1])
    means = env.mean_rewards(user, first)
    assert env.uniform_gaps(3) == pytest.approx(means.max(axis=1) - means.mean(axis=1))
    fresh = environment()
    assert not np.array_equal(fresh.contexts(user).copy(), fresh.contexts(user))


def test_a_replicate_that_is_done_answers_0():
    env = environment(theta=(30.0, 0.0))
    env.contexts(np.zeros(2, dtype=int))
    assert env.respond(np.zeros(2, dtype=int), np.zeros(2, dtype=int), np.zeros(2, dtype=int)).tolist() == [0.0, 0.0]


def test_refusals():
    with pytest.raises(ValueError, match="theta must be a vector"):
        environment(theta=(float("nan"), 1.0))
    with pytest.raises(ValueError, match="asked alone"):
        environment().respond(np.zeros(1, dtype=int), np.ones(1, dtype=int), np.zeros(1, dtype=int))
    with pytest.raises(ValueError, match="Bernoulli rewards lie in"):
        environment().clipped(Interval(0.2, 0.8))
