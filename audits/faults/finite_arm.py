"""Faults that only bandits on finitely many arms can have: old sums that are kept, and reads of all arms at once.

Each control takes an honest algorithm apart where public implementations go wrong, and keeps its claim. The book of Laplace
releases is not compared with the claim case by case: a fault that only spends too often, or draws too little, is not for the
deterministic audit to see where noise is Laplace's. Replays see it, and the noise audit where that is wrong.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial

import numpy as np

from bandana.algorithms.bandits.finite_arm import episodes_numba
from bandana.algorithms.bandits.finite_arm.episodic_ucb import EpisodicUCB
from bandana.algorithms.bandits.finite_arm.successive_elimination import Sensitive, SuccessiveElimination
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults import regression, releases
from bandana.audits.faults.fault import ALL, BOTH, Control, State, extended, fault_of, planted_as, with_part
from bandana.audits.faults.remembering import NoForgetting
from bandana.audits.faults.wrapped import ReleaseRequest, WrappedLedger
from bandana.audits.outcome import SAMPLING
from bandana.privacy_core import Exact, Ledger, Mechanism, OpenPhase, PhaseSum, Span
from bandana.privacy_core.sums import contents, reopen


class _RemembersSums(EpisodicUCB):
    """Keeps exact sums beyond their episode, and releases them in a faulty way.

    The released state also holds, each (n_reps, n_arms), each arm's kept sum, and where its last episode began and ended.
    """

    def init(self, n_reps: int) -> tuple[State, State]:
        sensitive, released = super().init(n_reps)
        empty = np.zeros((n_reps, self.n_actions), dtype=np.int64)
        return sensitive, extended(released, sums=empty.astype(float), start=empty, stop=empty.copy())

    def _release(self, phase: OpenPhase, released: State, record: Record, ledger: Ledger, ended: IntArray) -> OpenPhase:
        arm = released.arm[ended]
        total, span = contents(phase, ended)
        released.sums[ended, arm] = total
        released.start[ended, arm], released.stop[ended, arm] = span
        reopen(phase, ended)
        self.publish(released, ledger, ended, arm, span)
        return phase

    @abstractmethod
    def publish(self, released: State, ledger: Ledger, ended: IntArray, arm: IntArray, span: Span) -> None:
        """Releases what the fault releases."""

    def take_in(self, released: State, reps: IntArray, arm: IntArray, noisy: FloatArray, n_samples: IntArray) -> None:
        """Puts noisy sums into the arms' estimates; the last one alone counts."""
        episodes_numba.estimate(
            released.mean, released.deviation, reps, arm, noisy, n_samples, 1.0, self.sums.mechanism.scale**2,
            self.reward_range.width, False,
        )  # fmt: skip


class _NoiseRedrawn(_RemembersSums):
    """Noise is drawn anew at each read of an index (sqrt(m) mu0, or m epsilon, after m reads)."""

    def publish(self, released: State, ledger: Ledger, ended: IntArray, arm: IntArray, span: Span) -> None:
        so_far = Span(np.zeros_like(span.stop), span.stop)
        noisy = ledger.release(self.drawn(self.sums.mechanism), released.sums[ended], records=so_far, reps=ended)
        n_samples = (released.stop - released.start)[ended]
        row, arms = np.nonzero(n_samples)
        self.take_in(released, ended[row], arms, noisy[row, arms], n_samples[row, arms])

    @staticmethod
    def drawn(declared: Mechanism) -> Mechanism:
        """One fresh draw an arm."""
        return declared


class _OneNoiseForAllArms(_NoiseRedrawn):
    """A read draws one noise and adds it to every arm's sum."""

    drawn = staticmethod(releases.shared)


def _first_pull_exact(honest: EpisodicUCB) -> EpisodicUCB:
    """An arm's first pull enters its index without noise (no privacy)."""
    return replace(honest, first_sums=PhaseSum(Exact()))


class _AllArmsAtOnce(SuccessiveElimination):
    """The sums of all arms leave together when the epoch ends, with one noise for all of them.

    The released state holds in addition the sum of each arm, (n_reps, n_arms), and where the epoch began, (n_reps,).
    """

    def init(self, n_reps: int) -> tuple[State, State]:
        sensitive, released = super().init(n_reps)
        return sensitive, extended(released, sums=np.zeros((n_reps, self.n_actions)), start=np.zeros(n_reps, dtype=np.int64))

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        return super().absorb(sensitive, released, record, WrappedLedger(ledger, partial(self.published, released)))

    def published(self, released: State, request: ReleaseRequest) -> FloatArray:
        """(n_ended,) noisy sums of the epoch's rewards, as the estimates take them; 0 until the last arm has ended."""
        ended, span = np.arange(len(released.arm))[request.rows], request.records
        arm = released.arm[ended]
        released.sums[ended, arm] = request.value
        later = np.arange(self.n_actions) > arm[:, None]
        is_last = ~(released.active[ended] & later).any(axis=1)
        noisy, n = np.zeros(len(ended)), span.stop - span.start
        if is_last.any():
            rows = ended[is_last]
            epoch = Span(released.start[rows], span.stop[is_last])
            one_noise = releases.shared(request.mechanism)
            vector = request.release(mechanism=one_noise, value=released.sums[rows], records=epoch, reps=rows)
            released.mean[rows] = vector / n[is_last, None]
            noisy[is_last] = vector[np.arange(len(rows)), arm[is_last]]
            released.sums[rows] = 0.0
            released.start[rows] = span.stop[is_last]
        return noisy


_NOISE_REDRAWN, _NO_FORGETTING = fault_of(_NoiseRedrawn), fault_of(NoForgetting)
_ONE_FOR_ALL_ARMS = replace(releases.ONE_FOR_ALL, plant=planted_as(_OneNoiseForAllArms))
_FIRST_PULL_EXACT = fault_of(_first_pull_exact)
_HALF_THE_SENSITIVITY = releases.half_the_sensitivity("sums", "first_sums")

_ADAR_UCB = (
    _NOISE_REDRAWN, _NO_FORGETTING, _HALF_THE_SENSITIVITY, _ONE_FOR_ALL_ARMS.caught(*BOTH),
    _FIRST_PULL_EXACT, releases.WIDE_RANGE,
)  # fmt: skip
_EPISODES = (
    _NOISE_REDRAWN.caught(SAMPLING), _NO_FORGETTING, _HALF_THE_SENSITIVITY, releases.HALVED_UNAWARE, _ONE_FOR_ALL_ARMS,
    _FIRST_PULL_EXACT.caught(*ALL), releases.WIDE_RANGE,
)  # fmt: skip
_ELIMINATION = (
    replace(releases.ONE_FOR_ALL, plant=planted_as(_AllArmsAtOnce)),
    _NO_FORGETTING,
    _HALF_THE_SENSITIVITY, releases.HALVED_UNAWARE, releases.FIRST_UNPAID, releases.WIDE_RANGE,
)  # fmt: skip
_TREES = (
    regression.ONE_NODE.caught(SAMPLING),
    replace(regression.PREFIX_NOISE_REDRAWN, plant=with_part(regression.redrawn_prefixes)).caught(SAMPLING),
    replace(releases.ONE_FOR_ALL, plant=with_part(with_part(releases.shared, "mechanism"))),
    releases.ONE_A_LEVEL, _HALF_THE_SENSITIVITY, releases.HALVED_UNAWARE, releases.FIRST_UNPAID, releases.WIDE_RANGE,
)  # fmt: skip

FINITE_ARM_CONTROLS: dict[str, tuple[Control, ...]] = {
    "adar-ucb": _ADAR_UCB, "adac-ucb": _ADAR_UCB, "adap-ucb": _EPISODES, "adap-klucb": _EPISODES, "dp-se": _ELIMINATION,
    "dp-ucb": _TREES,
}  # fmt: skip
"""Label of an entry -> its planted faults."""
