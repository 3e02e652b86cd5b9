r"""A regret bound for CAPRI with exact widths and explicit constants, on any finite pool.

A round of epoch r + 1 costs at most the sum of the interval lengths that two active actions had in epoch r, 4 times the
longest half-width; where that is longer than any gap, a gap. So a bound on half-widths is needed that holds before the coins
are drawn, whatever is active. Let p be the least probability of a point, n the number of points that can be drawn, and R and
q as below. An active point has at least the probability p, so r_u >= p T_r expected users, as R has in n_u copies.

1. With eta^2 = 2 log(4 n R / q) / (p T_r), all n_u >= (1 - eta) r_u and S holds all active points, except with probability
   q / 2R (Chernoff). Then C >= n_w phi phi^T + tau shows s(w)^2 <= S^2 = 1 / ((1 - eta) p T_r + tau), the sum of
   r_u a(w, u)^2 is at most s(w)^2 / (1 - eta), and no weight is above S^2.
2. Z^2 = sum_u (n_u - r_u)^2 / r_u is Pearson's statistic. Z is the norm of a sum of T_r independent centered vectors, each
   no longer than b = 1 / sqrt(p T_r), of variance at most 1 / T_r in each direction, and E Z <= m = sqrt(n - 1). So
   Z <= m + sqrt(2 L (1 + 2 b m)) + b L / 3 with L = log(2 R / q), except with probability q / 2R: Bousquet's inequality
   (Boucheron, Lugosi and Massart 2013, Theorem 12.5).
3. The mean misses |f| |(C - N) C^-1 phi(w)|, N the sum of r_u phi phi^T: tau C^-1 phi has norm at most sqrt(tau) s(w), and
   sum_u (n_u - r_u) a(w, u) phi(u) at most Z times the root of sum_u r_u a(w, u)^2.

q is the failure probability of the intervals, so the bound fails with probability at most 2 q. It has 1 / p, which is n for
equal probabilities, where the paper has the information gain gamma: the paper's rates sqrt(T gamma) + gamma / epsilon, and
gamma sqrt T / epsilon under local privacy, with gamma <= n and constants.

Source: the elimination argument of Pavlovic, Salgia and Zhao, Theorem 6.7. Its own constants hold from
`papers.pavlovic.least_horizon` on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandana.algorithms.bandits.capri.projection import Error
from bandana.algorithms.bandits.capri.widths import ExactWidth
from bandana.algorithms.protocol import FloatArray, IntArray


def least_probability(law: FloatArray, n_actions: int) -> float:
    """The least probability p of a point that can be drawn, if all actions of its context are active."""
    return float(law[law > 0].min()) / n_actions


def largest_half_width(algorithm: Any, length: int) -> float:
    """The longest half-width of an epoch of so many rounds, whatever is active; infinite if it is too short to say.

    Args:
      algorithm: a `ProjectedElimination` with `ExactWidth`.
      length: T_r.
    """
    width, law = algorithm.width, algorithm.pool.law
    p, n = least_probability(law, algorithm.n_actions), int((law > 0).sum()) * algorithm.n_actions
    expected, ridge = p * length, algorithm.ridge
    eta = math.sqrt(2 * math.log(4 * n * width.n_epochs / width.failure) / expected)
    if eta >= 1:
        return math.inf
    square = 1 / ((1 - eta) * expected + ridge)
    log, m = math.log(2 * width.n_epochs / width.failure), math.sqrt(n - 1)
    pearson = m + math.sqrt(2 * log * (1 + 2 * m / math.sqrt(expected))) + log / (3 * math.sqrt(expected))
    bias = math.sqrt(square) * (math.sqrt(ridge) + pearson / math.sqrt(1 - eta))
    unit = math.sqrt(square if (law > 0).all() else 1 / ridge)
    noise = unit * algorithm.gathering.noise_deviation(length) * math.sqrt(square)
    error = Error(*(np.array([number]) for number in (bias, square / (1 - eta), square)))
    return float(algorithm.beta_scale * width.of(error, np.array([noise]), len(algorithm.features))[0])


def regret_bound(algorithm: Any, grid: IntArray) -> FloatArray | None:
    """(n_grid,) a bound on the regret after so many rounds, exceeded with probability at most 2 x failure.

    Args:
      algorithm: a `ProjectedElimination`; None is returned where its widths are not proved: printed, or scaled below 1.
      grid: rounds, at most the horizon.
    """
    width = algorithm.width
    if not isinstance(width, ExactWidth) or algorithm.beta_scale < 1 or width.error_scale < 1:
        return None
    most = min(2 * width.norm_bound, algorithm.reward_range.width)
    total, start, cost = np.zeros(len(grid)), 0, most
    for length in algorithm.lengths:
        total += cost * np.clip(grid - start, 0, length)
        start, cost = start + length, min(cost, 4 * largest_half_width(algorithm, length))
    return total
