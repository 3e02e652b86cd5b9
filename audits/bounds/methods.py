"""Every bound that an audit states, by name: whoever has the scores can recompute it.

A bound is a function of (name, parameters, level, scores) and of nothing else. What is chosen on the way, a threshold, a
weight or a coin, comes from the scores and the stated seed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from numpy.typing import ArrayLike

from bandana.audits.bounds import coin_flips, divergence_bounds, error_rates, evalues, tradeoff_bounds
from bandana.audits.bounds.samples import checked_sides, split
from bandana.privacy_core.checks import probability


class Quantity(StrEnum):
    """What a bound is a lower bound on."""

    MU = "mu"
    EPSILON = "epsilon"
    DELTA = "delta"
    DIVERGENCE = "divergence"
    RHO = "rho"


@dataclass(frozen=True)
class Method:
    """One way from scores to a lower confidence bound.

    Attributes:
      name: under which `METHODS` holds it.
      quantity: what is bounded: mu; epsilon at the parameter `delta` (0 for pure DP); delta at `epsilon`; the divergence of
        order `alpha`; or the rho of zCDP.
      function: (data, neighbor, level, **parameters) -> bound.
      source: whose idea it is.
      assumption: what must hold for the bound, beyond replays that are independent and alike; in words.
    """

    name: str
    quantity: Quantity
    function: Callable[..., float]
    source: str
    assumption: str

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Names of the parameters with their defaults, `inspect.Parameter.empty` where one must be given."""
        taken = inspect.signature(self.function).parameters
        return MappingProxyType({k: v.default for k, v in taken.items() if k not in ("data", "neighbor", "level")})


def _mu_threshold(data: ArrayLike, neighbor: ArrayLike, level: float) -> float:
    """`bounds.mu_lower` at one threshold, chosen on the first half of each side, its errors counted on the rest."""
    data, neighbor = checked_sides(data, neighbor, 100, is_paired=False)
    probability("level", level)
    train, test = split(data, neighbor, 0.5)
    return error_rates.mu_lower(error_rates.Errors.count(*test, error_rates.choose_threshold(*train, level)), level)


_GDP = "The promise is a GDP one: the mechanism is mu-GDP for some mu."
_ANY = "None on the mechanism."
_RATIO = " Power, not validity, needs the scores to be log-likelihood ratios in nats, unless `is_learned`."

_ALL = (
    Method(
        "mu-curve", Quantity.MU, lambda data, neighbor, level: tradeoff_bounds.mu_lower_curve(data, neighbor, level),
        "Dong, Roth, Su (2022) for the tangents of the curve; Berry-Esseen, or Waudby-Smith and Ramdas (2023)", _GDP,
    ),
    Method(
        "mu-band", Quantity.MU, tradeoff_bounds.mu_lower_band,
        "Massart (1990); Dong, Roth, Su (2022)", _GDP,
    ),
    Method(
        "mu-threshold", Quantity.MU, _mu_threshold,
        "Nasr et al. (2023), eq. 4; Clopper and Pearson (1934)", _GDP,
    ),
    Method(
        "epsilon-coins", Quantity.EPSILON,
        lambda data, neighbor, level, *, delta, seed=0, is_learned=False: coin_flips.epsilon_lower(
            data, neighbor, delta, level, seed=seed, is_learned=is_learned
        ),
        "Kairouz, Oh, Viswanath (2015) for the closest pair; Steinke, Nasr, Jagielski (2023) for guessed coins",
        _ANY + _RATIO,
    ),
    Method(
        "epsilon-e-process", Quantity.EPSILON,
        lambda data, neighbor, level, *, delta, is_learned=False: evalues.epsilon_lower(
            data, neighbor, delta, level, is_learned=is_learned
        ),
        "Grünwald, de Heide, Koolen (2024); Waudby-Smith and Ramdas (2023)", _ANY + _RATIO,
    ),
    Method(
        "pure-event", Quantity.EPSILON,
        lambda data, neighbor, level, *, seed=0: divergence_bounds.pure_epsilon_lower(data, neighbor, level, seed=seed),
        "Bichsel et al. (2021) for the search; Clopper and Pearson (1934)", _ANY,
    ),
    Method(
        "hockey-stick", Quantity.DELTA,
        lambda data, neighbor, level, *, epsilon: divergence_bounds.hockey_stick_lower(data, neighbor, epsilon, level),
        "Balle and Wang (2018); Berry-Esseen, or Waudby-Smith and Ramdas (2023)", _ANY,
    ),
    Method(
        "renyi", Quantity.DIVERGENCE,
        lambda data, neighbor, level, *, alpha, is_learned=False: divergence_bounds.renyi_lower(
            data, neighbor, alpha, level, is_learned=is_learned
        ),
        "Birrell, Dupuis, Katsoulakis, Rey-Bellet, Wang (2021)", _ANY + _RATIO,
    ),
    Method(
        "rho", Quantity.RHO,
        lambda data, neighbor, level, *, is_learned=False: divergence_bounds.rho_lower(
            data, neighbor, level, is_learned=is_learned
        ),
        "Birrell, Dupuis, Katsoulakis, Rey-Bellet, Wang (2021); Bun and Steinke (2016)", _ANY + _RATIO,
    ),
)  # fmt: skip

METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _ALL})
"""name -> method."""


def bound(name: str, data: ArrayLike, neighbor: ArrayLike, level: float, **parameters: Any) -> float:
    """The lower confidence bound that a method draws from scores.

    Args:
      name: of `METHODS`.
      data: (n,) scores of replays of the data set, larger where the neighbor is likelier; n >= 100.
      neighbor: (n,) the same of the neighbor.
      level: probability of a bound that is too large.
      **parameters: as the method demands (`Method.parameters`).

    Returns:
      a value of the method's quantity, at least 0. The same arguments give the same number.

    Raises:
      ValueError: no such method, a parameter that is missing or that it does not take, scores or values out of range.
    """
    parameters = checked_parameters(name, parameters)
    return METHODS[name].function(data, neighbor, level, **parameters)


def checked_parameters(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a method, defaults filled in, if the given ones are those that it takes; else raises ValueError."""
    if name not in METHODS:
        raise ValueError(f"name must be one of {', '.join(METHODS)}, got {name!r}")
    taken = METHODS[name].parameters
    for given in parameters:
        if given not in taken:
            allowed = ", ".join(taken) if taken else "none"
            raise ValueError(f"{name} takes no parameter {given!r}; its parameters: {allowed}")
    filled = {**taken, **parameters}
    for key, value in filled.items():
        if value is inspect.Parameter.empty:
            raise ValueError(f"{name} needs the parameter {key!r}")
    return filled
