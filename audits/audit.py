"""One audit: the same searches examine an algorithm and its planted faults, and a verdict follows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from bandana.audits.faults.fault import Control
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING, Effort, Outcome, Setup, TriedControl
from bandana.audits.searches.deterministic import Deterministic
from bandana.audits.searches.noise import Noise
from bandana.audits.searches.request import Finding, Request, Search
from bandana.audits.searches.sampling import Sampling
from bandana.audits.trial import Audited, Trial

Recall = Callable[[tuple[str, ...], Callable[[], Outcome]], Outcome]
"""Names of the faults that are planted, and what audits at the test budget -> its outcome, kept from before or made now."""

SEARCHES: tuple[Search, ...] = (Sampling(), Deterministic(), Noise())


def audit(
    trial: Trial,
    controls: tuple[Control, ...],
    effort: Effort,
    *,
    at_test_budget: Trial | None = None,
    subject: Mapping[str, str] | None = None,
    about: Setup | None = None,
    caveats: tuple[str, ...] = (),
    recall: Recall = lambda planted, make: make(),
) -> Outcome:
    """Audits one algorithm and its planted faults, and reaches a verdict (see `Outcome.verdict`).

    FAIL if a bound exceeds the claim or what is accounted, the accountant derives more than the claim, the deterministic
    audit finds a counterexample, or the noise is not what is declared. Otherwise INCONCLUSIVE if some planted fault was
    not caught by the audits that must catch it, with the same effort, or anything else leaves the silence without meaning.
    Otherwise PASS.

    Where the claim is so weak or so strong that factors cannot be seen at this effort, the same algorithm is also audited
    at a test budget: noise scales linearly, so that a fault of its size, span or sensitivity has the same factor there. The
    failure probability is split evenly between both, and the faults are planted at the test budget.

    Args: the fields of `bandana.audits.trial.Audited`, and
      effort: replays, confidence and examples.
      at_test_budget: the same algorithm at a budget of about mu = 1.
      recall: answers with the outcome at the test budget, which several claims may have in common; by default it is made.
    """
    share = (1 - effort.confidence) / (1 if at_test_budget is None else 2)
    audited = Audited(trial, at_test_budget, controls, subject or {}, about or Setup())
    controls, notes = audited.planted, audited.notes

    inner = None
    if at_test_budget is not None:
        weak = Request(replace(at_test_budget, is_test_budget=True), effort, share)
        inner = recall(tuple(control.name for control in controls), lambda: _examine(weak, controls))
        inner = replace(inner, subject=subject or {}, about=notes)
    outer = _examine(Request(trial, effort, share), controls if inner is None else ())
    return replace(outer, subject=subject or {}, about=notes, caveats=(*caveats, *outer.caveats), at_test_budget=inner)


def _examine(request: Request, controls: tuple[Control, ...]) -> Outcome:
    """Examines an algorithm and each planted fault by the same searches, with the same effort."""
    findings = _search(request, [search.name for search in SEARCHES])
    tried = [try_control(request, control) for control in controls]
    sampling = findings[SAMPLING]
    return Outcome(
        subject={},
        claim=request.trial.claim,
        effort=request.effort,
        failure=request.failure,
        bounds=sampling.bounds,
        scores=sampling.scores,
        events=request.events,
        counterexample=findings[DETERMINISTIC].counterexample,
        noise_finding=findings[NOISE].noise_finding,
        coverage=findings[DETERMINISTIC].coverage,
        controls=tuple(tried),
        power=sampling.power,
        caveats=sampling.caveats,
        no_number=sampling.no_number,
    )


def try_control(request: Request, control: Control) -> TriedControl:
    """Plants one fault into the honest algorithm of a request, and looks for it with the same effort.

    Replays look for every fault that leaves something to see; for one that others must catch, with a part of the effort.
    """
    planted = replace(request, trial=request.trial.planted(control), until_caught=True, must_catch=control.caught_by)
    findings = _search(planted, (*((SAMPLING,) if control.is_sampled else ()), *control.caught_by))
    caught_by = tuple(name for name, finding in findings.items() if finding.is_caught)
    measured = findings[SAMPLING].measured if SAMPLING in findings else 0.0
    return TriedControl(control.name, control.fault, control.caught_by, caught_by, measured, planted.limit)


def _search(request: Request, names: Collection[str]) -> dict[str, Finding]:
    """Name -> what each of the named searches finds."""
    return {search.name: search.examine(request) for search in SEARCHES if search.name in names}
