r"""UCRL-VTR+ as it is built: the twin, joint and local privacy, each with Gaussian and with Laplace noise."""

from __future__ import annotations

import math

from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.papers.luyo import depth, vtr_plus_joint_printed_sds, vtr_plus_local_printed_sds
from bandana.algorithms.regression.noise_norms import ConstantNorms, NoNoise
from bandana.algorithms.rl.mixture.forms import Bounds, NoisySums, joint_sums, local_sums, shares_of, with_deviation
from bandana.algorithms.rl.mixture.forms_pure import check_tight, printed_laplace, printed_laplace_norm
from bandana.algorithms.rl.mixture.targets import Targets, centered_targets, printed_targets
from bandana.algorithms.rl.mixture.vtr_plus import UCRLVTRPlus, bounds_of, centered_squares, printed_squares
from bandana.privacy_core import (
    EQUAL,
    GOE,
    ApproxDP,
    Exact,
    Guarantee,
    Interval,
    LocalSum,
    PrivateSum,
    PureDP,
    StackedGaussian,
    StackedLaplace,
    TreeSum,
)
from bandana.privacy_core.checks import at_least, failure_of, positive, probability

_WEIGHTED_PART = 0.8
"""Share of the price, mu^2 or epsilon, that the weighted regressions get: plans are made from them alone."""


def ucrl_vtr_plus(
    model: MixtureModel,
    horizon: int,
    reward_range: Interval,
    *,
    ridge: float = 1.0,
    failure: float | None = None,
    beta_scale: float = 1.0,
) -> UCRLVTRPlus:
    """The non-private twin of `tight`; arguments as of `ucrl_vtr_plus_joint`."""
    targets = centered_targets(model)
    noisy = NoisySums(LocalSum(Exact()), NoNoise(), (1.0,) * (2 * targets.n_blocks))
    return _tight(model, horizon, reward_range, targets, noisy, ridge, failure, beta_scale)


def ucrl_vtr_plus_joint(
    model: MixtureModel,
    horizon: int,
    epsilon: float,
    delta: float,
    reward_range: Interval,
    calibration: str,
    *,
    ridge: float = 1.0,
    failure: float | None = None,
    beta_scale: float = 1.0,
) -> UCRLVTRPlus:
    r"""UCRL-VTR+ with (epsilon, delta)-joint differential privacy: Corollary 10.

    Args:
      model: features, rewards and C_w.
      horizon: K, episodes.
      epsilon: above 0.
      delta: in (0, 1).
      reward_range: declared range of a reward; realized rewards are not used.
      calibration:
        `printed`: values in [0, H], nothing centered, floor H^2 / d; trees with noise (Z + Z^T)/sqrt 2 a node, of the
          deviations sigma_B1 = (64 d / epsilon) L, sigma_B2 = (64 H^4 / epsilon) L, L = sqrt(2 H K_0 log(16H/delta)
          log(8/delta) log(32 H K_0/delta)); shifts 2 U_i, U_i = sigma_Bi sqrt(K_0) (4 sqrt d + 2 log(24KH/p)); lambda = 1;
          the widths beta-hat, beta-tilde, beta-check of eq. 6.
        `tree`: such trees, calibrated exactly, with values, centers and widths of `tight`.
        `tight`: a factorized sum in place of the trees; values between what must and what can still be earned, measured from
          the middle; four fifths of the price for the weighted regressions; the widths of `UCRLVTRPlus`.
      ridge: lambda; in `tight` in units of the squared bound on each regressor.
      failure: p of the widths; None: 1 / horizon.
      beta_scale: factor on the widths.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    promise, failure = ApproxDP(epsilon, delta), failure_of(failure, horizon)
    if calibration == "printed":
        sds = vtr_plus_joint_printed_sds(epsilon, delta, horizon, model.horizon, model.dimension)
        growth = math.sqrt(depth(horizon)) * _gaussian_norm(model, horizon, failure)
        sums = TreeSum(_printed_gaussian(model, sds, GOE), horizon)
        return _printed(model, horizon, reward_range, sums, sds, growth, ridge, failure, beta_scale)
    targets, bounds, shares = _exact_blocks(model, promise)
    noisy = joint_sums(promise, bounds, shares, horizon, model.dimension, failure, calibration)
    return _tight(model, horizon, reward_range, targets, noisy, ridge, failure, beta_scale)


def ucrl_vtr_plus_local(
    model: MixtureModel,
    horizon: int,
    epsilon: float,
    delta: float,
    reward_range: Interval,
    calibration: str,
    *,
    ridge: float = 1.0,
    failure: float | None = None,
    beta_scale: float = 1.0,
) -> UCRLVTRPlus:
    r"""UCRL-VTR+ with (epsilon, delta)-local differential privacy: Corollary 11.

    Args: as of `ucrl_vtr_plus_joint`, but
      calibration:
        `printed`: every entry of the symmetric matrices and of the vectors gets noise of deviation (8 d H / epsilon) sqrt(2
          log(8H/delta)), of the squares (8 H^5 / epsilon) times the same; shifts and widths with sqrt(K) for sqrt(K_0).
          (Its proof misses the factor 3 in one upper bound, which eq. 7 has.)
        `tight`: GOE noise at the exact budget of the whole message; values, centers and widths as there.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    promise, failure = ApproxDP(epsilon, delta), failure_of(failure, horizon)
    if calibration == "printed":
        sds = vtr_plus_local_printed_sds(epsilon, delta, model.horizon, model.dimension)
        growth = math.sqrt(horizon) * _gaussian_norm(model, horizon, failure)
        sums = LocalSum(_printed_gaussian(model, sds, EQUAL))
        return _printed(model, horizon, reward_range, sums, sds, growth, ridge, failure, beta_scale)
    targets, bounds, shares = _exact_blocks(model, promise)
    noisy = local_sums(promise, bounds, shares, horizon, model.dimension, failure, calibration)
    return _tight(model, horizon, reward_range, targets, noisy, ridge, failure, beta_scale)


def ucrl_vtr_plus_pure_joint(
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
) -> UCRLVTRPlus:
    r"""UCRL-VTR+ with epsilon-joint differential privacy: Remark 6, which has no constants.

    Args: as of `ucrl_vtr_plus_joint`, but
      calibration:
        `printed`: its trees and widths with Laplace noise of scales 4 H K_0 (sensitivity) / epsilon, by simple composition
          over 4 H statistics and K_0 nodes, and U_i as `ucrl_vtr_pure_joint` has it.
        `tight`: a tree at the exact L1 price of the whole episode.
      reading: of `printed`, as of `ucrl_vtr_pure_joint`.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    promise, failure = PureDP(positive("epsilon", epsilon)), failure_of(failure, horizon)
    if calibration == "printed":
        nodes = depth(horizon)
        noise = _printed_laplace(model, epsilon / nodes, reading)
        growth = _laplace_norm(model, horizon, nodes, failure)
        sums = TreeSum(noise, horizon)
        return _printed(model, horizon, reward_range, sums, _both(noise), growth, ridge, failure, beta_scale)
    check_tight(calibration)
    targets, bounds, shares = _exact_blocks(model, promise)
    noisy = joint_sums(promise, bounds, shares, horizon, model.dimension, failure, calibration)
    return _tight(model, horizon, reward_range, targets, noisy, ridge, failure, beta_scale)


def ucrl_vtr_plus_pure_local(
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
) -> UCRLVTRPlus:
    r"""UCRL-VTR+ with epsilon-local differential privacy: Remark 6; arguments as of `ucrl_vtr_plus_pure_joint`.

    As there, without the K_0 in the noise and with sqrt(K) in the widths; `tight` at the exact L1 price of the whole
    message.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    promise, failure = PureDP(positive("epsilon", epsilon)), failure_of(failure, horizon)
    if calibration == "printed":
        noise = _printed_laplace(model, epsilon, reading)
        growth = _laplace_norm(model, horizon, horizon, failure)
        return _printed(model, horizon, reward_range, LocalSum(noise), _both(noise), growth, ridge, failure, beta_scale)
    check_tight(calibration)
    targets, bounds, shares = _exact_blocks(model, promise)
    noisy = local_sums(promise, bounds, shares, horizon, model.dimension, failure, calibration)
    return _tight(model, horizon, reward_range, targets, noisy, ridge, failure, beta_scale)


# --- noise -----------------------------------------------------------------------------------------------------------


def _exact_blocks(model: MixtureModel, promise: Guarantee) -> tuple[Targets, Bounds, tuple[float, ...]]:
    """Targets of `tight`, bounds of both families of blocks, and shares of the noise."""
    targets = centered_targets(model)
    bounds = bounds_of(targets, centered_squares(targets, model.dimension))
    n = targets.n_blocks
    shares: list[float] = []
    for part, blocks in ((_WEIGHTED_PART, slice(0, n)), (1 - _WEIGHTED_PART, slice(n, 2 * n))):
        norms, values = bounds[0][blocks], bounds[1][blocks]
        inner = shares_of(norms, promise)
        if isinstance(promise, PureDP):
            factor = StackedLaplace(norms, values, inner, model.dimension, 1.0).sensitivity / part
        else:
            factor = StackedGaussian(norms, values, inner, 1.0).sensitivity / math.sqrt(part)
        shares += [factor * share for share in inner]
    return targets, bounds, tuple(share / max(shares) for share in shares)


def _printed_blocks(model: MixtureModel) -> tuple[Bounds, tuple[float, ...]]:
    """Bounds of both families as published, and the shares of noise in proportion to d and H^4."""
    targets = printed_targets(model)
    bounds = bounds_of(targets, printed_squares(targets, model.dimension))
    n = targets.n_blocks
    return bounds, (1.0,) * n + (float(model.horizon) ** 4 / model.dimension,) * n


def _printed_gaussian(model: MixtureModel, sds: tuple[float, float], diagonal_ratio: float) -> StackedGaussian:
    bounds, shares = _printed_blocks(model)
    return with_deviation(bounds, shares, sds[0], diagonal_ratio)


def _printed_laplace(model: MixtureModel, epsilon: float, reading: str) -> StackedLaplace:
    """The printed Laplace noise for 4 H statistics, the weighted ones with |x|, |y| <= sqrt(d)."""
    bounds, shares = _printed_blocks(model)
    d = model.dimension
    return printed_laplace(bounds, shares, d, float(d), epsilon / (4 * model.horizon), reading)


def _both(noise: StackedLaplace) -> tuple[float, float]:
    return noise.scale, noise.scale * noise.shares[-1]


def _share(model: MixtureModel, horizon: int, failure: float) -> float:
    return probability("failure", failure) / (24 * horizon * model.horizon)


def _gaussian_norm(model: MixtureModel, horizon: int, failure: float) -> float:
    """Norm bound of one noise matrix, over its deviation (Claim 26)."""
    return 4 * math.sqrt(model.dimension) + 2 * math.log(1 / _share(model, horizon, failure))


def _laplace_norm(model: MixtureModel, horizon: int, n_noises: int, failure: float) -> float:
    return printed_laplace_norm(1.0, model.dimension, n_noises, _share(model, horizon, failure))


# --- both calibrations -----------------------------------------------------------------------------------------------


def _printed(
    model: MixtureModel,
    horizon: int,
    reward_range: Interval,
    sums: PrivateSum,
    scales: tuple[float, float],
    growth: float,
    ridge: float,
    failure: float,
    beta_scale: float,
) -> UCRLVTRPlus:
    """UCRL-VTR+ with the widths of eqs. 6 and 7; `growth` times a scale is their bound on the noise's norm."""
    targets = printed_targets(model)
    upsilons = scales[0] * growth, scales[1] * growth
    return UCRLVTRPlus(
        model, horizon, reward_range, sums, ConstantNorms(upsilons[0], upsilons[0]), targets, _printed_blocks(model)[1],
        ridge=ridge, failure=failure, beta_scale=beta_scale, squares=printed_squares(targets, model.dimension),
        published=upsilons,
    )  # fmt: skip


def _tight(
    model: MixtureModel,
    horizon: int,
    reward_range: Interval,
    targets: Targets,
    noisy: NoisySums,
    ridge: float,
    failure: float | None,
    beta_scale: float,
) -> UCRLVTRPlus:
    return UCRLVTRPlus(
        model, at_least("horizon", horizon, 1), reward_range, *noisy[:2], targets, noisy.shares, ridge=ridge,
        failure=failure_of(failure, horizon), beta_scale=beta_scale,
        squares=centered_squares(targets, model.dimension),
    )  # fmt: skip
