"""Checks of a run that was played on two data sets: schedules, released states, exact values and charges.

Both sides saw the same released values, so everything that was decided or released must be the same; an exact value must be
the same if the replaced record lies outside the release's span, and may move by at most the mechanism's sensitivity if it
lies inside; and the events that the ledger holds against the worst record must compose to no more than the claim. Where
all records of a user are replaced, a value may move by the sensitivity for each of them that it reads, the rows of a
sequence by what several columns of its encoder add up to, and the claim is held against what the worst user pays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.audits.neighbors.pairs import actions_differ
from bandana.audits.searches.counterexample import (
    BOOK,
    DECISION,
    NO_NOISE,
    NOT_A_NUMBER,
    SENSITIVITY,
    SEQUENCE,
    SPAN,
    STATE,
    Counterexample,
    Difference,
    Move,
    Total,
)
from bandana.audits.searches.sides import Call, Sides
from bandana.privacy_core import (
    BoundedEvent,
    ConcentratedEvent,
    Event,
    GaussianDP,
    GaussianEvent,
    Guarantee,
    LiveLedger,
    NonPrivateEvent,
    NoPrivacy,
    PrivacyCurve,
    PureDP,
    Release,
    ScriptedLedger,
    account,
)
from bandana.privacy_core.accounting.accountant import accounted_mu
from bandana.privacy_core.accounting.factorization import Factorization
from bandana.privacy_core.accounting.returning import squared_sensitivities

_ROUNDING = 1e-9


def decisions(sides: Sides) -> Counterexample | None:
    """Schedules or actions that differ although both runs saw the same released values."""
    diverged = sides.scripted.diverged
    parted = (diverged >= 0) | actions_differ(sides.data.log, sides.neighbor.log, sides.hidden)
    if not parted.any():
        return None
    rep = int(np.argmax(diverged)) if (diverged >= 0).any() else int(np.argmax(parted))
    return _found(
        sides, DECISION, rep, int(diverged[rep]),
        "both runs saw the same released values, yet their schedules or actions differ: something "
        "was decided from values that were not released",
        difference=_first_difference(sides, rep),
    )  # fmt: skip


def states(sides: Sides) -> Counterexample | None:
    """A field of the released state that differs although both runs saw the same released values."""
    parted = sides.parted.record
    if not (parted >= 0).any():
        return None
    rep = int(np.argmin(np.where(parted >= 0, parted, np.iinfo(np.int64).max)))
    last, name, case = int(parted[rep]), sides.parted.field[rep], sides.case_of(rep)
    n = case.n_steps
    where = f"after {case.unit} {last} the field {name!r} of the released state differs"
    arms = [int(side.arms(rep, len(case.rewards), n)[last * n]) for side in (sides.data, sides.neighbor)]
    return _found(
        sides, STATE, rep, -1,
        f"both runs saw the same released values, yet the field {name!r} of the released state differs: it holds something "
        "that no release made public",
        difference=Difference(last, arms[0], arms[1], where),
    )  # fmt: skip


def releases(sides: Sides) -> Counterexample | None:
    """An exact value that moved beyond its span, or by more than its sensitivity, or to what is no number."""
    for call, (release, value) in enumerate(zip(sides.live.transcript, sides.scripted.values, strict=True)):
        change = _change(release, value)
        n_read = sides.n_read(release)
        lost, leaking = np.isnan(change), (n_read == 0) & (change > _ROUNDING)
        # Of no record nothing may move: that is `leaking`, and beyond rounding no second fault.
        limit = release.mechanism.sensitivity * np.maximum(n_read, 1)
        for kind, wrong in ((NOT_A_NUMBER, lost), (SPAN, leaking), (SENSITIVITY, change > limit * (1 + _ROUNDING))):
            if not wrong.any():
                continue
            row = int(np.argmax(np.where(wrong, np.nan_to_num(change), -1.0)))
            rep = row if release.reps is None else int(release.reps[row])
            index = [own for own, _, _ in sides.data.own(rep)].index(call)
            if kind == NOT_A_NUMBER:
                reason = f"release {index} has an exact value that is no number on one side, and another on the other"
            elif kind == SPAN:
                span = f"[{release.records.start[row]}, {release.records.stop[row]})"
                reason = f"release {index} declares the records {span}, yet its exact value moved by {change[row]:.6g}"
            else:
                allowed = float(limit[row])
                what = "its sensitivity" if n_read[row] < 2 else f"the sensitivity of {n_read[row]} records,"
                times = f"{change[row] / allowed:.4g} times {what} {allowed:.6g}"
                reason = f"release {index} moved by {change[row]:.6g}, {times}"
            return _found(sides, kind, rep, index, reason, lambda move, release: _is_too_far(move))
    return None


def _is_too_far(move: Move) -> bool:
    return not move.moved <= move.allowed * (1 + _ROUNDING) + (0.0 if move.reads_record else _ROUNDING)


def _change(release: Release, value: FloatArray) -> FloatArray:
    """(n_rows,) how far the exact value moved; 0 where it is the same, also if that is no number; else NaN for those."""
    change = release.mechanism.change(release.value, value)
    if np.isfinite(change).all():
        return change
    same = (release.value == value) | (np.isnan(release.value) & np.isnan(value))
    return np.where(same.reshape(len(same), -1).all(axis=1), 0.0, change)


def _outgrown(
    live: LiveLedger, scripted: ScriptedLedger, sides: Sides | None = None
) -> tuple[str, float, float, int] | None:
    """A sequence of carried rows whose changes together exceed the sensitivity: (label, moved, allowed, replicate).

    A record pays for all rows of a sequence at once, as for one vector, so it is the vector's change that is bounded.
    """
    squares: dict[tuple[str, float], np.ndarray] = {}
    longest: dict[tuple[str, float], tuple[int, Factorization | None]] = {}
    for release, value in zip(live.transcript, scripted.values, strict=True):
        if release.carried is not None:
            key = (release.carried.label, release.mechanism.sensitivity)
            total = squares.setdefault(key, np.zeros(live.n_reps))
            step = max(longest.get(key, (0, None))[0], int((release.records.stop - release.records.start).max(initial=0)))
            longest[key] = step, release.carried.columns
            rows = slice(None) if release.reps is None else release.reps
            total[rows] += release.mechanism.change(release.value, value) ** 2
    for (label, sensitivity), total in squares.items():
        limit = sensitivity * (1.0 if sides is None else _together(sides, *longest[label, sensitivity]))
        if np.sqrt(total.max()) > limit * (1 + _ROUNDING):
            return label, float(np.sqrt(total.max())), limit, int(np.argmax(total))
    return None


def _together(sides: Sides, longest: int, columns: Factorization | None) -> float:
    """Limits how far the records that differ may move a whole sequence, over the sensitivity to one of them."""
    k = 1 + len(sides.others)
    if k == 1 or columns is None or sides.users is None:
        return float(k)
    return math.sqrt(squared_sensitivities(columns, k, sides.users.steps_apart(max(1, longest)))[k])


def sequences(sides: Sides) -> Counterexample | None:
    """Rows of one sequence that together moved by more than is paid for once."""
    outgrown = _outgrown(sides.live, sides.scripted, sides)
    if outgrown is None:
        return None
    label, moved, limit, rep = outgrown
    summary = f"together moved by {moved:.6g}, {moved / limit:.4g} times the sensitivity {limit:.6g} that is paid for once"

    def is_in(move: Move, release: Release) -> bool:
        return release.carried is not None and release.carried.label == label and move.moved > 0

    return _found(
        sides, SEQUENCE, rep, -1, f"the rows of the sequence {label!r} {summary}", is_in,
        total=Total(None, moved, limit, f"the rows that are marked, as one vector, {summary}"),
    )  # fmt: skip


def book(sides: Sides, claim: GaussianDP | None) -> Counterexample | None:
    """Charges on one record that compose to more than the claim, or a release without noise."""
    derived = account(sides.live.worst_record(users=sides.users))
    if isinstance(derived, NoPrivacy):
        call = next(call for call, release in enumerate(sides.live.transcript) if _is_bare(release))
        reps = sides.data.calls[call].reps
        rep = 0 if reps is None else int(reps[0])
        index = [own for own, _, _ in sides.data.own(rep)].index(call)
        return _found(
            sides, NO_NOISE, rep, index, "a value was released without noise", lambda move, release: _is_bare(release)
        )
    mu = _as_mu(derived)
    if claim is None or not mu > claim.mu * (1 + _ROUNDING):
        return None
    if sides.users is not None:
        reason = f"the releases on one user, with {sides.users}, compose to {mu:.6g}-GDP; the claim is {claim}"
        total = Total(None, mu, claim.mu, f"{mu / claim.mu:.4g} times the claim")
        return _found(sides, BOOK, 0, -1, reason, lambda move, release: move.reads_record, total=total)
    rep, record = _most_costly(sides.live, int(max(end.max() for end in (r.records.stop for r in sides.live.transcript))))

    def holds(move: Move, release: Release) -> bool:
        return move.start <= record < move.stop

    reason = f"the releases on one record compose to {mu:.6g}-GDP; the claim is {claim}"
    example = _found(sides, BOOK, rep, -1, reason, holds)
    marked = [call for move, (call, _, _) in zip(example.rows, sides.data.own(rep), strict=True) if move.is_offending]
    mu = _as_mu(account(Counter(sides.live.transcript[call].mechanism.event for call in marked)))
    summary = f"record {record} pays for the {len(marked)} releases that are marked: {mu:.6g}-GDP together, "
    summary += f"the claim is {claim.mu:.6g}-GDP ({mu / claim.mu:.4g} times)"
    return replace(example, total=Total(record, mu, claim.mu, summary))


def _is_bare(release: Release) -> bool:
    return isinstance(release.mechanism.event, NonPrivateEvent)


def _as_mu(derived: Guarantee | PrivacyCurve | None) -> float:
    if derived is None:
        return 0.0
    if isinstance(derived, PrivacyCurve) and all(isinstance(event, GaussianEvent) for event, _ in derived.books[0]):
        return accounted_mu(derived.books[0])
    return derived.gdp().mu if isinstance(derived, GaussianDP | PureDP) else math.inf


def _most_costly(live: LiveLedger, n_records: int) -> tuple[int, int]:
    """The replicate, and the record in it, that pays most."""
    paid = np.zeros((live.n_reps, n_records + 1))
    is_pure = all(isinstance(release.mechanism.event, BoundedEvent) for release in live.transcript)
    for release in live.transcript:
        event = release.mechanism.event
        cost = event.epsilon if is_pure and isinstance(event, BoundedEvent) else event.rho
        rows = np.arange(live.n_reps) if release.reps is None else release.reps
        np.add.at(paid, (rows, release.records.start), cost)
        np.add.at(paid, (rows, release.records.stop), -cost)
    place = int(np.argmax(np.round(np.cumsum(paid, axis=1), 12)))
    return place // (n_records + 1), place % (n_records + 1)


def _first_difference(sides: Sides, rep: int) -> Difference:
    """Where the runs of one replicate part: an arm, the length of a phase, or a release, whichever comes first."""
    case = sides.case_of(rep)
    n_rounds, n, besides = len(case.rewards), case.n_steps, case.hidden_record
    mine, theirs = (side.arms(rep, n_rounds, n) for side in (sides.data, sides.neighbor))
    if besides >= 0:
        theirs[besides * n : (besides + 1) * n] = mine[besides * n : (besides + 1) * n]
    requests = [[(_request(side.calls[call], row), rounds) for call, row, rounds in side.own(rep)] for side in sides[:2]]
    other = _first([name for name, _ in requests[0]], [name for name, _ in requests[1]])
    released = min((side[other][1] for side in requests if other < len(side)), default=n_rounds + 1)
    place = _first(mine.tolist(), theirs.tolist())
    arm = place // n
    lengths = [side.starts(rep) for side in sides[:2]]
    phase = next((t for t in range(n_rounds) if lengths[0].get(t) != lengths[1].get(t)), n_rounds)

    def at(step: int, summary: str) -> Difference:
        arms = [int(side[step]) if side[step] >= 0 else None for side in (mine, theirs)]
        return Difference(step // n, arms[0], arms[1], summary)

    if released <= min(arm, phase, n_rounds):
        names = [side[other][0] if other < len(side) else "none" for side in requests]
        parting = f"release {other}, after {released} {case.unit}s, is {names[0]} on D and {names[1]} on D'"
        return at((released - 1) * n, f"they part at a release: {parting}")
    if arm <= phase:
        where = f"round {arm}: arm" if case.episode is None else f"episode {arm}, step {place % n + 1}: action"
        what = where.split()[-1]
        return at(place, f"they part in {where} {mine[place]} is played on D, {what} {theirs[place]} on D'")
    counts = [f"{side.get(phase, 0)} rounds" for side in lengths]
    return at(phase * n, f"they part in round {phase}: a phase of {counts[0]} begins on D, one of {counts[1]} on D'")


def _request(call: Call, row: int) -> str:
    name = type(call.mechanism).__name__
    return f"{name} of scale {call.mechanism.scale:.6g} on [{call.records.start[row]}, {call.records.stop[row]})"


def _first(mine: Sequence[object], theirs: Sequence[object]) -> int:
    """Index of the first place where two lists differ; the longer length where they do not."""
    shorter = min(len(mine), len(theirs))
    return next((i for i in range(shorter) if mine[i] != theirs[i]), shorter)


def _found(
    sides: Sides,
    kind: str,
    rep: int,
    release: int,
    reason: str,
    is_offending: Callable[[Move, Release], bool] | None = None,
    *,
    difference: Difference | None = None,
    total: Total | None = None,
) -> Counterexample:
    """The counterexample, with the releases of one replicate in rows; none where their values cannot be compared."""
    case, rows = replace(sides.case_of(rep), wide=int(sides.widened[rep])), []
    for index, (call, row, rounds) in enumerate(sides.data.own(rep) if is_offending else []):
        made = sides.live.transcript[call]
        n_read = int(made.reads(case.record)[row]) + sum(int(made.reads(other)[row]) for other in case.others)
        move = Move(
            release=index,
            rounds=rounds,
            mechanism=type(made.mechanism).__name__,
            norm=made.mechanism.norm,
            start=int(made.records.start[row]),
            stop=int(made.records.stop[row]),
            carried=None if made.carried is None else int(made.carried.start[row]),
            reads_record=n_read > 0,
            moved=float(_change(made, sides.scripted.values[call])[row]),
            allowed=float(made.mechanism.sensitivity) * n_read if n_read else 0.0,
            cost=_cost(made.mechanism.event),
            is_offending=False,
        )
        rows.append(replace(move, is_offending=bool(is_offending and is_offending(move, made))))
    arms, neighbor_arms = (tuple(side.arms(rep, len(case.rewards), case.n_steps).tolist()) for side in sides[:2])
    return Counterexample(
        case=case,
        release=release,
        reason=reason,
        kind=kind,
        replicate=rep,
        n_replicates=sides.live.n_reps,
        rows=tuple(rows),
        arms=arms,
        neighbor_arms=neighbor_arms,
        states=sides.data.states(rep),
        neighbor_states=sides.neighbor.states(rep),
        difference=difference,
        total=total,
    )


def _cost(event: Event) -> str:
    match event:
        case GaussianEvent():
            return f"{event.mu:.6g}-GDP"
        case ConcentratedEvent():
            return f"{event.rho:.6g}-zCDP"
    if isinstance(event, BoundedEvent):
        return f"{event.epsilon:.6g}-DP"
    return "no privacy"


def first_violation(sides: Sides, claim: GaussianDP | None) -> Counterexample | None:
    """Finds the first violation: a decision, an exact value, a sequence, the book, or a released state.

    Args:
      sides: both runs.
      claim: see `bandana.audits.searches.deterministic.examine`.
    """
    for check in (decisions, releases, sequences):
        if (violation := check(sides)) is not None:
            return violation
    return book(sides, claim) or states(sides)
