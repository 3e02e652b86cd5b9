"""The audit of a subject on two data sets, in stages: whatever refutes the claim at once ends it.

First calls of processes and the first runs have a share of the failure probability each, so that all stages together hold at
the stated confidence. What an output shows of its own seed is decided by a few runs, without statistics. A narrow refutation
is asked again, with fresh runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from bandana.audits.outcome import Effort, Verdict
from bandana.audits.plan import EARLY
from bandana.flows.annexes.anything.outputs.deadline import Deadline
from bandana.flows.annexes.anything.outputs.encoding import joined
from bandana.flows.annexes.anything.outputs.scores import SLOWEST
from bandana.flows.annexes.anything.pairs.exposed import exposed
from bandana.flows.annexes.anything.pairs.outcome import ReleaseOutcome
from bandana.flows.annexes.anything.pairs.release import GIVEN, LEAST_RUNS, PARTS, Samples, draw, examine
from bandana.flows.annexes.anything.pairs.release_faults import QUICK, SLOW, Planted, planted_in
from bandana.flows.annexes.anything.pairs.starts import MOST, Starts
from bandana.flows.annexes.anything.pairs.subject import Subject
from bandana.flows.annexes.anything.pairs.watch import watch
from bandana.privacy_core import Guarantee

FIRST = 1000
"""Runs of each side that are bounded first."""
_FIRST_CALLS, _RUNS, _BOUNDS = 0.35, 0.6, 0.7
"""Shares of the time that is left: of first calls, of runs, and of what learns from them; the rest is for planted faults."""
_COMPARED, _COMPARED_CALLS = 8, 16
"""Calls that compare the seeds of generators, and first calls of each side that a test compares with later ones."""
_PARTS = (0.25, 0.125, 1)
_FRESH = 2**33
"""Lies between the seeds of runs and of those that ask again."""
Beside = Callable[[Callable[[], Planted]], Callable[[], Planted]]


def audit_subject(
    subject: Subject,
    stated: Guarantee,
    effort: Effort,
    seconds: float,
    search: str = "",
    starts: Starts | None = None,
    beside: Beside = lambda function: function,
) -> ReleaseOutcome:
    """Runs a subject on its two data sets, bounds the claim from below, and compares the seeds of its generators.

    Args:
      subject: what is run, on which data sets.
      stated: the claim.
      effort: runs on each side, confidence and seed.
      seconds: for the whole audit.
      search: how the neighbor was found, in words; empty where it was given.
      starts: a process in which nothing was called yet; None where there is none.
      beside: starts what takes long in a process beside this one; see `bandana.flows.running.child`.

    Raises:
      BrokenSubject: see `draw` and `examine`.
    """
    deadline, caller, sides = Deadline.within(seconds), subject.caller, (subject.data, subject.neighbor)
    calls = _asked(starts, subject, effort.seed, deadline, MOST)
    shown = "" if subject.has_ledger else exposed(caller, *sides, effort.seed)
    pair, notes = subject.words if search else GIVEN, subject.notes

    def bounded(
        samples: Samples, share: float, parts: tuple[float, float, int] = PARTS, without: Collection[str] = SLOWEST
    ) -> ReleaseOutcome:
        outcome = examine(
            samples, stated, confidence=effort.confidence, seed=effort.seed, pair=pair, search=search, share=share,
            parts=parts, deadline=deadline.part(_BOUNDS), without=without,
        )  # fmt: skip
        return replace(outcome, proofs=(shown,) if shown else (), notes=(*notes, *outcome.notes))

    def drawn(n_runs: int, seed: int, least: int = LEAST_RUNS) -> Samples:
        samples = draw(caller, *sides, n_runs, seed, _RUNS * deadline.left, least, kept=_COMPARED)
        return replace(samples, how=subject.how or samples.how)

    is_staged = effort.replays >= 8 * FIRST
    pilot = drawn(FIRST if is_staged else effort.replays, effort.seed)
    if is_staged:
        outcome = _settled(pilot, lambda runs: bounded(runs, EARLY), lambda: drawn(FIRST, effort.seed + _FRESH, 0))
        if outcome.verdict is Verdict.FAIL:
            return replace(outcome, notes=("the first runs decide; more would measure more", *outcome.notes))
    first, differs, more = _waited(calls, subject)
    notes = (*notes, *more)
    unsettled = ""
    if first is not None:
        called = partial(_asked, starts, subject, effort.seed + _FRESH, deadline, MOST)
        outcome = _settled(first, lambda runs: bounded(runs, EARLY, _PARTS), lambda: _waited(called(), subject)[0])
        unsettled = outcome.unsettled
        if outcome.is_refuted:
            return outcome
    samples, last = pilot, 1 - 2 * EARLY
    if is_staged and not pilot.is_cut:
        samples = _both(pilot, drawn(effort.replays - FIRST, effort.seed + 2**32))
    planted = partial(planted_in, samples, stated, effort.confidence, effort.seed, deadline, last)
    others = beside(lambda: planted(SLOW))
    outcome = _settled(
        samples, lambda runs: bounded(runs, last, without=()), lambda: drawn(len(samples.data), effort.seed + 2 * _FRESH, 0)
    )
    outcome = replace(
        outcome, unsettled=outcome.unsettled or unsettled, differs=differs, coupling=subject.compare(effort.seed)
    )
    if replace(outcome, left_out=()).verdict is not Verdict.NOT_REFUTED:  # planted faults change nothing
        return outcome
    (quick, missed), (slow, late) = planted(QUICK), others()
    return replace(outcome, tried=(*slow, *quick), left_out=(*outcome.left_out, *late, *missed))


def _asked(
    starts: Starts | None, subject: Subject, seed: int, deadline: Deadline, most: int
) -> Callable[[], tuple[Samples, str]] | None:
    """First calls that were begun; None where the subject is not what the process that was set aside calls."""
    if starts is None or not starts.fits(subject.caller):
        return None
    return starts.begin(subject.caller, subject.data, subject.neighbor, seed, deadline.part(_FIRST_CALLS), most)


def _waited(
    calls: Callable[[], tuple[Samples, str]] | None, subject: Subject
) -> tuple[Samples | None, str, tuple[str, ...]]:
    """First calls where they suffice for a bound, how they differ from later ones, and a remark on them."""
    if calls is None:
        return None, "", () if subject.has_ledger else ("first calls of a process were not made apart",)
    first, differs = calls()
    few = ", too few for a bound" if first.is_cut else ""
    return None if first.is_cut else first, differs, (f"first calls of a process: {len(first.data)} a side{few}",)


def _settled(
    samples: Samples, bounded: Callable[[Samples], ReleaseOutcome], again: Callable[[], Samples | None]
) -> ReleaseOutcome:
    """The outcome of samples; a narrow refutation stands only where fresh ones refute the claim too, at least half as many.

    Else what the fresh ones show is the outcome. So bounds that refute an honest release with probability p at most do so
    with p^2, or with the small share of p at which a refutation is not narrow. What is stated holds at the confidence of one
    sample: fresh bounds are stated only where they do not exceed the claim and first ones did, so that they exceed the truth
    only if the first ones did too. Without time for fresh samples nothing is decided, and stricter bounds are stated.
    """
    outcome = bounded(samples)
    if not outcome.is_narrow or outcome.proofs:
        return outcome
    fresh = again()
    narrow = f"{outcome.quantity} >= {outcome.measured:.6g} at first, narrowly"
    if fresh is None or 2 * len(fresh.data) < len(samples.data):
        return replace(outcome.stricter, unsettled=f"{narrow}, and no time was left to ask again: allow more --seconds")
    repeated = bounded(fresh)
    if repeated.is_refuted:
        return replace(outcome, notes=(*outcome.notes, "fresh runs refute the claim too"))
    return replace(repeated, notes=(*repeated.notes, f"{narrow}, which fresh runs did not repeat"))


def _both(first: Samples, rest: Samples) -> Samples:
    """Samples of two stages, one after the other."""
    return replace(rest, data=joined([first.data, rest.data]), neighbor=joined([first.neighbor, rest.neighbor]))


def watch_subject(
    subject: Subject, stated: Guarantee, level: float, n_runs: int, seed: int, seconds: float, starts: Starts
) -> ReleaseOutcome:
    """The same for a test, without planted faults: runs are watched while they are made, and bounded together at the end.

    Args: as in `audit_subject`, and
      level: probability with which a release that keeps its claim is ever refuted, at most.
      n_runs: on each side, at most; at least 1024.
      seed: root of all seeds.
      starts: a process in which nothing was called yet; a few first calls are compared with later ones.

    Raises:
      BrokenSubject: see `examine`.
    """
    deadline, caller, sides = Deadline.within(seconds), subject.caller, (subject.data, subject.neighbor)
    calls = _asked(starts, subject, seed, deadline, _COMPARED_CALLS)
    shown = "" if subject.has_ledger else exposed(caller, *sides, seed)
    coupling, differs = subject.compare(seed), "" if calls is None else calls()[1]
    watched = watch(caller, *sides, stated, level=level / 2, most_runs=n_runs, seed=seed, seconds=_RUNS * deadline.left)
    outcome = examine(watched.samples, stated, confidence=1 - level / 2, seed=seed, deadline=deadline)
    return replace(
        outcome,
        proofs=(*((shown,) if shown else ()), *((str(watched),) if watched.is_refuted else ())),
        how=subject.how or outcome.how,
        differs=differs,
        coupling=coupling,
        notes=(*subject.notes, *outcome.notes, "no faults were planted"),
    )
