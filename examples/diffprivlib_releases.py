"""Releases of diffprivlib, for `bandana audit-release`: a noisy count, and a noisy histogram."""

import importlib.util
import sys
import warnings
from types import ModuleType

from bandana.primitives import Price, priced

warnings.filterwarnings("ignore", module="diffprivlib")

try:
    import diffprivlib
except ImportError:  # diffprivlib 0.6.6 loads its models first, which scikit-learn 1.9 breaks; nothing here needs them
    found = importlib.util.find_spec("diffprivlib")
    if found is None:
        raise
    diffprivlib = sys.modules["diffprivlib"] = ModuleType("diffprivlib")
    diffprivlib.__path__ = found.submodule_search_locations

from diffprivlib import tools  # noqa: E402
from diffprivlib.mechanisms import Geometric  # noqa: E402

EPSILON = 1.0


@priced(Price(f"pure(epsilon={EPSILON})", sensitivity=1, norm="L1"))
def noisy(value, random_state):
    """A mechanism as a priced primitive."""
    return Geometric(epsilon=EPSILON, sensitivity=1, random_state=random_state).randomise(int(value))


def count(data, random_state):
    """How many records are 1."""
    return noisy(sum(data), random_state)


def histogram(data, random_state):
    """How many records are 0, and how many are 1."""
    return tools.histogram(data, epsilon=EPSILON, bins=2, range=(0, 2), random_state=random_state)[0]
