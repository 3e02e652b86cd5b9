r"""A check of the papers' assumption on contexts.

Azize and Basu, Assumption 2 (after Gentile, Li, Zappella 2014): |A| = 1, E[A A^T] has a least eigenvalue lambda_0 > 0, and
for every unit vector z the variance of (z^T A)^2 is at most lambda_0^2 / (8 log(4 K)).

No law of unit vectors meets it in d >= 2. Let v be a unit eigenvector of lambda_0, u any other one, and nu^2 the largest
variance. With z = (v + u)/sqrt 2 and z' = (v - u)/sqrt 2, (z^T A)^2 - (z'^T A)^2 = 2 (v^T A)(u^T A), which has mean 0; its
variance 4 E[(v^T A)^2 (u^T A)^2] is at most (2 nu)^2. Summed over the d - 1 other eigenvectors u, as (u^T A)^2 then sum to
1 - (v^T A)^2: lambda_0 - lambda_0^2 - nu^2 <= (d - 1) nu^2. So lambda_0 (1 - lambda_0) <= d nu^2 <= d lambda_0^2 /
(8 log(4 K)), and as lambda_0 <= 1/d <= 1/2 this says 1/2 <= 1/(8 log 4) = 0.09. What depends on the assumption has no proof;
`check_assumption_2` says by how much it fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.environments.tables import checked_features
from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core.checks import at_least

_STARTS = 64
_STEPS = 200
_RISE = 1e-9
_MOST_USERS = 4096
_FEW_DIMENSIONS = 16
"""Up to here fourth moments are kept: at most 16^4 numbers."""


@dataclass(frozen=True)
class ContextLaw:
    """Quantities that Assumption 2 restricts, computed for a law of contexts.

    Attributes:
      least_eigenvalue: lambda_0, of E[A A^T].
      variance: the largest variance of (z^T A)^2 over unit vectors z; of a sample the largest that was found.
      variance_limit: lambda_0^2 / (8 log(4 K)).
      is_unit: whether |A| = 1.
    """

    least_eigenvalue: float
    variance: float
    variance_limit: float
    is_unit: bool

    @property
    def holds(self) -> bool:
        """True if Assumption 2 holds."""
        return self.is_unit and self.least_eigenvalue > 0 and self.variance <= self.variance_limit

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does not hold"
        unit = "" if self.is_unit else "; vectors are not of norm 1"
        return (
            f"Assumption 2 {verdict}: least eigenvalue {self.least_eigenvalue:.4g}, variance {self.variance:.4g}, at most "
            f"{self.variance_limit:.4g} allowed{unit}"
        )


def uniform_sphere_law(dimension: int, n_actions: int) -> ContextLaw:
    """That of the uniform sphere in closed form: lambda_0 = 1/d, variance 3/(d (d + 2)) - 1/d^2 in every direction."""
    d = at_least("dimension", dimension, 1)
    return ContextLaw(1 / d, 3 / (d * (d + 2)) - 1 / d**2, _variance_limit(1 / d, n_actions), True)


def check_assumption_2(features: ArrayLike) -> ContextLaw:
    """Checks Assumption 2 for the law that draws each action of the given contexts with the same probability.

    Args:
      features: (n_users, n_actions, d); of more than 4096 users evenly spaced ones are looked at.

    The variance is that of the direction at which a power iteration on the fourth moments ends, the best of 64 starts and
    those of the argument above: a lower bound, which refutes the assumption for unit vectors in d >= 2 always.
    """
    array = np.asarray(features, dtype=float)
    array = array[:: -(-len(array) // _MOST_USERS)]
    array = checked_features(array, array.shape[:2])
    n_actions, d = array.shape[1:]
    flat = array.reshape(-1, d)
    second = flat.T @ flat / len(flat)
    values, vectors = np.linalg.eigh(second)
    generator = np.random.Generator(np.random.SFC64(0))
    sides = np.concatenate([vectors.T[0] + vectors.T[1:], vectors.T[0] - vectors.T[1:]]) / math.sqrt(2)  # z and z' above
    z = np.concatenate([vectors.T, sides, generator.standard_normal((_STARTS, d))])
    z = z[np.linalg.norm(z, axis=1) > 0]
    pull, variance = _fourth_moments(flat), 0.0
    for _ in range(_STEPS):  # ascent of a convex function on the sphere: each step goes to the slope's direction
        z = z / np.linalg.norm(z, axis=1, keepdims=True)
        pulled, slid = pull(z), z @ second
        mean = (slid * z).sum(axis=1)
        slope = pulled - mean[:, None] * slid
        before, variance = variance, float(((pulled * z).sum(axis=1) - mean * mean).max())
        if variance - before <= _RISE * variance:
            break
        z = np.where(np.linalg.norm(slope, axis=1, keepdims=True) > 1e-15, slope, z)
    is_unit = bool(np.allclose(np.linalg.norm(flat, axis=1), 1.0, atol=1e-9))
    least = max(0.0, float(values[0]))
    return ContextLaw(least, max(0.0, variance), _variance_limit(least, n_actions), is_unit)


def _fourth_moments(flat: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """The function z -> mean of <v, z>^3 v over the vectors v (n, d), for directions z (k, d).

    The moments themselves are summed once where that is less than to look at every vector in every step.
    """
    n, d = flat.shape
    if d > _FEW_DIMENSIONS:

        def look(z: FloatArray) -> FloatArray:
            shown = flat @ z.T
            return np.asarray((shown * shown * shown).T @ flat / n)  # products: powers take twenty times as long

        return look
    moments = np.zeros((d * d, d * d))
    for start in range(0, n, _MOST_USERS):  # in pieces: all products at once would take d times the memory of the vectors
        piece = flat[start : start + _MOST_USERS]
        pairs = (piece[:, :, None] * piece[:, None, :]).reshape(len(piece), d * d)
        moments += pairs.T @ pairs / n

    def sum_up(z: FloatArray) -> FloatArray:
        both = (z[:, :, None] * z[:, None, :]).reshape(len(z), d * d)
        return np.asarray(np.einsum("kij,kj->ki", (both @ moments).reshape(len(z), d, d), z))

    return sum_up


def _variance_limit(least: float, n_actions: int) -> float:
    return least**2 / (8 * math.log(4 * n_actions))
