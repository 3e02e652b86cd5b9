r"""DP-KLUCB and DP-IMED with Gaussian noise: the same batches, and indices that weigh rewards and Gaussian noise together.

Source: after Azize, Wu, Honda, Orabona, Ito and Basu (2025), Optimal Regret of Bandits under Differential Privacy, whose
noise is Laplace; the divergence, its tail and the privacy are derived here.

Privacy: as in `GrowingBatches`, each reward lies in one batch, and where a batch ends is a function of earlier releases. By
the one-touch lemma (`docs/privacy.md`) one Gaussian release of sensitivity high - low and multiplier 1 / mu touches a
record: the run is mu-GDP, hence (alpha, alpha mu^2 / 2)-RDP for every alpha, with equality.

Why the index is right. For rewards in [0, 1] with mean q, convexity gives E e^(-s X) <= 1 - q + q e^-s. Say batch k of n_k
rewards has weight w_k <= 1 and noise N(0, sigma^2). f(s) = -s x - log(1 - q + q e^-s) is concave with f(0) = 0, so that
f(w s) >= w f(s), and Chernoff's inequality bounds the probability that p <= x by

    exp(-sum_k n_k w_k f(s) + s^2 sigma^2 sum_k w_k^2 / 2) = exp(-N (f(s) - s^2 v / 2)),     N = sum_k w_k n_k,

v = sigma^2 sum_k w_k^2 / N, for every s >= 0: at most exp(-N D_v(x, q)), with no factor in front, and the same for p >= x
>= q, mirrored. With Laplace noise there is a factor, one for each batch. No regret bound is stated: that of
`batch_bounds` takes one divergence for all batches, and v falls as they grow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bandana.algorithms.bandits.finite_arm import smoothed_numba
from bandana.algorithms.bandits.finite_arm.growing_batches import GrowingBatches, Released
from bandana.algorithms.protocol import IntArray
from bandana.privacy_core import Gaussian, Interval, PhaseSum, Relation
from bandana.privacy_core.checks import positive


@dataclass(frozen=True)
class GaussianBatches(GrowingBatches):
    """`GrowingBatches` on Gaussian noise, whose arms are compared by D_v of `smoothed_numba`."""

    @property
    def variance(self) -> float:
        """Variance of a batch's noise, over the squared width of the range."""
        return float((self.sums.mechanism.scale / self.reward_range.width) ** 2)


@dataclass(frozen=True)
class GaussianKLUCB(GaussianBatches):
    """Plays the arm of the largest index max {q in [0, 1] : N D_v(p, q) <= beta log t}.

    Ties of arms whose index is 1 go by p + sqrt(2 v beta log(t) / N): at small mu most early decisions are such ties.

    Attributes:
      beta: exploration; 1 as in DP-KLUCB.
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("beta", self.beta)

    def choose(self, released: Released, out: IntArray) -> None:
        """Writes the batch's arm, or that of the largest index, to (n_reps,) `out`."""
        smoothed_numba.optimistic_arms(
            released.total, released.size, released.noise, released.arm, released.left, released.clock, self.beta,
            self.variance, self.reward_range.low, self.reward_range.width, out,
        )  # fmt: skip


@dataclass(frozen=True)
class GaussianIMED(GaussianBatches):
    """Plays the arm of the least index N D_v(p, p*) + log N, p* the largest of all arms' noisy means, moved into [0, 1]."""

    def choose(self, released: Released, out: IntArray) -> None:
        """Writes the batch's arm, or that of the least index, to (n_reps,) `out`."""
        smoothed_numba.least_divergent_arms(
            released.total, released.size, released.noise, released.arm, released.left, self.variance,
            self.reward_range.low, self.reward_range.width, out,
        )  # fmt: skip


def gaussian_sums(alpha: float, epsilon: float, reward_range: Interval) -> PhaseSum:
    """The sums of batches under (alpha, epsilon)-RDP, which is mu-GDP with mu = sqrt(2 epsilon / alpha)."""
    positive("epsilon", epsilon)
    if not alpha > 1:
        raise ValueError(f"alpha must be a Renyi order above 1, got {alpha!r}")
    # Not below the theorem's noise: rounded up by one part in 1e12.
    multiplier = math.sqrt(alpha / (2 * epsilon)) * (1 + 1e-12)
    return PhaseSum(Gaussian(reward_range.width, multiplier, Relation.REPLACE_REWARD))


def gaussian_klucb(
    n_arms: int, alpha: float, epsilon: float, reward_range: Interval, growth: float, beta: float = 1.0
) -> GaussianKLUCB:
    """DP-KLUCB with Gaussian noise and total privacy (alpha, epsilon)-RDP; batches weighted inversely to their variance.

    Args:
      n_arms: at least 2.
      alpha: Renyi order, above 1.
      epsilon: Renyi divergence bound, above 0.
      reward_range: declared range of a reward.
      growth: rounds of a batch over those of its arm before.
      beta: exploration.
    """
    return GaussianKLUCB(n_arms, reward_range, gaussian_sums(alpha, epsilon, reward_range), growth, True, beta)


def gaussian_imed(n_arms: int, alpha: float, epsilon: float, reward_range: Interval, growth: float) -> GaussianIMED:
    """DP-IMED with Gaussian noise and total privacy (alpha, epsilon)-RDP; arguments as for `gaussian_klucb`."""
    return GaussianIMED(n_arms, reward_range, gaussian_sums(alpha, epsilon, reward_range), growth, True)
