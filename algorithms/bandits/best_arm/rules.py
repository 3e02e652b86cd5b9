r"""When the difference of two noisy means is certain: tables of thresholds for estimates of public lengths.

An estimate is one of arm a after its k-th episode. Episodes have lengths that depend on k alone, so that widths, weights
and thresholds are numbers of k, computed before a run; the tables are public.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bandana.algorithms.protocol import BoolArray, FloatArray, IntArray
from bandana.privacy_core import Gaussian, Laplace, Mechanism
from bandana.privacy_core.checks import at_least, positive, probability

_TILTS = np.geomspace(1e-2, 1e7, 1050)
"""At which lambda Chernoff's bound is tried; steps of 2 % cost at most 2 % of a threshold, and any lambda is valid."""


class Episodes(NamedTuple):
    """Numbers of an arm's k-th episode; row 0 stands for k = 1."""

    lengths: IntArray
    """(n + 1,) rewards of the k-th episode."""
    shares: FloatArray
    """(n,) weight of the k-th episode's own mean in the estimate; the rest is the estimate before."""


class Judged(NamedTuple):
    """Verdict of a rule on the estimates, (n_rows,) each."""

    best: IntArray
    """The arm of the largest estimate."""
    is_certain: BoolArray
    """True where it is the best arm, with the guarantee that the rules have."""
    leader: IntArray
    """Who may be the best arm."""
    challenger: IntArray
    """Who is least certain to be worse."""


@dataclass(frozen=True)
class Rules(ABC):
    """When a test stops, and what it pulls until then, from estimates alone; all of it is public.

    An arm has N_1 = 1 pull after its first episode and N_k = max(N_(k-1) + 1, ceil(growth N_(k-1))) after the k-th.

    Attributes:
      n_actions: number of arms K.
      noise: of the sum of an episode, honestly declared.
      width: of the range of rewards.
      error: delta in the paper.
      growth: factor between an arm's pulls after an episode and before it.
      horizon: rounds that there may be.
      scale: factor on the thresholds; the guarantee needs 1.
    """

    n_actions: int
    noise: Mechanism
    width: float
    error: float
    growth: float
    horizon: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        at_least("n_actions", self.n_actions, 2)
        at_least("horizon", self.horizon, 1)
        probability("error", self.error)
        positive("scale", self.scale)
        if not 1 < self.growth < math.inf:
            raise ValueError(f"growth must be above 1, got {self.growth!r}")

    @property
    def level(self) -> float:
        """Logarithm of (K - 1) k_max^2 / error, the comparisons that there may be over the error that all may make."""
        k_max = len(episode_lengths(self.growth, self.horizon)) - 1
        return math.log((self.n_actions - 1) * k_max**2 / self.error)

    @property
    @abstractmethod
    def episodes(self) -> Episodes:
        """Lengths of an arm's episodes, and their weights in its estimate."""

    @abstractmethod
    def judge(self, k: IntArray, mean: FloatArray, rounds: IntArray) -> Judged:
        """Judges the estimates.

        Args:
          k: (n_rows, n_arms) numbers of ended episodes, from 1.
          mean: (n_rows, n_arms) estimates.
          rounds: (n_rows,) that were played.
        """

    @abstractmethod
    def scale_of(self, lead: float) -> float:
        """The `scale` at which a lead of one arm over another, both after two episodes, is just certain."""


class Tables(NamedTuple):
    """Numbers of the k-th estimate of an arm; row 0 stands for k = 1. Means are in units of the range's width."""

    episodes: Episodes
    bonus: FloatArray
    """(n, 2) what optimism adds to the estimate after t rounds: times sqrt(log t), and times log t."""
    spread: FloatArray
    """(n,) an arm's part of the squared scale by which differences are compared."""
    threshold: FloatArray
    """(n, n) how much larger one estimate must be than another to be certain."""


@dataclass(frozen=True)
class DifferenceRules(Rules):
    r"""AdaP-TT's: one estimate must exceed another by a threshold that depends on the two numbers of episodes alone.

    In units of the range's width, the mean of an episode of n rewards has variance proxy v = 1 / (4n) + s^2 / n^2, s^2 the
    variance of the noise on the sum.

    Not `pools`, as known: the last episode alone counts; with n and n' the lengths of two arms' last episodes, b the
    Laplace scale, k the larger number of episodes, the threshold is sqrt(2 (1/n + 1/n') c),

        c = 2 C(log((K - 1) z^2 k1^2 k2^2 / error) / 2) + 2 log(4 + log n) + 2 log(4 + log n')
            + (1/n + 1/n') b^2 log(2 K z k^2 / error)^2,      C(x) = x + log x,   z = pi^2 / 6.

    `pools`, ours: all episodes count, with weights inverse to their v, and the threshold of estimates k1 and k2 is

        min over lambda of (log((K - 1) k_max^2 / error) + psi_k1(lambda) + psi_k2(lambda)) / lambda,

    k_max the number of an arm's episodes that may end within the horizon, psi_k the sum over episodes, of n rewards and of
    weight w, of (w lambda)^2 / (8 n) and of the logarithm of the noise's moment generating function at w lambda / n:
    - log(1 - b^2 x^2) of Laplace noise, s^2 x^2 / 2 of Gaussian.

    Guarantee: whatever the sampling rule is, a wrong arm is certainly better by these thresholds than the best one at any
    time with probability at most `error`, for independent rewards in the range. Proof. The i-th reward of an arm does not
    depend on when it is pulled, and lengths do not depend on data: so for each pair (k1, k2) and each wrong arm the
    difference of estimates minus that of means is one fixed sum of independent variables. Hoeffding's lemma and the noise's
    own moments give Chernoff's bound: it exceeds the threshold with probability at most the share of `error` in the
    logarithm, and there are at most k_max^2 pairs. As known: noise is at most b log(2 K z k^2 / error) / n in all episodes
    of all arms but for error / 2, and then half of the squared difference is at most its squared noiseless part plus the
    squares of the noise, over 1/n + 1/n' the last term of c. The noiseless part, squared, over 1/n + 1/n', exceeds the rest
    of c with probability at most e^-2(rest of c), by Hoeffding: far below error / 2 in sum, as 2 (rest of c) is more than
    twice the first logarithm; such constants are for Gaussian rewards of variance 1. The paper's text was not at hand when
    this was written: form and constants of c are those of the authors' public code (github.com/achraf-azize/DP-BAI, `dp_c`),
    whose first logarithm has z k^2 with one k, where z^2 k1^2 k2^2 is what pays for both arms' numbers of episodes.

    The leader is the arm B with the largest estimate plus bonus, the challenger the arm with the smallest (mean_B -
    mean_a)_+ / sqrt(spread_B + spread_a). As known, after t rounds the bonus is sqrt(log t / (2 n)) + b log t / n, and the
    spread 1 / N, N an arm's pulls; pooled, they are sqrt(4 v log t) and v, with v the estimate's variance proxy. (log t is
    that of the authors' public code. With the arm's own number of episodes in its place an arm whose first estimate the
    noise makes very small is never pulled again where two others are equally good.)

    Attributes:
      pools: whether all episodes of an arm count, or the last one alone.
    """

    pools: bool = True

    @property
    def tables(self) -> Tables:
        """The tables, computed once for each rules."""
        return _tables(self)

    @property
    def episodes(self) -> Episodes:
        """Weights are inverse to variance proxies, or the last episode's is 1."""
        return self.tables.episodes

    def judge(self, k: IntArray, mean: FloatArray, rounds: IntArray) -> Judged:
        """Certain is a lead over every other arm of at least the threshold."""
        tables, rows, log = self.tables, np.arange(len(rounds)), np.log(rounds)[:, None]
        best = mean.argmax(axis=1)
        lead = mean[rows, best][:, None] - mean
        needed = tables.threshold[k[rows, best][:, None] - 1, k - 1]
        needed[rows, best] = -np.inf
        leader = (mean + tables.bonus[k - 1, 0] * np.sqrt(log) + tables.bonus[k - 1, 1] * log).argmax(axis=1)
        spread = tables.spread[k - 1]
        cost = np.maximum(mean[rows, leader][:, None] - mean, 0) / np.sqrt(spread[rows, leader][:, None] + spread)
        cost[rows, leader] = np.inf
        return Judged(best, (lead >= needed).all(axis=1), leader, cost.argmin(axis=1))

    def scale_of(self, lead: float) -> float:
        """Thresholds are multiples of it."""
        return self.scale * lead / float(self.tables.threshold[1, 1])


def episode_lengths(growth: float, horizon: int) -> IntArray:
    """Lengths of an arm's episodes, of which the last one alone ends beyond the horizon."""
    pulls = [0, 1]
    while pulls[-1] <= horizon:
        pulls.append(max(pulls[-1] + 1, math.ceil(growth * pulls[-1])))
    return np.array([later - before for before, later in pairwise(pulls)], dtype=np.int64)


def pooled_shares(lengths: FloatArray, deviation: float) -> FloatArray:
    """(n,) weight of the k-th episode's mean among the first k, inverse to 1 / (4n) + (deviation / n)^2."""
    precision = 1 / (1 / (4 * lengths) + (deviation / lengths) ** 2)
    return np.asarray(precision / np.cumsum(precision))


def noise_exponent(noise: Mechanism, tilt: FloatArray) -> FloatArray:
    """Logarithm of the moment generating function of the noise on a sum; infinite where there is none."""
    if isinstance(noise, Gaussian):
        return np.asarray((noise.scale * tilt) ** 2 / 2)
    if isinstance(noise, Laplace):
        squared = (noise.scale * tilt) ** 2
        return np.where(squared < 1, -np.log1p(-np.minimum(squared, 1 - 1e-16)), np.inf)
    if noise.scale == 0:
        return np.zeros_like(tilt)
    raise ValueError(f"noise must be Gaussian, Laplace or none, got {noise}")


@lru_cache(maxsize=256)
def _tables(rules: DifferenceRules) -> Tables:
    lengths = episode_lengths(rules.growth, rules.horizon)
    n = lengths[:-1].astype(float)
    k = np.arange(1.0, len(n) + 1)
    deviation = rules.noise.deviation / rules.width
    proxy = 1 / (4 * n) + (deviation / n) ** 2
    if rules.pools:
        shares = pooled_shares(n, deviation)
        spread = 1 / np.cumsum(1 / proxy)
        bonus, threshold = np.stack([np.sqrt(4 * spread), np.zeros_like(n)], axis=1), _pooled(rules, n, shares)
    else:
        shares, spread, b = np.ones_like(n), 1 / np.cumsum(n), rules.noise.scale / rules.width
        bonus, threshold = np.stack([np.sqrt(1 / (2 * n)), b / n], axis=1), _as_known(rules, n, k, b)
    return Tables(Episodes(lengths, shares), bonus, spread, rules.scale * threshold)


def _pooled(rules: DifferenceRules, n: FloatArray, shares: FloatArray) -> FloatArray:
    exponents = np.empty((len(n), len(_TILTS)))
    weights = np.zeros(0)
    for last, share in enumerate(shares):
        weights = np.append(weights * (1 - share), share)
        tilt = weights[:, None] * _TILTS
        of_noise = noise_exponent(rules.noise, tilt / (n[: last + 1, None] * rules.width))
        exponents[last] = (tilt**2 / (8 * n[: last + 1, None]) + of_noise).sum(axis=0)
    return np.array([((rules.level + exponents + own) / _TILTS).min(axis=1) for own in exponents])


def _as_known(rules: DifferenceRules, n: FloatArray, k: FloatArray, b: float) -> FloatArray:
    z, arms = math.pi**2 / 6, rules.n_actions
    half = (math.log((arms - 1) * z**2 / rules.error) + 2 * np.log(k[:, None] * k)) / 2
    each = 2 * np.log(4 + np.log(n))
    inverse = 1 / n[:, None] + 1 / n
    of_noise = inverse * (b * np.log(2 * arms * z * np.maximum(k[:, None], k) ** 2 / rules.error)) ** 2
    c = 2 * (half + np.log(half)) + each[:, None] + each + of_noise
    return np.asarray(np.sqrt(2 * inverse * c))
