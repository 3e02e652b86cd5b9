r"""Matrices of a factorized sum: A = B C, C applied to the data, noise added, B applied to what was released.

A is the (n, n) lower triangle of ones (prefix sums). One record stands in one row of the data, so a unit of it moves C
x by a column of C: with every column of norm 1, Gaussian noise z of deviation 1/mu makes C x + z mu-GDP, exactly for a
record whose contribution has norm 1. The noise of the k-th prefix sum is then the norm of the k-th row of B, over mu.

C starts from a Toeplitz matrix with the coefficients c_0 = 1, c_1, ... and divides each column by its norm d_t,
d_t^2 = sum_{k < n - t} c_k^2 (rows and columns from 0). Two choices of coefficients:

  square root   c_k = binom(2k, k) / 4^k, so that C C = A before the division. Optimal to a few percent; needs all the past.
  BLT           c_k = sum_j omega_j theta_j^(k - 1), k >= 1: a buffered linear Toeplitz matrix. Multiplying by it, and by
                its inverse, takes one number a buffer: O(buffers) memory. Four buffers come within 1 % of the square root.

Source: Henzinger, Upadhyay, Upadhyay (2023) and Fichtenberger, Henzinger, Upadhyay (2023) for the square root; Dvijotham,
McMahan, Pillutla, Steinke, Thakurta (2024), "Efficient and near-optimal noise generation for streaming differential
privacy", for BLT; Denisov, McMahan, Rush, Smith, Thakurta (2022), Theorem 2.1, for streams that are chosen adaptively.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np
from scipy.linalg import solve_triangular, toeplitz

from bandana.privacy_core.arrays import FloatArray
from bandana.privacy_core.checks import at_least

_SHORT = 32
"""Up to this many steps the whole past is kept: it takes no more than a few buffers do."""
MOST_BUFFERS = 8
TABLE = Path(__file__).with_name("factorization.csv")
DIGEST = "01702b6481ee1080"
"""Digest of the table: whatever is stored under a key of this code is then stored under a key of the table too."""


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

        The noise of the sum and of the decoder's buffers is a linear system driven by z, whose covariance is carried on.
        """
        n, omega = len(self.theta), np.array(self.omega)
        covariance, variances = np.zeros((n + 1, n + 1)), np.empty(self.n_steps)
        move = np.eye(n + 1)
        move[:n, :n] = np.diag(self.theta) - omega
        enter = np.ones(n + 1)
        for t, d in enumerate(self.column_norms.tolist()):
            move[n, :n] = -d * omega
            enter[n] = d
            covariance = move @ covariance @ move.T + np.outer(enter, enter)
            variances[t] = covariance[n, n]
        return variances


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
    """(theta, omega) of the BLT of which the largest column norm times the largest error is smallest, to about 1e-4.

    They come from a table (`benchmarks.factorizations` finds them) for lengths of 2, 4, 8 ... 2^40 steps. Between two of
    these the logarithms of gaps and weights are interpolated along log n and rounded to six digits; beyond, the last row
    counts.

    Guarantee: the same numbers to the last bit on every processor. An optimizer that runs here would stop elsewhere on each,
    and the noise would differ. The privacy does not depend on them: column norms are those of the buffers that are used.

    Args:
      n_steps: at least 1.
      n_buffers: 1 to 8.
    """
    if not 1 <= at_least("n_buffers", n_buffers, 1) <= MOST_BUFFERS:
        raise ValueError(f"n_buffers must be 1 to {MOST_BUFFERS}, got {n_buffers!r}")
    rows = _table()[n_buffers]
    power = min(max(math.log2(n_steps), 1.0), float(len(rows)))
    below = min(int(power), len(rows) - 1)
    share = power - below
    low, high = rows[below - 1], rows[below]
    gaps, omega = (
        # To six significant digits, which differences in the last bits of a logarithm do not reach.
        tuple(float(f"{math.exp((1 - share) * math.log(a) + share * math.log(b)):.6g}") for a, b in zip(*pair, strict=True))
        for pair in zip(low, high, strict=True)
    )
    return tuple(1 - gap for gap in gaps), omega


Buffers = tuple[tuple[float, ...], tuple[float, ...]]


def digest(text: str) -> str:
    """Value that `DIGEST` must have for a table with this text."""
    return sha256(text.encode()).hexdigest()[:16]


@lru_cache(maxsize=1)
def _table() -> dict[int, list[Buffers]]:
    """n_buffers -> (gaps 1 - theta, omega) for 2, 4, 8 ... steps.

    Raises:
      RuntimeError: the file is not the one that this code was written for.
    """
    text = TABLE.read_text(encoding="ascii")
    if digest(text) != DIGEST:
        raise RuntimeError(f"{TABLE.name} was changed: its digest is {digest(text)}, not {DIGEST}; reinstall the package")
    table: dict[int, list[Buffers]] = {}
    for line in text.splitlines()[1:]:
        _, n_buffers, gaps, omega = line.split(",")
        numbers = tuple(map(float, gaps.split())), tuple(map(float, omega.split()))
        table.setdefault(int(n_buffers), []).append(numbers)
    return table
