"""Indices of optimistic policies: what an episode's noisy sum says of its arm, and which arm is the most promising.

An index reads the law of the noise in one place: how its scale enters the estimate. On exact sums the scale is 0 and each
index is that of the non-private twin.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bandana.algorithms.bandits.finite_arm import episodes_numba, indices_numba
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval


class Released(NamedTuple):
    """All that decisions are made from; a function of noisy sums and of public counts."""

    mean: FloatArray
    """(n_reps, n_arms), in units of reward."""
    deviation: FloatArray
    """(n_reps, n_arms), square root of the estimate's sub-Gaussian variance proxy; infinite before the first pull."""
    pulls: IntArray
    """(n_reps, n_arms)"""
    arm: IntArray
    """(n_reps,) the arm of the episode under way."""
    left: IntArray
    """(n_reps,) rounds left in it; 0 asks for a new decision."""
    clock: IntArray
    """(n_reps,) rounds played."""
    tail: FloatArray
    """(n_reps, n_arms) Laplace scale of the noise on the mean, where the index keeps it apart; else 0."""


class Ended(NamedTuple):
    """Episodes that have ended, with their noisy sums."""

    reps: IntArray
    """(n_rows,) the replicates."""
    arm: IntArray
    """(n_rows,) the arms."""
    noisy: FloatArray
    """(n_rows,) noisy sums of rewards."""
    n_samples: IntArray
    """(n_rows,) rewards in each."""
    share: float
    """The part of the samples that the bonus counts."""
    scale: float
    """Scale of the noise on a sum, as its mechanism states it."""
    width: float
    """Width of the reward range."""
    combines: bool
    """True if past episodes count too."""


class Index(ABC):
    """An upper confidence bound on each arm's mean, from its noisy episode sums.

    It is mean + sqrt(2 beta (more + log t)) deviation + beta log(t) tail, where nothing else is said.
    """

    combines: ClassVar[bool]
    """True if it knows how to weight several episodes of an arm."""
    misses: ClassVar[float]
    """c: in round t the true mean is above the index, or the mean above the true one by the width, each with probability
    at most c t^-beta."""
    more: ClassVar[float] = 0.0
    """Term added to log t beside the deviation."""

    def width(
        self, deviation: FloatArray, tail: FloatArray, beta: float, logarithm: FloatArray, n_episodes: IntArray
    ) -> FloatArray:
        """The most by which the index exceeds the noisy mean, in units of reward; all arrays of shapes that broadcast.

        Args:
          deviation: of the estimate, as `learn` leaves it.
          tail: of the estimate.
          beta: exploration.
          logarithm: log t.
          n_episodes: episodes of the arm so far.
        """
        return np.asarray(np.sqrt(2 * beta * (self.more + logarithm)) * deviation + beta * logarithm * tail)

    def choose(self, released: Released, beta: float, reward_range: Interval, out: IntArray) -> None:
        """Writes the arm under way, or the one with the largest index (ties: the lowest arm), to (n_reps,) `out`."""
        indices_numba.optimistic_arms(
            released.mean, released.deviation, released.tail, released.arm, released.left, released.clock, beta, self.more,
            out,
        )  # fmt: skip

    @abstractmethod
    def learn(self, released: Released, ended: Ended) -> None:
        """Takes ended episodes into their arms' estimates, in place."""


@dataclass(frozen=True)
class SubGaussianIndex(Index):
    """mean + sqrt(2 v beta log t), v the variance proxy of the estimate: of its samples and of its Gaussian noise."""

    combines: ClassVar[bool] = True
    misses: ClassVar[float] = 1.0

    def learn(self, released: Released, ended: Ended) -> None:
        """Takes ended episodes into their arms' estimates, in place; the variance of the noise is scale^2."""
        episodes_numba.estimate(
            released.mean, released.deviation, ended.reps, ended.arm, ended.noisy, ended.n_samples,
            ended.share, ended.scale**2, ended.width, ended.combines,
        )  # fmt: skip


@dataclass(frozen=True)
class LaplaceIndex(Index):
    r"""mean + sqrt(beta log(2t) / (2n)) + beta log(t) b / n: n rewards in [0, 1], Laplace noise of scale b on their sum.

    The true mean is above it with probability at most (2t)^-beta + t^-beta / 2: Hoeffding, and the Laplace tail.
    Rewards of another range scale it. Source: Azize and Basu (2022), eq. (7), with b = 1 / epsilon; no difference. (The
    paper's text explains the bound with log t in both places. Without the printed 2 the regret on their instance is 3 to
    5 % lower from epsilon = 0.25 on.)
    """

    combines: ClassVar[bool] = False
    misses: ClassVar[float] = 1.5
    more: ClassVar[float] = math.log(2.0)
    estimate: ClassVar[Callable[..., None]] = staticmethod(indices_numba.laplace_estimate)
    """Kernel that takes ended episodes of whole samples into their arms' estimates."""

    def learn(self, released: Released, ended: Ended) -> None:
        """Takes ended episodes into their arms' estimates, in place, by `estimate`; a sample counts as a whole one."""
        self.estimate(
            released.mean, released.deviation, released.tail, ended.reps, ended.arm, ended.noisy, ended.n_samples,
            ended.scale, ended.width,
        )  # fmt: skip


@dataclass(frozen=True)
class SeparateIndex(LaplaceIndex):
    r"""`LaplaceIndex` on all episodes of an arm: rewards and noise bounded separately, as printed.

    mean + sqrt(2 v_s beta log(2t)) + sqrt(2 v_n beta log(2t)) + c beta log t, the mean weighted as by `SubGammaIndex`, v_s
    the variance proxy of its rewards, v_n that of its noise, a sub-gamma variable of scale c where episodes are several; one
    alone is as in `LaplaceIndex`. The true mean is above it with probability at most (2t)^-beta + t^-beta.
    """

    combines: ClassVar[bool] = True
    misses: ClassVar[float] = 2.0
    estimate: ClassVar[Callable[..., None]] = staticmethod(indices_numba.separate_estimate)


@dataclass(frozen=True)
class SubGammaIndex(Index):
    r"""mean + sqrt(2 v x) + c x, x = beta log t, v and c of all episodes of an arm together.

    A Laplace variable of scale c has log E exp(s L) = -log(1 - s^2 c^2) <= s^2 c^2 / (1 - |s| c); with the samples' variance
    proxy, an episode's mean is sub-gamma with v = 1/(4n) + 2 b^2 / n^2, the sum of both variances, and c = b / n. Of
    independent ones weighted by w_k the v add, times w_k^2, and c is the largest w_k c_k; the weights are inverse to v. The
    true mean is above the index with probability at most t^-beta (Boucheron, Lugosi and Massart 2013, section 2.4). As in
    `EpisodicUCB`, the k-th episode of an arm has a length that does not depend on data, so that the combination is fixed.
    """

    combines: ClassVar[bool] = True
    misses: ClassVar[float] = 1.0

    def learn(self, released: Released, ended: Ended) -> None:
        """Takes ended episodes into their arms' estimates, in place; a sample counts as a whole one."""
        indices_numba.sub_gamma_estimate(
            released.mean, released.deviation, released.tail, ended.reps, ended.arm, ended.noisy, ended.n_samples,
            ended.scale, ended.width, ended.combines,
        )  # fmt: skip


@dataclass(frozen=True)
class KullbackLeiblerIndex(LaplaceIndex):
    r"""max {q in [0, 1] : n kl(p, q) <= beta log t}, p = mean + beta log(t) b / n moved into [0, 1].

    For n rewards in [0, 1] and Laplace noise of scale b on their sum; kl is that of Bernoulli variables, of which Chernoff's
    bound holds for any law on [0, 1]. Rewards of another range are brought to [0, 1]. By it and the Laplace tail the true
    mean is above the index with probability at most (3/2) t^-beta.
    Source: Azize and Basu (2022), the display after eq. (7), with b = 1 / epsilon; no difference.
    Its `width` is a bound, by Pinsker's inequality and as means lie in the range that p is moved into. Equal indices are
    ordered by p before it is moved.
    """

    more: ClassVar[float] = 0.0
    pools: ClassVar[bool] = False
    """True if an arm's mean is that of all its rewards."""

    def choose(self, released: Released, beta: float, reward_range: Interval, out: IntArray) -> None:
        """Writes the arm under way, or that of the largest index (ties: of p before it is moved), to (n_reps,) `out`."""
        indices_numba.kl_optimistic_arms(
            released.mean, released.deviation, released.tail, released.pulls, released.arm, released.left, released.clock,
            beta, reward_range.low, reward_range.width, self.pools, out,
        )  # fmt: skip


@dataclass(frozen=True)
class PooledKullbackLeiblerIndex(KullbackLeiblerIndex):
    r"""`KullbackLeiblerIndex` on all rewards of an arm: n is their number, and the noise that of all its episodes.

    p = mean + b q(m, beta log t) / n, q the quantile of a sum of m Laplace variables (`indices_numba.laplace_sum_quantile`),
    m the episodes so far, each of which was released once. Their lengths do not depend on data, so Chernoff's bound holds
    for the n rewards together. The true mean is above the index with probability at most 2 t^-beta.
    Source: Azize, Wu, Honda and others (2025), Optimal regret of Bernoulli bandits under global differential privacy, whose
    DP-KLUCB forgets nothing either; they bound rewards and noise together, here they are bounded separately, as printed.
    """

    combines: ClassVar[bool] = True
    misses: ClassVar[float] = 2.0
    pools: ClassVar[bool] = True
    estimate: ClassVar[Callable[..., None]] = staticmethod(indices_numba.pooled_estimate)

    def width(
        self, deviation: FloatArray, tail: FloatArray, beta: float, logarithm: FloatArray, n_episodes: IntArray
    ) -> FloatArray:
        """The most by which the index exceeds the noisy mean, by Pinsker's inequality; see `Index.width`."""
        level = beta * logarithm
        noise = np.vectorize(indices_numba.episodes_noise, otypes=[float])(n_episodes, level)
        return np.asarray(np.sqrt(2 * level) * deviation + noise * tail)


SUB_GAUSSIAN, LAPLACE, SEPARATE = SubGaussianIndex(), LaplaceIndex(), SeparateIndex()
SUB_GAMMA, KULLBACK_LEIBLER, POOLED = SubGammaIndex(), KullbackLeiblerIndex(), PooledKullbackLeiblerIndex()
