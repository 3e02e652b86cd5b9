r"""UCRL-VTR as it is built: the twin, joint and local privacy, each with Gaussian and with Laplace noise.

`tight` noise falls on the steps of an episode in shares R_h^(8/5), R_h the bound on |x_h|, and Laplace noise in shares
R_h^(4/3): of all shares with one price they make the sum over steps of the exploration that noise causes smallest, as a
step's width is about C_w sqrt(noise), and its price R_h^4 / noise^2, or R_h^2 / noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.papers.luyo import depth, vtr_joint_printed_sd, vtr_local_printed_sd
from bandana.algorithms.regression.noise_norms import ConstantNorms, GaussianNorms, LaplaceNorms, NoiseNorms, NoNoise
from bandana.algorithms.rl.mixture.targets import Targets, centered_targets, printed_targets
from bandana.algorithms.rl.mixture.vtr import UCRLVTR
from bandana.privacy_core import (
    EQUAL,
    GOE,
    ApproxDP,
    Exact,
    Factorized,
    FactorizedSum,
    Guarantee,
    Interval,
    LocalSum,
    PrivateSum,
    PureDP,
    Releases,
    StackedGaussian,
    StackedLaplace,
    Structure,
    Tree,
    TreeSum,
    calibrate,
)
from bandana.privacy_core.checks import at_least, failure_of, probability

Bounds = tuple[tuple[float, ...], tuple[float, ...]]
"""(n_blocks,) on |x| and on |y|."""
UP = 1 + 1e-12
"""Not below a printed deviation: rounded up by one part in 1e12."""
_SHARE_EXPONENT, _LAPLACE_SHARE_EXPONENT = 8 / 5, 4 / 3


class NoisySums(NamedTuple):
    """Sums, what bounds their noise, and how it falls on the blocks."""

    sums: PrivateSum
    norms: NoiseNorms
    shares: tuple[float, ...]


def ucrl_vtr(
    model: MixtureModel,
    horizon: int,
    reward_range: Interval,
    *,
    ridge: float = 1.0,
    failure: float | None = None,
    beta_scale: float = 1.0,
) -> UCRLVTR:
    """The non-private twin of `tight`; arguments as of `ucrl_vtr_joint`."""
    targets = centered_targets(model)
    noisy = NoisySums(LocalSum(Exact()), NoNoise(), (1.0,) * targets.n_blocks)
    return tight_vtr(model, horizon, reward_range, targets, noisy, ridge, failure, beta_scale)


def ucrl_vtr_joint(
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
) -> UCRLVTR:
    r"""UCRL-VTR with (epsilon, delta)-joint differential privacy: Corollary 5.

    Args:
      model: features, rewards and C_w.
      horizon: K, episodes.
      epsilon: above 0.
      delta: in (0, 1).
      reward_range: declared range of a reward; realized rewards are not used.
      calibration:
        `printed`: values in [0, H], nothing centered; a tree with noise (Z + Z^T)/sqrt 2 a node (Appendix C.2), Z and the
          vectors of deviation sigma_B = (32 H^2 / epsilon) sqrt(2 H K_0 log(8H/delta) log(4/delta) log(16 H K_0/delta)),
          K_0 = ceil(log2 K + 1); shift 2 U, U = sigma_B sqrt(K_0) (4 sqrt d + 2 log(6KH/p)); lambda = H^2, and for all k
          beta = 3 (C_w + 1) sqrt(lambda + U) + sqrt(2 H^2 log(3H (1 + KH)^(d/2) / p)).
        `tree`: the printed noise's tree, calibrated exactly, with values, centers and width of `tight`.
        `tight`: a factorized sum in place of the tree; values between what must and what can still be earned, measured from
          the middle (`centered_targets`); the width of `UCRLVTR`.
      ridge: lambda, in units of the squared bound on |x|, which is H^2 as printed.
      failure: p of the width; None: 1 / horizon.
      beta_scale: factor on the width.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    promise, failure = ApproxDP(epsilon, delta), failure_of(failure, horizon)
    if calibration == "printed":
        nodes = depth(horizon)
        sd = vtr_joint_printed_sd(epsilon, delta, horizon, model.horizon)
        log = math.log(6 * horizon * model.horizon / failure)
        upsilon = sd * math.sqrt(nodes) * (4 * math.sqrt(model.dimension) + 2 * log)
        targets = printed_targets(model)
        sums = TreeSum(with_deviation(targets.bounds, (1.0,) * targets.n_blocks, sd, GOE), horizon)
        return printed_vtr(model, horizon, reward_range, targets, sums, upsilon, ridge, failure, beta_scale)
    targets = centered_targets(model)
    noisy = joint_sums(
        promise, targets.bounds, shares_of(targets.norm_bound, promise), horizon, model.dimension, failure, calibration
    )
    return tight_vtr(model, horizon, reward_range, targets, noisy, ridge, failure, beta_scale)


def ucrl_vtr_local(
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
) -> UCRLVTR:
    r"""UCRL-VTR with (epsilon, delta)-local differential privacy: Corollary 6.

    A user gets the parameters and widths, plans with the public features, and sends (x x^T, y x) of all steps with noise;
    the server adds messages up.

    Args: as of `ucrl_vtr_joint`, but
      calibration:
        `printed`: values in [0, H], nothing centered; every entry of the symmetric matrices and of the vectors gets noise of
          deviation sigma_B = (4 H^3 / epsilon) sqrt(2 log(4H/delta)); shift and beta as in Corollary 5, with U = sigma_B
          sqrt(K) (4 sqrt d + 2 log(6KH/p)), from the first episode on.
        `tight`: GOE noise at the exact budget of the whole message; values, centers and width as there.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    promise, failure = ApproxDP(epsilon, delta), failure_of(failure, horizon)
    if calibration == "printed":
        sd = vtr_local_printed_sd(epsilon, delta, model.horizon)
        log = math.log(6 * horizon * model.horizon / failure)
        upsilon = sd * math.sqrt(horizon) * (4 * math.sqrt(model.dimension) + 2 * log)
        targets = printed_targets(model)
        sums = LocalSum(with_deviation(targets.bounds, (1.0,) * targets.n_blocks, sd, EQUAL))
        return printed_vtr(model, horizon, reward_range, targets, sums, upsilon, ridge, failure, beta_scale)
    targets = centered_targets(model)
    noisy = local_sums(
        promise, targets.bounds, shares_of(targets.norm_bound, promise), horizon, model.dimension, failure, calibration
    )
    return tight_vtr(model, horizon, reward_range, targets, noisy, ridge, failure, beta_scale)


# --- noise, for UCRL-VTR+ too ----------------------------------------------------------------------------------------


def shares_of(norms: tuple[float, ...], promise: Guarantee) -> tuple[float, ...]:
    """(n_blocks,) of the noise, of bounds on |x|, see the module; the largest is 1."""
    most = max(norms)
    exponent = _LAPLACE_SHARE_EXPONENT if isinstance(promise, PureDP) else _SHARE_EXPONENT
    return tuple((bound / most) ** exponent for bound in norms)


def joint_sums(
    promise: Guarantee,
    bounds: Bounds,
    shares: tuple[float, ...],
    horizon: int,
    dimension: int,
    failure: float,
    calibration: str,
) -> NoisySums:
    """Sums under joint privacy, at exactly the promise: `tight` a factorized one, `tree` a binary tree.

    Args:
      promise: approximate or pure; for pure privacy both are trees, as a factorization takes Gaussian noise.
      bounds: of the blocks.
      shares: of the noise.
      horizon: K.
      dimension: d.
      failure: p; half of it is the noise's.
      calibration: `tree` or `tight`.
    """
    if calibration not in ("tree", "tight"):
        raise ValueError(f"calibration must be 'printed', 'tree' or 'tight', got {calibration!r}")
    norms = _norms(promise, len(shares), horizon, dimension, failure)
    if calibration == "tree" or isinstance(promise, PureDP):
        return NoisySums(TreeSum(_noise(promise, bounds, shares, dimension, Tree(horizon)), horizon), norms, shares)
    return NoisySums(
        FactorizedSum(_noise(promise, bounds, shares, dimension, Factorized(horizon)), horizon), norms, shares
    )  # fmt: skip


def local_sums(
    promise: Guarantee,
    bounds: Bounds,
    shares: tuple[float, ...],
    horizon: int,
    dimension: int,
    failure: float,
    calibration: str,
) -> NoisySums:
    """Sums of messages that have noise at exactly the promise; arguments as of `joint_sums`, calibration `tight`."""
    if calibration != "tight":
        raise ValueError(f"calibration must be 'printed' or 'tight', got {calibration!r}")
    noise = _noise(promise, bounds, shares, dimension, Releases(1))
    return NoisySums(LocalSum(noise), _norms(promise, len(shares), horizon, dimension, failure), shares)


def _noise(
    promise: Guarantee, bounds: Bounds, shares: tuple[float, ...], dimension: int, structure: Structure
) -> StackedGaussian | StackedLaplace:
    multiplier = calibrate(promise, structure)
    if isinstance(promise, PureDP):
        return StackedLaplace(*bounds, shares, dimension, multiplier)
    return StackedGaussian(*bounds, shares, multiplier)


def _norms(promise: Guarantee, n_blocks: int, horizon: int, dimension: int, failure: float) -> NoiseNorms:
    """Each of 2 bounds in n_blocks blocks after K episodes fails with its part of half the failure."""
    share = probability("failure", failure) / (4 * horizon * n_blocks)
    return (LaplaceNorms if isinstance(promise, PureDP) else GaussianNorms)(dimension, share)


def with_deviation(bounds: Bounds, shares: tuple[float, ...], sd: float, diagonal_ratio: float) -> StackedGaussian:
    """Gaussian noise of a printed deviation, in blocks of share 1."""
    unit = StackedGaussian(*bounds, shares, 1.0, diagonal_ratio=diagonal_ratio)
    return unit.scaled(sd / unit.sensitivity * UP)


# --- both calibrations -----------------------------------------------------------------------------------------------


def printed_vtr(
    model: MixtureModel,
    horizon: int,
    reward_range: Interval,
    targets: Targets,
    sums: PrivateSum,
    upsilon: float,
    ridge: float,
    failure: float,
    beta_scale: float,
) -> UCRLVTR:
    """UCRL-VTR with Theorem 7's width as both corollaries choose it; `upsilon` is their bound on the noise."""
    length, square = model.horizon, float(model.horizon) ** 2
    log = math.log(3 * length / failure) + model.dimension / 2 * math.log1p(horizon * length)
    beta = 3 * (model.parameter_bound + 1) * math.sqrt(ridge * square + upsilon) + math.sqrt(2 * square * log)
    return UCRLVTR(
        model, horizon, reward_range, sums, ConstantNorms(upsilon, upsilon), targets, (1.0,) * targets.n_blocks,
        ridge=ridge, failure=failure, constant_width=beta, beta_scale=beta_scale,
    )  # fmt: skip


def tight_vtr(
    model: MixtureModel,
    horizon: int,
    reward_range: Interval,
    targets: Targets,
    noisy: NoisySums,
    ridge: float,
    failure: float | None,
    beta_scale: float,
) -> UCRLVTR:
    """UCRL-VTR with the proved width of `UCRLVTR`; arguments as in the builders."""
    return UCRLVTR(
        model, at_least("horizon", horizon, 1), reward_range, *noisy[:2], targets, noisy.shares, ridge=ridge,
        failure=failure_of(failure, horizon), beta_scale=beta_scale,
    )  # fmt: skip
