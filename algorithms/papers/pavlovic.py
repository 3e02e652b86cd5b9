r"""Pavlovic, Salgia, Zhao, Differential Privacy in Kernelized Contextual Bandits via Random Projections: CAPRI.

A record is a pair (context, reward), |y| <= B; a neighbor replaces one. An epoch releases h = M^{-1/2} K_{S,W} y plus
noise, where M = K_{SR} K_{RS} + tau K_{SS} is made of points that are drawn without the data. With v(w) = M^{-1/2} k_S(w)
a record adds y v(w), and s(w) = \|v(w)\|. Each user is in one epoch, so by the one-touch lemma (`docs/privacy.md`) the
run costs what one epoch does.
"""

from __future__ import annotations

import math
from collections.abc import Callable


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


def least_epoch(probability: float, ridge: float, failure: float) -> int:
    r"""The least length of an epoch from which Lemma 6.5 holds as its proof uses it, on a finite set of points.

    The proof needs 2 sqrt(C_0 L) + 4 C_0 L / 3 <= 1/9 with L = log(14 T_r / failure) and C_0 the largest
    phi^T (T_r Lambda + tau)^-1 phi. A point of probability at least p has C_0 <= 1 / (p T_r + tau), as T_r Lambda is at
    least p T_r phi phi^T. This is the lemma's threshold with F^2 = 1 / p, which bounds the eigenfunctions on a finite set
    (they have mean square 1), and without the constants beta_p and T-bar that the paper leaves open.

    Args:
      probability: p, the least of a point that can be drawn.
      ridge: tau.
      failure: delta.
    """

    def holds(length: int) -> bool:
        share = math.log(14 * length / failure) / (probability * length + ridge)
        return 2 * math.sqrt(share) + 4 * share / 3 <= 1 / 9

    return _least(holds)


def least_horizon(probability: float, ridge: float, failure: float, n_points: int) -> int:
    """T_0: the least T whose first epoch, of ceil(sqrt T) rounds, is that long at failure / (|W| T log T), as eq. (7) asks.

    Args:
      probability: p, the least of a point that can be drawn.
      ridge: tau.
      failure: delta.
      n_points: |W|.
    """

    def holds(first: int) -> bool:
        horizon = max(2, first) ** 2
        return least_epoch(probability, ridge, failure / (n_points * horizon * math.log(horizon))) <= first

    return (_least(holds) - 1) ** 2 + 1


def _least(holds: Callable[[int], bool]) -> int:
    """The least whole number that has the property, which all larger ones have too."""
    top = 1
    while not holds(top):
        top *= 2
    low = top // 2
    while top - low > 1:
        middle = (low + top) // 2
        low, top = (low, middle) if holds(middle) else (middle, top)
    return top
