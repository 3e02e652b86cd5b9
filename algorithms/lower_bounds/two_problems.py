r"""The cost of distinguishing two problems: the errors of every algorithm on both, summed over users, at least.

Users meet a choice of two actions. Which is better has two answers, + and -, and the gap is the same; each user's datum (a
reward, or how an episode ends) is a Bernoulli variable of mean (1 + s) / 2 or (1 - s) / 2, drawn with a uniform number that
both problems share, so that the t-th user's choice rests on t data of which Binomial(t, s) differ. If w_t is the sum, over
both problems, of the probabilities that user t (from 0) is given the worse action, then

    w_t >= (1/2) e^(-t k)          (Bretagnolle and Huber), k the divergence of one datum: kl((1 + s) / 2, (1 - s) / 2), or
                                   what is left of it in a local message (`divergences.local_kl`);
    w_t >= 2 / (1 + e^(epsilon s t))   under pure DP: with k data that differ the probabilities of an event have ratios of at
                                   most e^(epsilon k), so the errors sum to 2 / (1 + e^(epsilon k)), convex in k >= 0
                                   (Jensen);
    w_t >= 2 Phi(-mu s t / 2)      under mu-GDP: k changes are (k mu)-GDP (group privacy), errors 2 Phi(-k mu / 2), convex.

Joint DP is enough for both: user t's choice depends on the data of others and on no own datum, which comes after it. All
three fall in t, so that their sums over t = 0, ..., n - 1 are at least the integrals from 0 to n that are computed here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from bandana.algorithms.lower_bounds.divergences import bernoulli_kl, local_kl
from bandana.algorithms.lower_bounds.lower_bound import Privacy
from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core import TrustModel


def summed_errors(n_users: ArrayLike, spread: ArrayLike, privacy: Privacy) -> FloatArray:
    """The sum of w_t over the first `n_users`, at least; shapes broadcast.

    Args:
      n_users: n, at least 0.
      spread: s, in (0, 1].
      privacy: of every user's datum.
    """
    n, s = np.asarray(n_users, dtype=float), np.asarray(spread, dtype=float)
    if privacy.trust is TrustModel.LOCAL:
        return _exponential(n, local_kl((1 + s) / 2, (1 - s) / 2, privacy.epsilon, privacy.mu))
    errors = _exponential(n, bernoulli_kl((1 + s) / 2, (1 - s) / 2))
    if privacy.epsilon is not None:
        rate = privacy.epsilon * s  # of the integral of 2 / (1 + e^(rate t))
        errors = np.maximum(errors, 2 * (math.log(2) - np.log1p(np.exp(-rate * n))) / rate)
    if privacy.mu is not None:
        errors = np.maximum(errors, _normal(n, privacy.mu * s / 2))
    return errors


def _exponential(n: FloatArray, rate: FloatArray) -> FloatArray:
    """The integral of e^(-rate t) / 2 over t in [0, n]; a message that tells nothing has a rate of 0, and it is n / 2."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        errors = np.where(np.isinf(rate), 0.0, -np.expm1(-rate * n) / (2 * rate))
    return np.asarray(np.where(rate > 0, errors, n / 2))


def _normal(n: FloatArray, rate: FloatArray) -> FloatArray:
    """The integral of 2 Phi(-rate t): 2 n Phi(-rate n) + 2 (phi(0) - phi(rate n)) / rate."""
    x = rate * n
    return np.asarray(2 * n * ndtr(-x) - 2 * np.expm1(-(x**2) / 2) / (math.sqrt(2 * math.pi) * rate))


_N_SPREADS = 200


def worst_of_groups(grid: ArrayLike, n_groups: int, most_spread: float, gap_factor: float, privacy: Privacy) -> FloatArray:
    """The largest average regret over 2^groups problems, which bounds the worst of them from below, at each horizon.

    Users come in groups of n = floor(t / groups), each of which meets a choice of its own: nothing of one group tells of
    another's answer. Averaged over all answers the regret is gap / 2 times the sum of w_t in each group, gap = `gap_factor`
    s; every s up to `most_spread` gives a bound, and the best of a fixed grid is taken.

    Args:
      grid: (n_grid,) numbers of users t.
      n_groups: at least 1.
      most_spread: the largest s that the class allows, in (0, 1].
      gap_factor: gap over s, in units of reward.
      privacy: of every user's datum.

    Returns:
      (n_grid,) in units of reward; 0 where there are fewer users than groups.
    """
    users = np.floor(np.asarray(grid, dtype=float) / n_groups)[:, None]
    spreads = most_spread * np.geomspace(1e-6, 1.0, _N_SPREADS)
    return np.asarray((n_groups * gap_factor * spreads / 2 * summed_errors(users, spreads, privacy)).max(axis=1))
