"""The one door between private data and everything that is decided from them.

A release is three things in one call: the price is written down, a release that would overspend is refused, and only
then is noise drawn. A charge carries the span of records that its exact value reads; a record's privacy is the
composition of the charges whose span holds it, the run's is that of the worst record. Spans may depend on earlier
outputs: where they are functions of what was already released, a record's privacy loss is the sum over the charges that
hold it (for one such charge this is the one-touch lemma, see `docs/privacy.md`).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from privacy_core.accounting import account
from privacy_core.events import Event, LaplaceEvent, NonPrivateEvent
from privacy_core.guarantees import GaussianDP, Guarantee, PureDP
from privacy_core.mechanisms import Mechanism
from privacy_core.noise import NoiseSource

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Span(NamedTuple):
    """Records start, ..., stop - 1, one span a released row; each (n_rows,) int64."""

    start: IntArray
    stop: IntArray


class BudgetExceeded(RuntimeError):  # noqa: N818  (a condition that callers handle, named as in the field)
    """A release would have spent more than the budget; nothing was released and no noise was drawn."""


class Ledger(Protocol):
    """Where an algorithm releases; it need not know whether the run is live or scripted."""

    n_reps: int

    def release(self, mechanism: Mechanism, value: FloatArray, *, records: Span, reps: IntArray | None = None) -> FloatArray:
        """A noisy copy of `value`.

        Args:
          mechanism: what adds the noise.
          value: (n_rows, ...), exact, one row a replicate in `reps`.
          records: the records that each row reads; rows must not depend on any other record but through releases.
          reps: (n_rows,) increasing indices of the replicates; None means all.

        Returns:
          Same shape as `value`.
        """
        ...


class Charge(NamedTuple):
    """One entry of the book: an event, and the span of records that paid it in each of the replicates."""

    event: Event
    records: Span
    reps: IntArray | None


class Release(NamedTuple):
    """One release with its exact value; it exists only inside an audit."""

    mechanism: Mechanism
    records: Span
    reps: IntArray | None
    value: FloatArray
    output: FloatArray


def _check_rows(records: Span, reps: IntArray | None, n_reps: int) -> None:
    """Refuses what the book would read as no record, or as one replicate where there are two."""
    if (records.start < 0).any() or (records.stop < records.start).any():
        row = int(np.argmax((records.start < 0) | (records.stop < records.start)))
        raise ValueError(
            f"records must span start to stop, 0 <= start <= stop; row {row} is "
            f"[{int(records.start[row])}, {int(records.stop[row])})"
        )
    if reps is not None and len(reps) and (reps[0] < 0 or reps[-1] >= n_reps or (np.diff(reps) <= 0).any()):
        raise ValueError(f"reps must be increasing indices in [0, {n_reps}), got {reps!r}")


def _mu_squared(event: Event) -> float:
    """What the filter counts for one event: the square of a mu for which it is mu-GDP, the smallest for Gaussian noise.

    For Laplace noise this is the mu that pure DP implies; it is larger than epsilon (at epsilon = 1, 1.23).
    """
    return PureDP(event.epsilon).gdp().mu ** 2 if isinstance(event, LaplaceEvent) else 2 * event.rho


@dataclass
class LiveLedger:
    """Draws noise, keeps the book, and stops at the budget.

    Attributes:
      n_reps: number of replicates.
      noise: the only generator of privacy noise in a run.
      budget: no record may spend more than this mu; None sets no limit. Valid with adaptively chosen noise and
        stopping: the filter sums mu^2, which is a martingale bound (Smith and Thakurta 2022, fully adaptive GDP
        composition).
      transcript: what was released, if `keeps_transcript`.
    """

    n_reps: int
    noise: NoiseSource
    budget: GaussianDP | None = None
    keeps_transcript: bool = False

    def __post_init__(self) -> None:
        if self.n_reps < 1:
            raise ValueError(f"n_reps must be at least 1, got {self.n_reps!r}")
        self.transcript: list[Release] = []
        self._charges: list[Charge] = []
        self._exposes = False
        self._frontier = np.zeros(self.n_reps, dtype=np.int64)
        self._overlaps = False

    def release(self, mechanism: Mechanism, value: FloatArray, *, records: Span, reps: IntArray | None = None) -> FloatArray:
        """Writes the charge down, refuses to overspend, then draws; see `Ledger.release`.

        Raises:
          ValueError: shapes disagree, a span runs backwards, or `reps` are not increasing indices of replicates.
          BudgetExceeded: some record would spend more than the budget.
        """
        n_rows = self.n_reps if reps is None else len(reps)
        if value.shape[:1] != (n_rows,) or len(records.start) != n_rows or len(records.stop) != n_rows:
            raise ValueError(
                f"a release to {n_rows} replicates needs as many rows; got value of shape {value.shape}, "
                f"spans of {len(records.start)} and {len(records.stop)} rows"
            )
        _check_rows(records, reps, self.n_reps)
        self._charge(Charge(mechanism.event, records, reps))
        output = mechanism.draw(self.noise, value)
        if self.keeps_transcript:
            self.transcript.append(Release(mechanism, records, reps, value, output))
        return output

    def _charge(self, charge: Charge) -> None:
        """Adds one entry, or raises BudgetExceeded and leaves the book as it was."""
        if isinstance(charge.event, NonPrivateEvent):
            if self.budget is not None:
                raise BudgetExceeded(f"a release without noise exceeds every budget (here {self.budget})")
            self._exposes = True
            return
        rows = slice(None) if charge.reps is None else charge.reps
        # A sweep needs no look back at spans that start after everything seen so far.
        overlaps = bool((charge.records.start < self._frontier[rows]).any())
        if self.budget is not None:
            self._refuse_overspending(charge, overlaps)
        self._overlaps |= overlaps
        self._frontier[rows] = np.maximum(self._frontier[rows], charge.records.stop)
        self._charges.append(charge)

    def _refuse_overspending(self, charge: Charge, overlaps: bool) -> None:
        assert self.budget is not None
        spent = _mu_squared(charge.event)
        if overlaps:
            spent = max(self._worst_in([*self._charges, charge], within=charge))
        if spent > self.budget.mu**2 * (1 + 1e-9):
            raise BudgetExceeded(
                f"this release would raise a record's privacy loss to {math.sqrt(spent):.6g}-GDP; "
                f"the budget is {self.budget}"
            )

    @staticmethod
    def _worst_in(charges: list[Charge], within: Charge) -> list[float]:
        """The largest composed mu^2 of a record inside `within`, one number a row of it."""
        reps = np.arange(len(within.records.start)) if within.reps is None else within.reps
        worst = []
        for row, rep in enumerate(reps.tolist()):
            low, high = int(within.records.start[row]), int(within.records.stop[row])
            edges: list[tuple[int, float]] = []
            for charge in charges:
                at = rep if charge.reps is None else int(np.searchsorted(charge.reps, rep))
                if charge.reps is not None and (at == len(charge.reps) or charge.reps[at] != rep):
                    continue
                start, stop = max(low, int(charge.records.start[at])), min(high, int(charge.records.stop[at]))
                if start < stop:
                    price = _mu_squared(charge.event)
                    edges += [(start, price), (stop, -price)]
            total = best = 0.0
            for _, step in sorted(edges):
                total += step
                best = max(best, total)
            worst.append(best)
        return worst

    def worst_record(self, before: int | None = None, rep: int | None = None) -> Counter[Event]:
        """The events on the record that paid most, over all replicates.

        Args:
          before: count only what was released within this many rounds (a release happens at the end of its span).
          rep: look at this replicate only.

        Returns:
          event -> count; empty if nothing was charged. Records are compared by their composed rho, which orders
          Gaussian-only and Laplace-only books exactly.
        """
        if self._exposes:
            return Counter({NonPrivateEvent(): 1})
        events = sorted({charge.event for charge in self._charges}, key=lambda event: (-event.rho, repr(event)))
        if not events:
            return Counter()
        if not self._overlaps and before is None and rep is None:
            return Counter({events[0]: 1})
        keys, kinds, signs = self._edges(events, before, rep)
        if not keys.size:
            return Counter()
        order = np.argsort(keys, kind="stable")
        steps = np.zeros((len(keys), len(events)), dtype=np.int32)
        steps[np.arange(len(keys)), kinds[order]] = signs[order]
        counts = np.cumsum(steps, axis=0)
        worst = counts[int(np.argmax(counts @ np.array([event.rho for event in events])))]
        return Counter({event: int(count) for event, count in zip(events, worst, strict=True) if count})

    def _edges(self, events: list[Event], before: int | None, rep: int | None) -> tuple[IntArray, IntArray, IntArray]:
        """Both ends of every charged span: a key that sorts by (replicate, record, closing first), event index, sign."""
        kind_of = {event: index for index, event in enumerate(events)}
        reach = 2 * (int(self._frontier.max()) + 1)
        keys, kinds, signs = [], [], []
        for charge in self._charges:
            reps = np.arange(self.n_reps) if charge.reps is None else charge.reps
            chosen = charge.records.start < charge.records.stop
            if before is not None:
                chosen &= charge.records.stop <= before
            if rep is not None:
                chosen &= reps == rep
            kind = np.full(int(chosen.sum()), kind_of[charge.event])
            for edge, sign in ((charge.records.start, 1), (charge.records.stop, -1)):
                keys.append(reps[chosen] * reach + 2 * edge[chosen] + (sign > 0))
                kinds.append(kind)
                signs.append(np.full(len(kind), sign))
        return np.concatenate(keys), np.concatenate(kinds), np.concatenate(signs)

    def guarantee(self) -> Guarantee | None:
        """What the accountant derives for the worst record; None if nothing was released."""
        worst = account(self.worst_record())
        if worst is not None and not isinstance(worst, Guarantee):
            raise TypeError(f"a {worst} has no closed form; ask `account(ledger.worst_record())` for its epsilon")
        return worst


class ScriptedLedger:
    """Answers every release with the output that a recorded run got, and keeps the exact values.

    Run an algorithm on data set D with a `LiveLedger` that keeps its transcript, then on D' with this: both act
    alike, as in a proof of adaptive composition, and the exact values of each release stand side by side.

    A replicate *diverges* when it asks for a release that the recorded run did not make (another mechanism, span, or
    number of releases). An honest algorithm never does: its schedule is a function of what was released. From there
    on it is answered with its exact value and its score is of no use; `diverged` tells which, and at which release.

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
            self.values = [np.full_like(release.value, np.nan) for release in transcript]

    def release(self, mechanism: Mechanism, value: FloatArray, *, records: Span, reps: IntArray | None = None) -> FloatArray:
        """The recorded outputs; see `Ledger.release`."""
        call, self._call = self._call, self._call + 1
        if self._index is None and call < len(self._transcript):
            recorded = self._transcript[call]
            if (
                recorded.mechanism == mechanism
                and _same(recorded.reps, reps)
                and np.array_equal(recorded.records.start, records.start)
                and np.array_equal(recorded.records.stop, records.stop)
            ):
                rows = slice(None) if reps is None else reps
                self._answered[rows] += 1
                self._compare(call, slice(None), rows, mechanism, value)
                return recorded.output.copy()
        return self._release_row_by_row(mechanism, value, records, reps)

    def _release_row_by_row(
        self, mechanism: Mechanism, value: FloatArray, records: Span, reps: IntArray | None
    ) -> FloatArray:
        """Matches each replicate's next release on its own: the schedules are no longer known to be equal."""
        if self._index is None:
            self._index = _ByReplicate(self.n_reps, self._transcript)
        ids = np.arange(self.n_reps) if reps is None else reps
        calls, rows = self._index.locate(ids, self._answered[ids])
        self._answered[ids] += 1
        output = value.copy()
        for call in np.unique(calls):
            mine = np.flatnonzero(calls == call)
            if call >= 0:
                recorded = self._transcript[call]
                there = rows[mine]
                agree = (recorded.records.start[there] == records.start[mine]) & (
                    recorded.records.stop[there] == records.stop[mine]
                )
                agree &= recorded.mechanism == mechanism
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
