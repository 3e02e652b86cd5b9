r"""Several pairs (sum of x x^T, sum of y x) in one release: those of all steps of an episode, say.

A value has the shape (n_rows, n_blocks, d, d + 1): in each block the matrix, and the vector as its last column. A record
adds (x x^T, y x) with |x| <= R_i, |y| <= Y_i to block i, and a neighbor replaces it in all blocks at once. The free entries,
the upper triangles and the vectors, have independent noise. How much of it falls on a block is told by *shares*: block i
has share_i times the deviation that the mechanism states, so that many blocks of unlike bounds need one event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from bandana.privacy_core.accounting.guarantees import Relation
from bandana.privacy_core.arrays import FloatArray
from bandana.privacy_core.checks import positive
from bandana.privacy_core.noise.matrices import EQUAL, GOE, JointGaussian, Packed, PackedGaussian, Packing, packing
from bandana.privacy_core.noise.mechanisms import LaplaceLaw
from bandana.privacy_core.noise.sensitivities import pair_l1_bound
from bandana.privacy_core.noise.sources import NoiseSource


class _Stacked(Packed):
    """Base of both mechanisms: independent noise on the free entries of every block."""

    norm_bounds: tuple[float, ...]
    value_bounds: tuple[float, ...]
    shares: tuple[float, ...]
    vector_ratio: float
    diagonal_ratio: float

    def __post_init__(self) -> None:
        sizes = {len(self.norm_bounds), len(self.value_bounds), len(self.shares)}
        if len(sizes) > 1 or 0 in sizes:
            raise ValueError(
                "norm_bounds, value_bounds and shares must name the same blocks, one at least, got "
                f"{len(self.norm_bounds)}, {len(self.value_bounds)} and {len(self.shares)} of them"
            )
        for name in ("norm_bounds", "value_bounds", "shares"):
            for i, value in enumerate(getattr(self, name)):
                positive(f"{name}[{i}]", value)
        for name in ("noise_multiplier", "vector_ratio", "diagonal_ratio"):
            positive(name, getattr(self, name))

    def _layout_of(self, shape: tuple[int, ...]) -> Packing:
        if len(shape) != 4 or shape[1] != len(self.shares) or shape[3] != shape[2] + 1:
            raise ValueError(f"value must have the shape (n_rows, {len(self.shares)}, d, d + 1), got {shape}")
        return _shared_out(shape[2], self.diagonal_ratio, self.vector_ratio, self.shares)


@lru_cache(maxsize=64)
def _shared_out(d: int, diagonal: float, vector: float, shares: tuple[float, ...]) -> Packing:
    """Packs every block, with weights (n_blocks, n_free)."""
    layout = packing(d, d + 1, diagonal, vector)
    return layout._replace(weights=np.array(shares)[:, None] * layout.weights)


@dataclass(frozen=True)
class StackedGaussian(PackedGaussian, _Stacked):
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
      diagonal_ratio: `GOE` or `EQUAL`, see `bandana.privacy_core.noise.matrices`.
      relation: between which data sets.
    """

    norm = "weighted L2 of the upper triangles and the vectors"
    norm_bounds: tuple[float, ...]
    value_bounds: tuple[float, ...]
    shares: tuple[float, ...]
    noise_multiplier: float
    vector_ratio: float = 1.0
    diagonal_ratio: float = GOE
    relation: Relation = Relation.REPLACE_RECORD

    @cached_property
    def sensitivity(self) -> float:
        """The sensitivity in the mechanism's norm, at share 1."""
        pairs = zip(self.norm_bounds, self.value_bounds, self.shares, strict=True)
        alone = [
            JointGaussian(r, y, 1.0, self.vector_ratio, self.diagonal_ratio).sensitivity / share for r, y, share in pairs
        ]
        return math.hypot(*alone)


@dataclass(frozen=True)
class StackedLaplace(LaplaceLaw, _Stacked):
    r"""Stacked pairs plus Laplace noise, in one release: (1 / noise_multiplier)-DP.

    In units of the noise, block i moves by at most L_i / share_i in L1, with L_i a bound for the pair alone, its matrix by
    the upper triangle (`sensitivities.pair_l1_bound`, some percent above what is attained): the sensitivity is the sum.

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

    norm = "weighted L1 of the upper triangles and the vectors"
    diagonal_ratio = EQUAL
    norm_bounds: tuple[float, ...]
    value_bounds: tuple[float, ...]
    shares: tuple[float, ...]
    dimension: int
    noise_multiplier: float
    vector_ratio: float = 1.0
    relation: Relation = Relation.REPLACE_RECORD

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("dimension", self.dimension)

    @cached_property
    def sensitivity(self) -> float:
        """Sensitivity in `norm`, at share 1."""
        pairs = zip(self.norm_bounds, self.value_bounds, self.shares, strict=True)
        return math.fsum(pair_l1_bound(self.dimension, r * r, r * y / self.vector_ratio) / share for r, y, share in pairs)

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


def stacked_pairs(x: Sequence[FloatArray], y: Sequence[FloatArray]) -> FloatArray:
    """One record's contribution.

    Args:
      x: of each block (n_rows, d), norm at most R_i.
      y: of each block (n_rows,), at most Y_i in absolute value.

    Returns:
      (n_rows, n_blocks, d, d + 1).
    """
    return np.stack([JointGaussian.statistic(xi, yi) for xi, yi in zip(x, y, strict=True)], axis=1)
