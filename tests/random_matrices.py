"""Random matrices."""

from __future__ import annotations

import numpy as np


def positive_definite(rng, n_reps, d, ridge=0.5):
    """(n_reps, d, d), of eigenvalues of at least the ridge."""
    x = rng.standard_normal((n_reps, 3 * d, d))
    return np.einsum("rni,rnj->rij", x, x) / d + ridge * np.eye(d)
