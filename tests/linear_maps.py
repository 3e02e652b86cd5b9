"""A sum as the linear map that it is: unit impulses of data, or of noise, and what comes out."""

from __future__ import annotations

import numpy as np
from doubles import ConstantNoise, Shape
from numpy.typing import NDArray

from bandana.privacy_core import ContinuousNoise, LiveLedger

FloatArray = NDArray[np.float64]


def agree(found, expected, rel=0.0, abs=0.0):  # type: ignore[no-untyped-def]
    """Whether arrays agree to max(rel |expected|, abs) in every entry; `pytest.approx` takes a second for 1e5 of them."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape or expected.ndim == 0
    return bool((np.abs(found - expected) <= np.maximum(rel * np.abs(expected), abs)).all())


class _Impulses(ContinuousNoise):
    """Replicate r draws 1 at its r-th draw, in every coordinate, and 0 at all others."""

    name = "impulses"

    def __init__(self, n_reps: int) -> None:
        self.n_draws = np.zeros(n_reps, dtype=np.int64)
        self.rows = np.arange(n_reps)

    def normal(self, shape: Shape) -> FloatArray:
        assert isinstance(shape, tuple)
        now = (self.n_draws[self.rows] == self.rows).astype(float)
        self.n_draws[self.rows] += 1
        return np.broadcast_to(now.reshape(-1, *[1] * (len(shape) - 1)), shape).copy()

    laplace = normal

    def discrete_gaussian(self, scale: float, shape: Shape) -> NDArray[np.int64]:
        raise AssertionError("rounding to integers is no linear map: its sums are tested elsewhere")


class ImpulseLedger(LiveLedger):
    """Replicate r meets noise at its r-th release only: one standard draw of 1 in each coordinate."""

    def __init__(self, n_reps: int) -> None:
        self._impulses = _Impulses(n_reps)
        super().__init__(n_reps, self._impulses)

    def release(self, mechanism, value, *, records, reps=None, carried=None):  # type: ignore[no-untyped-def]
        self._impulses.rows = np.arange(self.n_reps) if reps is None else reps
        return super().release(mechanism, value, records=records, reps=reps, carried=carried)


def answers_of(sums, ledger, data, is_staggered=False):  # type: ignore[no-untyped-def]
    """Closes after every record.

    Args:
      sums: the sum.
      ledger: where it is released.
      data: (n_steps, n_reps, ...), one record a step.
      is_staggered: whether replicates with an odd number run one step ahead of the others.

    Returns:
      (n_steps, n_reps, ...) what the steps answered.
    """
    n_steps, n_reps = data.shape[:2]
    state = sums.init(n_reps, data.shape[2:])
    if not is_staggered:
        answers = np.empty_like(data)
        for t in range(n_steps):
            state = sums.add(state, data[t], np.ones(n_reps, dtype=np.int64))
            state, answers[t], _ = sums.close(state, ledger)
        return answers
    answers = np.full_like(data, np.nan)
    ahead = np.arange(n_reps) % 2
    for turn in range(n_steps + 1):
        step = turn - 1 + ahead
        goes = np.flatnonzero((step >= 0) & (step < n_steps))
        value, n_records = np.zeros_like(data[0]), np.zeros(n_reps, dtype=np.int64)
        value[goes], n_records[goes] = data[step[goes], goes], 1
        state = sums.add(state, value, n_records)
        state, answers[step[goes], goes], _ = sums.close(state, ledger, None if len(goes) == n_reps else goes)
    return answers


def noise_map(sums, n_steps, is_staggered=False):  # type: ignore[no-untyped-def]
    """(n_steps, n_draws): what the j-th standard draw of noise adds to the t-th answer, for a number as statistic."""
    counted = LiveLedger(1, ConstantNoise(0.0))
    answers_of(sums, counted, np.zeros((n_steps, 1)))
    n_draws = counted.noise.calls
    return answers_of(sums, ImpulseLedger(n_draws), np.zeros((n_steps, n_draws)), is_staggered)


def encoder_of(sums, n_steps):  # type: ignore[no-untyped-def]
    """(n_releases, n_steps): what a unit in the s-th step adds to the exact value of each release."""
    ledger = LiveLedger(n_steps, ConstantNoise(0.0), keeps_transcript=True)
    answers_of(sums, ledger, np.eye(n_steps))
    return np.array([release.value.reshape(n_steps) for release in ledger.transcript])
