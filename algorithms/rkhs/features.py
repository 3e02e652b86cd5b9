"""Features of a kernel for algorithms, and what to choose from: Fourier features, finite sets, the points themselves."""

from __future__ import annotations

from bandana.algorithms.rkhs.feature_maps import FeatureMap, linear
from bandana.algorithms.rkhs.finite_sets import exact_on, projected_on
from bandana.algorithms.rkhs.fourier import quadrature_fourier, random_fourier
from bandana.algorithms.rkhs.kernels import Additive, Kernel, Linear

__all__ = ["FeatureMap", "exact_on", "feature_map", "linear", "projected_on", "quadrature_fourier", "random_fourier"]


def feature_map(kernel: Kernel, dimension: int, n_features: int) -> FeatureMap:
    """The features on [-1, 1]^d that an algorithm takes by default: quadrature by the best rule; exact ones where known.

    Args:
      kernel: linear, or one that `quadrature_fourier` knows.
      dimension: d, of the points.
      n_features: at most so many.

    Raises:
      ValueError: see `quadrature_fourier` and `linear`.
    """
    if isinstance(kernel, Linear):
        if n_features < dimension:
            raise ValueError(f"n_features of a linear kernel must be at least the dimension {dimension}, got {n_features}")
        return linear(kernel, dimension)
    sizes = [len(group) for group in kernel.groups] if isinstance(kernel, Additive) else [dimension]
    least = len(sizes) << max(sizes)
    if n_features < least:
        where = "coordinate of a group" if isinstance(kernel, Additive) else "coordinate"
        raise ValueError(
            f"n_features must be at least {least}, two frequencies along each {where}, got {n_features}: raise it, or use "
            "an additive kernel where the dimension is large"
        )
    return quadrature_fourier(kernel, dimension, n_features, rule="best")
