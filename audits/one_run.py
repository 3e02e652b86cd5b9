r"""Lower bounds from a single run: every record is a canary that a fair coin put in or left out, and somebody guesses.

Strong where each record has a noisy report of its own (local DP: a run of T users is T canaries), weak where many
records share one noisy sum. The coins must be fair, independent, and tossed by the auditor. Guesses see the whole output.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom

from algorithms.protocol import FloatArray
from audits.evalues import ApproxClaims, EProcess
from audits.samples import block_cuts
from privacy_core.checks import at_least, non_negative, probability

_LARGEST = 30.0
_STEP = 0.01


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
    rho = float(expit(epsilon))
    beta = float(binom.sf(n_right - 1, n_guesses, rho))
    if delta == 0 or n_right == 0:
        return min(1.0, beta)
    steps = np.arange(1, n_right + 1)
    given = np.cumsum(binom.pmf(n_right - steps, n_guesses, rho)) / steps
    return min(1.0, beta + 2 * n_canaries * delta * float(given.max()))


def epsilon_lower(n_canaries: int, n_guesses: int, n_right: int, delta: float, level: float) -> float:
    """The largest epsilon that `p_value` refutes together with all smaller ones on a grid, 0 if none.

    Args: as for `p_value`; level: probability of a bound that is too large.

    Guarantee: with probability at least 1 - level the mechanism is not (epsilon, delta)-DP for any smaller epsilon. The
    number of guesses is fixed in advance: several numbers are several bounds, at level / K each.
    """
    probability("level", level)

    def is_refuted(epsilon: float) -> bool:
        return p_value(n_canaries, n_guesses, n_right, epsilon, delta) <= level

    low = 0.0
    if not is_refuted(low):
        return 0.0
    while low < _LARGEST and is_refuted(low + _STEP):
        low += _STEP
    high = low + _STEP
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def mu_lower(n_guesses: int, n_right: int, level: float) -> float:
    r"""Lower bound on mu, for a mechanism that is mu-GDP for some mu, from the guesses of one run.

    Args:
      n_guesses: c' of the coins, fixed in advance.
      n_right: c of them are right.
      level: probability of a bound that is too large.

    Returns:
      mu, at least 0.

    Raises:
      ValueError: counts that cannot be, or level out of range.

    Guarantee: with probability at least 1 - level every mu for which the mechanism is mu-GDP is at least this.

    How: suppose P(at least c right) >= level. With r_i and h_i the mass of runs with more right (wrong) guesses than
    i allows, f-DP ties h to r, and stepping from i = c - 1 down to 0 the two outgrow what they can be, r + h <= 1: a
    contradiction refutes mu. h' = max(h, Phi(Phi^-1(r) - mu)), r <- r + i/(c' - i) (h' - h), from r = level c/c',
    h = level (c' - c)/c'. Source: Mahloujifar, Melis, Chaudhuri (2024), Algorithms 1 and 3; the coverage is also simulated.
    """
    _checked_counts(n_guesses, n_guesses, n_right)
    probability("level", level)
    if not n_right:
        return 0.0
    low, high = 0.0, 2 * float(-ndtri(level / max(n_guesses, 2))) + 4.0
    for _ in range(3):
        mus = np.linspace(low, high, 41)[:-1]
        refuted = _is_refuted(mus, n_guesses, n_right, level)
        if not refuted[0]:
            return low
        last = len(mus) - 1 if refuted.all() else int(np.argmin(refuted)) - 1
        low, high = float(mus[last]), float(mus[last] + (mus[1] - mus[0]))
    return low


def _is_refuted(mus: FloatArray, n_guesses: int, n_right: int, level: float) -> np.ndarray:
    right = np.full(len(mus), level * n_right / n_guesses)
    wrong = np.full(len(mus), level * (n_guesses - n_right) / n_guesses)
    for i in range(n_right - 1, -1, -1):
        more = np.maximum(wrong, ndtr(ndtri(np.minimum(right, 1.0)) - mus))
        right = right + i / (n_guesses - i) * (more - wrong)
        wrong = more
    return np.asarray(right + wrong > 1.0)


def sequential_epsilon_lower(
    scores: ArrayLike, is_in: ArrayLike, delta: float, level: float, epsilons: FloatArray, *, is_learned: bool = False
) -> float:
    r"""Lower bound on epsilon from canaries whose coins are tossed, and scored, one after the other.

    Args:
      scores: (m,) one a canary, in the order of the coins: the log-likelihood ratio of "in" against "out" given all that was
        seen, computed before the next coin is tossed; m >= 100.
      is_in: (m,) bool, the coins.
      delta: at least 0, below 1.
      level: probability of a bound that is too large.
      epsilons: (k,) increasing, which are tested; fixed in advance.
      is_learned: scores are of any scale, larger where "in" is likelier.

    Returns:
      the largest of `epsilons` refuted together with all before it; 0 if the first is not.

    Raises:
      ValueError: shapes disagree, unusable scores, or delta, level or epsilons out of range.

    Guarantee: with probability at least 1 - level, the claim "given all before, the canary's score is (epsilon, delta)-DP
    in its coin" fails for every smaller epsilon. The canaries need not be independent: each factor has mean at most 1 given
    the past, so the product is a supermartingale (`evalues.EProcess`, tossed). epsilon-DP of the stream
    of outputs implies the claim, for the past does not depend on the next coin. (epsilon, delta)-DP implies it where each
    canary has a release of its own; otherwise a delta may be spent on one past, and the claim is a stronger one.
    """
    values, coins = np.asarray(scores, dtype=float), np.asarray(is_in)
    if values.shape != coins.shape or values.ndim != 1 or coins.dtype != bool:
        raise ValueError(f"is_in must hold a bool for each score, got {coins.dtype} {coins.shape} for scores {values.shape}")
    if len(values) < 100:
        raise ValueError(f"scores must hold at least 100 canaries, got {len(values)}")
    process = EProcess(ApproxClaims(np.asarray(epsilons, dtype=float), delta), is_learned=is_learned, is_tossed=True)
    for start, stop in block_cuts(len(values)):
        block, side = values[start:stop], coins[start:stop]
        process.update(block[~side], block[side])
    return process.lower(level)
