r"""Dubey, No-Regret Algorithms for Private Gaussian Process Bandit Optimization: GP-UCB with features of a kernel.

A record is (decision set, reward); a neighbor replaces one. It adds Phi Phi^T and y Phi, \|Phi\| <= 1. What bounds |y| is a
tail bound, |y| <= Y with high probability over the rewards, which is not a bound on what a neighbor may hold: without
clipping, no epsilon holds (Lemma 8 averages over data that the definition of DP holds fixed).
"""

from __future__ import annotations

import math


def joint_reward_bound(delta: float, horizon: int, norm_bound: float, noise_scale: float) -> float:
    """Y of eq. (43): sqrt(B^2 + 2 rho^2 log(8 T / delta)); B itself where rewards are bounded (rho = 0)."""
    return math.sqrt(norm_bound**2 + 2 * noise_scale**2 * math.log(8 * horizon / delta))


def joint_printed_sd(
    epsilon: float, delta: float, horizon: int, norm_bound: float, noise_scale: float, reading: str
) -> float:
    """The deviation sigma of one tree node, in five readings; n = 1 + ceil(log2 T), S = 1 + Y^2 (eq. 43).

    `lemma-2`: sigma = 16 n S ln(10/delta)^2 / epsilon^2. This is a variance (with S for S^2), printed as a deviation.
    `sketch`: sigma^2 = 16 n S ln(10/delta)^2 / epsilon^2, the proof sketch of Lemma 2. S should be squared.
    `lemma-12`: sigma = 16 n S' ln(4/delta)^2 epsilon^2 with S' = 1 + B^2 + rho^2 ln(4 T/delta). Here epsilon multiplies.
    `lemma-12-proof`: sigma^2 = 16 n S^2 ln(10/delta)^2, the proof's last line. Here is no epsilon at all.
    `consistent`: sigma^2 = 16 n S^2 ln(10/delta)^2 / epsilon^2: what the proof's budget for a node, (epsilon / sqrt(8 n
    ln(2/delta)), delta/2), asks for at the sensitivity S.

    Algorithm 2 means a tree with independent GOE noise on every node. Its words put noise on the leaves alone, each
    parent the sum of its children, which leaves t noises in prefix t. One node costs, with rewards clipped to Y, sigma mu
    = 1 + Y^2 for Y <= 1 and 2 Y above (`pair_mu_squared`). The printed tree also holds the sum of y^2, which nothing
    reads; above Y = 2.4 or so it costs extra (`square_entry_mu_squared`): at Y = 10 it is x 3.6.

    False as printed: `lemma-12` and `lemma-12-proof` for small epsilon; `sketch` for rho >= 4 or so at B = 1; all
    readings if rewards are not clipped.

    Args:
      epsilon: of the claim, the paper's alpha.
      delta: of the claim, the paper's beta.
      horizon: T.
      norm_bound: B.
      noise_scale: rho.
      reading: one of the above.
    """
    nodes = 1 + math.ceil(math.log2(horizon))
    size = 1 + joint_reward_bound(delta, horizon, norm_bound, noise_scale) ** 2
    log10 = math.log(10 / delta)
    if reading == "lemma-2":
        return 16 * nodes * size * log10**2 / epsilon**2
    if reading == "sketch":
        return 4 * math.sqrt(nodes * size) * log10 / epsilon
    if reading == "lemma-12":
        smaller = 1 + norm_bound**2 + noise_scale**2 * math.log(4 * horizon / delta)
        return 16 * nodes * smaller * math.log(4 / delta) ** 2 * epsilon**2
    if reading == "lemma-12-proof":
        return 4 * math.sqrt(nodes) * size * log10
    return 4 * math.sqrt(nodes) * size * log10 / epsilon


def local_printed_sds(epsilon: float, delta: float, dimension: int, norm_bound: float) -> tuple[float, float]:
    """The deviations sigma_X and sigma_u of Lemma 5, the statement; its undefined "delta" is read as the claim's own.

    sigma_X^2 = 8 ln(5 / (2 delta)) / epsilon^2 and sigma_u^2 = 8 (B^2 + 2 ln(8 m / delta)) ln(5 / delta) / epsilon^2.

    Each user sends Phi Phi^T + N and y Phi + n, N symmetric with equal variances. The proof takes the sensitivities 1 and
    Y; they are sqrt 2 and 2 Y, so neither half is (epsilon/2, delta/2)-DP as it says. Together mu^2 is the maximum over t
    of 2 (1 - t^2) / sigma_X^2 + 2 Y^2 (1 + t) / sigma_u^2: at delta = 1e-5 and the statement's Y, mu = 0.209 epsilon. The
    claim is true with little to spare at epsilon = 1 and false from epsilon = 7.9 on; with the proof's Y, from rho = 1.25
    on at epsilon = 1. The statement has no rho, the proof prints sigma_u for sigma_u^2 and alpha for the undefined delta.

    Args:
      epsilon: of the claim, the paper's alpha.
      delta: of the claim, the paper's beta.
      dimension: m, number of features.
      norm_bound: B.
    """
    square = norm_bound**2 + 2 * math.log(8 * dimension / delta)
    matrix = math.sqrt(8 * math.log(5 / (2 * delta))) / epsilon
    return matrix, math.sqrt(8 * square * math.log(5 / delta)) / epsilon


def local_reward_bound(reading: str, delta: float, dimension: int, norm_bound: float, noise_scale: float) -> float:
    """The bound on rewards that Lemma 5 assumes: the statement's sqrt(B^2 + 2 L) or the proof's B + rho sqrt(2 L).

    L = ln(8 m / delta). The two are not the same, and no tail of rewards bounds what a neighbor may hold.

    Args:
      reading: `statement` or `proof`; the statement has no rho.
      delta: of the claim.
      dimension: m, number of features.
      norm_bound: B.
      noise_scale: rho.
    """
    tail = math.sqrt(2 * math.log(8 * dimension / delta))
    return norm_bound + noise_scale * tail if reading == "proof" else math.hypot(norm_bound, tail)
