"""Planted faults of the pure-DP baselines on finitely many arms: AdaP-UCB, AdaP-KLUCB, DP-SE and DP-UCB.

Each keeps the honest algorithm's claim. The book of Laplace releases is not compared with the claim case by case, so a fault
that only spends too often, or draws too little, is not for the deterministic audit to see: replays see it, and the
noise audit where the noise itself is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.bandits.finite_arm import elimination_numba
from bandana.algorithms.bandits.finite_arm.successive_elimination import Released, SuccessiveElimination
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults.fault import Control, planted_as
from bandana.audits.faults.finite_arm import EPISODIC_UCB
from bandana.audits.faults.tampering import first_exact, length_of, reusing, scaled_by
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING
from bandana.audits.testbeds.blocks import RepeatedSum
from bandana.privacy_core import Interval, Laplace, LaplaceEvent, Ledger, NoiseSource, OpenPhase, Relation, Span

BOTH, DRAWN = (SAMPLING, DETERMINISTIC), (SAMPLING, NOISE)


@dataclass(frozen=True, slots=True)
class SharedLaplace:
    """One scalar Laplace draw for all coordinates: the noise cancels in every comparison of two of them.

    Attributes:
      laplace: the mechanism that it pretends to be.
    """

    laplace: Laplace

    @property
    def relation(self) -> Relation:
        """The honest mechanism's neighboring relation."""
        return self.laplace.relation

    @property
    def norm(self) -> str:
        """The honest mechanism's norm."""
        return self.laplace.norm

    @property
    def sensitivity(self) -> float:
        """The sensitivity that the honest mechanism declares."""
        return self.laplace.sensitivity

    @property
    def scale(self) -> float:
        """The honest mechanism's noise scale."""
        return self.laplace.scale

    @property
    def deviation(self) -> float:
        """The honest mechanism's noise deviation."""
        return self.laplace.deviation

    @property
    def event(self) -> LaplaceEvent:
        """The price that it pretends to have."""
        return self.laplace.event

    def whiten(self, value: FloatArray) -> FloatArray:
        """Whitens a value as the honest mechanism does."""
        return self.laplace.whiten(value)

    def color(self, whitened: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """Colors a whitened value as the honest mechanism does."""
        return self.laplace.color(whitened, shape)

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """The same noise in each column of (n_rows, n_arms)."""
        return np.asarray(value + self.laplace.draw(noise, np.zeros((len(value), 1))))

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,) L1 distance."""
        return self.laplace.change(value, neighbor)

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,): minus infinity where the values differ by more than a common shift."""
        shift = neighbor - value
        common = (shift == shift[:, :1]).all(axis=1)
        ratio = self.laplace.log_density_ratio(output[:, :1], value[:, :1], neighbor[:, :1])
        return np.where(common, ratio, -np.inf)


def _with_sum(honest: Any, **changes: Any) -> Any:
    """The same algorithm with another mechanism in its sum, and in that of first pulls."""
    found = replace(honest, sums=replace(honest.sums, **changes))
    return replace(found, first_sums=found.sums) if hasattr(honest, "first_sums") else found


def _half_the_sensitivity(honest: Any) -> Any:
    mechanism = honest.sums.mechanism
    return _with_sum(honest, mechanism=replace(mechanism, sensitivity_l1=mechanism.sensitivity_l1 / 2))


def _not_clipped(honest: Any) -> Any:
    span = honest.reward_range
    return replace(honest, reward_range=Interval(span.low - 1e3 * span.width, span.high + 1e3 * span.width))


# ---- Episodes ---------------------------------------------------------------------------------------------------------


_OF_EPISODES = {control.name: control for control in EPISODIC_UCB}


def _one_noise_for_all_arms(honest: Any) -> Any:
    """The faulty class reads all arms' sums anew, as vectors; here through one draw for all of them."""
    redrawn = _OF_EPISODES["noise-redrawn"].plant(honest)
    return _with_sum(redrawn, mechanism=SharedLaplace(honest.sums.mechanism))


# ---- Elimination ------------------------------------------------------------------------------------------------------


class Remembering(NamedTuple):
    """A sensitive state that keeps what the honest algorithm forgets."""

    phase: OpenPhase
    sums: FloatArray
    """(n_reps, n_arms) kept sum of each arm."""
    n_samples: IntArray
    """(n_reps, n_arms) rewards in it."""
    start: IntArray
    """(n_reps,) where the epoch began."""


@dataclass(frozen=True)
class _RemembersEpochs(SuccessiveElimination):
    """Keeps the exact sums of arms, and releases them in a faulty way."""

    def init(self, n_reps: int) -> tuple[Remembering, Released]:  # type: ignore[override]
        sensitive, released = super().init(n_reps)
        table = (n_reps, self.n_actions)
        empty = np.zeros(table, dtype=np.int64)
        return Remembering(sensitive.phase, np.zeros(table), empty, np.zeros(n_reps, dtype=np.int64)), released

    def absorb(  # type: ignore[override]
        self, sensitive: Remembering, released: Released, record: Record, ledger: Ledger
    ) -> tuple[Remembering, Released]:
        phase = self.sums.add(sensitive.phase, record.rewards[:, 0], record.n_records)
        np.subtract(released.left, record.n_records, out=released.left)
        ended = np.flatnonzero(released.left == 0)
        if len(ended):
            total, span = phase.total[ended], Span(phase.start[ended], phase.stop[ended])
            phase.total[ended] = 0.0
            phase.start[ended] = phase.stop[ended]
            self.publish(sensitive, released, ledger, ended, total, span)
        return sensitive._replace(phase=phase), released

    def publish(
        self, kept: Remembering, released: Released, ledger: Ledger, ended: IntArray, total: FloatArray, span: Span
    ) -> None:
        """Releases what the fault releases; here all rewards of the arm so far, declared as those of the last epoch."""
        arm, n = released.arm[ended], span.stop - span.start
        kept.sums[ended, arm] += total
        kept.n_samples[ended, arm] += n
        noisy = ledger.release(self.sums.mechanism, kept.sums[ended, arm], records=span, reps=ended)
        self.take_in(released, ended, noisy / kept.n_samples[ended, arm] * n, n)

    def take_in(self, released: Released, ended: IntArray, noisy: FloatArray, n_samples: IntArray) -> None:
        """Takes a noisy sum into the estimates as the honest algorithm does."""
        elimination_numba.finish_pulls(
            ended, noisy, n_samples, released.mean, released.active, released.arm, released.left, released.epoch,
            self.failure, self.noise, self.reward_range.width, self.length_scale,
        )  # fmt: skip


class _AllArmsAtOnce(_RemembersEpochs):
    """The sums of all arms leave together when the epoch ends, with one noise for all of them."""

    def publish(
        self, kept: Remembering, released: Released, ledger: Ledger, ended: IntArray, total: FloatArray, span: Span
    ) -> None:
        arm = released.arm[ended]
        kept.sums[ended, arm] = total
        later = np.arange(self.n_actions) > arm[:, None]
        is_last = ~(released.active[ended] & later).any(axis=1)
        noisy, n = np.zeros(len(ended)), span.stop - span.start
        if is_last.any():
            rows = ended[is_last]
            epoch = Span(kept.start[rows], span.stop[is_last])
            assert isinstance(self.sums.mechanism, Laplace)
            vector = ledger.release(SharedLaplace(self.sums.mechanism), kept.sums[rows], records=epoch, reps=rows)
            released.mean[rows] = vector / n[is_last, None]
            noisy[is_last] = vector[np.arange(len(rows)), arm[is_last]]
            kept.sums[rows] = 0.0
            kept.start[rows] = span.stop[is_last]
        self.take_in(released, ended, noisy, n)


# ---- Trees ------------------------------------------------------------------------------------------------------------


class _Redrawn(RepeatedSum):
    """A tree's prefixes, of which each read draws noise of their size anew."""

    def mechanism_at(self, step: int) -> Any:
        """The mechanism with the noise of as many nodes as the step has binary digits 1."""
        return self.mechanism.scaled(step.bit_count() ** 0.5)


def _budget_on_one_node(honest: Any) -> Any:
    nodes = honest.sums.structure.n_nodes
    return replace(honest, sums=replace(honest.sums, mechanism=honest.sums.mechanism.scaled(1 / nodes)))


def _one_noise_a_node(honest: Any) -> Any:
    return _with_sum(honest, mechanism=SharedLaplace(honest.sums.mechanism))


def _prefix_noise_redrawn(honest: Any) -> Any:
    return replace(honest, sums=_Redrawn(honest.sums.mechanism, honest.sums.n_steps))


# ---- The lists --------------------------------------------------------------------------------------------------------


_HALF = Control(
    "half-the-sensitivity",
    "noise is scaled for a reward that moves by half the range (2 epsilon)",
    _half_the_sensitivity,
    BOTH,
)
_DRAWN_SMALL = Control("half-the-noise", "half of the declared noise is drawn (2 epsilon)", scaled_by(0.5), DRAWN)
_UNCLIPPED = Control(
    "not-clipped", "a reward outside the declared range is not clipped (epsilon times its size)", _not_clipped, BOTH
)

EPISODES = (
    Control(
        "noise-redrawn", "noise is drawn anew at each read of an index (m epsilon after m reads)",
        _OF_EPISODES["noise-redrawn"].plant, (SAMPLING,),
    ),
    Control(
        "no-forgetting", "an arm's old rewards enter each of its L releases (L epsilon)",
        _OF_EPISODES["no-forgetting"].plant, BOTH,
    ),
    _HALF,
    _DRAWN_SMALL,
    Control(
        "one-noise-for-all-arms", "one draw is added to all arms and cancels between them (no privacy)",
        _one_noise_for_all_arms, DRAWN,
    ),
    Control(
        "first-pull-exact", "an arm's first pull enters its index without noise (no privacy)",
        _OF_EPISODES["first-pull-exact"].plant, (*BOTH, NOISE),
    ),
    _UNCLIPPED,
)  # fmt: skip

ELIMINATION = (
    Control(
        "one-noise-for-all-arms", "one scalar draw is added to all arms and cancels in each comparison (no privacy)",
        planted_as(_AllArmsAtOnce), DRAWN,
    ),
    Control(
        "no-forgetting", "an arm's rewards of earlier epochs enter its later releases (L epsilon after L epochs)",
        planted_as(_RemembersEpochs), BOTH,
    ),
    _HALF,
    _DRAWN_SMALL,
    Control("first-pulls-exact", "the first arm's first epoch has no noise (no privacy)", first_exact, (*BOTH, NOISE)),
    _UNCLIPPED,
)  # fmt: skip

TREES = (
    Control(
        "budget-on-one-node", "the noise is that of one release; a record lies in floor(log2 T) + 1 nodes",
        _budget_on_one_node, (SAMPLING,),
    ),
    Control("prefix-noise-redrawn", "each read of the sums draws noise anew", _prefix_noise_redrawn, (SAMPLING,)),
    Control(
        "one-noise-for-all-arms", "a node adds one draw to all arms, which cancels between them (no privacy)",
        _one_noise_a_node, DRAWN,
    ),
    Control(
        "one-noise-a-level", "all nodes of a level add the same noise: their differences are exact (no privacy)",
        reusing(length_of), (NOISE,),
    ),
    _HALF,
    _DRAWN_SMALL,
    Control("first-node-exact", "the first node leaves without noise (no privacy)", first_exact, (*BOTH, NOISE)),
    _UNCLIPPED,
)  # fmt: skip

BASELINE_CONTROLS: dict[str, tuple[Control, ...]] = {
    "adap-ucb": EPISODES, "adap-klucb": EPISODES, "dp-se": ELIMINATION, "dp-ucb": TREES,
}  # fmt: skip
