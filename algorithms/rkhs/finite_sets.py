"""Features by a finite set of points: exact on it, or by projection on what matters there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numba import njit

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.rkhs.feature_maps import FeatureMap, linear
from bandana.algorithms.rkhs.kernels import Kernel, Linear, checked_points, gram
from bandana.algorithms.rkhs.lookup import Rows
from bandana.privacy_core.checks import at_least

_FEW = 256
_ROUNDING = 1e-14
_MOST_ENTRIES = 1 << 21
_LEAST_VALUE = 1e-10
_SMALLEST_VALUE = 1e-12
_EQUAL = 1e-3
_PROJECTED_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class FiniteMap(FeatureMap):
    """Features of the points of a finite set, by a table; any other point has those of the nearest one.

    Attributes:
      points: (n, d), the set.
      features: (n, n_features)
    """

    points: FloatArray
    features: FloatArray
    _table: Rows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_table", Rows(self.points))

    def _rows(self, points: FloatArray) -> FloatArray:
        rows = self._table.find(points)
        for row in np.flatnonzero(rows < 0):
            rows[row] = np.argmin(((self.points - points[row]) ** 2).sum(axis=1))
        return self.features[rows]


@dataclass(frozen=True, eq=False)
class ProjectedMap(FeatureMap):
    """Features of any point: its part in the span of the most important functions on a finite set.

    Attributes:
      kernel: what they are features of.
      points: (n, d), the set.
      turn: (n_features, n), what the kernel with the set is multiplied with.
    """

    kernel: Kernel
    points: FloatArray
    turn: FloatArray

    def _rows(self, points: FloatArray) -> FloatArray:
        out = np.empty((len(points), self.n_features))
        step = max(1, _MOST_ENTRIES // self.points.size)
        for start in range(0, len(points), step):
            rows = gram(self.kernel, points[start : start + step], self.points) @ self.turn.T
            rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))  # of rounding only
            out[start : start + step] = rows
        return out


def projected_on(kernel: Kernel, points: FloatArray, n_features: int) -> ProjectedMap:
    r"""Features of all of [-1, 1]^d by a finite set W: those of `exact_on` there, what projecting makes of them elsewhere.

    With the largest eigenvalues L and vectors U of the Gram matrix of W, phi(x) = L^(-1/2) U^T k_W(x): the coordinates of
    the projection of k(x, .) on the span of the functions U^T k_W. So \|phi(x)\|^2 <= k(x, x) for every x, whatever the
    kernel and the dimension (Nystrom's method; Williams and Seeger 2001).

    Args:
      kernel: any with k(x, x) <= 1 on the domain.
      points: (n, d), the set: what users may bring, or a net of the domain.
      n_features: at most so many, the most important; never one whose eigenvalue is below 1e-10 of the largest.

    Returns:
      the map; its `error` is that on W.

    Raises:
      ValueError: see `exact_on`; or a point lies outside of the domain.
    """
    at_least("n_features", n_features, 1)
    known = exact_on(kernel, points)
    spectral = _spectral(gram(kernel, known.points, known.points))
    d = known.dimension
    checked_points(known.points, d, -1.0, 1.0)
    if isinstance(kernel, Linear):
        linear(kernel, d)  # refuses what is too long somewhere in the domain
    sizes = np.sqrt((spectral**2).sum(axis=0))  # of an eigenvector times the root of its value: descending
    rank = min(n_features, int((sizes**2 > _LEAST_VALUE * sizes[0] ** 2).sum()))
    turn = triangular_axes(spectral[:, :rank]) @ (spectral[:, :rank] / sizes[:rank] ** 2).T
    mapped = ProjectedMap(d, rank, 0.0, -1.0, 1.0, kernel, known.points, turn)
    left = kernel(known.points, known.points) - (mapped(known.points) ** 2).sum(axis=1)  # of a positive semidefinite matrix
    return replace(mapped, error=float(np.abs(left).max()) + _PROJECTED_ROUNDING)


def exact_on(kernel: Kernel, points: FloatArray, n_features: int | None = None, least: float = _SMALLEST_VALUE) -> FiniteMap:
    """Features on a finite set W: the rows of a square root of its Gram matrix, from the largest eigenvalues down.

    Args:
      kernel: any.
      points: (n, d), the set.
      n_features: at most so many; None: as many as the Gram matrix has eigenvalues that are more than rounding.
      least: what an eigenvalue must exceed, as a part of the largest. Rounding, which differs between processors, moves it
        by about 1e-15 of the largest: one that lies so near to the limit counts on some of them and not on others.

    Returns:
      the map. What is left of the Gram matrix is positive semidefinite too, so that features have norm at most k(x,
      x)^(1/2), and no entry is off by more than the largest of the diagonal: that is `error`.

    Raises:
      ValueError: points are not of shape (n, d) or not finite, k(x, x) is above 1, or n_features too small.
    """
    array = np.array(points, dtype=float)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"points must be of shape (n, d), n >= 1, got {array.shape}")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"points must be finite, got {float(array[place])!r} at index {place}")
    return _exact_on(kernel, array.tobytes(), array.shape, n_features, least)  # type: ignore[arg-type]


@lru_cache(maxsize=8)
def _exact_on(kernel: Kernel, entries: bytes, shape: tuple[int, int], n_features: int | None, least: float) -> FiniteMap:
    """The same of points by their bytes: forms of one algorithm, and trials of it, ask for the same map again and again."""
    array = np.frombuffer(entries).reshape(shape)
    matrix = gram(kernel, array, array)
    if matrix.diagonal().max() > 1 + 1e-9:
        row = int(np.argmax(matrix.diagonal()))
        raise ValueError(
            f"k(x, x) must be at most 1, got {matrix[row, row]:.6g} at point {row}: raise the lengthscale of a linear "
            f"kernel to {float(np.linalg.norm(array, axis=1).max()):.6g}"
        )
    features = _spectral(matrix, least)
    if n_features is not None:
        features = features[:, : at_least("n_features", n_features, 1)]
    features = features @ triangular_axes(features).T
    rank = features.shape[1]
    if len(matrix) <= _FEW:
        error = float(np.abs(features @ features.T - matrix).max())
    else:
        error = float(np.abs(matrix.diagonal() - (features**2).sum(axis=1)).max()) + _ROUNDING * len(matrix)
    features.setflags(write=False)
    low, high = float(array.min()), float(array.max())
    return FiniteMap(array.shape[1], rank, error, low, high, array, features)


def _spectral(matrix: FloatArray, least: float = _SMALLEST_VALUE) -> FloatArray:
    """(n, rank) eigenvectors times the roots of their eigenvalues, from the largest down; rows of norm at most 1."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = max(1, int((values > least * values[0]).sum()))
    features = vectors[:, :rank] * np.sqrt(np.maximum(values[:rank], 0.0))
    return np.asarray(features / np.maximum(1.0, np.linalg.norm(features, axis=1, keepdims=True)))  # of rounding only


def triangular_axes(features: FloatArray) -> FloatArray:
    """The orthogonal axes along which features are a triangle: the first row has one number, the next chosen one two.

    Eigenvectors have either sign, and those of a repeated value, which symmetric sets have, may be turned at will; which
    come out differs between processors, and noise in their coordinates is then other noise. These axes are a function of
    the products of the rows alone: row after row, that with the most left outside of the axes before.

    Args:
      features: (n, rank), of full rank.

    Returns:
      (rank, rank), rows orthonormal; features @ axes.T are the features along them.
    """
    axes = np.zeros((features.shape[1],) * 2)
    left = features.copy()
    if not left.any():  # a kernel that is 0 on the whole set
        return np.eye(len(axes))
    for k in range(len(axes)):
        size = (left**2).sum(axis=1)
        row = int(np.argmax(size >= (1 - _EQUAL) * size.max()))  # of equal ones the first, whatever their last bits
        axis = left[row]
        axis = axis - axes[:k].T @ (axes[:k] @ axis)
        axes[k] = axis / np.linalg.norm(axis)
        left -= np.outer(left @ axes[k], axes[k])
    return axes


def triangular_features(matrix: FloatArray, tolerance: float = 1e-8) -> tuple[FloatArray, float]:
    """Features of the points of a Gram matrix, by its pivoted Cholesky factorization.

    What is left of the matrix is positive semidefinite, so that no entry is off by more than the largest of its diagonal.
    A function of norm B in the kernel's space is off by at most B times the root of that from one that is linear in the
    features, of at most the same norm: its projection on the span of the kernel at the pivots (Fine and Scheinberg 2001).
    All sums are loops in a fixed order, so that no BLAS changes a bit.

    Args:
      matrix: (n, n), symmetric and positive semidefinite.
      tolerance: what may be left of the diagonal.

    Returns:
      (n, m) features, and the largest that is left of the diagonal.
    """
    features = np.zeros((len(matrix), len(matrix)))
    rank, left = pivoted_cholesky(np.ascontiguousarray(matrix), tolerance, 1 - _EQUAL, features)
    return np.ascontiguousarray(features[:, : max(rank, 1)]), float(left)


@njit(cache=True, nogil=True)
def pivoted_cholesky(matrix, tolerance, share, out):  # type: ignore[no-untyped-def]
    """Fills columns of out (n, n) with a factor of the matrix; how many, and the largest that is left of the diagonal.

    The pivot is the first point with a share of the largest that is left: of equal ones the first, whatever their last bits.
    """
    n = len(matrix)
    left = np.empty(n)
    for a in range(n):
        left[a] = matrix[a, a]
    for k in range(n):
        largest = left.max()
        if largest <= tolerance:
            return k, max(largest, 0.0)
        pivot = 0
        while left[pivot] < share * largest:
            pivot += 1
        root = math.sqrt(left[pivot])
        for a in range(n):
            value = matrix[a, pivot]
            for i in range(k):
                value -= out[a, i] * out[pivot, i]
            out[a, k] = value / root
            left[a] -= out[a, k] * out[a, k]
        left[pivot] = 0.0
    return n, 0.0
