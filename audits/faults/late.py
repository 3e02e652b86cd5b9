"""A fault that begins after the last round of a replay, which only the walk over the whole horizon can meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults.fault import Control
from bandana.audits.faults.wrapped import WithLedgerWrapper, WrappedState
from bandana.audits.outcome import DETERMINISTIC
from bandana.privacy_core import Ledger


class LeakingState(NamedTuple):
    """The released state of an algorithm that leaks."""

    honest: Any
    """The algorithm's own."""
    last: FloatArray
    """(n_reps,) the last reward of the last record, once the leak has begun; 0 before."""


@dataclass(frozen=True)
class LateLeak(WithLedgerWrapper):
    """An algorithm whose released state holds the raw reward from some record on.

    Attributes:
      begins: first record that leaks.
    """

    begins: int = 0

    def init(self, n_reps: int) -> tuple[WrappedState, LeakingState]:
        """Initial states, with nothing leaked."""
        sensitive, released = super().init(n_reps)
        return sensitive, LeakingState(released, np.zeros(n_reps))

    def act(self, released: LeakingState, *shown: Any) -> IntArray:
        """Actions of the honest algorithm."""
        actions: IntArray = self.honest.act(released.honest, *shown)
        return actions

    def hold(self, released: LeakingState, actions: IntArray) -> IntArray:
        """Phases of the honest algorithm."""
        lengths: IntArray = self.honest.hold(released.honest, actions)
        return lengths

    def absorb(
        self, sensitive: WrappedState, released: LeakingState, record: Record, ledger: Ledger
    ) -> tuple[WrappedState, LeakingState]:
        """Absorbs as the honest algorithm does, and leaks."""
        sensitive, honest = super().absorb(sensitive, released.honest, record, ledger)
        leaks = record.user + record.n_records > self.begins
        return sensitive, LeakingState(honest, np.where(leaks, record.rewards[:, -1], released.last))


LATE = "late-leak"
"""Name of the fault."""


def late_leak(replayed: int, horizon: int) -> Control:
    """The fault that begins at the first power of two beyond the records of a replay.

    Args:
      replayed: records of a replay.
      horizon: records that are walked.
    """
    begins = min(1 << replayed.bit_length(), horizon - 1)
    return Control(
        LATE, f"From record {begins:,} on, which no replay reaches, the released state holds rewards (no privacy)",
        lambda honest: LateLeak(honest, begins), (DETERMINISTIC,), is_sampled=False,
    )  # fmt: skip
