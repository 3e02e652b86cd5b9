"""Faults of bandits that randomize: coins that are taken for noise, and sums of batches that leave again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bandana.algorithms.bandits.finite_arm.thompson import BatchedThompson, Sensitive
from bandana.algorithms.protocol import Record
from bandana.audits.faults import releases
from bandana.audits.faults.fault import ALL, BOTH, Control, Host, State, extended, fault_of, with_part
from bandana.privacy_core import Exact, Ledger, PhaseSum, Span


class _NoForgetting(BatchedThompson):
    """An arm's old rewards enter each of L releases, and the last batch is declared (sqrt(L) mu0).

    It is apart from the other ones as all arms leave in one vector, and what was learned before is undone.
    """

    def init(self, n_reps: int) -> tuple[State, State]:
        sensitive, released = super().init(n_reps)
        table = np.zeros((n_reps, self.n_actions))
        return sensitive, extended(released, sums=table, start=np.zeros(n_reps, dtype=np.int64))

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        rows, arm = np.arange(len(record.user)), record.actions[:, 0]
        released.sums[rows, arm] += record.rewards[:, 0]
        released.fresh[rows, arm] += record.n_records
        np.add(released.clock, record.n_records, out=released.clock)
        is_double = released.fresh[rows, arm] >= np.maximum(released.pulls[rows, arm], 1)
        ended = np.flatnonzero(is_double & (released.clock >= self.n_actions) & (record.n_records > 0))
        if len(ended):
            span = Span(released.start[ended], released.clock[ended])
            noisy = ledger.release(self.sums.mechanism, released.sums[ended], records=span, reps=ended)
            released.fresh[ended] += released.pulls[ended]
            released.pulls[ended] = 0
            released.precision[ended] = released.weighted[ended] = 0.0
            self.learn(released, ended, noisy)
            released.start[ended] = released.clock[ended]
        return sensitive, released


def _coins_taken_for_noise(honest: Host) -> Host:
    """Draws of arms are taken for the noise, and sums leave without any (no privacy)."""
    return replace(honest, sums=PhaseSum(Exact()))


_ONE_FOR_ALL = replace(releases.ONE_FOR_ALL, plant=with_part(with_part(releases.shared, "mechanism")))

RANDOMIZED_CONTROLS: dict[str, tuple[Control, ...]] = {
    "dp-thompson": (
        fault_of(_NoForgetting), fault_of(_coins_taken_for_noise), _ONE_FOR_ALL, releases.half_the_sensitivity("sums"),
        releases.HALVED_UNAWARE, releases.FIRST_UNPAID.caught(*ALL), releases.WIDE_RANGE.caught(*BOTH),
    ),
    "dp-exp3": (
        fault_of(_coins_taken_for_noise), releases.RELEASED_AGAIN, releases.half_the_sensitivity("sums"),
        releases.HALVED_UNAWARE, releases.FIRST_UNPAID.caught(*ALL), releases.WIDE_RANGE.caught(*BOTH),
    ),
}  # fmt: skip
"""Label of an entry -> its planted faults."""
