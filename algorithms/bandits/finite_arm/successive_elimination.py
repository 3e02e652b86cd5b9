r"""Successive elimination on finitely many arms: DP-SE on Laplace phase sums, the non-private algorithm on exact ones.

Source: Sajed and Sheffet (2019), An optimal private stochastic-MAB algorithm based on an optimal private stopping rule,
Algorithm 2; the non-private algorithm is that of Even-Dar, Mannor and Mansour (2002), in epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandana.algorithms.bandits.finite_arm import elimination_numba
from bandana.algorithms.bandits.reward_noise import laplace
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.privacy_core import Exact, Interval, Ledger, OpenPhase, PhaseSum
from bandana.privacy_core.checks import positive, probability


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    phase: OpenPhase
    """The reward sum of the pulls under way."""


class Released(NamedTuple):
    """All that decisions are made from; a function of noisy sums and of public counts."""

    mean: FloatArray
    """(n_reps, n_arms), noisy, of the epoch under way for the arms that were pulled in it."""
    active: NDArray[np.bool_]
    """(n_reps, n_arms) arms that are not eliminated."""
    arm: IntArray
    """(n_reps,) the arm that is pulled."""
    left: IntArray
    """(n_reps,) pulls left of it in this epoch."""
    epoch: IntArray
    """(n_reps,) from 1."""


@dataclass(frozen=True)
class SuccessiveElimination:
    r"""Epochs in which every active arm is pulled equally often; arms that fall behind the best are eliminated.

    In epoch e = 1, 2, ..., with S active arms and Delta_e = 2^-e, each is pulled

        R_e = floor(max(32 log(8 S e^2 / failure) / Delta_e^2, 8 log(4 S e^2 / failure) / (epsilon Delta_e))) + 1

    times, the mean of these R_e rewards alone is released with Laplace(1 / (epsilon R_e)) noise, fresh for each arm, and an
    arm is eliminated if its noisy mean is below the largest by more than 2 h_e + 2 c_e,

        h_e = sqrt(log(8 S e^2 / failure) / (2 R_e)),      c_e = log(4 S e^2 / failure) / (epsilon R_e).

    By Hoeffding and the Laplace tail all means of all epochs are within h_e + c_e, except with probability `failure`: each
    event has at most failure / (4 S e^2), twice, and sum_e 1 / (2 e^2) < 1. Then the best arm stays, and since h_e and c_e
    are at most Delta_e / 8, arms of gap Delta_e go. The last arm is played to the end, and nothing more is released.

    Unit of privacy: one reward (one round). Claim: epsilon-DP of all actions (the paper's Theorem on DP-SE), central model.
    Sensitivity: a sum of R_e rewards clipped to [low, high] moves by at most high - low when one is replaced; each reward
    lies in one released sum. R_e and the active arms are functions of earlier releases, so the one-touch lemma applies: one
    Laplace release of multiplier 1 / epsilon touches a record.
    Each arm needs noise of its own. With one scalar draw for all arms, as in public code, the noise cancels in every
    comparison and the actions are those without privacy.
    Public: arms, horizon (through `failure`), the reward range. Cost: O(n_arms) an epoch, O(log T) epochs.

    Departures from the paper: an arm's R_e pulls follow one another, where the paper takes the arms in turn; no proof uses
    the order, and an arm's sum is then a phase of consecutive records. R_e is rounded down before the 1 is added. Rewards of
    a range of another width are measured in units of it. S counts the active arms, as printed; some code takes all K, which
    costs 1 % of the regret. `length_scale` shortens epochs; h_e and c_e follow their real length, so the best arm stays as
    surely, and only the gaps that an epoch resolves change.

    Attributes:
      n_actions: number of arms.
      reward_range: declared range of a reward; every reward is clipped to it.
      sums: the phase sum of an arm's pulls in one epoch.
      failure: the paper's beta, the probability that the best arm is eliminated; 1 / T in its theorem.
      length_scale: times the printed number of pulls an epoch; 1 is the paper's. Privacy does not depend on it.
    """

    n_actions: int
    reward_range: Interval
    sums: PhaseSum
    failure: float
    length_scale: float = 1.0

    def __post_init__(self) -> None:
        if self.n_actions < 2:
            raise ValueError(f"n_actions must be at least 2, got {self.n_actions!r}")
        probability("failure", self.failure)
        positive("length_scale", self.length_scale)

    @property
    def noise(self) -> float:
        """Laplace scale of the noise on a sum, in units of the range: 1 / epsilon; 0 for the twin."""
        return self.sums.mechanism.scale / self.reward_range.width

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The first epoch, at its first arm."""
        table = (n_reps, self.n_actions)
        length = elimination_numba.epoch_length(self.n_actions, 1, self.failure, self.noise, self.length_scale)
        released = Released(
            mean=np.zeros(table),
            active=np.ones(table, dtype=np.bool_),
            arm=np.zeros(n_reps, dtype=np.int64),
            left=np.full(n_reps, length, dtype=np.int64),
            epoch=np.ones(n_reps, dtype=np.int64),
        )
        return Sensitive(self.sums.init(n_reps)), released

    def act(self, released: Released, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the arm whose turn it is."""
        return released.arm.copy()

    def hold(self, released: Released, actions: IntArray) -> IntArray:
        """(n_reps,) its pulls left in this epoch."""
        return released.left.copy()

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds to the arm's sum; where its pulls are complete, releases it, and at an epoch's end eliminates."""
        phase = self.sums.add(sensitive.phase, record.rewards[:, 0], record.n_records)
        np.subtract(released.left, record.n_records, out=released.left)
        ended = np.flatnonzero(released.left == 0)
        if len(ended):
            phase, noisy, n_samples = self.sums.close(phase, ledger, None if len(ended) == ledger.n_reps else ended)
            elimination_numba.finish_pulls(
                ended, noisy, n_samples, released.mean, released.active, released.arm, released.left, released.epoch,
                self.failure, self.noise, self.reward_range.width, self.length_scale,
            )  # fmt: skip
        return Sensitive(phase), released


def successive_elimination(
    n_arms: int, failure: float, reward_range: Interval, length_scale: float = 1.0
) -> SuccessiveElimination:
    """Successive elimination without noise, the non-private twin."""
    return SuccessiveElimination(n_arms, reward_range, PhaseSum(Exact()), failure, length_scale)


def dp_se(
    n_arms: int, epsilon: float, failure: float, reward_range: Interval, length_scale: float = 1.0
) -> SuccessiveElimination:
    """DP-SE with total privacy epsilon-DP.

    Args:
      n_arms: at least 2.
      epsilon: above 0.
      failure: the paper's beta, in (0, 1); 1 / T in its theorem.
      reward_range: declared range of a reward.
      length_scale: times the printed number of pulls an epoch.
    """
    return SuccessiveElimination(n_arms, reward_range, PhaseSum(laplace(epsilon, reward_range)), failure, length_scale)
