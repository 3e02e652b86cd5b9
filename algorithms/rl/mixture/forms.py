r"""UCRL-VTR and UCRL-VTR+ in all their forms: the twin, and joint or local privacy with Gaussian or with Laplace noise.

Noise falls on the steps of an episode in shares R_h^(8/5), R_h the bound on |x_h|, and Laplace noise in shares
R_h^(4/3): of all shares with one price they make the sum over steps of the exploration that noise causes smallest, as a
step's width is about C_w sqrt(noise), and its price R_h^4 / noise^2, or R_h^2 / noise. As printed all R_h are H, and all
shares equal.

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

import numpy as np

from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.papers.luyo import depth
from bandana.algorithms.regression.noise_norms import ConstantNorms, GaussianNorms, LaplaceNorms, NoiseNorms
from bandana.algorithms.regression.norms import Bounded
from bandana.algorithms.rl.mixture.calibrations import Parts, Promise, calibrations, printed_laplace_scale, printed_sd
from bandana.algorithms.rl.mixture.targets import Targets, centered_targets, printed_targets
from bandana.algorithms.rl.mixture.vtr import UCRLVTR
from bandana.algorithms.rl.mixture.vtr_plus import (
    Squares,
    UCRLVTRPlus,
    bounds_of,
    centered_squares,
    printed_squares,
    with_proxies,
)
from bandana.privacy_core import (
    EQUAL,
    GOE,
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

_UP = 1 + 1e-12
"""Not below a printed scale: rounded up by one part in 1e12."""
_SHARE_EXPONENT, _LAPLACE_SHARE_EXPONENT = 8 / 5, 4 / 3
_WEIGHTED_PARTS = {"even": 0.5, "weighted": 0.8}
"""Share of the price, mu^2 or epsilon, that the weighted regressions of UCRL-VTR+ get: plans are made from them alone."""

Bounds = tuple[tuple[float, ...], tuple[float, ...]]
"""(n_blocks,) on |x| and on |y|."""
Noise = StackedGaussian | StackedLaplace


class _Blocks(NamedTuple):
    """All regressions of an algorithm: their targets, the squares of UCRL-VTR+, and the bounds on what is regressed."""

    targets: Targets
    squares: Squares | None
    bounds: Bounds


@dataclass(frozen=True)
class VTR(Bounded):
    """Settings that all forms of UCRL-VTR, or of UCRL-VTR+, share.

    Raises ValueError where one is out of its range; the message names it.

    Attributes: as in `UCRLVTR`, and
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
        blocks = self._blocks("centered", "proxy")
        return self._built(blocks, LocalSum(Exact()), ConstantNorms(0.0, 0.0), (1.0,) * len(blocks.bounds[0]))

    def private(self, promise: Promise, trust: TrustModel, parts: Parts, reading: str = "l1-constants") -> UCRLVTR:
        r"""The private form with the given promise.

        Under local privacy a user gets the parameters and widths, plans with the public features, and sends (x x^T, y x) of
        all steps with noise; the server adds messages up.

        Args:
          promise: approximate privacy, with Gaussian noise, or pure privacy, with Laplace noise.
          trust: joint or local.
          parts: an option for each part that the form has, see `calibrations`.
            `noise`: at exactly the promise for the whole episode, or for the whole message (`tight`); or at what the
              printed noise below spends on values in [0, H], with its diagonal, or its ratio of vectors (`printed`).
            `sum`: `factorized` or `tree`; a tree where privacy is pure.
            `width`: with `exact`, proved bounds on the noise, and the widths of `UCRLVTR` and `UCRLVTRPlus`; with
              `printed`, the bounds, shifts and widths below, for this noise and these values.
            `values`: `printed_targets` or `centered_targets`. Noise follows their bounds: see the module on shares.
            `split`: of UCRL-VTR+, between the weighted regressions and the squares.
            `weights`: of UCRL-VTR+, see `UCRLVTRPlus`.
          reading: one of `READINGS`, for `noise: printed` of pure privacy. With `l2-constants` the claim of UCRL-VTR is
            false from d = 3 on for H of at least 4, and from d = 4 on for any: the ledger then shows more than the claim.

        Returns:
          an algorithm; a `UCRLVTRPlus` where `is_plus`.

        Raises:
          ValueError: an argument or a setting out of its range; the message names it.

        Printed constants, K_0 = ceil(log2 K + 1), n = K_0 for joint and K for local privacy: U bounds the norm of a noise
        matrix, and 2 U is the shift, for local privacy from the first episode on. With other values their bound stands for
        H, with a factorized sum its largest deviation for sigma sqrt(n).

        - UCRL-VTR (Corollaries 5 and 6): U = sigma sqrt(n) (4 sqrt d + 2 log(6KH/p)), lambda = H^2, and for all k beta =
          3 (C_w + 1) sqrt(lambda + U) + sqrt(2 H^2 log(3H (1 + KH)^(d/2) / p)). Joint: a tree with noise (Z + Z^T)/sqrt 2 a
          node (Appendix C.2), Z and the vectors of deviation sigma = (32 H^2 / epsilon) sqrt(2 H K_0 log(8H/delta)
          log(4/delta) log(16 H K_0/delta)). Local: every entry of the symmetric matrices and of the vectors gets noise of
          deviation sigma = (4 H^3 / epsilon) sqrt(2 log(4H/delta)).
        - UCRL-VTR+ (Corollaries 10 and 11): a floor of H^2 / d, U_i = sigma_i sqrt(n) (4 sqrt d + 2 log(24KH/p)), lambda =
          1, and the widths beta-hat, beta-tilde, beta-check of eqs. 6 and 7 (the proof for local privacy misses the factor
          3 in one upper bound, which eq. 7 has). Joint: such trees, sigma_1 = (64 d / epsilon) L for the weighted
          regressions and sigma_2 = (64 H^4 / epsilon) L for the squares, L = sqrt(2 H K_0 log(16H/delta) log(8/delta)
          log(32 H K_0/delta)). Local: sigma_1 = (8 d H / epsilon) sqrt(2 log(8H/delta)), and sigma_2 with H^4 for d. As
          both are in proportion to the sensitivities, the split is even.
        - Pure privacy (Remarks 1 and 6, which have no constants): the trees, values and widths above, with Laplace noise of
          scale m K_0 (sensitivity) / epsilon by simple composition over m = 2 H statistics, 4 H of UCRL-VTR+, and K_0
          nodes; locally without the K_0. U = (scale) sqrt(n) (2 d + 2 sqrt(d l) + l), l = log(6KHd / p), 24 for 6 in
          UCRL-VTR+, after Claim 29 and the sqrt(K_0) of Corollary 5; for sums of Laplace noises neither is proved.
        """
        if trust not in (TrustModel.JOINT, TrustModel.LOCAL):
            raise ValueError(f"trust must be joint or local, got {trust}")
        is_joint, is_pure = trust is TrustModel.JOINT, isinstance(promise, PureDP)
        _check_parts(parts, calibrations(self.is_plus, is_joint, is_pure))
        positive("epsilon", promise.epsilon)
        blocks, is_tree = self._blocks(parts["values"], parts.get("weights", "")), parts.get("sum", "tree") == "tree"
        if parts["noise"] == "printed":
            multiplier, shape = self._printed_noise(promise, is_joint, reading)
            if is_joint and not is_tree:
                multiplier *= _UP / math.sqrt(Tree(self.horizon).n_nodes)
        else:
            structure = (Tree if is_tree else Factorized)(self.horizon) if is_joint else Releases(1)
            multiplier, shape = calibrate(promise, structure), {}
        shares = self._shares(promise, blocks.bounds, parts.get("split", "even"), shape)
        noise = _noise(promise, blocks.bounds, shares, self.model.dimension, shape).scaled(multiplier)
        sums: PrivateSum = LocalSum(noise)
        if is_joint:
            sums = TreeSum(noise, self.horizon) if is_tree else FactorizedSum(noise, self.horizon)
        is_published = parts["width"] == "printed"
        return self._built(blocks, sums, self._norms(promise, sums, shares, is_published), shares, is_published)

    def _blocks(self, values: str, weights: str) -> _Blocks:
        targets = (printed_targets if values == "printed" else centered_targets)(self.model)
        if not self.is_plus:
            return _Blocks(targets, None, targets.bounds)
        squares = (printed_squares if values == "printed" else centered_squares)(targets, self.model.dimension)
        if weights == "proxy":
            squares = with_proxies(squares, targets, self.model.dimension)
        return _Blocks(targets, squares, bounds_of(targets, squares))

    def _printed_noise(self, promise: Promise, is_joint: bool, reading: str) -> tuple[float, dict[str, Any]]:
        """Noise multiplier of the printed noise on a node or message, for the values that it is printed for; its shape."""
        d, printed = self.model.dimension, self._blocks("printed", "variance")
        given = is_joint, self.is_plus, self.horizon, self.model
        if isinstance(promise, PureDP):
            scale, ratio = printed_laplace_scale(promise, *given, reading)
            shape = {"vector_ratio": ratio}
        else:
            scale, shape = printed_sd(promise, *given), {"diagonal_ratio": GOE if is_joint else EQUAL}
        shares = self._shares(promise, printed.bounds, "even", shape)
        unit = _noise(promise, printed.bounds, shares, d, shape)
        return scale / (unit.sensitivity * shares[0]) * _UP, shape

    def _shares(self, promise: Promise, bounds: Bounds, split: str, shape: dict[str, Any]) -> tuple[float, ...]:
        """(n_blocks,) of the noise, see the module; the largest is 1, and both families of UCRL-VTR+ get their parts."""
        if not self.is_plus:
            return _step_shares(bounds[0], promise)
        n, weighted, shares = len(bounds[0]) // 2, _WEIGHTED_PARTS[split], list[float]()
        for part, family in ((weighted, slice(n)), (1 - weighted, slice(n, None))):
            norms, values = bounds[0][family], bounds[1][family]
            inner = _step_shares(norms, promise)
            unit = _noise(promise, (norms, values), inner, self.model.dimension, shape)
            factor = unit.sensitivity / (part if isinstance(promise, PureDP) else math.sqrt(part))
            shares += [factor * share for share in inner]
        return tuple(share / max(shares) for share in shares)

    def _norms(self, promise: Promise, sums: Any, shares: tuple[float, ...], is_published: bool) -> NoiseNorms:
        """Bounds on the noise at share 1: the printed U; or proved ones, of which each fails with its part of half p."""
        d, is_pure = self.model.dimension, isinstance(promise, PureDP)
        if not is_published:
            share = self._failure / (4 * self.horizon * len(shares))
            return (LaplaceNorms if is_pure else GaussianNorms)(d, share)
        growth = float(self.horizon)
        if isinstance(sums, TreeSum):
            growth = depth(self.horizon)
        elif isinstance(sums, FactorizedSum):
            growth = float(np.max(sums.factorization.variances))
        n_bounds = (24 if self.is_plus else 6) * self.horizon * self.model.horizon
        if is_pure:
            log = math.log(d / (self._failure / n_bounds))
            norm = 2 * d + 2 * math.sqrt(d * log) + log
        else:
            norm = 4 * math.sqrt(d) + 2 * math.log(n_bounds / self._failure)
        upsilon = sums.mechanism.scale * math.sqrt(growth) * norm
        return ConstantNorms(upsilon, upsilon)

    def _built(
        self, blocks: _Blocks, sums: PrivateSum, norms: NoiseNorms, shares: tuple[float, ...], is_published: bool = False
    ) -> UCRLVTR:
        given = (self.model, self.horizon, self.reward_range, sums, norms, blocks.targets, shares)
        scales: dict[str, Any] = {"ridge": self.ridge, "failure": self._failure, "beta_scale": self.beta_scale}
        if blocks.squares is not None:
            return UCRLVTRPlus(*given, **scales, squares=blocks.squares, is_published=is_published)
        return UCRLVTR(*given, **scales, is_published=is_published)


def _check_parts(parts: Parts, known: dict[str, dict[str, str]]) -> None:
    """Raises ValueError where a part is missing, or is none of the form's, or has another option."""
    names = known["tight"]
    if set(parts) != set(names):
        raise ValueError(f"parts must be {', '.join(names)}, got {', '.join(parts) or 'none'}")
    for name, option in parts.items():
        options = dict.fromkeys(each[name] for each in known.values())
        if option not in options:
            raise ValueError(f"{name} must be one of {', '.join(options)}, got {option!r}")


def _step_shares(norms: tuple[float, ...], promise: Promise) -> tuple[float, ...]:
    """(n_blocks,) of the noise, for bounds on |x|; the largest is 1."""
    exponent = _LAPLACE_SHARE_EXPONENT if isinstance(promise, PureDP) else _SHARE_EXPONENT
    return tuple((bound / max(norms)) ** exponent for bound in norms)


def _noise(promise: Promise, bounds: Bounds, shares: tuple[float, ...], dimension: int, shape: dict[str, Any]) -> Noise:
    """Noise of multiplier 1."""
    if isinstance(promise, PureDP):
        return StackedLaplace(*bounds, shares, dimension, 1.0, **shape)
    return StackedGaussian(*bounds, shares, 1.0, **shape)
