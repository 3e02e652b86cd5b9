r"""Proved bound on the regret of UCB-VI on noisy counts, with explicit constants, joint and local.

Regret is what `EpisodicRegretCurve` counts, the sum of the gaps V*_h(s_h) - Q*_h(s_h, a_h) along the trajectories. Let D_h =
V_h - V*_h, in [0, cap_h] by optimism (`UCBVI`). The action attains V_h(s_h), so that gap_h + D_h(s_h) <= Q_h - Q*_h at (s_h,
a_h), and with the symbols of `UCBVI`, n >= 1 visits at the last look, u >= n, and s the scale of the widths,

    Q_h - Q*_h <= P D_{h+1} + X / u,
    X = b + (1/2 + c) 2 s E_n + E_r + c E_1 + sqrt(u l / 2) + C sqrt(u (S log 2 + l) / 2) <= sqrt(u) W_h + G_h:

the same errors once more from the other side, rewards by Hoeffding's bound, and next states by |P^ - P|_1 <= sqrt(2 (S
log 2 + l) / n) (Weissman and others 2003), as V_{h+1} is not fixed:

    hoeffding  W_h = s (1 + C) sqrt(l/2) + sqrt(l/2) + C sqrt((S log 2 + l)/2),
               G_h = (2 z' + C) 2 s E_n + (s + 1) (E_r + c E_1), z' = max(z, 1 - z) the reach of rewards less z, here 1/2;
    bernstein  W_h = (s + 1) (sqrt(l/2) + C sqrt(2 l)) + C sqrt((S log 2 + l)/2),
               G_h = 4 z' s E_n + (s + 1) (E_r + C E_g + 2 C sqrt(l E_1) + 3 C l) + [C > 0] (C (s + 2) + 1) E_1.

The second one, DP-UCBVI: the part of rewards is as before, with 1/2 in place of 1/2 + c. For next states A_up <= N x* + e +
R E_g + n P^ D + C E_1: its ends lie above V* by at most D times m, and C times |nu|. W <= n C^2 + 2 C^2 E_1, R <= C, and
max(1 - N, 0) <= E_1 as N >= n - E_1, with the factor s c + c <= s C. All of it is over N' and not over n: of two numbers
z / N' and cap_h the smaller one is at most (z + cap_h E_1) / n, as n - N' <= E_1.

Summed over an episode: sum gap_h <= sum of X / u, and of P D_{h+1} - D_{h+1}(s_{h+1}), martingale differences in intervals
of length cap_{h+1}.

Let looks be B episodes apart. The i-th visit to a row finds n >= i - B of them in the sums; visits with n < B, at most 2 B a
row, are counted as lost, cap_h each; in all others n >= i / 2. So a row with N visits has sum 1/sqrt(u) <= 2 sqrt(2 N)
and sum 1/u <= 2 (1 + log N), and after k episodes with S A rows a step, with probability 1 - 2 failure,

    R <= sum_h [2 B S A cap_h + 2 sqrt(2 S A k) W_h + 2 S A (1 + log k) G_h] + sqrt(k sum_h cap_{h+1}^2 log(1/failure) / 2),

and R <= k sum_h cap_h. Under joint privacy errors grow with log k, so privacy costs H^2 S^2 A / epsilon at most, up to
logarithms and roots of H; under local privacy they grow with sqrt k. This is the order of Vietri and others and of
Garcelon and others. Qiao and Wang's leading term for DP-UCBVI, sqrt(H^3 S A k) up to constants and logarithms, is better by
sqrt(H S): it needs the law of total variance, and no constants of it are derived here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.rl.tabular.ucb_vi import UCBVI


def is_proved(algorithm: UCBVI) -> bool:
    """True if a bound is known: the width is the proved one, and not scaled down."""
    return algorithm.published is None and algorithm.beta_scale >= 1 and bool(algorithm.looks)


def regret_bound(algorithm: UCBVI, episodes: ArrayLike) -> FloatArray:
    """Regret that is exceeded, at any one number of episodes, with probability at most twice the algorithm's `failure`.

    Args:
      algorithm: with the proved width.
      episodes: numbers of episodes, at most K, any shape, which the regret has too, in units of reward.

    Raises:
      ValueError: nothing is proved of this algorithm.
    """
    if not is_proved(algorithm):
        raise ValueError("a regret bound is proved for widths that are not PUCB's, and a beta_scale of at least 1")
    k, log, scale = np.asarray(episodes, dtype=float), algorithm.log, algorithm.beta_scale
    n_states, rows = algorithm.n_states, algorithm.n_states * algorithm.n_actions
    caps = np.array(algorithm.caps[:-1])
    after = np.array(algorithm.caps[1:])
    count, reward, total, function = np.max(np.array(algorithm.errors), axis=0)
    unknown, both = after * math.sqrt((n_states * math.log(2) + log) / 2), scale + 1
    reach = 2 * algorithm.layout.reward_reach
    if algorithm.bonus == "bernstein":
        width = both * (math.sqrt(log / 2) + after * math.sqrt(2 * log)) + unknown
        noise = 2 * reach * scale * count + both * (reward + after * (function + 2 * math.sqrt(log * total) + 3 * log))
        noise = noise + (after > 0) * (after * (scale + 2) + 1) * total
    else:
        width = (scale * (1 + after) + 1) * math.sqrt(log / 2) + unknown
        noise = (reach + after) * 2 * scale * count + both * (reward + after / 2 * total)
    lost = 2 * algorithm.looks[0] * rows * caps.sum()
    cost = 2 * np.sqrt(2 * rows * k) * width.sum() + 2 * rows * (1 + np.log(np.maximum(k, 1.0))) * noise.sum()
    chance = np.sqrt(k * (after**2).sum() * math.log(1 / algorithm.failure) / 2)
    return np.asarray(np.minimum(caps.sum() * k, lost + cost + chance))
