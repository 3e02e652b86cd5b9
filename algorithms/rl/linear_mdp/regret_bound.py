r"""Proved bounds on the regret of batched LSVI-UCB: bounds with explicit constants, for looks at even distances.

Regret is what `EpisodicRegretCurve` counts, the sum of the gaps V*_h(s_h) - Q*_h(s_h, a_h) along the trajectories. Let D_h
= V_h - V*_h, in [0, cap_h] where all Q_h are optimistic. The action attains V_h(s_h), so that

    gap_h + D_h(s_h) = V_h(s_h) - Q*_h(s_h, a_h) <= min(cap_h, 2 beta_h |phi|) + (P D_{h+1})(s_h, a_h),

and summed over an episode: sum gap_h <= sum of the bonuses + sum of (P D_{h+1} - D_{h+1}(s_{h+1})), martingale differences.

A policy is as old as its last update. Let A_k = sum phi phi^T + a I of the first k episodes, a the least of the run, and n
the distance of looks. Between two of them det A grows by more than 2 at most log2(det A / a^d) times; these episodes are
counted as lost. In all others the norm in A^-1 of the last look is at most sqrt 2 times that of the present one, and with c
from `switching_factor` the bonus of the last update at most sqrt c times that of the last look:

  static       Every look is an update: c = 1, n = ceil(K/B).
  determinant  Let L_l = log det Lambda_l - d log s_l at look l, s_l the shift, with noise in its bounds: A_l <= Lambda_l,
               and the eigenvalues of Lambda_t - sum phi phi^T are at most b_t. If look l was no update, and u was the last
               one, L_l is at most log(1 + C) above 0 or above some L_t of an update t <= u. As sum phi phi^T only grows,
               det Lambda_t <= det(sum_u phi phi^T + b_t I) <= (b_t / a)^d det A_u, so that

                   det A_l <= det Lambda_l <= (1 + C) max_t (s_l b_t / (s_t a))^d det A_u = c det A_u,

               and |x|^2 in Lambda_u^-1 is at most that in A_u^-1, at most c that in A_l^-1. The first look is an update, and
               an update is refused only where fewer are paid for than `most_switches`; then nothing is proved.

With noise that grows with K by logarithms alone, n = sqrt K makes the second of these O(sqrt K), the order that Ngo, Vietri
and Wu (2022) state. The factor c is exponential in d, as noise may hide that a determinant grows; 1 + 2/m in place of up
to 3 a dimension would need a margin of m ~ d. Geometric batches hold no such bound: the last ones are of the order of K,
and a batch in which something unseen turns up may be one of them. No schedule of O(log K) public times has a sublinear
worst case (Gao, Xie, Du and Yang 2021).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.regression.private_ridge import Regularizer
from bandana.algorithms.rl.linear_mdp.batched_lsvi import BatchedLSVI
from bandana.algorithms.rl.linear_mdp.batches import most_switches


def is_proved(algorithm: BatchedLSVI) -> bool:
    """True if a bound is known: looks are even, all updates that are due are paid for, the width is not scaled down."""
    schedule = algorithm.schedule
    is_even = len(set(schedule.batches)) == 1 and algorithm.horizon - schedule.looks[-1] <= schedule.looks[0]
    needed = float(len(schedule.looks))
    if schedule.log_growth is not None:
        needed = most_switches(schedule, algorithm.model.dimension, algorithm.episode_length, _regularizers(algorithm))
    is_known = schedule.log_growth is None or algorithm.width is None
    return is_even and is_known and schedule.most_updates >= math.floor(needed) and algorithm.beta_scale >= 1


def switching_factor(algorithm: BatchedLSVI) -> float:
    """c, by how much the square of a bonus may have fallen since the last update without another one; see the module."""
    growth = algorithm.schedule.log_growth
    if growth is None:
        return 1.0
    each = _regularizers(algorithm)
    before = np.maximum.accumulate([look.largest / look.added for look in each])
    spread = max(look.added * ratio for look, ratio in zip(each, before, strict=True)) / min(look.least for look in each)
    return float(math.exp(growth) * spread**algorithm.model.dimension)


def _regularizers(algorithm: BatchedLSVI) -> list[Regularizer]:
    return [algorithm.regularizer(look) for look in range(1, len(algorithm.schedule.looks) + 1)]


def regret_bound(algorithm: BatchedLSVI, episodes: ArrayLike) -> FloatArray:
    r"""Regret that is exceeded, at any one number of episodes, with probability at most twice the algorithm's `failure`.

    With n the distance of looks, s the scale of the widths, W_h the largest beta_h / s of the run, c the `switching_factor`
    and G_k = d log(1 + k/(a d)), after k episodes

        R <= sum_h cap_h n (1 + G_k / log 2) + sum_h max(cap_h, sqrt(8 c) s W_h) sqrt(k G_k / log 2)
             + sqrt(k sum_h cap_{h+1}^2 log(1/failure) / 2),

    and R <= k sum_h cap_h. The first batch, in which nothing is known, is counted as one that grows by more. Where the width
    is the printed one, in static batches, it is the paper's eq. (22),

        R <= H^2 n + 2 sqrt(2 k H^3 log(3/failure)) + H floor(d H n log(1 + k/(d lambda)) / (2 log 4 - 2))
             + 8 s beta H sqrt(2 d k log(1 + k/(lambda + c_K))),

    with H^2 n for the first batch, whose matrix is lambda I and not at least (lambda + c_K) I as Lemma 25 assumes.

    Args:
      algorithm: with static batches, or with updates by determinants.
      episodes: numbers of episodes, at most K, any shape, which the regret has too, in units of reward.

    Raises:
      ValueError: nothing is proved of this algorithm.

    Source: Luyo, Garcelon, Lazaric and Pirotta, Theorem 8, Lemmas 23 to 25; Jin and others (2020); Wang, Zhou and Gu (2021);
    for determinants Ngo, Vietri and Wu (2022). The first bound is theirs, for the width of `BatchedLSVI`, with regret
    counted along trajectories.
    """
    if not is_proved(algorithm):
        raise ValueError(
            "a regret bound is proved for static batches, or for determinants with as many updates as they need, and a "
            "beta_scale of at least 1, see the module"
        )
    k, caps = np.asarray(episodes, dtype=float), np.array(algorithm.caps)
    d, length, n = algorithm.model.dimension, algorithm.episode_length, algorithm.schedule.looks[0]
    looks, scale, fails = range(1, len(algorithm.schedule.looks) + 1), algorithm.beta_scale, algorithm.failure
    least = min(each.least for each in _regularizers(algorithm))
    most = caps.sum() * k
    if algorithm.width is not None:
        batches = np.floor(d * length * n * np.log1p(k / (d * algorithm.ridge)) / (2 * math.log(4) - 2))
        chance = 2 * np.sqrt(2 * k * length**3 * math.log(3 / fails))
        bonus = 8 * scale * algorithm.width * length * np.sqrt(2 * d * k * np.log1p(k / least))
        return np.asarray(np.minimum(most, length**2 * n + chance + length * batches + bonus))
    growth = d * np.log1p(k / (least * d)) / math.log(2)
    widest = np.max([algorithm.widths(look) for look in looks], axis=0)
    cost = np.maximum(caps, math.sqrt(8 * switching_factor(algorithm)) * widest).sum() * np.sqrt(k * growth)
    chance = np.sqrt(k * (caps[1:] ** 2).sum() * math.log(1 / fails) / 2)
    return np.asarray(np.minimum(most, caps.sum() * n * (1 + growth) + cost + chance))
