r"""Bandits that forget nothing: DP-KLUCB and DP-IMED on sums of noisy batches, KL-UCB and IMED on exact ones.

Source: Azize, Wu, Honda, Orabona, Ito and Basu (2025), Optimal Regret of Bandits under Differential Privacy (NeurIPS; arXiv
2505.05613). We could read its abstract and a summary with d_epsilon, both indices, Proposition 2 and Theorems 1 and 2, and
not its pseudo-code and proofs: batches, privacy and the bounds on regret are derived here. Without privacy: Garivier and
Cappe (2011), KL-UCB; Honda and Takemura (2015), IMED.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.algorithms.bandits.finite_arm import batches_numba
from bandana.algorithms.bandits.reward_noise import gaussian, laplace
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.privacy_core import Exact, Gaussian, Interval, Ledger, OpenPhase, PhaseSum
from bandana.privacy_core.checks import positive


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    phase: OpenPhase
    """The reward sum of the batch under way."""


class Released(NamedTuple):
    """All that decisions are made from; a function of noisy sums and of public counts."""

    total: FloatArray
    """(n_reps, n_arms) weighted sum of an arm's noisy batch sums."""
    size: FloatArray
    """(n_reps, n_arms) the same sum of the batches' lengths; 0 before the first."""
    noise: FloatArray
    """(n_reps, n_arms) sum of the batches' squared weights: the variance of the noise in `total`, over that of one batch."""
    length: IntArray
    """(n_reps, n_arms) of the last complete batch."""
    pulls: IntArray
    """(n_reps, n_arms)"""
    arm: IntArray
    """(n_reps,) the arm of the batch under way."""
    left: IntArray
    """(n_reps,) rounds left in it; 0 asks for a new decision."""
    clock: IntArray
    """(n_reps,) rounds played."""


@dataclass(frozen=True)
class GrowingBatches:
    r"""One arm a batch, the next arm chosen from all noisy batch sums of every arm.

    Every arm is played once. Then an arm is chosen by its index and played for ceil(growth n) rounds, n its rounds so far,
    so that they grow by the paper's alpha = 1 + growth. The sum of the batch's rewards is released with Laplace(1 / epsilon)
    noise, and added to the noisy sums of the arm's earlier batches. The mean p of an arm with N rewards in m batches thus
    has the noise of m Laplace variables, over N.

    Unit of privacy: one reward (one round). Claim: epsilon-DP of all actions (Proposition 2), central model. Sensitivity: a
    sum of rewards clipped to [low, high] moves by at most high - low when one is replaced, and each reward lies in one
    batch. Where a batch ends is a function of earlier releases (a batch's length of the arm's count, its arm of noisy sums),
    so by the one-touch lemma (`docs/privacy.md`) one Laplace release of multiplier 1 / epsilon touches a record, and the run
    is epsilon-DP. Adding noisy sums up is post-processing: nothing is forgotten, and nothing is read twice. Noise that is
    added anew to the exact sum of all batches would cost epsilon once for every later batch of the arm.
    Public: arms, horizon, growth, the reward range. Cost: O(n_arms) a decision, about n_arms log(T) / log(1 + growth) of
    them.

    Departures from the paper, the second in the parts of the calibrations, `PARTS`:
      Batches have ceil(growth n) rounds; the paper's own rounding we do not know.
      `estimator`: the plain `sum` of all batches, as known, or batches `weighted` inversely to the variance of their
        means, the last one with weight 1. N is then the weighted number of rewards. It is post-processing, and spares small
        epsilons the noise of many short batches.
    Rewards of another range are brought to [0, 1].

    Why the index is right. For rewards in [0, 1] with mean q, convexity gives E e^(-s X) <= 1 - q + q e^-s, and d_epsilon(x,
    q) = max over 0 <= s <= epsilon of f(s) = -s x - log(1 - q + q e^-s) (the dual of `divergences.private_kl`). Say batch k
    has weight w_k <= 1. With s = (1 - h) s*, s* the maximum's place, f is concave with f(0) = 0, so f(w s) >= w (1 - h)
    f(s*), and by Chernoff's inequality the probability that p <= x is at most

        exp(-(1 - h) N d_epsilon(x, q)) prod_k 1 / (1 - (1 - h)^2 w_k^2)          for every h in (0, 1), x <= q,

    and the same for p >= x >= q, mirrored. The exponent is that of one Laplace variable, however many there are
    (Proposition 1 of the paper says so for m / N -> 0); `batch_bounds` turns this into bounds on regret at any horizon.

    Attributes:
      n_actions: number of arms.
      reward_range: declared range of a reward; every reward is clipped to it.
      sums: the phase sum of a batch.
      growth: rounds of a batch over those of its arm before; the paper's alpha is 1 + growth.
      weighted: whether batches count inversely to their variance.
    """

    n_actions: int
    reward_range: Interval
    sums: PhaseSum
    growth: float
    weighted: bool

    def __post_init__(self) -> None:
        if self.n_actions < 2:
            raise ValueError(f"n_actions must be at least 2, got {self.n_actions!r}")
        positive("growth", self.growth)

    @property
    def epsilon(self) -> float:
        """The epsilon of Laplace noise that has the variance of a sum's noise; infinite for the twin."""
        scale = self.sums.mechanism.scale
        factor = math.sqrt(2) if isinstance(self.sums.mechanism, Gaussian) else 1.0
        return factor * self.reward_range.width / scale if scale > 0 else math.inf

    @property
    def variance(self) -> float:
        """Variance of a batch's noise that D_v counts with, over the squared width of the range; 0: d_epsilon counts."""
        return 0.0

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The states before the first pull."""
        table = (n_reps, self.n_actions)
        released = Released(
            total=np.zeros(table),
            size=np.zeros(table),
            noise=np.zeros(table),
            length=np.zeros(table, dtype=np.int64),
            pulls=np.zeros(table, dtype=np.int64),
            arm=np.zeros(n_reps, dtype=np.int64),
            left=np.zeros(n_reps, dtype=np.int64),
            clock=np.zeros(n_reps, dtype=np.int64),
        )
        return Sensitive(self.sums.init(n_reps)), released

    @abstractmethod
    def choose(self, released: Released, out: IntArray) -> None:
        """Writes the batch's arm, or the one that the index chooses, to (n_reps,) `out`."""

    def act(self, released: Released, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the batch's arm, or the one that the index chooses."""
        chosen = np.empty(len(released.clock), dtype=np.int64)
        self.choose(released, chosen)
        return chosen

    def hold(self, released: Released, actions: IntArray) -> IntArray:
        """(n_reps,) rounds until the batch ends."""
        lengths = np.empty(len(actions), dtype=np.int64)
        batches_numba.batch_lengths(released.pulls, released.left, actions, self.growth, lengths)
        return lengths

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds to the batch's sum; where the batch is complete, releases it and adds it to the arm's noisy sum."""
        phase = self.sums.add(sensitive.phase, record.rewards[:, 0], record.n_records)
        ended = np.empty(len(record.user), dtype=np.int64)
        n_ended = batches_numba.advance(
            released.pulls, released.arm, released.left, released.clock,
            record.actions[:, 0], record.n_records, self.growth, ended,
        )  # fmt: skip
        if n_ended:
            phase = self._release(phase, released, ledger, ended[:n_ended])
        return Sensitive(phase), released

    def _release(self, phase: OpenPhase, released: Released, ledger: Ledger, ended: IntArray) -> OpenPhase:
        phase, noisy, n_samples = self.sums.close(phase, ledger, None if len(ended) == ledger.n_reps else ended)
        self.learn(released, ended, released.arm[ended], noisy, n_samples)
        return phase

    def learn(self, released: Released, reps: IntArray, arm: IntArray, noisy: FloatArray, n_samples: IntArray) -> None:
        """Adds ended batches, (n_rows,) each, to their arms' noisy sums, in place."""
        batches_numba.accumulate(
            released.total, released.size, released.noise, released.length, reps, arm, noisy, n_samples, self.epsilon,
            self.weighted,
        )  # fmt: skip


@dataclass(frozen=True)
class BatchedKLUCB(GrowingBatches):
    r"""`GrowingBatches` that play the arm of the largest index

        max {q in [0, 1] : N d_epsilon(p, q) <= beta log t},      p the noisy mean moved into [0, 1].

    Source: DP-KLUCB, with beta = 1; without privacy KL-UCB. Ties of arms whose index is 1, which the paper leaves open, go
    by beta log(t) / N + epsilon p, with which indices below 1 grow: at small epsilon most early decisions are such ties.

    Attributes:
      beta: exploration; 1 in the paper. The bound on the regret at a finite horizon needs more.
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("beta", self.beta)

    def choose(self, released: Released, out: IntArray) -> None:
        """Writes the batch's arm, or that of the largest index, to (n_reps,) `out`."""
        batches_numba.optimistic_arms(
            released.total, released.size, released.noise, released.arm, released.left, released.clock, self.beta,
            self.epsilon, self.variance, self.reward_range.low, self.reward_range.width, out,
        )  # fmt: skip


@dataclass(frozen=True)
class BatchedIMED(GrowingBatches):
    r"""`GrowingBatches` that play the arm of the least index

        N d_epsilon(p, p*) + log N,      p the noisy mean moved into [0, 1], p* the largest of all arms.

    It needs neither a horizon nor an exploration parameter. Source: DP-IMED; without privacy IMED. Ties go to the lowest
    arm.
    """

    def choose(self, released: Released, out: IntArray) -> None:
        """Writes the batch's arm, or that of the least index, to (n_reps,) `out`."""
        batches_numba.least_divergent_arms(
            released.total, released.size, released.noise, released.arm, released.left, self.epsilon, self.variance,
            self.reward_range.low, self.reward_range.width, out,
        )  # fmt: skip


@dataclass(frozen=True)
class GaussianBatches(GrowingBatches):
    r"""`GrowingBatches` on Gaussian noise, whose arms are compared by the divergence D_v of `batches_numba`; ours.

    Privacy: as in `GrowingBatches`, each reward lies in one batch, and where a batch ends is a function of earlier releases.
    By the one-touch lemma (`docs/privacy.md`) one Gaussian release of sensitivity high - low and multiplier 1 / mu touches
    a record: the run is mu-GDP, hence (alpha, alpha mu^2 / 2)-RDP for every alpha, with equality.

    Why the index is right. For rewards in [0, 1] with mean q, convexity gives E e^(-s X) <= 1 - q + q e^-s. Say batch k has
    n_k rewards, weight w_k <= 1 and noise N(0, sigma^2). f(s) = -s x - log(1 - q + q e^-s) is concave with f(0) = 0, so
    that f(w s) >= w f(s), and Chernoff's inequality bounds the probability that p <= x by

        exp(-sum_k n_k w_k f(s) + s^2 sigma^2 sum_k w_k^2 / 2) = exp(-N (f(s) - s^2 v / 2)),     N = sum_k w_k n_k,

    v = sigma^2 sum_k w_k^2 / N, for every s >= 0: at most exp(-N D_v(x, q)), with no factor in front, and the same for
    p >= x >= q, mirrored. With Laplace noise there is a factor, one for each batch. No regret bound is stated: that of
    `batch_bounds` takes one divergence for all batches, and v falls as they grow.
    """

    @property
    def variance(self) -> float:
        """Variance of a batch's noise, over the squared width of the range."""
        return float((self.sums.mechanism.scale / self.reward_range.width) ** 2)


@dataclass(frozen=True)
class GaussianKLUCB(GaussianBatches, BatchedKLUCB):
    """Plays the arm of the largest index max {q in [0, 1] : N D_v(p, q) <= beta log t}; its fields are as in `BatchedKLUCB`.

    Ties of arms whose index is 1 go by p + sqrt(2 v beta log(t) / N): at small mu most early decisions are such ties.
    """


@dataclass(frozen=True)
class GaussianIMED(GaussianBatches, BatchedIMED):
    """Plays the arm of the least index N D_v(p, p*) + log N, p* the largest of all arms' noisy means, moved into [0, 1]."""


PARTS = {"as-known": {"estimator": "sum"}, "tight": {"estimator": "weighted"}}
"""Calibration of DP-KLUCB and of DP-IMED -> its part, see `GrowingBatches`; the noise is exact in both."""


def batch_sums(epsilon: float | None, reward_range: Interval) -> PhaseSum:
    """The sums of batches under epsilon-DP, with Laplace noise of scale width / epsilon; None: exact, for the twin."""
    return PhaseSum(Exact() if epsilon is None else laplace(epsilon, reward_range))


def dp_klucb(
    n_arms: int, epsilon: float | None, reward_range: Interval, parts: Mapping[str, str], growth: float, beta: float = 1.0
) -> BatchedKLUCB:
    """DP-KLUCB with total privacy epsilon-DP.

    Args:
      n_arms: at least 2.
      epsilon: above 0; None: the non-private twin.
      reward_range: declared range of a reward.
      parts: options of the calibration, see `PARTS`; those of the twin do not matter.
      growth: rounds of a batch over those of its arm before.
      beta: exploration.
    """
    weighted = parts["estimator"] == "weighted"
    return BatchedKLUCB(n_arms, reward_range, batch_sums(epsilon, reward_range), growth, weighted, beta)


def dp_imed(
    n_arms: int, epsilon: float | None, reward_range: Interval, parts: Mapping[str, str], growth: float
) -> BatchedIMED:
    """DP-IMED with total privacy epsilon-DP; arguments as for `dp_klucb`."""
    weighted = parts["estimator"] == "weighted"
    return BatchedIMED(n_arms, reward_range, batch_sums(epsilon, reward_range), growth, weighted)


def gaussian_klucb(
    n_arms: int, alpha: float, epsilon: float, reward_range: Interval, growth: float, beta: float = 1.0
) -> GaussianKLUCB:
    """DP-KLUCB with Gaussian noise and total privacy (alpha, epsilon)-RDP; batches weighted inversely to their variance.

    Args: as in `dp_klucb`, and
      alpha: Renyi order, above 1.
      epsilon: Renyi divergence bound, above 0.
    """
    return GaussianKLUCB(n_arms, reward_range, PhaseSum(gaussian(alpha, epsilon, reward_range)), growth, True, beta)


def gaussian_imed(n_arms: int, alpha: float, epsilon: float, reward_range: Interval, growth: float) -> GaussianIMED:
    """DP-IMED with Gaussian noise and total privacy (alpha, epsilon)-RDP; arguments as for `gaussian_klucb`."""
    return GaussianIMED(n_arms, reward_range, PhaseSum(gaussian(alpha, epsilon, reward_range)), growth, True)
