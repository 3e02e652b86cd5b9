"""Faults that only a test for the best arm can have: it stops, or recommends, by values that were never released."""

from __future__ import annotations

import numpy as np

from bandana.algorithms.bandits.best_arm.halving import Halving
from bandana.algorithms.bandits.best_arm.rules import Judged
from bandana.algorithms.bandits.best_arm.top_two import TopTwo
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults import releases
from bandana.audits.faults.fault import BOTH, Control, State, extended, fault_of
from bandana.privacy_core import Carried, Ledger, Mechanism, Span


class _Remembers:
    """Keeps each arm's exact sum and its number of rewards beside the estimates, (n_reps, n_arms) each."""

    def init(self, n_reps: int) -> tuple[State, State]:
        sensitive, released = super().init(n_reps)  # type: ignore[misc]
        empty = np.zeros_like(released.mean)
        return sensitive, extended(released, sums=empty, counts=empty.copy())

    def absorb(self, sensitive: State, released: State, record: Record, ledger: Ledger) -> tuple[State, State]:
        each, arm = np.arange(len(record.user)), record.actions[:, 0]
        released.sums[each, arm] += record.rewards[:, 0]
        released.counts[each, arm] += record.n_records
        return super().absorb(sensitive, released, record, ledger)  # type: ignore[misc, no-any-return]


class _StopsByExact(_Remembers, TopTwo):
    """The test stops by the exact means, which leave through the stopping time (no privacy)."""

    def _judge(self, released: State, rows: IntArray) -> Judged:
        exact = released.sums[rows] / np.maximum(released.counts[rows], 1) / self.reward_range.width
        judged = self.rules.judge(released.episodes[rows], exact, released.clock[rows])
        return super()._judge(released, rows)._replace(best=judged.best, is_certain=judged.is_certain)


class _KeepsByExact(_Remembers, Halving):
    """Arms are eliminated by their exact means (no privacy)."""

    def _halve(self, released: State, rows: IntArray) -> None:
        noisy = released.mean[rows].copy()
        released.mean[rows] = released.sums[rows] / np.maximum(released.counts[rows], 1) / self.reward_range.width
        super()._halve(released, rows)
        released.mean[rows] = noisy


class _NoForgetting:
    """An arm's old rewards enter each of L releases, and the last episode is declared (sqrt(L) mu0, or L epsilon)."""

    def absorb(self, sensitive: State, released: State, record: Record, ledger: Ledger) -> tuple[State, State]:
        return super().absorb(sensitive, released, record, _Adding(ledger, released))  # type: ignore[misc, no-any-return]

    def init(self, n_reps: int) -> tuple[State, State]:
        sensitive, released = super().init(n_reps)  # type: ignore[misc]
        empty = np.zeros_like(released.mean)
        return sensitive, extended(released, sums=empty, counts=empty.copy())


class _Adding:
    """A ledger that adds an arm's earlier episodes to what is released of it, in units of the episode under way."""

    def __init__(self, ledger: Ledger, released: State) -> None:
        self.n_reps, self._ledger, self._released = ledger.n_reps, ledger, released

    def release(
        self, mechanism: Mechanism, value: FloatArray, *, records: Span, reps: IntArray | None = None,
        carried: Carried | None = None,
    ) -> FloatArray:  # fmt: skip
        rows = np.arange(self.n_reps) if reps is None else reps
        at = rows, self._released.arm[rows]
        n = records.stop - records.start
        self._released.sums[at] += value
        self._released.counts[at] += n
        noisy = self._ledger.release(mechanism, self._released.sums[at], records=records, reps=reps)
        return np.asarray(noisy / self._released.counts[at] * n)


_HALF_THE_SENSITIVITY = releases.half_the_sensitivity("sums")
_COMMON = (_HALF_THE_SENSITIVITY, releases.HALVED_UNAWARE, releases.FIRST_UNPAID, releases.WIDE_RANGE)
_STOPS, _KEEPS = fault_of(_StopsByExact, BOTH), fault_of(_KeepsByExact, BOTH)
_FORGETS = fault_of(_NoForgetting)
_CONFIDENCE, _BUDGET = (_STOPS, _FORGETS, *_COMMON), (_KEEPS, _FORGETS, *_COMMON)

BEST_ARM_CONTROLS: dict[str, tuple[Control, ...]] = {
    "adap-tt": _CONFIDENCE, "adap-tt renyi": _CONFIDENCE, "dp-tt": _CONFIDENCE, "dp-tt renyi": _CONFIDENCE,
    "dp-bai": _BUDGET, "dp-bai renyi": _BUDGET,
}  # fmt: skip
"""Label of an entry -> its planted faults."""
