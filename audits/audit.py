"""One audit: a claim, what the accountant derives, what replays measured, and whether the audit could have seen a fault."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from bandana.audits.bounds import power
from bandana.audits.faults.fault import Control
from bandana.audits.neighbors import worst_pair
from bandana.audits.neighbors.pairs import Pair, canary_pairs
from bandana.audits.outcome import (
    DETERMINISTIC,
    MU,
    NOISE,
    ONE_RUN,
    SAMPLING,
    Effort,
    Outcome,
    TriedControl,
    accounted_as,
    main_quantity,
)
from bandana.audits.replays.measure import NotANumber, PlannedBound, measure, measure_one_run, method_of, plan_bounds
from bandana.audits.searches.deterministic import book_limit, search_trial
from bandana.audits.searches.noise import examine_noise
from bandana.audits.searches.sampling import POWER_TRIALS, attempts, promise, too_few
from bandana.audits.seeds import derive
from bandana.audits.trial import OnProgress, Trial
from bandana.privacy_core import PureDP


def audit(
    trial: Trial,
    controls: tuple[Control, ...],
    effort: Effort,
    *,
    at_test_budget: Trial | None = None,
    subject: Mapping[str, str] | None = None,
    about: Mapping[str, str] | None = None,
    caveats: tuple[str, ...] = (),
    on_progress: OnProgress = lambda what: None,
) -> Outcome:
    """Audits one algorithm and its planted faults, and reaches a verdict (see `Outcome.verdict`).

    FAIL if a bound exceeds the claim or what is accounted, the accountant derives more than the claim, the deterministic
    audit finds a counterexample, or the noise is not what is declared. Otherwise INCONCLUSIVE if some planted fault was
    not caught by the audits that must catch it, with the same effort, or anything else leaves the silence without meaning.
    Otherwise PASS.

    Where the claim is so weak or so strong that factors cannot be seen at this effort, the same algorithm is also audited
    at a test budget: noise scales linearly, so that a fault of its size, span or sensitivity has the same factor there. The
    failure probability is split evenly between both, and the faults are planted at the test budget.

    Args:
      trial: what to audit, at the claimed budget.
      controls: its planted faults.
      effort: replays, confidence and examples.
      at_test_budget: the same algorithm at a budget of about mu = 1.
      subject: kind, name and source of the algorithm.
      about: table, seeds, noise source, code: what a reader needs to repeat the audit.
      caveats: what is known to leave the outcome without meaning, in words.
      on_progress: called with a name as each part is done.
    """
    share = (1 - effort.confidence) / (1 if at_test_budget is None else 2)
    notes = {**(about or {})}
    if harmless := [control.name for control in controls if not control.is_fault(trial.algorithm)]:
        notes["not planted, as they are no faults here"] = ", ".join(harmless)
        controls = tuple(control for control in controls if control.name not in harmless)
    described = {"subject": subject or {}, "about": notes}
    inner = None
    if at_test_budget is not None:
        # Its claim is made as weak as its noise needs: what must be in reach there is what is spent.
        inner = _examine(
            at_test_budget,
            controls,
            effort,
            share,
            (),
            lambda what: on_progress(f"test budget: {what}"),
            is_spent_enough=True,
        )
        inner = replace(inner, **described)  # type: ignore[arg-type]
    outer = _examine(trial, controls if inner is None else (), effort, share, caveats, on_progress)
    return replace(outer, **described, at_test_budget=inner)  # type: ignore[arg-type]


def _examine(
    trial: Trial,
    controls: tuple[Control, ...],
    effort: Effort,
    failure: float,
    caveats: tuple[str, ...],
    on_progress: OnProgress,
    is_spent_enough: bool = False,
) -> Outcome:
    algorithm, claim, table = trial.algorithm, trial.claim, trial.table
    plan = plan_bounds(claim.stated, effort.delta)
    canaries = canary_pairs(table, trial.probes, trial.private_records)
    worst = worst_pair.find(algorithm, table, trial.probes, effort.seed, trial.private_records)
    pairs = (*canaries, worst.pair)
    on_progress("search for the least favorable pair")
    events = derive(algorithm, table, effort.seed)
    main = main_quantity(claim.stated)
    claimed = claim.gaussian.mu if main == MU else main.limit(claim.stated)
    try:
        found = measure(algorithm, pairs, effort, plan, failure=failure)
        bounds, scores = found.bounds, dict(found.scores)
        for planned in plan:
            if planned.view == ONE_RUN:
                promise = claim.stated if isinstance(claim.stated, PureDP) else claim.gaussian
                single = measure_one_run(algorithm, table, promise, effort, failure * planned.share)
                bounds, scores = (*bounds, *single.bounds), scores | dict(single.scores)
    except NotANumber as error:
        bounds, scores, caveats = (), {}, (*caveats, str(error))
    on_progress("replays")
    level = failure * plan[0].share / len(pairs)
    # A bound above what is accounted breaks the verdict too.
    reach = min(claimed, accounted_as(main, events) or claimed) if is_spent_enough else claimed
    caveats += too_few(reach, level, effort.replays, effort, plan[0])
    counterexample = search_trial(trial, lambda: worst.pair, book_limit(claim, events), effort, shrinks=True)
    on_progress("deterministic audit")
    noise_finding = examine_noise(algorithm, table, effort.seed)
    on_progress("audit of the noise")
    method, parameters = method_of(main, effort.seed, is_learned=False)
    reached = min(1.0, (worst.mu_analytic if main == MU else worst.epsilon_analytic) / claimed)
    factor = math.inf
    if reached > 0:
        factor = power.smallest_factor_caught(
            method, parameters, level, claimed, effort.replays, reached=reached, n_trials=POWER_TRIALS
        )
    on_progress("power")
    tried = []
    for control in controls:
        tried.append(_try(control, trial, plan, effort, failure))
        on_progress(control.name)
    return Outcome(
        subject={},
        claim=claim,
        effort=effort,
        failure=failure,
        bounds=bounds,
        scores=scores,
        events=events,
        counterexample=None if counterexample is None else counterexample.describe(),
        noise_finding=noise_finding,
        controls=tuple(tried),
        power=factor,
        caveats=caveats,
    )


def _try(control: Control, trial: Trial, plan: tuple[PlannedBound, ...], effort: Effort, failure: float) -> TriedControl:
    """Plants a fault and looks no harder than at the honest one; it is caught where an inequality of the verdict breaks."""
    faulty = replace(trial, algorithm=control.plant(trial.algorithm))  # type: ignore[arg-type]
    main = plan[0].quantity
    events = derive(faulty.algorithm, trial.table, effort.seed)
    claimed = trial.claim.gaussian.mu if main == MU else main.limit(trial.claim.stated)
    limit, measured = min(claimed, accounted_as(main, events)), 0.0
    canaries = canary_pairs(trial.table, trial.probes, trial.private_records)

    @cache
    def worst() -> Pair:
        return worst_pair.find(faulty.algorithm, trial.table, trial.probes, effort.seed, trial.private_records).pair

    # The order changes no bound; one that is enough comes sooner.
    told = [promise(faulty.algorithm, pair, effort.seed) for pair in canaries]
    by_promise = [canaries[i] for i in sorted(range(len(canaries)), key=lambda i: -told[i])]

    def pairs() -> Iterator[Pair]:
        if max(told) > limit:
            yield from by_promise
            yield worst()
        else:
            yield worst()
            yield from by_promise

    asked = tuple(planned for planned in plan if planned.quantity == main and planned.view != ONE_RUN)
    tries = attempts(effort, asked)
    for part, seen in tries:
        share = failure / len(tries)
        try:
            found = measure(faulty.algorithm, pairs(), part, seen, failure=share, n_pairs=len(canaries) + 1, enough=limit)
        except NotANumber:
            break
        measured = max(measured, found.lower(main))
        if measured > limit:
            break
    caught = [SAMPLING] if measured > limit else []
    book = book_limit(trial.claim, events)
    if DETERMINISTIC in control.caught_by and search_trial(faulty, worst, book, effort, shrinks=False) is not None:
        caught.append(DETERMINISTIC)
    if NOISE in control.caught_by and examine_noise(faulty.algorithm, trial.table, effort.seed) is not None:
        caught.append(NOISE)
    return TriedControl(control.name, control.fault, control.caught_by, tuple(caught), measured, limit)
