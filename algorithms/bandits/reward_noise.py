"""Noise on a sum of rewards of which one may be replaced, as large as a promise asks for.

It is rounded up by one part in 1e12, so that no rounding leaves it below the theorem's. Both functions raise a ValueError
for an epsilon that is not positive, and an order alpha that is not above 1.
"""

from __future__ import annotations

import math

from bandana.privacy_core import Gaussian, Interval, Laplace, Relation
from bandana.privacy_core.checks import positive

_UP = 1 + 1e-12


def laplace(epsilon: float, reward_range: Interval) -> Laplace:
    """Noise with which a sum of rewards is epsilon-DP, one reward replaced."""
    return Laplace(reward_range.width, _UP / positive("epsilon", epsilon), Relation.REPLACE_REWARD)


def gaussian(alpha: float, epsilon: float, reward_range: Interval) -> Gaussian:
    """Noise with which a sum of rewards is (alpha, epsilon)-RDP, one reward replaced: mu = sqrt(2 epsilon / alpha)."""
    positive("epsilon", epsilon)
    if not alpha > 1:
        raise ValueError(f"alpha must be a Renyi order above 1, got {alpha!r}")
    return Gaussian(reward_range.width, math.sqrt(alpha / (2 * epsilon)) * _UP, Relation.REPLACE_REWARD)
