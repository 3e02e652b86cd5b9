"""Kernels of linear regression with a set of actions for each user: rank-one updates and symmetric inverses.

All arrays have a leading replicate axis, and each replicate is computed by itself: a replicate of a batch gets the same
numbers as alone.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri

from bandana.algorithms.protocol import FloatArray

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_LANES = 16
"""Replicates that one vectorized loop runs over, where loops over coordinates are too short."""
_LARGE = 24
"""From here on LAPACK is faster than a loop."""
PIVOT = 1e-14
"""Share of a diagonal entry: a pivot that is not above it is taken for 0."""


@_kernel
def take(contexts, actions, out):  # type: ignore[no-untyped-def]
    """out[r] = contexts[r, actions[r]]; contexts: (n_reps, n_actions, d), out: (n_reps, d)."""
    for r in range(len(actions)):
        for i in range(contexts.shape[2]):
            out[r, i] = contexts[r, actions[r], i]


@_kernel
def are_within(vectors, limit):  # type: ignore[no-untyped-def]
    """True if all vectors (n, m, d) have squared norms of at most the limit; one with an entry that is NaN has not."""
    for r in range(vectors.shape[0]):
        for a in range(vectors.shape[1]):
            square = 0.0
            for i in range(vectors.shape[2]):
                square += vectors[r, a, i] * vectors[r, a, i]
            if not square <= limit:
                return False
    return True


@_kernel
def shorten(vectors, limit, out):  # type: ignore[no-untyped-def]
    """Copies vectors (n, m, d) to out, those of squared norm above the limit shortened to norm 1, 0 if not finite."""
    d = vectors.shape[2]
    for r in range(vectors.shape[0]):
        for a in range(vectors.shape[1]):
            square, largest, is_finite = 0.0, 0.0, True
            for i in range(d):
                entry = vectors[r, a, i]
                out[r, a, i] = entry
                square += entry * entry
                largest = max(largest, abs(entry))
                is_finite = is_finite and math.isfinite(entry)
            if square <= limit:
                continue
            square = 0.0
            for i in range(d):  # over the largest entry first: its square may be beyond the largest number
                out[r, a, i] = out[r, a, i] / largest if is_finite else 0.0
                square += out[r, a, i] * out[r, a, i]
            if is_finite:
                for i in range(d):
                    out[r, a, i] /= math.sqrt(square)


@_kernel
def weigh(vectors, weights, out):  # type: ignore[no-untyped-def]
    """out[r] = weights[r] vectors[r]; vectors, out: (n_reps, d), weights: (n_reps,)."""
    for r in range(len(weights)):
        for i in range(vectors.shape[1]):
            out[r, i] = vectors[r, i] * weights[r]


@_kernel
def normal_equations(x, weights, answers, out):  # type: ignore[no-untyped-def]
    """out[r] = weights[r] x[r] x[r]^T and answers[r] x[r] as its last column.

    x: (n_rows, d), weights, answers: (n_rows,), out: (n_rows, d, d + 1).
    """
    d = x.shape[1]
    for r in range(len(x)):
        for j in range(d):
            weighed = weights[r] * x[r, j]
            for i in range(d):
                out[r, i, j] = x[r, i] * weighed
            out[r, j, d] = x[r, j] * answers[r]


@_kernel
def add_rank_one(gram, inverse, log_det, x):  # type: ignore[no-untyped-def]
    """Adds x x^T to `gram`, and updates its inverse (Sherman and Morrison 1950) and log-determinant, in place.

    gram, inverse: (n_reps, d, d) symmetric, log_det: (n_reps,), x: (n_reps, d). With w = inverse x and q = x^T w:
    inverse -= w w^T / (1 + q), log_det += log(1 + q) (the matrix determinant lemma). A replicate with x = 0 is not touched.
    """
    n_reps, d = x.shape
    w = np.empty(d)
    for r in range(n_reps):
        q = 0.0
        for i in range(d):
            sum_ = 0.0
            for j in range(d):
                sum_ += inverse[r, i, j] * x[r, j]
            w[i] = sum_
            q += x[r, i] * sum_
        if q == 0.0:
            continue
        scale = 1.0 / (1.0 + q)
        for i in range(d):
            xi, wi = x[r, i], w[i] * scale
            for j in range(d):
                gram[r, i, j] += xi * x[r, j]
                inverse[r, i, j] -= wi * w[j]
        log_det[r] += math.log1p(q)


@_kernel
def _times(matrix, vector, out):  # type: ignore[no-untyped-def]
    """Fills out (d,) with matrix (d, d) times vector (d,)."""
    for i in range(len(out)):
        sum_ = 0.0
        for j in range(len(vector)):
            sum_ += matrix[i, j] * vector[j]
        out[i] = sum_


@_kernel
def _invert(gram, low, inverse):  # type: ignore[no-untyped-def]
    """One matrix of `factor`: whether it is positive definite, and its log-determinant; `low` is memory (d, d)."""
    d, total = gram.shape[0], 0.0
    for i in range(d):
        for j in range(i + 1):
            sum_ = gram[i, j]
            for k in range(j):
                sum_ -= low[i, k] * low[j, k]
            if j < i:
                low[i, j] = sum_ / low[j, j]
            elif sum_ > PIVOT * abs(gram[i, i]):  # false for NaN
                low[i, i] = math.sqrt(sum_)
                total += math.log(sum_)
            else:
                return False, 0.0
    for i in range(d):  # low becomes its own inverse, column by column from the left
        low[i, i] = 1.0 / low[i, i]
        for j in range(i):
            sum_ = 0.0
            for k in range(j, i):
                sum_ += low[i, k] * low[k, j]
            low[i, j] = -sum_ * low[i, i]
    for i in range(d):
        for j in range(i + 1):
            sum_ = 0.0
            for k in range(i, d):
                sum_ += low[k, i] * low[k, j]
            inverse[i, j] = sum_
            inverse[j, i] = sum_
    return True, total


@_kernel
def factor(gram, inverse, log_det, is_positive):  # type: ignore[no-untyped-def]
    """Inverse and log-determinant of symmetric matrices by Cholesky's factorization; whether each is positive definite.

    gram, inverse: (n_reps, d, d), log_det, is_positive: (n_reps,). Of `gram` the lower triangle is read; where a pivot is
    not above 1e-14 of its diagonal entry the matrix is taken for not positive definite and nothing else is written.
    """
    low = np.empty((gram.shape[1], gram.shape[1]))
    for r in range(gram.shape[0]):
        is_positive[r], total = _invert(gram[r], low, inverse[r])
        if is_positive[r]:
            log_det[r] = total


def learn(
    statistic: FloatArray,
    added: FloatArray,
    estimate: FloatArray,
    inverse: FloatArray,
    log_det: FloatArray,
    is_positive: NDArray[np.bool_],
) -> None:
    """Least squares from sums of (x x^T, y x): the inverse of matrix + added I, its log-determinant, and inverse vector.

    Large matrices go through LAPACK, which then is four times as fast, with the rule of `factor` for the pivots.

    Args:
      statistic: (n_reps, d, d + 1), of which the vector and the lower triangle of the matrix are read.
      added: (n_reps,) to the diagonal.
      estimate: (n_reps, d), filled.
      inverse: (n_reps, d, d), filled where the matrix is positive definite.
      log_det: (n_reps,), filled there.
      is_positive: (n_reps,), filled: where nothing else is to be used.
    """
    d = inverse.shape[1]
    if d < _LARGE:
        _learn(statistic, added, estimate, inverse, log_det, is_positive)
        return
    for r, rows in enumerate(statistic):
        matrix = rows[:, :d] + added[r] * np.eye(d)
        # What is the lower triangle here is the upper one of the transpose, which has LAPACK's order of memory already.
        root, info = dpotrf(matrix.T, lower=0, clean=0)
        pivots = np.diagonal(root) ** 2
        is_positive[r] = info == 0 and bool((pivots > PIVOT * np.abs(np.diagonal(matrix))).all())
        if is_positive[r]:
            log_det[r] = np.log(pivots).sum()
            inverted, _ = dpotri(root, lower=0, overwrite_c=1)
            _mirror(inverted.T, inverse[r])
            np.matmul(inverse[r], rows[:, d], out=estimate[r])


@_kernel
def _learn(statistic, added, estimate, inverse, log_det, is_positive):  # type: ignore[no-untyped-def]
    """One loop over all replicates: those that fill whole rows of lanes side by side, the others one by one."""
    n_reps, d = inverse.shape[0], inverse.shape[1]
    gram, low = np.empty((d, d)), np.empty((d, d))
    n_abreast = n_reps - n_reps % _LANES
    _learn_abreast(statistic[:n_abreast], added, estimate, inverse, log_det, is_positive)
    for r in range(n_abreast, n_reps):
        for i in range(d):
            for j in range(i):
                gram[i, j] = statistic[r, i, j]
            gram[i, i] = statistic[r, i, i] + added[r]
        is_positive[r], total = _invert(gram, low, inverse[r])
        if is_positive[r]:
            log_det[r] = total
            _times(inverse[r], statistic[r, :, d], estimate[r])


@_kernel
def _add_product(sum_, one, other):  # type: ignore[no-untyped-def]
    """Adds one times other to the sum, lane by lane; all (`_LANES`,)."""
    for lane in range(_LANES):
        sum_[lane] += one[lane] * other[lane]


@_kernel
def _learn_abreast(statistic, added, estimate, inverse, log_det, is_positive):  # type: ignore[no-untyped-def]
    """A multiple of `_LANES` of replicates, all of `statistic`: the operations of `_invert` and `_times` in their order.

    Roots and divisions, each of which waits for the one before, are vectorized over lanes. One with a bad pivot goes on with
    a pivot of 1, and its numbers are not used.
    """
    d = inverse.shape[1]
    low, inverses, vector = np.empty((d, d, _LANES)), np.empty((d, d, _LANES)), np.empty((d, _LANES))
    sum_, total, is_fine = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    for start in range(0, len(statistic), _LANES):
        for lane in range(_LANES):
            r = start + lane
            for i in range(d):
                for j in range(i):
                    low[i, j, lane] = statistic[r, i, j]
                low[i, i, lane] = statistic[r, i, i] + added[r]
                vector[i, lane] = statistic[r, i, d]
            total[lane], is_fine[lane] = 0.0, 1.0
        for i in range(d):
            for j in range(i):
                for k in range(j):
                    for lane in range(_LANES):
                        low[i, j, lane] -= low[i, k, lane] * low[j, k, lane]
                for lane in range(_LANES):
                    low[i, j, lane] /= low[j, j, lane]
            for lane in range(_LANES):
                sum_[lane] = low[i, i, lane]
            for k in range(i):
                for lane in range(_LANES):
                    sum_[lane] -= low[i, k, lane] * low[i, k, lane]
            for lane in range(_LANES):
                is_good = sum_[lane] > PIVOT * abs(low[i, i, lane])  # false for NaN
                is_fine[lane] = is_fine[lane] if is_good else 0.0
                sum_[lane] = sum_[lane] if is_good else 1.0
                low[i, i, lane] = math.sqrt(sum_[lane])
            for lane in range(_LANES):
                total[lane] += math.log(sum_[lane])
        for i in range(d):  # low becomes its own inverse, column by column from the left
            for lane in range(_LANES):
                low[i, i, lane] = 1.0 / low[i, i, lane]
            for j in range(i):
                sum_[:] = 0.0
                for k in range(j, i):
                    _add_product(sum_, low[i, k], low[k, j])
                for lane in range(_LANES):
                    low[i, j, lane] = -sum_[lane] * low[i, i, lane]
        for i in range(d):
            for j in range(i + 1):
                sum_[:] = 0.0
                for k in range(i, d):
                    _add_product(sum_, low[k, i], low[k, j])
                for lane in range(_LANES):
                    inverses[i, j, lane] = sum_[lane]
                    inverses[j, i, lane] = sum_[lane]
        for i in range(d):
            sum_[:] = 0.0
            for j in range(d):
                _add_product(sum_, inverses[i, j], vector[j])
            for lane in range(_LANES):
                if is_fine[lane] > 0.0:
                    estimate[start + lane, i] = sum_[lane]
        for lane in range(_LANES):
            r = start + lane
            is_positive[r] = is_fine[lane] > 0.0
            if is_positive[r]:
                log_det[r] = total[lane]
                for i in range(d):
                    for j in range(d):
                        inverse[r, i, j] = inverses[i, j, lane]


@_kernel
def _mirror(lower, out):  # type: ignore[no-untyped-def]
    """Fills `out` with the symmetric matrix of which `lower` holds the lower triangle; both (d, d)."""
    for i in range(lower.shape[0]):
        for j in range(i + 1):
            out[i, j] = lower[i, j]
            out[j, i] = lower[i, j]


def least_eigenvalues(matrix: FloatArray, out: FloatArray) -> None:
    """out[r] = the smallest eigenvalue of matrix[r], within 1e-13 of its Frobenius norm; from 24 rows on by LAPACK.

    matrix: (n_reps, d, d) symmetric, of which the upper triangle is read, out: (n_reps,).
    """
    if matrix.shape[1] < _LARGE:
        _turn(matrix, out)
    else:
        out[:] = np.linalg.eigvalsh(matrix, UPLO="U")[:, 0]


@_kernel
def _turn(matrix, out):  # type: ignore[no-untyped-def]
    """The same by Jacobi's rotations, after at most 32 sweeps.

    Sixteen replicates turn side by side, so that the roots and divisions, each of
    which waits for the one before, are vectorized; one that is done turns by an angle of 0.
    """
    n_reps, d = matrix.shape[0], matrix.shape[1]
    m = np.empty((d, d, _LANES))
    size, off, is_open = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    cosine, sine = np.empty(_LANES), np.empty(_LANES)
    for start in range(0, n_reps, _LANES):
        last = n_reps - 1
        for lane in range(_LANES):
            size[lane] = 0.0
        for i in range(d):
            for j in range(i, d):
                for lane in range(_LANES):
                    m[i, j, lane] = matrix[min(start + lane, last), i, j]
                    size[lane] += (1.0 if i == j else 2.0) * m[i, j, lane] * m[i, j, lane]
        for _ in range(32):
            for lane in range(_LANES):
                off[lane] = 0.0
            for i in range(d - 1):
                for j in range(i + 1, d):
                    for lane in range(_LANES):
                        off[lane] += m[i, j, lane] * m[i, j, lane]
            n_open = 0
            for lane in range(_LANES):
                is_open[lane] = 1.0 if off[lane] > 1e-26 * size[lane] else 0.0
                n_open += off[lane] > 1e-26 * size[lane]
            if n_open == 0:
                break
            for p in range(d - 1):
                for q in range(p + 1, d):
                    for lane in range(_LANES):
                        cross = m[p, q, lane] * is_open[lane]
                        apart = m[q, q, lane] - m[p, p, lane]
                        tangent = 2.0 * cross / (abs(apart) + math.sqrt(apart * apart + 4.0 * cross * cross) + 1e-300)
                        tangent = tangent if apart >= 0.0 else -tangent
                        cosine[lane] = 1.0 / math.sqrt(1.0 + tangent * tangent)
                        sine[lane] = tangent * cosine[lane]
                        m[p, p, lane] -= tangent * cross
                        m[q, q, lane] += tangent * cross
                        m[p, q, lane] -= cross
                    for k in range(d):
                        if k in (p, q):
                            continue
                        kp, pk, kq, qk = min(k, p), max(k, p), min(k, q), max(k, q)
                        for lane in range(_LANES):
                            one, two = m[kp, pk, lane], m[kq, qk, lane]
                            m[kp, pk, lane] = cosine[lane] * one - sine[lane] * two
                            m[kq, qk, lane] = sine[lane] * one + cosine[lane] * two
        for lane in range(min(_LANES, n_reps - start)):
            least = m[0, 0, lane]
            for i in range(1, d):
                least = min(least, m[i, i, lane])
            out[start + lane] = least


@_kernel
def normalize(vectors):  # type: ignore[no-untyped-def]
    """Scales each row of (n_rows, d) to norm 1, in place; a row of zeros becomes the first axis."""
    for r in range(vectors.shape[0]):
        square = 0.0
        for i in range(vectors.shape[1]):
            square += vectors[r, i] * vectors[r, i]
        if square == 0.0:
            vectors[r, 0] = 1.0
            continue
        scale = 1.0 / math.sqrt(square)
        for i in range(vectors.shape[1]):
            vectors[r, i] *= scale


@_kernel
def linear_answers(theta, contexts, actions, uniform, middle, bend, low, high, is_two_point, out):  # type: ignore[no-untyped-def]
    """out[r] = a reward in [low, high] from one uniform number, mean m = middle + z - bend z^2, z = <theta, x played>.

    Two-point: high with probability (m - low) / (high - low), else low. Otherwise uniform on the widest interval around m
    that lies in the range.
    """
    for r in range(len(actions)):
        mean = middle
        for i in range(contexts.shape[2]):
            mean += theta[i] * contexts[r, actions[r], i]
        mean -= bend * (mean - middle) ** 2
        mean = min(max(mean, low), high)
        if is_two_point:
            out[r] = high if uniform[r] * (high - low) < mean - low else low
        else:
            out[r] = mean + (2.0 * uniform[r] - 1.0) * min(mean - low, high - mean)
