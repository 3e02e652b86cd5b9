"""Each kernel beside its NumPy reference, on random states."""

from __future__ import annotations

import kernel_references
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandana.algorithms.bandits.finite_arm import batches_numba, episodes_numba
from bandana.algorithms.environments.answers_numba import bernoulli_answers, span_sums

seeds = st.integers(0, 10**6)


@pytest.mark.parametrize("combines", [False, True])
@given(seed=seeds, n_reps=st.integers(1, 30), n_arms=st.integers(2, 5))
def test_estimate(combines, seed, n_reps, n_arms):
    rng = np.random.default_rng(seed)
    width, noise_variance, share = rng.uniform(0.5, 3.0), rng.uniform(0.0, 10.0), rng.choice([0.5, 1.0])
    mean = rng.normal(size=(n_reps, n_arms))
    deviation = rng.uniform(0.1, 2.0, (n_reps, n_arms))
    deviation[rng.random((n_reps, n_arms)) < 0.4] = np.inf
    arm = rng.integers(0, n_arms, n_reps)
    reps = np.flatnonzero(rng.random(n_reps) < 0.6)
    n = rng.integers(1, 100, len(reps))
    noisy_sum = rng.normal(size=len(reps)) * n
    expected = mean.copy(), deviation.copy()
    cell = (reps, arm[reps])
    variance = width**2 / (4 * share * n) + noise_variance / n**2
    expected[0][cell], expected[1][cell] = kernel_references.estimate_reference(
        mean[cell], deviation[cell], noisy_sum / n, variance, combines
    )
    episodes_numba.estimate(mean, deviation, reps, arm[reps], noisy_sum, n, share, noise_variance, width, combines)
    for found, wanted in zip((mean, deviation), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@given(seed=seeds, doubling=st.booleans())
def test_episodes(seed, doubling):
    """One step at a time in plain Python."""
    rng = np.random.default_rng(seed)
    n_reps, n_arms = 12, 3
    pulls = rng.integers(0, 5, (n_reps, n_arms))
    left = rng.integers(0, 2, n_reps) * rng.integers(1, 5, n_reps)
    arm, clock = rng.integers(0, n_arms, n_reps), rng.integers(0, 99, n_reps)
    actions = np.where(left > 0, arm, rng.integers(0, n_arms, n_reps))
    lengths = np.empty(n_reps, dtype=np.int64)
    batches_numba.batch_lengths(pulls, left, actions, float(doubling), lengths)
    whole = [int(left[r]) or (max(int(pulls[r, actions[r]]), 1) if doubling else 1) for r in range(n_reps)]
    assert lengths.tolist() == whole
    n = np.minimum(lengths, rng.integers(0, 6, n_reps))
    before = [array.copy() for array in (pulls, arm, left, clock)]
    ended = np.full(n_reps, -1)
    n_ended = batches_numba.advance(pulls, arm, left, clock, actions, n, float(doubling), ended)
    done = []
    for r in range(n_reps):
        if n[r] == 0:
            assert (arm[r], left[r], clock[r]) == (before[1][r], before[2][r], before[3][r])
            assert (pulls[r] == before[0][r]).all()
            continue
        assert arm[r] == actions[r]
        assert left[r] == whole[r] - n[r]
        assert clock[r] == before[3][r] + n[r]
        assert (pulls[r] - before[0][r]).tolist() == [n[r] * (a == actions[r]) for a in range(n_arms)]
        if left[r] == 0:
            done.append(r)
    assert ended[:n_ended].tolist() == done


@given(seeds)
def test_span_sums(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(-5, 6, (20, 3))
    prefix = np.concatenate([np.zeros((1, 3), dtype=np.int64), np.cumsum(table, axis=0)])
    user = rng.integers(0, 20, 9)
    n = np.minimum(rng.integers(0, 20, 9), 20 - user)
    actions = rng.integers(0, 3, 9)
    out = np.empty(9)
    span_sums(prefix, 0.25, user, n, actions, out)
    expected = [table[u : u + k, a].sum() * 0.25 for u, k, a in zip(user, n, actions, strict=True)]
    assert out.tolist() == expected


@given(seeds)
def test_bernoulli_answers(seed):
    rng = np.random.default_rng(seed)
    uniform, means, actions, n = rng.random(9), rng.random(3), rng.integers(0, 3, 9), rng.integers(0, 2, 9)
    out = np.empty(9)
    bernoulli_answers(uniform, means, n, actions, out)
    assert np.array_equal(out, ((uniform < means[actions]) & (n > 0)).astype(float))
