r"""Noise on symmetric matrices, alone or together with a vector.

A symmetric matrix is released by its upper triangle, with independent noise, and mirrored; noise on the whole square
would not be symmetric, and a triangle without noise would undo the other. Two laws are in use, which differ on the
diagonal, and papers write each of them in several ways. Here a law is named by its off-diagonal standard deviation s and by
its *diagonal ratio*, the variance of a diagonal entry over s^2:

    name                          off-diagonal  diagonal   ratio
    GOE: (Z + Z^T)/sqrt 2, Z sd s      s^2        2 s^2      2
    half: (Z + Z^T)/2, Z sd s'        s'^2/2      s'^2       2    (GOE with s = s'/sqrt 2)
    equal variances                    s^2         s^2       1

A change D of the matrix costs mu^2 = sum_i D_ii^2/(ratio s^2) + sum_(i<j) D_ij^2/s^2, which for ratio 2 is |D|_F^2/(2 s^2)
whatever D is, and for ratio 1 up to |D|_F^2/s^2 (D diagonal). At equal privacy the GOE therefore has the smaller noise.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bandana.privacy_core.accounting.guarantees import Relation
from bandana.privacy_core.arrays import FloatArray, IntArray
from bandana.privacy_core.checks import positive
from bandana.privacy_core.noise.mechanisms import GaussianLaw, Scaled
from bandana.privacy_core.noise.sources import NoiseSource

GOE, EQUAL = 2.0, 1.0
"""Diagonal ratios: variance of a diagonal entry over that of an off-diagonal one."""


class Packing(NamedTuple):
    """Packing of the free entries of a (d, d) symmetric matrix, or of (d, d + 1) with a vector beside it."""

    pick: IntArray
    """(n_free,) places of the free entries in the flattened matrix."""
    mirror: IntArray
    """(d * n_columns,) for each place, which free entry stands there."""
    weights: FloatArray
    """(..., n_free) deviation of each free entry's noise over that of an off-diagonal one."""


@lru_cache(maxsize=64)
def packing(d: int, n_columns: int, diagonal_ratio: float, vector_ratio: float) -> Packing:
    """Returns how symmetric (d, d) matrices are packed, alone (n_columns = d) or with a vector beside them (d + 1)."""
    rows, columns = np.triu_indices(d)
    place = np.empty((d, n_columns), dtype=np.int64)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    pick, weights = rows * n_columns + columns, np.where(rows == columns, math.sqrt(diagonal_ratio), 1.0)
    if n_columns > d:
        place[:, d] = len(rows) + np.arange(d)
        pick = np.concatenate([pick, np.arange(d) * n_columns + d])
        weights = np.concatenate([weights, np.full(d, vector_ratio)])
    return Packing(pick, place.ravel(), weights)


def frobenius_factor(diagonal_ratio: float) -> float:
    """The largest mu s over |D|_F: sqrt(max(1/2, 1/ratio)); see the module's formula."""
    return math.sqrt(max(0.5, 1 / positive("diagonal_ratio", diagonal_ratio)))


@lru_cache(maxsize=256)
def _joint_sensitivity(norm_bound: float, value_bound: float, vector_ratio: float, diagonal_ratio: float) -> float:
    """S of `JointGaussian`; every release asks for it several times."""
    square, k = norm_bound**2, 2 * frobenius_factor(diagonal_ratio) ** 2
    vector = (value_bound / vector_ratio) ** 2
    t = min(square, vector / k)
    return math.sqrt(k * (square**2 - t**2) + 2 * vector * (square + t))


class Packed(Scaled):
    """Mechanisms whose noise falls on the free entries of symmetric matrices and vectors, weighted by its deviation."""

    __slots__ = ()

    @abstractmethod
    def _layout_of(self, shape: tuple[int, ...]) -> Packing:
        """Finds the packing of a value of the shape.

        Raises:
          ValueError: the mechanism takes another shape.
        """

    def whiten(self, value: FloatArray) -> FloatArray:
        """(n_rows, n_free): the free entries of all matrices, each over its weight; lower triangles are not read.

        Raises:
          ValueError: the value has another shape.
        """
        layout = self._layout_of(value.shape)
        free = value.reshape(*value.shape[:-2], layout.mirror.size).take(layout.pick, axis=-1)
        free /= layout.weights
        return free.reshape(len(value), math.prod(free.shape[1:]))

    def color(self, whitened: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """The matrices and vectors of the given shape, the matrices symmetric."""
        layout = self._layout_of(shape)
        free = whitened.reshape(*shape[:-2], layout.pick.size) * layout.weights
        return free.take(layout.mirror, axis=-1).reshape(shape)


class PackedGaussian(Packed, GaussianLaw):
    """Gaussian noise on the whitened free entries; the sensitivity counts each entry in units of its noise."""

    __slots__ = ()

    relation: Relation

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` with fresh noise, symmetric: lower triangles are not read."""
        return self.color(noise.add_gaussian(self.whiten(value), self.scale, self.noise_multiplier), value.shape)

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,), distance in the norm of the sensitivity."""
        return np.asarray(np.linalg.norm(self.whiten(np.asarray(neighbor - value)), axis=1))

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,): (neighbor - value) . (2 output - value - neighbor) / (2 scale^2), of the whitened entries."""
        shift = self.whiten(np.asarray(neighbor - value))
        middle = self.whiten(np.asarray(2 * output - value - neighbor))
        return np.asarray((shift * middle).sum(axis=1) / (2 * self.scale**2))


def _layout(shape: tuple[int, ...], extra_columns: int, diagonal_ratio: float, vector_ratio: float) -> Packing:
    """`packing` of matrices (d, d + extra_columns)."""
    if len(shape) < 3 or shape[-1] != shape[-2] + extra_columns:
        wanted = "(n_rows, ..., d, d + 1)" if extra_columns else "(n_rows, ..., d, d)"
        raise ValueError(f"value must have the shape {wanted}, got {len(shape)} axes that end in {shape[-2:]}")
    return packing(shape[-2], shape[-1], diagonal_ratio, vector_ratio)


@dataclass(frozen=True)
class SymmetricGaussian(PackedGaussian):
    """A symmetric matrix plus symmetric Gaussian noise: exactly mu-GDP, mu = 1 / noise_multiplier.

    Attributes:
      sensitivity_weighted: largest change in the norm sqrt(sum_i D_ii^2/ratio + sum_(i<j) D_ij^2).
      noise_multiplier: off-diagonal standard deviation over `sensitivity_weighted`.
      diagonal_ratio: `GOE` or `EQUAL`, see the module.
      relation: between which data sets.

    Source: Dong, Roth, Su (2022), Theorem 1, on the free entries in units of their own noise.
    """

    norm = "weighted L2 of the upper triangle"
    sensitivity_weighted: float
    noise_multiplier: float
    diagonal_ratio: float = GOE
    relation: Relation = Relation.REPLACE_RECORD

    def __post_init__(self) -> None:
        positive("sensitivity_weighted", self.sensitivity_weighted)
        positive("noise_multiplier", self.noise_multiplier)
        positive("diagonal_ratio", self.diagonal_ratio)

    @classmethod
    def of_frobenius(cls, frobenius: float, noise_multiplier: float, diagonal_ratio: float = GOE) -> SymmetricGaussian:
        """The mechanism for a sum of which one record changes at most `frobenius` in the Frobenius norm."""
        factor = frobenius_factor(diagonal_ratio)
        return cls(positive("frobenius", frobenius) * factor, noise_multiplier, diagonal_ratio)

    @classmethod
    def of_outer_products(cls, norm_bound: float, noise_multiplier: float, diagonal_ratio: float = GOE) -> SymmetricGaussian:
        """The mechanism for a sum of x x^T with |x| <= R, one x replaced.

        |xx^T - x'x'^T|_F^2 = |x|^4 + |x'|^4 - 2 (x.x')^2 <= 2 R^4, attained by orthogonal x, x'.
        """
        return cls.of_frobenius(math.sqrt(2) * positive("norm_bound", norm_bound) ** 2, noise_multiplier, diagonal_ratio)

    @property
    def sensitivity(self) -> float:
        """The sensitivity in the mechanism's norm."""
        return self.sensitivity_weighted

    def _layout_of(self, shape: tuple[int, ...]) -> Packing:
        return _layout(shape, 0, self.diagonal_ratio, 1.0)


@dataclass(frozen=True)
class JointGaussian(PackedGaussian):
    r"""The pair (sum of x x^T, sum of y x) in one release: exactly mu-GDP, mu = 1 / noise_multiplier.

    A value has the shape (n_rows, ..., d, d + 1): the matrix, and the vector as its last column. In units of s, the
    off-diagonal deviation, with v the vector's deviation over s and k = 2 max(1/2, 1/diagonal ratio), replacing (x, y) by
    (x', y') with |x|, |x'| <= R, |y|, |y'| <= Y moves it by at most

        S^2 = max over 0 <= t <= R^2 of  k (R^4 - t^2) + 2 Y^2 (R^2 + t) / v^2,   at t = min(R^2, Y^2 / (k v^2)),

    where t = |x.x'|: at fixed t both terms grow with |x|, |x'|, |y|, |y'|, and the sign of y' can be chosen. That is
    less than both worst cases added, as orthogonal x, x' are worst for the matrix and parallel ones for the vector.
    With R = Y = 1 and the GOE: mu = 1/s + s/w^2 if w >= s, else 2/w, for the vector's deviation w = v s.

    Attributes:
      norm_bound: R.
      value_bound: Y.
      noise_multiplier: s / S.
      vector_ratio: v.
      diagonal_ratio: `GOE` or `EQUAL`.
      relation: between which data sets.
    """

    norm = "weighted L2 of the upper triangle and the vector"
    norm_bound: float
    value_bound: float
    noise_multiplier: float
    vector_ratio: float = 1.0
    diagonal_ratio: float = GOE
    relation: Relation = Relation.REPLACE_RECORD

    def __post_init__(self) -> None:
        for name in ("norm_bound", "value_bound", "noise_multiplier", "vector_ratio", "diagonal_ratio"):
            positive(name, getattr(self, name))

    @property
    def sensitivity(self) -> float:
        """S, see the class."""
        return _joint_sensitivity(self.norm_bound, self.value_bound, self.vector_ratio, self.diagonal_ratio)

    @property
    def vector_scale(self) -> float:
        """Standard deviation of the vector's noise in each coordinate."""
        return self.scale * self.vector_ratio

    def _layout_of(self, shape: tuple[int, ...]) -> Packing:
        return _layout(shape, 1, self.diagonal_ratio, self.vector_ratio)

    @staticmethod
    def statistic(x: FloatArray, y: FloatArray) -> FloatArray:
        """One record's contribution.

        Args:
          x: (n_rows, d), norm at most R.
          y: (n_rows,), at most Y in absolute value.

        Returns:
          (n_rows, d, d + 1).
        """
        beside = np.concatenate([x, y[:, None]], axis=1)
        return np.asarray(x[:, :, None] * beside[:, None, :])
