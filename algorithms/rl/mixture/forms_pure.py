r"""UCRL-VTR under pure privacy: Laplace noise in place of Gaussian noise (Remark 1 and Appendix C.4).

The paper says what to change and gives no constants. Laplace noise is calibrated to the L1 norm, in which one episode moves
the upper triangle of a step's x x^T by up to sqrt(d (d + 3)/2) R^2, and y x by up to 2 sqrt d R^2; the L2 sensitivities of
Corollaries 5 and 6, 2 R^2 for either, do not bound it.

Source: Luyo, Garcelon, Lazaric and Pirotta, "Differentially private exploration in reinforcement learning with linear
representation", Remark 1, Appendix C.4, Claims 28 and 29.
"""

from __future__ import annotations

import math

from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.papers.luyo import depth
from bandana.algorithms.rl.mixture.forms import UP, Bounds, joint_sums, local_sums, printed_vtr, shares_of, tight_vtr
from bandana.algorithms.rl.mixture.targets import Targets, centered_targets, printed_targets
from bandana.algorithms.rl.mixture.vtr import UCRLVTR
from bandana.privacy_core import Interval, LocalSum, PureDP, StackedLaplace, TreeSum
from bandana.privacy_core.checks import failure_of, positive, probability
from bandana.privacy_core.sensitivities import matrix_l1_bound

READINGS = ("l2-constants", "l1-constants")
"""Readings of the printed noise: with the sensitivities of the Gaussian proof, or with those that Laplace noise needs."""


def ucrl_vtr_pure_joint(
    model: MixtureModel,
    horizon: int,
    epsilon: float,
    reward_range: Interval,
    calibration: str,
    *,
    reading: str = "l1-constants",
    ridge: float = 1.0,
    failure: float | None = None,
    beta_scale: float = 1.0,
) -> UCRLVTR:
    r"""UCRL-VTR with epsilon-joint differential privacy.

    Args:
      model: features, rewards and C_w.
      horizon: K, episodes.
      epsilon: above 0.
      reward_range: declared range of a reward; realized rewards are not used.
      calibration:
        `printed`: the tree, values and width of Corollary 5, with Laplace noise of scale 2 H K_0 (sensitivity) / epsilon by
          simple composition over 2 H statistics and K_0 nodes. U = (scale) sqrt(K_0) (2 d + 2 sqrt(d l) + l), l = log(6KHd /
          p), after Claim 29 and the sqrt(K_0) of Corollary 5; for sums of Laplace noises neither is proved.
        `tight`: a tree at the exact L1 price of the whole episode, with the values, centers and width of `UCRLVTR`.
      reading: of `printed`, one of `READINGS`. With `l2-constants` the claim is false from d = 3 on for H of at least 4,
        and from d = 4 on for any: the ledger then shows more than the claim.
      ridge: lambda, in units of the squared bound on |x|.
      failure: p of the width; None: 1 / horizon.
      beta_scale: factor on the width.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    promise, failure = PureDP(positive("epsilon", epsilon)), failure_of(failure, horizon)
    if calibration == "printed":
        nodes, targets = depth(horizon), printed_targets(model)
        noise = _printed_noise(model, targets, epsilon / nodes, reading)
        upsilon = _upsilon(noise, model, horizon, nodes, failure)
        sums = TreeSum(noise, horizon)
        return printed_vtr(model, horizon, reward_range, targets, sums, upsilon, ridge, failure, beta_scale)
    check_tight(calibration)
    targets = centered_targets(model)
    shares = shares_of(targets.norm_bound, promise)
    noisy = joint_sums(promise, targets.bounds, shares, horizon, model.dimension, failure, calibration)
    return tight_vtr(model, horizon, reward_range, targets, noisy, ridge, failure, beta_scale)


def ucrl_vtr_pure_local(
    model: MixtureModel,
    horizon: int,
    epsilon: float,
    reward_range: Interval,
    calibration: str,
    *,
    reading: str = "l1-constants",
    ridge: float = 1.0,
    failure: float | None = None,
    beta_scale: float = 1.0,
) -> UCRLVTR:
    r"""UCRL-VTR with epsilon-local differential privacy.

    Args: as of `ucrl_vtr_pure_joint`, but
      calibration:
        `printed`: Laplace noise of scale 2 H (sensitivity) / epsilon on each statistic of a message; U as there with K in
          place of K_0.
        `tight`: at the exact L1 price of the whole message.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    promise, failure = PureDP(positive("epsilon", epsilon)), failure_of(failure, horizon)
    if calibration == "printed":
        targets = printed_targets(model)
        noise = _printed_noise(model, targets, epsilon, reading)
        upsilon = _upsilon(noise, model, horizon, horizon, failure)
        sums = LocalSum(noise)
        return printed_vtr(model, horizon, reward_range, targets, sums, upsilon, ridge, failure, beta_scale)
    check_tight(calibration)
    targets = centered_targets(model)
    shares = shares_of(targets.norm_bound, promise)
    noisy = local_sums(promise, targets.bounds, shares, horizon, model.dimension, failure, calibration)
    return tight_vtr(model, horizon, reward_range, targets, noisy, ridge, failure, beta_scale)


def _printed_noise(model: MixtureModel, targets: Targets, epsilon: float, reading: str) -> StackedLaplace:
    """The printed Laplace noise for 2 H statistics with |x|, |y| <= H."""
    share = epsilon / (2 * model.horizon)
    return printed_laplace(
        targets.bounds, (1.0,) * targets.n_blocks, model.dimension, float(model.horizon) ** 2, share, reading
    )


def printed_laplace(
    bounds: Bounds, shares: tuple[float, ...], dimension: int, square: float, epsilon: float, reading: str
) -> StackedLaplace:
    """Laplace noise of scales (sensitivity) / epsilon on a matrix and on a vector, in blocks of share 1.

    Args:
      bounds: of the blocks.
      shares: of the noise.
      dimension: d.
      square: bound on |x|^2 and on |x y| in a block of share 1.
      epsilon: for one statistic.
      reading: one of `READINGS`.

    Raises:
      ValueError: there is no such reading.
    """
    if reading not in READINGS:
        raise ValueError(f"reading must be one of {', '.join(READINGS)}, got {reading!r}")
    l1 = matrix_l1_bound(dimension), 2 * math.sqrt(dimension)
    matrix, vector = (2.0, 2.0) if reading == "l2-constants" else l1
    unit = StackedLaplace(*bounds, shares, dimension, 1.0, vector_ratio=vector / matrix)
    return unit.scaled(matrix * square / epsilon / unit.sensitivity * UP)


def printed_laplace_norm(scale: float, dimension: int, n_noises: int, failure: float) -> float:
    """The published norm bound, see `ucrl_vtr_pure_joint`; `failure` is that of one bound, without its division by d."""
    log = math.log(dimension / failure)
    return scale * math.sqrt(n_noises) * (2 * dimension + 2 * math.sqrt(dimension * log) + log)


def _upsilon(noise: StackedLaplace, model: MixtureModel, horizon: int, n_noises: int, failure: float) -> float:
    share = probability("failure", failure) / (6 * horizon * model.horizon)
    return printed_laplace_norm(noise.scale, model.dimension, n_noises, share)


def check_tight(calibration: str) -> None:
    """Refuses any other calibration."""
    if calibration != "tight":
        raise ValueError(f"calibration must be 'printed' or 'tight', got {calibration!r}")
