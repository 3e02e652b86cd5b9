r"""Divergences: how well two laws of one user's data can be distinguished, without privacy and with it.

Data are Bernoulli variables: rewards of 0 and 1, or episodes that end well or badly. All functions are pure, take arrays
that broadcast, and return nats.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, rel_entr

from bandana.algorithms.protocol import FloatArray


def bernoulli_kl(p: ArrayLike, q: ArrayLike) -> FloatArray:
    """Divergence kl(p, q) of Bernoulli variables of means p and q; infinite where q is 0 or 1 and p is not."""
    first, second = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    return np.asarray(rel_entr(first, second) + rel_entr(1 - first, 1 - second))


def private_kl(p: ArrayLike, q: ArrayLike, epsilon: float) -> FloatArray:
    r"""d_epsilon(p, q) = inf over r of epsilon |r - p| + kl(r, q): what one pull tells under epsilon-DP of all actions.

    It is at most kl(p, q) (at r = p) and at most epsilon |p - q| (at r = q), and tends to either as epsilon grows or falls.
    For p <= q the slope epsilon + logit r - logit q vanishes at r = expit(logit q - epsilon), so that is the minimum where
    it lies above p, and p is elsewhere; p > q is the mirror image.

    Guarantee: let the laws of arm a's rewards be P and Q in two problems that are else equal. The actions of an algorithm
    that is epsilon-DP (replace one reward, pure) then satisfy KL(actions under P || under Q) <= E_P[N_a] (epsilon TV(P, L) +
    KL(L || Q)) for every law L. Proof: V(a | r) is the probability of the actions a, given the rewards r that are answered.
    Let p(a, r, r') be V(a | r) times a maximal coupling of P and L for (r_t, r'_t) wherever a_t is arm a, r'_t = r_t
    elsewhere; let q(a, r, r') be V(a | r') times Q of r'_t and the same coupling's law of r_t given r'_t. Their marginals on
    a are the laws of the actions under P and Q. The log ratio of p to q is log V(a | r) / V(a | r') <= epsilon #{t: r_t !=
    r'_t} plus the sum of log dL/dQ(r'_t) over the pulls of arm a; given the past its expectation grows by epsilon TV(P, L) +
    KL(L || Q) with each pull. Divergence of marginals is at most that of the joint laws.

    Args:
      p: mean of the first law.
      q: mean of the second.
      epsilon: of pure DP, above 0.

    Source: Azize, Wu, Honda, Orabona, Ito and Basu (2025), Optimal regret of Bernoulli bandits under global differential
    privacy, whose bound rests on a quantity between total variation and KL; the proof here is ours and complete.
    """
    first, second = np.broadcast_arrays(np.asarray(p, dtype=float), np.asarray(q, dtype=float))
    mirrored = first > second
    low, high = np.where(mirrored, 1 - first, first), np.where(mirrored, 1 - second, second)
    with np.errstate(divide="ignore"):
        between = np.clip(expit(logit(high) - epsilon), low, high)
    return np.asarray(epsilon * (between - low) + bernoulli_kl(between, high))


def local_kl(p: ArrayLike, q: ArrayLike, epsilon: float | None, mu: float | None) -> FloatArray:
    r"""The most that one private message tells: KL of the messages' laws, where the data are Bernoulli of means p and q.

    A message is made from one bit x. If it is epsilon-LDP, it is post-processing of randomized response, which keeps x with
    probability e^epsilon / (1 + e^epsilon) (Kairouz, Oh and Viswanath 2015); if it is mu-GDP, of
    N(mu x, 1) (Dong, Roth and Su 2022, Theorem 2.10, Blackwell). By data processing no message tells more than these do,
    whose divergences are computed: that of two Bernoulli variables, and that of two mixtures of normal laws (by quadrature).

    Args:
      p: mean of the first law.
      q: mean of the second.
      epsilon: of pure local DP, or None.
      mu: of local Gaussian DP, or None; with neither, the data are sent as they are.
    """
    first, second = np.broadcast_arrays(np.asarray(p, dtype=float), np.asarray(q, dtype=float))
    if epsilon is not None:
        kept = math.tanh(epsilon / 2)  # 2 e^epsilon / (1 + e^epsilon) - 1
        return bernoulli_kl(0.5 + kept * (first - 0.5), 0.5 + kept * (second - 0.5))
    if mu is not None and mu < _DISCERNIBLE:
        x = np.linspace(-_REACH, mu + _REACH, _N_POINTS)
        zero, one = np.exp(-(x**2) / 2), np.exp(-((x - mu) ** 2) / 2)
        mixed, other = (m[..., None] * one + (1 - m[..., None]) * zero for m in (first, second))
        # a log(a / b) - a + b is never negative, and integrates to the same.
        density = rel_entr(mixed, other) - mixed + other
        return np.asarray(density.sum(axis=-1) * (x[1] - x[0]) / math.sqrt(2 * math.pi))
    return bernoulli_kl(first, second)


_REACH = 9.0
"""Deviations beyond which a normal law has less than 1e-18."""
_N_POINTS = 2001
_DISCERNIBLE = 20.0
"""A normal law with this mean is told from that with mean 0 but for 1e-23."""
