"""Faults of bandits on arms that forget nothing, as families have them that release an arm's sum and forget it."""

from __future__ import annotations

import numpy as np

from bandana.algorithms.protocol import FloatArray, Record
from bandana.audits.faults.fault import State, extended
from bandana.audits.faults.wrapped import ReleaseRequest, WrappedLedger
from bandana.privacy_core import Ledger


class KeepsSums:
    """Keeps each arm's exact sum and its number of rewards beside the estimates, (n_reps, n_arms) each."""

    def init(self, n_reps: int) -> tuple[State, State]:
        """The honest states, with both kept in the released one."""
        sensitive, released = super().init(n_reps)  # type: ignore[misc]
        empty = np.zeros_like(released.mean)
        return sensitive, extended(released, sums=empty, counts=empty.copy())


class NoForgetting(KeepsSums):
    """An arm's old rewards enter each of L releases, and the last episode is declared (sqrt(L) mu0, or L epsilon)."""

    def absorb(self, sensitive: State, released: State, record: Record, ledger: Ledger) -> tuple[State, State]:
        """Absorbs as the honest algorithm does; a release holds earlier episodes, too, in units of the one under way."""

        def with_earlier(request: ReleaseRequest) -> FloatArray:
            rows = np.arange(ledger.n_reps)[request.rows]
            at, n = (rows, released.arm[rows]), request.records.stop - request.records.start
            released.sums[at] += request.value
            released.counts[at] += n
            return np.asarray(request.release(value=released.sums[at]) / released.counts[at] * n)

        wrapped = WrappedLedger(ledger, with_earlier)
        return super().absorb(sensitive, released, record, wrapped)  # type: ignore[misc, no-any-return]
