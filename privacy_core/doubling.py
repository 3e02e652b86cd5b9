"""Running sums over an unknown horizon: a finite sum is restarted whenever it is full, each time longer.

The segments' records are disjoint, so the whole costs what one segment costs. The answer is the sum of the last answers
of the finished segments, which were released anyway, and of the current one.

Source: Chan, Shi, Song (2011), section 4; their hybrid mechanism needlessly releases finished segments once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bandana.privacy_core.arrays import FloatArray, IntArray
from bandana.privacy_core.checks import at_least
from bandana.privacy_core.ledger import Ledger, Span
from bandana.privacy_core.noise.mechanisms import Mechanism
from bandana.privacy_core.sums import RunningState, RunningSum, count


class Segments(NamedTuple):
    """One memory a segment that has begun in some replicate."""

    n_steps: IntArray
    """(n_reps,) steps taken."""
    memories: list[Any]
    """Memories of the segments' sums, in order; None once every replicate has left the segment."""
    finished: FloatArray
    """(n_reps, ...) noisy total of the finished segments."""


@dataclass(frozen=True)
class DoublingSum(RunningSum[Segments]):
    """The running sum of any number of steps: segments of first, growth first, growth^2 first, ... steps.

    Attributes:
      build: n_steps -> the sum of one segment, calibrated for that many steps. A tree's node noise has to grow with its
        number of nodes; a factorized sum takes the same noise for any.
      first: steps of the first segment.
      growth: how many times as long the next segment is. The variance of the answer is that of the current segment, which is
        prepared for up to `growth` times as many steps as there will be, and of the finished ones: for factorized sums of
        four buffers and up to 30,000 steps at most 3.3 times that of a known horizon for 32, and 6.6 times for 2.
    """

    build: Callable[[int], RunningSum[Any]]
    first: int = 32
    growth: int = 32

    def __post_init__(self) -> None:
        at_least("first", self.first, 1)
        at_least("growth", self.growth, 2)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of the first segment."""
        first: Mechanism = self._segment(0).mechanism
        return first

    def _segment(self, index: int) -> RunningSum[Any]:
        return _built(self.build, self._length(index))

    def _segment_of(self, step: IntArray) -> IntArray:
        """(n_rows,) the segment in which each step (from 0) falls."""
        last, starts = int(step.max(initial=0)), [0]
        while starts[-1] <= last:
            starts.append(self._first_step(len(starts)))
        return np.searchsorted(starts, step, side="right") - 1

    def _first_step(self, segment: int) -> int:
        return self.first * int(self.growth**segment - 1) // (self.growth - 1)

    def _length(self, segment: int) -> int:
        return self.first * int(self.growth**segment)

    def remember_nothing(self, n_reps: int, shape: tuple[int, ...]) -> Segments:
        """The memory before the first step."""
        return Segments(np.zeros(n_reps, dtype=np.int64), [], np.zeros((n_reps, *shape)))

    def close(
        self, state: RunningState[Segments], ledger: Ledger, reps: IntArray | None = None
    ) -> tuple[RunningState[Segments], FloatArray, IntArray]:
        """Closes replicates segment by segment; where the budget refuses one, those of earlier segments stay closed."""
        owners = np.arange(len(state.memory.n_steps)) if reps is None else reps
        segment = self._segment_of(state.memory.n_steps[owners])
        indices = np.unique(segment)
        if len(indices) < 2:
            return super().close(state, ledger, reps)
        noisy, n_records = np.empty((len(owners), *state.phase.total.shape[1:])), np.empty(len(owners), dtype=np.int64)
        for index in indices.tolist():
            rows = np.flatnonzero(segment == index)
            state, noisy[rows], n_records[rows] = super().close(state, ledger, owners[rows])
        return state, noisy, n_records

    def push(self, memory: Segments, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        """Takes in one step and answers the noisy running sum; all rows are in one segment."""
        n_reps, shape = memory.finished.shape[0], memory.finished.shape[1:]
        owners = np.arange(n_reps) if reps is None else reps
        if not len(owners):
            return np.empty_like(value)
        index = int(self._segment_of(memory.n_steps[owners[:1]])[0])
        while len(memory.memories) <= index:
            memory.memories.append(self._segment(len(memory.memories)).remember_nothing(n_reps, shape))
        own = self._segment(index).push(memory.memories[index], value, records, ledger, reps)
        answer = memory.finished[owners] + own
        after = self._first_step(index + 1)
        ends = memory.n_steps[owners] + 1 == after
        memory.finished[owners[ends]] += own[ends]
        count(memory.n_steps, reps)
        if (memory.n_steps >= after).all():
            memory.memories[index] = None
        return np.asarray(answer)

    def noise_variance(self, step: int) -> float:
        """That of the finished segments' last answers and of the current one's, in units of the first segment's release."""
        index = int(self._segment_of(np.array([at_least("step", step, 1) - 1]))[0])
        unit = self.mechanism.deviation**2
        finished = (self._segment(i).noise_deviation(self._length(i)) ** 2 for i in range(index))
        current = self._segment(index).noise_deviation(step - self._first_step(index)) ** 2
        return (sum(finished) + current) / unit if unit else 0.0


@lru_cache(maxsize=256)
def _built(build: Callable[[int], RunningSum[Any]], n_steps: int) -> RunningSum[Any]:
    return build(n_steps)
