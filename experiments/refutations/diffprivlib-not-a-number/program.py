"""Statistics of diffprivlib's tools on numbers in [0, 1], one of which may be no number."""

import numpy as np
from diffprivlib import tools


def statistic(data, seed, tool, epsilon):
    """One tool's answer."""
    more = {"quant": 0.5} if tool == "quantile" else {}
    return getattr(tools, tool)(np.array(data, dtype=float), epsilon=epsilon, bounds=(0, 1), random_state=seed, **more)


def state(release, tool, epsilon):
    """Twice epsilon, for a replaced record."""
    return f"pure(epsilon={2 * epsilon})"
