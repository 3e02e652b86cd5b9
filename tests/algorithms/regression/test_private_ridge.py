"""Private ridge regression: blocks against lone regressions, and against NumPy; steps at once against one at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bandana.algorithms.regression.private_ridge import PrivateRidge, regularizer

RIDGE, SCALE = np.array([1.0, 0.25]), np.array([0.5, 2.0])
NOISE = np.array([[0.0, 0.0], [2.0, 0.1], [5.0, 0.1]])
BLOCKS = PrivateRidge(3, RIDGE, 2, lambda t: (NOISE[t], 2 * NOISE[t]), SCALE, 1.5, 0.1)


def fitted(ridge, statistic, step):
    estimate, inverse = np.full(statistic.shape[:-1], 7.0), np.full((*statistic.shape[:-1], 3), 7.0)
    log_det = ridge.fit(statistic, step, estimate, inverse)
    return estimate, inverse, log_det, ridge.radius(log_det, step)


def sums(n_reps=4):
    """(n_reps, 2, 3, 4), of which the first replicate's second matrix is far from positive definite."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n_reps, 2, 6, 3))
    found = np.concatenate([np.einsum("rbni,rbnj->rbij", x, x), rng.standard_normal((n_reps, 2, 3, 1))], axis=-1)
    found[0, 1, :, :3] -= 50 * np.eye(3)
    return found


@pytest.mark.parametrize("step", [0, 1, 2])
def test_regressions_against_numpy(step):
    statistic = sums()
    estimate, inverse, log_det, _ = fitted(BLOCKS, statistic, step)
    for rep, block in np.ndindex(4, 2):
        q = NOISE[step, block]
        values, vectors = np.linalg.eigh(statistic[rep, block, :, :3] + (RIDGE[block] + 2 * q) * np.eye(3))
        if (rep, block) == (0, 1):
            assert values[0] < 0
            values = np.maximum(values, RIDGE[block] + q)
        gram = vectors @ np.diag(values) @ vectors.T
        np.testing.assert_allclose(inverse[rep, block], np.linalg.inv(gram), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(estimate[rep, block], np.linalg.solve(gram, statistic[rep, block, :, 3]), rtol=1e-9)
        assert log_det[rep, block] == pytest.approx(np.log(values).sum())


def test_the_radius_by_hand():
    """The first block's a grows from 3 to 6, too much for one a' (3 log 2 < 2 log 2 is false); the second's stays."""
    log_det, radius = np.array([[9.0, 3.0]]), [0.0, 0.0]
    for block, (a, least, n) in enumerate([(6.0, 6.0, 2), (0.35, 0.35, 1)]):
        q = NOISE[2, block]
        growth = 9.0 - 3 * math.log(least) if block == 0 else 3.0 - 3 * math.log(least)
        radius[block] = SCALE[block] * math.sqrt(2 * math.log(2 * 2 * n / 0.1) + growth)
        radius[block] += 1.5 * math.sqrt(RIDGE[block] + 3 * q) + 2 * q / math.sqrt(a)
    assert BLOCKS.radius(log_det, 2)[0] == pytest.approx(radius)
    floor, n = BLOCKS.regularizers
    assert np.isnan(floor[0])
    assert (floor[1], n.tolist()) == (pytest.approx(0.35), [2.0, 1.0])


def test_a_block_alone_is_as_in_a_batch_but_for_the_union():
    statistic = sums()
    for block in (0, 1):
        noise = NOISE[:, block]
        alone = PrivateRidge(3, RIDGE[block], 2, lambda t, q=noise: (q[t], 2 * q[t]), SCALE[block], 1.5, 0.05)
        for one, both in zip(fitted(alone, statistic[:, block], 2), fitted(BLOCKS, statistic, 2), strict=True):
            assert np.array_equal(one, both[:, block])


def test_steps_at_once_are_as_one_at_a_time():
    steps, log_det = np.arange(3), np.random.default_rng(1).random((3, 2)) * 9
    at_once = BLOCKS.radius(log_det, steps)
    assert np.array_equal(at_once, [BLOCKS.radius(log_det[t], t) for t in steps])


def test_the_margin_is_what_noise_leaves():
    assert regularizer(1.0, 2.0, 3.0) == (9.0, 7.0, 11.0)
