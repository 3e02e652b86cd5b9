"""Ridge regression on noisy sums: what is added to a noisy Gram matrix, and the confidence radius that follows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.protocol import BoolArray, FloatArray, IntArray
from bandana.algorithms.regression import ridge_numba


class Regularizer(NamedTuple):
    """Shift of a noisy Gram matrix's diagonal, and bounds a and b on the eigenvalues of shift and noise together.

    Each is a number, or an array with one for each regression.
    """

    added: Any
    least: Any
    largest: Any


def regularizer(ridge: FloatArray | float, norm: FloatArray | float, margin: float = 1.0) -> Regularizer:
    """Shift by lambda + (margin + 1) q, which leaves lambda + margin q under noise of a norm of at most q; any shapes."""
    return Regularizer(ridge + (margin + 1) * norm, ridge + margin * norm, ridge + (margin + 2) * norm)


def raise_eigenvalues(
    gram: FloatArray, rows: IntArray, least: FloatArray | float, inverse: FloatArray, log_det: FloatArray
) -> None:
    """Inverts symmetric (n, d, d), eigenvalues raised to at least `least`, into rows of `inverse` and of `log_det`."""
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, np.asarray(least)[..., None])
    inverse[rows] = (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
    log_det[rows] = np.log(values).sum(axis=1)


@dataclass(frozen=True)
class PrivateRidge:
    r"""One ridge regression on noisy sums, or one for each block of them.

    After t records, with N_t and n_t the noise of sum x x^T and of sum y x, q_t >= |N_t| and g_t >= |n_t|,

        V = sum x x^T + N_t + (lambda + 2 q_t) I,     theta = V^-1 (sum y x + n_t),
        w = R sqrt(2 log(2 B n/failure) + log det V - d log a') + C sqrt(b) + g_t / sqrt(a),

    where a = lambda + q_t and b = lambda + 3 q_t bound the eigenvalues of the regularizer N_t + (lambda + 2 q_t) I, a' and n
    are those of `regularizers`, and B is the number of regressions. Shift and radius are made of public bounds and of V,
    which is released, never of the realized noise or of exact sums. Where V is not positive definite after all, its
    eigenvalues are raised to a: post-processing.

    Source: Shariff and Sheffet (2018), the Proposition on changing regularizers with a(t) and b(t); Abbasi-Yadkori, Pal and
    Szepesvari (2011), the self-normalized bound.

    Attributes (`...` stands for no axis, or for that of the blocks):
      dimension: d.
      ridge: (...) lambda.
      horizon: number of records that one a' is to hold for.
      noise: number of records -> (...) q and (...) g; 0 before the first.
      scale: (...) R: how sub-Gaussian y is around its mean.
      parameter_bound: C, bound on the norm of what is learned.
      failure: of all radii together.
    """

    dimension: int
    ridge: FloatArray | float
    horizon: int
    noise: Callable[[int], tuple[FloatArray | float, FloatArray | float]]
    scale: FloatArray | float
    parameter_bound: float
    failure: float

    def bounds(self, step: int | IntArray) -> tuple[FloatArray | float, FloatArray | float]:
        """(...) each: q and g after `step` records; for steps (n,) with their axis in front."""
        if not isinstance(step, np.ndarray):
            return self.noise(step)
        matrix, vector = zip(*(self.noise(int(each)) for each in step), strict=True)
        return np.array(matrix), np.array(vector)

    def regularizer(self, step: int | IntArray) -> Regularizer:
        """The regularizer after `step` records; for steps (n,) with their axis in front."""
        return regularizer(self.ridge, self.bounds(step)[0])

    def fit(self, statistic: FloatArray, step: int, estimate: FloatArray, inverse: FloatArray) -> FloatArray:
        """Regresses from noisy sums of (x x^T, y x) after `step` records.

        Args:
          statistic: (n_reps, ..., d, d + 1), not changed.
          step: number of records.
          estimate: (n_reps, ..., d), filled with theta.
          inverse: (n_reps, ..., d, d), filled with V^-1.

        Returns:
          (n_reps, ...) log-determinants of V.
        """
        d, shape = self.dimension, statistic.shape[:-2]
        added, log_det = np.empty((2, *shape))
        added[...], least, _ = self.regularizer(step)
        rows, theta, inverse = statistic.reshape(-1, d, d + 1), estimate.reshape(-1, d), inverse.reshape(-1, d, d)
        added, log_det, is_positive = added.ravel(), log_det.ravel(), np.empty(len(rows), dtype=np.bool_)
        ridge_numba.learn(rows, added, theta, inverse, log_det, is_positive)
        bad = np.flatnonzero(~is_positive)
        if len(bad):
            shifted = rows[bad, :, :d] + added[bad, None, None] * np.eye(d)
            raise_eigenvalues(shifted, bad, np.broadcast_to(least, shape).ravel()[bad], inverse, log_det)
            theta[bad] = np.einsum("rij,rj->ri", inverse[bad], rows[bad, :, d])
        return np.asarray(log_det.reshape(shape))

    def radius(self, log_det: FloatArray, step: int | IntArray) -> FloatArray:
        """Confidence radii w where V has these log-determinants (n, ...), after `step` records; steps may be (n,)."""
        matrix, vector = self.bounds(step)
        _, least, largest = regularizer(self.ridge, matrix)
        union, floor, is_own = self._floor
        if is_own.any():
            floor = np.where(is_own, self.dimension * np.log(least), floor)
        chance = self.scale * np.sqrt(union + np.maximum(log_det - floor, 0.0))
        return np.asarray(chance + (self.parameter_bound * np.sqrt(largest) + vector / np.sqrt(least)))

    @cached_property
    def _floor(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """(...) 2 log(2 B n/failure), d log a', and whether each step has its own a'."""
        floor, n = self.regularizers
        union = np.asarray(2 * np.log(2 * np.size(self.ridge) * n / self.failure))
        return union, self.dimension * np.log(floor), np.isnan(floor)

    @cached_property
    def regularizers(self) -> tuple[FloatArray, FloatArray]:
        """(...) the a' and the n of the radius; NaN for a' = a.

        The self-normalized bound holds after all records at once for one a' <= a: the least of the run, n = 1. Where a grows
        so much that this is larger, each step has its own, and a union over n = horizon of them.
        """
        norms, _ = self.bounds(np.arange(1, self.horizon + 1))
        least, largest = (regularizer(self.ridge, norm).least for norm in (np.min(norms, axis=0), np.max(norms, axis=0)))
        is_one = self.dimension * np.log(largest / least) <= 2 * math.log(self.horizon)
        return np.where(is_one, least, np.nan), np.where(is_one, 1.0, float(self.horizon))
