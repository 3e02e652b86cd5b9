"""Scores that are learned from outputs, where their numbers leave little to learn."""

from __future__ import annotations

import numpy as np
import pytest

from bandana.flows.annexes.anything.outputs.scores import learn

N = 200


def tables():
    rng = np.random.default_rng(0)
    third = np.full(N, 1 / 3)
    yield "constant up to rounding", np.column_stack([third, third]), np.column_stack([third + 1, third])
    yield "constant on one side", np.column_stack([third, rng.normal(size=N)]), rng.normal(size=(N, 2))
    yield "large", 1e100 * rng.normal(size=(N, 2)), np.full((N, 2), np.inf)
    yield "small", 1e-300 * rng.normal(size=(N, 2)), np.full((N, 2), 5e-324)
    yield "missing", np.full((N, 2), np.nan), rng.normal(size=(N, 2))


@pytest.mark.parametrize(("data", "neighbor"), [pytest.param(*sides, id=name) for name, *sides in tables()])
def test_a_score_is_a_number_whatever_the_outputs(data, neighbor):
    for name, score in learn(data, neighbor, 0).items():
        assert not np.isnan(score(np.concatenate([data, neighbor]))).any(), name
