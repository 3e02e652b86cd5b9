"""Continual sums for `bandana audit-release`: a tree, with the epsilon of dp-accounting, and one that is no tree."""

import numpy as np
from dp_accounting import NeighboringRelation, SingleEpochTreeAggregationDpEvent
from dp_accounting.rdp import RdpAccountant

from bandana.primitives import priced
from bandana.privacy_core import Gaussian

NOISE = 4.0


@priced(Gaussian(1.0, NOISE))
def noisy(value, rng):
    """One noisy sum: 1/4-GDP."""
    return value + NOISE * rng.normal()


def tree(data, rng):
    """The sums of the first 1, 2, ... numbers of [0, 1]: each adds the noisy nodes of a binary tree that it covers."""
    nodes, sums = {}, []
    for step in range(1, len(data) + 1):
        size = 1
        while step % size == 0:
            nodes[step, size] = noisy(np.sum(data[step - size : step]), rng)
            size *= 2
        sums.append(_total(nodes, step))
    return sums


def fresh(data, rng):
    """The same sums, each with noise of its own: the first number enters all of them."""
    return [noisy(np.sum(data[:step]), rng) for step in range(1, len(data) + 1)]


def _total(nodes, step):
    total = 0.0
    while step:
        size = step & -step  # the largest node that ends here
        total += nodes[step, size]
        step -= size
    return total


def epsilon(steps, delta):
    """What dp-accounting states for a tree over so many steps, of which each record enters one."""
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    return accountant.compose(SingleEpochTreeAggregationDpEvent(NOISE, steps)).get_epsilon(delta)
