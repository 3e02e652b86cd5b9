"""Scores that are learned from outputs, where their numbers leave little to learn."""

from __future__ import annotations

import numpy as np
import pytest

from bandana.audits.claims import Quantity
from bandana.flows.annexes.anything.outputs.bounds import promised
from bandana.flows.annexes.anything.outputs.scores import learn

N = 200


def tables():
    rng = np.random.default_rng(0)
    zero, tenth = np.zeros(N), np.full(N, 0.1)
    # Summed beside another column, a tenth varies by rounding; summed alone, it does not.
    yield "constant up to rounding", np.column_stack([zero, tenth]), np.column_stack([zero, tenth + 1])
    yield "constant on one side", np.column_stack([tenth, rng.normal(size=N)]), rng.normal(size=(N, 2))
    yield "large", 1e100 * rng.normal(size=(N, 2)), np.full((N, 2), np.inf)
    yield "small", 1e-300 * rng.normal(size=(N, 2)), np.full((N, 2), 5e-324)
    yield "missing", np.full((N, 2), np.nan), rng.normal(size=(N, 2))


@pytest.mark.parametrize(("data", "neighbor"), [pytest.param(*sides, id=name) for name, *sides in tables()])
def test_a_score_is_a_number_whatever_the_outputs(data, neighbor):
    for name, score in learn(data, neighbor, 0).items():
        assert not np.isnan(score(np.concatenate([data, neighbor]))).any(), name


@pytest.mark.parametrize("quantity", [Quantity("mu"), Quantity("epsilon", 1e-2)])
def test_the_unit_of_scores_that_were_learned_says_nothing(quantity):
    data, neighbor = np.random.default_rng(0).normal([[0.0], [1.5]], 1.0, (2, 2000))
    promise = promised(data, neighbor, quantity, 0.05, 0)
    assert promise > 0.5
    assert promised(0.01 * data, 0.01 * neighbor, quantity, 0.05, 0) == pytest.approx(
        promise, rel=0.01
    )  # scores are rounded
