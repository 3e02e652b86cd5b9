r"""Several pairs (sum of x x^T, sum of y x) in one release: those of all steps of an episode, say.

A value has the shape (n_rows, n_blocks, d, d + 1): in each block the matrix, and the vector as its last column. A record
adds (x x^T, y x) with |x| <= R_i, |y| <= Y_i to block i, and a neighbor replaces it in all blocks at once. The free entries,
the upper triangles and the vectors, have independent noise. How much of it falls on a block is told by *shares*: block i
has share_i times the deviation that the mechanism states, so that many blocks of unlike bounds need one event.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from bandana.privacy_core.checks import positive
from bandana.privacy_core.events import LaplaceEvent
from bandana.privacy_core.guarantees import Relation
from bandana.privacy_core.matrices import GOE, FloatArray, IntArray, JointGaussian, packing
from bandana.privacy_core.mechanisms import Scaled, WhitenedGaussian
from bandana.privacy_core.noise import NoiseSource
from bandana.privacy_core.sensitivities import pair_l1_bound


@lru_cache(maxsize=64)
def _spread(d: int, shares: tuple[float, ...], diagonal: float, vector: float) -> tuple[IntArray, IntArray, FloatArray]:
    """Places of the free entries in one block, which of them stands where, and (n_blocks, n_free) their deviations."""
    layout = packing(d, d + 1)
    entries = np.where(layout.is_diagonal, diagonal, 1.0)
    entries = np.where(layout.is_vector, vector, entries)
    return layout.pick, layout.mirror, np.array(shares)[:, None] * entries


class _Stacked(ABC):
    """What both mechanisms share: independent noise on the free entries of every block."""

    norm_bounds: tuple[float, ...]
    value_bounds: tuple[float, ...]
    shares: tuple[float, ...]
    noise_multiplier: float

    def _check(self) -> None:
        sizes = {len(self.norm_bounds), len(self.value_bounds), len(self.shares)}
        if len(sizes) > 1 or 0 in sizes:
            raise ValueError(
                "norm_bounds, value_bounds and shares must name the same blocks, one at least, got "
                f"{len(self.norm_bounds)}, {len(self.value_bounds)} and {len(self.shares)} of them"
            )
        for name in ("norm_bounds", "value_bounds", "shares"):
            for i, value in enumerate(getattr(self, name)):
                positive(f"{name}[{i}]", value)
        positive("noise_multiplier", self.noise_multiplier)

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """In the norm that counts each entry in units of its noise."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """Standard deviation of the noise off the diagonals, in a block of share 1."""

    @property
    @abstractmethod
    def _entry_shares(self) -> tuple[float, float]:
        """Deviation of a diagonal entry and of the vector's, over that of an off-diagonal one."""

    @property
    def scale(self) -> float:
        """Scale of the noise off the diagonals, in a block of share 1."""
        return self.sensitivity * self.noise_multiplier

    def whiten(self, value: FloatArray) -> FloatArray:
        """(n_rows, n_free): the free entries of all blocks, each over its deviation; lower triangles are not read.

        Raises:
          ValueError: the value has another shape.
        """
        pick, mirror, weights = self._layout_of(value.shape)
        free = value.reshape(-1, mirror.size).take(pick, axis=1).reshape(len(value), weights.size)
        free /= weights.reshape(-1)
        return free

    def color(self, whitened: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """The blocks, of the given shape, with symmetric matrices."""
        _, mirror, weights = self._layout_of(shape)
        free = (whitened * weights.reshape(-1)).reshape(-1, weights.shape[1])
        return free.take(mirror, axis=1).reshape(shape)

    def _layout_of(self, shape: tuple[int, ...]) -> tuple[IntArray, IntArray, FloatArray]:
        if len(shape) != 4 or shape[1] != len(self.shares) or shape[3] != shape[2] + 1:
            raise ValueError(f"value must have the shape (n_rows, {len(self.shares)}, d, d + 1), got {shape}")
        return _spread(shape[2], self.shares, *self._entry_shares)


@dataclass(frozen=True)
class StackedGaussian(WhitenedGaussian, _Stacked):
    r"""Stacked pairs plus Gaussian noise, in one release: exactly mu-GDP, mu = 1 / noise_multiplier.

    In units of the noise, block i moves by at most S_i / share_i, with S_i the sensitivity of the pair alone
    (`JointGaussian`), and squares add up, as noise is independent: the sensitivity is sqrt(sum_i S_i^2 / share_i^2). It is
    attained where the least favorable pairs of all blocks are one pair of records, as where blocks are unrelated.

    Attributes:
      norm_bounds: (n_blocks,) R_i.
      value_bounds: (n_blocks,) Y_i.
      shares: (n_blocks,) deviation of the blocks' noise, over `scale`.
      noise_multiplier: `scale` over the sensitivity.
      vector_ratio: deviation of a vector's entry over that of an off-diagonal one.
      diagonal_ratio: `GOE` or `EQUAL`, see `bandana.privacy_core.matrices`.
      relation: between which data sets.
    """

    norm_bounds: tuple[float, ...]
    value_bounds: tuple[float, ...]
    shares: tuple[float, ...]
    noise_multiplier: float
    vector_ratio: float = 1.0
    diagonal_ratio: float = GOE
    relation: Relation = Relation.REPLACE_RECORD

    def __post_init__(self) -> None:
        self._check()
        positive("vector_ratio", self.vector_ratio)
        positive("diagonal_ratio", self.diagonal_ratio)

    @property
    def norm(self) -> str:
        """Norm of the sensitivity: of upper triangles and vectors, each entry in units of its noise."""
        return "weighted L2 of the upper triangles and the vectors"

    @cached_property
    def sensitivity(self) -> float:
        """The sensitivity in the mechanism's norm, at share 1."""
        pairs = zip(self.norm_bounds, self.value_bounds, self.shares, strict=True)
        alone = [
            JointGaussian(r, y, 1.0, self.vector_ratio, self.diagonal_ratio).sensitivity / share for r, y, share in pairs
        ]
        return math.hypot(*alone)

    @property
    def _entry_shares(self) -> tuple[float, float]:
        return math.sqrt(self.diagonal_ratio), self.vector_ratio


@dataclass(frozen=True)
class StackedLaplace(_Stacked, Scaled):
    r"""Stacked pairs plus Laplace noise, in one release: (1 / noise_multiplier)-DP.

    In units of the noise, block i moves by at most L_i / share_i in L1, with L_i a bound for the pair alone, of which the
    matrix counts by its upper triangle (`worst_cases.pair_l1_bound`, some percent above what is attained): the sensitivity
    is the sum.

    Attributes:
      norm_bounds: (n_blocks,) R_i.
      value_bounds: (n_blocks,) Y_i.
      shares: (n_blocks,) scale of the blocks' noise, over `scale`.
      dimension: d; the sensitivity depends on it.
      noise_multiplier: `scale` over the sensitivity.
      vector_ratio: scale of a vector's entry over that of a matrix's.
      relation: between which data sets.

    Source: Dwork, McSherry, Nissim, Smith (2006), Proposition 1.
    """

    norm_bounds: tuple[float, ...]
    value_bounds: tuple[float, ...]
    shares: tuple[float, ...]
    dimension: int
    noise_multiplier: float
    vector_ratio: float = 1.0
    relation: Relation = Relation.REPLACE_RECORD

    def __post_init__(self) -> None:
        self._check()
        positive("vector_ratio", self.vector_ratio)
        positive("dimension", self.dimension)

    @property
    def norm(self) -> str:
        """Norm of the sensitivity: of upper triangles and vectors, each entry in units of its noise."""
        return "weighted L1 of the upper triangles and the vectors"

    @cached_property
    def sensitivity(self) -> float:
        """Sensitivity in `norm`, at share 1."""
        pairs = zip(self.norm_bounds, self.value_bounds, self.shares, strict=True)
        return math.fsum(pair_l1_bound(self.dimension, r * r, r * y / self.vector_ratio) / share for r, y, share in pairs)

    @property
    def deviation(self) -> float:
        """Sqrt 2 times the scale."""
        return math.sqrt(2) * self.scale

    @property
    def event(self) -> LaplaceEvent:
        """What one release costs."""
        return LaplaceEvent(self.noise_multiplier)

    @property
    def _entry_shares(self) -> tuple[float, float]:
        return 1.0, self.vector_ratio

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """The blocks with fresh noise, symmetric."""
        return self.color(noise.add_laplace(self.whiten(value), self.scale, self.noise_multiplier), value.shape)

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,), distance in the norm of the sensitivity."""
        return np.asarray(np.abs(self.whiten(np.asarray(neighbor - value))).sum(axis=1))

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,): (|output - value|_1 - |output - neighbor|_1) / scale, of the whitened entries."""
        terms = np.abs(self.whiten(np.asarray(output - value))) - np.abs(self.whiten(np.asarray(output - neighbor)))
        return np.asarray(terms.sum(axis=1) / self.scale)


def stacked_pairs(x: Sequence[NDArray[np.float64]], y: Sequence[NDArray[np.float64]]) -> FloatArray:
    """One record's contribution.

    Args:
      x: of each block (n_rows, d), norm at most R_i.
      y: of each block (n_rows,), at most Y_i in absolute value.

    Returns:
      (n_rows, n_blocks, d, d + 1).
    """
    return np.stack([JointGaussian.statistic(xi, yi) for xi, yi in zip(x, y, strict=True)], axis=1)
