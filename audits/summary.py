"""An audit's outcome as the entry that the report shows: plain numbers and words, no infinity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.audits.claims import Quantity
from bandana.audits.opening import opened
from bandana.audits.outcome import MU, ONE_RUN, Outcome, StatedBound, TriedControl
from bandana.privacy_core import BoundedEvent, Event, GaussianDP, GaussianEvent, LaplaceEvent

_POINTS = 101
_VIEW_OF_ADVERSARY = "every released value and every action"


def summarize(outcome: Outcome, about: Mapping[str, Any]) -> Any:
    """One entry of the report's `audits`, an `AuditEntry` if `about` is whole.

    Args:
      outcome: the audit.
      about: label, algorithm, calibration, privacy_model and parameters.
    """
    claim, effort = outcome.claim, outcome.effort
    inner = outcome.at_test_budget
    return {
        **about,
        "unit": claim.unit,
        "relation": claim.relation.value,
        "view_of_adversary": _view(outcome),
        "claim": {
            "statement": claim.statement,
            "theorem": claim.theorem,
            "source": claim.source,
            "mu": finite(claim.gaussian.mu),
        },
        "delta": effort.delta,
        "main": _main(outcome),
        "mu": three_of(outcome, MU),
        "epsilon": _epsilons(outcome),
        "measured_epsilon": _measured_epsilons(outcome),
        "accountant": {
            "method": "exact Gaussian DP; pure events as the GDP guarantee that they imply",
            "formula": "mu = sqrt(sum of mu_i^2) over the charges whose span holds the worst record",
            "events": [_event(event, count) for event, count in outcome.events or ()],
            "noise_source": outcome.about.noise_source,
            "text": "Each charge carries the span of records that its exact value reads; the worst record is the one whose "
            "charges compose to the most.",
        },
        "measurement": {
            "confidence": effort.confidence,
            "replays_per_side": effort.replays,
            "seed": effort.seed,
            "table": outcome.about.table,
            "bounds": [
                _bound(part, bound, part is inner) for part in (outcome, inner) if part is not None for bound in part.bounds
            ],
            "smallest_factor": finite((inner or outcome).power),
            "smallest_factor_at_claim": finite(outcome.power),
            "test_budget": None if inner is None else {"claim": str(inner.claim.stated), "main": _main(inner)},
            "text": "What an attack learns from, and what chooses between attacks, is never counted in its bound. The "
            "bounds of both budgets hold together at the stated confidence. A bound on mu assumes that the promise is a "
            "Gaussian-DP one; all others assume nothing.",
        },
        "deterministic": {
            "examples": 0 if outcome.events is None else effort.examples,
            "counterexample": outcome.counterexample or (None if inner is None else inner.counterexample),
            "noise_finding": outcome.noise_finding or (None if inner is None else inner.noise_finding),
        },
        "controls": [_control(control) for control in outcome.all_controls],
        "rounds": _rounds(outcome),
        "tradeoff": _tradeoff(outcome),
        "coverage": [line.strip() for line in opened(str(about.get("label", "it")), outcome)],
        "verdict": outcome.verdict.value,
        "reasons": list(outcome.reasons),
    }


def _rounds(outcome: Outcome) -> dict[str, int] | None:
    """Rounds that were replayed and walked."""
    coverage = outcome.coverage
    return None if coverage is None or coverage.words else {"replayed": coverage.rounds, "walked": coverage.walked}


def _view(outcome: Outcome) -> str:
    if outcome.is_release:
        return "the output of one run"
    return _VIEW_OF_ADVERSARY if outcome.events is not None else "the actions of all other users"


def three_of(outcome: Outcome, quantity: Quantity) -> dict[str, float | None]:
    """Claimed, accounted and measured of a quantity; None for what is infinite or was not bounded."""
    three = outcome.numbers.get(quantity)
    if three is None:
        return {"claimed": None, "accounted": None, "measured": None}
    accounted = None if three.accounted is None else finite(three.accounted)
    return {"claimed": finite(three.claimed), "accounted": accounted, "measured": finite(three.measured)}


def _main(outcome: Outcome) -> dict[str, object]:
    """Main quantity of the claim, and its three numbers."""
    return {"quantity": str(outcome.main), **three_of(outcome, outcome.main)}


def _epsilons(outcome: Outcome) -> dict[str, float | None]:
    """Epsilon at the audit's delta; measured is the larger of the direct bound and, for Gaussian noise, mu's."""
    three = three_of(outcome, Quantity("epsilon", outcome.effort.delta))
    return {**three, "measured": max((v for v in _measured_epsilons(outcome).values() if v is not None), default=None)}


def _measured_epsilons(outcome: Outcome) -> dict[str, float | None]:
    """The measured epsilon by what it assumes: nothing, or that the promise is a Gaussian-DP one."""
    delta = outcome.effort.delta
    mu = outcome.numbers.get(MU) if outcome.is_gaussian else None
    return {
        "unconditional": three_of(outcome, Quantity("epsilon", delta))["measured"],
        "gaussian": None if mu is None else finite(epsilon_of(mu.measured, delta)),
    }


def epsilon_of(mu: float, delta: float) -> float:
    """Epsilon at delta of mu-GDP; 0 at mu = 0, infinite at infinity."""
    if not math.isfinite(mu):
        return math.inf
    return GaussianDP(mu).epsilon(delta) if mu > 0 else 0.0


def finite(value: float) -> float | None:
    """The number, or None where it is infinite: JSON and MLflow know no infinity."""
    return value if math.isfinite(value) else None


def _event(event: Event, count: int) -> dict[str, object]:
    return {
        "event": type(event).__name__.removesuffix("Event"),
        "noise_multiplier": event.noise_multiplier if isinstance(event, GaussianEvent | LaplaceEvent) else None,
        "mu": event.mu if isinstance(event, GaussianEvent) else None,
        "epsilon": event.epsilon if isinstance(event, BoundedEvent) else None,
        "count": count,
    }


def _bound(outcome: Outcome, bound: StatedBound, is_test: bool) -> dict[str, object]:
    first, second = outcome.scores[bound.scores]
    sizes = ((second == 0).sum(), (second == 1).sum()) if bound.view == ONE_RUN else (len(first), len(second))
    return {
        "budget": "test" if is_test else "claimed",
        "view": str(bound.view),
        "attack": bound.attack,
        "neighbor": str(bound.neighbor),
        "quantity": str(bound.quantity),
        "method": bound.method,
        "lower": finite(bound.lower),
        "claimed": finite(outcome.numbers[bound.quantity].claimed),
        "level": bound.level,
        "n_data": int(sizes[0]),
        "n_neighbor": int(sizes[1]),
    }


def _control(control: TriedControl) -> dict[str, object]:
    return {
        "name": control.name,
        "fault": control.fault,
        "expected": list(control.expected),
        "caught_by": list(control.caught_by),
        "measured": finite(control.measured),
        "limit": finite(control.limit),
        "caught": control.is_caught,
    }


def _tradeoff(outcome: Outcome) -> dict[str, object] | None:
    best = max((b for b in outcome.bounds if b.quantity == MU), key=lambda b: b.lower, default=None)
    if best is None or best.view == ONE_RUN:
        return None
    return tradeoff(*outcome.scores[best.scores], outcome.claim.gaussian, best.lower)


def tradeoff(data: FloatArray, neighbor: FloatArray, claim: GaussianDP, mu_lower: float) -> dict[str, object]:
    """The trade-off curves: claimed, as measured by the sharpest attack, and of the certified mu.

    Args:
      data: (n,) scores of the data set.
      neighbor: (n,) scores of the neighbor.
      claim: the promise.
      mu_lower: the certified bound.
    """
    fpr = np.linspace(0.0, 1.0, _POINTS)
    quantiles = np.sort(data)[::-1]
    picks = np.minimum((fpr * len(data)).astype(int), len(data) - 1)
    measured = np.searchsorted(np.sort(neighbor), quantiles[picks], side="left") / len(neighbor)
    certified = GaussianDP(mu_lower).tradeoff(fpr) if mu_lower > 0 else 1 - fpr
    return {
        "fpr": fpr.tolist(),
        "claimed": claim.tradeoff(fpr).tolist(),
        "measured": measured.tolist(),
        "lower_bound": certified.tolist(),
        "mu_lower": mu_lower,
    }
