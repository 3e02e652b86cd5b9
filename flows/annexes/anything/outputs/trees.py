"""Boosted histogram trees that tell the runs on one data set from those on its neighbor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bandana.algorithms.protocol import FloatArray


def learn_trees(
    data: FloatArray, neighbor: FloatArray, *, rounds: int, least_in_leaf: int, shrinkage: float, seed: int = 0
) -> Callable[[FloatArray], FloatArray]:
    """Log odds of the neighbor, learned from rows of both sides.

    One thread learns and scores: several gain little on some thousand rows, wait for each other where a processor is shared,
    and those of a process are gone in its forks, which would wait for them forever.

    Args:
      data: (n, d), nan where a number is missing.
      neighbor: (m, d)
      rounds: how many trees.
      least_in_leaf: rows that a leaf holds at least.
      shrinkage: weight of the L2 penalty on a leaf's value.
      seed: of the trees.

    Returns:
      (k, d) rows -> (k,) scores, larger on the neighbor.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingClassifier(
        max_iter=rounds, max_leaf_nodes=16, min_samples_leaf=least_in_leaf, l2_regularization=shrinkage,
        early_stopping=False, random_state=seed,
    )  # fmt: skip

    def scores(rows: FloatArray) -> FloatArray:
        with threadpool_limits(1, "openmp"):
            return np.asarray(model.decision_function(rows), dtype=float)

    with threadpool_limits(1, "openmp"):
        model.fit(np.concatenate([data, neighbor]), np.repeat([0, 1], [len(data), len(neighbor)]))
    return scores
