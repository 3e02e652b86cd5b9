"""Guarantees derived from the events that touch one record, and the noise that keeps a given guarantee.

The core accountant is exact where exactness exists: Gaussians compose to one mu = sqrt(sum mu_i^2) (Dong, Roth, Su 2022,
Corollary 3.3), also when each is chosen after the outputs before it. Pure events add. Everything else is a `PrivacyCurve`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy.optimize import brentq

from bandana.privacy_core.accounting.curve import PrivacyCurve
from bandana.privacy_core.accounting.events import (
    BoundedEvent,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NearlyGaussianEvent,
    NonPrivateEvent,
)
from bandana.privacy_core.accounting.guarantees import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    NoPrivacy,
    PureDP,
    Relation,
    RenyiDP,
    TrustModel,
)
from bandana.privacy_core.accounting.spending import cost_of, gdp_of, limit_of
from bandana.privacy_core.accounting.structures import Releases, Structure
from bandana.privacy_core.checks import at_least, positive, probability

_NEVER_LESS = 1 + 1e-12


def account(
    events: Mapping[Event, int], *, relation: Relation = Relation.REPLACE_RECORD, trust: TrustModel = TrustModel.CENTRAL
) -> Guarantee | PrivacyCurve | None:
    """The guarantee of one record that the given events touch.

    Args:
      events: event -> how often it touches the record.
      relation: which data sets are neighbors.
      trust: who sees the data.

    Returns:
      `GaussianDP` if all events are Gaussian, `PureDP` if all are of pure DP (basic composition), `ZCDP` if Gaussian and
      concentrated ones meet, `NoPrivacy` if one is non-private, a `PrivacyCurve` otherwise; None without any event.

    Raises:
      ValueError: a count is below 1.
    """
    for event, count in events.items():
        at_least(f"the count of {event}", count, 1)
    if not events:
        return None
    if any(isinstance(event, NonPrivateEvent) for event in events):
        return NoPrivacy(relation=relation, trust=trust)
    if any(isinstance(event, NearlyGaussianEvent) for event in events):
        return PrivacyCurve.of(events, relation=relation, trust=trust)
    if all(isinstance(event, GaussianEvent) for event in events):
        mu = math.sqrt(math.fsum(2 * event.rho * count for event, count in events.items()))
        return GaussianDP(mu, relation=relation, trust=trust)
    if all(isinstance(event, BoundedEvent) for event in events):
        pure = sum(event.epsilon * count for event, count in events.items() if isinstance(event, BoundedEvent))
        return PureDP(pure, relation=relation, trust=trust)
    if all(isinstance(event, GaussianEvent | ConcentratedEvent) for event in events):
        return ZCDP(sum(event.rho * count for event, count in events.items()), relation=relation, trust=trust)
    return PrivacyCurve.of(events, relation=relation, trust=trust)


def calibrate(guarantee: Guarantee, structure: Structure | int = 1) -> float:
    """The smallest noise multiplier with which the structure keeps the guarantee; never less private than asked.

    Args:
      guarantee: `PureDP` is met by Laplace noise, all others by Gaussian noise; a `Mixture` has its own kinds of noise.
      structure: `Releases(k)`, or k itself; `Tree`, `Factorized`, `Mixture`. A joint statistic is one release.

    Returns:
      The noise multiplier, rounded up by one part in 1e12; for a `Mixture` the factor on each part's multiplier.

    Raises:
      ValueError: a number of releases below 1, or a guarantee that no noise of that structure keeps.

    Source: Gaussian, Balle and Wang (2018) and mu = sqrt(2 epsilon / alpha) for RDP (Mironov 2017, Corollary 3), with
    k releases composing to mu sqrt k; Laplace, basic composition; mixtures, by root finding on what `PrivacyCurve` answers.
    """
    if isinstance(structure, int | float | np.number):
        structure = Releases(at_least("releases", structure, 1))
    noise = LaplaceEvent if isinstance(guarantee, PureDP) else GaussianEvent
    unit = structure.events(1.0, noise)
    if isinstance(guarantee, ApproxDP):
        if all(isinstance(event, GaussianEvent) for event in unit):
            return calibrate(GaussianDP.from_epsilon_delta(guarantee.epsilon, guarantee.delta), structure)
        return _solve(lambda m: PrivacyCurve.of(structure.events(m, noise)).epsilon(guarantee.delta), guarantee.epsilon)
    if not isinstance(guarantee, GaussianDP | ZCDP | RenyiDP | PureDP):
        raise ValueError(f"no noise is calibrated to {guarantee}")

    def spent(multiplier: float) -> float:
        return sum(cost_of(event, guarantee) * count for event, count in structure.events(multiplier, noise).items())

    limit = limit_of(guarantee)
    # Prices of Gaussian noise fall with the square of its multiplier, pure epsilons with the multiplier itself.
    if isinstance(guarantee, PureDP):
        return spent(1.0) / limit * _NEVER_LESS
    if isinstance(guarantee, ZCDP) or not any(isinstance(event, BoundedEvent) for event in unit):
        return math.sqrt(spent(1.0) / limit) * _NEVER_LESS
    return _solve(spent, limit)


def classical(epsilon: float, delta: float) -> float:
    """The textbook noise multiplier of one Gaussian release, sqrt(2 ln(1.25 / delta)) / epsilon.

    It is kept for comparison: `calibrate` needs 23 percent less noise at (1, 1e-5). Its proof asks for epsilon < 1, and
    above about 8.4 (delta = 1e-5) it is too small for its claim.

    Raises:
      ValueError: epsilon is 1 or more.

    Source: Dwork and Roth (2014), Theorem 3.22.
    """
    if positive("epsilon", epsilon) >= 1:
        raise ValueError(f"epsilon must be below 1, where the formula is proved, got {epsilon!r}; use calibrate")
    return math.sqrt(2 * math.log(1.25 / probability("delta", delta))) / epsilon


def _solve(spent: Callable[[float], float], limit: float) -> float:
    """The smallest multiplier at which `spent`, which falls with it, is at most `limit`."""
    if not limit > 0:
        raise ValueError(f"epsilon must be above 0 to be reached by noise of this kind, got {limit!r}")
    low = high = 1.0
    while spent(high) > limit:
        low, high = high, 2 * high
    while spent(low) <= limit:
        low, high = low / 2, low
    log_multiplier = float(brentq(lambda log: spent(math.exp(log)) - limit, math.log(low), math.log(high), xtol=1e-10))
    multiplier, step = math.exp(log_multiplier) * _NEVER_LESS, 1e-12
    while spent(multiplier) > limit:
        multiplier, step = multiplier * (1 + step), 4 * step
    return multiplier


def accounted_mu(events: tuple[tuple[Event, int], ...]) -> float:
    """The mu-GDP that these events compose to: 0 if there are none, infinite if no GDP guarantee follows.

    Of a `NearlyGaussianEvent` it is the mu that holds up to the event's slack, which `account` adds to every delta.

    GDP composes by the root of the sum of squares (Dong, Roth, Su 2022, Corollary 2); a pure event implies a GDP one, and
    so does the pure composition of all, whichever is smaller. It is the smallest for Gaussian events and for a single
    selection.
    """
    if any(isinstance(event, ConcentratedEvent | NonPrivateEvent) for event, _ in events):
        return math.inf
    parts = [count * gdp_of(event) ** 2 for event, count in events]
    composed = math.sqrt(math.fsum(parts))
    derived = account(dict(events))
    return min(composed, derived.gdp().mu) if isinstance(derived, PureDP) else composed
