"""An algorithm for an unknown horizon: one that needs to know it, started anew for epochs of twice the length.

Epoch e has first x 2^e rounds and an algorithm that was built for so many: its noise, its width, and the number of its
features. Nothing but time goes from one epoch to the next.

Privacy: a record lies in one epoch, which the calendar decides and no data. The releases of an epoch read its own records
alone, so that the spans of two epochs are disjoint: they compose in parallel, and the whole costs what its most costly epoch
costs. Where all are calibrated to one promise, that is the promise, at any horizon.

Source: the doubling trick; Dubey (2021), Remark 5, for GP-UCB, whose epochs are 1, 1, 2, 4, ... rounds long. Where only the
sums depend on the horizon, `bandana.privacy_core.DoublingSum` does the same and forgets nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray, Record
from bandana.privacy_core import Carried, Interval, Ledger, Mechanism, Span
from bandana.privacy_core.checks import at_least


class Sensitive(NamedTuple):
    """Sensitive state of the current epoch."""

    inner: Any
    """The sensitive state of its algorithm."""


class Released(NamedTuple):
    """Released state of the current epoch, and the clock over all epochs."""

    inner: Any
    """The released state of its algorithm."""
    clock: IntArray
    """(n_reps,) rounds played; the same in all replicates."""


@dataclass(frozen=True)
class Doubling:
    """Algorithms for first, 2 first, 4 first, ... rounds, one after the other; see the module.

    For algorithms that are asked in every round, as all are where users bring contexts: replicates change epochs together.

    Attributes:
      build: rounds -> the algorithm of an epoch of so many. All have the same actions and reward range.
      first: rounds of the first epoch.
    """

    build: Callable[[int], Algorithm]
    first: int = 32

    def __post_init__(self) -> None:
        at_least("first", self.first, 1)

    @property
    def n_actions(self) -> int:
        """Number of actions, the same in each epoch."""
        return self._algorithm(0).n_actions

    @property
    def reward_range(self) -> Interval:
        """Reward range, the same in each epoch."""
        return self._algorithm(0).reward_range

    @property
    def context_dimension(self) -> int | None:
        """Context dimension, the same in each epoch; None where it decides without contexts."""
        dimension: int | None = getattr(self._algorithm(0), "context_dimension", None)
        return dimension

    def epoch_of(self, step: int) -> int:
        """The epoch of the round (from 0)."""
        return (step // self.first + 1).bit_length() - 1

    def start_of(self, epoch: int) -> int:
        """The first round of an epoch."""
        return self.first * ((1 << epoch) - 1)

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The state before the first epoch."""
        sensitive, released = self._algorithm(0).init(n_reps)
        return Sensitive(sensitive), Released(released, np.zeros(n_reps, dtype=np.int64))

    def act(self, released: Released, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) as the epoch's algorithm."""
        return self._now(released).act(released.inner, context, step)

    def hold(self, released: Released, actions: IntArray) -> IntArray:
        """(n_reps,) rounds until the next decision: one."""
        return np.ones(len(actions), dtype=np.int64)

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Absorbs a record with the epoch's algorithm, counting from the epoch's first; the last one starts the next epoch.

        Raises:
          ValueError: replicates are asked for different numbers of rounds, or for several at once.
        """
        if not (record.n_records == 1).all():
            raise ValueError("epochs change in all replicates together: every one must play one round at a time")
        step = int(released.clock[0])
        epoch = self.epoch_of(step)
        start = self.start_of(epoch)
        inner, outer = self._algorithm(epoch).absorb(
            sensitive.inner, released.inner, record._replace(user=record.user - start), _Later(ledger, start)
        )
        np.add(released.clock, 1, out=released.clock)
        if step + 1 == self.start_of(epoch + 1):
            inner, outer = self._algorithm(epoch + 1).init(ledger.n_reps)
        return Sensitive(inner), Released(outer, released.clock)

    def _now(self, released: Released) -> Algorithm:
        return self._algorithm(self.epoch_of(int(released.clock[0])))

    def _algorithm(self, epoch: int) -> Algorithm:
        return _built(self.build, self.first << epoch)


@lru_cache(maxsize=64)
def _built(build: Callable[[int], Algorithm], rounds: int) -> Algorithm:
    return build(rounds)


@dataclass
class _Later:
    """A ledger for an algorithm that counts records from an epoch's first.

    Attributes:
      ledger: the run's.
      start: the epoch's first record.
    """

    ledger: Ledger
    start: int

    def __post_init__(self) -> None:
        self.n_reps = self.ledger.n_reps

    def release(
        self,
        mechanism: Mechanism,
        value: FloatArray,
        *,
        records: Span,
        reps: IntArray | None = None,
        carried: Carried | None = None,
    ) -> FloatArray:
        """Releases through the ledger under the records' numbers in the whole run, where the epoch counts from 0."""
        own = Span(records.start + self.start, records.stop + self.start)
        if carried is not None:
            carried = carried._replace(start=carried.start + self.start)
        return self.ledger.release(mechanism, value, records=own, reps=reps, carried=carried)
