"""Each kernel of pure upper bounds beside its reference, and beside what can be said without one."""

from __future__ import annotations

import math

import kernel_references
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr

from bandana.algorithms.bandits.finite_arm import elimination_numba, indices_numba

seeds = st.integers(0, 10**6)


def states(seed, n_reps, n_arms, unpulled):
    rng = np.random.default_rng(seed)
    mean = rng.integers(-2, 7, (n_reps, n_arms)) / 4  # few distinct values, so that ties occur
    deviation = 0.5 / np.sqrt(2.0 ** rng.integers(0, 4, (n_reps, n_arms)))
    tail = rng.integers(0, 2, (n_reps, n_arms)) * 4 * deviation**2
    if unpulled:
        deviation[rng.random((n_reps, n_arms)) < 0.3] = np.inf
    arm = rng.integers(0, n_arms, n_reps)
    left = rng.integers(0, 2, n_reps) * rng.integers(0, 9, n_reps)
    clock = rng.integers(0, 5, n_reps) * 1000
    return mean, deviation, tail, arm, left, clock


@pytest.mark.parametrize("more", [0.0, math.log(2.0)])
@given(
    seed=seeds, n_reps=st.integers(1, 20), n_arms=st.integers(2, 6), beta=st.floats(0.1, 8.0), unpulled=st.booleans()
)  # fmt: skip
def test_optimistic_arms(more, seed, n_reps, n_arms, beta, unpulled):
    state = states(seed, n_reps, n_arms, unpulled)
    found = np.full(n_reps, -1)
    indices_numba.optimistic_arms(*state, beta, more, found)
    assert np.array_equal(found, kernel_references.optimistic_arms_reference(*state, beta, more))


def test_ties_go_to_the_lowest_arm_and_an_arm_without_a_sample_goes_first():
    out = np.empty(2, dtype=np.int64)
    zeros = np.zeros(2, dtype=np.int64)
    deviation = np.array([[1.0, 1.0, 1.0], [1.0, np.inf, np.inf]])
    indices_numba.optimistic_arms(np.zeros((2, 3)), deviation, np.zeros((2, 3)), zeros, zeros, zeros, 1.0, 0.0, out)
    assert out.tolist() == [0, 1]


@given(st.floats(-0.999, 0.999), st.floats(1e-3, 10.0))
def test_a_laplace_variable_is_sub_gamma(place, c):
    """log E exp(s L) <= v s^2 / (2 (1 - |s| c)) with v = 2 c^2, for |s| c < 1."""
    s = place / c
    assert -math.log1p(-((s * c) ** 2)) <= 2 * c**2 * s**2 / (2 * (1 - abs(s) * c)) * (1 + 1e-12)


@pytest.mark.parametrize("combines", [False, True])
def test_sub_gamma_estimate(combines):
    """Three episodes of one arm, by the sums that define them."""
    scale, width, lengths, sums = 1.5, 2.0, [1, 1, 2], [0.7, -0.4, 2.2]
    mean, deviation, tail = np.zeros((1, 2)), np.full((1, 2), np.inf), np.zeros((1, 2))
    one = np.zeros(1, dtype=np.int64)
    for n, total in zip(lengths, sums, strict=True):
        indices_numba.sub_gamma_estimate(
            mean, deviation, tail, one, one, np.array([total]), np.array([n]), scale, width, combines
        )
    v = [width**2 / (4 * n) + 2 * scale**2 / n**2 for n in lengths]
    weights = np.array([1 / x for x in v] if combines else [0, 0, 1])
    weights = weights / weights.sum()
    assert mean[0, 0] == pytest.approx(sum(w * x / n for w, x, n in zip(weights, sums, lengths, strict=True)), rel=1e-12)
    assert deviation[0, 0] ** 2 == pytest.approx(sum(w**2 * x for w, x in zip(weights, v, strict=True)), rel=1e-12)
    assert tail[0, 0] == pytest.approx(max(w * scale / n for w, n in zip(weights, lengths, strict=True)), rel=1e-12)
    assert np.isinf(deviation[0, 1])


@pytest.mark.parametrize("pools", [False, True])
@given(seeds, st.integers(1, 20), st.integers(2, 6), st.floats(0.1, 8.0), st.booleans(), st.sampled_from([1.0, 3.0]))
def test_kl_optimistic_arms(pools, seed, n_reps, n_arms, beta, unpulled, width):
    mean, deviation, tail, *rest = states(seed, n_reps, n_arms, unpulled)
    pulls = 2 ** np.random.default_rng(seed).integers(0, 4, mean.shape)
    state = (width * mean - 1, width * deviation, width * tail, pulls, *rest)
    found = np.full(n_reps, -1)
    indices_numba.kl_optimistic_arms(*state, beta, -1.0, width, pools, found)
    assert np.array_equal(found, kernel_references.kl_optimistic_arms_reference(*state, beta, -1.0, width, pools))


def test_pooled_estimate():
    """Episodes of 1, 1, 2 and 4 rewards are one mean of eight, with a fourth of the first's noise scale an eighth."""
    mean, deviation, tail = np.zeros((1, 2)), np.full((1, 2), np.inf), np.zeros((1, 2))
    one = np.zeros(1, dtype=np.int64)
    total = 0.0
    for n, value in ((1, 0.7), (1, -0.4), (2, 2.2), (4, 1.1)):
        indices_numba.pooled_estimate(mean, deviation, tail, one, one, np.array([value]), np.array([n]), 1.5, 2.0)
        total += value
    assert mean[0, 0] == pytest.approx(total / 8)
    assert deviation[0, 0] == pytest.approx(1 / math.sqrt(8))
    assert tail[0, 0] == pytest.approx(1.5 / 8)
    assert np.isinf(deviation[0, 1])
    assert indices_numba.episodes_noise(1, 3.0) == 3.0
    assert indices_numba.episodes_noise(2, 3.0) > 3.0


@given(st.floats(0.0, 1.0), st.floats(0.0, 60.0))
def test_largest_bernoulli_mean(p, budget):
    found = indices_numba.largest_bernoulli_mean(p, budget)
    assert p - 1e-15 <= found <= 1
    assert found == pytest.approx(
        kernel_references.largest_bernoulli_mean_reference(p, budget), abs=2e-8 if budget < 1e-12 else 1e-12
    )
    assert found <= p + math.sqrt(budget / 2) + 1e-15, "Pinsker"
    if p < found < 1 - 1e-9 and budget > 1e-9:
        assert float(rel_entr(p, found) + rel_entr(1 - p, 1 - found)) == pytest.approx(budget, rel=1e-5)


def test_largest_bernoulli_mean_where_it_is_known():
    assert indices_numba.largest_bernoulli_mean(1.0, 3.0) == 1.0
    assert indices_numba.largest_bernoulli_mean(0.0, 0.3) == pytest.approx(1 - math.exp(-0.3), rel=1e-15)
    assert indices_numba.largest_bernoulli_mean(0.25, 0.0) == pytest.approx(0.25, abs=1e-15)
    # kl(1/2, q) = -log(4 q (1 - q)) / 2
    assert indices_numba.largest_bernoulli_mean(0.5, 0.7) == pytest.approx(
        (1 + math.sqrt(1 - math.exp(-1.4))) / 2, rel=1e-14
    )


@given(st.integers(1, 40), st.floats(1e-6, 200.0))
def test_laplace_sum_quantile(m, level):
    q = indices_numba.laplace_sum_quantile(m, level)
    assert q == pytest.approx(
        kernel_references.laplace_sum_quantile_reference(m, level), rel=1e-5 if level < 1e-3 * m else 1e-12
    )
    s = math.sqrt(1 + (q / m) ** 2)
    assert m * (s - 1 - math.log((s + 1) / 2)) == pytest.approx(level, rel=1e-9, abs=1e-12)
    assert q <= 2 * math.sqrt(m * level) + level, "below the sub-gamma bound"


def test_laplace_sum_quantile_covers():
    """P(sum >= q) <= e^-level; by simulation, with a false alarm below 1e-9 (six standard errors)."""
    assert indices_numba.laplace_sum_quantile(0, 3.0) == indices_numba.laplace_sum_quantile(3, 0.0) == 0.0
    rng = np.random.default_rng(0)
    for m in (1, 2, 7):
        total = rng.laplace(size=(200_000, m)).sum(axis=1)
        for level in (0.7, 2.0, 5.0):
            share, p = float((total >= indices_numba.laplace_sum_quantile(m, level)).mean()), math.exp(-level)
            assert share <= p + 6 * math.sqrt(p / 200_000)
            assert share >= p / 20, "and is not far above what is needed"


@given(seeds, st.integers(1, 20), st.integers(2, 6), st.floats(0.1, 8.0), st.booleans())
def test_tree_optimistic_arms(seed, n_reps, n_arms, beta, unpulled):
    rng = np.random.default_rng(seed)
    pulls = rng.integers(0 if unpulled else 1, 20, (n_reps, n_arms))
    total = rng.integers(-3, 4, (n_reps, n_arms)) * pulls / 2
    clock = rng.integers(0, 5, n_reps) * 37
    found = np.full(n_reps, -1)
    indices_numba.tree_optimistic_arms(total, pulls, clock, beta, 1.5, 2.0, found)
    wanted = kernel_references.tree_optimistic_arms_reference(total, pulls, clock, beta, 1.5, 2.0)
    assert np.array_equal(found, wanted)


@given(st.integers(2, 9), st.integers(1, 40), st.floats(1e-9, 0.9), st.floats(0.0, 50.0), st.sampled_from([1.0, 0.01]))
def test_epoch_length(n_active, epoch, failure, noise, scale):
    found = elimination_numba.epoch_length(n_active, epoch, failure, noise, scale)
    wanted = kernel_references.epoch_length_reference(n_active, epoch, failure, noise, scale)
    assert found == wanted or (wanted > 2**40 and abs(found - wanted) <= 1e-12 * wanted)
    assert found >= 1


@given(seeds, st.integers(1, 15), st.integers(2, 6))
def test_finish_pulls(seed, n_reps, n_arms):
    """One epoch's end in each replicate, and arms that are not the epoch's last."""
    rng = np.random.default_rng(seed)
    active = rng.random((n_reps, n_arms)) < 0.7
    active[:, :2] = True
    epoch, arm = rng.integers(1, 4, n_reps), np.array([rng.choice(np.flatnonzero(row)) for row in active])
    n = rng.integers(5, 2000, n_reps)
    mean = rng.normal(0.5, 0.4, (n_reps, n_arms))
    noisy = mean[np.arange(n_reps), arm] * n
    before = active.copy()
    left = np.zeros(n_reps, dtype=np.int64)
    following, stage = arm.copy(), epoch.copy()
    elimination_numba.finish_pulls(np.arange(n_reps), noisy, n, mean, active, following, left, stage, 0.1, 0.5, 1.0, 1.0)
    stay = kernel_references.stay_active_reference(mean, before, epoch, n, 0.1, 0.5, 1.0)
    for r in range(n_reps):
        later = [a for a in range(arm[r] + 1, n_arms) if before[r, a]]
        if later:
            assert (following[r], left[r], stage[r]) == (later[0], n[r], epoch[r])
            assert np.array_equal(active[r], before[r])
            continue
        assert np.array_equal(active[r], stay[r])
        assert stage[r] == epoch[r] + 1
        assert following[r] == np.flatnonzero(stay[r])[0]
        wanted = kernel_references.epoch_length_reference(int(stay[r].sum()), int(stage[r]), 0.1, 0.5, 1.0)
        assert left[r] == (elimination_numba.FOR_EVER if stay[r].sum() == 1 else wanted)


def test_cut_indices_go_by_the_uncut_mean():
    """Both p are moved to 1, or both to 0 with the same budget; the larger of them before that wins, wherever it stands."""
    zeros = np.zeros(1, dtype=np.int64)
    for mean in ([1.5, 3.0, 2.0], [-3.0, -1.0, -2.0], [0.5, 2.0, 1.5]):
        for shift in range(3):
            out = np.full(1, -1)
            rolled = np.roll(np.array([mean]), shift, axis=1)
            indices_numba.kl_optimistic_arms(
                rolled,
                np.full((1, 3), 0.25),
                np.zeros((1, 3)),
                np.ones((1, 3), dtype=np.int64),
                zeros,
                zeros,
                zeros + 99,
                1.0,
                0.0,
                1.0,
                False,
                out,
            )
            assert out[0] == (1 + shift) % 3


def test_separate_estimate():
    """Four episodes of one arm, by the sums that define them; the first alone is as printed."""
    scale, width, lengths, sums = 1.5, 2.0, [1, 1, 2, 4], [0.7, -0.4, 2.2, 1.1]
    mean, deviation, tail = np.zeros((1, 2)), np.full((1, 2), np.inf), np.zeros((1, 2))
    one = np.zeros(1, dtype=np.int64)
    for k, (n, total) in enumerate(zip(lengths, sums, strict=True)):
        indices_numba.separate_estimate(mean, deviation, tail, one, one, np.array([total]), np.array([n]), scale, width)
        rewards = np.array([width**2 / (4 * n) for n in lengths[: k + 1]])
        noise = np.array([2 * scale**2 / n**2 for n in lengths[: k + 1]])
        weights = 1 / (rewards + noise) / (1 / (rewards + noise)).sum()
        x = np.array(sums[: k + 1]) / lengths[: k + 1]
        assert mean[0, 0] == pytest.approx(float(weights @ x), rel=1e-12)
        noisy = math.sqrt(float(weights**2 @ noise)) if k else 0.0
        assert deviation[0, 0] == pytest.approx(math.sqrt(float(weights**2 @ rewards)) + noisy, rel=1e-12)
        assert tail[0, 0] == pytest.approx(float((weights * scale / lengths[: k + 1]).max()), rel=1e-12)
    assert np.isinf(deviation[0, 1])
