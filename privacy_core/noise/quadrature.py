r"""Integrals of products of Laplace densities and distribution functions, in logarithms and with a known error.

Between two neighboring centers, such a product is a sum of exponentials times bounded factors. It is integrated piece by
piece, by Gauss and Legendre's rule; pieces halve towards both ends of each interval, where a product of many factors may
change fast. All terms are positive, and they are added in logarithms, so that nothing cancels and nothing underflows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from bandana.privacy_core.arrays import FloatArray

_NODES, _HALVINGS, _TAIL = 12, 7, 60.0


@lru_cache(maxsize=1)
def _rule() -> tuple[FloatArray, FloatArray]:
    """Nodes in (0, 1) and weights of all pieces of one interval: (n_points,) each."""
    x, weight = np.polynomial.legendre.leggauss(_NODES)
    half = 0.5 ** np.arange(_HALVINGS, 0, -1)  # 1/128, ..., 1/2
    edges = np.concatenate([[0.0], half, 1 - half[-2::-1], [1.0]])
    start, width = edges[:-1, None], np.diff(edges)[:, None]
    return (start + width * (x + 1) / 2).ravel(), (width * weight / 2).ravel()


def log_integral(log_product: Callable[[FloatArray], FloatArray], centers: FloatArray, scale: float) -> FloatArray:
    """The logarithm of an integral over the real line, row by row.

    Args:
      log_product: (n_rows, n_points) places -> (n_rows, n_points, ...) logarithms of the integrands there.
      centers: (n_rows, n_centers) where some factor has a kink.
      scale: the largest scale of the factors: beyond all centers the integrands fall at least as fast as exp(-|x| / scale).

    Returns:
      (n_rows, ...)
    """
    ordered = np.sort(centers, axis=1)
    reach = _TAIL * scale
    edges = np.concatenate([ordered[:, :1] - reach, ordered, ordered[:, -1:] + reach], axis=1)
    node, weight = _rule()
    width = np.diff(edges, axis=1)[:, :, None]
    places = (edges[:, :-1, None] + width * node).reshape(len(edges), -1)
    with np.errstate(divide="ignore"):
        log_weight = np.log(width * weight).reshape(len(edges), -1)
    terms = log_product(places)
    extra = terms.ndim - 2
    return np.asarray(logsumexp(terms + log_weight.reshape(*log_weight.shape, *[1] * extra), axis=1))


def log_laplace_density(x: FloatArray, scale: float) -> FloatArray:
    """Log of exp(-|x| / scale) / (2 scale), same shape."""
    return np.asarray(-np.abs(x) / scale - np.log(2 * scale))


def log_laplace_below(x: FloatArray, scale: float) -> FloatArray:
    """Log P(Z < x) of a Laplace variable Z of the given scale, same shape."""
    tail = -np.abs(x) / scale - np.log(2)
    return np.asarray(np.where(x < 0, tail, np.log1p(-np.exp(tail))))
