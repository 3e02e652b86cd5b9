"""Does a sample of noise follow the distribution that it should?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

N_SAMPLES = 100_000
"""At this size a scale that is 30 % wrong has a p-value below 1e-100."""
FALSE_ALARM = 1e-20
"""The probability that honest noise is rejected."""


def is_distributed_as(samples: ArrayLike, distribution: Any) -> bool:
    """Whether a Kolmogorov-Smirnov test keeps the frozen scipy distribution (false alarm: 1e-20)."""
    flat = np.ravel(samples)
    if len(flat) != N_SAMPLES:
        raise ValueError(f"the test is made for {N_SAMPLES} samples, got {len(flat)}")
    return bool(stats.kstest(flat, distribution.cdf).pvalue > FALSE_ALARM)
