"""A lower confidence bound: one object with its quantity, theorem, parameters and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from numpy.typing import ArrayLike

REQUIRED: Final = object()
"""In place of a default: the parameter must be given."""

ASSUMES_GDP = "The promise is a GDP one: the mechanism is mu-GDP for some mu."
ASSUMES_NOTHING = "None on the mechanism."
WANTS_RATIOS = " Power, not validity, needs the scores to be log-likelihood ratios in nats, unless `is_learned`."


class QuantityKind(StrEnum):
    """Quantity that a bound bounds from below."""

    MU = "mu"
    EPSILON = "epsilon"
    DELTA = "delta"
    DIVERGENCE = "divergence"
    RHO = "rho"


Parameters = Mapping[str, Any]
"""Name -> number, or truth value, that a bound takes beside scores and level."""


@dataclass(frozen=True)
class Bound:
    """One way from scores to a lower confidence bound.

    A bound is a function of (name, parameters, level, scores) and of nothing else. What is chosen on the way, a threshold, a
    weight or a coin, comes from the scores and the stated seed.

    Attributes:
      name: unique; evidence files hold it.
      quantity: what is bounded: mu; epsilon at the parameter `delta` (0 for pure DP); delta at `epsilon`; the divergence of
        order `alpha`; or the rho of zCDP.
      function: (data, neighbor, level=, **parameters) -> bound, of scores of replays; or (scores, is_in, level=,
        **parameters) -> bound, of canaries in one run and their coins.
      parameters: names with defaults, or `REQUIRED`.
      theorem: whose idea it is, with year.
      assumption: what must hold for the bound, beyond replays that are independent and alike, or coins that are fair.
      words: what it does, in a line or two, for readers of a report.
    """

    name: str
    quantity: QuantityKind
    function: Callable[..., float]
    parameters: Mapping[str, object]
    theorem: str
    assumption: str
    words: str

    def filled(self, parameters: Parameters) -> dict[str, Any]:
        """All parameters, defaults filled in.

        Raises:
          ValueError: one is missing, or not taken.
        """
        for given in parameters:
            if given not in self.parameters:
                allowed = ", ".join(self.parameters) or "none"
                raise ValueError(f"{self.name} takes no parameter {given!r}; its parameters: {allowed}")
        filled = {**self.parameters, **parameters}
        for key, value in filled.items():
            if value is REQUIRED:
                raise ValueError(f"{self.name} needs the parameter {key!r}")
        return filled

    def __call__(self, first: ArrayLike, second: ArrayLike, level: float, **parameters: float) -> float:
        """The bound from these scores; arguments are as for `function`, errors as for `filled`."""
        return self.function(first, second, level=level, **self.filled(parameters))
