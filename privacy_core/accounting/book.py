"""The ledger's book: which event touched which records, kept small and searched fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Sequence as Several
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandana.privacy_core.accounting.events import (
    BoundedEvent,
    BoundedRangeEvent,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    ResponseEvent,
)
from bandana.privacy_core.accounting.factorization import Factorization
from bandana.privacy_core.arrays import IntArray

_EVERY = -1
_ROW = np.dtype(
    [
        ("kind", np.int32), ("rep", np.int32), ("start", np.int64), ("stop", np.int64),
        ("sequence", np.int32), ("first", np.int64),
    ]
)  # fmt: skip
_MOST_LAPLACE, _MOST_SUMS = 64, 2 * 10**7
_MANY = 64


class Sequence(NamedTuple):
    """Sequence of carried rows that a charge belongs to: its label, and what encodes its rows, if it is known."""

    label: str
    columns: Factorization | None


class Touched(NamedTuple):
    """One charge as it stands in the book: the event, and the records that paid it."""

    event: Event
    rep: int
    """-1: the same in every replicate."""
    start: int
    stop: int
    sequence: Sequence | None = None
    """None: a release by itself."""
    first: int = -1
    """First record of the sequence; -1 where there is none."""


def shared_span(start: IntArray, stop: IntArray, reps: IntArray | None) -> tuple[int, int] | None:
    """The one span of all replicates, or None where they differ, or not all are meant."""
    if reps is not None or not len(start):
        return None
    if len(start) > 1 and not ((start == start[0]).all() and (stop == stop[0]).all()):
        return None
    return int(start[0]), int(stop[0])


class Book:
    """Charges as rows of 36 bytes: one for all replicates where they agree, else one a replicate.

    Attributes:
      n_reps: number of replicates.
    """

    def __init__(self, n_reps: int) -> None:
        self.n_reps = n_reps
        self._kinds: dict[Event, int] = {}
        self._sequences: dict[Sequence, int] = {}
        self._rows = np.empty(64, dtype=_ROW)
        self._n_rows = 0
        self._waiting: list[tuple[int, IntArray, IntArray, IntArray | None, int, IntArray | int]] = []
        self._of_one: tuple[int, int, NDArray[np.void]] | None = None

    def add(
        self,
        event: Event,
        start: IntArray | int,
        stop: IntArray | int,
        reps: IntArray | None,
        sequence: Sequence | None = None,
        first: IntArray | int = -1,
    ) -> None:
        """Writes down that the records start, ..., stop - 1 paid for the event.

        Args:
          event: what they paid.
          start: (n_rows,) first record, one a replicate; one number where all replicates agree.
          stop: (n_rows,), or one number, one past the last record; equal to `start` where there is none.
          reps: (n_rows,) the replicates; None means all.
          sequence: the sequence of carried rows that they entered, None for a release by itself.
          first: (n_rows,), or one number, first record of the sequence; -1 where there is none.
        """
        belongs = -1 if sequence is None else self._sequences.setdefault(sequence, len(self._sequences))
        kind = self._kinds.setdefault(event, len(self._kinds))
        if isinstance(start, int):
            self._reserve(1)
            self._rows[self._n_rows] = (kind, _EVERY, start, stop, belongs, first if isinstance(first, int) else first[0])
            self._n_rows += 1
            return
        if len(start) >= _MANY:
            # Kept as it came, and written into rows when somebody asks: copying grown rows again and again costs more.
            kept = first if isinstance(first, int) else first.copy()
            self._waiting.append((kind, start.copy(), np.array(stop), None if reps is None else reps.copy(), belongs, kept))
            return
        self._reserve(len(start))
        self._write(self._n_rows, kind, start, stop, reps, belongs, first)
        self._n_rows += len(start)

    def _write(
        self,
        place: int,
        kind: int,
        start: IntArray,
        stop: IntArray | int,
        reps: IntArray | None,
        sequence: int,
        first: IntArray | int,
    ) -> None:
        new = self._rows[place : place + len(start)]
        new["kind"], new["start"], new["stop"], new["sequence"], new["first"] = kind, start, stop, sequence, first
        new["rep"] = np.arange(self.n_reps) if reps is None else reps

    def _all_rows(self) -> NDArray[np.void]:
        self._reserve(sum(len(start) for _, start, *_ in self._waiting))
        for kind, start, stop, reps, sequence, first in self._waiting:
            self._write(self._n_rows, kind, start, stop, reps, sequence, first)
            self._n_rows += len(start)
        self._waiting.clear()
        return self._rows[: self._n_rows]

    def _rows_of(self, rep: int) -> NDArray[np.void]:
        """Those that one replicate paid; kept, as it is asked for at many points of one run."""
        rows = self._all_rows()
        if self._of_one is None or self._of_one[:2] != (rep, len(rows)):
            self._of_one = rep, len(rows), rows[(rows["rep"] == rep) | (rows["rep"] == _EVERY)]
        return self._of_one[2]

    def __iter__(self) -> Iterator[Touched]:
        """The charges, in no particular order."""
        yield from self._touched(self._all_rows())

    def paid_in(self, rep: int) -> Iterator[Touched]:
        """The charges in one replicate, in no particular order."""
        yield from self._touched(self._rows_of(rep))

    @property
    def distinct_replicates(self) -> range:
        """Replicates whose charges may differ: one of them alone if all were charged alike."""
        rows = self._all_rows()
        return range(1) if (rows["rep"] == _EVERY).all() else range(self.n_reps)

    def _touched(self, rows: NDArray[np.void]) -> Iterator[Touched]:
        events, sequences = list(self._kinds), [*self._sequences, None]
        for kind, rep, start, stop, sequence, first in rows.tolist():
            yield Touched(events[kind], rep, start, stop, sequences[sequence], first)

    def most_costly(self) -> list[Counter[Event]]:
        """Answer of `worst` if no record was charged twice: of each family of events the most costly, once."""
        families = (GaussianEvent, ConcentratedEvent, LaplaceEvent, PureEvent, BoundedRangeEvent)
        kept: list[list[Event]] = [[event for event in self._kinds if isinstance(event, family)] for family in families]
        # Of two randomized responses with different numbers of options neither need be the more costly one.
        kept += [[event] for event in self._kinds if isinstance(event, ResponseEvent)]
        return [Counter({max(events, key=lambda event: event.rho): 1}) for events in kept if events]

    def worst(self, before: int | None = None, rep: int | None = None) -> list[Counter[Event]]:
        """The events on each record that no other record outdoes.

        A sweep over both ends of every span. Gaussian events count by their mu^2 together, concentrated ones by their rho
        together, events of pure DP each by themselves; a record is outdone if another has paid at least as much of each.
        With one family of events there is one worst record.

        Args:
          before: leave out charges to spans that end after this record.
          rep: look at this replicate only.

        Returns:
          event -> count, one a record; empty if nothing was charged.
        """
        rows = self._all_rows() if rep is None else self._rows_of(rep)
        counted = rows["start"] < rows["stop"]
        if before is not None:
            counted &= rows["stop"] <= before
        if not counted.any():
            return []
        rows = rows if counted.all() else rows[counted]
        every = rows["rep"] == _EVERY
        if every.all() or rep is not None:
            owner = np.zeros(len(rows), dtype=np.int64)
        elif not every.any():
            owner = rows["rep"].astype(np.int64)
        else:  # rows for all replicates stand beside rows for some: write the former out
            common, own = rows[every], rows[~every]
            rows = np.concatenate([np.repeat(common, self.n_reps), own])
            owner = np.concatenate([np.tile(np.arange(self.n_reps), len(common)), own["rep"].astype(np.int64)])
        return self._sweep(rows, owner)

    def together(self) -> list[Counter[Event]]:
        """The same where all replicates read the same records, each of which pays for all of them."""
        rows = self._all_rows()
        rows = rows[rows["start"] < rows["stop"]]
        if not len(rows):
            return []
        return self._sweep(rows, np.zeros(len(rows), dtype=np.int64), np.where(rows["rep"] == _EVERY, self.n_reps, 1))

    def _sweep(self, rows: NDArray[np.void], owner: IntArray, times: IntArray | None = None) -> list[Counter[Event]]:
        """`times` is how often each row is paid; None: once."""
        times = np.ones(len(rows), dtype=np.int64) if times is None else times
        reach = 2 * (int(rows["stop"].max()) + 1)
        # Where one span ends and another begins, the end comes first.
        keys = np.concatenate([owner * reach + 2 * rows["start"] + 1, owner * reach + 2 * rows["stop"]])
        order = np.argsort(keys, kind="stable")
        events = self._told_apart(len(keys))
        totals = []
        for cost in _families(events):
            # Long doubles: after 1e6 additions and as many subtractions, 13 digits are right.
            paid = (cost[rows["kind"]] * times)[order % len(rows)]
            np.negative(paid, out=paid, where=order >= len(rows))
            totals.append(np.cumsum(paid, out=paid))
        worst = []
        for place in _unsurpassed(totals):
            key = int(keys[order[place]])
            at, record = key // reach, (key % reach) // 2
            holds = (owner == at) & (rows["start"] <= record) & (record < rows["stop"])
            counts: Counter[Event] = Counter()
            for event, count in zip(
                events, np.bincount(rows["kind"][holds], times[holds], len(events)).tolist(), strict=True
            ):
                if count:
                    counts[event] += round(count)
            worst.append(counts)
        return worst

    def _told_apart(self, n_edges: int) -> list[Event]:
        """The event that stands for each kind: itself, as long as the running sums of all kinds fit into memory.

        Beyond, Laplace events of similar noise all count as the most costly of them: never less than was paid.
        """
        limit = min(_MOST_LAPLACE, max(8, _MOST_SUMS // n_edges))
        laplace = sorted(event for event in self._kinds if isinstance(event, LaplaceEvent))
        if len(laplace) <= limit:
            return list(self._kinds)
        groups = np.array_split(np.arange(len(laplace)), limit)
        stands_for: dict[Event, Event] = {laplace[i]: laplace[group[0]] for group in groups for i in group.tolist()}
        return [stands_for.get(event, event) for event in self._kinds]

    def _reserve(self, n_new: int) -> None:
        if self._n_rows + n_new > len(self._rows):
            grown = np.empty(max(2 * len(self._rows), self._n_rows + n_new), dtype=_ROW)
            grown[: self._n_rows] = self._rows[: self._n_rows]
            self._rows = grown


def _families(events: Several[Event]) -> list[NDArray[np.longdouble]]:
    """Lists each event's cost to each family of noise: all Gaussian events are one, each of pure DP another."""
    families: list[list[float]] = [
        [event.rho if isinstance(event, GaussianEvent) else 0.0 for event in events],
        [event.rho if isinstance(event, ConcentratedEvent) else 0.0 for event in events],
    ]
    bounded = dict.fromkeys(event for event in events if isinstance(event, BoundedEvent))
    families += [[float(event == one) for event in events] for one in bounded]
    return [np.array(family, dtype=np.longdouble) for family in families if any(family)]


def _unsurpassed(totals: Several[NDArray[np.longdouble]]) -> list[int]:
    """Places of the maximal points: no other point is at least as large in every total."""
    if len(totals) == 1:
        return [int(np.argmax(totals[0]))]
    # 12 digits: what the running sums cannot tell apart is one point.
    points = np.stack([np.round(total / (total.max() or 1.0), 12).astype(float) for total in totals], axis=1)
    points, places = np.unique(points, axis=0, return_index=True)
    order = np.lexsort(-points.T[::-1])
    kept: list[int] = []
    for index in order.tolist():
        if not any((points[other] >= points[index]).all() for other in kept):
            kept.append(index)
    return [int(places[index]) for index in kept]
