r"""UCRL-VTR and UCRL-VTR+ in all their forms: the twin, and joint or local privacy with Gaussian or with Laplace noise.

`tight` noise falls on the steps of an episode in shares R_h^(8/5), R_h the bound on |x_h|, and Laplace noise in shares
R_h^(4/3): of all shares with one price they make the sum over steps of the exploration that noise causes smallest, as a
step's width is about C_w sqrt(noise), and its price R_h^4 / noise^2, or R_h^2 / noise.

For pure privacy the paper says what to change and gives no constants. Laplace noise is calibrated to the L1 norm, in which
one episode moves the upper triangle of a step's x x^T by up to sqrt(d (d + 3)/2) R^2, and y x by up to 2 sqrt d R^2; the L2
sensitivities of Corollaries 5 and 6, 2 R^2 for either, do not bound it.

Source: Luyo, Garcelon, Lazaric and Pirotta, "Differentially private exploration in reinforcement learning with linear
representation", Corollaries 5, 6, 10 and 11, Remarks 1 and 6, Appendix C, Claims 26, 28 and 29.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.papers.luyo import (
    depth,
    vtr_joint_printed_sd,
    vtr_local_printed_sd,
    vtr_plus_joint_printed_sds,
    vtr_plus_local_printed_sds,
)
from bandana.algorithms.regression.noise_norms import ConstantNorms, GaussianNorms, LaplaceNorms, NoiseNorms
from bandana.algorithms.rl.mixture.targets import Targets, centered_targets, printed_targets
from bandana.algorithms.rl.mixture.vtr import UCRLVTR
from bandana.algorithms.rl.mixture.vtr_plus import Squares, UCRLVTRPlus, bounds_of, centered_squares, printed_squares
from bandana.privacy_core import (
    EQUAL,
    GOE,
    ApproxDP,
    Exact,
    Factorized,
    FactorizedSum,
    Interval,
    LocalSum,
    PrivateSum,
    PureDP,
    Releases,
    StackedGaussian,
    StackedLaplace,
    Tree,
    TreeSum,
    TrustModel,
    calibrate,
)
from bandana.privacy_core.checks import failure_of, positive
from bandana.privacy_core.sensitivities import matrix_l1_bound

READINGS = ("l2-constants", "l1-constants")
"""Readings of the printed Laplace noise: with the sensitivities of the Gaussian proof, or with those that it needs."""
_UP = 1 + 1e-12
"""Not below a printed scale: rounded up by one part in 1e12."""
_SHARE_EXPONENT, _LAPLACE_SHARE_EXPONENT = 8 / 5, 4 / 3
_WEIGHTED_PART = 0.8
"""Share of the price, mu^2 or epsilon, that the weighted regressions of UCRL-VTR+ get: plans are made from them alone."""

Promise = ApproxDP | PureDP
Bounds = tuple[tuple[float, ...], tuple[float, ...]]
"""(n_blocks,) on |x| and on |y|."""


class _Blocks(NamedTuple):
    """All regressions of an algorithm: their targets, the squares of UCRL-VTR+, and the bounds on what is regressed."""

    targets: Targets
    squares: Squares | None
    bounds: Bounds


@dataclass(frozen=True)
class VTR:
    """Settings that all forms of UCRL-VTR, or of UCRL-VTR+, share.

    Raises ValueError where one is out of its range; the message names it.

    Attributes:
      model: features, rewards and C_w.
      horizon: K, most episodes.
      reward_range: declared range of a reward; realized rewards are not used.
      is_plus: whether samples are weighted by how certain they are, as in UCRL-VTR+.
      ridge: lambda, in units of the squared bound on each regressor; as it stands in printed UCRL-VTR+.
      failure: p of the widths; None: 1 / horizon.
      beta_scale: factor on the widths.
    """

    model: MixtureModel
    horizon: int
    reward_range: Interval
    is_plus: bool = False
    ridge: float = 1.0
    failure: float | None = None
    beta_scale: float = 1.0

    def __post_init__(self) -> None:
        failure_of(self.failure, self.horizon)
        positive("ridge", self.ridge)

    def twin(self) -> UCRLVTR:
        """The non-private twin of `tight`.

        Raises:
          ValueError: a setting out of its range; the message names it.
        """
        blocks = self._blocks(is_printed=False)
        return self._built(blocks, LocalSum(Exact()), ConstantNorms(0.0, 0.0), (1.0,) * len(blocks.bounds[0]))

    def private(self, promise: Promise, trust: TrustModel, calibration: str, reading: str = "l1-constants") -> UCRLVTR:
        r"""The private form with the given promise.

        Under local privacy a user gets the parameters and widths, plans with the public features, and sends (x x^T, y x) of
        all steps with noise; the server adds messages up.

        Args:
          promise: approximate privacy, with Gaussian noise, or pure privacy, with Laplace noise.
          trust: joint or local.
          calibration:
            `printed`: values in [0, H], nothing centered; noise, shifts and widths as below.
            `tree`: the trees of joint, approximate `printed`, calibrated exactly; values, centers and widths of `tight`.
            `tight`: noise at exactly the promise for the whole episode, or for the whole message. Joint privacy takes a
              factorized sum, or a tree where it is pure, as a factorization takes Gaussian noise; local privacy takes GOE or
              Laplace noise. Values lie between what must and what can still be earned, and are measured from the middle
              (`centered_targets`); the widths are those of `UCRLVTR` and `UCRLVTRPlus`, which spends four fifths of the
              price on the weighted regressions.
          reading: one of `READINGS`, for pure `printed`. With `l2-constants` the claim of UCRL-VTR is false from d = 3 on
            for H of at least 4, and from d = 4 on for any: the ledger then shows more than the claim.

        Returns:
          an algorithm; a `UCRLVTRPlus` where `is_plus`.

        Raises:
          ValueError: an argument or a setting out of its range; the message names it.

        Printed constants, K_0 = ceil(log2 K + 1), n = K_0 for joint and K for local privacy: U bounds the norm of a noise
        matrix, and 2 U is the shift, for local privacy from the first episode on.

        - UCRL-VTR (Corollaries 5 and 6): U = sigma sqrt(n) (4 sqrt d + 2 log(6KH/p)), lambda = H^2, and for all k beta =
          3 (C_w + 1) sqrt(lambda + U) + sqrt(2 H^2 log(3H (1 + KH)^(d/2) / p)). Joint: a tree with noise (Z + Z^T)/sqrt 2 a
          node (Appendix C.2), Z and the vectors of deviation sigma = (32 H^2 / epsilon) sqrt(2 H K_0 log(8H/delta)
          log(4/delta) log(16 H K_0/delta)). Local: every entry of the symmetric matrices and of the vectors gets noise of
          deviation sigma = (4 H^3 / epsilon) sqrt(2 log(4H/delta)).
        - UCRL-VTR+ (Corollaries 10 and 11): a floor of H^2 / d, U_i = sigma_i sqrt(n) (4 sqrt d + 2 log(24KH/p)), lambda =
          1, and the widths beta-hat, beta-tilde, beta-check of eqs. 6 and 7 (the proof for local privacy misses the factor
          3 in one upper bound, which eq. 7 has). Joint: such trees, sigma_1 = (64 d / epsilon) L for the weighted
          regressions and sigma_2 = (64 H^4 / epsilon) L for the squares, L = sqrt(2 H K_0 log(16H/delta) log(8/delta)
          log(32 H K_0/delta)). Local: sigma_1 = (8 d H / epsilon) sqrt(2 log(8H/delta)), and sigma_2 with H^4 for d.
        - Pure privacy (Remarks 1 and 6, which have no constants): the trees, values and widths above, with Laplace noise of
          scale m K_0 (sensitivity) / epsilon by simple composition over m = 2 H statistics, 4 H of UCRL-VTR+, and K_0
          nodes; locally without the K_0. U = (scale) sqrt(n) (2 d + 2 sqrt(d l) + l), l = log(6KHd / p), 24 for 6 in
          UCRL-VTR+, after Claim 29 and the sqrt(K_0) of Corollary 5; for sums of Laplace noises neither is proved.
        """
        if trust not in (TrustModel.JOINT, TrustModel.LOCAL):
            raise ValueError(f"trust must be joint or local, got {trust}")
        is_joint = trust is TrustModel.JOINT
        known = ("printed", "tree", "tight") if is_joint and isinstance(promise, ApproxDP) else ("printed", "tight")
        if calibration not in known:
            raise ValueError(f"calibration must be one of {', '.join(known)}, got {calibration!r}")
        positive("epsilon", promise.epsilon)
        if calibration == "printed":
            return self._printed(promise, is_joint, reading)
        return self._tight(promise, is_joint, is_tree=calibration == "tree" or isinstance(promise, PureDP))

    @property
    def _failure(self) -> float:
        return failure_of(self.failure, self.horizon)

    def _blocks(self, is_printed: bool) -> _Blocks:
        targets = (printed_targets if is_printed else centered_targets)(self.model)
        if not self.is_plus:
            return _Blocks(targets, None, targets.bounds)
        squares = (printed_squares if is_printed else centered_squares)(targets, self.model.dimension)
        return _Blocks(targets, squares, bounds_of(targets, squares))

    def _tight(self, promise: Promise, is_joint: bool, is_tree: bool) -> UCRLVTR:
        """Noise at exactly the promise; each of 2 bounds a block and episode fails with its part of half the failure."""
        blocks, d = self._blocks(is_printed=False), self.model.dimension
        shares = self._shares(blocks.bounds, promise)
        share = self._failure / (4 * self.horizon * len(shares))
        norms = (LaplaceNorms if isinstance(promise, PureDP) else GaussianNorms)(d, share)
        structure = (Tree if is_tree else Factorized)(self.horizon) if is_joint else Releases(1)
        noise = _noise(promise, blocks.bounds, shares, d, calibrate(promise, structure))
        if not is_joint:
            return self._built(blocks, LocalSum(noise), norms, shares)
        return self._built(blocks, (TreeSum if is_tree else FactorizedSum)(noise, self.horizon), norms, shares)

    def _shares(self, bounds: Bounds, promise: Promise) -> tuple[float, ...]:
        """(n_blocks,) of the noise, see the module; the largest is 1, and both families of UCRL-VTR+ get their parts."""
        if not self.is_plus:
            return _step_shares(bounds[0], promise)
        n, shares = len(bounds[0]) // 2, list[float]()
        for part, family in ((_WEIGHTED_PART, slice(n)), (1 - _WEIGHTED_PART, slice(n, None))):
            norms, values = bounds[0][family], bounds[1][family]
            inner = _step_shares(norms, promise)
            unit = _noise(promise, (norms, values), inner, self.model.dimension, 1.0)
            factor = unit.sensitivity / (part if isinstance(promise, PureDP) else math.sqrt(part))
            shares += [factor * share for share in inner]
        return tuple(share / max(shares) for share in shares)

    def _printed(self, promise: Promise, is_joint: bool, reading: str) -> UCRLVTR:
        """Printed noise, and the printed bounds on it in place of shifts and widths that follow it."""
        blocks, d, nodes = self._blocks(is_printed=True), self.model.dimension, depth(self.horizon)
        n, length = blocks.targets.n_blocks, self.model.horizon
        shares = (1.0,) * n + ((float(length) ** 4 / d,) * n if self.is_plus else ())
        n_bounds = (24 if self.is_plus else 6) * self.horizon * length
        if isinstance(promise, PureDP):
            statistics = (4 if self.is_plus else 2) * length
            epsilon = (promise.epsilon / nodes if is_joint else promise.epsilon) / statistics
            square = float(d) if self.is_plus else float(length) ** 2
            noise: StackedGaussian | StackedLaplace = _printed_laplace(blocks.bounds, shares, d, square, epsilon, reading)
            scales = noise.scale, noise.scale * shares[-1]
            log = math.log(d / (self._failure / n_bounds))
            norm = 2 * d + 2 * math.sqrt(d * log) + log
        else:
            scales = self._printed_sds(promise, is_joint)
            unit = StackedGaussian(*blocks.bounds, shares, 1.0, diagonal_ratio=GOE if is_joint else EQUAL)
            noise = unit.scaled(scales[0] / unit.sensitivity * _UP)
            norm = 4 * math.sqrt(d) + 2 * math.log(n_bounds / self._failure)
        growth = math.sqrt(nodes if is_joint else self.horizon)
        upsilons = scales[0] * growth * norm, scales[1] * growth * norm
        sums = TreeSum(noise, self.horizon) if is_joint else LocalSum(noise)
        return self._built(blocks, sums, ConstantNorms(upsilons[0], upsilons[0]), shares, upsilons)

    def _printed_sds(self, promise: ApproxDP, is_joint: bool) -> tuple[float, float]:
        """Deviations for the regressions that plan, and for those of squares."""
        level, length, d = (promise.epsilon, promise.delta), self.model.horizon, self.model.dimension
        if self.is_plus:
            if is_joint:
                return vtr_plus_joint_printed_sds(*level, self.horizon, length, d)
            return vtr_plus_local_printed_sds(*level, length, d)
        sd = vtr_joint_printed_sd(*level, self.horizon, length) if is_joint else vtr_local_printed_sd(*level, length)
        return sd, sd

    def _built(
        self,
        blocks: _Blocks,
        sums: PrivateSum,
        norms: NoiseNorms,
        shares: tuple[float, ...],
        upsilons: tuple[float, float] | None = None,
    ) -> UCRLVTR:
        """The algorithm, with printed widths where `upsilons`, the printed bounds on the noise, are given."""
        given = (self.model, self.horizon, self.reward_range, sums, norms, blocks.targets, shares)
        scales: dict[str, Any] = {"ridge": self.ridge, "failure": self._failure, "beta_scale": self.beta_scale}
        if blocks.squares is not None:
            return UCRLVTRPlus(*given, **scales, squares=blocks.squares, published=upsilons)
        return UCRLVTR(*given, **scales, constant_width=None if upsilons is None else self._printed_width(upsilons[0]))

    def _printed_width(self, upsilon: float) -> float:
        """Theorem 7's width as both corollaries choose it."""
        length, square = self.model.horizon, float(self.model.horizon) ** 2
        log = math.log(3 * length / self._failure) + self.model.dimension / 2 * math.log1p(self.horizon * length)
        return 3 * (self.model.parameter_bound + 1) * math.sqrt(self.ridge * square + upsilon) + math.sqrt(2 * square * log)


def _step_shares(norms: tuple[float, ...], promise: Promise) -> tuple[float, ...]:
    """(n_blocks,) of the noise, for bounds on |x|; the largest is 1."""
    exponent = _LAPLACE_SHARE_EXPONENT if isinstance(promise, PureDP) else _SHARE_EXPONENT
    return tuple((bound / max(norms)) ** exponent for bound in norms)


def _noise(
    promise: Promise, bounds: Bounds, shares: tuple[float, ...], dimension: int, multiplier: float
) -> StackedGaussian | StackedLaplace:
    if isinstance(promise, PureDP):
        return StackedLaplace(*bounds, shares, dimension, multiplier)
    return StackedGaussian(*bounds, shares, multiplier)


def _printed_laplace(
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
    return unit.scaled(matrix * square / epsilon / unit.sensitivity * _UP)
