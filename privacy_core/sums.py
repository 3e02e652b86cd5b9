"""Sums over records that are released as they grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_core.ledger import Ledger, Span
from privacy_core.mechanisms import Mechanism

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class OpenPhase(NamedTuple):
    """The exact sum of the phase under way: sensitive."""

    total: FloatArray
    """(n_reps, ...)"""
    start: IntArray
    """(n_reps,) first record of the phase."""
    stop: IntArray
    """(n_reps,) one past its last record so far."""


@dataclass(frozen=True, slots=True)
class PhaseSum:
    """Sums over disjoint, consecutive phases, each released once, when its phase ends.

    A record lies in one phase, so one release touches it: where phases end as a function of earlier releases, the whole
    sequence costs what one release costs (one-touch lemma; Azize and Basu 2022 call this forgetting).
    """

    mechanism: Mechanism

    def init(self, n_reps: int, shape: tuple[int, ...] = ()) -> OpenPhase:
        """An empty phase that starts at record 0, for a statistic of the given shape."""
        zeros = np.zeros(n_reps, dtype=np.int64)
        return OpenPhase(np.zeros((n_reps, *shape)), zeros, zeros.copy())

    def add(self, phase: OpenPhase, value: FloatArray, n_records: IntArray) -> OpenPhase:
        """Adds the next `n_records` records, whose sum is `value`; takes over the memory of `phase`."""
        np.add(phase.total, value, out=phase.total)
        np.add(phase.stop, n_records, out=phase.stop)
        return phase

    def close(
        self, phase: OpenPhase, ledger: Ledger, reps: IntArray | None = None
    ) -> tuple[OpenPhase, FloatArray, IntArray]:
        """Releases the phase's sum in the given replicates and opens the next phase there.

        Args:
          phase: the phase under way.
          ledger: where the sum is released.
          reps: (n_rows,) increasing indices of the replicates; None means all.

        Returns:
          the new state (it takes over the memory of `phase`), (n_rows, ...) noisy sums, and (n_rows,) how many records
          each holds.
        """
        if reps is None:
            total, span = phase.total.copy(), Span(phase.start.copy(), phase.stop.copy())
        else:
            total, span = phase.total[reps], Span(phase.start[reps], phase.stop[reps])
        noisy = ledger.release(self.mechanism, total, records=span, reps=reps)
        rows = slice(None) if reps is None else reps
        phase.total[rows] = 0.0
        phase.start[rows] = span.stop
        return phase, noisy, span.stop - span.start
