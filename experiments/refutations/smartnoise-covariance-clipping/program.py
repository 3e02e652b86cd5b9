"""The covariances that smartnoise-synth releases; the module is loaded by itself, as its package needs torch."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd

found = importlib.util.find_spec("snsynth")
place = Path(found.submodule_search_locations[0]) / "models" / "dp_covariance.py"
spec = importlib.util.spec_from_file_location("dp_covariance", place)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)


def covariances(data, seed, epsilon, bounds):
    """The lower triangle of the covariance matrix of records."""
    np.random.seed(seed)  # noqa: NPY002  (the library draws from it)
    columns = list(range(len(bounds)))
    rows = pd.DataFrame(np.array(data, dtype=float), columns=columns)
    ranges = pd.DataFrame(np.array(bounds, dtype=float).T, columns=columns)
    return module.DPcovariance(len(data), columns, ranges, epsilon).release(rows)
