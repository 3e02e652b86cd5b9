"""An audit's outcome as the entry that the report shows: plain numbers and words, no infinity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from algorithms.protocol import FloatArray
from audits.audit import AuditResult, Bound, ControlResult
from privacy_core import Event, GaussianDP, GaussianEvent, LaplaceEvent

_POINTS = 101


def summarize(result: AuditResult, about: dict[str, Any], table: str, noise_source: str) -> dict[str, Any]:
    """One entry of the report's `audits`.

    Args:
      result: the audit.
      about: label, algorithm, calibration, privacy_model and parameters.
      table: the data that were replayed, in words.
      noise_source: where the noise came from.
    """
    claim, effort, measurement = result.claim, result.effort, result.measurement
    mu = {"claimed": claim.gaussian.mu, "accounted": result.mu_accounted, "measured": measurement.mu}
    return {
        **about,
        "unit": claim.unit,
        "relation": claim.relation.value,
        "view_of_adversary": "every released noisy sum and every action",
        "claim": {
            "statement": claim.statement,
            "theorem": claim.theorem,
            "source": claim.source,
            "mu": claim.gaussian.mu,
        },
        "delta": effort.delta,
        "mu": {name: finite(value) for name, value in mu.items()},
        "epsilon": {name: epsilon_of(value, effort.delta) for name, value in mu.items()},
        "accountant": {
            "method": "exact Gaussian DP",
            "formula": "mu = sqrt(sum of mu_i^2) over the charges whose span holds the worst record",
            "events": [_event(event, count) for event, count in result.events],
            "noise_source": noise_source,
            "text": "Each charge carries the span of records that its exact value reads; the worst record is the one whose "
            "charges compose to the most.",
        },
        "measurement": {
            "confidence": effort.confidence,
            "replays_per_side": effort.replays,
            "seed": effort.seed,
            "table": table,
            "bounds": [_bound(bound) for bound in measurement.bounds],
            "text": "Thresholds were chosen, and the learned attack was taught, on one half of the replays; the bounds were "
            "taken on the other half and hold together at the stated confidence. A bound on mu assumes that the promise is "
            "a Gaussian-DP one; a bound on epsilon assumes nothing.",
        },
        "structural": {
            "examples": effort.examples,
            "counterexample": None if result.counterexample is None else str(result.counterexample),
        },
        "controls": [_control(control) for control in result.controls],
        "tradeoff": tradeoff(*measurement.best, claim.gaussian, measurement.mu),
        "verdict": result.verdict.value,
        "reasons": list(result.reasons),
    }


def finite(value: float) -> float | None:
    """The number, or None where it is infinite: JSON and MLflow know no infinity."""
    return value if math.isfinite(value) else None


def epsilon_of(mu: float, delta: float) -> float | None:
    """Epsilon at delta of mu-GDP; 0 at mu = 0, None at infinity."""
    if not math.isfinite(mu):
        return None
    return GaussianDP(mu).epsilon(delta) if mu > 0 else 0.0


def _event(event: Event, count: int) -> dict[str, Any]:
    return {
        "event": type(event).__name__.removesuffix("Event"),
        "noise_multiplier": event.noise_multiplier if isinstance(event, GaussianEvent | LaplaceEvent) else None,
        "mu": event.mu if isinstance(event, GaussianEvent) else None,
        "epsilon": event.epsilon if isinstance(event, LaplaceEvent) else None,
        "count": count,
    }


def _bound(bound: Bound) -> dict[str, Any]:
    errors = bound.errors
    return {
        "view": bound.view,
        "attack": bound.attack,
        "neighbor": bound.neighbor,
        "mu_lower": bound.mu_lower,
        "epsilon_lower": bound.epsilon_lower,
        "threshold": finite(errors.threshold),
        "false_positives": errors.false_positives,
        "false_negatives": errors.false_negatives,
        "n_negative": errors.n_data,
        "n_positive": errors.n_neighbor,
    }


def _control(result: ControlResult) -> dict[str, Any]:
    return {
        "name": result.control.name,
        "fault": result.control.fault,
        "expected": list(result.control.caught_by),
        "caught_by": list(result.caught_by),
        "mu_measured": result.mu_measured,
        "caught": result.is_caught,
    }


def tradeoff(data: FloatArray, neighbor: FloatArray, claim: GaussianDP, mu_lower: float) -> dict[str, Any]:
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
