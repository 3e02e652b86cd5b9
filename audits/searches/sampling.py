"""The search by sampling: replays of neighbors, how many it takes, and how their failure probability is split."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bandana.audits.bounds import power
from bandana.audits.bounds.methods import bound, method_of
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.outcome import ONE_RUN, SAMPLING, Effort, Scores, StatedBound, View
from bandana.audits.plan import PlannedBound, plan_bounds
from bandana.audits.replays.measure import Measurement, NotANumber, measure, measure_one_run
from bandana.audits.searches.request import Finding, Request
from bandana.privacy_core import PureDP
from bandana.privacy_core.accounting import gaussian
from bandana.privacy_core.accounting.accountant import accounted_mu

_POWER_TRIALS = 40
_PARTS, _FEWEST_OF_PART = (32, 8), 2048
_ROUNDING = 1e-6
_MOST_COUNTED = 1 << 21
"""Replays a side up to which the number that would be enough is searched."""


def too_few(claimed: float, level: float, n: int, effort: Effort, planned: PlannedBound) -> tuple[str, ...]:
    """Why bounds from n replays a side can say nothing, in words; empty if they are enough.

    They are too few if no outcome of the replays could refute the claim: then its silence could not speak for it.
    """
    method, parameters = method_of(planned.quantity, effort.seed, is_learned=False)
    times, most = 1, max(2, _MOST_COUNTED // n)
    while times < most and not (
        bound(method, np.full(times * n, -np.inf), np.full(times * n, np.inf), level, **parameters) > claimed
    ):
        times *= 2
    if times == 1:
        return ()
    return (
        f"{effort.replays} replays are too few: at {effort.confidence:.6g} confidence not even a test without errors could "
        f"refute {planned.quantity} = {claimed:.6g}; that needs {'about' if times < most else 'more than'} "
        f"{times * effort.replays}",
    )


class Sampling:
    """Replays of neighbors, and the bounds that they certify."""

    name = SAMPLING

    def examine(self, request: Request) -> Finding:
        """Takes all planned bounds on all pairs; for planted faults only those that decide, until one is above the limit."""
        enough = request.limit if request.until_caught else math.inf
        bounds: tuple[StatedBound, ...] = ()
        scores: Scores = {}
        no_number: View | None = None
        algorithm, measured = request.trial.algorithm, 0.0
        for effort, plan, share in _attempts(request):
            try:
                every = [effort.replays] * (len(request.canaries) + 1) if request.until_caught else request.replays
                several = measure(algorithm, _pairs(request), effort, plan, failure=share, replays=every, enough=enough)
            except NotANumber as error:
                bounds, scores, no_number = (), {}, error.view
                break
            single = _in_one_run(request, plan, share)
            bounds, scores = (*several.bounds, *single.bounds), {**several.scores, **single.scores}
            measured = max(measured, several.lower(plan[0].quantity))
            if measured > enough:
                break
        is_caught = measured > request.limit
        if request.until_caught:
            return Finding(is_caught, measured=measured)
        return Finding(is_caught, bounds, scores, measured, power_of(request), foreseen(request), no_number)


def foreseen(request: Request) -> tuple[str, ...]:
    """Why the request's replays can say nothing, known before one is played; empty if they are enough.

    At a test budget what is accounted must be in reach of the bounds too: one above that breaks the verdict.
    """
    planned, claimed = _attempts(request)[0][1][0], request.claimed
    reach = min(claimed, request.accounted or claimed) if request.trial.is_test_budget else claimed
    return too_few(reach, _level(request), request.effort.replays, request.effort, planned)


def _level(request: Request) -> float:
    """Level of the bound that decides, on each pair."""
    return request.failure * _attempts(request)[0][1][0].share / (len(request.canaries) + 1)


def _attempts(request: Request) -> list[tuple[Effort, tuple[PlannedBound, ...], float]]:
    """Measurements in turn, with their shares of the failure probability, of which the last one has half.

    For planted faults that is parts of the replays, then all, as most are caught with the first. One that replays need not
    catch is looked for with parts alone.
    """
    effort, plan = request.effort, plan_bounds(request.trial.claim.stated, request.effort.delta, request.events)
    if not request.until_caught:
        return [(effort, plan, request.failure)]
    plan = tuple(planned for planned in plan if planned.quantity == plan[0].quantity and planned.view != ONE_RUN)
    parts = [effort.replays // part for part in _PARTS if effort.replays >= part * _FEWEST_OF_PART]
    tries = [(replace(effort, replays=part), plan[:1]) for part in parts]
    if SAMPLING in request.must_catch or not parts:
        tries.append((effort, plan))
    early, half = len(tries) - 1, request.failure / 2
    shares = [half / early] * early + [half] if early else [request.failure]
    return [(*tried, share) for tried, share in zip(tries, shares, strict=True)]


def _pairs(request: Request) -> Iterator[Pair]:
    """All pairs; for planted faults first those on which exact losses show most.

    The order changes no bound, and one above the limit comes sooner. What replays need not catch is sought on the first.
    """
    pairs, is_last = request.canaries, True  # the least favorable one last, and sought where it is needed
    if request.until_caught:
        pairs = tuple(pairs[i] for i in sorted(range(len(pairs)), key=lambda i: -request.shown[i]))
        is_last = max(request.shown) > min(request.trial.claim.gaussian.mu, accounted_mu(request.events)) * (1 + _ROUNDING)
        pairs = pairs if is_last else (request.least_favorable.pair, *pairs)
        if SAMPLING not in request.must_catch:
            pairs, is_last = pairs[:1], False
    yield from pairs
    if is_last:
        yield request.least_favorable.pair


def _in_one_run(request: Request, plan: tuple[PlannedBound, ...], failure: float) -> Measurement:
    """The bounds from one run in which every user is a canary, where they are planned."""
    trial, stated = request.trial, request.trial.claim.stated
    shares = [planned.share for planned in plan if planned.view == ONE_RUN]
    if not shares:
        return Measurement((), {})
    claim = stated if isinstance(stated, PureDP) else trial.claim.gaussian
    return measure_one_run(trial.algorithm, trial.table, claim, request.effort, failure * shares[0])


def power_of(request: Request) -> float:
    """The smallest factor in the main quantity that is caught on the least favorable pair; infinite if it shows nothing."""
    worst, main, known = request.least_favorable, request.main, (_level(request), request.claimed, request.effort.replays)
    if request.claimed == math.inf:
        return math.inf
    shown, pure = worst.mu_analytic, worst.epsilon_analytic
    if main.name == "epsilon" and (not main.delta or math.isfinite(pure)):
        shown = gaussian.mu_of(pure, main.delta) if main.delta and pure else pure
    method, parameters = method_of(main, request.effort.seed, is_learned=False)
    return power.smallest_factor_caught(
        method, parameters, *known, n_trials=_POWER_TRIALS, shown=shown, n_parts=worst.n_parts
    )
