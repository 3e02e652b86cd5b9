"""OpenDP's sum of a known number of whole numbers, with geometric noise, and what its relation accepts."""

from functools import cache

from opendp.meas import make_base_geometric
from opendp.mod import enable_features
from opendp.trans import make_sized_bounded_sum

enable_features("contrib")


@cache
def mechanism(size, scale):
    """The measurement, for numbers from 0 to 1."""
    return make_sized_bounded_sum(size=size, bounds=(0, 1)) >> make_base_geometric(scale=scale)


def total(data, seed, scale, epsilon):
    """The noisy sum; OpenDP draws its own randomness."""
    return mechanism(len(data), scale)(data)


def state(release, scale, epsilon):
    """A guarantee that the library accepts for a replaced record, a symmetric distance of 2."""
    assert mechanism(3, scale).check(2, epsilon)
    return f"pure(epsilon={epsilon})"
