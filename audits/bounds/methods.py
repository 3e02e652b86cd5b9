"""Every bound that an audit takes from scores of replays, by name: whoever has the scores can recompute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from numpy.typing import ArrayLike

from bandana.audits.bounds import coin_flips, divergence_bounds, error_rates, evalues, one_run_methods, tradeoff_bounds
from bandana.audits.bounds.bound import Bound
from bandana.audits.claims import Quantity

_ALL: tuple[Bound, ...] = (
    tradeoff_bounds.MU_CURVE,
    tradeoff_bounds.MU_BAND,
    error_rates.MU_THRESHOLD,
    error_rates.EPSILON_THRESHOLD,
    coin_flips.EPSILON_COINS,
    evalues.EPSILON_E_PROCESS,
    divergence_bounds.PURE_EVENT,
    divergence_bounds.HOCKEY_STICK,
    divergence_bounds.RENYI,
    divergence_bounds.RHO,
)
_SHARPEST = {
    "mu": tradeoff_bounds.MU_CURVE,
    "epsilon": coin_flips.EPSILON_COINS,
    "delta": divergence_bounds.HOCKEY_STICK,
    "divergence": divergence_bounds.RENYI,
    "rho": divergence_bounds.RHO,
}

METHODS: Mapping[str, Bound] = MappingProxyType({bound.name: bound for bound in _ALL})
"""Name -> bound, from scores of replays."""

WORDS: Mapping[str, str] = MappingProxyType(
    {bound.name: bound.words for bound in (*_ALL, *one_run_methods.METHODS.values())}
)
"""Name -> what the bound does, those from one run included."""


def method_of(quantity: Quantity, seed: int, is_learned: bool) -> tuple[str, dict[str, float]]:
    """Name and parameters of the sharpest bound on a quantity from all scores."""
    sharpest = _SHARPEST[quantity.name]
    given = {
        "delta": quantity.delta, "alpha": quantity.alpha, "epsilon": quantity.epsilon, "seed": seed, "is_learned": is_learned
    }  # fmt: skip
    return sharpest.name, {name: given[name] for name in sharpest.parameters}


def bounds_on(quantity: Quantity, seed: int) -> Sequence[tuple[str, dict[str, float]]]:
    """Names and parameters of the bounds among which held-out runs of a release or a function choose, the sharpest first."""
    sharpest = method_of(quantity, seed, is_learned=True)
    if quantity.name == "mu":
        return (sharpest, ("mu-threshold", {}))
    if quantity.name != "epsilon":
        return (sharpest,)
    return (sharpest, ("epsilon-threshold", {"delta": quantity.delta}) if quantity.delta else ("pure-event", {"seed": seed}))


def named(name: str) -> Bound:
    """The bound of that name.

    Raises:
      ValueError: there is none.
    """
    if name not in METHODS:
        raise ValueError(f"name must be one of {', '.join(METHODS)}, got {name!r}")
    return METHODS[name]


def bound(name: str, data: ArrayLike, neighbor: ArrayLike, level: float, **parameters: float) -> float:
    """The lower confidence bound that a method draws from scores.

    Args:
      name: of `METHODS`.
      data: (n,) scores of replays of the data set, larger where the neighbor is likelier; n >= 100.
      neighbor: (n,) the same of the neighbor.
      level: probability of a bound that is too large.
      **parameters: as the bound demands (`Bound.parameters`).

    Returns:
      a value of the bound's quantity, at least 0. The same arguments give the same number.

    Raises:
      ValueError: no such bound, a parameter that is missing or that it does not take, scores or values out of range.
    """
    return named(name)(data, neighbor, level, **parameters)
