r"""Effects that one replaced record can have at worst to the sums that the papers release: the arithmetic that they share.

The statistics are pairs (sum of x x^T, sum of y x) with |x| <= R and |y| <= Y. Replacing (x, y) by (x', y') moves them by
D = xx^T - x'x'^T and g = yx - y'x'. With t = |x.x'|:

    |D|_F^2 = |x|^4 + |x'|^4 - 2 t^2 <= 2 (R^4 - t^2),      |g|^2 <= 2 Y^2 (R^2 + t).

At fixed t both grow with |x|, |x'|, |y|, |y'|, and the sign of y' (or of x') can be chosen, so for every t in [0, R^2]
one pair attains both bounds. Orthogonal x, x' are worst for D, parallel ones for g. All sensitivities are for replacing
one record; in one dimension, where t is |x||x'|, some are not attained, so calibrations ask for two or more.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from bandana.privacy_core.arrays import FloatArray
from bandana.privacy_core.noise.matrices import EQUAL, GOE, JointGaussian

INDEPENDENT = EQUAL
"""Symmetric with equal variances s^2 on the upper triangle, or (Z + Z^T)/2, or a whole square Z: mu^2 <= |D|_F^2 / s^2.

The last two attain it for every D (the symmetric part of Z is all that D correlates with), the first for diagonal D: its
mu^2 is (|D|_F^2 + sum_i D_ii^2) / (2 s^2), and the plane of x, x' can be turned until D is diagonal, with the same |g|.
"""


def pair_mu_squared(norm: float, value: float, matrix_sd: float, vector_sd: float, law: float = GOE) -> float:
    """mu^2 of releasing (x x^T, y x) once, |x| <= norm, |y| <= value: the exact supremum, derived at `JointGaussian`.

    With R = s = w = 1: (1 + Y^2)^2 for Y <= 1 and 4 Y^2 above (GOE); 2 + 2 Y^2 + Y^4 / 2 for Y^2 <= 2 (INDEPENDENT).

    Args:
      norm: R.
      value: Y.
      matrix_sd: s, see `law`.
      vector_sd: w, of each coordinate.
      law: of the matrix noise, `GOE` or `INDEPENDENT`.
    """
    joint = JointGaussian(norm, value, 1.0, vector_ratio=vector_sd / matrix_sd, diagonal_ratio=law)
    return (joint.sensitivity / matrix_sd) ** 2


def square_entry_mu_squared(value: float) -> float:
    """s^2 mu^2 of releasing z z^T, z = (x, y), with GOE noise of deviation s: |x| <= 1, |y| <= value.

    Now y^2 is released too. With z.z' = c + y y', c in [-1, 1], and |z|^2 = 1 + y^2 (longer x are worse),

        |D|_F^2 / 2 = ((1 + y^2)^2 + (1 + y'^2)^2) / 2 - (c + y y')^2,      c = -y y' cut to [-1, 1].

    Let |y| >= |y'|; between |y'| and Y this is convex in |y|, and where both are equal it grows with them: so |y| = Y. For
    Y <= 1 the worst y' is -Y, which gives (1 + Y^2)^2, as without the entry. For Y > 1 it is -Y, which gives 4 Y^2 as
    without the entry, or the local maximum -r, where r is the smallest positive root of r^3 - (Y^2 - 1) r + Y = 0. There is
    one from Y = 2 on, and from Y = 2.4 or so it costs more: the entry is paid for.

    Args:
      value: Y.
    """
    if value <= 1:
        return (1 + value**2) ** 2
    best = 4 * value**2
    for root in np.roots([1.0, 0.0, 1 - value**2, value]):
        other = float(root.real)
        if abs(root.imag) < 1e-9 and 0 <= other <= value:
            orthogonal = ((1 + value**2) ** 2 + (1 + other**2) ** 2) / 2
            best = max(best, orthogonal - max(0.0, value * other - 1) ** 2)
    return best


def matrix_l1_bound(dimension: int) -> float:
    """An upper bound on the L1 change of the upper triangle of x x^T, |x| <= 1: sqrt(d (d + 3) / 2).

    Weigh the diagonal with 1 and the rest of the square with 1/2: Cauchy-Schwarz gives |D|_F sqrt(d + d (d - 1) / 4), and
    |D|_F <= sqrt 2. It grows like d / sqrt 2, where the L2 sensitivity stays at sqrt 2.
    """
    return math.sqrt(dimension * (dimension + 3) / 2)


def pair_l1_bound(dimension: int, matrix_weight: float = 1.0, vector_weight: float = 1.0) -> float:
    """An upper bound on (weighted) L1 change of the pair (x x^T, y x), |x|, |y| <= 1; of the matrix, the upper triangle.

    With t = |x.x'| = cos 2 theta the module's bounds are |D|_F <= sqrt 2 sin 2 theta and |g| <= 2 cos theta. The L1 norms
    are at most sqrt(d (d + 3) / 4) |D|_F (see `matrix_l1_bound`) and sqrt d |g|, which leaves a maximum over one angle.
    """
    return float(_peak(matrix_weight * matrix_l1_bound(dimension), 2 * vector_weight * math.sqrt(dimension)))


@lru_cache(maxsize=1024)
def pair_l1_witness(dimension: int, matrix_weight: float = 1.0, vector_weight: float = 1.0) -> float:
    """A (weighted) L1 change of the pair (x x^T, y x) that two records attain, so a lower bound on the sensitivity.

    x = p cos theta + q sin theta, x' = -p cos theta + q sin theta, y = y' = 1, with unit vectors p, q that are constant
    on the first k = floor(d / 2) coordinates and on the rest, (cos a / sqrt k, sin a / sqrt(d - k)) and (sin a / sqrt k,
    -cos a / sqrt(d - k)). Then D = sin 2 theta (p q^T + q p^T), whose upper triangle has the L1 norm sin 2 theta (sin 2a
    (d + 2) / 2 + |cos 2a| sqrt(k (d - k))), and g = 2 p cos theta. The best angle a is looked for on a grid. For the
    matrix alone it gives sqrt((d^2 + 2 d + 2) / 2) at even d: `matrix_l1_bound` is at most 5 percent above.
    """
    k = dimension // 2
    angles = np.linspace(0, math.pi / 2, 721)
    matrix = np.sin(2 * angles) * (dimension + 2) / 2 + np.abs(np.cos(2 * angles)) * math.sqrt(k * (dimension - k))
    vector = 2 * (np.cos(angles) * math.sqrt(k) + np.sin(angles) * math.sqrt(dimension - k))
    return float(_peak(matrix_weight * matrix, vector_weight * vector).max())


def _peak(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """The maximum of a sin 2 theta + b cos theta, a, b > 0 of one shape: sin theta = (-b + sqrt(b^2 + 32 a^2)) / (8 a)."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    sine = (-b + np.sqrt(b * b + 32 * a * a)) / (8 * a)
    cosine = np.sqrt(np.maximum(0.0, 1 - sine * sine))
    return np.asarray(2 * a * sine * cosine + b * cosine)
