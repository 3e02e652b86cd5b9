"""How a release of the museum is listed, and what most are made of: a number of data, and noise for epsilon 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

DATA, NEIGHBOR = [0.0], [1.0]
CLAIM = "pure(epsilon=1)"


@dataclass(frozen=True)
class Exhibit:
    """A release with its claim.

    Attributes:
      function: of (data, seed), or of data alone.
      witness: event of an output that has another probability on the neighbor than the claim allows; None: it is honest.
      rarest: the least probability of the event on the side where it is likely.
      first: whether the event is one of a process's first call.
      claim: what it promises.
      loss: of one whose amount of noise is wrong, the parameter that it has in truth, by its formula; 0 for all others.
    """

    function: Callable[..., Any]
    witness: Callable[[Any], bool] | None = None
    rarest: float = 0.9
    first: bool = False
    claim: str = CLAIM
    loss: float = 0.0

    @property
    def is_broken(self) -> bool:
        """True if it does not keep its claim on the pair."""
        return self.witness is not None or self.loss > 0


EXHIBITS: dict[str, Exhibit] = {}
"""Name of the function -> what it is; filled by the files beside this one."""


def broken(witness: Callable[[Any], bool], **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Lists a function as broken, with a witness."""

    def listed(function: Callable[..., Any]) -> Callable[..., Any]:
        EXHIBITS[function.__name__] = Exhibit(function, witness, **more)
        return function

    return listed


def honest(function: Callable[..., Any]) -> Callable[..., Any]:
    """Lists a function as honest: it keeps its claim on the pair."""
    EXHIBITS[function.__name__] = Exhibit(function)
    return function


def broken_as(claim: str, loss: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Lists a function as broken, whose noise is for another parameter than its claim's."""

    def listed(function: Callable[..., Any]) -> Callable[..., Any]:
        EXHIBITS[function.__name__] = Exhibit(function, claim=claim, loss=loss)
        return function

    return listed


def honest_as(claim: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Lists a function as honest under another claim than most."""

    def listed(function: Callable[..., Any]) -> Callable[..., Any]:
        EXHIBITS[function.__name__] = Exhibit(function, claim=claim)
        return function

    return listed


def bit(data: Any) -> int:
    """What must be hidden: 0 on the data set, 1 on the neighbor."""
    return int(np.sum(data))


def noisy(data: Any, rng: np.random.Generator) -> float:
    """The honest part of most releases."""
    return bit(data) + float(rng.laplace())
