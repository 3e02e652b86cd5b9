"""Trees that learn and score in a fork of a process whose OpenMP threads were already at work."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from bandana.flows.annexes.anything.outputs.trees import learn_trees
from bandana.flows.running import child

_RANDOM = np.random.default_rng(0)
_DATA, _NEIGHBOR = _RANDOM.normal(0, 1, (500, 3)), _RANDOM.normal(1, 1, (500, 3))


def _scores():
    return learn_trees(_DATA, _NEIGHBOR, rounds=10, least_in_leaf=16, shrinkage=0.5)(_NEIGHBOR)


def test_a_fork_does_not_wait_for_threads_of_its_parent():
    with threadpool_limits(4, "openmp"):
        HistGradientBoostingClassifier(max_iter=10).fit(np.concatenate([_DATA, _NEIGHBOR]), np.repeat([0, 1], 500))
    returned = child.run(_scores, child.Limits(total=60))
    np.testing.assert_allclose(returned.value, _scores())
    assert np.mean(returned.value) > 0
