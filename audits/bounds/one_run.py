r"""Lower bounds from a single run: every record is a canary that a fair coin put in or left out, and somebody guesses.

Strong where each record has a noisy report of its own (local DP: a run of T users is T canaries), weak where many
records share one noisy sum. The coins must be fair, independent, and tossed by the auditor. Guesses see the whole output.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr, ndtri

from bandana.algorithms.protocol import BoolArray, FloatArray
from bandana.audits.bounds.evalues import Claims, EProcess
from bandana.audits.bounds.samples import block_cuts
from bandana.privacy_core.checks import at_least, non_negative, probability

LEAST = 100
"""Fewer canaries than this certify nothing worth the run."""
_LARGEST = 30.0
_STEP = 0.005


def _checked_counts(n_canaries: int, n_guesses: int, n_right: int) -> None:
    at_least("n_canaries", n_canaries, 1)
    at_least("n_guesses", n_guesses, 0)
    at_least("n_right", n_right, 0)
    if n_guesses > n_canaries:
        raise ValueError(f"n_guesses must be at most n_canaries = {n_canaries}, got {n_guesses!r}")
    if n_right > n_guesses:
        raise ValueError(f"n_right must be at most n_guesses = {n_guesses}, got {n_right!r}")


def p_value(n_canaries: int, n_guesses: int, n_right: int, epsilon: float, delta: float) -> float:
    r"""The probability, at most, that (epsilon, delta)-DP lets so many guesses be right.

    Args:
      n_canaries: m, each put in by a fair coin.
      n_guesses: r, how many of the coins were guessed; which ones may depend on the output.
      n_right: v, how many guesses are right.
      epsilon: in nats, at least 0.
      delta: at least 0, below 1.

    Returns:
      beta + 2 m delta a, with W ~ Binomial(r, E/(1 + E)), beta = P(W >= v), a = max over i >= 1 of P(v > W >= v - i)/i; at
      most 1.

    Raises:
      ValueError: counts that cannot be, or epsilon or delta out of range.

    Guarantee: a p-value: under the claim it is at most x with probability at most x, for each x fixed before.

    Proof (sketch): given the output, and the coins before, each guess is right with probability at most E/(1 + E), but for a
    share of its mass that delta gives away; so the count is dominated by W + F with 0 <= F and E F <= 2 m delta, and
    P(W + F >= v) <= P(W >= v) + E[a F]. Source: Steinke, Nasr, Jagielski (2023), Theorem 5.2 and Corollary 5.4.
    """
    _checked_counts(n_canaries, n_guesses, n_right)
    non_negative("epsilon", epsilon)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta!r}")
    from scipy.stats import binom

    rho = float(expit(epsilon))
    beta = float(binom.sf(n_right - 1, n_guesses, rho))
    if delta == 0 or n_right == 0:
        return min(1.0, beta)
    mean, deviation = n_guesses * rho, math.sqrt(n_guesses * rho * (1 - rho))
    last = min(n_right, max(1, math.ceil(n_right - mean + 12 * deviation)))
    steps = np.arange(1, last + 1)
    given = float(np.max(np.cumsum(binom.pmf(n_right - steps, n_guesses, rho)) / steps))
    beyond = 1 / (last + 1) if last < n_right else 0.0  # where the law has nothing left: no probability exceeds 1
    return min(1.0, beta + 2 * n_canaries * delta * max(given, beyond))


def epsilon_lower(n_canaries: int, n_guesses: int, n_right: int, delta: float, level: float) -> float:
    """The largest epsilon that `p_value` refutes together with all smaller ones on a grid of step 0.005, 0 if none.

    Args: as for `p_value`; level: probability of a bound that is too large.

    Guarantee: with probability at least 1 - level the mechanism is not (epsilon, delta)-DP for any smaller epsilon. The
    number of guesses is fixed in advance: several numbers are several bounds, at level / K each. The grid is walked upward
    from 0, so that the first epsilon that holds is tested once: no correction for the number of tests is needed.
    """
    probability("level", level)

    def is_refuted(epsilon: float) -> bool:
        return p_value(n_canaries, n_guesses, n_right, epsilon, delta) <= level

    steps = 0
    while steps < _LARGEST / _STEP and is_refuted(steps * _STEP):
        steps += 1
    return max(0, steps - 1) * _STEP


def mu_lower(n_canaries: int, n_guesses: int, n_right: int, level: float) -> float:
    r"""Lower bound on mu, for a mechanism that is mu-GDP for some mu, from the guesses of one run.

    Args:
      n_canaries: m, each put in by a fair coin.
      n_guesses: k, how many of the coins were guessed, a number fixed in advance; which ones may depend on the output.
      n_right: c, how many guesses are right.
      level: probability of a bound that is too large.

    Returns:
      mu, at least 0.

    Raises:
      ValueError: counts that cannot be, or level out of range.

    Guarantee: with probability at least 1 - level every mu for which the mechanism is mu-GDP is at least this.

    Proof: let p_j be the probability of j right guesses, S_i, R_i and H_i the sums over j >= i of p_j, j p_j / m and
    (k - j) p_j / m, so that R + H = (k/m) S. Flip the coin of a canary drawn at random. The event "the guess is what the
    coin was before the flip, and i or more were right then" has mass R_i before it; after it, this says that the guess is
    wrong and i - 1 or more are right, of mass H_(i-1). f-DP ties the two for each canary, and f is convex, so by Jensen
    H_(i-1) >= g(R_i), for mu-GDP g(r) = Phi(Phi^-1(r) - mu). Suppose P(c or more right) >= level, and put all that mass on
    c exactly: r = level c/m, h = level (k - c)/m. Stepping from i = c - 1 down to 0 with h' = max(h, g(r)) and
    r' = r + i/(k - i) (h' - h) keeps S_i >= s_i and R_i - r_i >= (i/m)(S_i - s_i), with s = (r + h) m/k, by induction: s' is
    the larger of s and (m (g(r) + r) - i s)/(k - i), which does not fall if s grows by any x and r by i x/m or more. At the
    end s <= S_0 = 1, that is r + h <= k/m; where that fails, c or more right guesses have a probability below `level`.

    How sharp: with Gaussian noise and all coins guessed it reaches a third of the truth, however many there are, for mu-GDP
    of the whole run lets rare outputs tell much. Where each canary has a report of its own, `sequential_lower` is sharp.
    Source: Mahloujifar, Melis, Chaudhuri (2024), Theorem 9, Algorithms 1 and 3.
    """
    _checked_counts(n_canaries, n_guesses, n_right)
    probability("level", level)
    if not n_right:
        return 0.0
    low, high = 0.0, 2 * float(-ndtri(level / max(n_canaries, 2))) + 4.0
    for _ in range(3):
        mus = np.linspace(low, high, 41)[:-1]
        refuted = _is_refuted(mus, n_canaries, n_guesses, n_right, level)
        if not refuted[0]:
            return low
        last = len(mus) - 1 if refuted.all() else int(np.argmin(refuted)) - 1
        low, high = float(mus[last]), float(mus[last] + (mus[1] - mus[0]))
    return low


def _is_refuted(mus: FloatArray, n_canaries: int, n_guesses: int, n_right: int, level: float) -> BoolArray:
    right = np.full(len(mus), level * n_right / n_canaries)
    wrong = np.full(len(mus), level * (n_guesses - n_right) / n_canaries)
    for i in range(n_right - 1, -1, -1):
        more = np.maximum(wrong, ndtr(ndtri(np.minimum(right, 1.0)) - mus))
        right = right + i / (n_guesses - i) * (more - wrong)
        wrong = more
    return np.asarray(right + wrong > n_guesses / n_canaries)


def sequential_lower(scores: ArrayLike, is_in: ArrayLike, claims: Claims, level: float) -> float:
    r"""Lower bound from canaries whose coins are tossed, and scored, one after the other.

    Args:
      scores: (m,) one a canary, in the order of the coins: the log-likelihood ratio of "in" against "out" given all that was
        seen, computed before the next coin is tossed; m >= 100.
      is_in: (m,) bool, the coins.
      claims: increasing values of epsilon at some delta, or of mu; fixed in advance.
      level: probability of a bound that is too large.

    Returns:
      the largest value of `claims` refuted together with all before it; 0 if the first is not.

    Raises:
      ValueError: unusable scores or coins (see `checked_coins`), or level out of range.

    Guarantee: with probability at least 1 - level, the claim "given all before, the canary's score is (epsilon, delta)-DP
    (or mu-GDP) in its coin" fails for every smaller value. The canaries need not be independent: each factor has mean at
    most 1 given the past, so the product is a supermartingale (`evalues.EProcess`, tossed). epsilon-DP of the stream of
    outputs implies the claim, for the past does not depend on the next coin. (epsilon, delta)-DP and mu-GDP imply it where
    each canary has a release of its own; otherwise a delta may be spent on one past, and the claim is a stronger one.
    """
    values, coins = checked_coins(scores, is_in)
    probability("level", level)
    process = EProcess(claims, is_tossed=True)
    for start, stop in block_cuts(len(values)):
        block, side = values[start:stop], coins[start:stop]
        process.update(block[~side], block[side])
    return process.lower(level)


def checked_coins(scores: ArrayLike, is_in: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Scores of at least 100 canaries as float64, and their coins.

    Raises:
      ValueError: coins that are not one bool a score, scores that are NaN or too few.
    """
    values, coins = np.asarray(scores, dtype=float), np.asarray(is_in)
    if values.ndim != 1 or values.shape != coins.shape or coins.dtype != bool:
        raise ValueError(f"is_in must hold a bool for each score, got {coins.dtype} {coins.shape} for scores {values.shape}")
    if len(values) < LEAST:
        raise ValueError(f"scores must hold at least {LEAST} canaries, got {len(values)}")
    if np.isnan(values).any():
        raise ValueError(f"scores must hold no NaN, got {int(np.isnan(values).sum())} among {len(values)}")
    return values, coins
