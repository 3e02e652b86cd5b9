r"""Which matrices a factorized sum uses: A = B C, C applied to the data, noise added, B applied to what was released.

A is the (n, n) lower triangle of ones (prefix sums). One record stands in one row of the data, so a unit of it moves C
x by a column of C: with every column of norm 1, Gaussian noise z of deviation 1/mu makes C x + z mu-GDP, exactly for a
record whose contribution has norm 1. The noise of the k-th prefix sum is then the norm of the k-th row of B, over mu.

C starts from a Toeplitz matrix with the coefficients c_0 = 1, c_1, ... and divides each column by its norm d_t,
d_t^2 = sum_{k < n - t} c_k^2 (rows and columns from 0). Two choices of coefficients:

  square root   c_k = binom(2k, k) / 4^k, so that C C = A before the division. Optimal up to a few percent; it needs the
                whole past.
  BLT           c_k = sum_j omega_j theta_j^(k - 1), k >= 1: a buffered linear Toeplitz matrix. Multiplying by it, and by
                its inverse, takes one number a buffer: O(buffers) memory. Four buffers come within 1 % of the square root.

Source: Henzinger, Upadhyay, Upadhyay (2023) and Fichtenberger, Henzinger, Upadhyay (2023) for the square root; Dvijotham,
McMahan, Pillutla, Steinke, Thakurta (2024), "Efficient and near-optimal noise generation for streaming differential
privacy", for BLT; Denisov, McMahan, Rush, Smith, Thakurta (2022), Theorem 2.1, for streams that are chosen adaptively.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular, toeplitz
from scipy.optimize import minimize

from privacy_core.checks import at_least

FloatArray = NDArray[np.float64]
_SHORT = 32
"""Up to this many steps the whole past is kept: it takes no more than a few buffers do."""


def square_root_coefficients(n_steps: int) -> FloatArray:
    """(n_steps,) binom(2k, k) / 4^k."""
    k = np.arange(1, at_least("n_steps", n_steps, 1))
    return np.concatenate([[1.0], np.cumprod(1 - 0.5 / k)])


def _column_norms(coefficients: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.cumsum(coefficients**2))[::-1])


@dataclass(frozen=True, eq=False)
class DenseFactorization:
    """The column-normalized square root, kept as matrices.

    Attributes:
      n_steps: number of prefix sums.
    """

    n_steps: int

    @cached_property
    def encoder(self) -> FloatArray:
        """(n_steps, n_steps) C, lower triangular, columns of norm 1."""
        coefficients = square_root_coefficients(self.n_steps)
        matrix = toeplitz(coefficients, np.zeros(self.n_steps))
        return np.asarray(matrix / _column_norms(coefficients))

    @cached_property
    def decoder(self) -> FloatArray:
        """(n_steps, n_steps) B = A C^-1."""
        ones = np.tril(np.ones((self.n_steps, self.n_steps)))
        return np.asarray(np.tril(solve_triangular(self.encoder.T, ones.T).T))

    @cached_property
    def variances(self) -> FloatArray:
        """(n_steps,) noise variance of each prefix sum at noise deviation 1: squared norms of the rows of B."""
        return np.asarray((self.decoder**2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class BufferedFactorization:
    """A column-normalized buffered linear Toeplitz matrix.

    Attributes:
      n_steps: number of prefix sums.
      theta: (n_buffers,) decay of each buffer, in (0, 1).
      omega: (n_buffers,) its weight, above 0.
    """

    n_steps: int
    theta: tuple[float, ...]
    omega: tuple[float, ...]

    @cached_property
    def column_norms(self) -> FloatArray:
        """(n_steps,) d_t."""
        theta, omega = np.array(self.theta), np.array(self.omega)
        coefficients = np.ones(self.n_steps)
        power = omega.copy()
        for first in range(1, self.n_steps, 4096):  # in pieces: all powers at once would take n_buffers times the memory
            k = np.arange(min(4096, self.n_steps - first))
            coefficients[first : first + len(k)] = (power * theta ** k[:, None]).sum(axis=1)
            power = power * theta ** len(k)
        return _column_norms(coefficients)

    @cached_property
    def cycle(self) -> int:
        """After how many steps the buffers are scaled again, so that no power of a decay leaves [1e-6, 1]."""
        return max(1, min(1024, math.floor(math.log(1e-6) / math.log(min(self.theta)))))

    @cached_property
    def read_weights(self) -> FloatArray:
        """(cycle, n_buffers) omega theta^r: what a buffer counts in the r-th step of a cycle.

        Buffers are kept over theta^r, so that a step adds to them and no step multiplies them, but the last of a cycle.
        """
        powers: FloatArray = np.array(self.theta) ** np.arange(self.cycle)[:, None]
        return np.array(self.omega) * powers

    @cached_property
    def write_weights(self) -> FloatArray:
        """(cycle, n_buffers) theta^-(r + 1): what the r-th step's input counts in a buffer."""
        return np.asarray(np.array(self.theta) ** -(np.arange(self.cycle)[:, None] + 1.0))

    @cached_property
    def cycle_decays(self) -> FloatArray:
        """(n_buffers,) theta^cycle."""
        return np.array(self.theta) ** self.cycle

    @cached_property
    def variances(self) -> FloatArray:
        """(n_steps,) noise variance of each prefix sum at noise deviation 1.

        The noise of the sum and of the decoder's buffers is a linear system driven by z; its covariance is carried on
        from step to step.
        """
        n, omega = len(self.theta), np.array(self.omega)
        covariance, found = np.zeros((n + 1, n + 1)), np.empty(self.n_steps)
        move = np.eye(n + 1)
        move[:n, :n] = np.diag(self.theta) - omega
        enter = np.ones(n + 1)
        for t, d in enumerate(self.column_norms.tolist()):
            move[n, :n] = -d * omega
            enter[n] = d
            covariance = move @ covariance @ move.T + np.outer(enter, enter)
            found[t] = covariance[n, n]
        return found


Factorization = DenseFactorization | BufferedFactorization


@lru_cache(maxsize=1024)
def factorize(n_steps: int, n_buffers: int | None = None) -> Factorization:
    """The factorization for a stream of n_steps prefix sums.

    Args:
      n_steps: at least 1.
      n_buffers: buffers of a BLT, 1 to 8; None means the square root up to 32 steps, a BLT of 4 buffers beyond.
    """
    at_least("n_steps", n_steps, 1)
    if n_buffers is None and n_steps <= _SHORT:
        return DenseFactorization(n_steps)
    theta, omega = optimal_buffers(n_steps, 4 if n_buffers is None else n_buffers)
    return BufferedFactorization(n_steps, theta, omega)


@lru_cache(maxsize=1024)
def optimal_buffers(n_steps: int, n_buffers: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(theta, omega) of the BLT of which the largest column norm times the largest error is smallest.

    It is found before the columns are normalized, where both have a closed form (`_log_loss`), by quasi-Newton steps from a
    sum of exponentials close to the square root: 1/sqrt(pi k) is an integral of e^(-k s) over s, here at points s that
    grow geometrically from 1/n_steps to 1.
    """
    if not 1 <= at_least("n_buffers", n_buffers, 1) <= 8:
        raise ValueError(f"n_buffers must be 1 to 8, got {n_buffers!r}")
    ratio = max(n_steps, 4) ** (1 / n_buffers)
    rates = ratio ** (-np.arange(n_buffers) - 0.5)
    omega = np.sqrt(rates) * math.log(ratio) / math.pi * np.exp(-rates)
    start = np.concatenate([np.log(rates), np.log(omega)])
    options: Any = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-9, "maxfun": 100_000}
    found: Any = minimize(partial(_log_loss, n_steps), start, method="L-BFGS-B", options=options)
    rates, omega = np.exp(found.x[:n_buffers]), np.exp(found.x[n_buffers:])
    return tuple(np.exp(-rates).tolist()), tuple(omega.tolist())


def _log_loss(n_steps: int, x: FloatArray) -> float:
    r"""Logarithm of (largest column norm)^2 x (largest error)^2, at theta = exp(-e^x), omega = e^x of the second half.

    Column norm: 1 + sum_ij omega_i omega_j (1 - (theta_i theta_j)^(n-1)) / (1 - theta_i theta_j). Error: with the
    eigenvalues lambda_j and weights g_j of diag(theta) - sqrt(omega) sqrt(omega)^T, the coefficients of A C^-1 are
    b_k = 1/c(1) + sum_j g_j/(1 - lambda_j) lambda_j^k, c(1) = 1 + sum_j omega_j/(1 - theta_j), and the last row's squared
    norm is the sum of b_k^2, again geometric.
    """
    n = len(x) // 2
    theta, omega = np.exp(-np.exp(np.clip(x[:n], -40, 4))), np.exp(np.clip(x[n:], -40, 4))
    column = 1 + float(np.sum(np.outer(omega, omega) * _geometric(np.outer(theta, theta), n_steps - 1)))
    root = np.sqrt(omega)
    values, vectors = np.linalg.eigh(np.diag(theta) - np.outer(root, root))
    weights = (root @ vectors) ** 2
    poles = np.concatenate([[1.0], values])
    shares = np.concatenate([[1 / (1 + np.sum(omega / (1 - theta)))], weights / (1 - values)])
    if (np.abs(values) >= 1).any():
        return 50.0
    error = float(np.sum(np.outer(shares, shares) * _geometric(np.outer(poles, poles), n_steps)))
    return math.log(column * error)


def _geometric(q: FloatArray, n: int) -> FloatArray:
    """1 + q + ... + q^(n-1)."""
    rest = 1 - q
    with np.errstate(divide="ignore", invalid="ignore"):
        # (1 - q^n)/(1 - q), from logarithms where q is close to 1.
        closed = np.where(q > 0, -np.expm1(n * np.log(np.where(q > 0, q, 1.0))), 1 - q**n) / rest
    return np.where(rest < 1e-300, float(n), closed)
