r"""Counters of a finite process: what an episode adds to them, how far a replaced one moves them, and what noise does.

For each step h, state s and action a a row holds S counts m(s') of next states, then a sum of rewards less z, and, where the
weight v is above 0, v n, the number of visits once more.

*Sensitivity.* Two episodes differ at a step in one of two ways.

  D  They are in other pairs (s, a). One entry of m falls by 1 and another rises by 1; two entries of rewards move by at
     most rho = max(z, 1 - z), as rewards lie in [0, 1]; two of n by v: 2 + 2 rho + 2 v in L1, squares 2 + 2 rho^2 + 2 v^2.
  E  They are in the same pair. m moves by 2 in L1, and by 2 in squares, if the next states differ; the sum of rewards
     moves by 1 at most, n does not.

H steps have rows of their own, so that the sensitivity is H max(2 + 2 rho + 2 v, 3) in L1 and sqrt(H max(2 + 2 rho^2 + 2
v^2, 3)) in L2. Both are attained by episodes that never meet, where D is the larger. With z = 1/2 both cases are equal
in L1 for v = 0, 3 a step, and in L2 for v = 1/2: visits with twice the noise cost nothing under Gaussian noise. Three
counters apart, each with z = 0, would cost 6 a step (`bandana.algorithms.papers.tabular_rl`).

*Errors.* Of a row's noise nu, xi, eta on m, rewards and n, four numbers matter: |eta'| of the estimate of n, |xi|, |nu|_1,
and |sum nu g| for one fixed function g of next states with |g| <= 1. The estimate of n is what `count_share` mixes of
v n / v and of sum m, by their variances: deviation sigma / sqrt(v^2 + 1/S).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from scipy.special import gammainccinv, ndtri

from bandana.algorithms.regression.norms import laplace_series_norm
from bandana.privacy_core.checks import probability


class Errors(NamedTuple):
    """Bounds on the noise in each row after some closing of the sums."""

    visits: float = 0.0
    """Bound on the error of the estimated number of visits."""
    reward: float = 0.0
    """Bound on the error of the sum of rewards."""
    total: float = 0.0
    """Bound on the error of the counts of next states, in L1."""
    function: float = 0.0
    """Bound on the error of sum m(s') g(s'), for one fixed function g with values in [-1, 1]."""


@dataclass(frozen=True)
class Layout:
    """A row of the statistics.

    Attributes:
      n_states: S.
      reward_center: z.
      count_weight: v; 0 for no entry of its own.
      count_share: how much of the estimated number of visits is that entry over v; the rest is the sum of m.
    """

    n_states: int
    reward_center: float = 0.5
    count_weight: float = 0.0
    count_share: float = 0.0

    @property
    def width(self) -> int:
        """Entries of a row."""
        return self.n_states + (2 if self.count_weight else 1)

    @property
    def reward_reach(self) -> float:
        """Largest distance of a reward from z."""
        return max(self.reward_center, 1 - self.reward_center)

    def sensitivity_l1(self, episode_length: int) -> float:
        """L1 sensitivity of H steps under a replaced episode; see the module."""
        return episode_length * max(2 + 2 * self.reward_reach + 2 * self.count_weight, 3.0)

    def sensitivity_l2(self, episode_length: int) -> float:
        """L2 sensitivity of H steps under a replaced episode; see the module."""
        return math.sqrt(episode_length * max(2 + 2 * self.reward_reach**2 + 2 * self.count_weight**2, 3.0))

    def gaussian_errors(self, deviation: float, failure: float) -> Errors:
        """Errors under Gaussian noise of a deviation; each is exceeded with probability at most `failure`.

        |nu|_1 has the mean S sqrt(2 / pi) and is sqrt(S)-Lipschitz in standard normal numbers; sum nu g is normal with
        the deviation |g|_2 <= sqrt(S).
        """
        n, z = self.n_states, -float(ndtri(probability("failure", failure) / 2))
        total = n * math.sqrt(2 / math.pi) + math.sqrt(-2 * n * math.log(failure))
        count = z / math.sqrt(self.count_weight**2 + 1 / n)
        return Errors(deviation * count, deviation * z, deviation * total, deviation * math.sqrt(n) * z)

    def laplace_errors(self, scale: float, n_summed: int, failure: float) -> Errors:
        """Errors under sums of n Laplace numbers of a scale; each is exceeded with probability at most `failure`.

        |nu|_1 is at most the sum of n S absolute values, whose law is a gamma law; and it is the largest of 2^S sums of n S
        numbers with signs. The smaller of both bounds holds, as each is a quantile's. That of sum nu is one of sum nu g,
        too: weights of at most 1 make no moment of a Laplace number larger (`laplace_matrix_norm`).
        """
        n = self.n_states
        single, function = (laplace_series_norm(k * n_summed, 1, probability("failure", failure)) for k in (1, n))
        count = single / self.count_weight if self.count_share == 1 else function
        by_signs = laplace_series_norm(n * n_summed, 1, failure * 2.0 ** (1 - n)) if n < 512 else math.inf
        total = min(float(gammainccinv(n * n_summed, failure)), by_signs)
        return Errors(scale * count, scale * single, scale * total, scale * function)


def with_visits(n_states: int, weight: float = 0.5) -> Layout:
    """Rows for Gaussian noise: visits with a weight, mixed with the sum of m by their variances, 1 / v^2 and S."""
    return Layout(n_states, 0.5, weight, weight**2 / (weight**2 + 1 / n_states))


def published(n_states: int) -> Layout:
    """The three families as PUCB and LDP-OBI release them: visits apart, rewards as they are."""
    return Layout(n_states, 0.0, 1.0, 1.0)
