"""Kernels of value iteration: replicates that are planned side by side are planned as each of them alone."""

import numpy as np
import pytest

from bandana.algorithms.rl.tabular import planning_numba as kernels

H, S, A = 3, 4, 2
CAPS = np.arange(H, -1, -1).astype(float)
NUMBERS = (np.array([2.0, 1.0, 0.5, 0.3]), CAPS, 5.0, 0.7)
N_SIDE_BY_SIDE = kernels._LANES


def _statistics(n_reps, width, seed=1):
    rng = np.random.default_rng(seed)
    return 3 * rng.normal(size=(n_reps, H, S, A, width)), rng.permuted(np.tile(np.arange(A), (n_reps, 1)), axis=1)


def _planned(bonus, noisy, preference):
    policy, values = np.full((len(noisy), H, S), -1), np.full((len(noisy), H + 1, S), np.nan)
    values[:, H], lower = 0.0, np.zeros((len(noisy), H + 1, S))
    filled = preference, policy, values
    if bonus == "published":
        kernels.plan_published(noisy, 1.5, 5.0, 0.1, *filled)
    elif bonus == "bernstein":
        kernels.plan_bernstein(noisy, 0.5, 0.0, 0.0, *NUMBERS, *filled, lower)
    else:
        weight, share = (1.0, 0.3) if bonus == "with visits" else (0.0, 0.0)
        kernels.plan(noisy, 0.5, weight, share, *NUMBERS, *filled)
    return policy, values, lower


@pytest.mark.parametrize("bonus", ["hoeffding", "with visits", "bernstein", "published"])
@pytest.mark.parametrize("n_reps", [1, N_SIDE_BY_SIDE - 1, N_SIDE_BY_SIDE, N_SIDE_BY_SIDE + 1, 2 * N_SIDE_BY_SIDE + 5])
def test_replicates_side_by_side_are_planned_as_each_alone(bonus, n_reps):
    noisy, preference = _statistics(n_reps, S + (2 if bonus in ("with visits", "published") else 1))
    together = _planned(bonus, noisy, preference)
    alone = [_planned(bonus, noisy[r : r + 1], preference[r : r + 1]) for r in range(n_reps)]
    for place, planned in enumerate(together):
        assert np.array_equal(planned, np.concatenate([each[place] for each in alone]))
    assert together[0].min() >= 0
    assert np.isfinite(together[1]).all()


def test_of_two_actions_that_tie_the_first_in_a_replicate_s_own_order_is_taken():
    """Without any statistics all actions are equal, in each replicate."""
    noisy, preference = np.zeros((N_SIDE_BY_SIDE + 3, H, S, A, S + 1)), _statistics(N_SIDE_BY_SIDE + 3, S + 1)[1]
    assert 0 < preference[:, 0].sum() < len(preference)
    for bonus in ("hoeffding", "bernstein"):
        policy, _, _ = _planned(bonus, noisy, preference)
        assert (policy == preference[:, :1, None]).all()
