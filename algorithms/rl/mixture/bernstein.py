r"""A confidence radius that knows variances: Bernstein's inequality for self-normalized sums, under changing regularizers.

Let S = sum x_i e_i with E e_i = 0, E e_i^2 <= 1 and |x_i| |e_i| <= c, given the past, and M at least sum x x^T + a' I. For
every u the exact log-moments g_i(u) = log E exp(<u, x_i> e_i) make exp(<u, S> - sum g_i(u)) a martingale of mean 1, and
so is its mixture over u ~ N(0, I / a'): with probability 1 - delta it never exceeds 1 / delta (Ville). For |u| <= b / c

    g_i(u) <= phi <u, x_i>^2,     phi = (e^b - 1 - b) / b^2,

as (e^z - 1 - z) / z^2 grows with z; phi >= 1/2, so that there the mixture's exponent is at least <u, S> - phi u^T M u. It is
largest at M^-1 S / (2 phi), whose norm is at most s / (2 phi sqrt l), s^2 = S^T M^-1 S and l the least eigenvalue of M. Take
the ball of radius k b / c around t times that point, t <= 1 so that all of it lies in |u| <= b / c: on it the linear terms
average out to at least 1 (they are odd, and cosh >= 1), and what is left of the Gaussian has the mass P(chi^2_d <= z) >= 1 -
d / z, z = 2 phi l (k b / c)^2, by Markov. With

    L = log(1/delta) + (log det M - d log a' + d log(2 phi)) / 2 - log(1 - d / z),     T = 2 phi (1 - k) b sqrt(l) / c,

it follows that (2 t - t^2) s^2 <= 4 phi L with t = min(1, T / s), or

    s <= 2 sqrt(phi L) where T >= 2 sqrt(phi L),     s <= 2 phi L / T + T / 2 else.

b may be chosen after the fact, as the martingale does not depend on it. With many samples in all directions, or much noise,
l is large, b small, and phi near 1/2: the radius is that of 1-sub-Gaussian e_i, however large c is.

Source: the mixture is that of Abbasi-Yadkori, Pal and Szepesvari (2011). Bernstein's inequality for vectors is in Zhou, Gu
and Szepesvari (2021), Theorem 4.1, and Zhao, He, Zhou, Zhang and Gu (2023), by induction over the norm, with constants of 4
and more in place of sqrt 2. Ziemann (2024), "A vector Bernstein inequality for self-normalized martingales", mixes over
ellipsoids.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_GRID = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
CHOICES = np.array([(b, (math.exp(b) - 1 - b) / b**2) for b in _GRID])
"""b and phi."""
BALL = 0.25
"""k."""


@_kernel
def shorten(radius, union, log_growth, inverse, largest, choices, ball):  # type: ignore[no-untyped-def]
    """Replaces each bound on s by the module's where that is smaller.

    radius: (n_reps, n); union: (n,) log(1/delta); log_growth: (n_reps, n) log det M - d log a'; inverse: (n_reps, n or more,
    d, d) of M, whose Frobenius norm bounds 1 / l from above; largest: (n,) c; choices: pairs (b, phi); ball: k.
    """
    n_reps, n = radius.shape
    d = inverse.shape[2]
    for r in range(n_reps):
        for i in range(n):
            square = 0.0
            for j in range(d):
                for k in range(d):
                    square += inverse[r, i, j, k] * inverse[r, i, j, k]
            root = 1.0 / (math.sqrt(math.sqrt(square)) * largest[i])
            for j in range(len(choices)):
                b, phi = choices[j]
                outside = d / (2.0 * phi * (ball * b * root) ** 2)
                if outside >= 1.0:
                    continue
                log = union[i] + 0.5 * (max(log_growth[r, i], 0.0) + d * math.log(2.0 * phi)) - math.log(1.0 - outside)
                width, most = 2.0 * math.sqrt(phi * log), 2.0 * phi * (1.0 - ball) * b * root
                if most < width:
                    width = 2.0 * phi * log / most + most / 2.0
                radius[r, i] = min(radius[r, i], width)
