"""Collection of CAPRI's features from users: added up by a trusted server, or each with noise of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Ledger, Mechanism, PhaseSum, Span


class Gathering(Protocol):
    """Rule by which users' contributions become one noisy sum an epoch: joint and local privacy differ in this alone."""

    @property
    def mechanism(self) -> Mechanism:
        """Mechanism that adds noise to one release; its sensitivity is 2 B."""
        ...

    def init(self, n_reps: int, n_outputs: int) -> Any:
        """The state before the first record."""
        ...

    def take(
        self, state: Any, value: FloatArray, n_records: IntArray, is_last: bool, ledger: Ledger
    ) -> tuple[Any, FloatArray]:
        """Adds the next record's contribution (n_reps, n_outputs); where it is the epoch's last, answers the noisy sum."""
        ...

    def noise_deviation(self, n_records: int) -> float:
        """Standard deviation of the noise in an epoch's sum, in each coordinate."""
        ...


_NOTHING: FloatArray = np.zeros(0)


@dataclass(frozen=True)
class Together:
    """The epoch's exact sum is released once, when the epoch ends: joint privacy, and the twin.

    Attributes:
      mechanism: with the noise of an epoch's sum.
    """

    mechanism: Mechanism

    @cached_property
    def _sums(self) -> PhaseSum:
        return PhaseSum(self.mechanism)

    def init(self, n_reps: int, n_outputs: int) -> Any:
        """An empty sum of `n_outputs` numbers for each replicate."""
        return self._sums.init(n_reps, (n_outputs,))

    def take(
        self, state: Any, value: FloatArray, n_records: IntArray, is_last: bool, ledger: Ledger
    ) -> tuple[Any, FloatArray]:
        """Adds the next record's contribution; where it is the epoch's last, releases the sum and answers it."""
        state = self._sums.add(state, value, n_records)
        if not is_last:
            return state, _NOTHING
        state, noisy, _ = self._sums.close(state, ledger)
        return state, noisy

    def noise_deviation(self, n_records: int) -> float:
        """Standard deviation of one draw of noise."""
        return self._sums.noise_deviation(1)


class Messages(NamedTuple):
    """Messages sent in the epoch under way."""

    total: FloatArray
    """(n_reps, n_outputs)"""
    next: IntArray
    """(n_reps,) the record that sends the next one."""


@dataclass(frozen=True)
class EachAlone:
    """Each user sends their own noisy contribution, and the epoch's messages are added up: local privacy.

    Attributes:
      mechanism: with the noise of a message.
    """

    mechanism: Mechanism

    def init(self, n_reps: int, n_outputs: int) -> Messages:
        """The state before the first message."""
        return Messages(np.zeros((n_reps, n_outputs)), np.zeros(n_reps, dtype=np.int64))

    def take(
        self, state: Messages, value: FloatArray, n_records: IntArray, is_last: bool, ledger: Ledger
    ) -> tuple[Messages, FloatArray]:
        """Releases the next record's own noisy message; where it is the epoch's last, answers the sum of all messages.

        Raises:
          ValueError: it is the contribution of more than one record, whose messages would be one.
        """
        if (n_records > 1).any():
            raise ValueError(f"under local DP each record sends its own message, got one of {int(n_records.max())} records")
        after = state.next + n_records
        message = ledger.release(self.mechanism, value, records=Span(state.next, after))
        np.add(state.total, message, out=state.total)
        if not is_last:
            return Messages(state.total, after), _NOTHING
        return Messages(np.zeros_like(state.total), after), state.total

    def noise_deviation(self, n_records: int) -> float:
        """Standard deviation of the sum of one draw of noise a message."""
        return math.sqrt(n_records) * self.mechanism.deviation
