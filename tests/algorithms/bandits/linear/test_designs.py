"""Optimal designs against closed forms, an independent optimizer, and the theorem of Kiefer and Wolfowitz."""

from __future__ import annotations

import itertools

import kernel_references
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from bandana.algorithms.bandits.linear import designs
from bandana.algorithms.bandits.linear.designs import optimal_design
from bandana.algorithms.environments.linear import random_arms

seeds = st.integers(0, 10**6)


def arms_of(seed, n_arms, dimension):
    return random_arms(n_arms, dimension, np.random.SeedSequence(seed))


def second_opinion(x):
    """Weights by a general-purpose optimizer of log det over softmax coordinates."""

    def value_and_gradient(z):
        e = np.exp(z - z.max())
        w = e / e.sum()
        inverse = np.linalg.inv(x.T @ (w[:, None] * x))
        leverage = np.einsum("ki,ij,kj->k", x, inverse, x)
        return np.linalg.slogdet(inverse)[1], -w * (leverage - x.shape[1])

    z = minimize(value_and_gradient, np.zeros(len(x)), jac=True, method="L-BFGS-B", options={"maxiter": 5000}).x
    e = np.exp(z - z.max())
    return e / e.sum()


@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
def test_orthogonal_arms_are_played_equally(dimension):
    lengths = np.linspace(1.0, 0.2, dimension)
    design = optimal_design(np.diag(lengths), 1e-9)
    assert design.weights == pytest.approx(np.full(dimension, 1 / dimension), rel=1e-6)
    assert design.leverage == pytest.approx(np.full(dimension, dimension), rel=1e-6)
    assert design.rank == dimension


def test_in_one_dimension_the_longest_arm_is_played():
    design = optimal_design(np.array([[0.3], [-0.9], [0.5]]))
    assert design.weights.tolist() == [0.0, 1.0, 0.0]
    assert design.leverage == pytest.approx([1 / 9, 1.0, 25 / 81])
    assert design.gap == pytest.approx(0.0, abs=1e-15)


def test_a_regular_polygon():
    """By symmetry the uniform design is optimal, and any d(d+1)/2 = 3 arms must do."""
    turn = 2 * np.pi * np.arange(7) / 7
    design = optimal_design(np.stack([np.cos(turn), np.sin(turn)], axis=1), 1e-4)
    assert np.count_nonzero(design.weights) <= 3
    assert design.leverage.max() == pytest.approx(2.0, rel=2e-4)


def test_short_arms_are_left_out():
    """Arms 0 and 1 are unit vectors; the mean of them has leverage 1 < 2."""
    design = optimal_design(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]))
    assert design.weights.tolist() == [0.5, 0.5, 0.0]
    assert design.leverage == pytest.approx([2.0, 2.0, 1.0])


@given(seeds, st.integers(1, 6), st.integers(0, 40), st.floats(0.0, 1.0))
def test_kiefer_and_wolfowitz(seed, dimension, more, spread):
    rng = np.random.default_rng(seed)
    features = arms_of(seed, dimension + more, dimension) * rng.uniform(spread * 0.9 + 0.1, 1.0, (dimension + more, 1))
    design = optimal_design(features, 1e-3)
    assert design.rank == dimension
    assert design.weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert design.weights.min() >= 0
    assert np.count_nonzero(design.weights) <= dimension * (dimension + 1) // 2
    direct = features @ np.linalg.inv(features.T @ (design.weights[:, None] * features)) @ features.T
    assert design.leverage == pytest.approx(np.diag(direct), rel=1e-6), "leverages need no coordinates"
    assert dimension * (1 - 1e-9) <= design.leverage.max() <= dimension * (1 + 1e-3)
    assert design.gap == pytest.approx(design.leverage.max() / dimension - 1)
    assert (design.weights @ design.leverage) == pytest.approx(dimension, rel=1e-9), "trace(V^-1 V)"


@pytest.mark.parametrize(("n_arms", "dimension"), [(6, 2), (20, 3), (50, 5), (30, 8)])
def test_a_second_optimizer_finds_the_same_determinant(n_arms, dimension):
    x = arms_of(n_arms, n_arms, dimension)
    design = optimal_design(x, 1e-6)
    other = second_opinion(x)
    log_det = [np.linalg.slogdet(x.T @ (w[:, None] * x))[1] for w in (design.weights, other)]
    assert log_det[0] == pytest.approx(log_det[1], abs=2e-5)
    # A gap of g bounds the distance in log det by d g (concavity along the segment to the optimum).
    assert log_det[0] >= log_det[1] - dimension * design.gap - 1e-9


@pytest.mark.parametrize(("n_arms", "dimension"), [(12, 2), (25, 4)])
def test_the_kernel_reaches_what_the_multiplicative_algorithm_does(n_arms, dimension):
    x, chosen = designs.spanning_coordinates(arms_of(3, n_arms, dimension))
    weights = np.zeros(n_arms)
    weights[chosen] = 1 / dimension
    inverse = designs.inverse_of(x, weights)
    leverage = designs.leverages(x, inverse)
    designs.away_steps(x, weights, inverse, leverage, 1e-7, 5000)
    reference = kernel_references.multiplicative_reference(x, 20_000)
    assert weights.sum() == pytest.approx(1.0, rel=1e-9)
    assert inverse == pytest.approx(designs.inverse_of(x, weights), rel=1e-6, abs=1e-9), "updated, not recomputed"
    assert leverage == pytest.approx(designs.leverages(x, designs.inverse_of(x, weights)), rel=1e-6)
    assert leverage == pytest.approx(designs.leverages(x, designs.inverse_of(x, reference)), rel=2e-3)
    assert np.linalg.slogdet(inverse)[1] == pytest.approx(np.linalg.slogdet(designs.inverse_of(x, reference))[1], abs=1e-4)


@given(seeds, st.integers(1, 4), st.integers(0, 12))
def test_fewer_arms_and_no_larger_leverage(seed, dimension, more):
    limit = dimension * (dimension + 1) // 2
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(limit + more, dimension))
    weights = rng.dirichlet(np.ones(len(x)))
    reduced = designs.reduced_support(x, weights, limit)
    assert np.count_nonzero(reduced) <= limit
    assert reduced.sum() == pytest.approx(1.0)
    assert reduced.min() >= 0
    before, after = (x.T @ (w[:, None] * x) for w in (weights, reduced))
    grown = np.linalg.eigvalsh(np.linalg.solve(before, after))
    assert grown.min() >= 1 - 1e-6, "V can only grow"
    assert grown.max() == pytest.approx(grown.min(), rel=1e-6), "by one factor in all directions"


def test_optimal_designs_on_many_arms_need_the_reduction():
    """All 40 arms of a circle support an optimal design; 3 remain."""
    turn = np.pi * np.arange(40) / 40
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    reduced = designs.reduced_support(circle, np.full(40, 1 / 40), 3)
    assert np.count_nonzero(reduced) <= 3
    assert designs.leverages(circle, designs.inverse_of(circle, reduced)).max() <= 2 * (1 + 1e-9)


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_last_bits_do_not_choose_who_stays(dimension):
    """A lattice has many dependencies, and many weights that vanish at once."""
    lattice = np.array([p for p in itertools.product((-1.0, 0.0, 1.0), repeat=dimension) if any(p)])
    limit, found = dimension * (dimension + 1) // 2, []
    for seed in range(6):
        noise = 1e-14 * np.random.default_rng(seed).standard_normal((2, *lattice.shape)) * (seed > 0)
        weights = np.full(len(lattice), 1 / len(lattice)) * (1 + noise[0, :, 0])
        found.append(designs.reduced_support(lattice + noise[1], weights, limit))
    assert all((weights > 0).tolist() == (found[0] > 0).tolist() for weights in found)
    assert all(weights == pytest.approx(found[0], rel=1e-9) for weights in found)


def test_arms_in_a_plane_get_the_design_of_the_plane():
    plane = arms_of(1, 9, 2)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0][:2]
    inside, lifted = optimal_design(plane), optimal_design(plane @ turn)
    assert lifted.rank == 2
    assert lifted.leverage.max() <= 2 * (1 + 1e-3)
    assert lifted.weights == pytest.approx(inside.weights, abs=1e-6)


@pytest.mark.parametrize("shrink", [1.0, 1e-3, 1e-6])
def test_leverages_do_not_depend_on_the_scale_of_a_direction(shrink):
    features = arms_of(2, 15, 3)
    design, flat = optimal_design(features), optimal_design(features * [1.0, 1.0, shrink])
    assert flat.rank == 3
    assert flat.leverage.max() <= 3 * (1 + 1e-3)
    assert np.linalg.slogdet(features.T @ (flat.weights[:, None] * features))[1] == pytest.approx(
        np.linalg.slogdet(features.T @ (design.weights[:, None] * features))[1], abs=3e-3
    )


def test_equal_and_opposite_arms():
    design = optimal_design(np.array([[1.0, 0.0]] * 3 + [[-1.0, 0.0], [0.0, 0.5], [0.0, -0.5]]))
    assert design.leverage == pytest.approx(np.full(6, 2.0), rel=1e-6)
    assert optimal_design(np.full((4, 3), 0.5)).rank == 1


def test_the_same_arms_give_the_same_design():
    features = arms_of(5, 50, 5)
    one, again = optimal_design(features), optimal_design(features.copy())
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))


def test_nothing_to_measure():
    with pytest.raises(ValueError, match="a vector other than 0"):
        optimal_design(np.zeros((3, 2)))


def test_a_gap_that_is_not_reached_is_told(monkeypatch):
    monkeypatch.setattr(designs, "_MOST_SWEEPS", 1)
    monkeypatch.setattr(designs, "_SWEEP", 2)
    with pytest.raises(RuntimeError, match=r"has a gap of .* after 2 steps"):
        optimal_design(arms_of(4, 30, 4))
