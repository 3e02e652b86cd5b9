"""Rewards and covariates between the listed ones: drawn where leaks hide that no list of a few values meets.

A leak may depend on a reward in a narrow band, or on what rounding makes of it. So rewards are drawn uniformly in the range,
on and beside multiples of 1, 1/10, 1/100 and 1/1000 and half way between these, where rounding turns, and on and beside the
numbers that the algorithm's code knows. Entries of contexts are drawn in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bandana.algorithms.environments.data_sets import DataSet
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.audits.searches.constants import thresholds_of
from bandana.privacy_core import Interval

SHARE = 1 / 4
"""Share of the cases whose record has a drawn reward, and of those whose record has drawn covariates."""
_STEPS = np.array([1.0, 0.1, 0.01, 0.001])
_SMALLEST = 9.0
"""Values beside a number are off it by 10 to minus 1 to 9 times the width of the range, on either side."""
_ENTRIES = Interval(-1.0, 1.0)


@dataclass(frozen=True)
class Between:
    """Values that a record is given beside the listed ones.

    Attributes:
      span: range of rewards.
      rewards: numbers in it at which the algorithm may decide otherwise, increasing.
      entries: the same of entries of contexts.
    """

    span: Interval
    rewards: tuple[float, ...]
    entries: tuple[float, ...]

    @classmethod
    def of(cls, algorithm: Algorithm, table: Table) -> Between:
        """Values for an algorithm on a data set."""
        entries = () if table.covariates is None else thresholds_of(algorithm, _ENTRIES)
        return cls(table.reward_range, thresholds_of(algorithm, table.reward_range), entries)

    def draw_rewards(self, n: int, coin: np.random.Generator) -> FloatArray:
        """(n,) rewards in the range."""
        return _draw(self.span, self.rewards, (n,), coin)

    def draw_covariates(self, table: DataSet, n: int, coin: np.random.Generator) -> Any:
        """(n, ...) covariates of records of the data set."""
        return table.draw_covariates(n, lambda shape: _draw(_ENTRIES, self.entries, shape, coin), coin)


def _draw(span: Interval, thresholds: tuple[float, ...], shape: tuple[int, ...], coin: np.random.Generator) -> FloatArray:
    """A third each uniform, beside roundings, and beside thresholds; half where there are none."""
    anywhere = span.low + span.width * coin.random(shape)
    half = coin.choice(_STEPS, shape) / 2
    beside = np.rint(anywhere / half) * half
    kind: IntArray = coin.integers(0, 3 if thresholds else 2, shape)
    if thresholds:
        beside = np.where(kind == 2, coin.choice(np.array(thresholds), shape), beside)
    off = span.width * 10.0 ** -(1 + (_SMALLEST - 1) * coin.random(shape))
    beside = beside + coin.integers(-1, 2, shape) * off
    return span.clip(np.where(kind == 0, anywhere, beside))
