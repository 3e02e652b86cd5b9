"""Noisy nodes of OpenDP's tree over counts, and what its map states for them."""

from functools import cache

import opendp.prelude as dp

dp.enable_features("contrib", "honest-but-curious")


@cache
def tree(leaves, branching, scale):
    """The measurement."""
    bins = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T="int")
    nodes = dp.t.make_b_ary_tree(*bins, leaf_count=leaves, branching_factor=branching)
    return nodes >> dp.m.then_gaussian(float(scale))


def nodes(data, seed, leaves, branching, scale):
    """All nodes; OpenDP draws its own randomness."""
    return tree(leaves, branching, scale)(data)


def state(release, leaves, branching, scale):
    """What the map states for data sets that differ by one in every leaf."""
    return f"zcdp(rho={tree(leaves, branching, scale).map(round(leaves**0.5))})"
