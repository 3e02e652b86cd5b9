"""Prices: the cost of one call of a foreign primitive, and the change of its value that it pays for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.audits.claims import ClaimError, parse
from bandana.privacy_core import ZCDP, ConcentratedEvent, Event, GaussianDP, GaussianEvent, PureDP, PureEvent
from bandana.privacy_core.checks import positive

_ORDERS = {"L1": 1.0, "L2": 2.0, "Linf": math.inf}


class Priced(Protocol):
    """Price of a call; every mechanism of `bandana.privacy_core` is one."""

    @property
    def event(self) -> Event:
        """Cost of one call."""

    @property
    def sensitivity(self) -> float:
        """The largest change of the value that the cost covers, in `norm`."""

    @property
    def norm(self) -> str:
        """The norm of the sensitivity, in words."""

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_reps,) distances of two values of shape (n_reps, ...)."""


@dataclass(frozen=True)
class Price:
    """The claim of a primitive, for values that move by at most the sensitivity.

    Attributes:
      claim: `pure(epsilon=1)`, `zcdp(rho=0.5)` or `gdp(mu=1)`.
      sensitivity: the largest change of the value for which the claim holds, positive.
      norm: in which the change is measured: L1, L2 or Linf.

    Raises:
      ClaimError: a claim that does not compose call by call.
      ValueError: a sensitivity that is not positive, or another norm.
    """

    claim: str
    sensitivity: float
    norm: str = "L2"

    def __post_init__(self) -> None:
        positive("sensitivity", self.sensitivity)
        if self.norm not in _ORDERS:
            raise ValueError(f"norm must be one of {', '.join(_ORDERS)}, got {self.norm!r}")
        _ = self.event

    @property
    def event(self) -> Event:
        """Cost of one call."""
        match parse(self.claim, relation=None if "relation" in self.claim else "record").stated:
            case PureDP(epsilon=epsilon):
                return PureEvent(epsilon)
            case ZCDP(rho=rho):
                return ConcentratedEvent(rho)
            case GaussianDP(mu=mu):
                return GaussianEvent(1 / mu)
        raise ClaimError(f"price {self.claim!r}: must be pure, zcdp or gdp, which compose call by call")

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_reps,) distances of two values of shape (n_reps, ...)."""
        moved = (neighbor - value).reshape(len(value), -1)
        return np.asarray(np.linalg.norm(moved, _ORDERS[self.norm], axis=1) if moved.shape[1] else np.zeros(len(value)))
