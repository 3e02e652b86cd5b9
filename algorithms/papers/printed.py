"""How a paper's printed noise is held against what its claim needs: the words of the table.

A `Calibration` is one printed formula: what it takes, in which readings, and who claims what. `compare` evaluates it and
gives a `Comparison`: the printed noise with its exact privacy, beside the tight noise, which meets the same claim exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bandana.privacy_core.checks import at_least, order, positive, probability
from bandana.privacy_core.guarantees import ApproxDP, GaussianDP, NoPrivacy, PureDP, RenyiDP

Claim = ApproxDP | RenyiDP | PureDP
Exact = GaussianDP | PureDP | NoPrivacy

UP = 1 + 1e-12
"""Tight noise is rounded up by this factor: never less private than asked."""

_ROUNDING = 1 + 1e-9
"""A claim counts as true if the exact epsilon exceeds it by no more than rounding."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number that a formula takes.

    Attributes:
      name: as an argument of `Calibration.compare`.
      meaning: in words, with the paper's own letter.
      default: taken where none is given.
      check: (name, value) -> value, or ValueError with name, value and what is allowed.
    """

    name: str
    meaning: str
    default: float | int | bool | None
    check: Callable[[str, Any], Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of the noise, and the privacy that it exactly gives.

    Attributes:
      name: `printed`, or by what the tight noise is tight.
      noise: for each of the comparison's quantities, None where this choice has no such noise.
      exact: the smallest privacy loss that is proved, attained except where `at_least` says otherwise.
      at_least: a loss that an explicit pair of data sets attains, where it is not that of `exact`.
    """

    name: str
    noise: tuple[float | None, ...]
    exact: Exact
    at_least: Exact | None = None

    def epsilon(self, claim: Claim) -> float:
        """The smallest epsilon for which the definition of `claim` is proved, at the claim's delta or Renyi order."""
        return _epsilon(self.exact, claim)

    def witnessed_epsilon(self, claim: Claim) -> float:
        """An epsilon below which the definition of `claim` is refuted; equal to `epsilon` but for pure DP."""
        return _epsilon(self.at_least or self.exact, claim)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: one quantity, one way of being tight.

    Attributes:
      quantity: what noise this is.
      tight_by: what the tight noise makes use of.
      printed: standard deviation (for pure DP: Laplace scale) that the paper prints.
      tight: the one that meets the claim exactly.
      factor: printed over tight; below 1 the paper adds too little.
      claimed_epsilon: the claim's.
      delta: the claim's, None where it has none.
      mu: exact GDP of what is printed, infinite without a bound, None for pure DP.
      true_epsilon: exact epsilon of what is printed, in the claim's own definition.
      is_true: whether the claim holds, None where that is not known.
    """

    quantity: str
    tight_by: str
    printed: float
    tight: float
    factor: float
    claimed_epsilon: float
    delta: float | None
    mu: float | None
    true_epsilon: float
    is_true: bool | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is printed beside what is tight, at one reading and one set of parameters.

    Attributes:
      name: the calibration's.
      reading: how the print is read.
      parameters: all of them, defaults included.
      quantities: what the noises are.
      claim: what the paper claims at these parameters.
      printed: the paper's noise.
      tight: the ways of meeting the claim exactly; the first keeps the printed structure.
    """

    name: str
    reading: str
    parameters: Mapping[str, float | int | bool | None]
    quantities: tuple[str, ...]
    claim: Claim
    printed: Choice
    tight: tuple[Choice, ...]

    @property
    def delta(self) -> float | None:
        """Delta at which the (epsilon, delta) figures hold; None for pure DP."""
        value = self.parameters.get("delta")
        return None if value is None else float(value)

    @property
    def mu(self) -> float | None:
        """Exact GDP of what is printed, infinite if nothing bounds it, None if the noise is not Gaussian."""
        return None if isinstance(self.printed.exact, PureDP) else self.printed.exact.mu

    @property
    def true_epsilon(self) -> float:
        """Exact epsilon of what is printed, in the claim's definition: at its delta, or at its Renyi order."""
        return self.printed.epsilon(self.claim)

    @property
    def true_epsilon_at_delta(self) -> float | None:
        """Exact epsilon of what is printed as (epsilon, delta)-DP; None for pure DP."""
        return None if self.delta is None else self.printed.exact.epsilon_at(self.delta)

    @property
    def is_true(self) -> bool | None:
        """Whether the claim holds for what is printed; None if the two bounds on pure DP leave it open."""
        if self.true_epsilon <= self.claim.epsilon * _ROUNDING:
            return True
        return False if self.printed.witnessed_epsilon(self.claim) > self.claim.epsilon * _ROUNDING else None

    @property
    def rows(self) -> tuple[Row, ...]:
        """One for each quantity that both have, and each way of being tight."""
        found = []
        for choice in self.tight:
            for quantity, printed, tight in zip(self.quantities, self.printed.noise, choice.noise, strict=True):
                if printed is not None and tight is not None:
                    found.append(
                        Row(
                            quantity, choice.name, printed, tight, printed / tight, self.claim.epsilon,
                            self.claim.delta if isinstance(self.claim, ApproxDP) else None,
                            self.mu, self.true_epsilon, self.is_true,
                        )
                    )  # fmt: skip
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Calibration:
    """One printed formula for the noise.

    Attributes:
      name: algorithm and trust model.
      promise: the claim in words.
      source: the publication.
      statement: where in it.
      readings: name -> how the print is read; the first is the default.
      quantities: what the noises are.
      parameters: what the formula takes.
      evaluate: (reading, parameters) -> claim, printed choice, tight choices.
    """

    name: str
    promise: str
    source: str
    statement: str
    readings: Mapping[str, str]
    quantities: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    evaluate: Callable[..., tuple[Claim, Choice, tuple[Choice, ...]]]

    @property
    def default_reading(self) -> str:
        """The reading that is taken where none is named."""
        return next(iter(self.readings))

    def compare(self, reading: str | None = None, **given: float | int | bool | None) -> Comparison:
        """Evaluates the formula.

        Args:
          reading: one of `readings`, None for the default.
          given: values of `parameters`; the rest take their defaults.

        Raises:
          ValueError: a parameter or reading is unknown or out of range; the message names it, its value, what is allowed.
        """
        reading = self.default_reading if reading is None else reading
        if reading not in self.readings:
            raise ValueError(f"reading of {self.name} must be one of {', '.join(self.readings)}, got {reading!r}")
        known = {parameter.name for parameter in self.parameters}
        for name in given:
            if name not in known:
                raise ValueError(f"{self.name} does not take {name}; it takes {', '.join(sorted(known))}")
        values = {p.name: _checked(p, given.get(p.name, p.default)) for p in self.parameters}
        try:
            claim, printed, tight = self.evaluate(reading, **values)
        except (OverflowError, ZeroDivisionError) as error:
            raise ValueError(f"{self.name}: these parameters lead out of the range of floating-point numbers") from error
        return Comparison(self.name, reading, values, self.quantities, claim, printed, tight)


def gaussian_choice(name: str, noise: tuple[float | None, ...], mu: float) -> Choice:
    """The choice whose exact privacy is mu-GDP; no privacy for an infinite mu.

    Raises:
      OverflowError: the noise is too large, or mu too small, for floating-point numbers.
    """
    if not all(math.isfinite(sd) for sd in noise if sd is not None) or not mu > 0:
        raise OverflowError(f"noise {noise!r}, mu {mu!r}")
    return Choice(name, noise, NoPrivacy() if math.isinf(mu) else GaussianDP(mu))


def whole(least: int) -> Callable[[str, Any], int]:
    """The check for a whole number of at least `least`."""
    return lambda name, value: at_least(name, value, least)


def flag(name: str, value: object) -> bool:
    """Returns `value` if it is True or False, else raises ValueError."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return value


EPSILON = Parameter("epsilon", "epsilon of the claim", 1.0, positive)
DELTA = Parameter("delta", "delta of the claim", 1e-5, probability)
RENYI_EPSILON = Parameter("epsilon", "Renyi divergence bound of the claim", 1.0, positive)
RENYI_DELTA = Parameter(
    "delta", "where the epsilon of (epsilon, delta)-DP is shown; no part of the claim", 1e-5, probability
)
ALPHA = Parameter("alpha", "Renyi order of the claim", 2.0, order)
EPISODES = Parameter("episodes", "K, users, each with one episode", 100_000, whole(2))
EPISODE_LENGTH = Parameter("episode_length", "H, steps of an episode", 5, whole(2))


def _checked(parameter: Parameter, value: float | int | bool | None) -> float | int | bool | None:
    if value is None and parameter.default is None:
        return None
    if isinstance(value, bool) and parameter.check is not flag:
        raise ValueError(f"{parameter.name} must be a number, got {value!r}")
    checked: float | int | bool = parameter.check(parameter.name, value)
    return checked


def _epsilon(exact: Exact, claim: Claim) -> float:
    if isinstance(claim, ApproxDP):
        return exact.epsilon_at(claim.delta)
    if isinstance(exact, NoPrivacy):
        return math.inf
    if isinstance(claim, RenyiDP):
        return exact.rdp(claim.alpha)
    return exact.epsilon if isinstance(exact, PureDP) else math.inf
