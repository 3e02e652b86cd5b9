r"""Pavlovic, Salgia, Zhao, Differential Privacy in Kernelized Contextual Bandits via Random Projections: CAPRI.

A record is a pair (context, reward), |y| <= B; a neighbor replaces one. An epoch releases h = M^{-1/2} K_{S,W} y plus
noise, where M = K_{SR} K_{RS} + tau K_{SS} is made of points that are drawn without the data. With v(w) = M^{-1/2} k_S(w)
a record adds y v(w), and s(w) = \|v(w)\|. Each user is in one epoch, so by the one-touch lemma (`docs/privacy.md`) the
run costs what one epoch does.
"""

from __future__ import annotations

import math


def printed_sd(epsilon: float, delta: float, horizon: int, reward_bound: float, sigma_max: float, reading: str) -> float:
    r"""sigma_0 of eqs. (5) and (8): sigma_max (4 B log T / epsilon) sqrt(log(1.25 log T / delta)).

    It is sqrt 2 times the classical Gaussian mechanism at (epsilon / log T, delta / log T), sensitivity 2 B sigma_max: a
    share for each of about log T epochs, although no user is in two of them; under local privacy
    the factors log T have no reason at all.

    Exact sensitivity: y v(w) - y' v(w') has norm at most 2 B s_max, attained by w = w', y = B, y' = -B. The paper bounds
    s(w) by sigma_max >= s_max: sigma(w)^2 = s(w)^2 + \|(I - P) phi(w)\|^2 / tau. So mu = 2 B s_max / sigma_0, which at
    s_max = sigma_max is epsilon / (2 log T sqrt(log(1.25 log T / delta))) whatever B is.

    Where the print is wrong: Lemmas 6.6 and 7.1 miss the square root (reading `unrooted`; the claim then fails once
    sigma_max is small). The maximum must run over all contexts that a neighbor may bring, not over the support of the
    generator. K_SS is singular as soon as S repeats a point.

    Args:
      epsilon: of the claim.
      delta: of the claim.
      horizon: T.
      reward_bound: B.
      sigma_max: the paper's bound on the norm s(w), eq. (6).
      reading: `natural`, `base-10` (what log means), or `unrooted` (Lemma 6.6 defines sigma_max without the square root
        that eq. (6) has, which puts sigma_max^2 in its place).
    """
    log_t = math.log10(horizon) if reading == "base-10" else math.log(horizon)
    largest = sigma_max**2 if reading == "unrooted" else sigma_max
    return largest * 4 * reward_bound * log_t / epsilon * math.sqrt(math.log(1.25 * log_t / delta))
