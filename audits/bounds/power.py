r"""Power of an audit: the smallest fault, as a factor of the claim, that its replays show nearly always.

An audit that finds nothing is evidence only against faults that it would have found. The yardstick is the mechanism that
such claims are made for, scored by its exact log-likelihood ratio: a shift of Gaussian noise, or of Laplace noise for pure
epsilon. Where a pure epsilon is the sum of many releases' the replays hardly ever show all of it at once: then so many
equal ones are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from scipy.optimize import brentq

from bandana.algorithms.protocol import FloatArray
from bandana.audits.bounds.bound import Parameters, QuantityKind
from bandana.audits.bounds.methods import METHODS, bound, named
from bandana.privacy_core.accounting import gaussian
from bandana.privacy_core.checks import at_least, positive, probability

LARGEST_FACTOR = 64.0
_SIMULATED = 200_000
_SCOUTS = 12
_CLOSE = 0.05
"""To this share of the excess the result is the smallest."""
_CELLS = 2048
"""Steps between the smallest log-likelihood ratio of a composition and the largest, at least."""


@dataclass(frozen=True)
class _Yardstick:
    """A family of mechanisms with one parameter, the strength: mu of Gaussian noise, or epsilon of Laplace noise.

    Attributes:
      draw: (strength, n, generator) -> log-likelihood ratios of the data and of the neighbor, each (n,).
      quantity_of: strength -> the quantity, increasing.
      strength_of: the inverse; 0 where the quantity is 0.
    """

    draw: Callable[[float, int, np.random.Generator], tuple[FloatArray, FloatArray]]
    quantity_of: Callable[[float], float]
    strength_of: Callable[[float], float]


def _gaussian_pair(mu: float, n: int, generator: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    return mu * generator.standard_normal(n) - mu**2 / 2, mu * generator.standard_normal(n) + mu**2 / 2


def _laplace_pair(epsilon: float, n: int, generator: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Log-likelihood ratios of Laplace noise around 0 and around epsilon, in a form whose rounding tells no sides apart."""
    data, neighbor = generator.laplace(0, 1, n), generator.laplace(epsilon, 1, n)
    return np.clip(2 * data - epsilon, -epsilon, epsilon), np.clip(2 * neighbor - epsilon, -epsilon, epsilon)


def _composed_pair(epsilon: float, n: int, generator: np.random.Generator, n_parts: int) -> tuple[FloatArray, FloatArray]:
    """Log-likelihood ratios in nats, each (n,), of `n_parts` equal releases with two-sided geometric noise, epsilon in all.

    That is Laplace noise on a grid: a whole number moves by m, and noise k has probability proportional to exp(-h |k|), with
    h = epsilon / (m n_parts). The ratio of an output j, cut to 0 .. m, is h (2j - m); the neighbor's have the other sign.
    """
    m = -(-_CELLS // n_parts)
    steps, h = np.arange(m + 1), epsilon / (m * n_parts)
    one = np.exp(-h * steps) * np.where((steps == 0) | (steps == m), -1 / math.expm1(-h), 1.0)
    size = 1 << (m * n_parts).bit_length()
    law = np.maximum(np.fft.irfft(np.fft.rfft(one / one.sum(), size) ** n_parts, size)[: m * n_parts + 1], 0.0)
    data, neighbor = generator.choice(h * (2.0 * np.arange(len(law)) - m * n_parts), (2, n), p=law / law.sum())
    return data, -neighbor


def _yardstick(quantity: QuantityKind, parameters: Parameters, n_parts: int) -> _Yardstick:
    if quantity is QuantityKind.MU:
        return _Yardstick(_gaussian_pair, float, float)
    if quantity is QuantityKind.EPSILON:
        delta = parameters.get("delta", 0.0)
        if delta == 0:
            return _Yardstick(_laplace_pair if n_parts == 1 else partial(_composed_pair, n_parts=n_parts), float, float)
        return _Yardstick(
            _gaussian_pair,
            lambda mu: gaussian.epsilon_of(mu, delta),
            lambda epsilon: gaussian.mu_of(epsilon, delta) if epsilon > 0 else 0.0,
        )
    if quantity is QuantityKind.DELTA:
        epsilon = parameters["epsilon"]
        return _Yardstick(
            _gaussian_pair,
            lambda mu: gaussian.delta_of(mu, epsilon),
            lambda delta: _mu_at(delta, epsilon) if delta > 0 else 0.0,
        )
    order = parameters["alpha"] if quantity is QuantityKind.DIVERGENCE else 1.0
    return _Yardstick(_gaussian_pair, lambda mu: order * mu**2 / 2, lambda value: math.sqrt(2 * value / order))


def _mu_at(delta: float, epsilon: float) -> float:
    """The mu at which a Gaussian's delta(epsilon) has this value; infinite if none has."""
    if delta >= 1:
        return math.inf
    return float(brentq(lambda mu: gaussian.log_delta(mu, epsilon) - math.log(delta), 1e-9, 1e3, xtol=1e-12))


def smallest_factor_caught(
    method: str,
    parameters: Parameters,
    level: float,
    claimed: float,
    n: int,
    share: float = 0.95,
    n_trials: int = 60,
    shown: float = math.inf,
    n_parts: int = 1,
) -> float:
    r"""The smallest factor by which the claim must be wrong for a bound to refute it nearly always.

    Args:
      method: of `methods.METHODS`.
      parameters: that it takes.
      level: of the bound.
      claimed: value of the method's quantity that is promised, above 0.
      n: replays on each side, at least 100.
      share: of audits that must refute.
      n_trials: simulated audits, at least 10.
      shown: mu (epsilon, where pure epsilon is claimed) that the audited pair shows of the mechanism: of half of what is
        claimed, the mechanism must be twice as bad for the pair to show as much.
      n_parts: of how many releases, each of the same pure epsilon, the mechanism is composed; for pure epsilon only.

    Returns:
      f >= 1: a mechanism whose quantity is f times the claimed one is refuted with probability about `share`; infinite if
      not even a factor of 64 is.

    Raises:
      ValueError: an unknown method, its parameters, or an argument out of range.

    Guarantee: an estimate, not a bound: of the simulated audits at f, all but a share of 1 - `share` refute. The same
      draws serve every factor, and nothing but the arguments enters. Bounds on mu from more than 2e5 replays are simulated
      at 2e5, and their excess over the claim scaled by sqrt(2e5 / n): what they fall short by is a quantile over sqrt n, the
      main term, and terms that vanish faster, so this overstates it. Others have no such rate and are simulated in full.
    """
    filled = _checked(method, parameters, level, claimed, n, share, n_trials)
    stick = _yardstick(METHODS[method].quantity, dict(filled), at_least("n_parts", n_parts, 1))
    start, n_simulated = stick.strength_of(claimed), _simulated(method, n)
    reached = min(shown / start, 1.0)
    if not reached > 0:
        return math.inf

    def certified(strength: float, trials: int) -> float:
        """The strength that all but 1 - share of the audits certify at least."""
        return _certified(method, filled, level, strength, n_simulated, trials, n_parts)[math.floor((1 - share) * trials)]

    def factor(excess: float) -> float:
        strength = (start + excess * math.sqrt(n_simulated / n)) / reached
        value = stick.quantity_of(strength) / claimed if math.isfinite(strength) else math.inf
        return value if value <= LARGEST_FACTOR else math.inf

    return max(1.0, factor(_smallest_excess(start, certified, lambda excess: math.isfinite(factor(excess)), n_trials)))


def _smallest_excess(
    start: float, certified: Callable[[float, int], float], is_in_range: Callable[[float], bool], n_trials: int
) -> float:
    """The smallest excess over `start` of a strength of which more than `start` is certified; infinite beyond the range.

    What a bound falls short by hardly depends on the strength: each look tells nearly how much is needed. A few audits
    scout, then all look closer.
    """
    excess = start / 2
    for trials in (_SCOUTS, n_trials):
        low, high = 0.0, math.inf
        while math.isinf(high) or high - low > _CLOSE * high:
            shown = certified(start + excess, trials)
            needed = (start + excess - shown) * (1 + _CLOSE / 2)
            if shown > start:
                high = excess
                if needed > (1 - _CLOSE) * excess:
                    break
                excess = needed if needed > low else (low + high) / 2
            else:
                low = excess
                if not is_in_range(excess) or excess > LARGEST_FACTOR * max(1.0, start):
                    return math.inf
                excess = max(needed, 1.3 * excess) if shown > 0 else 2 * excess
                if excess >= high:
                    excess = (low + high) / 2
        excess = high
    return excess


def _checked(
    method: str, parameters: Parameters, level: float, claimed: float, n: int, share: float, n_trials: int
) -> tuple[tuple[str, float], ...]:
    """All parameters of the method in order, if every argument is in its range."""
    filled = named(method).filled(parameters)
    probability("level", level)
    positive("claimed", claimed)
    at_least("n", n, 100)
    probability("share", share)
    at_least("n_trials", n_trials, 10)
    return tuple(sorted(filled.items()))


def _simulated(method: str, n: int) -> int:
    return min(n, _SIMULATED) if METHODS[method].quantity is QuantityKind.MU else n


@lru_cache(maxsize=1024)
def _certified(
    method: str, parameters: tuple[tuple[str, float], ...], level: float, strength: float, n: int, trials: int, n_parts: int
) -> tuple[float, ...]:
    """The strengths that simulated audits of a mechanism of this strength certify, increasing."""
    given = dict(parameters)
    stick = _yardstick(METHODS[method].quantity, given, n_parts)
    scores = (stick.draw(strength, n, np.random.default_rng([trial, n])) for trial in range(trials))
    return tuple(stick.strength_of(lower) for lower in sorted(bound(method, *sides, level, **given) for sides in scores))


def share_caught(
    method: str,
    parameters: Parameters,
    level: float,
    claimed: float,
    n: int,
    smallest: float,
    factors: Sequence[float],
    share: float = 0.95,
    n_trials: int = 40,
) -> list[float]:
    """The share of audits that refute, for each factor by which the claim is exceeded.

    Args: as for `smallest_factor_caught`, and
      smallest: what that gave for `share`, finite: it shows how much of the mechanism the audited pair reveals.
      factors: at least 1 each, at most 64.

    Returns:
      one share a factor, never falling.

    Raises:
      ValueError: an unknown method, its parameters, or an argument out of range.

    Guarantee: an estimate from `n_trials` simulated audits near `smallest`, in steps of 1 / `n_trials`. What they fall short
      by is taken as the same at all factors. It grows a little with the strength: shares below `smallest` are understated.
    """
    filled = _checked(method, parameters, level, claimed, n, share, n_trials)
    for name, factor in (("smallest", smallest), *(("factors", factor) for factor in factors)):
        if not 1 <= factor <= LARGEST_FACTOR:
            raise ValueError(f"{name} must lie in [1, {LARGEST_FACTOR:g}], got {factor!r}")
    stick, n_simulated = _yardstick(METHODS[method].quantity, dict(filled), 1), _simulated(method, n)
    start, reach, stretch = stick.strength_of(claimed), stick.strength_of(smallest * claimed), math.sqrt(n_simulated / n)
    scouted = _certified(method, filled, level, reach, n_simulated, _SCOUTS, 1)
    # To three digits, so that audits of one budget share their simulations.
    near = float(f"{start + reach - scouted[math.floor((1 - share) * _SCOUTS)]:.3g}")
    lacking = near - np.array(_certified(method, filled, level, near, n_simulated, n_trials, 1))
    needed = lacking[math.floor((1 - share) * n_trials)]
    shown = min(1.0, (start + needed * stretch) / reach)
    excesses = [(shown * stick.strength_of(factor * claimed) - start) / stretch for factor in factors]
    return [float(np.mean(lacking <= excess * (1 + 1e-9))) for excess in excesses]
