"""CAPRI in all its forms: the non-private twin, joint and local privacy, with printed or tight noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bandana.algorithms.bandits.capri.capri import EXACT, NEAREST, PRINTED, ProjectedElimination
from bandana.algorithms.bandits.capri.gathering import EachAlone, Together
from bandana.algorithms.bandits.capri.projection import epoch_lengths
from bandana.algorithms.bandits.capri.widths import ExactWidth, PrintedWidth, Width
from bandana.algorithms.papers.pavlovic import printed_sd
from bandana.algorithms.regression.norms import Bounded
from bandana.algorithms.rkhs.features import exact_on
from bandana.algorithms.rkhs.kernels import Kernel
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import ApproxDP, Exact, Gaussian, Interval, Mechanism, TrustModel, calibrate
from bandana.privacy_core.checks import at_least, failure_of, non_negative, one_of, positive

NOISE, SENSITIVITY, WIDTH = "noise", "sensitivity", "width"
PARTS: dict[str, dict[str, str]] = {
    "printed": {NOISE: "printed", SENSITIVITY: PRINTED, WIDTH: "printed"},
    "printed-lemma-6-6": {NOISE: "printed", SENSITIVITY: PRINTED, WIDTH: "lemma-6-6"},
    "tight": {NOISE: "tight", SENSITIVITY: EXACT, WIDTH: "exact"},
}
"""Calibration -> part -> option, the same under joint and local privacy; each combination keeps the claim.

`noise` is the budget that is spent, of which a release gets all: that of eq. (5), or the claim's. `sensitivity` is what a
record is said to move a sum by: 2 B sigma_max, or 2 B s_max, which is what it can. `width` is post-processing: eq. (7), the
same with the beta_1 of Lemma 6.6, or `ExactWidth`.
"""
_LEAST_VALUE = 1e-10
"""Part of the largest eigenvalue from which on one counts, as in `projection`: where rounding practically never decides."""
_UP = 1 + 1e-12
"""Not below the paper's noise: rounded up by one part in 1e12."""


@dataclass(frozen=True)
class CAPRI(Bounded):
    """Settings that all forms of CAPRI share.

    Raises ValueError where one is out of its range; the message names it.

    Attributes:
      pool: the contexts and their law. Where the generator of contexts is a public offline data set, its law is their
        frequencies there.
      kernel: of the points; k(w, w) at most 1.
      horizon: T, at least 2.
      reward_range: declared range of a reward.
      ridge: tau.
      failure: probability that some interval fails; None: 1 / horizon.
      norm_bound: of f, in the kernel's space.
      beta_scale: factor on all widths.
      error_scale: factor on all parts of them but that of the privacy noise. They are made for any function of the norm and
        for all points at once; below 1 nothing is proved of them. Where noise is the larger part, as it is in early epochs,
        a small `beta_scale` drops good actions, this one does not.
      strangers: `refuse` or `nearest`.
      seed: of the public coins.
    """

    pool: Pool
    kernel: Kernel
    horizon: int
    reward_range: Interval
    ridge: float = 1.0
    failure: float | None = None
    norm_bound: float = 1.0
    beta_scale: float = 1.0
    error_scale: float = 1.0
    strangers: str = NEAREST
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("horizon", self.horizon, 2)
        failure_of(self.failure, self.horizon)
        positive("norm_bound", self.norm_bound)
        positive("ridge", self.ridge)
        non_negative("error_scale", self.error_scale)

    def twin(self) -> ProjectedElimination:
        """The non-private twin, with the intervals of `tight`."""
        return self._built(Exact(), False, EXACT, self._exact_width())

    def private(self, promise: ApproxDP, trust: TrustModel, calibration: str | Mapping[str, str]) -> ProjectedElimination:
        """The private form with the given promise.

        Args:
          promise: (epsilon, delta), epsilon above 0.
          trust: joint; or local, where each message has the noise that joint privacy gives an epoch. An epoch's noise then
            grows with sqrt(T_r), and the factors log T of `printed` have no reason.
          calibration: `printed` (beta_1 of eq. 7), `printed-lemma-6-6` (that of Lemma 6.6, the same noise) or `tight`; or a
            mixture of their parts, see `PARTS`.

        Raises:
          ValueError: an argument or a setting out of its range; the message names it.
        """
        positive("epsilon", promise.epsilon)
        is_local = one_of("trust", trust, (TrustModel.JOINT, TrustModel.LOCAL)) is TrustModel.LOCAL
        parts = PARTS[one_of("calibration", calibration, tuple(PARTS))] if isinstance(calibration, str) else calibration
        if parts[NOISE] == "tight":
            multiplier = calibrate(promise)
        else:
            multiplier = printed_sd(promise.epsilon, promise.delta, self.horizon, 1.0, 1.0, "natural") / 2 * _UP
        is_exact = parts[WIDTH] == "exact"
        width = self._exact_width() if is_exact else self._printed_width(promise, is_local, parts[WIDTH])
        return self._built(Gaussian(self.reward_range.width, multiplier), is_local, parts[SENSITIVITY], width)

    @property
    def _n_points(self) -> int:
        return int(self.pool.points.shape[0] * self.pool.points.shape[1])

    def _exact_width(self) -> Width:
        n_epochs = len(epoch_lengths(self.horizon))
        return ExactWidth(self._half, float(self.norm_bound), self._failure, n_epochs, float(self.error_scale))

    def _printed_width(self, promise: ApproxDP, is_local: bool, reading: str) -> Width:
        bound = max(self._half, float(self.norm_bound))
        beta, readings = printed_betas(
            promise.epsilon, promise.delta, self.horizon, self._n_points, self._failure, bound, float(self.ridge)
        )
        return PrintedWidth(beta, readings[reading], is_local, float(self.error_scale))

    def _built(self, mechanism: Mechanism, is_local: bool, sensitivity: str, width: Width) -> ProjectedElimination:
        points = self.pool.points.reshape(self._n_points, -1)
        features = np.ascontiguousarray(exact_on(self.kernel, points, least=_LEAST_VALUE)(points))
        gathering = EachAlone(mechanism) if is_local else Together(mechanism)
        return ProjectedElimination(
            self.pool, features, self.reward_range, self.horizon, gathering, width, sensitivity, self.ridge,
            self.beta_scale, self.strangers, self.seed,
        )  # fmt: skip


def printed_betas(
    epsilon: float, delta: float, horizon: int, n_points: int, failure: float, bound: float, ridge: float
) -> tuple[float, dict[str, float]]:
    """Beta of Lemma 6.6, and beta_1 as eq. (7) (`printed`) and as Lemma 6.6 (`lemma-6-6`) print it.

    Both at failure / (|W| T log T).

    Args:
      epsilon: of the claim.
      delta: of the claim.
      horizon: T.
      n_points: |W|.
      failure: the paper's delta.
      bound: B.
      ridge: tau.

    Source: Pavlovic, Salgia and Zhao, eq. (7) and Lemma 6.6.
    """
    log_t = math.log(horizon)
    share = failure / (n_points * horizon * log_t)
    rounds = math.log(168 * horizon / share)
    beta = bound * (90 * math.sqrt(rounds) + 52 * math.sqrt(rounds * math.log(12 / share) / ridge))
    beta += 3 * bound * math.sqrt(2 * math.log(6 / share)) + math.sqrt(24 * ridge)
    noise = math.sqrt(math.log(1.25 * log_t / delta)) * log_t / epsilon
    return beta, {
        "printed": noise * math.sqrt(8 * bound * math.log(log_t * n_points / failure)),
        "lemma-6-6": noise * 8 * bound * math.log(3 / share),
    }
