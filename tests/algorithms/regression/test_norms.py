"""Bounds on norms of noise, by simulation: rarely exceeded, and of the right size in many dimensions too."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bandana.algorithms.regression.norms import goe_norm


@pytest.mark.parametrize("dimension", [2, 60])
@pytest.mark.parametrize("failure", [0.5, 0.05])
def test_the_norm_of_a_goe_matrix(dimension, failure):
    """400 draws; more than the failure and three of its standard errors would come by chance once in a thousand times."""
    rng, n = np.random.default_rng(1), 400
    z = rng.standard_normal((n, dimension, dimension))
    norms = np.abs(np.linalg.eigvalsh((z + z.transpose(0, 2, 1)) / math.sqrt(2))).max(axis=1)
    bound = goe_norm(dimension, failure)
    assert (norms > bound).mean() <= failure + 3 * math.sqrt(failure / n)
    assert bound <= 2 * math.sqrt(dimension) * 1.35 + 4
