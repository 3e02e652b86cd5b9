r"""The sums that LinUCB and GP-UCB decide from: of (x x^T, y x), without noise or with, and bounds on the noise's norms.

One algorithm is its own twin, jointly or locally private by what stands here alone: which sum answers, with which noise, and
how large that noise can be. A record adds x x^T and y x with |x| <= 1, |y| <= Y; what replacing one can change is derived in
`JointGaussian`: with GOE noise of deviation s on both, 1 + Y^2 over s for Y <= 1, and 2 Y over s above.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from bandana.algorithms.regression.norms import goe_norm, normal_norm
from bandana.privacy_core import (
    EQUAL,
    ApproxDP,
    Exact,
    Factorized,
    FactorizedSum,
    JointGaussian,
    LocalSum,
    PrivateSum,
    Releases,
    Structure,
    Tree,
    TreeSum,
    TrustModel,
    calibrate,
)
from bandana.privacy_core.checks import one_of, probability

UP = 1 + 1e-12
"""Not below a printed deviation: rounded up by one part in 1e12."""
_CALIBRATIONS = {TrustModel.JOINT: ("printed", "tree", "tight"), TrustModel.LOCAL: ("printed", "tight")}


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


def private_sums(
    promise: ApproxDP,
    trust: TrustModel,
    calibration: str,
    printed: Callable[[ApproxDP, TrustModel], NoisySums],
    dimension: int,
    horizon: int,
    value_bound: float,
    failure: float,
) -> NoisySums:
    """Sums that keep a promise.

    Args:
      promise: (epsilon, delta).
      trust: joint, where sums have noise, or local, where each message has.
      calibration: `printed`; `tight`, GOE noise at exactly the promise, on a factorized sum, one event a record, or on
        messages; `tree`, a binary tree in place of the factorized sum.
      printed: makes the sums of `printed`.
      dimension: d of x.
      horizon: T, rounds.
      value_bound: Y.
      failure: of the width; see `quantiles`.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    one_of("trust", trust, tuple(_CALIBRATIONS))
    one_of("calibration", calibration, _CALIBRATIONS[trust])
    if calibration == "printed":
        return printed(promise, trust)

    def noise(structure: Structure) -> JointGaussian:
        return JointGaussian(1.0, value_bound, calibrate(promise, structure))

    if trust is TrustModel.LOCAL:
        sums: PrivateSum = LocalSum(noise(Releases(1)))
    elif calibration == "tree":
        sums = TreeSum(noise(Tree(horizon)), horizon)
    else:
        sums = FactorizedSum(noise(Factorized(horizon)), horizon)
    return NoisySums(sums, *quantiles(dimension, horizon, failure))


def printed_tree(node_sd: float, dimension: int, horizon: int, value_bound: float, failure: float) -> NoisySums:
    r"""A binary tree with GOE noise of a printed deviation s on each node, and the printed bounds on its norms.

    With m = 1 + ceil(log2 T) for the nodes of a prefix, log = ln(2 T / failure): |N| <= s sqrt(2 m) (4 sqrt d + 2 log) and
    |n| <= s sqrt m (sqrt d + sqrt(2 log)), at every t.

    Source: Shariff and Sheffet (2018), Proposition 11; Dubey (2021), Lemma 3.
    """
    unit = JointGaussian(1.0, value_bound, 1.0)
    sums = TreeSum(unit.scaled(node_sd / unit.sensitivity * UP), horizon)
    matrix, vector = _printed_norms(dimension, horizon, failure)
    return NoisySums(sums, math.sqrt(2) * matrix, vector, node_sd * math.sqrt(1 + math.ceil(math.log2(horizon))))


def printed_messages(
    matrix_sd: float, vector_ratio: float, dimension: int, horizon: int, value_bound: float, failure: float
) -> NoisySums:
    r"""Messages with noise of a printed deviation s in every entry of the symmetric matrix, and r s in those of the vector.

    The printed bounds on the norms of its sum after t messages, with log = ln(2 T / failure): |N| <= s sqrt t (4 sqrt d + 2
    log) and |n| <= r s sqrt t (sqrt d + sqrt(2 log)).

    Source: Shariff and Sheffet (2018), Proposition 11; Zheng et al. (2020); Dubey (2021), Lemma 6.
    """
    unit = JointGaussian(1.0, value_bound, 1.0, vector_ratio=vector_ratio, diagonal_ratio=EQUAL)
    matrix, vector = _printed_norms(dimension, horizon, failure)
    return NoisySums(LocalSum(unit.scaled(matrix_sd / unit.sensitivity * UP)), matrix, vector_ratio * vector)


def _printed_norms(dimension: int, horizon: int, failure: float) -> tuple[float, float]:
    log = math.log(2 * horizon / probability("failure", failure))
    return 4 * math.sqrt(dimension) + 2 * log, math.sqrt(dimension) + math.sqrt(2 * log)


def quantiles(dimension: int, horizon: int, failure: float) -> tuple[float, float]:
    r"""(q, g): with probability 1 - failure/2, in all rounds, the noise's norms are at most q and g, in units of one entry.

    `goe_norm`, which holds for smaller diagonals too, as these are less of the free entries, and `normal_norm`. Each gets
    failure / (4 horizon) a round; the other half is the rewards'.
    """
    share = probability("failure", failure) / (4 * horizon)
    return goe_norm(dimension, share), normal_norm(dimension, share)
