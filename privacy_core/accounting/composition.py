r"""Composition of the events on one record, for those that do not compose to one Gaussian.

Each function is an upper bound that is valid by itself, so that callers may take the smallest. They are

  basic       the pure epsilons add; beside them Gaussians compose exactly;
  Renyi       divergences add at every order, and the best order is converted (Canonne, Kamath, Steinke 2020, Prop. 12);
  optimal     of mechanisms of which only the pure epsilons are known: randomized responses (Kairouz, Oh, Viswanath 2015,
              Theorem 3.3), here exactly and in logarithms, also for different epsilons;
  PLD         the privacy loss distribution (dp-accounting, pessimistic on a 1e-4 grid): within 1.1e-5 of the exact
              epsilon for delta >= 1e-8. It is composed by floating-point Fourier transforms, whose error can take it
              below the exact value at smaller delta (seen from 1e-10 on: `bandana crosscheck`), so there it is not used.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp

from bandana.privacy_core.accounting import gaussian
from bandana.privacy_core.accounting.events import BoundedEvent, Event, GaussianEvent, LaplaceEvent
from bandana.privacy_core.accounting.guarantees import PureDP
from bandana.privacy_core.arrays import FloatArray

Events = tuple[tuple[Event, int], ...]

PLD_DELTA = 1e-8
_MOST_OUTCOMES = 200_000
_LARGEST_LOSS = 100.0
_GRID = 1e-4
_ALMOST = 1 + 1e-12


def split(events: Events) -> tuple[float, float]:
    """The mu that all Gaussian events compose to, and the sum of the epsilons of all events of pure DP."""
    mu = math.sqrt(sum(2 * event.rho * count for event, count in events if isinstance(event, GaussianEvent)))
    return mu, sum(event.epsilon * count for event, count in events if isinstance(event, BoundedEvent))


def basic_epsilon(events: Events, delta: float) -> float:
    """Gaussian events exactly, plus the sum of all pure epsilons; infinite where another event stands among them."""
    if not all(isinstance(event, GaussianEvent | BoundedEvent) for event, _ in events):
        return math.inf
    mu, pure = split(events)
    if not mu:
        return PureDP(pure).epsilon_at(delta)
    return pure + gaussian.epsilon_of(mu, delta)


def basic_delta(events: Events, epsilon: float) -> float:
    """The same, solved for delta; 1 where it says nothing."""
    if not all(isinstance(event, GaussianEvent | BoundedEvent) for event, _ in events):
        return 1.0
    mu, pure = split(events)
    if not mu:
        if epsilon >= pure:
            return 0.0
        return float(-math.expm1(epsilon - pure) / (1 + math.exp(-pure)))
    return gaussian.delta_of(mu, epsilon - pure) if epsilon >= pure else 1.0


def renyi_divergence(events: Events, alpha: float) -> float:
    """The sum of the events' divergences of order alpha; infinite if one is."""
    return sum(event.rdp(alpha) * count for event, count in events)


def renyi_epsilon(events: Events, delta: float) -> float:
    """The improved conversion at the best order."""

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        divergence = renyi_divergence(events, 1 + excess)
        return divergence + math.log(excess / (1 + excess)) - math.log(delta * (1 + excess)) / excess

    return max(0.0, _smallest(at))


def renyi_delta(events: Events, epsilon: float) -> float:
    """The same, solved for delta: (1 - 1/alpha)^alpha e^((alpha - 1)(D - epsilon)) / (alpha - 1) at the best order."""

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        return excess * (renyi_divergence(events, alpha) - epsilon) + alpha * math.log(excess / alpha) - log_excess

    return min(1.0, math.exp(min(0.0, _smallest(at))))


def _smallest(function: Any) -> float:
    """The smallest value found over the logarithm of alpha - 1; any order is valid, so a near miss is too."""
    grid = np.linspace(math.log(1e-6), math.log(1e6), 61)
    values = [function(float(x)) for x in grid]
    best = int(np.argmin(values))
    bounds = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)]))
    return min(float(values[best]), float(minimize_scalar(function, bounds=bounds, method="bounded").fun))


@lru_cache(maxsize=64)
def _responses(events: Events) -> tuple[FloatArray, FloatArray] | None:
    """Outcomes of the randomized responses: privacy loss and log probability, or None if there are too many.

    One response of epsilon e answers truly with probability e^e / (1 + e^e); of k of them l answers are false with the
    binomial probability, at a loss of (k - 2 l) e.
    """
    loss, log_probability = np.zeros(1), np.zeros(1)
    for event, count in events:
        if not isinstance(event, BoundedEvent) or len(loss) * (count + 1) > _MOST_OUTCOMES:
            return None
        e, false = event.epsilon, np.arange(count + 1)
        log_binomial = gammaln(count + 1) - gammaln(false + 1) - gammaln(count - false + 1)
        own = log_binomial - false * e - count * math.log1p(math.exp(-e))
        loss = np.add.outer(loss, (count - 2 * false) * e).ravel()
        log_probability = np.add.outer(log_probability, own).ravel()
    order = np.argsort(-loss, kind="stable")
    return loss[order], log_probability[order]


def optimal_delta(events: Events, epsilon: float) -> float:
    """The least delta that covers all mechanisms with these pure epsilons; 1 for too many outcomes or other events."""
    outcomes = _responses(events)
    if outcomes is None:
        return 1.0
    loss, log_probability = outcomes
    above = loss > epsilon
    if not above.any():
        return 0.0
    return min(1.0, float(np.exp(logsumexp(log_probability[above] + np.log(-np.expm1(epsilon - loss[above]))))) * _ALMOST)


def optimal_epsilon(events: Events, delta: float) -> float:
    """The same, solved for epsilon: between two losses, delta is a - b e^epsilon, which is inverted in logarithms."""
    outcomes = _responses(events)
    if outcomes is None:
        return math.inf
    loss, log_probability = outcomes
    # With the i largest losses counted, delta(epsilon) = P_i - e^epsilon Q_i for epsilon from loss[i] to loss[i - 1].
    log_p = np.logaddexp.accumulate(log_probability)
    log_q = np.logaddexp.accumulate(log_probability - loss)
    at_next = np.exp(log_p[:-1]) - np.exp(np.minimum(loss[1:] + log_q[:-1], log_p[:-1]))
    count = int(np.searchsorted(at_next, delta * (1 - 1e-15)))
    if count == len(loss) - 1 and math.exp(log_p[-1]) <= delta:
        return 0.0
    excess = math.exp(log_p[count]) - delta
    return max(0.0, (math.log(excess) - float(log_q[count])) * _ALMOST) if excess > 0 else 0.0


@lru_cache(maxsize=16)
def _distribution(events: Events) -> Any:
    """The privacy loss distribution of these events, or None where there is none, or one too large for memory.

    Its grid has 1e4 points a unit of privacy loss; beyond a loss of 100 nobody asks for the fifth digit. Events that the
    library does not know are put on the grid by their own curve: the chords between its points, as functions of e^epsilon,
    lie above it (Doroshenko et al., Connect the Dots, 2022), so that the discrete loss dominates the event.
    """
    if not all(isinstance(event, GaussianEvent | BoundedEvent) for event, _ in events):
        return None
    mu, pure = split(events)
    if pure + mu**2 / 2 + 8 * mu > _LARGEST_LOSS:
        return None
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    distribution = privacy_loss_distribution.identity(value_discretization_interval=_GRID)
    if mu:  # all Gaussian events are one
        gaussian_loss = privacy_loss_distribution.from_gaussian_mechanism(1 / mu, value_discretization_interval=_GRID)
        distribution = distribution.compose(gaussian_loss)
    for event, count in events:
        if isinstance(event, LaplaceEvent):
            one = privacy_loss_distribution.from_laplace_mechanism(
                event.noise_multiplier, value_discretization_interval=_GRID
            )
        elif isinstance(event, BoundedEvent):
            last = math.ceil(event.epsilon / _GRID)
            deltas = event.delta(np.arange(-last, last + 1) * _GRID)
            one = privacy_loss_distribution.PrivacyLossDistribution(
                pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(_GRID, -last, last, deltas)
            )
        else:
            continue
        distribution = distribution.compose(one.self_compose(count))
    return distribution


def pld_epsilon(events: Events, delta: float) -> float:
    """Epsilon by the privacy loss distribution; infinite where that is not to be relied on."""
    distribution = _distribution(events) if delta >= PLD_DELTA else None
    return math.inf if distribution is None else max(0.0, float(distribution.get_epsilon_for_delta(delta)))


def pld_delta(events: Events, epsilon: float) -> float:
    """The same for delta, never below the smallest at which it is relied on; 1 where there is no distribution."""
    distribution = _distribution(events)
    return 1.0 if distribution is None else max(PLD_DELTA, float(distribution.get_delta_for_epsilon(epsilon)))
