"""Faults that only a test for the best arm can have: it stops, or recommends, by values that were never released."""

from __future__ import annotations

import numpy as np

from bandana.algorithms.bandits.best_arm.halving import Halving
from bandana.algorithms.bandits.best_arm.rules import Judged
from bandana.algorithms.bandits.best_arm.top_two import TopTwo
from bandana.algorithms.protocol import IntArray, Record
from bandana.audits.faults import releases
from bandana.audits.faults.fault import BOTH, Control, State, fault_of
from bandana.audits.faults.remembering import KeepsSums, NoForgetting
from bandana.privacy_core import Ledger


class _Remembers(KeepsSums):
    """Adds all rewards to what is kept."""

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


_HALF_THE_SENSITIVITY = releases.half_the_sensitivity("sums")
_COMMON = (_HALF_THE_SENSITIVITY, releases.HALVED_UNAWARE, releases.FIRST_UNPAID, releases.WIDE_RANGE)
_STOPS, _KEEPS = fault_of(_StopsByExact, BOTH), fault_of(_KeepsByExact, BOTH)
_FORGETS = fault_of(NoForgetting)
_CONFIDENCE, _BUDGET = (_STOPS, _FORGETS, *_COMMON), (_KEEPS, _FORGETS, *_COMMON)

BEST_ARM_CONTROLS: dict[str, tuple[Control, ...]] = {
    "adap-tt": _CONFIDENCE, "adap-tt renyi": _CONFIDENCE, "dp-tt": _CONFIDENCE, "dp-tt renyi": _CONFIDENCE,
    "dp-bai": _BUDGET, "dp-bai renyi": _BUDGET,
}  # fmt: skip
"""Label of an entry -> its planted faults."""
