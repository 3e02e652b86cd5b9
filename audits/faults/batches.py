"""Faults of bandits that forget nothing: noisy sums that are added up wrongly, or noise that is drawn for several arms.

`no-forgetting` is the fault that is nearest to the honest algorithm: exact sums of all batches leave again with fresh noise,
where noisy sums of single batches should be added up.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from bandana.algorithms.bandits.finite_arm.growing_batches import GrowingBatches
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.faults import releases
from bandana.audits.faults.fault import ALL, Control, State, extended, fault_of, planted_as
from bandana.audits.outcome import SAMPLING
from bandana.privacy_core import Ledger, Mechanism, OpenPhase, Span
from bandana.privacy_core.sums import contents, reopen


class _RemembersSums(GrowingBatches):
    """Keeps exact sums beyond their batch; the released state holds in addition those of each arm, (n_reps, n_arms)."""

    def init(self, n_reps: int) -> tuple[State, State]:
        sensitive, released = super().init(n_reps)
        return sensitive, extended(released, sums=np.zeros((n_reps, self.n_actions)))

    def _release(self, phase: OpenPhase, released: State, ledger: Ledger, ended: IntArray) -> OpenPhase:
        arm = released.arm[ended]
        total, span = contents(phase, ended)
        released.sums[ended, arm] += total
        reopen(phase, ended)
        self.publish(released, ledger, ended, arm, span)
        return phase

    @abstractmethod
    def publish(self, released: State, ledger: Ledger, ended: IntArray, arm: IntArray, span: Span) -> None:
        """Releases what the fault releases."""

    def take_in(self, released: State, reps: IntArray, noisy: FloatArray) -> None:
        """Puts noisy sums of all arms, (n_rows, n_arms), in the place of what was there."""
        released.total[reps] = noisy
        released.size[reps] = released.pulls[reps]
        released.noise[reps] = 1.0
        released.length[reps] = np.maximum(released.pulls[reps], 1)


class _NoForgetting(_RemembersSums):
    """An arm's old rewards enter each of L releases, and the last batch is declared (L epsilon).

    It is apart from the other ones as an honest batch is added to noisy sums, where this one takes their place.
    """

    def publish(self, released: State, ledger: Ledger, ended: IntArray, arm: IntArray, span: Span) -> None:
        noisy = released.total[ended]
        one = ledger.release(self.sums.mechanism, released.sums[ended, arm], records=span, reps=ended)
        noisy[np.arange(len(ended)), arm] = one
        self.take_in(released, ended, noisy)


class _NoiseRedrawn(_RemembersSums):
    """Noise is drawn anew at each read of an index (m epsilon, after m reads)."""

    def publish(self, released: State, ledger: Ledger, ended: IntArray, arm: IntArray, span: Span) -> None:
        so_far = Span(np.zeros_like(span.stop), span.stop)
        noisy = ledger.release(self.drawn(self.sums.mechanism), released.sums[ended], records=so_far, reps=ended)
        self.take_in(released, ended, np.where(released.pulls[ended] > 0, noisy, 0.0))

    @staticmethod
    def drawn(declared: Mechanism) -> Mechanism:
        """One fresh draw an arm."""
        return declared


class _OneNoiseForAllArms(_NoiseRedrawn):
    """A read draws one noise and adds it to every arm's sum."""

    drawn = staticmethod(releases.shared)


_CONTROLS = (
    fault_of(_NoForgetting), fault_of(_NoiseRedrawn).caught(SAMPLING),
    replace(releases.ONE_FOR_ALL, plant=planted_as(_OneNoiseForAllArms)),
    releases.half_the_sensitivity("sums"), releases.HALVED_UNAWARE, releases.FIRST_UNPAID.caught(*ALL), releases.WIDE_RANGE,
)  # fmt: skip

BATCH_CONTROLS: dict[str, tuple[Control, ...]] = dict.fromkeys(
    ("dp-klucb", "dp-imed", "dp-klucb renyi", "dp-imed renyi"), _CONTROLS
)
"""Label of an entry -> its planted faults."""
