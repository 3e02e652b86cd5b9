"""The Wishart mechanism of an early diffprivlib, on a second moment.

Its models need a scikit-learn of that time, and its mechanisms do not: only these are imported.
"""

import importlib.util
import sys
from types import ModuleType

import numpy as np

places = importlib.util.find_spec("diffprivlib").submodule_search_locations
package = sys.modules["diffprivlib"] = ModuleType("diffprivlib")
package.__path__ = places

from diffprivlib.mechanisms import Wishart  # noqa: E402


def second_moment(data, seed, epsilon):
    """The noisy sum of squares of numbers in [-1, 1]."""
    np.random.seed(seed)  # noqa: NPY002  (the library draws from it)
    records = np.array(data, dtype=float)[:, None]
    mechanism = Wishart().set_epsilon(epsilon).set_sensitivity(1)
    return mechanism.randomise(records.T @ records).ravel()
