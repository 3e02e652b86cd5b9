"""A ledger that replays recorded releases, and notes where a run departs from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bandana.privacy_core.arrays import FloatArray, IntArray
from bandana.privacy_core.ledger import Carried, Release, Span
from bandana.privacy_core.noise.mechanisms import Mechanism, without_noise


class ScriptedLedger:
    """Answers every release with the output that a recorded run got, and keeps the exact values.

    Run an algorithm on data set D with a `LiveLedger` that keeps its transcript, then on D' with this: both act
    alike, as in a proof of adaptive composition, and the exact values of each release stand side by side.

    A replicate *diverges* when it asks for a release that the recorded run did not make (another mechanism, span, or
    number of releases). An honest algorithm never does: its schedule is a function of what was released. From there
    on it is answered without noise, and its score is of no use; `diverged` tells which, and at which release.

    Attributes:
      diverged: (n_reps,) index of the first release that does not match, or -1.
      log_ratio: (n_reps,) sum over releases of log p(output | D') - log p(output | D), in nats.
      values: the exact values on D', beside `transcript`; NaN where a release was not reached.
    """

    def __init__(self, n_reps: int, transcript: list[Release], keeps_values: bool = False) -> None:
        self.n_reps = n_reps
        self.diverged = np.full(n_reps, -1, dtype=np.int64)
        self.log_ratio = np.zeros(n_reps)
        self.values: list[FloatArray] = []
        self._transcript = transcript
        self._keeps_values = keeps_values
        self._call = 0
        self._index: _ByReplicate | None = None
        self._answered = np.zeros(n_reps, dtype=np.int64)
        if keeps_values:
            self.values = [np.full(release.value.shape, np.nan) for release in transcript]

    def release(
        self, mechanism: Mechanism, value: FloatArray, *, records: Span, reps: IntArray | None = None,
        carried: Carried | None = None,
    ) -> FloatArray:  # fmt: skip
        """The recorded outputs; see `Ledger.release`."""
        call, self._call = self._call, self._call + 1
        if self._index is None and call < len(self._transcript):
            recorded = self._transcript[call]
            if (
                recorded.mechanism == mechanism
                and _same(recorded.reps, reps)
                and np.array_equal(recorded.records.start, records.start)
                and np.array_equal(recorded.records.stop, records.stop)
                and _same_carried(recorded.carried, carried, slice(None), slice(None))
            ):
                rows = slice(None) if reps is None else reps
                self._answered[rows] += 1
                self._compare(call, slice(None), rows, mechanism, value)
                return recorded.output.copy()
        return self._release_row_by_row(mechanism, value, records, reps, carried)

    def _release_row_by_row(
        self, mechanism: Mechanism, value: FloatArray, records: Span, reps: IntArray | None, carried: Carried | None
    ) -> FloatArray:
        """Matches each replicate's next release on its own: the schedules are no longer known to be equal."""
        if self._index is None:
            self._index = _ByReplicate(self.n_reps, self._transcript)
        ids = np.arange(self.n_reps) if reps is None else reps
        calls, rows = self._index.locate(ids, self._answered[ids])
        self._answered[ids] += 1
        output = without_noise(mechanism, value)
        for call in np.unique(calls):
            mine = np.flatnonzero(calls == call)
            if call >= 0:
                recorded = self._transcript[call]
                there = rows[mine]
                agree = (recorded.records.start[there] == records.start[mine]) & (
                    recorded.records.stop[there] == records.stop[mine]
                )
                agree &= recorded.mechanism == mechanism
                agree &= _same_carried(recorded.carried, carried, there, mine)
                agree &= self.diverged[ids[mine]] < 0
                kept, there = mine[agree], there[agree]
                if kept.size:
                    output[kept] = recorded.output[there]
                    self._compare(int(call), there, ids[kept], mechanism, value[kept])
                mine = mine[~agree]
            fresh = mine[self.diverged[ids[mine]] < 0]
            self.diverged[ids[fresh]] = self._answered[ids[fresh]] - 1
        return output

    def _compare(
        self, call: int, there: slice | IntArray, reps: slice | IntArray, mechanism: Mechanism, value: FloatArray
    ) -> None:
        recorded = self._transcript[call]
        self.log_ratio[reps] += mechanism.log_density_ratio(recorded.output[there], recorded.value[there], value)
        if self._keeps_values:
            self.values[call][there] = value

    def finish(self) -> None:
        """Marks the replicates that made fewer releases than the recorded run as diverged."""
        if self._index is None and self._call == len(self._transcript):
            return
        if self._index is None:
            self._index = _ByReplicate(self.n_reps, self._transcript)
        short = (self._answered < self._index.lengths) & (self.diverged < 0)
        self.diverged[short] = self._answered[short]


def _same(first: IntArray | None, second: IntArray | None) -> bool:
    return first is second or (first is not None and second is not None and np.array_equal(first, second))


def _same_carried(
    first: Carried | None, second: Carried | None, there: slice | IntArray, mine: slice | IntArray
) -> NDArray[np.bool_] | bool:
    """Says whether the chosen rows carry the same records: one answer for all rows, or one a row where rows are given."""
    if first is None or second is None:
        return first is second
    if isinstance(there, slice):
        return first.label == second.label and np.array_equal(first.start, second.start)
    return np.asarray((first.start[there] == second.start[mine]) & (first.label == second.label))


class _ByReplicate:
    """Where each replicate's i-th release stands in a transcript."""

    def __init__(self, n_reps: int, transcript: list[Release]) -> None:
        self.lengths = np.zeros(n_reps, dtype=np.int64)
        self._places = np.full((n_reps, max(len(transcript), 1), 2), -1, dtype=np.int64)
        for call, recorded in enumerate(transcript):
            reps = np.arange(n_reps) if recorded.reps is None else recorded.reps
            self._places[reps, self.lengths[reps]] = np.stack([np.full(len(reps), call), np.arange(len(reps))], axis=1)
            self.lengths[reps] += 1

    def locate(self, reps: IntArray, turn: IntArray) -> tuple[IntArray, IntArray]:
        """The call and the row of the `turn`-th release of each replicate; -1 where there is none."""
        reached = turn < self._places.shape[1]
        places = self._places[reps, np.minimum(turn, self._places.shape[1] - 1)].copy()
        places[~reached] = -1
        return places[:, 0], places[:, 1]
