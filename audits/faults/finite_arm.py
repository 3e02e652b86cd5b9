"""Planted faults: an audit that misses one of them has no power, and its PASS means nothing.

Each control takes an honest algorithm apart where public implementations go wrong, and keeps its claim. The sheet of faults
and their true privacy: mu0 is what the honest algorithm has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bandana.algorithms.bandits.finite_arm import episodes_numba
from bandana.algorithms.bandits.finite_arm.episodic_ucb import EpisodicUCB
from bandana.algorithms.bandits.finite_arm.indices import Released
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults.fault import Control, planted_as
from bandana.privacy_core import (
    Exact,
    Gaussian,
    GaussianEvent,
    Interval,
    Ledger,
    Mechanism,
    NoiseSource,
    OpenPhase,
    PhaseSum,
    Relation,
    Span,
)


class Remembering(NamedTuple):
    """A sensitive state that keeps what the honest algorithm forgets."""

    phase: OpenPhase
    sums: FloatArray
    """(n_reps, n_arms) kept sum of each arm."""
    start: IntArray
    """(n_reps, n_arms) where the arm's last episode began."""
    stop: IntArray
    """(n_reps, n_arms) where it ended."""


@dataclass(frozen=True)
class _RemembersSums(EpisodicUCB, ABC):
    """Keeps exact sums beyond their episode, and releases them in a faulty way."""

    def init(self, n_reps: int) -> tuple[Remembering, Released]:  # type: ignore[override]
        sensitive, released = super().init(n_reps)
        table = (n_reps, self.n_actions)
        empty = np.zeros(table, dtype=np.int64)
        return Remembering(sensitive.phase, np.zeros(table), empty, empty.copy()), released

    def absorb(  # type: ignore[override]
        self, sensitive: Remembering, released: Released, record: Record, ledger: Ledger
    ) -> tuple[Remembering, Released]:
        phase = self.sums.add(sensitive.phase, record.rewards[:, 0], record.n_records)
        ended = np.empty(len(record.user), dtype=np.int64)
        n_ended = episodes_numba.advance(
            released.pulls,
            released.arm,
            released.left,
            released.clock,
            record.actions[:, 0],
            record.n_records,
            self.doubling,
            ended,
        )
        ended = ended[:n_ended]
        if n_ended:
            arm = released.arm[ended]
            self.remember(sensitive, phase, ended, arm)
            phase.total[ended] = 0.0
            phase.start[ended] = phase.stop[ended]
            self.publish(sensitive, released, ledger, ended, arm)
        return sensitive._replace(phase=phase), released

    def remember(self, kept: Remembering, phase: OpenPhase, ended: IntArray, arm: IntArray) -> None:
        """Keeps the last episode's sum."""
        kept.sums[ended, arm] = phase.total[ended]
        kept.start[ended, arm] = phase.start[ended]
        kept.stop[ended, arm] = phase.stop[ended]

    @abstractmethod
    def publish(self, kept: Remembering, released: Released, ledger: Ledger, ended: IntArray, arm: IntArray) -> None:
        """Releases what the fault releases."""

    def take_in(self, released: Released, reps: IntArray, arm: IntArray, noisy: FloatArray, n_samples: IntArray) -> None:
        """Puts noisy sums into the arms' estimates; the last one alone counts."""
        episodes_numba.estimate(
            released.mean,
            released.deviation,
            reps,
            arm,
            noisy,
            n_samples,
            1.0,
            self.sums.mechanism.scale**2,
            self.reward_range.width,
            False,
        )


class _NoForgetting(_RemembersSums):
    """All rewards of an arm enter each release, with the noise of one, and only the last episode is declared."""

    def remember(self, kept: Remembering, phase: OpenPhase, ended: IntArray, arm: IntArray) -> None:
        kept.sums[ended, arm] += phase.total[ended]
        kept.start[ended, arm] = phase.start[ended]
        kept.stop[ended, arm] = phase.stop[ended]

    def publish(self, kept: Remembering, released: Released, ledger: Ledger, ended: IntArray, arm: IntArray) -> None:
        span = Span(kept.start[ended, arm], kept.stop[ended, arm])
        noisy = ledger.release(self.sums.mechanism, kept.sums[ended, arm], records=span, reps=ended)
        self.take_in(released, ended, arm, noisy, released.pulls[ended, arm])


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """One scalar draw for all coordinates: the noise cancels in every comparison of two of them."""

    gaussian: Gaussian

    @property
    def relation(self) -> Relation:
        """The honest mechanism's neighboring relation."""
        return self.gaussian.relation

    @property
    def norm(self) -> str:
        """The honest mechanism's norm."""
        return self.gaussian.norm

    @property
    def sensitivity(self) -> float:
        """The sensitivity that the honest mechanism declares."""
        return self.gaussian.sensitivity

    @property
    def scale(self) -> float:
        """The honest mechanism's noise scale."""
        return self.gaussian.scale

    @property
    def deviation(self) -> float:
        """The honest mechanism's noise deviation."""
        return self.gaussian.deviation

    @property
    def event(self) -> GaussianEvent:
        """The price that it pretends to have."""
        return self.gaussian.event

    def whiten(self, value: FloatArray) -> FloatArray:
        """Whitens a value as the honest mechanism does."""
        return self.gaussian.whiten(value)

    def color(self, whitened: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """Colors a whitened value as the honest mechanism does."""
        return self.gaussian.color(whitened, shape)

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """The same noise in each column of (n_rows, n_arms)."""
        drawn = noise.add_gaussian(np.zeros((len(value), 1)), self.gaussian.scale, self.gaussian.noise_multiplier)
        return value + drawn

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,) L2 distance."""
        return self.gaussian.change(value, neighbor)

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,): minus infinity where the values differ by more than a common shift."""
        shift = neighbor - value
        common = (shift == shift[:, :1]).all(axis=1)
        ratio = self.gaussian.log_density_ratio(output[:, 0], value[:, 0], neighbor[:, 0])
        return np.where(common, ratio, -np.inf)


class _NoiseRedrawn(_RemembersSums):
    """Every read of the indices draws noise anew for the sums of all arms."""

    def publish(self, kept: Remembering, released: Released, ledger: Ledger, ended: IntArray, arm: IntArray) -> None:
        span = Span(np.zeros(len(ended), dtype=np.int64), kept.stop[ended, arm])
        noisy = ledger.release(self.mechanism(), kept.sums[ended], records=span, reps=ended)
        n_samples = (kept.stop - kept.start)[ended]
        with_data = np.flatnonzero(n_samples)
        rows = with_data // self.n_actions
        self.take_in(
            released, ended[rows], with_data - rows * self.n_actions, noisy.ravel()[with_data], n_samples.ravel()[with_data]
        )

    def mechanism(self) -> Mechanism:
        """One fresh draw an arm."""
        return self.sums.mechanism


class _OneNoiseForAllArms(_NoiseRedrawn):
    """A read draws one noise and adds it to every arm's sum."""

    def mechanism(self) -> Mechanism:
        """One draw for all arms."""
        assert isinstance(self.sums.mechanism, Gaussian)
        return SharedNoise(self.sums.mechanism)


def _noise_for_n(honest: EpisodicUCB) -> EpisodicUCB:
    def halved(sums: PhaseSum) -> PhaseSum:
        assert isinstance(sums.mechanism, Gaussian)
        return PhaseSum(replace(sums.mechanism, sensitivity_l2=sums.mechanism.sensitivity_l2 / 2))

    return replace(honest, sums=halved(honest.sums), first_sums=halved(honest.first_sums))


def _first_pull_exact(honest: EpisodicUCB) -> EpisodicUCB:
    return replace(honest, first_sums=PhaseSum(Exact()))


def _not_clipped(honest: EpisodicUCB) -> EpisodicUCB:
    span = honest.reward_range
    return replace(honest, reward_range=Interval(span.low - 1e3 * span.width, span.high + 1e3 * span.width))


EPISODIC_UCB = (
    Control(
        "noise-redrawn",
        "noise is drawn anew at each read of an index (sqrt(m) mu0 after m reads)",
        planted_as(_NoiseRedrawn),
    ),
    Control("no-forgetting", "an arm's old rewards enter each of its L releases (sqrt(L) mu0)", planted_as(_NoForgetting)),
    Control("noise-for-N", "noise is scaled for N samples where the mean has N/2 (2 mu0)", _noise_for_n),
    Control(
        "one-noise-for-all-arms",
        "one draw is added to all arms and cancels between them (no privacy)",
        planted_as(_OneNoiseForAllArms),
    ),
    Control("first-pull-exact", "an arm's first pull enters its index without noise (no privacy)", _first_pull_exact),
    Control("not-clipped", "a reward outside the declared range is not clipped (mu0 x its size)", _not_clipped),
)
