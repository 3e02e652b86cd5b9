"""The one door between private data and everything that is decided from them.

A release is three things in one call: the cost is written down, a release that would overspend is refused, and only
then is noise drawn. A charge carries the span of records that its exact value reads; a record's privacy is the
composition of the charges whose span holds it, the run's is that of the worst record. Spans may depend on earlier
outputs: where they are functions of what was already released, a record's privacy loss is the sum over the charges that
hold it (for one such charge this is the one-touch lemma, see `docs/privacy.md`).

What a ledger derives is of this run: a reading after the fact, as of an odometer. It is a guarantee of the algorithm only if
it is at most the same number on every path that the algorithm may take, as where noise and the number of releases a record
are fixed beforehand, or if a budget refuses everything beyond it (a filter).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Required, TypedDict

import numpy as np
from numpy.typing import NDArray

from bandana.privacy_core.accounting.accountant import account
from bandana.privacy_core.accounting.book import Book, Sequence, shared_span
from bandana.privacy_core.accounting.curve import PrivacyCurve
from bandana.privacy_core.accounting.events import ConcentratedEvent, Event, GaussianEvent, NonPrivateEvent, PureEvent
from bandana.privacy_core.accounting.factorization import Factorization
from bandana.privacy_core.accounting.guarantees import Guarantee, Relation, TrustModel
from bandana.privacy_core.accounting.participation import Participation
from bandana.privacy_core.accounting.spending import Spending, cost_of, exceeds, filterable, spent_as
from bandana.privacy_core.accounting.users import worst_user
from bandana.privacy_core.arrays import FloatArray, IntArray
from bandana.privacy_core.checks import at_least
from bandana.privacy_core.noise.mechanisms import Mechanism
from bandana.privacy_core.noise.sources import ContinuousNoise, NoiseSource, SecureNoise

Places = IntArray | int
Reached = tuple[bool, Places] | None
"""True if spans reach back before the end of what was charged, and the new end; None if no record is charged."""


class Span(NamedTuple):
    """Records start, ..., stop - 1, one span a released row; each (n_rows,) int64."""

    start: IntArray
    stop: IntArray


class Carried(NamedTuple):
    """Earlier records that a value reads again, and that paid for all of its sequence when they entered.

    A factorized sum releases C x + z row by row. A record's whole contribution to it, a column of C, meets independent
    noise, so it is paid for once, by the row that the record enters with. The ledger accepts carried records only as the
    continuation of the same sequence.
    """

    label: str
    """Name of the sequence; two in one ledger need two labels."""
    start: IntArray
    """(n_rows,) first record of the sequence; the carried ones are those from here to the row's own."""
    columns: Factorization | None = None
    """Factorization that encodes the rows: with it the accountant knows how much several records of one user overlap."""
    rest: Callable[[], FloatArray] | None = None
    """Computes what the value lost in floating point, for a source that puts it on a grid."""


class Reads(TypedDict, total=False):
    """Keywords of `Ledger.release`, for a ledger that hands them on to another one."""

    records: Required[Span]
    reps: IntArray | None
    carried: Carried | None


class BudgetExceeded(RuntimeError):  # noqa: N818  (a condition that callers handle, named as in the field)
    """A release would have spent more than the budget; nothing was released and no noise was drawn."""


class Ledger(Protocol):
    """Where an algorithm releases; it need not know whether the run is live or scripted."""

    n_reps: int

    def release(
        self,
        mechanism: Mechanism,
        value: FloatArray,
        *,
        records: Span,
        reps: IntArray | None = None,
        carried: Carried | None = None,
    ) -> FloatArray:
        """A noisy copy of `value`.

        Args:
          mechanism: what adds the noise.
          value: (n_rows, ...), exact, one row a replicate in `reps`.
          records: the records that each row reads; rows must not depend on any other record but through releases.
          reps: (n_rows,) increasing indices of the replicates; None means all.
          carried: earlier records of a sequence that the rows read too; they are not charged again.

        Returns:
          Same shape as `value`.
        """


class Release(NamedTuple):
    """One release with its exact value; it exists only inside an audit."""

    mechanism: Mechanism
    records: Span
    reps: IntArray | None
    value: FloatArray
    output: FloatArray
    carried: Carried | None = None

    def reads(self, record: IntArray | int) -> NDArray[np.bool_]:
        """(n_rows,) whether the exact value may depend on the record; on one of its own, where each row has one."""
        start = self.records.start if self.carried is None else self.carried.start
        return np.asarray((start <= record) & (record < self.records.stop))


def _check_rows(records: Span, reps: IntArray | None, n_reps: int) -> None:
    """Refuses what the book would read as no record, or as one replicate where there are two."""
    wrong = (records.start < 0) | (records.stop < records.start)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"records must span start to stop, 0 <= start <= stop; row {row} is "
            f"[{int(records.start[row])}, {int(records.stop[row])})"
        )
    if reps is not None and len(reps) and (reps[0] < 0 or reps[-1] >= n_reps or (np.diff(reps) <= 0).any()):
        raise ValueError(f"reps must be increasing indices in [0, {n_reps}), got {reps!r}")


class _Sequence(NamedTuple):
    """The records that entered a sequence so far, in each replicate, or three numbers where all agree; -1 if none did."""

    kind: Places
    """Mechanism, an index into the ledger's list."""
    start: Places
    stop: Places


_NOT_BEGUN = _Sequence(-1, -1, -1)


@dataclass
class LiveLedger:
    """Draws noise, keeps the book, and stops at the budget.

    Guarantee: under a `budget` no record's loss exceeds it, whatever was chosen after earlier outputs. Without one,
    `guarantee` and `curve` describe this run; see the module.

    Attributes:
      n_reps: number of replicates.
      noise: the only generator of privacy noise in a run.
      budget: no record may spend more than this; None sets no limit. GDP, RDP, zCDP, pure or (epsilon, delta); a filter,
        valid with adaptively chosen noise, spans and stopping (`bandana.privacy_core.accounting.spending`).
      keeps_transcript: whether `transcript` keeps what was released.
      trust: who sees the data, which the run's owner must ensure; it is written on the guarantee.
      n_records: length of the stream, to refuse spans outside it; None where it is not known.
      relation: between which data sets the releases bound the change; the first release fixes it.
    """

    n_reps: int
    noise: NoiseSource
    budget: Guarantee | None = None
    keeps_transcript: bool = False
    trust: TrustModel = TrustModel.CENTRAL
    n_records: int | None = None

    def __post_init__(self) -> None:
        at_least("n_reps", self.n_reps, 1)
        self.transcript: list[Release] = []
        self.relation: Relation | None = None
        self._book = Book(self.n_reps)
        self._exposes = False
        self._frontier: Places = 0
        self._overlaps = False
        self._sequences: dict[str, _Sequence] = {}
        self._mechanisms: list[Mechanism] = []
        self._spending: Spending | None = None
        if self.budget is not None:
            self.budget, self.relation = filterable(self.budget), self.budget.relation

    def release(
        self, mechanism: Mechanism, value: FloatArray, *, records: Span, reps: IntArray | None = None,
        carried: Carried | None = None,
    ) -> FloatArray:  # fmt: skip
        """Writes the charge down, refuses to overspend, then draws; see `Ledger.release`.

        Raises:
          ValueError: shapes disagree, a span runs backwards or out of the stream, `reps` are not increasing indices of
            replicates, the relation is not that of earlier releases, or carried records do not continue a sequence.
          BudgetExceeded: some record would spend more than the budget.
        """
        n_rows = self.n_reps if reps is None else len(reps)
        if value.shape[:1] != (n_rows,) or len(records.start) != n_rows or len(records.stop) != n_rows:
            raise ValueError(
                f"a release to {n_rows} replicates needs as many rows; got value of shape {value.shape}, "
                f"spans of {len(records.start)} and {len(records.stop)} rows"
            )
        if carried is not None and len(carried.start) != n_rows:
            raise ValueError(f"carried needs {n_rows} rows, one a replicate, got {len(carried.start)}")
        shared = shared_span(records.start, records.stop, reps)
        if shared is None or not 0 <= shared[0] <= shared[1]:
            _check_rows(records, reps, self.n_reps)
        last = shared[1] if shared is not None else int(records.stop.max(initial=0))
        if self.n_records is not None and last > self.n_records:
            raise ValueError(f"records must lie in a stream of {self.n_records}, got a span to {last}")
        self._check_relation(mechanism)
        event = self.noise.cost(mechanism.event)
        kind, follows = -1, False
        if carried is not None:
            if not isinstance(event, GaussianEvent | ConcentratedEvent | NonPrivateEvent):
                raise ValueError(
                    f"only Gaussian noise is paid for once for a whole sequence, Laplace noise is not; got {mechanism}"
                )
            kind = self._kind_of(mechanism)
            follows = self._follows(kind, carried, shared)
            if not follows:
                self._check_carried(kind, carried, records, reps)
        start, stop = records if shared is None else shared
        reached = self._afford(event, start, stop, reps)
        noise, exact = (self.noise, value) if carried is None else self._for_row(event, value, carried)
        output = mechanism.draw(noise, exact)
        # Nothing is written down before the mechanism has taken the value: what it refuses was not released.
        self.relation = self.relation or mechanism.relation
        self._write(event, start, stop, reps, reached, carried)
        if carried is not None and follows and shared is not None:
            self._sequences[carried.label] = _Sequence(kind, int(carried.start[0]), shared[1])
        elif carried is not None:
            self._enter(kind, carried, records, reps)
        if self.keeps_transcript:
            kept = carried and carried._replace(rest=None)  # which holds on to the exact state
            self.transcript.append(Release(mechanism, records, reps, value.copy(), output.copy(), kept))
        return output

    def _for_row(self, event: Event, value: FloatArray, carried: Carried) -> tuple[NoiseSource, FloatArray]:
        """The source for a row of a sequence, and the row as that source needs it."""
        if isinstance(self.noise, ContinuousNoise) or isinstance(event, NonPrivateEvent):
            return self.noise, value
        if not isinstance(self.noise, SecureNoise) or carried.rest is None or carried.columns is None:
            raise ValueError(
                f"rows of a sequence on a grid ({self.noise.name}) must tell columns and rest, as FactorizedSum does"
            )
        return self.noise.spread(carried.columns.n_steps), value + carried.rest()

    def _check_relation(self, mechanism: Mechanism) -> None:
        relation = mechanism.relation
        if relation is None or relation is self.relation:
            return
        if self.relation is not None:
            raise ValueError(
                f"one ledger holds one neighboring relation: it is {self.relation.value!r}, the mechanism's is "
                f"{relation.value!r}; build all mechanisms, and the budget, for the same relation"
            )

    def _kind_of(self, mechanism: Mechanism) -> int:
        """The place of a mechanism in the ledger's list; it is added if it is new."""
        if mechanism not in self._mechanisms:
            self._mechanisms.append(mechanism)
        return self._mechanisms.index(mechanism)

    def _follows(self, kind: int, carried: Carried, shared: tuple[int, int] | None) -> bool:
        """Says whether a row with one span for all replicates continues its sequence in all of them, or begins it."""
        known = self._sequences.get(carried.label, _NOT_BEGUN)
        if shared is None or not isinstance(known.start, int):
            return False
        first = int(carried.start[0])
        if len(carried.start) > 1 and (carried.start != first).any():
            return False
        if first == shared[0]:
            return bool(known.stop <= first)
        return known == (kind, first, shared[0])

    def _check_carried(self, kind: int, carried: Carried, records: Span, reps: IntArray | None) -> None:
        """Refuses a row that neither continues its replicate's sequence nor begins it anew after its end.

        Raises:
          ValueError: the carried records are not those that entered the sequence so far.
        """
        rows = slice(None) if reps is None else reps
        known = self._sequences.get(carried.label, _NOT_BEGUN)
        kinds, start, stop = (np.broadcast_to(np.asarray(part), self.n_reps)[rows] for part in known)
        continues = (kinds == kind) & (start == carried.start) & (stop == records.start)
        # A row that begins inside what has entered already would be of a second sequence.
        begins = (carried.start == records.start) & (stop <= records.start)
        if not (continues | begins).all():
            row = int(np.argmin(continues | begins))
            of = "" if kinds[row] in (-1, kind) else f" through {self._mechanisms[kinds[row]]}"
            raise ValueError(
                f"carried records must be those that entered the sequence {carried.label!r} so far{of}, "
                f"[{int(start[row])}, {int(stop[row])}); got [{int(carried.start[row])}, {int(records.start[row])}); "
                "give each of several sums a label of its own"
            )

    def _enter(self, kind: int, carried: Carried, records: Span, reps: IntArray | None) -> None:
        """Adds the row's records to the sequence."""
        known = self._sequences.get(carried.label, _NOT_BEGUN)
        kinds, start, stop = (np.array(np.broadcast_to(np.asarray(part), self.n_reps)) for part in known)
        rows = slice(None) if reps is None else reps
        kinds[rows], start[rows], stop[rows] = kind, carried.start, records.stop
        self._sequences[carried.label] = _Sequence(kinds, start, stop)

    def _afford(self, event: Event, start: Places, stop: Places, reps: IntArray | None) -> Reached:
        """Refuses what would overspend.

        Raises:
          BudgetExceeded: some record would spend more than the budget.
        """
        if isinstance(event, NonPrivateEvent):
            if self.budget is not None:
                raise BudgetExceeded(f"a release without noise exceeds every budget (here {self.budget})")
            return None
        if not (start < stop if isinstance(start, int) else (start < stop).any()):
            return None
        # A sweep has nothing to find while no span starts before the end of what was charged.
        if isinstance(start, int) and isinstance(stop, int) and isinstance(self._frontier, int):
            overlaps = start < self._frontier
            frontier: Places = max(self._frontier, stop)
        else:
            rows = slice(None) if reps is None else reps
            reached = np.array(np.broadcast_to(np.asarray(self._frontier), self.n_reps))
            overlaps = bool((np.asarray(start) < reached[rows]).any())
            reached[rows] = np.maximum(reached[rows], stop)
            frontier = reached
        if self.budget is not None:
            if overlaps and self._spending is None:
                self._spending = Spending(self.budget, self._book)
            before = 0.0 if self._spending is None else self._spending.largest(start, stop, reps)
            total = before + cost_of(event, self.budget)
            if exceeds(total, self.budget):
                raise BudgetExceeded(
                    f"this release would raise a record's privacy loss to {spent_as(total, self.budget)}; "
                    f"the budget is {self.budget}"
                )
        return overlaps, frontier

    def _write(
        self, event: Event, start: Places, stop: Places, reps: IntArray | None, reached: Reached, carried: Carried | None
    ) -> None:
        """Adds one entry that `_afford` let pass; see `Book.add`."""
        if reached is None:
            self._exposes |= isinstance(event, NonPrivateEvent)
            return
        overlaps, self._frontier = reached
        self._overlaps |= overlaps
        if carried is None:
            self._book.add(event, start, stop, reps)
        else:
            self._book.add(event, start, stop, reps, Sequence(carried.label, carried.columns), carried.start)
        if self._spending is not None and self.budget is not None:
            self._spending.add(cost_of(event, self.budget), start, stop, reps)

    def worst_records(self, before: int | None = None, rep: int | None = None) -> list[Counter[Event]]:
        """The events on each record that no other record outdoes, over all replicates.

        One if all noise is Gaussian. Where Gaussian and Laplace noise meet there may be several, of which one is worse
        at one delta and another at another.

        Args:
          before: count only what was released within this many rounds (a release happens at the end of its span).
          rep: look at this replicate only.

        Returns:
          event -> count; empty if nothing was charged.
        """
        if self._exposes:
            return [Counter({NonPrivateEvent(): 1})]
        if not self._overlaps and before is None and rep is None:
            return self._book.most_costly()
        return self._book.worst(before, rep)

    def composed_record(self) -> Counter[Event]:
        """The events on the worst record if all replicates are runs over the same records, which pay for each of them.

        Where several records are not outdone by another, the most of each event that one of them paid: an upper bound.
        """
        if self._exposes:
            return Counter({NonPrivateEvent(): 1})
        composed: Counter[Event] = Counter()
        for events in self._book.together():
            composed |= events
        return composed

    def worst_record(
        self, before: int | None = None, rep: int | None = None, delta: float = 1e-5, users: Participation | None = None
    ) -> Counter[Event]:
        """The one of `worst_records`, or with `users` of `worst_users`, with the largest epsilon at `delta`.

        Empty if nothing was charged.
        """
        records = self.worst_records(before, rep) if users is None else self.worst_users(users, before, rep)
        if len(records) < 2:
            return records[0] if records else Counter()
        return max(records, key=lambda events: PrivacyCurve.of(events).epsilon(delta))

    def worst_users(self, users: Participation, before: int | None = None, rep: int | None = None) -> list[Counter[Event]]:
        """Events that no user pays more than, one book for each replicate that no other outdoes.

        Args:
          users: which records may be one user's.
          before: leave out charges to spans that end after this record.
          rep: look at this replicate only.

        Returns:
          event -> count; empty if nothing was charged. Of users with one record those of `worst_records`.
        """
        if users.most == 1 or self._exposes:
            return self.worst_records(before, rep)
        reps = self._book.distinct_replicates if rep is None else [rep]
        books = []
        for each in reps:
            charges = (one for one in self._book.paid_in(each) if before is None or one.stop <= before)
            if events := worst_user(charges, users):
                books.append(events)
        families = ((GaussianEvent, "rho"), (ConcentratedEvent, "rho"), (PureEvent, "epsilon"))
        costs = [
            tuple(sum(getattr(event, cost) for event in book if isinstance(event, family)) for family, cost in families)
            for book in books
        ]
        kept: dict[tuple[float, ...], Counter[Event]] = {}
        for cost, book in sorted(zip(costs, books, strict=True), key=lambda pair: pair[0], reverse=True):
            if not any(all(a >= b for a, b in zip(other, cost, strict=True)) for other in kept):
                kept[cost] = book
        return list(kept.values())

    def user_guarantee(self, users: Participation) -> Guarantee | PrivacyCurve | None:
        """Guarantee by the accountant if neighbors differ in all records of one user; None if nothing was released.

        Args:
          users: which records may be one user's. It must hold for all data, and be known to the public.
        """
        records = self.worst_users(users)
        if len(records) > 1:
            return PrivacyCurve.of(*records, relation=Relation.USER, trust=self.trust)
        return account(records[0], relation=Relation.USER, trust=self.trust) if records else None

    def curve(self) -> PrivacyCurve | None:
        """Everything that the accountant derives for this run, see `guarantee`; None if nothing was released."""
        records = self.worst_records()
        return PrivacyCurve.of(*records, relation=self._relation, trust=self.trust) if records else None

    def guarantee(self) -> Guarantee | PrivacyCurve | None:
        """Guarantee that the accountant derives for the worst record of this run; None if nothing was released.

        In closed form if there is one. Where releases, their noise or their number were chosen after earlier outputs, it is
        a promise only if it is no more on any other path, or under a budget.
        """
        records = self.worst_records()
        if len(records) > 1:
            return self.curve()
        return account(records[0], relation=self._relation, trust=self.trust) if records else None

    @property
    def _relation(self) -> Relation:
        return self.relation or Relation.REPLACE_RECORD
