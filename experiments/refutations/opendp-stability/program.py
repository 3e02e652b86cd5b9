"""OpenDP's stability histogram: noisy counts of names that are frequent, and what its relation accepts."""

from functools import cache

from opendp.meas import make_base_stability
from opendp.mod import enable_features
from opendp.trans import make_count_by
from opendp.typing import L1Distance

enable_features("contrib", "floating-point")


@cache
def histogram(size, scale, threshold):
    """The measurement."""
    counts = make_count_by(size=size, MO=L1Distance[float], TIA=str)
    return counts >> make_base_stability(size=size, scale=scale, threshold=threshold, MI=L1Distance[float], TIK=str)


def counts(data, seed, size, scale, threshold, epsilon, delta):
    """Counts by name; OpenDP draws its own randomness."""
    return dict(sorted(histogram(size, scale, threshold)(data).items()))


def state(release, size, scale, threshold, epsilon, delta):
    """A guarantee that the library accepts for a replaced record, a symmetric distance of 2."""
    assert histogram(size, scale, threshold).check(2, (epsilon, delta))
    return f"approx(epsilon={epsilon}, delta={delta})"
