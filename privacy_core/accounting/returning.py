r"""Users who return: what a user with several records can move in a factorized sum.

Column s of the encoder is a_s = (c_0, c_1, ..., c_{n-1-s}) / d_s, shifted down by s rows, d_s its norm. A user whose
records enter at the steps s_1 <= ... <= s_k, each contribution moving by u_i with |u_i| <= 1, moves C x by
sum_i a_{s_i} u_i^T. All entries are nonnegative, so that the squared norm sum_{i,j} <a_{s_i}, a_{s_j}> <u_i, u_j> is largest
where all u_i are one unit vector: |a_{s_1} + ... + a_{s_k}|^2 (Choquette-Choo, McMahan, Rush, Thakurta 2023, Multi-Epoch
Matrix Factorization Mechanisms for Private Machine Learning, section 2). If any two of the steps are at least b apart, the
worst steps are the earliest, 0, b, ..., (k - 1) b:

**Lemma.** Let c be positive, nonincreasing and log-convex, G(s, t) = <a_s, a_t>, s < t. Then G(s, t) >= G(s + 1, t + 1), and
G(s, t) >= G(s, t + 1).

*Proof.* Let delta = t - s, N = n - 1 - t, P_N = sum_{k<=N} c_k c_{k+delta} and Q_N = sum_{k<=N} c_k^2, so that G(s, t) =
P_N / sqrt(Q_N Q_{N+delta}), and G(s + 1, t + 1) is the same at N - 1. From N to N + 1, with a = c_{N+1} and d =
c_{N+1+delta}, P grows by the factor 1 + a d / P, and Q Q by (1 + a^2 / Q_N) (1 + d^2 / Q_{N+delta}). Log-convexity makes
c_{k+delta} / c_k nondecreasing in k: P_N <= (d / a) Q_N, hence a d / P >= a^2 / Q_N. And d P_N <= a Q_N <= a Q_{N+delta},
as d <= a and c_{k+delta} <= c_k, hence a d / P >= d^2 / Q_{N+delta}. So P^2 grows by the larger factor: the first claim.
For the second, G(s, t) >= G(s + 1, t + 1) >= G(s, t + 1): the last two have as many terms and the same d_{t+1}; of the
former each term c_k c_{k+delta} is at least c_k c_{k+delta+1}, and its d_{s+1} is at most d_s. QED.

The i-th and j-th of any admissible steps have s_i >= (i - 1) b and s_j - s_i >= (j - i) b, so both move to the earliest ones
without any product falling. This is derived here; Kalinin and Lampert (2024, Banded Square Root Matrix Factorization) have
it for Toeplitz matrices whose columns are not normalized.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bandana.privacy_core.accounting.factorization import BufferedFactorization, DenseFactorization, Factorization
from bandana.privacy_core.arrays import FloatArray, IntArray
from bandana.privacy_core.checks import at_least

_UP = 1 + 1e-9
"""More than sums of rounded products can lose."""


@lru_cache(maxsize=256)
def squared_sensitivities(factors: Factorization, most: int, gap: int) -> tuple[float, ...]:
    """Squared L2 sensitivity of C x to 0, 1, ..., `most` records of one user, each of sensitivity 1.

    Exact, but for rounding up, where coefficients are log-convex, as those of all tables are; k^2 where they are not, or
    where several records may enter at one step.

    Args:
      factors: its encoder C has columns of norm 1.
      most: records of one user.
      gap: steps between any two of them, at least; 0: they may enter together.
    """
    at_least("gap", gap, 0)
    counts = np.arange(at_least("most", most, 1) + 1)
    if gap == 0 or not is_log_convex(factors):
        return tuple((counts.astype(float) ** 2).tolist())
    fitting = min(most, 1 + (factors.n_steps - 1) // gap)
    gram = overlaps(factors, gap * np.arange(fitting))
    # Of the leading k x k block of the matrix of products.
    sums = np.cumsum(np.cumsum(gram, axis=0), axis=1).diagonal()
    bounds = np.concatenate([[0.0, 1.0], np.maximum.accumulate(sums)[1:] * _UP])
    return tuple(np.minimum(bounds, counts[: fitting + 1] ** 2.0).tolist()) + (float(bounds[-1]),) * (most - fitting)


def is_log_convex(factors: Factorization) -> bool:
    """True if the lemma holds: c_1 <= c_0 = 1 and c_1^2 <= c_0 c_2.

    The square root's coefficients have the ratios 1/2, 3/4, 5/6, ...; those of buffers are, from c_1 on, sums of falling
    powers, which are log-convex.
    """
    if isinstance(factors, DenseFactorization):
        return True
    theta, omega = np.array(factors.theta), np.array(factors.omega)
    return bool(omega.sum() <= 1 and omega.sum() ** 2 <= (omega * theta).sum())


def overlaps(factors: Factorization, steps: IntArray) -> FloatArray:
    """(k, k) products of the encoder's columns at the given increasing steps (k,).

    For buffers c_k = sum_j omega_j theta_j^(k-1), k >= 1, the sum over k >= 1 of c_k c_{k+delta} is geometric for each pair
    of buffers.
    """
    if isinstance(factors, DenseFactorization):
        columns = factors.encoder[:, steps]
        return np.asarray(columns.T @ columns)
    first, second = np.triu_indices(len(steps), 1)
    matrix = np.eye(len(steps))
    matrix[first, second] = matrix[second, first] = _products(factors, steps[first], steps[second])
    return matrix


def _products(factors: BufferedFactorization, s: IntArray, t: IntArray) -> FloatArray:
    """(n_pairs,) products of the columns s < t."""
    theta, omega = np.array(factors.theta), np.array(factors.omega)
    lag, n_terms = (t - s)[:, None], (factors.n_steps - 1 - t)[:, None]
    # Index 0 of the earlier factor: c_0 c_lag.
    total = (omega * theta ** (lag - 1)).sum(axis=1)
    for own, weight in zip(theta.tolist(), omega.tolist(), strict=True):
        log_ratio = np.log(own * theta)
        geometric = np.expm1(n_terms * log_ratio) / np.expm1(log_ratio)
        total = total + weight * (omega * theta**lag * geometric).sum(axis=1)
    return np.asarray(total / (factors.column_norms[s] * factors.column_norms[t]))
