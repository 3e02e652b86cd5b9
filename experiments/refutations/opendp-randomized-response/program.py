"""OpenDP's randomized response on a truth value, and what its relation states for it."""

import math
from functools import cache

from opendp.meas import make_randomized_response_bool
from opendp.mod import enable_features

enable_features("contrib", "floating-point")


@cache
def mechanism(prob):
    """The measurement."""
    return make_randomized_response_bool(prob)


def answer(data, seed, prob):
    """The answer of one person; OpenDP draws its own randomness."""
    return int(mechanism(prob)(bool(data[0])))


def state(release, prob):
    """The smallest epsilon, up to a thousandth, that the library accepts for two people who answer differently."""
    epsilon = math.log(prob / (1 - prob)) + 1e-3
    stated = mechanism(prob)
    assert stated.map(1) <= epsilon if hasattr(stated, "map") else stated.check(1, epsilon)
    return f"pure(epsilon={epsilon})"
