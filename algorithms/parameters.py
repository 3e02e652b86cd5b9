"""A public parameter of an algorithm, declared once: specs, `bandana list`, the documentation and checks read it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

Value = float | int | str | None
"""A value of a parameter; None where the algorithm chooses it."""


class Kind(Enum):
    """Values that a parameter takes."""

    POSITIVE = "a finite number above 0"
    SHARE = "a number strictly between 0 and 1"
    COUNT = "a whole number of at least 1"
    CHOICE = "one of a few names"
    ANY = "a number, true or false, or a text"


@dataclass(frozen=True)
class Parameter:
    """A parameter of an algorithm.

    Attributes:
      name: in specs and in Python.
      meaning: one sentence.
      default: used where none is given; None: see `otherwise`.
      kind: values that it takes.
      options: names that a CHOICE takes, in an order that never changes: seeds count them from 1.
      otherwise: how a default of None is chosen.
      is_later: whether it was added to an algorithm that has results already: seeds leave its default out, so that these
        stay what they are.
    """

    name: str
    meaning: str
    default: Value
    kind: Kind = Kind.POSITIVE
    options: tuple[str, ...] = ()
    otherwise: str = ""
    is_later: bool = False

    def check(self, value: Value) -> Value:
        """Returns the value if the parameter takes it.

        Raises:
          ValueError: it does not; the message names parameter, value, and what is taken.
        """
        if value is None and self.default is None:
            return value
        is_number = isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value)
        match self.kind:
            case Kind.CHOICE:
                is_taken = value in self.options
            case Kind.ANY:
                is_taken = isinstance(value, float | int | str)
            case Kind.COUNT:
                is_taken = isinstance(value, int) and is_number and value >= 1
            case Kind.SHARE:
                is_taken = isinstance(value, float | int) and is_number and 0 < value < 1
            case Kind.POSITIVE:
                is_taken = isinstance(value, float | int) and is_number and value > 0
        if not is_taken:
            taken = f"one of {', '.join(self.options)}" if self.options else self.kind.value
            raise ValueError(f"{self.name} must be {taken}, got {value!r}")
        return value

    def in_seeds(self, value: Value) -> Value:
        """The value as seeds count it: names by their place, from 1, and 0 for a default that the algorithm chooses.

        Names may then be reworded without moving any number. The default counts as a float, as it always did.
        """
        if value is None:
            return 0.0
        if self.kind is not Kind.CHOICE:
            return value
        place = self.options.index(str(value)) + 1
        return float(place) if value == self.default else place

    @property
    def shown_default(self) -> str:
        """The default in words."""
        if self.default is None:
            return self.otherwise
        return f"{self.default:g}" if isinstance(self.default, float | int) else self.default


FAILURE = Parameter("failure", "Failure probability of the confidence intervals.", None, Kind.SHARE, otherwise="1 / horizon")
BETA_SCALE = Parameter("beta_scale", "Factor on the confidence widths; the theorems require 1.", 1.0)
RIDGE = Parameter("ridge", "Regularizer lambda of the regression.", 1.0)
NORM_BOUND = Parameter("norm_bound", "Bound B on the norm of the mean reward in the kernel's space.", 1.0)
SWITCH = Parameter("switch", "C: the policy is updated when the determinant has grown by a factor of 1 + C.", 1.0)


def declared(*parameters: Parameter) -> dict[str, Parameter]:
    """Name -> parameter."""
    return {parameter.name: parameter for parameter in parameters}
