r"""The sums that LinUCB and GP-UCB decide from: of (x x^T, y x), without noise or with, and bounds on the noise's norms.

One algorithm is its own twin, jointly or locally private by what stands here alone: which sum answers, with which noise, and
how large that noise can be. A record adds x x^T and y x with |x| <= 1, |y| <= Y; what replacing one can change is derived in
`JointGaussian`: with GOE noise of deviation s on both, 1 + Y^2 over s for Y <= 1, and 2 Y over s above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bandana.algorithms.regression.norms import goe_norm, normal_norm
from bandana.privacy_core import (
    EQUAL,
    GOE,
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
_PARTS: Mapping[str, Mapping[str, str]] = {
    "printed": {"noise": "printed", "sum": "tree", "width": "printed"},
    "as-known": {"noise": "as-known", "sum": "tree", "width": "printed"},
    "tree": {"noise": "tight", "sum": "tree", "width": "exact"},
    "tight": {"noise": "tight", "sum": "factorized", "width": "exact"},
}


def parts_of(calibration: str | Mapping[str, str], trust: TrustModel, paper: str = "printed") -> Mapping[str, str]:
    """Part -> option of a calibration by name; a mixture of parts is returned as it is.

    `paper` names the calibration with the paper's noise: `printed`, or `as-known` where its text could not be read.
    `noise` is the budget that the paper's noise spends, or the promise's; `sum` is a tree or a factorized sum, and there is
    none where users noise their own messages; `width` counts on the printed bounds on the noise's norms, or on `quantiles`.

    Raises:
      ValueError: trust model or calibration are unknown; the message names them.
    """
    is_joint = one_of("trust", trust, (TrustModel.JOINT, TrustModel.LOCAL)) is TrustModel.JOINT
    if not isinstance(calibration, str):
        return calibration
    parts = _PARTS[one_of("calibration", calibration, (paper, "tree", "tight") if is_joint else (paper, "tight"))]
    return parts if is_joint else {part: option for part, option in parts.items() if part != "sum"}


def structure_of(trust: TrustModel | None, parts: Mapping[str, str], horizon: int) -> Structure | None:
    """Returns how the sums of a calibration touch a record, of which each round holds one; None where there is no noise.

    With epochs the sums are shorter, and a user whose records are in several of them pays less.
    """
    if trust is None:
        return None
    if trust is TrustModel.LOCAL:
        return Releases(1)
    return Factorized(horizon) if parts.get("sum") == "factorized" else Tree(horizon)


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
    calibration: str | Mapping[str, str],
    printed: Callable[[ApproxDP, TrustModel], NoisySums],
    dimension: int,
    horizon: int,
    value_bound: float,
    failure: float,
) -> NoisySums:
    """Sums that keep a promise.

    Printed noise on a factorized sum spends the budget of the printed tree. That has k = T.bit_length() nodes on a record,
    each of noise multiplier m: mu = sqrt k / m. The factorized sum, one event a record, has the multiplier m / sqrt k.
    Printed norms on another sum or other noise are the printed multiples, by sqrt 2 more for the GOE, of the largest
    deviation of the run: s sqrt(1 + ceil(log2 T)) of a tree, s sqrt T of messages, and that of a factorized sum.

    Args:
      promise: (epsilon, delta).
      trust: joint, where sums have noise, or local, where each message has.
      calibration: `printed`; `tight`, GOE noise at exactly the promise, on a factorized sum, one event a record, or on
        messages; `tree`, a binary tree in place of the factorized sum; or a mixture of their parts, see `parts_of`.
      printed: makes the sums of `printed`.
      dimension: d of x.
      horizon: T, rounds.
      value_bound: Y.
      failure: of the width; see `quantiles`.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    parts = parts_of(calibration, trust)
    in_tree = parts.get("sum", "tree") == "tree"  # messages are the leaves of a tree that nobody adds noise to
    is_papers, is_printed = parts["noise"] != "tight", parts["width"] == "printed"
    published = printed(promise, trust) if is_papers or is_printed else None
    if published is not None and in_tree and is_papers and is_printed:
        return published
    if published is not None and is_papers:
        noise: JointGaussian = published.sums.mechanism  # type: ignore[attr-defined]
        noise = noise if in_tree else noise.scaled(1 / math.sqrt(Tree(horizon).n_nodes))
    else:
        joint = Tree(horizon) if in_tree else Factorized(horizon)
        structure: Structure = joint if trust is TrustModel.JOINT else Releases(1)
        noise = JointGaussian(1.0, value_bound, calibrate(promise, structure))
    if trust is TrustModel.LOCAL:
        sums: PrivateSum = LocalSum(noise)
    else:
        sums = TreeSum(noise, horizon) if in_tree else FactorizedSum(noise, horizon)
    if published is None or parts["width"] == "exact":
        matrix, vector = quantiles(dimension, horizon, failure)
        return NoisySums(sums, matrix, noise.vector_ratio * vector)
    matrix, vector = _printed_norms(dimension, horizon, failure)
    matrix *= math.sqrt(2) if noise.diagonal_ratio == GOE else 1.0
    deviation = None if published.deviation is None else _largest_deviation(sums, horizon)
    return NoisySums(sums, matrix, noise.vector_ratio * vector, deviation)


def _largest_deviation(sums: PrivateSum, horizon: int) -> float:
    """The largest deviation of one entry's noise in the run; of a tree with the printed number of nodes."""
    if isinstance(sums, TreeSum):
        return sums.mechanism.scale * math.sqrt(1 + math.ceil(math.log2(horizon)))
    return max(sums.noise_deviation(step) for step in range(1, horizon + 1))


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
