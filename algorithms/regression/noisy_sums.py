r"""The sums that LinUCB and GP-UCB decide from: of (x x^T, y x), without noise or with, and bounds on the noise's norms.

One algorithm is its own twin, jointly or locally private by what stands here alone: which sum answers, with which noise, and
how large that noise can be. A record adds x x^T and y x with |x| <= 1, |y| <= Y; what replacing one can change is derived in
`JointGaussian`: with GOE noise of deviation s on both, 1 + Y^2 over s for Y <= 1, and 2 Y over s above.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy.special import chdtri

from bandana.privacy_core import (
    GOE,
    ApproxDP,
    Exact,
    Factorized,
    FactorizedSum,
    JointGaussian,
    LocalSum,
    PrivateSum,
    TreeSum,
    calibrate,
)
from bandana.privacy_core.checks import probability

UP = 1 + 1e-12
"""Not below a printed deviation: rounded up by one part in 1e12."""


class NoisySums(NamedTuple):
    """A sum, and what bounds its noise with the probability that the width counts on."""

    sums: PrivateSum
    """Sum of (x x^T, y x), in the shape (d, d + 1), closed after every round."""
    matrix_norm: float = 0.0
    """Bound on the matrix's noise, in units of the deviation of one entry off the diagonal."""
    vector_norm: float = 0.0
    """Bound on the vector's noise, in the same units."""
    deviation: float | None = None
    """Standard deviation of the noise in one entry, for all t; None: what `sums` says for each t."""


def exact_sums() -> NoisySums:
    """Sums without noise, for the non-private twin."""
    return NoisySums(LocalSum(Exact()))


def factorized_sums(promise: ApproxDP, dimension: int, horizon: int, value_bound: float, failure: float) -> NoisySums:
    """Joint privacy by a factorized sum with GOE noise, at exactly the promise: one event a record.

    Args:
      promise: (epsilon, delta).
      dimension: d of x.
      horizon: T, rounds.
      value_bound: Y.
      failure: of the width; see `quantiles`.
    """
    noise = JointGaussian(1.0, value_bound, calibrate(promise, Factorized(horizon)))
    return NoisySums(FactorizedSum(noise, horizon), *quantiles(dimension, horizon, failure))


def tree_sums(promise: ApproxDP, dimension: int, horizon: int, value_bound: float, failure: float) -> NoisySums:
    """Joint privacy by a binary tree with GOE noise, at exactly the promise; arguments as of `factorized_sums`."""
    tree = TreeSum(JointGaussian(1.0, value_bound, 1.0), horizon)
    noise = JointGaussian(1.0, value_bound, calibrate(promise, tree.structure))
    return NoisySums(TreeSum(noise, horizon), *quantiles(dimension, horizon, failure))


def printed_tree(node_sd: float, dimension: int, horizon: int, value_bound: float, failure: float) -> NoisySums:
    r"""A binary tree with GOE noise of a printed deviation s on each node, and the printed bounds on its norms.

    With m = 1 + ceil(log2 T) for the nodes of a prefix, log = ln(2 T / failure): |N| <= s sqrt(2 m) (4 sqrt d + 2 log) and
    |n| <= s sqrt m (sqrt d + sqrt(2 log)), at every t.

    Source: Shariff and Sheffet (2018), Proposition 11; Dubey (2021), Lemma 3.
    """
    unit = JointGaussian(1.0, value_bound, 1.0)
    log = math.log(2 * horizon / probability("failure", failure))
    return NoisySums(
        TreeSum(unit.scaled(node_sd / unit.sensitivity * UP), horizon),
        math.sqrt(2) * (4 * math.sqrt(dimension) + 2 * log),
        math.sqrt(dimension) + math.sqrt(2 * log),
        node_sd * math.sqrt(1 + math.ceil(math.log2(horizon))),
    )


def local_sums(promise: ApproxDP, dimension: int, horizon: int, value_bound: float, failure: float) -> NoisySums:
    """Local privacy: each message has GOE noise at exactly the promise; arguments as of `factorized_sums`."""
    noise = JointGaussian(1.0, value_bound, calibrate(promise), diagonal_ratio=GOE)
    return NoisySums(LocalSum(noise), *quantiles(dimension, horizon, failure))


def quantiles(dimension: int, horizon: int, failure: float) -> tuple[float, float]:
    r"""(q, g): with probability 1 - failure/2, in all rounds, the noise's norms are at most q and g, in units of one entry.

    Matrix: |N| <= s (2 sqrt d + 2 sqrt(log(2/p))) with probability 1 - p for the GOE, and for smaller diagonals too: the
    largest eigenvalue is sqrt 2 s-Lipschitz in the free entries over their deviations, with mean up to 2 s sqrt d (Slepian).
    Vector: the exact chi-square quantile. Each gets failure / (4 horizon) a round; the other half is the rewards'.
    """
    share = probability("failure", failure) / (4 * horizon)
    return 2 * math.sqrt(dimension) + 2 * math.sqrt(math.log(2 / share)), math.sqrt(chdtri(dimension, share))
