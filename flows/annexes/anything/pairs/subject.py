"""Whatever is audited on two given data sets as a release; a bandit on two tables of rewards is one too.

Of an algorithm that keeps the protocol the output is the exact log-likelihood ratio of all that a run released, the score
that no other beats; what the other side could not have shown at all is infinite. Of a function it is its actions.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.protocol import Algorithm, FloatArray
from bandana.audits.neighbors.pairs import Pair, actions_differ
from bandana.audits.own import conformance
from bandana.audits.searches.cases import Case
from bandana.audits.searches.sides import play_streams
from bandana.flows.annexes.anything.functions.plays import Shape, adapted, check, play_rows, plays_many
from bandana.flows.annexes.anything.outputs.calls import Batch, BrokenSubject, Caller, Guard, inspect_call
from bandana.flows.annexes.anything.pairs.coupling import Coupling, compare, is_telling
from bandana.privacy_core import Interval

_SEED = 0
_PLAYS = 64
_SEEN = "seen: all releases by their exact likelihood ratio; schedules, actions and released state must agree"
Tables = tuple[RewardTable, RewardTable]


class NoTables(BrokenSubject):
    """Data sets that are no tables of rewards; the message says what they are."""


def tables_of(data: object, neighbor: object, span: Interval) -> Tables:
    """Both data sets as tables of rewards, whose range holds all that stands in them.

    Args:
      data: (n_rounds, n_arms) numbers.
      neighbor: the same shape.
      span: declared range of rewards.

    Raises:
      NoTables: no numbers, or two shapes: everybody sees how many rounds a run has.
    """
    try:
        sides = [np.asarray(side, dtype=float) for side in (data, neighbor)]
    except (TypeError, ValueError) as error:
        raise NoTables(f"pair: a bandit plays tables of rewards, (n_rounds, n_arms) numbers: {error}") from error
    if sides[0].ndim != 2 or sides[0].shape[1] < 2 or sides[0].shape != sides[1].shape or not len(sides[0]):
        raise NoTables(
            "pair: a bandit plays two tables of rewards of one shape (n_rounds, n_arms), at least 2 arms, as everybody sees "
            f"how many rounds there are; got {sides[0].shape} and {sides[1].shape}"
        )
    both = np.concatenate(sides)
    if not np.isfinite(both).all():
        raise NoTables("pair: rewards must be finite numbers")
    wide = Interval(min(span.low, float(both.min())), max(span.high, float(both.max())))
    return RewardTable(sides[0], wide), RewardTable(sides[1], wide)


def changed_records(tables: Tables) -> tuple[int, ...]:
    """The rounds in which both tables differ."""
    return tuple(np.flatnonzero((tables[0].rewards != tables[1].rewards).any(axis=1)).tolist())


def of_algorithm(algorithm: Algorithm, tables: Tables) -> Callable[[int, int, int], FloatArray]:
    """(side, seed, n_runs) -> (n_runs,) log p(all that was released | neighbor) - log p(the same | data), in nats.

    Each run is live on its own side and scripted on the other. It is infinite where the other side, given the same released
    values, asks for other releases, plays another arm or keeps another released state.
    """
    first = next(iter(changed_records(tables)), 0)
    pair = Pair(*tables, first)

    def scores(side: int, seed: int, n_runs: int) -> FloatArray:
        streams = tables if side == 0 else (tables[1], tables[0])
        case = Case.of(pair, seed)
        sides = play_streams(algorithm, streams, seed, lambda rep: case, np.full(n_runs, first), np.full(n_runs, -1))
        differs = (sides.scripted.diverged >= 0) | (sides.parted.record >= 0)
        differs |= actions_differ(sides.data.log, sides.neighbor.log)
        ratio = np.where(differs, -np.inf, sides.scripted.log_ratio)
        return ratio if side == 0 else -ratio

    return scores


@dataclass(frozen=True)
class Subject:
    """Subject of an audit from outside on two data sets: how it is called, what a run is, and what is seen.

    Attributes:
      caller: how it is run.
      data: what it is given on the data set.
      neighbor: and on the neighbor.
      words: what is replayed.
      how: how runs are made; empty: as the caller says.
      notes: what a reader should know of the view.
      has_ledger: whether all noise is drawn by a ledger.
      changed: the first round that differs, where the outputs are actions.
    """

    caller: Caller
    data: object
    neighbor: object
    words: str = "two given data sets"
    how: str = ""
    notes: tuple[str, ...] = ()
    has_ledger: bool = False
    changed: int | None = None

    def compare(self, seed: int) -> Coupling:
        """Checks if the data seed generators; see `coupling.compare`.

        Args:
          seed: root of the seeds of these runs.
        """
        if self.has_ledger:  # the audit itself draws its noise
            return Coupling(1)
        if self.changed is None:
            return compare(self.caller, self.data, self.neighbor, seed)
        counts = partial(is_telling, record=self.changed)
        return compare(self.caller, self.data, self.neighbor, seed, n_tried=_PLAYS, counts=counts)


def prepared(subject: Any, data: object, neighbor: object, span: Interval, seed: int, guard: Guard = nullcontext) -> Subject:
    """Finds out how to run anything on two data sets.

    Args:
      subject: an algorithm that keeps the protocol, a function of many runs' rewards, or any release.
      data: a data set; of a bandit a table of rewards, (n_rounds, n_arms).
      neighbor: the other.
      span: declared range of a function's rewards.
      seed: of the first tries.
      guard: what calls are wrapped in.

    Raises:
      BrokenSubject: data sets that are no tables of the algorithm's arms, or a function that cannot be called or audited.
      ProtocolError: an algorithm that breaks the protocol.
    """
    if not conformance.missing_members(subject):
        _check_rounds(subject)
        tables = tables_of(data, neighbor, subject.reward_range)
        return on_tables(subject, tables, span, seed, guard)(tables)
    try:
        tables = tables_of(data, neighbor, span)
        if plays_many(subject, _shape(tables), span, guard):
            return on_tables(subject, tables, tables[0].reward_range, seed, guard)(tables)
    except NoTables:
        pass
    return Subject(inspect_call(subject, data, neighbor, seed, guard), data, neighbor)


def on_tables(
    subject: Any, first: Tables, span: Interval, seed: int, guard: Guard = nullcontext
) -> Callable[[Tables], Subject]:
    """Finds out how a bandit plays, and returns what is run on any two tables of the first ones' shape.

    Args: as in `prepared`, where
      subject: an algorithm that keeps the protocol, or a function of rewards, of many runs or of one.
      first: tables that it is tried on.

    Raises:
      BrokenSubject: tables of other arms, or a function whose answers cannot be audited.
      ProtocolError: an algorithm that breaks the protocol.
    """
    if not conformance.missing_members(subject):
        _check_rounds(subject)
        if first[0].n_actions != subject.n_actions:
            raise NoTables(f"pair: the tables have {first[0].n_actions} arms, the algorithm {subject.n_actions}")
        conformance.check(subject, first[0], seed)
        return lambda tables: _many_runs(of_algorithm(subject, tables), tables, guard, notes=(_SEEN,), has_ledger=True)
    play = adapted(subject, _shape(first), span, guard)
    check(play, first[0], _SEED)
    return lambda tables: _many_runs(
        lambda side, seed, n_runs: play_rows(play, tables[side], n_runs, seed), tables, guard,
        changed=next(iter(changed_records(tables)), 0),
    )  # fmt: skip


def _many_runs(release: Callable[[int, int, int], object], tables: Tables, guard: Guard, **seen: Any) -> Subject:
    """Subject of many runs a call on either table."""
    caller = Caller(release, "seed", size="n_runs", batch=Batch.SIZE, guard=guard)
    return Subject(caller, 0, 1, _words(tables), "many runs a call", **seen)


def _check_rounds(algorithm: Algorithm) -> None:
    conformance.check_members(algorithm)
    if getattr(algorithm, "episode_length", None) is not None:
        raise NoTables("pair: it plays episodes, and two given data sets are tables of rewards, (n_rounds, n_arms)")
    if getattr(algorithm, "context_dimension", None) is not None:
        raise NoTables("pair: it reads contexts, and two given data sets are tables of rewards, (n_rounds, n_arms)")


def _shape(tables: Tables) -> Shape:
    return tables[0].n_users, tables[0].n_actions


def _words(tables: Tables) -> str:
    records = changed_records(tables)
    shown = ", ".join(map(str, records[:6])) + (", ..." if len(records) > 6 else "")
    differ = f"differ in {len(records)} records ({shown})" if records else "do not differ"
    return f"two given tables, {tables[0].n_users} rounds x {tables[0].n_actions} arms, which {differ}"
