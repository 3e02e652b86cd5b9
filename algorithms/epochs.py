"""Epochs for an unknown horizon: an algorithm that needs to know its horizon starts anew in ever longer epochs.

Epoch e has first x growth^e rounds and an algorithm that was built for so many: its noise, its width, and the number of its
features. Nothing but time goes from one epoch to the next. With regret of order sqrt T, finished epochs cost a factor of
sqrt(growth) / (sqrt(growth) - 1) over a known horizon: 3.4 where epochs double, 1.2 where each is 32 times as long. A run
that ends early in an epoch was prepared for up to 32 times as many rounds, which shows in logarithms alone.

Privacy: a record lies in one epoch, which the calendar decides and no data. The releases of an epoch read its own records
alone, so that the spans of two epochs are disjoint: they compose in parallel, and the whole costs what its most costly epoch
costs. Where all are calibrated to one promise, that is the promise, at any horizon.

Source: the doubling trick; Dubey (2021), Remark 5, for GP-UCB, whose epochs are 1, 1, 2, 4, ... rounds long. Where only the
sums depend on the horizon, `bandana.privacy_core.DoublingSum` does the same and forgets nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, Unpack

import numpy as np

from bandana.algorithms.entry import Bound, RegretBound, Settings
from bandana.algorithms.parameters import FAILURE, Kind, Parameter
from bandana.algorithms.protocol import Algorithm, DecidesEachRecord, FloatArray, IntArray, Record
from bandana.privacy_core import Interval, Ledger, Mechanism, Span
from bandana.privacy_core.checks import at_least, failure_of
from bandana.privacy_core.ledger import Reads

ONE, GROWING = "one", "growing"
EPOCHS = Parameter(
    "epochs", "One for a known horizon; growing ones, each 32 times as long, for an unknown one. Audits replay one epoch.",
    ONE, Kind.CHOICE, (ONE, GROWING), is_later=True,
)  # fmt: skip


def in_epochs(build: Callable[[Settings], Algorithm], is_preferring: bool = False) -> Callable[[Settings], Algorithm]:
    """Builds the algorithm, or where `epochs` is growing, the one that starts anew in each.

    Args:
      build: settings -> the algorithm of one epoch.
      is_preferring: whether it breaks ties by a public preference.
    """

    def built(settings: Settings) -> Algorithm:
        if settings.parameters[EPOCHS.name] == ONE:
            return build(_without(settings))
        return (PreferringEpochs if is_preferring else GrowingEpochs)(partial(_of_epoch, build, settings))

    return built


def proved_in_epochs(bound: Bound) -> Bound:
    """The bound of a known horizon; where epochs grow, the sum of the bounds of all epochs, each at its own length.

    Nothing goes from one epoch to the next, so that each has the regret of a run of its length, or of its first rounds; the
    sum is exceeded with probability at most the sum of theirs (Dubey 2021, Remark 5).
    """

    def proved(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
        if settings.parameters[EPOCHS.name] == ONE:
            return bound(_without(settings), means, grid)
        values, shown, start, length = np.zeros(len(grid)), "", 0, GrowingEpochs.first
        while start < grid[-1]:
            own, place = np.unique(np.clip(grid - start, 1, length), return_inverse=True)
            inner = bound(_settings_of(settings, length), means, own)
            if inner is None:
                return None
            values += np.where(grid > start, inner.values[place], 0.0)
            shown, start, length = inner.text, start + length, length * GrowingEpochs.growth
        many = "the sum over all epochs, exceeded with probability at most the sum of theirs; the last one's is"
        return RegretBound(values, f"{many} {shown}")

    return proved


def one_epoch(settings: Settings) -> Settings:
    """Settings of one epoch, in which a record lies: what audits replay."""
    return settings.with_parameters(**{EPOCHS.name: ONE})


def _without(settings: Settings) -> Settings:
    return replace(settings, parameters={name: v for name, v in settings.parameters.items() if name != EPOCHS.name})


def _settings_of(settings: Settings, rounds: int) -> Settings:
    """Settings of an epoch; a failure probability that was left out is that of the epoch's length."""
    given = _without(settings)
    if given.parameters.get(FAILURE.name) == failure_of(None, settings.problem.known_horizon):
        given = given.with_parameters(**{FAILURE.name: failure_of(None, rounds)})
    return replace(given, problem=replace(settings.problem, horizon=rounds))


def _of_epoch(build: Callable[[Settings], Algorithm], settings: Settings, rounds: int) -> Algorithm:
    """The algorithm of an epoch."""
    return build(_settings_of(settings, rounds))


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
class GrowingEpochs(DecidesEachRecord):
    """Algorithms for first, growth x first, growth^2 x first, ... rounds, one after the other.

    For algorithms that are asked in every round, as all are where users bring contexts: replicates change epochs together.

    Attributes:
      build: rounds -> the algorithm of an epoch of so many. All have the same actions and reward range.
      first: rounds of the first epoch.
      growth: how many times as long the next epoch is.
    """

    build: Callable[[int], Algorithm]
    first: int = 32
    growth: int = 32

    def __post_init__(self) -> None:
        at_least("first", self.first, 1)
        at_least("growth", self.growth, 2)

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
        epoch = 0
        while step >= self.start_of(epoch + 1):
            epoch += 1
        return epoch

    def start_of(self, epoch: int) -> int:
        """The first round of an epoch."""
        return self.first * int(self.growth**epoch - 1) // (self.growth - 1)

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The state before the first epoch."""
        sensitive, released = self._algorithm(0).init(n_reps)
        return Sensitive(sensitive), Released(released, np.zeros(n_reps, dtype=np.int64))

    def act(self, released: Released, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) as the epoch's algorithm."""
        return self._algorithm(self.epoch_of(int(released.clock[0]))).act(released.inner, context, step)

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

    def _algorithm(self, epoch: int) -> Algorithm:
        return _built(self.build, self.first * self.growth**epoch)


@dataclass(frozen=True)
class PreferringEpochs(GrowingEpochs):
    """The same for algorithms that break ties by a public preference.

    Attributes:
      preference: (n_reps, n_actions), of each replicate a permutation of the actions; None: the lowest first.
    """

    preference: IntArray | None = None

    def _algorithm(self, epoch: int) -> Algorithm:
        inner: Any = super()._algorithm(epoch)
        algorithm: Algorithm = inner if self.preference is None else replace(inner, preference=self.preference)
        return algorithm


@lru_cache(maxsize=64)
def _built(build: Callable[[int], Algorithm], rounds: int) -> Algorithm:
    return build(rounds)


@dataclass
class _Later:
    """The run's ledger, for an algorithm that counts records from an epoch's first, `start`."""

    ledger: Ledger
    start: int

    def __post_init__(self) -> None:
        self.n_reps = self.ledger.n_reps

    def release(self, mechanism: Mechanism, value: FloatArray, **reads: Unpack[Reads]) -> FloatArray:
        """Releases through the ledger under the records' numbers in the whole run, where the epoch counts from 0."""
        start, stop = reads["records"]
        reads["records"] = Span(start + self.start, stop + self.start)
        if (carried := reads.get("carried")) is not None:
            reads["carried"] = carried._replace(start=carried.start + self.start)
        return self.ledger.release(mechanism, value, **reads)
