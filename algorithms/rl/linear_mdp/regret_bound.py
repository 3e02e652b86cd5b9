r"""What is proved of the regret of batched LSVI-UCB: bounds with explicit constants, for static batches.

Regret is what `EpisodicRegretCurve` counts, the sum of the gaps V*_h(s_h) - Q*_h(s_h, a_h) along the trajectories. Let D_h
= V_h - V*_h, in [0, cap_h] where all Q_h are optimistic. The action attains V_h(s_h), so that

    gap_h + D_h(s_h) = V_h(s_h) - Q*_h(s_h, a_h) <= min(cap_h, 2 beta_h |phi|) + (P D_{h+1})(s_h, a_h),

and summed over an episode: sum gap_h <= sum of the bonuses + sum of (P D_{h+1} - D_{h+1}(s_{h+1})), martingale differences.

Batches that are long in comparison with what came before them are the difficulty: their bonuses are those of their start.
In a batch in which det G_h, G_h = sum phi phi^T + a I with the least a of the run, grows by at most 2, bonuses are at most
sqrt 2 times those of G_h^-1; in any stage at most log2(det G_h / a^d) batches grow by more, and of the static scheme each
has ceil(K/B) episodes. Geometric batches hold no such bound: the last ones are of the order of K, and a batch in which
something unseen turns up may be one of them. No schedule of O(log K) public times has a sublinear worst case (Gao, Xie, Du
and Yang 2021), and for determinants the paper's own analysis needs more updates than are paid for here; for both nothing
is claimed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.rl.linear_mdp.batched_lsvi import BatchedLSVI


def is_proved(algorithm: BatchedLSVI) -> bool:
    """Whether a bound is known: batches are of one length, updates come at each look, the width is not scaled down."""
    schedule = algorithm.schedule
    is_static = schedule.log_growth is None and len(set(schedule.batches)) == 1
    covers = algorithm.horizon - schedule.looks[-1] <= schedule.looks[0]
    return is_static and covers and schedule.most_updates == len(schedule.looks) and algorithm.beta_scale >= 1


def regret_bound(algorithm: BatchedLSVI, episodes: ArrayLike) -> FloatArray:
    r"""Regret that is exceeded, at any one number of episodes, with probability at most twice the algorithm's `failure`.

    With n = ceil(K/B) the length of a batch, s the scale of the widths, W_h the largest beta_h / s of the run and G_k = d
    log(1 + k/(a d)), after k episodes

        R <= sum_h cap_h n (1 + G_k / log 2) + sum_h max(cap_h, sqrt 8 s W_h) sqrt(k G_k / log 2)
             + sqrt(k sum_h cap_{h+1}^2 log(1/failure) / 2),

    and R <= k sum_h cap_h. The first batch, in which nothing is known, is counted as one that grows by more. Where the width
    is the printed one it is the paper's eq. (22),

        R <= H^2 n + 2 sqrt(2 k H^3 log(3/failure)) + H floor(d H n log(1 + k/(d lambda)) / (2 log 4 - 2))
             + 8 s beta H sqrt(2 d k log(1 + k/(lambda + c_K))),

    with H^2 n for the first batch, whose matrix is lambda I and not at least (lambda + c_K) I as Lemma 25 assumes.

    Args:
      algorithm: with static batches.
      episodes: numbers of episodes, at most K, any shape.

    Returns:
      in units of reward, the shape of `episodes`.

    Raises:
      ValueError: nothing is proved of this algorithm.

    Source: Luyo, Garcelon, Lazaric and Pirotta, Theorem 8, Lemmas 23 to 25; Jin and others (2020); Wang, Zhou and Gu (2021).
    The first bound is theirs, for the width of `BatchedLSVI`, with regret counted along trajectories.
    """
    if not is_proved(algorithm):
        raise ValueError("a regret bound is proved for static batches and a beta_scale of at least 1, see the module")
    k, caps = np.asarray(episodes, dtype=float), np.array(algorithm.caps)
    d, length, n = algorithm.model.dimension, algorithm.episode_length, algorithm.schedule.looks[0]
    looks, scale, fails = range(1, len(algorithm.schedule.looks) + 1), algorithm.beta_scale, algorithm.failure
    least = min(algorithm.regularizer(look).least for look in looks)
    most = caps.sum() * k
    if algorithm.width is not None:
        batches = np.floor(d * length * n * np.log1p(k / (d * algorithm.ridge)) / (2 * math.log(4) - 2))
        chance = 2 * np.sqrt(2 * k * length**3 * math.log(3 / fails))
        bonus = 8 * scale * algorithm.width * length * np.sqrt(2 * d * k * np.log1p(k / least))
        return np.asarray(np.minimum(most, length**2 * n + chance + length * batches + bonus))
    growth = d * np.log1p(k / (least * d)) / math.log(2)
    widest = np.max([algorithm.widths(look) for look in looks], axis=0)
    cost = np.maximum(caps, math.sqrt(8) * widest).sum() * np.sqrt(k * growth)
    chance = np.sqrt(k * (caps[1:] ** 2).sum() * math.log(1 / fails) / 2)
    return np.asarray(np.minimum(most, caps.sum() * n * (1 + growth) + cost + chance))
