"""The audit of a release as any other audit is kept: with scores, bounds and planted faults, for evidence and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bandana.algorithms.entry import Claim
from bandana.audits.bounds import power
from bandana.audits.coverage import Coverage
from bandana.audits.external.releases.audit import reach_of
from bandana.audits.external.releases.outcome import ReleaseOutcome
from bandana.audits.outcome import MIN_REPLAYS, SAMPLING, Effort, Outcome, TriedControl

_DEFAULT_DELTA = 1e-5
_SIMULATED, _TRIALS = 2048, 20
"""Runs and audits of the simulated power: few, which overstates the smallest fault, as a release is audited in seconds."""


def recorded(found: ReleaseOutcome, claim: Claim, subject: Mapping[str, str], about: Mapping[str, str]) -> Outcome:
    """The same verdict in the form that evidence files and reports keep.

    Two planted faults stand for all: a release that always tells its side, and one that tells it as seldom as the coverage
    says could be seen. Their bounds follow from the number of runs alone.

    Args:
      found: the audit.
      claim: what was claimed, with its neighbors.
      subject: kind, name and source of the release.
      about: what a reader needs to repeat the audit.
    """
    bound, n = found.bound, len(found.scores[0])
    told = [("revealed-always", "the output always reveals its data set", found.reach)]
    if found.rarest is not None and found.rarest < 1:
        seen = reach_of(found.quantity, found.seed, bound.level, n, found.rarest)
        told.append(("revealed-seldom", f"the output reveals it with probability {found.rarest:.2g}", seen))
    controls = [
        TriedControl(name, fault, (SAMPLING,), (SAMPLING,) if reach > found.limit else (), reach, found.limit)
        for name, fault, reach in told
    ]
    simulated = min(n, _SIMULATED)
    smallest = power.smallest_factor_caught(
        bound.method, bound.parameters, bound.level, found.limit, simulated, n_trials=_TRIALS
    )
    return Outcome(
        subject=subject,
        claim=replace(claim, statement=f"the output is {claim.stated}"),
        effort=Effort(
            max(found.n_runs, MIN_REPLAYS), found.confidence, found.quantity.delta or _DEFAULT_DELTA, 1, found.seed
        ),
        failure=1 - found.confidence,
        bounds=(bound,),
        scores={bound.scores: found.scores},
        events=None,
        counterexample=None,
        noise_finding="; ".join(found.frozen.findings) or None if found.frozen is not None else None,
        controls=tuple(controls),
        power=smallest,
        caveats=found.caveats,
        about=about,
        coverage=Coverage.in_words(found.coverage),
    )
