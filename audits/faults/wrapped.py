"""An algorithm behind a ledger that is not what it seems: what audits plant faults and other budgets with.

The algorithm stays as it is; each of its releases goes through a wrapper. What the wrapper remembers of a run is kept in the
sensitive state, so that nothing outlives the run and replicates stay apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.privacy_core import Interval, Ledger


class Remembering(NamedTuple):
    """The sensitive state of an algorithm behind another ledger."""

    inner: Any
    """The algorithm's own."""
    memory: Any
    """What the hands remember of this run."""


@dataclass(frozen=True)
class Wrapped(ABC):
    """Another algorithm's actions, phases and states; subclasses change one thing.

    Attributes:
      honest: the algorithm.
    """

    honest: Any

    @property
    def n_actions(self) -> int:
        """The wrapped algorithm's number of actions."""
        return int(self.honest.n_actions)

    @property
    def reward_range(self) -> Interval:
        """The wrapped algorithm's reward range."""
        span: Interval = self.honest.reward_range
        return span

    @property
    def context_dimension(self) -> int | None:
        """The wrapped algorithm's context dimension; None where it decides without contexts."""
        dimension: int | None = getattr(self.honest, "context_dimension", None)
        return dimension

    @property
    def episode_length(self) -> int | None:
        """The wrapped algorithm's episode length; None where it plays no episodes."""
        length: int | None = getattr(self.honest, "episode_length", None)
        return length

    @property
    def n_states(self) -> int | None:
        """The wrapped algorithm's number of states; None where it plays no episodes."""
        n_states: int | None = getattr(self.honest, "n_states", None)
        return n_states

    def init(self, n_reps: int) -> tuple[Any, Any]:
        """Initial states of the wrapped algorithm."""
        sensitive, released = self.honest.init(n_reps)
        return sensitive, released

    def act(self, released: Any, context: FloatArray | None, step: int) -> IntArray:
        """Actions of the wrapped algorithm."""
        return np.asarray(self.honest.act(released, context, step))

    def hold(self, released: Any, actions: IntArray) -> IntArray:
        """Number of rounds for which the wrapped algorithm holds its actions."""
        return np.asarray(self.honest.hold(released, actions))

    @abstractmethod
    def absorb(self, sensitive: Any, released: Any, record: Record, ledger: Ledger) -> tuple[Any, Any]:
        """Absorbs a record as the wrapped algorithm does, with one change."""


@dataclass(frozen=True)
class Behind(Wrapped):
    """An algorithm that sees its ledger through a wrapper."""

    @abstractmethod
    def remember_nothing(self, n_reps: int) -> Any:
        """The memory at the start of a run."""

    @abstractmethod
    def hands(self, ledger: Ledger, memory: Any) -> Any:
        """The ledger that the algorithm gets in place of the given one."""

    def init(self, n_reps: int) -> tuple[Remembering, Any]:
        """Initial states of the wrapped algorithm, with an empty memory."""
        sensitive, released = super().init(n_reps)
        return Remembering(sensitive, self.remember_nothing(n_reps)), released

    def absorb(self, sensitive: Remembering, released: Any, record: Record, ledger: Ledger) -> tuple[Remembering, Any]:
        """Absorbs a record as the wrapped algorithm does, through the wrapper's ledger."""
        inner, released = self.honest.absorb(sensitive.inner, released, record, self.hands(ledger, sensitive.memory))
        return sensitive._replace(inner=inner), released
