"""The noise of a phase of linear elimination: Gaussian on each arm's sum, Gaussian in d dimensions, and Laplace."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.algorithms.bandits.linear import phases_numba
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Mechanism

UP = 1 + 1e-12
"""Noise is never below the theorem's: rounded up."""


class Goal(NamedTuple):
    """Goal of a phase: the mean of every active arm up to `target`, except with probability delta / (l (l + 1))."""

    phase: int
    """l, from 1."""
    target: float
    """beta_l over `beta_scale`, in units of reward."""
    proxy: float
    """Sub-Gaussian variance proxy of one reward: width^2 / 4 (Hoeffding's lemma)."""
    rank: int
    """Dimension of the active arms' span."""
    n_active: int
    n_arms: int
    delta: float

    @property
    def log_term(self) -> float:
        """Log of one over the failure probability of each side of each active arm: log(2 |A_l| l (l + 1) / delta)."""
        return math.log(2 * self.n_active * self.phase * (self.phase + 1) / self.delta)

    @property
    def printed_log_term(self) -> float:
        """The log term of eq. (8), for all K arms and two separate sources of noise: log(4 K l (l + 1) / delta)."""
        return math.log(4 * self.n_arms * self.phase * (self.phase + 1) / self.delta)


class Reading(NamedTuple):
    """Rule by which a phase's sums become a noisy vector, and that one estimates."""

    encode: FloatArray
    """(m, n_outputs), what one unit of reward of the j-th played arm adds to the released vector; its norm is at most 1."""
    predict: FloatArray
    """(k, n_outputs), the estimates of the active arms are predict @ the released vector."""
    width: FloatArray
    """(k,) half-widths of their confidence intervals, at `beta_scale` 1."""


@dataclass(frozen=True)
class PhaseNoise(ABC):
    """Where the noise enters, for how long a phase must last, and what it then knows: the calibrations differ in this.

    `leverage` (k,) and `cross` (k, m) are a^T V^-1 a and a^T V^-1 b, for active arms a and played arms b, at the design
    (V the matrix of one average round) or after its rounds (V their sum).

    Attributes:
      mechanism: what releases a phase's vector; the sensitivity is the width of the reward range.
    """

    mechanism: Mechanism

    def n_outputs(self, n_slots: int, dimension: int) -> int:
        """Entries of the released vector: one for each played arm, where nothing else is said."""
        return n_slots

    @abstractmethod
    def samples(self, leverage: FloatArray, cross: FloatArray, goal: Goal) -> float:
        """Rounds n, not rounded, after which the goal is met; arm a is then played ceil(n pi(a)) times."""

    @abstractmethod
    def reading(self, whitened: FloatArray, played: IntArray, goal: Goal) -> Reading:
        """After the rounds: whitened (k, rank) holds V^-1/2 a, `played` (m,) which of them were played."""


PRINTED, EXACT = "printed", "exact"


@dataclass(frozen=True)
class GaussianNoise(PhaseNoise):
    r"""Gaussian noise on a phase's vector, with lengths and widths as printed or exact: the parts of the calibrations.

    Printed lengths are those of eq. (8), which bounds the noise's deviation at an arm by g^2 s sqrt(d (d + 1) / 2), g^2 the
    largest leverage, for designs on at most d (d + 1) / 2 arms; g^2 = d at the optimum. Here it is the true largest leverage
    of the design, and d the dimension of the active arms' span. The paper's rewards are 1-sub-Gaussian and its N_a ~ N(0,
    2 alpha / epsilon) is for |R| <= 1; a general range counts in units of half its width. They suffice for noise on each
    arm's sum, and so for `WhitenedNoise`, which is never worse. Exact lengths solve for the smallest n at which the exact
    width of every arm meets the goal.

    At an arm a of leverage l_a the estimate has the sampling proxy l_a width^2 / 4 and a noise of variance w_a, and being a
    sum of independent terms it misses by more than sqrt(2 (l_a width^2 / 4 + w_a) L) with probability at most 2 e^-L: the
    exact width, one union bound in the place of the paper's beta / 2 + beta / 2. The printed width is beta_l for all arms.
    It is the larger one of all lengths here but for rounding, where counts are whole; then the exact one counts.

    Attributes:
      lengths: printed or exact.
      widths: printed or exact.
    """

    lengths: str = EXACT
    widths: str = EXACT

    @abstractmethod
    def variance(self, leverage: FloatArray, cross: FloatArray) -> FloatArray:
        """(k,) or one for all: the noise's variance at the active arms."""

    def samples(self, leverage: FloatArray, cross: FloatArray, goal: Goal) -> float:
        """Eq. (8), summed over the arms, or the largest root n of target^2 n^2 = 2 L (l proxy n + s^2 w)."""
        largest = float(leverage.max())
        if self.lengths == PRINTED:
            log_term = goal.printed_log_term
            sampling = 8 * largest * goal.proxy * log_term / goal.target**2
            noise = self.mechanism.scale * math.sqrt(goal.rank * (goal.rank + 1) * log_term)
            return sampling + 2 * largest * noise / goal.target
        scaled = 2 * goal.log_term / goal.target**2
        linear, constant = scaled * largest * goal.proxy, scaled * float(np.max(self.variance(leverage, cross)))
        return (linear + math.sqrt(linear**2 + 4 * constant)) / 2

    def _width(self, variance: FloatArray, goal: Goal) -> FloatArray:
        exact = np.sqrt(2 * goal.log_term * variance)
        return np.maximum(exact, goal.target) if self.widths == PRINTED else exact


@dataclass(frozen=True)
class ArmNoise(GaussianNoise):
    r"""Algorithm 3 as printed: Gaussian noise on each played arm's reward sum.

    theta + V^-1 sum_a a N_a is a function of the sums S_a + N_a, so these are what is released. A replaced reward moves one
    of them by at most the width: the L2 sensitivity of the vector is the width. The noise's variance at a is s^2 sum_b (a^T
    V^-1 b)^2.
    """

    def variance(self, leverage: FloatArray, cross: FloatArray) -> FloatArray:
        """s^2 times the sum of (a^T V^-1 b)^2 over the arms played."""
        return np.asarray(self.mechanism.scale**2 * (cross**2).sum(axis=1))

    def reading(self, whitened: FloatArray, played: IntArray, goal: Goal) -> Reading:
        """Least squares on the noisy sums."""
        leverage, predict = np.einsum("kr,kr->k", whitened, whitened), whitened @ whitened[played].T
        variance = leverage * goal.proxy + self.variance(leverage, predict)
        return Reading(np.eye(len(played)), predict, self._width(variance, goal))


@dataclass(frozen=True)
class WhitenedNoise(GaussianNoise):
    r"""Gaussian noise in d dimensions: of covariance s^2 h V on sum_t a_t R_t, V = sum a_t a_t^T, h = max a^T V^-1 a.

    The largest leverage h is taken over the arms played. Released is y = sum_t V^-1/2 a_t R_t / sqrt(h) + N(0, s^2 I), and
    theta = sqrt(h) V^-1/2 y. One replaced reward moves y by at most width |V^-1/2 a| / sqrt(h) <= width, for every design,
    optimal or not, so mu = width / s: exact, as an arm attains h. The noise's variance at a is s^2 h l_a. At the design, l_a
    and h are at most g / n after n rounds, g = d at the optimum.

    It is never worse than noise on each arm's sum. That has the noise variance s^2 sum_b (a^T V^-1 b)^2 at a. For an optimal
    design pi(b) <= 1/d (the projection sqrt(pi(b) pi(c)) b^T V(pi)^-1 c has diagonal pi(b) d <= 1), hence sum_b (a^T
    V(pi)^-1 b)^2 >= d sum_b pi(b) (a^T V(pi)^-1 b)^2 = d a^T V(pi)^-1 a, the value here; equal where d arms are played.
    """

    def n_outputs(self, n_slots: int, dimension: int) -> int:
        """Number of released values: one for each dimension."""
        return dimension

    def variance(self, leverage: FloatArray, cross: FloatArray) -> FloatArray:
        """s^2 times the square of the largest leverage, which is the most at the design."""
        return np.asarray((self.mechanism.scale * leverage.max()) ** 2)

    def reading(self, whitened: FloatArray, played: IntArray, goal: Goal) -> Reading:
        """The estimate and its widths."""
        leverage = np.einsum("kr,kr->k", whitened, whitened)
        reach = float(leverage[played].max()) * UP
        variance = leverage * (goal.proxy + self.mechanism.scale**2 * reach)
        root = math.sqrt(reach)
        return Reading(whitened[played] / root, whitened * root, self._width(variance, goal))


@dataclass(frozen=True)
class LaplaceNoise(PhaseNoise):
    r"""Pure DP: Laplace noise on the reward sum of each arm played (the paper's Discussion 2 gives no constants).

    A replaced reward moves one sum by at most the width: the L1 sensitivity is the width, for every design. Whitening does
    not help here as it does with Gaussian noise, since |V^-1/2 a|_1 exceeds |V^-1/2 a|_2 by up to sqrt(d). On 50 random
    directions the largest noise variance of whitened Laplace noise is 0.94, 0.95, 1.10, 1.15 times that of noise on the sums
    at d = 2, 3, 4, 5 (200 directions: 1.22, 1.25 at d = 8, 10), and it depends on the rotation of V^-1/2.

    The estimate at arm a misses by a sum of a sub-Gaussian variable and of m Laplace variables of scales b a^T V^-1 b_j.
    Its width is the Chernoff bound for exactly this sum (`bandana.algorithms.bandits.linear.phases_numba`), minimized
    numerically, and the length of a phase is solved from it.
    """

    def samples(self, leverage: FloatArray, cross: FloatArray, goal: Goal) -> float:
        """The largest over the active arms of what each needs."""
        scales = np.ascontiguousarray(cross) * self.mechanism.scale
        return float(phases_numba.most_laplace_samples(leverage * goal.proxy, scales, goal.log_term, goal.target))

    def reading(self, whitened: FloatArray, played: IntArray, goal: Goal) -> Reading:
        """Least squares on the noisy sums, exact widths."""
        leverage = np.einsum("kr,kr->k", whitened, whitened)
        predict = np.ascontiguousarray(whitened @ whitened[played].T)
        width = np.empty(len(whitened))
        phases_numba.laplace_widths(leverage * goal.proxy, predict * self.mechanism.scale, goal.log_term, width)
        return Reading(np.eye(len(played)), predict, width)
