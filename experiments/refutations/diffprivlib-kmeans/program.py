"""The centers that diffprivlib's k-means releases, in order."""

import numpy as np
from diffprivlib.models import KMeans


def centers(data, seed, epsilon):
    """Two centers of numbers in [0, 1]."""
    records = np.array(data, dtype=float)[:, None]
    return np.sort(KMeans(2, epsilon=epsilon, bounds=(0, 1), random_state=seed).fit(records).cluster_centers_.ravel())


def state(release, epsilon):
    """Twice epsilon, for a replaced record."""
    return f"pure(epsilon={2 * epsilon})"
