"""A release of OpenDP, for `bandana audit-release`: noisy counts of a binary tree over 64 bins.

The audited data sets differ by one in each bin, a distance of 8 in the L2 norm, for which OpenDP's map states 0.5-zCDP.
"""

import opendp.prelude as dp

dp.enable_features("contrib", "honest-but-curious")

LEAVES, DISTANCE = 64, 8

bins = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T="int")
histogram = bins >> dp.m.then_gaussian(float(DISTANCE))
tree = dp.t.make_b_ary_tree(*bins, leaf_count=LEAVES, branching_factor=2) >> dp.m.then_gaussian(56.0)


def counts(data):
    """The bins themselves: 0.5-zCDP."""
    return histogram(data)


def nodes(data):
    """The 127 nodes of the tree: `tree.map(8)` is 0.5, so it states 0.5-zCDP."""
    return tree(data)
