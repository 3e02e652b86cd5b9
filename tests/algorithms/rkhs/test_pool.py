"""The finite pool of contexts: found again, drawn by its law, refused where it says nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandana.algorithms.problem import KERNEL, POOLED, Problem
from bandana.algorithms.rkhs.kernels import SquaredExponential
from bandana.algorithms.rkhs.lookup import Rows
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import Interval

UNIT = Interval(0.0, 1.0)
POINTS = np.random.default_rng(0).uniform(-1, 1, (6, 4, 3))
POOL = Pool(POINTS, np.array([0.5, 0.3, 0.1, 0.1, 0.0, 0.0]))


@given(seed=st.integers(0, 10**6), n=st.integers(1, 200), levels=st.integers(1, 4))
def test_rows_are_found_where_they_first_stand(seed, n, levels):
    generator = np.random.default_rng(seed)
    table = generator.integers(-levels, levels, (n, 3)) / 3.0
    asked = np.concatenate([table[generator.permutation(n)], generator.integers(-levels, levels, (20, 3)) / 3.0 + 0.0])
    known = [tuple(row) for row in table.tolist()]
    expected = [known.index(tuple(row)) if tuple(row) in known else -1 for row in asked.tolist()]
    assert Rows(table).find(asked).tolist() == expected


def test_contexts_are_found_again():
    asked = np.array([3, 0, 0, 5])
    assert POOL.index_of(POINTS[asked]).tolist() == asked.tolist()
    assert POOL.nearest(POINTS[asked] + 1e-3).tolist() == asked.tolist()
    assert POOL.nearest(np.zeros((1, 4, 3))).tolist() == [int(np.argmin((POINTS**2).sum(axis=(1, 2))))]


def test_a_stranger_is_refused():
    brought = POINTS[[1, 2]].copy()
    brought[1, 3, 2] += 1e-9
    with pytest.raises(ValueError, match=r"the context of replicate 1 is none of the 6 of the pool; .* add it to the pool"):
        POOL.index_of(brought)
    with pytest.raises(ValueError, match=r"shape \(n_reps, 4, 3\), got \(2, 3, 3\)"):
        POOL.index_of(brought[:, :3])


def test_of_equally_near_contexts_the_first_is_taken_whatever_rounding_says():
    """The pool's contexts lie around the origin, turned by angles that no float holds exactly."""
    angles = np.arange(12) * np.pi / 6
    ring = 0.7 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    pool = Pool(np.stack([ring, ring], axis=1), np.full(12, 1 / 12))
    assert pool.nearest(np.zeros((3, 2, 2))).tolist() == [0, 0, 0]
    between = (ring + np.roll(ring, -1, axis=0)) / 2
    assert pool.nearest(np.stack([between, between], axis=1)).tolist() == [*range(11), 0]


def test_draws_follow_the_law():
    """Chi-square of 4 cells at 1e5 draws: above 30 with probability 1e-6; and what has no chance never comes."""
    counts = np.bincount(POOL.drawn(100_000, np.random.default_rng(1)), minlength=6)
    assert counts[4:].tolist() == [0, 0]
    expected = 100_000 * POOL.law[:4]
    assert ((counts[:4] - expected) ** 2 / expected).sum() < 30


def test_a_problem_says_what_its_points_are():
    kernel = SquaredExponential(0.5)
    assert Problem(4, UNIT, dimension=3, kernel=kernel).kind == KERNEL
    assert Problem(4, UNIT, dimension=3, kernel=kernel, pool=POOL).kind == POOLED


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: Pool(POINTS[:, :0], POOL.law), "a context without actions cannot be played"),
        (lambda: Pool(POINTS[0], POOL.law), r"\(n_contexts, n_actions, d\)"),
        (lambda: Pool(2 * POINTS, POOL.law), "must lie in the domain"),
        (lambda: Pool(POINTS, np.ones(6)), "law must be 6 probabilities"),
        (lambda: Pool(POINTS, np.ones(5) / 5), "law must be 6 probabilities"),
        (lambda: Pool(POINTS[[0, 1, 2, 1, 4, 5]], POOL.law), "contexts 1 and 3 have the same points"),
        (lambda: Problem(4, UNIT, kernel=SquaredExponential(1.0)), "dimension must be given with a kernel"),
        (lambda: Problem(4, UNIT, dimension=3, pool=POOL), "give its kernel too"),
        (
            lambda: Problem(5, UNIT, dimension=3, kernel=SquaredExponential(1.0), pool=POOL),
            "pool has 4 actions of dimension 3",
        ),
    ],
)
def test_what_does_not_fit_is_refused(build, told):
    with pytest.raises(ValueError, match=told):
        build()
