"""The forms of GP-UCB on a pool: its twin, joint and local privacy, with private decision sets or a public one."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import ndtri

from bandana.algorithms.bandits.kernel.fixed_set import FixedSetGPUCB, FixedSetMessages
from bandana.algorithms.bandits.kernel.pooled_gp_ucb import SENSITIVITY, PooledGPUCB
from bandana.algorithms.rkhs.kernels import Kernel, gram
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import (
    ApproxDP,
    Exact,
    Factorized,
    FactorizedSum,
    Gaussian,
    Interval,
    LocalSum,
    PrivateSum,
    Relation,
    Releases,
    TrustModel,
    calibrate,
)
from bandana.privacy_core.checks import failure_of, one_of

NOISE_ON = ("points", "messages")
"""Where joint noise falls: on the sums of points, or on each user's reward, as under local privacy."""


@dataclass(frozen=True)
class PooledSettings:
    """Settings that all forms of GP-UCB on a pool share.

    Raises ValueError where one is out of its range; the message names it.

    Attributes: as in `LinUCBSettings`, and
      pool: what users may bring.
      kernel: in whose space the mean reward lies, at most 1 where both points are the same.
      norm_bound: B; None: half of the range.
      is_strict: refuse a decision set outside the pool, instead of taking it for the nearest one. The refusal is seen by
        others: no promise to users who may bring anything covers it.
      every: rounds between two looks at what was released.
    """

    pool: Pool
    kernel: Kernel
    horizon: int
    reward_range: Interval
    ridge: float = 1.0
    failure: float | None = None
    norm_bound: float | None = None
    beta_scale: float = 1.0
    is_strict: bool = False
    every: int = 1

    def __post_init__(self) -> None:
        failure_of(self.failure, self.horizon)

    def twin(self) -> PooledGPUCB:
        """The non-private twin, GP-UCB with the exact kernel."""
        return self._built(LocalSum(Exact()))

    def private(self, promise: ApproxDP, trust: TrustModel, noise_on: str = NOISE_ON[0]) -> PooledGPUCB:
        """The private form, with noise at exactly the promise.

        Args:
          promise: (epsilon, delta).
          trust: joint, by a factorized sum, or local: users add noise to their own numbers before they are sent. Those are
            2 n_points counts and rewards, or one reward where the pool has one context, which is public.
          noise_on: one of `NOISE_ON`, under joint privacy with one context. Noise on a sum of `points` has at most g(T)^2
            times the variance of one message (`FactorizedSum.noise_variance`), at any number of plays; noise on `messages`
            adds up while a point is played. So messages have less where points are played fewer than g(T)^2 times each.

        Raises:
          ValueError: an argument or a setting out of its range; the message names it.
        """
        is_joint = one_of("trust", trust, (TrustModel.JOINT, TrustModel.LOCAL)) is TrustModel.JOINT
        one_of("noise_on", noise_on, NOISE_ON)
        is_summed = is_joint and (noise_on == NOISE_ON[0] or self.pool.n_contexts > 1)
        multiplier = calibrate(promise, Factorized(self.horizon) if is_summed else Releases(1))
        noise = Gaussian(SENSITIVITY, multiplier, Relation.REPLACE_RECORD)
        return self._built(FactorizedSum(noise, self.horizon) if is_summed else LocalSum(noise), is_summed)

    def _built(self, sums: PrivateSum, is_summed: bool = True) -> PooledGPUCB:
        points = self.pool.points.reshape(-1, self.pool.dimension)
        matrix = gram(self.kernel, points, points)
        matrix.setflags(write=False)
        is_public = self.pool.n_contexts == 1
        failure = failure_of(self.failure, self.horizon)
        # Half of the failure in equal parts for both tails of the numbers that are noisy at each point, in each round.
        quantile = float(-ndtri(failure / ((4 if is_public else 8) * self.horizon * len(points))))
        bound = self.reward_range.width / 2 if self.norm_bound is None else self.norm_bound
        kind = (FixedSetGPUCB if is_summed else FixedSetMessages) if is_public else PooledGPUCB
        return kind(
            self.pool, matrix, self.reward_range, self.horizon, sums, self.ridge, failure, bound, quantile, self.beta_scale,
            self.is_strict, self.every,
        )  # fmt: skip
