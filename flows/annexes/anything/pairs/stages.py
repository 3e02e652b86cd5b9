"""The audit of a subject on two data sets, in stages: whatever refutes the claim at once ends it.

First calls of processes and the first runs have a share of the failure probability each, so that all stages together hold at
the stated confidence. What an output shows of its own seed is decided by a few runs, without statistics.
"""

from __future__ import annotations

import time
from dataclasses import replace

from bandana.audits.outcome import Effort, Verdict
from bandana.audits.plan import EARLY
from bandana.flows.annexes.anything.outputs.encoding import joined
from bandana.flows.annexes.anything.pairs.exposed import exposed
from bandana.flows.annexes.anything.pairs.outcome import ReleaseOutcome
from bandana.flows.annexes.anything.pairs.release import GIVEN, PARTS, Samples, draw, examine
from bandana.flows.annexes.anything.pairs.release_faults import planted_in
from bandana.flows.annexes.anything.pairs.starts import Starts
from bandana.flows.annexes.anything.pairs.subject import Subject
from bandana.privacy_core import Guarantee

FIRST = 1000
"""Runs of each side that are bounded first."""
_FIRST_CALLS, _RUNS, _FAULTS = 0.35, 0.6, 0.02
"""Shares of the time: of first calls, and of runs; the rest is for what learns from them; and of each planted fault."""
_PARTS = (0.25, 0.125, 1)


def audit_subject(
    subject: Subject, stated: Guarantee, effort: Effort, seconds: float, search: str = "", starts: Starts | None = None
) -> ReleaseOutcome:
    """Runs a subject on its two data sets, bounds the claim from below, and compares the seeds of its generators.

    Args:
      subject: what is run, on which data sets.
      stated: the claim.
      effort: runs on each side, confidence and seed.
      seconds: for the whole audit.
      search: how the neighbor was found, in words; empty where it was given.
      starts: a process in which nothing was called yet; None where there is none.

    Raises:
      BrokenSubject: see `draw` and `examine`.
    """
    begun, caller, sides = time.monotonic(), subject.caller, (subject.data, subject.neighbor)
    shown = "" if subject.has_ledger else exposed(caller, *sides, effort.seed)
    pair = subject.words if search else GIVEN

    def bounded(samples: Samples, share: float, parts: tuple[float, float, int] = PARTS) -> ReleaseOutcome:
        outcome = examine(
            samples,
            stated,
            confidence=effort.confidence,
            seed=effort.seed,
            pair=pair,
            search=search,
            share=share,
            parts=parts,
        )
        return replace(outcome, proofs=(shown,) if shown else ())

    differs, notes = "", subject.notes
    if starts is not None:
        first, differs = starts.first_calls(caller, *sides, effort.seed, _FIRST_CALLS * seconds)
        few = ", too few for a bound" if first.is_cut else ""
        notes = (*notes, f"first calls of a process: {len(first.data)} a side{few}")
        if not first.is_cut:
            outcome = bounded(first, EARLY, _PARTS)
            if outcome.measured > outcome.limit:
                return outcome

    def drawn(n_runs: int, seed: int) -> Samples:
        left = _RUNS * max(0.0, seconds - (time.monotonic() - begun))
        samples = draw(caller, *sides, n_runs, seed, left)
        return replace(samples, how=subject.how or samples.how, notes=(*samples.notes, *notes))

    if effort.replays < 8 * FIRST:
        samples = drawn(effort.replays, effort.seed)
    else:
        pilot = drawn(FIRST, effort.seed)
        outcome = bounded(pilot, EARLY)
        if outcome.verdict is Verdict.FAIL or pilot.is_cut:
            return replace(outcome, notes=("the first runs decide; more would measure more", *outcome.notes))
        rest = drawn(effort.replays - FIRST, effort.seed + 2**32)
        sides_made = [joined([one, other]) for one, other in ((pilot.data, rest.data), (pilot.neighbor, rest.neighbor))]
        samples = replace(rest, data=sides_made[0], neighbor=sides_made[1], seconds=pilot.seconds + rest.seconds)
    outcome = replace(bounded(samples, 1 - 2 * EARLY), differs=differs, coupling=subject.compare(effort.seed))
    if outcome.verdict is not Verdict.NOT_REFUTED:
        return outcome
    tried = planted_in(samples, stated, effort.confidence, effort.seed, _FAULTS * seconds, 1 - 2 * EARLY)
    return replace(outcome, tried=tried)
