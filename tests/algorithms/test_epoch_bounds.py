"""Regret bounds where the horizon is unknown: those of all epochs add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bandana.algorithms.catalog import find
from bandana.audits.testbeds.catalog import bed_of
from bandana.privacy_core import ApproxDP


@pytest.mark.parametrize("name", ["gp-ucb joint", "gp-ucb-pool joint", "linucb joint"])
def test_in_growing_epochs_the_bounds_of_all_epochs_add_up(name):
    """After 1000 rounds: an epoch of 32, and 968 rounds of one of 1024, each with its own failure probability."""
    entry = find(name)
    problem, _ = bed_of(entry, 1000, 0)
    level = ("tight", ApproxDP(1e3, 1e-2))

    def one(length, *rounds):
        settings = entry.settings(replace(problem, horizon=length), *level)
        return entry.bound(settings, None, np.array(rounds)).values

    grid = np.array([5, 32, 33, 1000])
    found = entry.bound(entry.settings(problem, *level, epochs="growing"), None, grid)
    first, second = one(32, 5, 32), one(1024, 1, 968)
    np.testing.assert_allclose(found.values, [*first, first[1] + second[0], first[1] + second[1]])
    assert found.text.startswith("the sum over all epochs")
    scaled = entry.settings(problem, *level, epochs="growing", beta_scale=0.5)
    assert entry.bound(scaled, None, grid) is None
