"""Structures of how releases touch a record: what the calibration of noise needs to know of a mechanism.

A structure answers which events touch the worst record if every noise multiplier is m times its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from bandana.privacy_core.accounting.events import (
    BoundedEvent,
    BoundedRangeEvent,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    ResponseEvent,
)
from bandana.privacy_core.checks import at_least, positive

Noise = type[GaussianEvent] | type[LaplaceEvent]


class Structure(Protocol):
    """Events that touch the worst record."""

    def events(self, multiplier: float, noise: Noise) -> dict[Event, int]:
        """Event -> count, at the given noise multiplier and kind of noise."""


@dataclass(frozen=True)
class Releases:
    """So many releases of the same mechanism touch a record: 1 for a phase sum, a local sum and a joint statistic."""

    count: int = 1

    def __post_init__(self) -> None:
        at_least("count", self.count, 1)

    def events(self, multiplier: float, noise: Noise) -> dict[Event, int]:
        """`count` times the same event."""
        return {noise(multiplier): self.count}


@dataclass(frozen=True)
class Tree:
    """A binary tree of which the prefixes 1, ..., n_steps are released, in the plain or in Honaker's way.

    The first record lies in the nodes of length 1, 2, 4, ... up to the largest power of two that is at most n_steps,
    which is `n_steps.bit_length()` of them, and none lies in more. (1 + ceil(log2 n_steps), as papers print it, is one
    too many unless n_steps is a power of two.)
    """

    n_steps: int

    def __post_init__(self) -> None:
        at_least("n_steps", self.n_steps, 1)

    @property
    def n_nodes(self) -> int:
        """Number of nodes that hold the first record."""
        return int(self.n_steps).bit_length()

    def events(self, multiplier: float, noise: Noise) -> dict[Event, int]:
        """One event a node."""
        return {noise(multiplier): self.n_nodes}


@dataclass(frozen=True)
class Factorized:
    """A column-normalized matrix factorization of n_steps prefix sums: one event, whatever n_steps (`FactorizedSum`)."""

    n_steps: int
    n_buffers: int | None = None

    def __post_init__(self) -> None:
        at_least("n_steps", self.n_steps, 1)

    def events(self, multiplier: float, noise: Noise) -> dict[Event, int]:
        """One Gaussian event.

        Raises:
          ValueError: Laplace noise is asked for; a column's L1 norm is not 1.
        """
        if noise is not GaussianEvent:
            raise ValueError("a factorized sum takes Gaussian noise; for pure DP use a tree")
        return {GaussianEvent(multiplier): 1}


@dataclass(frozen=True)
class Mixture:
    """Different events on one record, all scaled together.

    Attributes:
      parts: event -> count, at the proportions that the noise multipliers shall keep.
    """

    parts: Mapping[Event, int]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("parts must hold at least one event")
        for event, count in self.parts.items():
            at_least(f"the count of {event}", count, 1)
            if not isinstance(event, GaussianEvent | BoundedEvent | ConcentratedEvent):
                raise ValueError(f"{event} cannot be scaled: no noise makes it private")

    def events(self, multiplier: float, noise: Noise) -> dict[Event, int]:
        """Every part with `multiplier` times its noise; the kind of noise is each part's own."""
        positive("multiplier", multiplier)
        return {_scaled(event, multiplier): count for event, count in self.parts.items()}


def _scaled(event: Event, factor: float) -> Event:
    match event:
        case GaussianEvent(multiplier):
            return GaussianEvent(multiplier * factor)
        case LaplaceEvent(multiplier):
            return LaplaceEvent(multiplier * factor)
        case ConcentratedEvent(rho):
            return ConcentratedEvent(rho / factor**2)
        case PureEvent(epsilon):
            return PureEvent(epsilon / factor)
        case BoundedRangeEvent(epsilon):
            return BoundedRangeEvent(epsilon / factor)
        case ResponseEvent(epsilon, n_options):
            return ResponseEvent(epsilon / factor, n_options)
    raise ValueError(f"{event} cannot be scaled")
