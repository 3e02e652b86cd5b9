"""The problems that algorithms of episodes are audited on: records of them move every kind of release as far as one can."""

from __future__ import annotations

import numpy as np
import pytest

from bandana.algorithms.entry import Entry
from bandana.algorithms.environments.worst_mdps import HORIZON, N_STATES, bed_like, directions, linear_bed, mixture_bed
from bandana.algorithms.problem import LINEAR_MDP, MIXTURE
from bandana.audits.testbeds.catalog import bed_of
from bandana.privacy_core import EQUAL, GOE, Interval, JointGaussian
from bandana.privacy_core.noise.sensitivities import pair_l1_witness

each_dimension = pytest.mark.parametrize("d", [2, 3, 5])


def moved(mechanism, x, other):
    one, two = (JointGaussian.statistic(v[None], np.ones(1)) for v in (x, other))
    return float(mechanism.change(one, two)[0])


@each_dimension
@pytest.mark.parametrize(("ratio", "pair"), [(GOE, (0, 2)), (EQUAL, (0, 1))])
def test_two_directions_reach_the_sensitivity_of_gaussian_noise(d, ratio, pair):
    mechanism, along = JointGaussian(1.0, 1.0, 1.0, diagonal_ratio=ratio), directions(d, False)
    assert np.linalg.norm(along, axis=1) == pytest.approx(np.ones(3))
    assert moved(mechanism, *along[list(pair)]) == pytest.approx(mechanism.sensitivity, rel=1e-9)


@each_dimension
def test_two_directions_move_a_triangle_and_a_vector_as_far_as_the_witness_does(d):
    x, _, other = directions(d, True)
    rows, columns = np.triu_indices(d)
    found = np.abs(np.outer(x, x) - np.outer(other, other))[rows, columns].sum() + np.abs(x - other).sum()
    assert found == pytest.approx(pair_l1_witness(d), rel=1e-4)
    gaussian = directions(d, False)
    plain = np.abs(gaussian[0] - gaussian[2]).sum()
    assert found > 1.2 * plain, "opposite axes are worst for Gaussian noise, not for Laplace's"


@each_dimension
@pytest.mark.parametrize("is_pure", [False, True])
def test_models_have_the_directions_as_features(d, is_pure):
    along = directions(d, is_pure)
    mixture, linear = mixture_bed(d, 3, is_pure), linear_bed(d, 3, is_pure)
    assert (mixture.horizon, mixture.n_states, linear.n_states, linear.horizon) == (HORIZON, N_STATES, N_STATES, HORIZON)
    assert mixture.features.sum(axis=2)[:, 0] == pytest.approx(along), "x at values of 1 everywhere"
    assert linear.features[:, 0] == pytest.approx(along)
    if d > 2:  # in a plane a direction may be that of the last axis, and cannot turn to it
        assert np.abs(linear.features[:, 0] - linear.features[:, 2]).max(axis=1).min() > 0.1, "actions differ"
    assert (mixture.rewards[:, :, 0] == 1).all()
    assert (mixture.rewards.min(), mixture.rewards.max()) == (0.0, 1.0)


@pytest.mark.parametrize("kind", [MIXTURE, LINEAR_MDP])
def test_a_bed_has_few_episodes_by_fair_coins(kind):
    entry = Entry(
        "x", "x", "none", None, (), "none", "none", build=lambda settings: None, plays_on=(kind,), audit_shape=(2, 3)
    )
    problem, table = bed_of(entry, 64, 0)
    assert (problem.kind, problem.horizon, problem.model.dimension) == (kind, 8, 3)
    assert table.rewards.shape == (8, HORIZON, N_STATES, 2)
    assert table.reward_range == Interval(0.0, 1.0)
    assert bed_of(entry, 64, 0, 4)[1].n_actions == 4
    assert bed_of(entry, 4, 0)[1].n_users == 1


@pytest.mark.parametrize("n_states", [1, 2, 5])
def test_a_bed_may_have_the_shape_of_any_model(n_states):
    along = directions(4, False)
    for bed in (mixture_bed(4, 2, False, n_states, 6, 1.7), linear_bed(4, 2, False, n_states, 6)):
        again = bed_like(bed, False)
        shape = again.n_states, again.n_actions, again.dimension, again.horizon
        assert shape == (n_states, 2, 4, 6)
        assert (again.features == bed.features).all()
        own = (
            bed.features[:, 0].sum(axis=1)
            if n_states == bed.features.shape[2] and bed.features.ndim == 4
            else bed.features[:, 0]
        )
        assert own[0] == pytest.approx(along[0])
        if n_states > 1:
            assert own[-1] == pytest.approx(along[2])
    assert bed_like(mixture_bed(4, 2, False, n_states, 6, 1.7), True).parameter_bound == 1.7
