"""From the events that touch one record to its guarantee, and from a guarantee to the noise that keeps it.

The core accountant is exact where exactness exists: Gaussians compose to one mu = sqrt(sum mu_i^2) (Dong, Roth, Su 2022,
Corollary 3.3), also when each is chosen after the outputs before it. Pure events add. A mixture is composed by its
privacy loss distribution (dp-accounting, pessimistic discretization).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from privacy_core.checks import probability
from privacy_core.events import Event, GaussianEvent, LaplaceEvent, NonPrivateEvent
from privacy_core.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, NoPrivacy, PureDP, RenyiDP

_NEVER_LESS = 1 + 1e-12


@dataclass(frozen=True)
class Mixture:
    """Gaussian and Laplace events on one record: answers epsilon at delta by the privacy loss distribution."""

    events: tuple[tuple[Event, int], ...]

    def epsilon_at(self, delta: float) -> float:
        """A pessimistic epsilon at delta: within 1.1e-5 of the exact one, and valid for delta >= 1e-11.

        Raises:
          ValueError: delta below 1e-11, where the library's tail truncation is not conservative.
        """
        if probability("delta", delta) < 1e-11:
            raise ValueError(f"delta must be at least 1e-11 for a mixture of Gaussian and Laplace events, got {delta!r}")
        from dp_accounting import dp_event
        from dp_accounting.pld import pld_privacy_accountant

        accountant = pld_privacy_accountant.PLDAccountant()
        for event, count in self.events:
            match event:
                case GaussianEvent(multiplier):
                    accountant.compose(dp_event.GaussianDpEvent(multiplier), count)
                case LaplaceEvent(multiplier):
                    accountant.compose(dp_event.LaplaceDpEvent(multiplier), count)
                case NonPrivateEvent():
                    return math.inf
        return float(accountant.get_epsilon(delta))

    def __str__(self) -> str:
        return "composition of " + ", ".join(f"{count} x {event}" for event, count in self.events)


def account(events: Mapping[Event, int]) -> Guarantee | Mixture | None:
    """The guarantee of one record that the given events touch.

    Args:
      events: event -> how often it touches the record.

    Returns:
      `GaussianDP` if all events are Gaussian, `PureDP` if all are Laplace (basic composition), `NoPrivacy` if one is
      non-private, a `Mixture` otherwise; None if nothing touches the record.

    Raises:
      ValueError: a count is below 1.
    """
    for event, count in events.items():
        if count < 1:
            raise ValueError(f"the count of {event} must be at least 1, got {count!r}")
    if not events:
        return None
    if any(isinstance(event, NonPrivateEvent) for event in events):
        return NoPrivacy()
    if all(isinstance(event, GaussianEvent) for event in events):
        return GaussianDP(math.sqrt(sum(2 * event.rho * count for event, count in events.items())))
    if all(isinstance(event, LaplaceEvent) for event in events):
        return PureDP(sum(event.epsilon * count for event, count in events.items() if isinstance(event, LaplaceEvent)))
    return Mixture(tuple(sorted(events.items(), key=lambda item: (type(item[0]).__name__, item[0]))))


def calibrate(guarantee: Guarantee, releases: int = 1) -> float:
    """The smallest noise multiplier with which `releases` releases that touch one record keep the guarantee.

    Args:
      guarantee: `GaussianDP`, `ZCDP`, `RenyiDP` and `ApproxDP` are met by Gaussian noise, `PureDP` by Laplace noise.
      releases: how many releases touch a record, at least 1.

    Returns:
      The noise multiplier, rounded up by one part in 1e12: never less private than asked.

    Raises:
      ValueError: `releases` below 1, or a guarantee that no noise is calibrated to.

    Source: Gaussian, Balle and Wang (2018) and mu = sqrt(2 epsilon / alpha) for RDP (Mironov 2017, Corollary 3), with
    k releases composing to mu sqrt k; Laplace, basic composition.
    """
    if releases < 1:
        raise ValueError(f"releases must be at least 1, got {releases!r}")
    match guarantee:
        case GaussianDP(mu):
            return math.sqrt(releases) / mu * _NEVER_LESS
        case ZCDP(rho):
            return calibrate(GaussianDP(math.sqrt(2 * rho)), releases)
        case RenyiDP(alpha, epsilon):
            return calibrate(GaussianDP.from_renyi(alpha, epsilon), releases)
        case ApproxDP(epsilon, delta):
            return calibrate(GaussianDP.from_epsilon_delta(epsilon, delta), releases)
        case PureDP(epsilon):
            return releases / epsilon * _NEVER_LESS
    raise ValueError(f"no noise is calibrated to {guarantee}")
