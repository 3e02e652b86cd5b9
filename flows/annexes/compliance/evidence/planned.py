"""Bounds that an evidence file must hold: rebuilt from claim, effort and seed, so that one which was left out is missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bandana.audits.bounds import one_run_methods
from bandana.audits.bounds.methods import bounds_on, method_of
from bandana.audits.claims import Quantity
from bandana.audits.neighbors.neighbor import Changed, Neighbor
from bandana.audits.outcome import ACTIONS, DRAWN, ONE_RUN, OUTPUT, TRANSCRIPT, Outcome, StatedBound
from bandana.audits.plan import EARLY, PlannedBound, levels, plan_bounds, plan_release
from bandana.flows.annexes.compliance.evidence.lines import Line, agree
from bandana.privacy_core import PureDP, Relation

_GIVEN = (Relation.GIVEN_PAIR, Relation.USER, Relation.ADD_REMOVE)
"""Relations whose claims are audited as releases, on one pair; of the catalog, users are replaced in their releases."""
_PLACEMENTS = 5
"""Sets of records of a user that an audit tries beside those at its probes, at most."""
_WHAT = "bounds that claim and effort plan"
_MOST_SHOWN = 3


@dataclass(frozen=True)
class _Expected:
    """A bound that must be there; one of the methods, with its parameters, took it."""

    view: str
    quantity: Quantity
    methods: tuple[tuple[str, Mapping[str, Any]], ...]
    levels: tuple[float, ...]
    scores: str | None

    def __str__(self) -> str:
        return f"{self.scores or self.view}: {self.quantity}"

    def differs(self, bound: StatedBound) -> Iterator[str]:
        """Differences of a bound from this one, in words."""
        if not any(bound.method == name and agree(dict(bound.parameters), dict(given)) for name, given in self.methods):
            yield f"{self}: {self.methods[0][0]} with {dict(self.methods[0][1])}"
        if not any(agree(bound.level, level) for level in self.levels):
            yield f"{self}: level {' or '.join(f'{level:.6g}' for level in self.levels)}"


def check_plan(outcome: Outcome) -> list[Line]:
    """Lines on the bounds of one part of an audit: which must be there, how they are taken, and at which level.

    Args:
      outcome: the audit at the claimed budget, or the one at the test budget.
    """
    if not outcome.bounds and outcome.no_number is not None:
        return [Line(_WHAT, "none: scores were NaN", "only a replay can see that", None)]
    expected = list(_expected(outcome))
    wrong = list(_differences(expected, outcome.bounds))
    outcome_of_check = "all there, as planned" if not wrong else "; ".join(wrong[:_MOST_SHOWN])
    outcome_of_check += f"; and {len(wrong) - _MOST_SHOWN} more" if len(wrong) > _MOST_SHOWN else ""
    lines = [Line(_WHAT, str(len(outcome.bounds)), outcome_of_check, not wrong)]
    if unused := sorted({*outcome.scores} - {bound.scores for bound in outcome.bounds}):
        lines.append(Line("scores without a bound", ", ".join(unused), "each score has a bound", False))
    if outcome.events is not None and not is_release(outcome):
        lines.append(_check_pairs(outcome))
    return [*lines, *_absent(outcome)]


def is_release(outcome: Outcome) -> bool:
    """True if one pair was audited, in what a release returns."""
    if outcome.subject.get("kind") == "catalog":  # whose claims may be on users too, and are audited by their releases
        return outcome.is_release
    return outcome.is_release or outcome.subject.get("kind") == "release" or outcome.claim.relation in _GIVEN


def _differences(expected: list[_Expected], bounds: tuple[StatedBound, ...]) -> Iterator[str]:
    left = list(bounds)
    for planned in expected:
        place = next((i for i, bound in enumerate(left) if _is_for(bound, planned)), None)
        if place is None:
            yield f"{planned} is missing"
        else:
            yield from planned.differs(left.pop(place))
    for bound in left:
        yield f"{bound.scores}: {bound.quantity} is not planned"


def _is_for(bound: StatedBound, planned: _Expected) -> bool:
    is_same = bound.view == planned.view and bound.quantity == planned.quantity
    if planned.view == ONE_RUN:
        return is_same and bound.method == planned.methods[0][0]
    return is_same and (planned.scores is None or bound.scores == planned.scores)


def _expected(outcome: Outcome) -> Iterator[_Expected]:
    """Every bound that must be there, as far as the file alone tells; see `_absent`."""
    if is_release(outcome):
        failure = 1 - outcome.effort.confidence
        stages = (1.0, EARLY, 1 - 2 * EARLY)  # samples have one stage; those of an audit share the level
        for index, (quantity, share) in enumerate(plan_release(outcome.claim.stated).items()):
            methods = tuple(bounds_on(quantity, outcome.effort.seed))
            yield _Expected(OUTPUT, quantity, methods, tuple(failure * share * stage for stage in stages), f"output{index}")
    elif outcome.events is None:
        yield from _of_function(outcome)
    else:
        plan = plan_bounds(outcome.claim.stated, outcome.effort.delta, outcome.events)
        shown = {bound.scores for bound in outcome.bounds if bound.view == TRANSCRIPT}
        n_pairs = max(len(shown), len(outcome.about.probes) + 2)  # more where the probes alone give more
        for index in range(n_pairs):
            for planned in plan:
                if planned.view != ONE_RUN:
                    yield _on_pair(planned, index, outcome, outcome.failure * planned.share / n_pairs)
        yield from _of_one_run(outcome, plan)


def _on_pair(planned: PlannedBound, index: int, outcome: Outcome, level: float) -> _Expected:
    method = method_of(planned.quantity, outcome.effort.seed, is_learned=planned.view == ACTIONS)
    return _Expected(planned.view, planned.quantity, (method,), (level,), f"{planned.view}{index}")


def _of_function(outcome: Outcome) -> Iterator[_Expected]:
    """A function's bounds on each pair have scores that are named after what learned them."""
    drawn = [bound for bound in outcome.bounds if bound.scores.startswith(DRAWN)]
    n_pairs = max(1, len({bound.neighbor for bound in outcome.bounds if bound not in drawn}))
    own, seed = Quantity.of(outcome.claim.stated), outcome.effort.seed
    main, rest, on_drawn = levels(outcome.effort.confidence, n_pairs)
    if drawn:
        yield _Expected(ACTIONS, own, tuple(bounds_on(own, seed)), (on_drawn,), f"{DRAWN}0")
    for _ in range(n_pairs):
        for quantity, level in ((own, main), (Quantity("epsilon", outcome.effort.delta), rest)):
            yield _Expected(ACTIONS, quantity, (method_of(quantity, seed, is_learned=True),), (level,), None)


def _of_one_run(outcome: Outcome, plan: tuple[PlannedBound, ...]) -> Iterator[_Expected]:
    shares = [planned.share for planned in plan if planned.view == ONE_RUN]
    taken = {bound.method for bound in outcome.bounds if bound.view == ONE_RUN}
    if not shares or not taken:
        return
    stated = outcome.claim.stated
    is_pure = isinstance(stated, PureDP)
    for name, quantity, parameters, level in one_run_methods.plan(
        len(outcome.scores[ONE_RUN][0]),
        stated if isinstance(stated, PureDP) else outcome.claim.gaussian,
        0.0 if is_pure else outcome.effort.delta,
        outcome.failure * shares[0],
        is_sequential=any("sequential" in method for method in taken),
    ):
        yield _Expected(ONE_RUN, quantity, ((name, parameters),), (level,), ONE_RUN)


def _changes(outcome: Outcome) -> list[Changed | None]:
    """The change of each replayed pair; None where its bounds state several, or none."""
    stated: dict[str, set[Neighbor]] = {}
    for bound in outcome.bounds:
        stated.setdefault(bound.scores.removeprefix(bound.view), set()).add(bound.neighbor)
    n_pairs = len({bound.scores for bound in outcome.bounds if bound.view == TRANSCRIPT})
    pairs = [[*stated.get(str(pair), ())] for pair in range(n_pairs)]
    return [each[0] if len(each) == 1 and isinstance(each[0], Changed) else None for each in pairs]


def _check_pairs(outcome: Outcome) -> Line:
    """The pairs: a canary at each probe, one outside the range at the last, and the least favorable one that was found.

    Where all records of a user differ, some placements are in place of the probes.
    """
    probes, pairs = outcome.about.probes, _changes(outcome)
    records, of_users = [pair.records if pair else () for pair in pairs], outcome.claim.relation is Relation.USER
    outside = next((pair.records for pair in pairs[-2:-1] if pair and pair.is_outside), None)
    wrong = [f"one change in pair {place}" for place, pair in enumerate(pairs) if pair is None]
    # Covariates that change too give up to two more pairs a probe.
    least, most = len(probes) + 2, len(probes) + 2
    if of_users:
        least, most = 3, most + _PLACEMENTS
        wrong += [f"records of one user in pair {place}" for place, mine in enumerate(records) if len(mine) < 2]
    else:
        most += 0 if outcome.claim.relation is Relation.REPLACE_REWARD else 2 * len(probes)
        wrong += [f"record {probe}" for place, probe in enumerate(probes) if records[place : place + 1] != [(probe,)]]
    if not of_users and not probes:
        wrong.append("probes are not stated")
    elif outside is None or not (of_users or outside == probes[-1:]):
        wrong.append("a user outside the range" if of_users else f"record {probes[-1]}, outside the range")
    if not least <= len(pairs) <= most:
        wrong.append(f"{least} pairs" if most == least else f"{least} to {most} pairs")
    what = "all records of one user each" if of_users else f"canaries at {', '.join(map(str, probes))}"
    words = "as stated" if not wrong else f"expected: {'; '.join(wrong)}"
    return Line("pairs of data sets", f"{len(pairs)}, {what}", words, not wrong)


def _absent(outcome: Outcome) -> list[Line]:
    """Bounds of which only the algorithm shows whether they had to be there."""
    views = Counter(bound.view for bound in outcome.bounds)
    if is_release(outcome):
        return []
    if outcome.events is None:
        is_there = any(bound.scores.startswith(DRAWN) for bound in outcome.bounds)
        return [] if is_there else [Line("bound on drawn rewards", "none", "only a replay can see that", None)]
    plan = plan_bounds(outcome.claim.stated, outcome.effort.delta, outcome.events)
    if any(planned.view == ONE_RUN for planned in plan) and not views[ONE_RUN]:
        return [Line("bounds from one run", "none", "only a replay can see that", None)]
    return []
