"""Sums over records that are released as they grow.

All have the same three verbs: `init` an empty sum, `add` what the next records contribute, `close` to release. Between two
closings records gather in an open phase; what a closing answers depends on the sum:

  PhaseSum       the phase's own sum, forgotten afterwards
  PhaseTotal     the running total of a phase sum's answers
  LocalSum       the running sum of messages that each record noised itself
  TreeSum        the running sum, from a binary tree                     (`bandana.privacy_core.tree`)
  FactorizedSum  the running sum, from a matrix factorization            (`bandana.privacy_core.factorized`)
  DoublingSum    the running sum over an unknown horizon, by restarts    (`bandana.privacy_core.doubling`)

The state is sensitive; what `close` answers is released. States are handed over: `add` and `close` reuse their memory. If
the budget refuses a release, the state stays as it was and the phase stays open.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from bandana.privacy_core.arrays import FloatArray, IntArray
from bandana.privacy_core.checks import at_least
from bandana.privacy_core.ledger import Ledger, Span
from bandana.privacy_core.noise.mechanisms import Mechanism

M = TypeVar("M")


class OpenPhase(NamedTuple):
    """The exact sum of the phase under way: sensitive."""

    total: FloatArray
    """(n_reps, ...)"""
    start: IntArray
    """(n_reps,) first record of the phase."""
    stop: IntArray
    """(n_reps,) one past its last record so far."""


class PrivateSum(Protocol):
    """A sum over records, released as it grows."""

    def init(self, n_reps: int, shape: tuple[int, ...] = ()) -> Any:
        """An empty sum, for a statistic of the given shape."""

    def add(self, state: Any, value: FloatArray, n_records: IntArray) -> Any:
        """Adds the next `n_records` (n_reps,) records, whose sum is `value` (n_reps, ...)."""

    def close(self, state: Any, ledger: Ledger, reps: IntArray | None = None) -> tuple[Any, FloatArray, IntArray]:
        """Ends the open phase in the given replicates.

        Args:
          state: the sum so far; its memory is taken over.
          ledger: where the sum is released.
          reps: (n_rows,) increasing indices of the replicates; None means all.

        Returns:
          the new state, (n_rows, ...) noisy sums, and (n_rows,) how many records the phase holds.
        """

    def noise_deviation(self, step: int) -> float:
        """Standard deviation of the noise that the step-th closing answers with, in each coordinate (step >= 1)."""


def empty_phase(n_reps: int, shape: tuple[int, ...]) -> OpenPhase:
    """A phase that starts at record 0, for a statistic of the given shape."""
    zeros = np.zeros(at_least("n_reps", n_reps, 1), dtype=np.int64)
    return OpenPhase(np.zeros((n_reps, *shape)), zeros, zeros.copy())


def extend(phase: OpenPhase, value: FloatArray, n_records: IntArray) -> OpenPhase:
    """Adds records to a phase, in its own memory.

    Raises:
      ValueError: the value's shape is not that of the sum.
    """
    if np.shape(value) != phase.total.shape:
        raise ValueError(f"value must have the sum's shape {phase.total.shape}, got {np.shape(value)}")
    np.add(phase.stop, n_records, out=phase.stop)
    np.add(phase.total, value, out=phase.total)
    return phase


def contents(phase: OpenPhase, reps: IntArray | None) -> tuple[FloatArray, Span]:
    """The phase's exact sum, which may be its own memory, and a copy of its span, in the given replicates."""
    if reps is None:
        return phase.total, Span(phase.start.copy(), phase.stop.copy())
    return phase.total[reps], Span(phase.start[reps], phase.stop[reps])


def reopen(phase: OpenPhase, reps: IntArray | None) -> None:
    """Starts the next phase where the last one ended."""
    if reps is None:
        phase.total.fill(0.0)
        np.copyto(phase.start, phase.stop)
    else:
        phase.total[reps] = 0.0
        phase.start[reps] = phase.stop[reps]


def count(n_steps: IntArray, reps: IntArray | None) -> None:
    """Counts one step more in the given replicates."""
    if reps is None:
        np.add(n_steps, 1, out=n_steps)
    else:
        n_steps[reps] += 1


@dataclass(frozen=True, slots=True)
class PhaseSum:
    """Sums over disjoint, consecutive phases, each released once, when its phase ends.

    A record lies in one phase, so one release touches it: where phases end as a function of earlier releases, the whole
    sequence costs what one release costs (one-touch lemma; Azize and Basu 2022 call this forgetting).
    """

    mechanism: Mechanism

    def init(self, n_reps: int, shape: tuple[int, ...] = ()) -> OpenPhase:
        """An empty phase that starts at record 0, for a statistic of the given shape."""
        return empty_phase(n_reps, shape)

    def add(self, phase: OpenPhase, value: FloatArray, n_records: IntArray) -> OpenPhase:
        """Adds the next `n_records` records, whose sum is `value`; takes over the memory of `phase`."""
        return extend(phase, value, n_records)

    def close(
        self, phase: OpenPhase, ledger: Ledger, reps: IntArray | None = None
    ) -> tuple[OpenPhase, FloatArray, IntArray]:
        """Releases the phase's sum in the given replicates and opens the next phase there; see `PrivateSum.close`."""
        total, span = contents(phase, reps)
        noisy = ledger.release(self.mechanism, total.copy() if reps is None else total, records=span, reps=reps)
        reopen(phase, reps)
        return phase, noisy, span.stop - span.start

    def noise_deviation(self, step: int) -> float:
        """Deviation of one release's noise, the same at every step."""
        at_least("step", step, 1)
        return self.mechanism.deviation


class RunningState(NamedTuple, Generic[M]):
    """A running sum's open phase, and what it remembers of the closed ones: sensitive."""

    phase: OpenPhase
    memory: M


class RunningSum(ABC, Generic[M]):
    """Common part of sums that answer the noisy total of all closed phases; each has a `mechanism`."""

    mechanism: Any

    def init(self, n_reps: int, shape: tuple[int, ...] = ()) -> RunningState[M]:
        """An empty sum that starts at record 0, for a statistic of the given shape."""
        return RunningState(empty_phase(n_reps, shape), self.remember_nothing(n_reps, shape))

    def add(self, state: RunningState[M], value: FloatArray, n_records: IntArray) -> RunningState[M]:
        """Adds the next `n_records` records, whose sum is `value`; takes over the memory of `state`."""
        extend(state.phase, value, n_records)
        return state

    def close(
        self, state: RunningState[M], ledger: Ledger, reps: IntArray | None = None
    ) -> tuple[RunningState[M], FloatArray, IntArray]:
        """Takes the open phase in as one step, and answers the noisy sum of all steps; see `PrivateSum.close`.

        Raises:
          ValueError: there are more steps than the sum was built for.
        """
        total, span = contents(state.phase, reps)
        noisy = self.push(state.memory, total, span, ledger, reps)
        reopen(state.phase, reps)
        return state, noisy, span.stop - span.start

    @abstractmethod
    def remember_nothing(self, n_reps: int, shape: tuple[int, ...]) -> M:
        """Memory before the first step."""

    @abstractmethod
    def push(self, memory: M, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        """Takes in one step, in the memory given, and answers the noisy running sum.

        Args:
          memory: of all replicates; it changes only after the release was made.
          value: (n_rows, ...), the step's exact sum; it is the phase's own memory, not to be kept.
          records: the step's records.
          ledger: where it is released.
          reps: (n_rows,) the replicates; None means all.

        Returns:
          (n_rows, ...)
        """

    @abstractmethod
    def noise_variance(self, step: int) -> float:
        """Variance of the noise after `step` steps, in units of one release's."""

    def noise_deviation(self, step: int) -> float:
        """Standard deviation of the noise after `step` steps, in each coordinate (off the diagonal of a matrix). Exact."""
        return math.sqrt(self.noise_variance(step)) * float(self.mechanism.deviation)


class Counted(NamedTuple):
    """Number of steps taken."""

    n_steps: IntArray
    """(n_reps,)"""
    total: FloatArray
    """(n_reps, ...) noisy running sum."""


class _AddedReleases(RunningSum[Counted]):
    """The running total of what each step released: post-processing, of which the noise of all steps adds up."""

    def remember_nothing(self, n_reps: int, shape: tuple[int, ...]) -> Counted:
        """The memory before the first step."""
        return Counted(np.zeros(n_reps, dtype=np.int64), np.zeros((n_reps, *shape)))

    def push(self, memory: Counted, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        """Releases the step's own sum and answers the sum of all that was released."""
        noisy = ledger.release(self.mechanism, value.copy(), records=records, reps=reps)
        rows = slice(None) if reps is None else reps
        count(memory.n_steps, reps)
        memory.total[rows] += noisy
        return np.asarray(memory.total[rows].copy())

    def noise_variance(self, step: int) -> float:
        """Variance of the noise after `step` steps, in units of one release's: each adds its own."""
        return float(at_least("step", step, 1))


@dataclass(frozen=True)
class PhaseTotal(_AddedReleases):
    """The running total of a phase sum's answers, at the cost of one release a record.

    Its noise accumulates, sqrt(t) after t phases. Source: Azize and Basu, AdaR-OFUL, whose noise terms Y_1, ..., Y_l add up.

    Attributes:
      phases: where each phase's sum is released, once.
    """

    phases: PhaseSum

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of the phases."""
        return self.phases.mechanism


@dataclass(frozen=True)
class LocalSum(_AddedReleases):
    """The running sum of messages, each noised by its own record before it is sent: local DP.

    One release touches a record, its own message, so the sum costs what one message costs, for any number of them.

    Attributes:
      mechanism: what a user adds to the own message.
    """

    mechanism: Mechanism

    def push(self, memory: Counted, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        """Releases the record's own noisy message and answers the sum of all messages.

        Raises:
          ValueError: a step holds more than one record, whose messages would be one.
        """
        n_records = records.stop - records.start
        if (n_records > 1).any():
            raise ValueError(
                f"under local DP each record sends its own message; this step holds {int(n_records.max())} records: "
                "close after every record"
            )
        return super().push(memory, value, records, ledger, reps)
