"""Actions that users of contextual bandits bring, and the optimistic choice among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.algorithms.regression import ridge_numba
from bandana.algorithms.regression.optimism_numba import optimistic_actions
from bandana.algorithms.ties import TIE
from bandana.privacy_core import Ball, Interval
from bandana.privacy_core.checks import at_least

UNIT_BALL = Ball(1.0)
_LONGEST = 1 + 1e-12
"""Largest squared norm of vectors that stay as they are: it exceeds 1 by rounding, which is less than `UP` adds to noise."""


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    sum: Any
    """Sum of y x since the last release, or of (x x^T, y x): the state of the algorithm's sum."""


def check_shape(n_actions: int, dimension: int, horizon: int) -> None:
    """Refuses a problem with fewer than two actions, or without features or rounds."""
    at_least("n_actions", n_actions, 2)
    at_least("context_dimension", dimension, 1)
    at_least("horizon", horizon, 1)


def or_else(default: float, value: float | None) -> float:
    """The value, or the default where none is given."""
    return default if value is None else value


def optimistic(
    theta: FloatArray, inverse: FloatArray, width: FloatArray, context: FloatArray | None, preference: IntArray | None = None
) -> IntArray:
    """The action of largest upper bound in each replicate, (n_reps,); of those equal up to `TIE`, the first preferred."""
    if context is None:
        raise ValueError("this algorithm decides from contexts, and the stream offers none")
    chosen = np.empty(len(theta), dtype=np.int64)
    order = np.arange(context.shape[1])[None] if preference is None else preference
    optimistic_actions(theta, inverse, width, context, TIE, order, chosen)
    return chosen


def within_ball(vectors: FloatArray) -> FloatArray:
    """Vectors (n, m, d) of norm at most 1, up to rounding, whatever users bring; the same array where none is longer.

    A longer vector is shortened to norm 1. One with an entry that is no finite number counts as 0: an error that depends on
    one user's vector would be seen by others.
    """
    shared = vectors[:1] if vectors.strides[0] == 0 else vectors
    if ridge_numba.are_within(shared, _LONGEST):
        return vectors
    shortened = np.empty(shared.shape)
    ridge_numba.shorten(shared, _LONGEST, shortened)
    return shortened if shared is vectors else np.broadcast_to(shortened, vectors.shape)


def features_of(record: Record) -> FloatArray:
    """(n_reps, d) of the chosen actions, see `within_ball`; zero where a replicate is done."""
    assert record.contexts is not None
    x = np.empty((len(record.user), record.contexts.shape[2]))
    ridge_numba.take(record.contexts, record.actions[:, 0], x)
    x[record.n_records == 0] = 0.0
    return within_ball(x[:, None])[:, 0]


def centered(record: Record, reward_range: Interval) -> FloatArray:
    """(n_reps,) rewards measured from the middle of their range."""
    middle = (reward_range.low + reward_range.high) / 2
    return np.asarray(record.rewards[:, 0] - middle * record.n_records)
